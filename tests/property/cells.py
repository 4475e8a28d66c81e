"""The bits of a filter, read from its snapshot as `docs/formats/snapshot.md` lays it out.

An independent reader of a few lines: the core shows no single bit, and whatever it answers through
its own verbs could be wrong in the same way as what it stores.
"""

from __future__ import annotations

import struct

from bloomtide import BloomFilter, ScalableBloomFilter


def sections(snapshot: bytes) -> list[bytes]:
    """The cells of each section: one for a Bloom filter, one per layer of a scalable one."""
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
    """Every bit of every layer, oldest first."""
    cells = [layer.cells for layer in core.stats().layers]
    stored = sections(core.to_bytes())
    return [bits(section, count) for section, count in zip(stored, cells, strict=True)]
