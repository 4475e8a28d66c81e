"""The bits of a filter, read from its snapshot as `docs/formats/snapshot.md` lays it out.

An independent reader of a few lines: the core shows no single bit, and whatever it answers through
its own verbs could be wrong in the same way as what it stores.
"""

from __future__ import annotations

import math
import struct

from bloomtide import BloomFilter, ScalableBloomFilter

# What scatters the numbers that did not fit.
SCATTER = 0x9E37_79B9_7F4A_7C15


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
        assert layer.capacity
        assert layer.error_rate
        first_bins, width = _cut(layer.capacity / layer.error_rate)
        assert 64 * first_bins << width == layer.cells
        numbers, scatter = [], 1
        for link, count in enumerate(items):
            if link:
                scatter *= SCATTER
                first_bins, width = 1, ((first_bins << width) - 1).bit_length()
            below = 64 * first_bins << width
            back = pow(scatter, -1, below) if link else 1
            binned = _binned(stored.pop(0), count, first_bins, width)
            numbers += [number * back % below for number in binned]
        assert len(set(numbers)) == len(numbers) == items[0]
        cells = [False] * layer.cells
        for cell in numbers:
            cells[cell] = True
        found.append(cells)
    assert not stored
    return found


def _cut(cells: float) -> tuple[int, int]:
    """How many bins a part of so many cells has at first, and bits of a remainder in them."""
    bins, width = cells * 0.721 / 64, 0
    while bins >= 32:
        bins, width = bins / 2, width + 1
    return math.ceil(bins * (1 + 0.5 * (2 + 0.5) / 3)), width


def _binned(section: bytes, items: int, bins: int, width: int) -> list[int]:
    """The numbers in the bins of a part."""
    level = 0
    while items > 64 * bins << level and level < width:
        level += 1
    planes = width - level
    words = struct.unpack(f"<{len(section) // 8}Q", section)
    used = (2 + planes) * bins << level
    assert len(words) == -(-used // 8) * 8
    assert not any(words[used:])
    numbers = []
    for index in range(bins << level):
        low, high, *plane = words[index * (2 + planes) : (index + 1) * (2 + planes)]
        inside = [at for at in range(128) if (low | high << 64) >> at & 1]
        assert len(inside) <= 64
        first, path = divmod(index, 1 << level)
        for slot, at in enumerate(inside):
            remainder = sum((bits >> slot & 1) << j for j, bits in enumerate(plane))
            quotient = at - slot - 1
            numbers.append((64 * first + quotient) << width | path << planes | remainder)
        assert not any(bits >> len(inside) for bits in plane)
    return numbers
