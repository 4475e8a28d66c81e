"""Bytes in the wrong place: blocks that change places, and parts of one file in another."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bloomtide
from bloomtide import (
    BloomFilter,
    CountingBloomFilter,
    DynamicCountFilter,
    HotFilter,
    HotList,
    RecentFilter,
    ScalableBloomFilter,
    SpectralBloomFilter,
    TimeDecayingBloomFilter,
    UrlFilter,
)
from bloomtide._core import Keyspace
from bloomtide.errors import ChecksumError
from tests.files.crafted import BLOCK, header_length, tail_length

NOW = 1_700_000_000.0


def _filled(made: Any, start: int, **words: Any) -> Any:
    made.add_many(range(start, start + 60_000), **words)
    return made


def _urls(start: int) -> Any:
    made = UrlFilter(60_000, 0.01, 2)
    made.add_many([f"http://a.example/{n}" for n in range(start, start + 60_000)])
    return made


def _hot(start: int) -> Any:
    made = HotList(9000)
    made.add_many([f"{n:8}" for n in range(start, start + 9000)], at=NOW)
    return made


MAKERS: dict[str, Callable[[int], Any]] = {
    "bloom": lambda start: _filled(BloomFilter(200_000, 0.01), start),
    "scalable": lambda start: _filled(ScalableBloomFilter(9000, 0.001), start),
    "counting": lambda start: _filled(CountingBloomFilter(60_000, 0.01), start),
    "dcf": lambda start: _filled(DynamicCountFilter(60_000, 0.01), start),
    "sbf": lambda start: _filled(SpectralBloomFilter(60_000, 0.01), start),
    "tbf": lambda start: _filled(
        TimeDecayingBloomFilter(60_000, 0.01, half_life="1h"), start, at=NOW
    ),
    "hot": _hot,
    "url": _urls,
}


def _blocks(data: bytes) -> list[tuple[slice, slice]]:
    """Every block and its entry, by the section table."""
    parameters, sections = (int.from_bytes(data[at : at + 4], "little") for at in (36, 40))
    sizes = [int.from_bytes(data[64 + parameters + 8 * i :][:8], "little") for i in range(sections)]
    at = header_length(data)
    entry = len(data) - tail_length(sizes)
    found = []
    for size in sizes:
        for begin in range(at, at + size, BLOCK):
            end = min(begin + BLOCK, at + size)
            found.append((slice(begin, end), slice(entry, entry + 4)))
            entry += 4
        at += size
    return found


@pytest.mark.parametrize("kind", MAKERS)
def test_two_blocks_that_change_places_with_their_checksums_are_refused(kind: str) -> None:
    data = MAKERS[kind](0).to_bytes()
    blocks = _blocks(data)
    pairs = [
        (one, other)
        for i, one in enumerate(blocks)
        for other in blocks[i + 1 :]
        if one[0].stop - one[0].start == other[0].stop - other[0].start
        and data[one[0]] != data[other[0]]
    ]
    assert pairs, "the file has blocks that differ"
    for one, other in pairs:
        swapped = bytearray(data)
        for a, b in zip(one, other, strict=True):
            swapped[a], swapped[b] = data[b], data[a]
        with pytest.raises(ChecksumError):
            bloomtide.from_bytes(swapped)


@pytest.mark.parametrize("kind", MAKERS)
def test_a_block_of_a_filter_with_the_same_parameters_is_refused(kind: str) -> None:
    """Two filters of the same parameters have the same header."""
    data, sibling = (MAKERS[kind](start).to_bytes() for start in (0, 1_000_000))
    if kind in {"bloom", "counting"}:
        assert data[: header_length(data)] == sibling[: header_length(sibling)]
    tried = 0
    for (block, entry), (theirs, checksum) in zip(_blocks(data), _blocks(sibling), strict=False):
        if theirs.stop - theirs.start != block.stop - block.start:
            continue  # other sizes, which their headers tell
        mixed = bytearray(data)
        mixed[block], mixed[entry] = sibling[theirs], sibling[checksum]
        if mixed != data:
            tried += 1
            with pytest.raises(ChecksumError):
                bloomtide.from_bytes(mixed)
    assert tried


def test_half_of_one_file_and_half_of_another_are_refused() -> None:
    data, sibling = (MAKERS["bloom"](start).to_bytes() for start in (0, 1_000_000))
    blocks = _blocks(data)
    for kept in range(1, len(blocks)):
        mixed = bytearray(sibling)
        for block, entry in blocks[:kept]:
            mixed[block], mixed[entry] = data[block], data[entry]
        with pytest.raises(ChecksumError):
            bloomtide.from_bytes(mixed)


# --- Snapshots inside other files ---------------------------------------------------------------


def _hot_filter(key: str) -> bytes:
    both: HotFilter = TimeDecayingBloomFilter(100, 0.01, half_life="1h").with_hot_list(3)
    both.add(key, 2, NOW)
    return both.to_bytes()


def _recent(key: str) -> bytes:
    made = RecentFilter(100, 0.01, within="1h", clock=lambda: NOW)
    made.add(key)
    return made.to_bytes()


def _keyspace(folder: Path, key: bytes) -> bytes:
    keyspace = Keyspace()
    words = b"BF.RESERVE a 0.01 100 NONSCALING\r\nBF.ADD a %b\r\n" % key
    assert b"-" not in keyspace.session().execute(words, NOW)
    keyspace.save(folder / "keyspace")
    return (folder / "keyspace").read_bytes()


def _inner(data: bytes) -> slice:
    """The snapshot inside, from its magic to its end."""
    begin = data.index(b"BLOOMTID", 8)
    length = int.from_bytes(data[begin + 16 : begin + 24], "little")
    return slice(begin, begin + length)


def test_a_snapshot_from_a_file_of_the_same_kind_is_refused(tmp_path: Path) -> None:
    """Each is sound, has the same header, and ends with its own checksum."""
    (tmp_path / "mixed").mkdir()

    def load(data: bytes) -> None:
        (tmp_path / "mixed" / "keyspace").write_bytes(data)
        Keyspace().load(tmp_path / "mixed" / "keyspace")

    cases: list[tuple[bytes, bytes, Callable[[bytes], object]]] = [
        (_hot_filter("a"), _hot_filter("b"), HotFilter.from_bytes),
        (_recent("a"), _recent("b"), RecentFilter.from_bytes),
        (_keyspace(tmp_path, b"a"), _keyspace(tmp_path, b"b"), load),
    ]
    for one, other, read in cases:
        read(one)
        read(other)
        assert len(one) == len(other)
        assert one[_inner(one)] != other[_inner(other)]
        mixed = bytearray(one)
        mixed[_inner(one)] = other[_inner(other)]
        with pytest.raises(ChecksumError):
            read(bytes(mixed))
