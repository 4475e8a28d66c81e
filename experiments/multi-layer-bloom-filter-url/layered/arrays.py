"""The paper's two filters for any m, over whole lists of URLs at once.

The authors' m is no power of two, and they take the XOR of positions modulo m; `UrlFilter` does not
offer that, and the reference model takes minutes for a million URLs. So here they are with NumPy;
the tests compare them with the model cell by cell.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

import bloomtide
from layered.urls import LAYERS, Urls, cut

Words = npt.NDArray[np.uint64]
Cells = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]

ERROR_RATE = 0.05
NONE = -1


def paper_size(urls: int, error_rate: float = ERROR_RATE) -> tuple[int, int]:
    """(m, k) of the authors' repository: both rounded down."""
    bits = int(-urls * math.log(error_rate) / math.log(2) ** 2)
    return bits, int(bits / urls * math.log(2))


def best_hashes(bits: int, urls: int) -> int:
    """k = (m/n) ln 2, as many as the core has at most."""
    return min(64, max(1, round(bits / urls * math.log(2))))


@dataclass(frozen=True, slots=True)
class Numbered:
    """URLs as numbers: a digest for each, and a row with the numbers of its segments."""

    keys: Urls
    whole: Words
    rows: Numbers
    digests: Words
    """Of each segment, by its number."""

    @classmethod
    def of(cls, urls: Urls) -> Numbered:
        """Segments are numbered as they come; `NONE` fills a row."""
        numbers: dict[bytes, int] = {}
        rows = np.full((len(urls), LAYERS), NONE, dtype=np.int64)
        for row, url in zip(rows, urls, strict=True):
            parts = [numbers.setdefault(part, len(numbers)) for part in cut(url)]
            row[: len(parts)] = parts
        return cls(urls, _digests(urls), rows, _digests(list(numbers)))

    def take(self, chosen: Numbers) -> Numbered:
        """Some of them."""
        keys = [self.keys[number] for number in chosen.tolist()]
        return Numbered(keys, self.whole[chosen], self.rows[chosen], self.digests)

    def __len__(self) -> int:
        return len(self.whole)


def _digests(keys: Urls) -> Words:
    low = (1 << 64) - 1
    return np.fromiter((bloomtide.digest(key) & low for key in keys), np.uint64, len(keys))


def positions(digests: Words, bits: int, hashes: int) -> Numbers:
    """A row for each digest: independent functions, as murmur with the seeds 0, 1, ... is."""
    columns = [(_mix(digests, j) % np.uint64(bits)).astype(np.int64) for j in range(hashes)]
    return np.stack(columns, axis=1)


def _mix(words: Words, seed: int) -> Words:
    z = words + np.uint64((seed + 1) * 0x9E37_79B9_7F4A_7C15 % 2**64)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58_476D_1CE4_E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D0_49BB_1331_11EB)
    return z ^ (z >> np.uint64(31))


class Flat:
    """The paper's "classic Bloom filter": a URL is one key."""

    def __init__(self, bits: int, hashes: int) -> None:
        self.cells: Cells = np.zeros(bits, dtype=bool)
        self.hashes = hashes

    def add(self, urls: Numbered) -> None:
        """All of them."""
        self.cells[positions(urls.whole, len(self.cells), self.hashes)] = True

    def contains(self, urls: Numbered) -> Cells:
        """An answer for each."""
        places = positions(urls.whole, len(self.cells), self.hashes)
        found: Cells = np.all(self.cells[places], axis=1)
        return found


class Layered:
    """The paper's MLBF, algorithms 3 and 4; the XOR is taken modulo m as the authors do."""

    def __init__(self, bits: int, hashes: int) -> None:
        self.bits, self.hashes = bits, hashes
        self.layers: list[Cells] = []
        self.x: Cells = np.zeros(bits, dtype=bool)

    def add(self, urls: Numbered) -> None:
        """All of them."""
        places = positions(urls.digests, self.bits, self.hashes)
        bound = np.zeros((len(urls), self.hashes), dtype=np.int64)
        for depth, (there, column) in enumerate(_columns(urls)):
            if depth == len(self.layers):
                self.layers.append(np.zeros(self.bits, dtype=bool))
            self.layers[depth][places[column]] = True
            bound[there] ^= places[column]
        self.x[bound % self.bits] = True

    def contains(self, urls: Numbered) -> Cells:
        """An answer for each; deeper than every layer is absent."""
        places = positions(urls.digests, self.bits, self.hashes)
        bound = np.zeros((len(urls), self.hashes), dtype=np.int64)
        found: Cells = np.ones(len(urls), dtype=bool)
        for depth, (there, column) in enumerate(_columns(urls)):
            known = depth < len(self.layers)
            found[there] &= self.layers[depth][places[column]].all(axis=1) if known else False
            bound[there] ^= places[column]
        found &= self.x[bound % self.bits].all(axis=1)
        return found

    @property
    def total(self) -> int:
        """Bits of all layers and of X."""
        return self.bits * (len(self.layers) + 1)


def _columns(urls: Numbered) -> list[tuple[Cells, Numbers]]:
    """For each depth that some URL has: which have it, and their segments there."""
    there = urls.rows != NONE
    return [
        (there[:, depth], urls.rows[there[:, depth], depth])
        for depth in range(LAYERS)
        if there[:, depth].any()
    ]
