"""`python -m benchmarks`: measure, print, and write the tables."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from pathlib import Path

from benchmarks import documents, report
from benchmarks.floors import floors
from benchmarks.run import FULL, QUICK, run

ROOT = Path(__file__).parent.parent
DOCUMENT = ROOT / "docs" / "benchmarks.md"
README = ROOT / "README.md"


def main(arguments: list[str] | None = None) -> int:
    """Runs the comparison; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="tiny sizes, no documents: does it work at all?"
    )
    parser.add_argument(
        "--results", type=Path, default=ROOT / "benchmarks" / "results", help="folder for the JSON"
    )
    options = parser.parse_args(arguments)
    shown = [] if options.quick else [path for path in (DOCUMENT, README) if path.exists()]
    for path in shown:
        documents.require(path, "bench")
    result = run(QUICK if options.quick else FULL, lambda text: print(text, file=sys.stderr))
    promises = floors(result)
    content = result.as_dict()
    content["floors"] = [{**asdict(row), "verdict": row.verdict} for row in promises]
    suffix = ".quick.json" if options.quick else ".json"
    documents.write_json(options.results / f"{result.date}{suffix}", content)
    print(report.full_report(result))
    for path in shown:
        write = report.readme_report if path == README else report.full_report
        documents.update(path, "bench", write(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
