"""Run by a test: builds on a cluster of two executor processes, one of which is killed meanwhile.

Prints what was built, as JSON.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from hashlib import blake2b
from pathlib import Path
from typing import Any

from bloomery import BloomFilter, PartitionedDynamicCountFilter
from bloomery.integrations.spark import build, contains
from tests.integrations.spark.conftest import start

PLANS = {
    "bloom": BloomFilter.plan(20_000, 0.01),
    "pdcf": PartitionedDynamicCountFilter.plan(20_000, 0.01),
}


def kill_executor(pid: int) -> None:
    """The worker's daemon is a child of the executor."""
    parent = (line for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    executor = next(int(line.split()[1]) for line in parent if line.startswith("PPid"))
    os.kill(executor, signal.SIGKILL)


def main(folder: Path) -> None:
    """Builds with and without a killed executor."""
    spark = start("local-cluster[2,1,1024]", folder)
    keys = spark.range(0, 30_000, 1, 4).selectExpr("id % 10000 as id")
    found: dict[str, Any] = {}
    for name, plan in PLANS.items():
        found[name] = digest(build(keys, "id", plan, groups=2))
    mark = folder / "killed"

    def die_once(batches: Any) -> Any:
        for batch in batches:
            yield batch
            try:
                mark.touch(exist_ok=False)
            except FileExistsError:
                continue
            kill_executor(os.getppid())

    broken = keys.mapInArrow(die_once, "id long")
    made = build(broken, "id", PLANS["pdcf"], groups=2)
    found["killed"] = mark.exists()
    found["pdcf after a kill"] = digest(made)
    seen = build(keys, "id", PLANS["bloom"])
    found["contained"] = keys.where(contains("id", seen)).count()
    spark.stop()
    sys.stdout.write(json.dumps(found))


def digest(made: Any) -> str:
    """Of all bytes of a filter."""
    return blake2b(made.to_bytes(), digest_size=16).hexdigest()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
