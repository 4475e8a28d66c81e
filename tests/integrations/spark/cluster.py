"""Run by a test: builds every structure that merges on two executor processes; some are killed.

Prints what was built, as JSON: digests of all bytes where a build is exact, and what a hot list
says.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pyarrow as pa

from bloomtide.distributed import Recipe
from bloomtide.integrations.spark import build, build_files, contains
from tests.distributed.recipes import BOUNDS, EXACT, NOW, columns, key_of
from tests.integrations.spark.conftest import start

NUMBERS = [n * n % 2003 for n in range(6000)]
HOT: dict[str, Recipe] = {
    "with room": Recipe.hot_list(3000),
    "too small": Recipe.hot_list(40),
    "too small, fading": Recipe.hot_list(40, half_life="1h", at=NOW),
}
HOT_NUMBERS = [min(n * 7919 % 1009, n % 50) for n in range(6000)]
ASKED = [key_of(number) for number in sorted(set(NUMBERS))]


def kill_executor(pid: int) -> None:
    """The worker's daemon is a child of the executor."""
    parent = (line for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    executor = next(int(line.split()[1]) for line in parent if line.startswith("PPid"))
    os.kill(executor, signal.SIGKILL)


def frame(spark: Any, rows: dict[str, list[Any]]) -> Any:
    """The rows, half on each executor."""
    return spark.createDataFrame(pa.table(rows))


def built(df: Any, recipe: Recipe) -> Any:
    """The build of all columns."""
    there: dict[str, Any] = {name: name for name in ("count", "at") if name in df.columns}
    return build(df, "key", recipe, groups=1, **there)


def killed_in_mid_build(spark: Any, name: str, mark: Path) -> Any:
    """The build of rows whose first task loses its executor after a hundred of them."""
    rows = frame(spark, columns(EXACT[name], NUMBERS))

    def die_once(batches: Any) -> Any:
        for batch in batches:
            yield batch
            try:
                mark.touch(exist_ok=False)
            except FileExistsError:
                continue
            kill_executor(os.getppid())

    return built(rows.mapInArrow(die_once, rows.schema), EXACT[name])


def main(folder: Path, kinds: list[str]) -> None:
    """Builds all there is, then some of it again while executors are killed."""
    spark = start("local-cluster[2,1,1024]", folder)
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "100")

    def exact(name: str) -> str:
        return digest(built(frame(spark, columns(EXACT[name], NUMBERS)), EXACT[name]))

    def bounds(name: str) -> list[tuple[float, bool]]:
        recipe = BOUNDS[name]
        made = built(frame(spark, columns(recipe, NUMBERS)), recipe)
        words = {"at": NOW} if recipe.fades else {}
        asked = (made.estimate(key, **words) for key in ASKED)
        return [(answer.value, answer.saturated) for answer in asked]

    def hot(name: str) -> list[Any]:
        made = built(frame(spark, columns(HOT[name], HOT_NUMBERS)), HOT[name])
        return [(item.key, item.count, item.lower) for item in made.top(at=made.time)]

    found: dict[str, Any] = {}
    with ThreadPoolExecutor(4) as pool:  # jobs of one session, side by side
        for part, names in ((exact, EXACT), (bounds, BOUNDS), (hot, HOT)):
            found[part.__name__] = dict(zip(names, pool.map(part, names), strict=True))
    keys = frame(spark, {"key": [key_of(number) for number in NUMBERS]})
    keys.write.parquet(str(folder / "keys"))
    seen = build_files(spark, folder / "keys", "key", EXACT["bloom"], scratch=folder / "scratch")
    found["files"] = digest(seen)
    found["contained"] = keys.where(contains("key", seen)).count()
    found["killed"] = {}
    for name in kinds:
        mark = folder / f"killed-{name}"
        made = killed_in_mid_build(spark, name, mark)
        found["killed"][name] = digest(made) if mark.exists() else "nothing was killed"
    spark.stop()
    sys.stdout.write(json.dumps(found))


def digest(made: Any) -> str:
    """Of all bytes of a filter."""
    return blake2b(made.to_bytes(), digest_size=16).hexdigest()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
