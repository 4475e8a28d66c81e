"""`make spark`: our builds and filters beside Spark's own answers to the same questions.

    build, profile   a Bloom filter of all keys, and how much of the CPU is inside the core
    scan, files, profile-files   the same from Parquet, through the JVM and without
    shuffle          every key to the task that owns it, as for shards
    distinct, drop   df.distinct().count() and df.dropDuplicates() of the same rows
    join, runtime, semi   a selective join as it is, with Spark's runtime filter, with semi_filter
    scale            weak scaling: the build on one core, and on two with twice the rows
    rates            one core without Spark, for `bloomery plan --cluster`

Each runs in a JVM of its own, one after the other. Smaller sizes: `--rows 10000000 --join 5000000`.
The table goes into docs/scale.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.markdown import table

ROOT = Path(__file__).parents[2]
RESULT = ROOT / "benchmarks" / "spark" / "results.json"
STEPS = "rates,build,profile,scan,files,profile-files,shuffle,distinct,drop,join,runtime,semi,scale"
NAMES = {
    "build": "`build`, 1 %",
    "scan": "`build` of Parquet files",
    "files": "`build_files` of the same files",
    "distinct": "`df.distinct().count()`",
    "drop": "`df.dropDuplicates()`",
    "join": "join",
    "runtime": "join, Spark's runtime filter",
    "semi": "`semi_filter`, then join",
}


def step(name: str, rows: int, *options: str) -> dict[str, Any]:
    """One step in a process of its own."""
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.spark.step", name]
    command += ["--rows", str(rows), *options]
    paths = os.pathsep.join([str(ROOT / "python"), str(ROOT)])
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": paths}
    print(f"{name} {rows:,} {' '.join(options)}", file=sys.stderr, flush=True)
    done = subprocess.run(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, check=True, text=True
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def shown(results: dict[str, dict[str, Any]], names: list[str]) -> str:
    """A table of some steps."""
    heads = ("", "time", "CPU", "shuffle", "peak memory")
    rows = [
        (
            NAMES[name],
            f"{found['seconds']:.1f} s",
            f"{found['cpu_seconds']:.1f} s",
            f"{found['shuffle_bytes'] / 1e6:,.1f} MB",
            f"{found['peak_bytes'] / 1e9:.2f} GB",
        )
        for name in names
        for found in [results[name]]
    ]
    return table(rows, heads)


def main() -> None:
    """All steps, or some."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--join", type=int, default=50_000_000)
    parser.add_argument("--form", choices=["long", "url"], default="long")
    parser.add_argument(
        "--steps",
        default="rates,build,profile,scan,files,profile-files,shuffle,distinct,drop,join,runtime,semi,scale",
    )
    options = parser.parse_args()
    steps = options.steps.split(",")
    results: dict[str, Any] = json.loads(RESULT.read_text()) if RESULT.exists() else {}
    for name in steps:
        if name == "rates":
            results[name] = step(name, min(options.rows, 20_000_000))
        elif name == "scale":
            half = options.rows // 2
            results["one core"] = step(
                "build", half, "--master", "local[1]", "--form", options.form
            )
            results["two cores"] = step("build", 2 * half, "--form", options.form)
        elif name in {"join", "runtime", "semi"}:
            results[name] = step(name, options.join)
        else:
            results[name] = step(name, options.rows, "--form", options.form)
        results["machine"] = machine.describe()
        RESULT.write_text(json.dumps(results, indent=1) + "\n")
    if {"build", "distinct", "drop"} <= results.keys():
        print(shown(results, ["build", "distinct", "drop"]), "\n")
    if {"scan", "files"} <= results.keys():
        print(shown(results, ["scan", "files"]), "\n")
    if {"join", "runtime", "semi"} <= results.keys():
        print(shown(results, ["join", "runtime", "semi"]), "\n")
    for name in ("profile", "profile-files"):
        if name in results:
            found = results[name]
            share = found["native_seconds"] / found["cpu_seconds"]
            alone = found["native_seconds"] / found["python_seconds"]
            print(f"{name}: {share:.0%} of the CPU of JVM and workers is inside the core")
            print(f"{name}: {alone:.0%} of that of the workers")


if __name__ == "__main__":
    main()
