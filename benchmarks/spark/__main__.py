"""`make spark`: our builds and filters beside Spark's own answers to the same questions.

    build, files     a Bloom filter of all keys: of a DataFrame, and of files that workers read
    distinct, drop   df.distinct().count() and df.dropDuplicates() of the same files
    kinds            other structures of the same keys
    scale            weak scaling: a build on one executor, and on two with twice the rows
    shuffle          every key to the task that owns it, as for shards
    join, runtime, semi   a selective join as it is, with Spark's runtime filter, with semi_filter
    rates            one core without Spark, for `bloomtide plan --cluster`

Each runs in JVMs of its own, one after the other, on data that is made once (9 GB for 100 M keys,
4 GB for the joins; `--data` keeps it). Smaller sizes: `--rows 10000000 --join 5000000`. The tables
go into docs/scale.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.markdown import table

ROOT = Path(__file__).parents[2]
RESULT = ROOT / "benchmarks" / "spark" / "results.json"
RUNS: dict[str, dict[str, tuple[str, ...]]] = {
    "build": {
        "whole numbers, `build`": ("build", "--form", "long"),
        "URLs, `build`": ("build", "--form", "url"),
    },
    "files": {
        "whole numbers, `build_files`": ("files", "--form", "long"),
        "URLs, `build_files`": ("files", "--form", "url"),
        "whole numbers, `build_files` of Arrow files": ("files", "--form", "long-arrow"),
        "URLs, `build_files` of Arrow files": ("files", "--form", "url-arrow"),
    },
    "distinct": {
        "whole numbers, `df.distinct().count()`": ("distinct", "--form", "long"),
        "URLs, `df.distinct().count()`": ("distinct", "--form", "url"),
    },
    "drop": {
        "whole numbers, `df.dropDuplicates()`": ("drop", "--form", "long"),
        "URLs, `df.dropDuplicates()`": ("drop", "--form", "url"),
    },
    "kinds": {
        f"{label}, `build_files`, `{kind}`": ("files", "--form", form, "--structure", kind)
        for label, form, kind in (
            ("whole numbers", "long", "counting"),
            ("whole numbers", "long", "pdcf"),
            ("whole numbers", "long", "hot"),
            ("URLs", "url", "url"),
        )
    },
    "shuffle": {"URLs, shuffled": ("shuffle", "--form", "url")},
    "scale": {
        f"{label}, {name}": (step, "--form", form, "--executors", executors)
        for label, step in (("`build`", "build"), ("`build_files`", "files"))
        for name, form, executors in (
            ("half of the rows, 1 executor", "long-half", "1"),
            ("all rows, 2 executors", "long", "2"),
        )
    },
    "join": {"join": ("join",)},
    "runtime": {"join with Spark's runtime filter": ("runtime",)},
    "semi": {"`semi_filter`, then join": ("semi",)},
}
"""What belongs to each word of `--steps`: a line of a table, and how it is made."""
JOINS = ("join", "runtime", "semi")


def step(name: str, *options: str) -> dict[str, Any]:
    """One step in a process of its own."""
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.spark.step", name, *options]
    paths = os.pathsep.join([str(ROOT / "python"), str(ROOT)])
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": paths}
    print(f"{name} {' '.join(options)}", file=sys.stderr, flush=True)
    done = subprocess.run(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, check=True, text=True
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def costs(results: dict[str, Any]) -> str:
    """A table of what steps took."""
    heads = ("", "time", "CPU", "shuffle", "partials", "peak memory")
    rows = [
        (
            name,
            f"{found['seconds']:.1f} s",
            f"{sum(found['cpu_seconds'].values()):.1f} s",
            f"{found['shuffle_bytes'] / 1e6:,.1f} MB",
            f"{found.get('partial_bytes', 0) / 1e6:,.1f} MB",
            f"{found['peak_bytes'] / 1e9:.2f} GB",
        )
        for name, found in results.items()
    ]
    return table(rows, heads)


def shares(results: dict[str, Any]) -> str:
    """A table of where the CPU of executors and their workers went: the whole by the kernel's own
    account, the parts by samples."""
    heads = (
        "",
        "all",
        "JVMs",
        "core",
        "kernel for core",
        "Arrow",
        "core of all",
        "with its kernel",
    )
    rows = []
    for name, found in results.items():
        spent, cpu = found["profile"], found["cpu_seconds"]
        whole = cpu["executors"] + cpu.get("workers", 0)
        core, kernel = spent.get("core", 0), spent.get("kernel for core", 0)
        arrow = spent.get("Arrow", 0) + spent.get("kernel for Arrow", 0)
        if core:
            times = (whole, cpu["executors"], core, kernel, arrow)
            parts = (core / whole, (core + kernel) / whole)
            rows.append((name, *(f"{t:.2f} s" for t in times), *(f"{part:.0%}" for part in parts)))
    return table(rows, heads)


def main() -> None:
    """All steps, or some."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--join", type=int, default=50_000_000)
    parser.add_argument("--data", type=Path, help="keeps the data in this directory")
    parser.add_argument("--steps", default=",".join(["rates", *RUNS]))
    options = parser.parse_args()
    steps = options.steps.split(",")
    results: dict[str, Any] = json.loads(RESULT.read_text()) if RESULT.exists() else {}
    with tempfile.TemporaryDirectory() as scratch:
        data = options.data or Path(scratch) / "data"
        if not data.exists():
            sizes = ("--rows", str(options.rows), "--join", str(options.join))
            step("data", "--data", str(data), *sizes)
        for name in steps:
            if name == "rates":
                results[name] = step(name, "--rows", str(min(options.rows, 20_000_000)))
            for label, (verb, *words) in RUNS.get(name, {}).items():
                rows = options.join if name in JOINS else options.rows
                found = step(verb, "--data", str(data), "--rows", str(rows), *words)
                results.setdefault(name, {})[label] = found
                results["machine"] = machine.describe()
                RESULT.write_text(json.dumps(results, indent=1) + "\n")
    show(results)


def show(results: dict[str, Any]) -> None:
    """The tables of all that was measured."""
    for names in (("build", "files", "distinct", "drop"), ("scale",), ("shuffle",), JOINS):
        print(costs({k: v for name in names for k, v in results.get(name, {}).items()}), "\n")
    both = {k: v for name in ("build", "files", "kinds") for k, v in results.get(name, {}).items()}
    print(shares(both))


if __name__ == "__main__":
    main()
