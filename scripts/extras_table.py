"""Prints the table of docs/install.md: packages and megabytes of each extra by itself.

    python -m scripts.extras_table dist/bloomtide-*.whl [EXTRA ...]

Makes an empty environment for each and installs from a package index. Megabytes are those of the
files in `site-packages` without bytecode. Packages include NumPy and bloomtide itself, but not pip.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.package.environments import make_environment
from tests.package.trees import EXTRAS

GIVES = {
    "": "every filter, `RecentFilter`, `Monitor` in memory, logs, files, sharing",
    "cli": "the command: `plan`, `new`, `add`, `check`, `count`, `dedup`, `top` and more",
    "serve": "`bloomtide serve`: the Redis protocol, HTTP and the page; with `cli`",
    "watch": "`bloomtide watch`; with `cli`, `serve` and `history`",
    "redis": "`bloomtide watch redis://...`; with `watch`",
    "history": "`catalogue=` of a `History`: its table of segments in another database",
    "guard": "`DatabaseGuard`",
    "metrics": "`bloomtide.guard.metrics.GuardMetrics`",
    "fsspec": "a history's segments in an object store: `location=`; with `history`",
    "arrow": "Arrow over HTTP; with `cli` and `history` the tables of `bloomtide history`",
    "all": "all of the above",
    "scrapy": "`bloomtide.integrations.scrapy`",
    "django": "`bloomtide.integrations.django`",
    "distributed": "`bloomtide.distributed`, for an engine of your own",
    "dask": "`bloomtide.integrations.dask`; with `distributed`",
    "ray": "`bloomtide.integrations.ray`; with `distributed`",
    "spark": "`bloomtide.integrations.spark`; with `distributed` and `history`",
}


def main(wheel: Path, wanted: list[str]) -> None:
    if missing := EXTRAS.keys() - GIVES.keys():
        raise SystemExit(f"say what these give: {', '.join(missing)}")
    print("| install | packages | MB | gives |\n|---|---|---|---|")
    for extra, gives in GIVES.items():
        if wanted and extra not in wanted:
            continue
        with TemporaryDirectory() as folder:
            made = make_environment(Path(folder) / "environment", wheel, extra)
            name = f"bloomtide[{extra}]" if extra else "bloomtide"
            row = f"| `{name}` | {len(made.packages())} | {made.megabytes():.0f} | {gives} |"
            print(row, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
