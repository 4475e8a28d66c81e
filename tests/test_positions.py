"""The core's positions against a plain-Python model that starts from the digest alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import pytest
import xxhash

import bloomtide
from bloomtide import BloomFilter, CountingBloomFilter, ScalableBloomFilter
from bloomtide.reference import positions as model

Derivation = Literal["enhanced", "double", "slices"]

KEYS: list[Any] = [
    "",
    *(f"key-{i}" for i in range(150)),
    *(bytes([i]) * i for i in range(40)),
    *(i * 0x9E3779B97F4A7C15 % 2**64 for i in range(40)),
    *range(-20, 0),
]
SECRET = bytes(range(16))

ANY_SIZE = [1, 2, 3, 5, 7, 63, 64, 65, 511, 512, 1000, 4096, 100_003, 2**20, 2**20 + 7]
POWERS = [2**b for b in range(22)]
HASHES = [1, 2, 3, 7, 20, 64]


def rehash(data: bytes, seed: int) -> int:
    """xxHash's own C code extends the digest for `slices`."""
    return xxhash.xxh3_128_intdigest(data, seed)


def derive(derivation: Derivation) -> Callable[[int, int, int], list[int]]:
    """(digest, m, k) -> positions."""
    if derivation == "slices":
        return lambda digest, m, k: model.slices(digest, m, k, rehash)
    return model.double if derivation == "double" else model.enhanced


CLASSIC: list[tuple[Derivation, int]] = [
    *(("enhanced", m) for m in ANY_SIZE),
    *(("double", m) for m in ANY_SIZE),
    *(("slices", m) for m in POWERS),
]


@pytest.mark.parametrize(("derivation", "bits"), CLASSIC)
def test_classic_positions_follow_the_model(derivation: Derivation, bits: int) -> None:
    expected = derive(derivation)
    for hashes in HASHES:
        core = BloomFilter(bits=bits, hashes=hashes, paper={"derivation": derivation}, seed=3)
        assert core.bits == bits
        for key in KEYS:
            digest = bloomtide.digest(key, seed=3)
            assert core.positions(key) == expected(digest, bits, hashes), key


@pytest.mark.parametrize("derivation", ["enhanced", "double", "slices"])
def test_keyed_positions_follow_the_model(derivation: Derivation) -> None:
    core = BloomFilter(
        bits=2**16, hashes=11, paper={"derivation": derivation}, hash="keyed", secret=SECRET
    )
    for key in KEYS:
        digest = bloomtide.digest(key, hash="keyed", secret=SECRET)
        assert core.positions(key) == derive(derivation)(digest, 2**16, 11), key


@pytest.mark.parametrize("hashes", range(1, 9))
@pytest.mark.parametrize("blocks", [1, 2, 3, 37, 1024, 10_007])
def test_blocked_positions_follow_the_model(blocks: int, hashes: int) -> None:
    bits = blocks * model.BLOCK_BITS
    core = BloomFilter(bits=bits, hashes=hashes, layout="blocked")
    assert (core.bits, core.hashes) == (bits, hashes)
    for key in KEYS:
        assert core.positions(key) == model.blocked(bloomtide.digest(key), bits, hashes), key


def test_a_planned_blocked_filter_follows_the_model() -> None:
    for error_rate in (0.5, 0.1, 0.05, 0.01, 1e-4):
        core = BloomFilter(20_000, error_rate)
        assert core.layout == "blocked"
        for key in KEYS:
            expected = model.blocked(bloomtide.digest(key), core.bits, core.hashes)
            assert core.positions(key) == expected, (error_rate, key)


@pytest.mark.parametrize(("derivation", "cells"), CLASSIC)
def test_counting_positions_are_the_distinct_ones_of_the_model(
    derivation: Derivation, cells: int
) -> None:
    expected = derive(derivation)
    core = CountingBloomFilter(
        cells=cells, hashes=9, counter_bits=8, paper={"derivation": derivation}
    )
    for key in KEYS:
        positions = expected(bloomtide.digest(key), cells, 9)
        assert core.positions(key) == list(dict.fromkeys(positions)), key


@pytest.mark.parametrize("hashes", [1, 2, 4, 8])
@pytest.mark.parametrize("blocks", [1, 2, 3, 37, 1024, 10_007])
def test_blocked_counters_follow_the_model(blocks: int, hashes: int) -> None:
    cells = blocks * model.BLOCK_COUNTERS
    core = CountingBloomFilter(cells=cells, hashes=hashes, layout="blocked", seed=3)
    assert (core.stats().cells, core.hashes) == (cells, hashes)
    for key in KEYS:
        digest = bloomtide.digest(key, seed=3)
        assert core.positions(key) == model.counter_blocked(digest, cells, hashes), key


def test_a_planned_filter_of_blocked_counters_follows_the_model() -> None:
    chosen = set()
    for error_rate in (0.5, 0.2, 0.05, 0.01, 0.005):
        core = CountingBloomFilter(20_000, error_rate, hash="keyed", secret=SECRET)
        cells = core.stats().cells
        assert core.layout == "blocked"
        chosen.add(core.hashes)
        for key in KEYS:
            digest = bloomtide.digest(key, hash="keyed", secret=SECRET)
            expected = model.counter_blocked(digest, cells, core.hashes)
            assert core.positions(key) == expected, (error_rate, key)
    assert len(chosen) >= 3, "the rates must ask for different numbers of groups"


def test_a_planned_filter_of_classic_counters_follows_the_model() -> None:
    for error_rate, layout in ((0.0049, None), (1e-4, None), (0.05, "classic")):
        core = CountingBloomFilter(20_000, error_rate, layout=layout)  # type: ignore[arg-type]
        cells = core.stats().cells
        assert core.layout == "classic"
        for key in KEYS:
            positions = model.enhanced(bloomtide.digest(key), cells, core.hashes)
            assert core.positions(key) == list(dict.fromkeys(positions)), (error_rate, key)


@pytest.mark.parametrize("derivation", ["enhanced", "double", "slices"])
def test_every_layer_of_a_scalable_filter_derives_from_the_same_digest(
    derivation: Derivation,
) -> None:
    core = ScalableBloomFilter(40, 0.001, growth=2.0, paper={"derivation": derivation})
    core.add_many([f"fill-{i}" for i in range(1500)])
    first, *later = core.stats().layers
    assert len(later) > 3
    for key in KEYS:
        digest = bloomtide.digest(key)
        h1, _ = model.halves(digest)
        derived = derive(derivation) if derivation == "slices" else model.blocked
        expected = [derived(digest, first.cells, first.hashes)]
        # A later layer has one cell for a key.
        expected += [[model.reduce(h1, layer.cells)] for layer in later]
        assert core.positions(key) == expected, key


BEYOND_32_BITS: list[tuple[Derivation, int]] = [
    ("enhanced", 2**33),
    ("enhanced", 2**33 + 12_345),
    ("double", 2**33),
    ("double", 2**33 + 12_345),
    ("slices", 2**33),
]


@pytest.mark.parametrize(("derivation", "bits"), BEYOND_32_BITS)
def test_classic_positions_go_beyond_32_bits(derivation: Derivation, bits: int) -> None:
    # One GiB of address space, of which the memory is never touched.
    core = BloomFilter(bits=bits, hashes=8, paper={"derivation": derivation})
    found = [core.positions(key) for key in KEYS]
    assert found == [derive(derivation)(bloomtide.digest(key), bits, 8) for key in KEYS]
    assert max(position for positions in found for position in positions) > 2**32


def test_blocked_positions_go_beyond_32_bits() -> None:
    core = BloomFilter(900_000_000, 0.01)
    assert core.bits > 2**33
    found = [core.positions(key) for key in KEYS]
    assert found == [model.blocked(bloomtide.digest(k), core.bits, core.hashes) for k in KEYS]
    assert max(position for positions in found for position in positions) > 2**33


def test_blocked_counters_go_beyond_32_bits() -> None:
    # Three GiB of address space, of which the memory is never touched.
    cells = 3 * 2**31 + 5 * model.BLOCK_COUNTERS
    core = CountingBloomFilter(cells=cells, hashes=4, layout="blocked")
    assert core.stats().cells == cells
    found = [core.positions(key) for key in KEYS]
    assert found == [model.counter_blocked(bloomtide.digest(key), cells, 4) for key in KEYS]
    assert max(position for positions in found for position in positions) > 2**32


def test_keys_beyond_32_bits_are_found_again() -> None:
    # Touches one page per position only.
    core = BloomFilter(bits=2**33 + 12_345, hashes=4)
    assert core.add_many(KEYS[:30]).all()
    assert core.contains_many(KEYS[:30]).all()
    assert not core.contains_many(KEYS[30:60]).any()
