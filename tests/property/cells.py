"""The bits of a filter, read from its snapshot as `docs/formats/snapshot.md` lays it out.

An independent reader of a few lines: the core shows no single bit, and whatever it answers through
its own verbs could be wrong in the same way as what it stores.
"""

from __future__ import annotations

import math
import struct

from bloomtide import BloomFilter, ScalableBloomFilter


def sections(snapshot: bytes) -> list[bytes]:
    """The cells of each section: one for a Bloom filter and the first layer of a scalable one, one
    and those of what did not fit for each part of a later layer."""
    (header_length,) = struct.unpack_from("<I", snapshot, 12)
    parameters, count = struct.unpack_from("<II", snapshot, 36)
    lengths = struct.unpack_from(f"<{count}Q", snapshot, 64 + parameters)
    found, start = [], header_length
    for length in lengths:
        found.append(snapshot[start : start + length])
        start += length
    return found


def bits(section: bytes, count: int) -> list[bool]:
    """The first `count` bits, lowest bit of the first byte first; the padding must be zero."""
    every = int.from_bytes(section, "little")
    assert every >> count == 0, "a bit beyond the cells is set"
    return [digit == "1" for digit in reversed(f"{every:0{count}b}")]


def bloom_bits(core: BloomFilter) -> list[bool]:
    """Every bit of a Bloom filter."""
    (section,) = sections(core.to_bytes())
    return bits(section, core.bits)


def scalable_bits(core: ScalableBloomFilter) -> list[list[bool]]:
    """Every cell of every layer, oldest first. Layers of this size have one part."""
    snapshot = core.to_bytes()
    first, *later = core.stats().layers
    bottom, *stored = sections(snapshot)
    found = [bits(bottom, first.cells)]
    at = 64 + 64 + 48
    for layer in later:
        (links,) = struct.unpack_from("<Q", snapshot, at)
        items = struct.unpack_from(f"<{links}Q", snapshot, at + 8)
        at += 8 + 8 * links
        numbers: list[int] = []
        for count in items:
            numbers += _binned(stored.pop(0), count, layer.cells)
        assert len(set(numbers)) == len(numbers) == items[0]
        cells = [False] * layer.cells
        for cell in numbers:
            cells[cell] = True
        found.append(cells)
    assert not stored
    return found


def _binned(section: bytes, items: int, cells: int) -> list[int]:
    """The numbers in the bins of a part."""
    made_for = 64
    while made_for < items:
        made_for += made_for // 3
    width, slots, bins = _sizes(made_for, cells)
    assert len(section) == 64 * bins
    span = -(-cells // bins)
    numbers = []
    for first in range(bins):
        line = int.from_bytes(section[64 * first : 64 * first + 64], "little")
        data, heads = line & ((1 << 384) - 1), line >> 384
        inside = [at for at in range(128) if heads >> at & 1]
        assert len(inside) <= slots
        for place, at in enumerate(inside):
            quotient = at - place - 1
            remainder = data >> place * width & ((1 << width) - 1)
            numbers.append(first * span + (quotient << width | remainder))
        assert data >> len(inside) * width == 0
    assert numbers == sorted(numbers)
    return numbers


def _sizes(made_for: int, cells: int) -> tuple[int, int, int]:
    """Bits of a remainder, numbers of a bin, and how many bins there are."""
    for width in range(1, 48):
        slots = min(384 // width, 96)
        bins = -(-made_for // (slots - math.isqrt(slots) * 2 // 3 - 1))
        span = -(-cells // bins)
        if span <= (128 - slots) << width:
            return width, slots, bins
    raise AssertionError("no small filter has as many cells")
