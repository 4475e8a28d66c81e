"""Writes the golden files: one small snapshot of every kind, layout, hash and counter width.

They are written once per format version and never again: `tests/files/test_golden.py` loads them
for ever. Run `python -m tests.golden.make_golden` to add a file for a new variant; an existing file
is never replaced, and everything here is deterministic, so a file can be rebuilt byte for byte.

Beside the snapshots, `answers.json` lists what each of them must answer, in plain numbers that do
not depend on any code: text keys (never the integers, which JSON would blur) with their counts.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bloomery import BloomFilter, CountingBloomFilter, ScalableBloomFilter

FOLDER = Path(__file__).parent / "v1"
ANSWERS = FOLDER / "answers.json"
SECRET = bytes(range(16))
PRESENT = [f"present {i}" for i in range(24)] + ["", "ü€😀"]
ABSENT = [f"absent {i}" for i in range(24)]
NUMBERS = [0, 1, 5, 2**63, 2**64 - 1, -1, -(2**63)]

Filter = BloomFilter | ScalableBloomFilter | CountingBloomFilter


def _fill(made: Any) -> Any:
    made.add_many(PRESENT)
    made.add_many(NUMBERS)
    return made


def _fill_counting(made: CountingBloomFilter) -> CountingBloomFilter:
    _fill(made)
    for times, key in enumerate(PRESENT[:20], start=1):
        made.add(key, times)
    return made


SIZES: dict[str, Any] = {"bits": 2048, "hashes": 5}

MAKERS: dict[str, Callable[[], Filter]] = {
    "bloom-empty": lambda: BloomFilter(10, 0.01),
    "bloom-blocked": lambda: _fill(BloomFilter(100, 0.01, layout="blocked")),
    "bloom-blocked-few-hashes": lambda: _fill(BloomFilter(100, 0.1, layout="blocked")),
    "bloom-blocked-keyed": lambda: _fill(BloomFilter(100, 0.01, hash="keyed", secret=SECRET)),
    "bloom-classic": lambda: _fill(BloomFilter(100, 1e-5)),
    "bloom-classic-odd": lambda: _fill(BloomFilter(bits=1021, hashes=3, seed=2**64 - 1)),
    "bloom-classic-double": lambda: _fill(BloomFilter(**SIZES, derivation="double")),
    "bloom-classic-slices": lambda: _fill(BloomFilter(**SIZES, derivation="slices")),
    "bloom-classic-keyed": lambda: _fill(BloomFilter(**SIZES, hash="keyed", secret=SECRET)),
    "scalable": lambda: _fill(ScalableBloomFilter(8, 0.05)),
    "scalable-keyed": lambda: _fill(
        ScalableBloomFilter(
            10, 0.02, growth=3.0, tightening=0.75, derivation="double", hash="keyed", secret=SECRET
        )
    ),
    "counting-4": lambda: _fill_counting(CountingBloomFilter(60, 0.02, layout="classic")),
    "counting-8": lambda: _fill_counting(
        CountingBloomFilter(60, 0.02, counter_bits=8, layout="classic")
    ),
    "counting-16": lambda: _fill_counting(
        CountingBloomFilter(60, 0.05, counter_bits=16, layout="classic")
    ),
    "counting-32": lambda: _fill_counting(
        CountingBloomFilter(bits=8192, hashes=3, counter_bits=32, derivation="slices")
    ),
    "counting-conservative": lambda: _fill_counting(
        CountingBloomFilter(
            60, 0.02, counter_bits=8, policy="conservative", layout="classic", seed=7
        )
    ),
    "counting-keyed": lambda: _fill_counting(
        CountingBloomFilter(60, 0.02, layout="classic", hash="keyed", secret=SECRET)
    ),
    "counting-blocked": lambda: _fill_counting(CountingBloomFilter(60, 0.02)),
    "counting-blocked-conservative": lambda: _fill_counting(
        CountingBloomFilter(
            bits=7000,
            hashes=8,
            counter_bits=8,
            policy="conservative",
            layout="blocked",
            hash="keyed",
            secret=SECRET,
        )
    ),
}


def path_of(name: str) -> Path:
    """Where the golden file of that name lies."""
    return FOLDER / f"{name}.bloomery"


def answers_of(made: Filter) -> dict[str, Any]:
    """What a filter says about the listed keys."""
    said: dict[str, Any] = {
        "kind": type(made).__name__,
        "present": [key for key in PRESENT + ABSENT if key in made],
        "absent": [key for key in PRESENT + ABSENT if key not in made],
        "numbers": [str(number) for number in NUMBERS if number in made],
    }
    if isinstance(made, CountingBloomFilter):
        said["counts"] = {key: made.count(key) for key in PRESENT + ABSENT}
    return said


def main() -> None:
    """Write what is missing; keep what is there."""
    FOLDER.mkdir(exist_ok=True)
    known = json.loads(ANSWERS.read_text()) if ANSWERS.exists() else {}
    for name, make in MAKERS.items():
        if not path_of(name).exists():
            made = make()
            path_of(name).write_bytes(made.to_bytes())
            known[name] = answers_of(made)
    ANSWERS.write_text(json.dumps(known, indent=1, ensure_ascii=False, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
