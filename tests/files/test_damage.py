"""Damage never becomes an answer: every cut and flipped bit of every golden file is refused."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import bloomtide
from bloomtide import BloomFilter
from bloomtide.errors import ChecksumError, SnapshotError, TruncatedError
from tests.golden.make_golden import FOLDER

FILES = sorted(FOLDER.glob("*.bloom"))


def _refused(data: bytes | bytearray) -> bool:
    try:
        bloomtide.from_bytes(data)
    except SnapshotError as error:
        return bool(error.hint)
    return False


@pytest.fixture(params=FILES, ids=lambda path: str(path.stem))
def stored(request: pytest.FixtureRequest) -> bytes:
    path: Path = request.param
    return path.read_bytes()


def test_a_cut_at_every_byte_is_refused(stored: bytes) -> None:
    view = memoryview(stored)
    accepted = [length for length in range(len(stored)) if not _refused(bytes(view[:length]))]
    assert accepted == []


def test_every_flipped_bit_is_refused(stored: bytes) -> None:
    damaged = bytearray(stored)
    accepted = []
    for offset in range(len(stored)):
        for bit in range(8):
            damaged[offset] ^= 1 << bit
            if not _refused(damaged):
                accepted.append((offset, bit))
            damaged[offset] ^= 1 << bit
    assert accepted == []
    assert bloomtide.from_bytes(damaged).to_bytes() == stored, "undamaged again, it loads"


def test_anything_after_the_end_is_refused(stored: bytes) -> None:
    for tail in (b"\x00", b"\n", stored, bytes(4096)):
        with pytest.raises(TruncatedError) as caught:
            bloomtide.from_bytes(stored + tail)
        assert caught.value.expected == len(stored)
        assert caught.value.got == len(stored) + len(tail)


def test_lost_moved_and_repeated_stretches_are_refused(stored: bytes) -> None:
    """What disks and transfers do: zeroed, dropped, doubled and swapped runs of bytes."""
    rng = random.Random(20260102)
    for _ in range(300):
        first, second = sorted(rng.sample(range(len(stored) + 1), 2))
        run = stored[first:second]
        for damaged in (
            stored[:first] + bytes(len(run)) + stored[second:],
            stored[:first] + b"\xff" * len(run) + stored[second:],
            stored[:first] + stored[second:],
            stored[:second] + run + stored[second:],
            stored[second:] + stored[:second],
            stored[:first] + run[::-1] + stored[second:],
        ):
            assert damaged == stored or _refused(damaged), (first, second)


def test_a_bad_block_of_a_large_file_is_named() -> None:
    """Several checksums: the offset in the error is that of the block that was hit."""
    large = BloomFilter(300_000, 0.01)
    large.add_many(range(300_000))
    stored = bytearray(large.to_bytes())
    rng = random.Random(20260103)
    named = set()
    for _ in range(60):
        bit = rng.randrange(1024, (len(stored) - 64) * 8)
        stored[bit // 8] ^= 1 << bit % 8
        with pytest.raises(ChecksumError) as caught:
            bloomtide.from_bytes(stored)
        stored[bit // 8] ^= 1 << bit % 8
        offset = caught.value.offset
        assert offset is not None
        assert offset <= bit // 8 < offset + 65_536
        assert caught.value.expected != caught.value.got
        named.add(offset)
    assert len(named) > 3


def test_load_refuses_like_from_bytes_and_names_the_path(stored: bytes, tmp_path: Path) -> None:
    path = tmp_path / "cut.bloom"
    for length in (0, 1, 7, 8, len(stored) // 2, len(stored) - 1):
        path.write_bytes(stored[:length])
        with pytest.raises(SnapshotError) as caught:
            bloomtide.load(path)
        assert caught.value.path == str(path)
        assert str(path) in str(caught.value)
        assert path.read_bytes() == stored[:length]
