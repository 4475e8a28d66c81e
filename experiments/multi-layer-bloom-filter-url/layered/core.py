"""The filters of the package, all at one number of URLs and one error rate."""

from __future__ import annotations

from typing import Any, Literal

from bloomtide import BloomFilter, UrlFilter
from layered.arrays import Cells, Numbered, best_hashes
from layered.urls import LAYERS

Bind = Literal["xor", "salted_xor", "ordered"]


def url_filter(bind: Bind, urls: int, error_rate: float) -> UrlFilter:
    """Every layer is made for all URLs, as the paper has it."""
    return UrlFilter(urls, error_rate, max_layers=LAYERS, paper={"bind": bind})


def flat_filter(bits: int, urls: int) -> BloomFilter:
    """A flat filter of so many bits, with the number of positions that is best for them."""
    return BloomFilter(bits=bits, hashes=best_hashes(bits, urls), layout="classic")


class CoreFlat:
    """`BloomFilter`, asked as the one of `arrays` is."""

    def __init__(self, bits: int, hashes: int) -> None:
        self.filter: Any = BloomFilter(bits=bits, hashes=hashes, layout="classic")

    def add(self, urls: Numbered) -> None:
        """All of them."""
        self.filter.add_many(urls.keys)

    def contains(self, urls: Numbered) -> Cells:
        """An answer for each."""
        answers: Cells = self.filter.contains_many(urls.keys)
        return answers


class CoreLayered(CoreFlat):
    """The paper's `UrlFilter`, likewise: every layer and X have the power of two that fits."""

    def __init__(self, urls: int, error_rate: float) -> None:
        self.filter = url_filter("xor", urls, error_rate)
        empty = self.filter.stats()
        self.bits, self.hashes = empty.bytes * 8, empty.hashes

    @property
    def total(self) -> int:
        """Bits of all layers and of X."""
        return int(self.filter.stats().bytes * 8)
