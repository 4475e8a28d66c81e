"""Writes the golden files: one small snapshot of every kind, layout, hash and counter width, a
segment of a history, and two partials of a distributed build.

They are written once per format version and never again: `tests/files/test_golden.py` loads them
for ever. Run `python -m tests.golden.make_golden` to add a file for a new variant; an existing file
is never replaced, and everything here is deterministic, so a file can be rebuilt byte for byte.

Beside the snapshots, `answers.json` lists what each of them must answer, in plain numbers that do
not depend on any code: text keys (never the integers, which JSON would blur) with their counts.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import Any
from urllib.parse import quote

from bloomtide import (
    BloomFilter,
    CountingBloomFilter,
    DynamicCountFilter,
    HotList,
    PartitionedDynamicCountFilter,
    PartitionedSpectralBloomFilter,
    ScalableBloomFilter,
    SpectralBloomFilter,
    TimeDecayingBloomFilter,
    UrlFilter,
)
from bloomtide._core import CountFilter, HistoryBuffer, HistorySegment
from bloomtide.distributed import build_partition

FOLDER = Path(__file__).parent / "v1"
ANSWERS = FOLDER / "answers.json"
SECRET = bytes(range(16))
PRESENT = [f"present {i}" for i in range(24)] + ["", "ü€😀"]
ABSENT = [f"absent {i}" for i in range(24)]
LATER = 1_800_000_000
"""When filters that fade are asked; it is after everything that went into them."""
NUMBERS = [0, 1, 5, 2**63, 2**64 - 1, -1, -(2**63)]

Growing = (
    SpectralBloomFilter
    | DynamicCountFilter
    | PartitionedSpectralBloomFilter
    | PartitionedDynamicCountFilter
)
Filter = (
    BloomFilter
    | ScalableBloomFilter
    | CountingBloomFilter
    | Growing
    | TimeDecayingBloomFilter
    | HotList
    | UrlFilter
)


def _fill(made: Any) -> Any:
    made.add_many(PRESENT)
    made.add_many(NUMBERS)
    return made


def spell(made: Any, key: str | int) -> str | int:
    """The key as the structure takes it; to one of URLs it is a URL, of two to six segments."""
    if not isinstance(made, UrlFilter):
        return key
    length = len(str(key))
    return f"HTTP://host{length % 3}.example{'/dir' * (length % 5)}/{quote(str(key))}"


def _fill_urls(made: UrlFilter) -> UrlFilter:
    made.add_many([str(spell(made, key)) for key in PRESENT])
    made.add_many([str(spell(made, number)) for number in NUMBERS])
    return made


def _fill_counting(made: CountingBloomFilter) -> CountingBloomFilter:
    _fill(made)
    for times, key in enumerate(PRESENT[:20], start=1):
        made.add(key, times)
    return made


def _fill_growing(made: Any) -> Any:
    """Counts of every size up to 2^45; a few keys are taken out again where that is allowed."""
    _fill(made)
    made.add_many(PRESENT[:20], [3**power for power in range(20)])
    made.add(PRESENT[0], 2**45)
    if made.policy != "conservative":
        made.remove_many(PRESENT[1:6])
    return made


def _stick(made: Any) -> Any:
    """Counters that ran past 64 bits."""
    _fill_growing(made)
    made.add(PRESENT[3], 2**63)
    made.add(PRESENT[3], 2**63)
    return made


def _crowd(made: Any) -> Any:
    """Other keys that are all taken out again."""
    others = [f"other {i}" for i in range(60)]
    made.add_many(others)
    _fill_growing(made)
    made.remove_many(others)
    return made


def _fill_hot(made: HotList) -> HotList:
    """Events of a day, some late, one of them a thousand half-lives before the others."""
    made.add(PRESENT[0], at=1_700_000_000)
    made.add_many(PRESENT, list(range(1, 27)), [1_700_600_000 + 3600 * i for i in range(26)])
    made.add_many([key.encode() for key in PRESENT[:3]], at=1_700_600_123.25)
    made.add_many(NUMBERS, [100] * 7, at=1_700_690_000.5)
    return made


def _fill_fading(made: Any) -> Any:
    """Events of several epochs, late ones among them, and one that fills its cells."""
    for number, key in enumerate([*PRESENT, *NUMBERS]):
        made.add(key, at=1_500_000_000 + number * 7_000_000)
    made.add_many(PRESENT[:20], [3**power for power in range(20)], at=1_750_000_000)
    made.add_many(PRESENT[5:15], at=[1_000_000_000 + row * 50_000_000 for row in range(10)])
    return made


FADE: dict[str, Any] = {"decay": 0.75, "epoch": 10_000_000, "max_jump": inf}
SIZES: dict[str, Any] = {"bits": 2048, "hashes": 5}

MAKERS: dict[str, Callable[[], Filter]] = {
    "bloom-empty": lambda: BloomFilter(10, 0.01),
    "bloom-blocked": lambda: _fill(BloomFilter(100, 0.01, layout="blocked")),
    "bloom-blocked-few-hashes": lambda: _fill(BloomFilter(100, 0.1, layout="blocked")),
    "bloom-blocked-keyed": lambda: _fill(BloomFilter(100, 0.01, hash="keyed", secret=SECRET)),
    "bloom-classic": lambda: _fill(BloomFilter(100, 1e-5)),
    "bloom-classic-odd": lambda: _fill(BloomFilter(bits=1021, hashes=3, seed=2**64 - 1)),
    "bloom-classic-double": lambda: _fill(BloomFilter(**SIZES, paper={"derivation": "double"})),
    "bloom-classic-slices": lambda: _fill(BloomFilter(**SIZES, paper={"derivation": "slices"})),
    "bloom-classic-keyed": lambda: _fill(BloomFilter(**SIZES, hash="keyed", secret=SECRET)),
    "scalable": lambda: _fill(ScalableBloomFilter(8, 0.05, growth=2.0)),
    "scalable-keyed": lambda: _fill(
        ScalableBloomFilter(
            10,
            0.02,
            growth=3.0,
            tightening=0.75,
            paper={"derivation": "double"},
            hash="keyed",
            secret=SECRET,
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
        CountingBloomFilter(cells=256, hashes=3, counter_bits=32, paper={"derivation": "slices"})
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
            cells=875,
            hashes=8,
            counter_bits=8,
            policy="conservative",
            layout="blocked",
            hash="keyed",
            secret=SECRET,
        )
    ),
    "sbf-empty": lambda: SpectralBloomFilter(10, 0.01),
    "sbf-blocked": lambda: _fill_growing(SpectralBloomFilter(60, 0.02)),
    "sbf-classic-conservative": lambda: _fill_growing(
        SpectralBloomFilter(60, 0.02, policy="conservative", layout="classic", slack=0.5, seed=7)
    ),
    "sbf-classic-keyed": lambda: _crowd(
        SpectralBloomFilter(40, 0.1, layout="classic", hash="keyed", secret=SECRET)
    ),
    "psbf-blocked": lambda: _fill_growing(
        PartitionedSpectralBloomFilter(60, 0.02, total=900, partitions=3)
    ),
    "psbf-slices": lambda: _crowd(
        PartitionedSpectralBloomFilter(cells=256, hashes=5, paper={"derivation": "slices"})
    ),
    "dcf-empty": lambda: DynamicCountFilter(10, 0.01),
    "dcf-blocked": lambda: _fill_growing(DynamicCountFilter(60, 0.02)),
    "dcf-classic-odd": lambda: _fill_growing(
        DynamicCountFilter(cells=331, hashes=3, counter_bits=2, shrink=1.0, seed=2**64 - 1)
    ),
    "dcf-stuck": lambda: _stick(DynamicCountFilter(60, 0.02, policy="conservative")),
    "pdcf-blocked": lambda: _fill_growing(PartitionedDynamicCountFilter(60, 0.02, partitions=5)),
    "pdcf-classic": lambda: _fill_growing(
        PartitionedDynamicCountFilter(
            60, 0.05, hashes=3, total=5000, partitions=17, layout="classic"
        )
    ),
    "tbf-empty": lambda: TimeDecayingBloomFilter(10, 0.01, half_life="1h"),
    "tbf-basic-blocked": lambda: _fill_fading(
        TimeDecayingBloomFilter(60, 0.02, half_life="400d", epoch="100d")
    ),
    "tbf-basic-classic-16": lambda: _fill_fading(
        TimeDecayingBloomFilter(cells=400, hashes=5, counter_bits=16, fraction_bits=4, **FADE)
    ),
    "tbf-basic-conservative": lambda: _fill_fading(
        TimeDecayingBloomFilter(
            60,
            0.02,
            policy="conservative",
            rounding="expiring",
            hash="keyed",
            secret=SECRET,
            origin=12_345,
            **FADE,
        )
    ),
    "tbf-optimized-blocked": lambda: _fill_fading(
        TimeDecayingBloomFilter(60, 0.02, storage="optimized", **FADE)
    ),
    "tbf-aside": lambda: _fill_fading(
        TimeDecayingBloomFilter(60, 0.02, half_life="90d", storage="optimized")
    ),
    "tbf-optimized-classic": lambda: _fill_fading(
        TimeDecayingBloomFilter(cells=400, hashes=5, storage="optimized", **FADE)
    ),
    "pdcf-keyed": lambda: _fill_growing(
        PartitionedDynamicCountFilter(
            60,
            0.02,
            partitions=503,
            shrink=0.25,
            paper={"derivation": "double"},
            hash="keyed",
            secret=SECRET,
        )
    ),
    "url-empty": lambda: UrlFilter(10, 0.01),
    "url": lambda: _fill_urls(UrlFilter(40, 0.02)),
    "url-ordered-keyed": lambda: _fill_urls(
        UrlFilter(
            40, 1e-5, 4, paper={"bind": "ordered"}, layer_sizes=[3, 20], hash="keyed", secret=SECRET
        )
    ),
    "url-xor": lambda: _fill_urls(UrlFilter(40, 0.02, 3, paper={"bind": "xor"}, seed=7)),
    "hot-empty": lambda: HotList(10, half_life=60),
    "hot": lambda: _fill_hot(HotList(40)),
    "hot-decaying": lambda: _fill_hot(HotList(40, half_life="10m", max_jump=inf, seed=7)),
    "hot-full-keyed": lambda: _fill_hot(
        HotList(20, half_life=86_400, max_jump=inf, hash="keyed", secret=SECRET)
    ),
    "hot-steps-aside": lambda: _fill_hot(HotList(40, half_life="10m", epoch="1m", origin=7)),
}


HISTORY = Path(__file__).parent / "history"
PARTIALS = Path(__file__).parent / "partial"


def make_segment() -> tuple[bytes, dict[str, list[int]]]:
    """A thousand events, in every third of 30 rows, and what the segment says of 60 keys."""
    numbers = [(event * event * 7 + event) % 971 for event in range(1000)]
    buffer = HistoryBuffer(window=60, rows=30, seed=5, names=0)
    for number in numbers:
        key = f"/page/{int(971 / (number + 1)) % 50}"
        buffer.add(key, 1, 1_699_999_200 + number % 10 * 180)
    data = buffer.seal(1_699_999_200 // 1800, error_rate=0.05).segment
    segment = HistorySegment.from_bytes(data)
    keys = [f"/page/{number}" for number in range(60)]
    return data, {key: segment.rows_of(key).tolist() for key in keys}


def make_partials() -> dict[str, bytes]:
    """One that holds keys, and one that holds a filter."""
    plan = BloomFilter.plan(1000, 0.01)
    return {
        "v1-keys": build_partition([["/a", "/b", "/c"]], plan),
        "v1-filter": build_partition([list(range(500))], plan),
    }


def path_of(name: str) -> Path:
    """Where the golden file of that name lies."""
    return FOLDER / f"{name}.bloom"


def answers_of(made: Filter) -> dict[str, Any]:
    """What a filter says about the listed keys."""
    every: list[str | int] = [*PRESENT, *ABSENT, *NUMBERS]
    if isinstance(made, TimeDecayingBloomFilter):
        counts = dict(zip(every, made.count_many(every, LATER).tolist(), strict=True))
        inside = {key for key, count in counts.items() if count > 0}
    else:
        counts = {}
        inside = {key for key in every if spell(made, key) in made}  # type: ignore[operator]
    said: dict[str, Any] = {
        "kind": type(made).__name__,
        "present": [key for key in PRESENT + ABSENT if key in inside],
        "absent": [key for key in PRESENT + ABSENT if key not in inside],
        "numbers": [str(number) for number in NUMBERS if number in inside],
    }
    if counts:
        said["counts"] = {key: counts[key] for key in PRESENT + ABSENT}
    if isinstance(made, CountingBloomFilter | CountFilter):
        said["counts"] = {key: made.count(key) for key in PRESENT + ABSENT}
    if isinstance(made, HotList):
        now = 1_700_700_000
        said["counts"] = {key: made.count(key, at=now) for key in PRESENT + ABSENT}
        said["top"] = [repr(item.key) for item in made.top(at=now)]
        said["total"] = made.total(at=now)
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
    if not (HISTORY / "v1.segment").exists():
        HISTORY.mkdir(exist_ok=True)
        data, answers = make_segment()
        (HISTORY / "v1.segment").write_bytes(data)
        lines = (f" {json.dumps(key)}: {json.dumps(rows)}" for key, rows in answers.items())
        (HISTORY / "v1.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
    PARTIALS.mkdir(exist_ok=True)
    for name, data in make_partials().items():
        path = PARTIALS / f"{name}.partial"
        if not path.exists():
            path.write_bytes(data)


if __name__ == "__main__":
    main()
