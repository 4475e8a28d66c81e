"""Digests and positions are uniform: every bit, every probe, every pair of probes."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from bloomtide import BloomFilter, digest
from tests.statistical.binomial import ALPHA, check

KEYS = 40_000
PARTS = 32
SECRET = bytes(range(100, 116))

Table = npt.NDArray[np.int64]


def _check_digests(digests: list[int]) -> None:
    """Each of the 128 bits is one half of the time."""
    for bit in range(128):
        ones = sum(value >> bit & 1 for value in digests)
        check(ones, len(digests), 0.5, f"digest bit {bit}", ALPHA / 128)


def _check_uniform(table: Table, cells: int) -> None:
    """Each probe (a column) hits each of PARTS equal ranges of the cells equally often."""
    parts = table * PARTS // cells
    for probe in range(table.shape[1]):
        for part, hits in enumerate(np.bincount(parts[:, probe], minlength=PARTS)):
            what = f"probe {probe} in part {part}"
            check(int(hits), len(table), 1 / PARTS, what, ALPHA / parts.shape[1] / PARTS)


def _check_pairs(table: Table, cells: int) -> None:
    """Two probes of one key fall into the same half of the cells half of the time."""
    halves = table * 2 // cells
    pairs = list(combinations(range(table.shape[1]), 2))
    for first, second in pairs:
        same = int((halves[:, first] == halves[:, second]).sum())
        what = f"probes {first} and {second} in one half"
        check(same, len(table), 0.5, what, ALPHA / len(pairs))


def _positions(made: BloomFilter, first: int = 0) -> Table:
    return np.array([made.positions(key) for key in range(first, first + KEYS)])


@pytest.mark.parametrize("options", [{}, {"seed": 99}, {"hash": "keyed", "secret": SECRET}])
@pytest.mark.parametrize("form", [int, str], ids=["int", "str"])
def test_every_digest_bit_is_fair(options: dict[str, Any], form: Any) -> None:
    _check_digests([digest(form(key), **options) for key in range(KEYS)])


def test_broken_one_biased_digest_bit_fails() -> None:
    fair = [digest(key) for key in range(KEYS)]
    biased = [value | (1 << 77) if key % 10 == 0 else value for key, value in enumerate(fair)]
    with pytest.raises(AssertionError, match="digest bit 77"):
        _check_digests(biased)


@pytest.mark.parametrize("derivation", ["enhanced", "double", "slices"])
def test_classic_probes_are_uniform_and_pairwise_independent(derivation: Any) -> None:
    made = BloomFilter(bits=1 << 20, hashes=7, paper={"derivation": derivation})
    table = _positions(made)
    _check_uniform(table, made.bits)
    _check_pairs(table, made.bits)


@pytest.mark.parametrize("derivation", ["enhanced", "double"])
def test_classic_probes_are_uniform_over_an_odd_number_of_cells(derivation: Any) -> None:
    made = BloomFilter(bits=1_000_003, hashes=5, paper={"derivation": derivation})
    _check_uniform(_positions(made), made.bits)


@pytest.mark.parametrize("hashes", [3, 8])
def test_blocked_probes_are_uniform_over_blocks_words_and_bits(hashes: int) -> None:
    made = BloomFilter(layout="blocked", bits=512 * 1024, hashes=hashes)
    table = _positions(made)
    assert ((table // 512) == (table[:, :1] // 512)).all(), "one block per key"
    words = table % 512 // 64
    assert all(len(set(row)) == hashes for row in words.tolist()), "one bit in each word used"
    _check_uniform(table[:, :1] // 512, 1024)
    _check_uniform(table % 64, 64)
    _check_pairs(table % 64, 64)
    for word in range(8):
        used = int((words == word).any(axis=1).sum())
        check(used, KEYS, hashes / 8, f"word {word} used")


def test_broken_one_biased_probe_fails() -> None:
    made = BloomFilter(bits=1 << 20, hashes=7)
    table = _positions(made)
    table[::4, 3] |= 1 << 19
    with pytest.raises(AssertionError, match="probe 3 in part"):
        _check_uniform(table, made.bits)


def test_broken_repeated_probe_fails() -> None:
    made = BloomFilter(bits=1 << 20, hashes=7)
    table = _positions(made)
    table[:, 6] = table[:, 2]
    with pytest.raises(AssertionError, match="probes 2 and 6"):
        _check_pairs(table, made.bits)
