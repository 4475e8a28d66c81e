"""The scalable Bloom filter: a stack of Bloom filters that grows when its newest layer is full.

Paper    P. S. Almeida, C. Baquero, N. Preguica, D. Hutchison, "Scalable Bloom Filters",
         Information Processing Letters 101(6), 2007.
Idea     Each layer is made for `growth` times the keys of the one before (the second for
         growth^2 times those of the first) and an error that shrinks by `tightening` from layer
         to layer, so that the sum over all layers converges:

             error_0 + error_0 r + error_0 r^2 + ... <= error_0 / (1 - r)

         With error_0 = error_rate (1 - r) the whole stack stays under `error_rate` for ever.
Differs  The paper calls a layer full at a fill of one half; here it is full when it took as many
         new keys as it was made for, which is the load its error was computed for. All
         layers but the first have one hash, so nearly all of their cells are empty, and the core
         stores the others as numbers.
Errors   No false negatives. A key that is a false positive of an older layer is not added again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from bloomtide.reference.bloom import ReferenceBloomFilter


class ReferenceScalableBloomFilter:
    """Layers from oldest to newest. `size_of(layer)` gives a layer's (bits, hashes)."""

    def __init__(
        self,
        positions: Callable[[Any, int], Sequence[int]],
        size_of: Callable[[int], tuple[int, int]],
        capacity: int,
        error_rate: float,
        *,
        growth: float = 8.0,
        tightening: float = 0.5,
    ) -> None:
        self.positions = positions
        self.size_of = size_of
        self.capacity = capacity
        self.error_rate = error_rate
        self.growth = growth
        self.tightening = tightening
        self.clear()

    def layer_capacity(self, layer: int) -> int:
        """New keys that a layer takes before the next one opens; s^i times the first in the paper.

        A later layer takes memory as keys come, so the second may be larger: growth^2 times.
        """
        return math.floor(self.capacity * self.growth ** (layer + (layer > 0)) + 0.5)

    def layer_error(self, layer: int) -> float:
        """A layer's own false-positive rate: P_0 r^i in the paper, with P_0 = P (1 - r)."""
        return self.error_rate * (1 - self.tightening) * self.tightening**layer

    def add(self, key: Any) -> bool:
        """Add to the newest layer, unless some layer has the key already."""
        if key in self:
            return False
        if self.taken == self.layer_capacity(len(self.layers) - 1):
            self.open_layer()
        self.layers[-1].add(key)
        self.taken += 1
        return True

    def add_many(self, keys: Iterable[Any]) -> list[bool]:
        """Add the keys in order."""
        return [self.add(key) for key in keys]

    def __contains__(self, key: Any) -> bool:
        """Present iff some layer says so."""
        return any(key in layer for layer in self.layers)

    def contains_many(self, keys: Iterable[Any]) -> list[bool]:
        """Ask for the keys in order."""
        return [key in self for key in keys]

    def clear(self) -> None:
        """Forget every key and every layer but the first."""
        self.layers: list[ReferenceBloomFilter] = []
        self.open_layer()

    def open_layer(self) -> None:
        """Put an empty layer on top of the stack."""
        layer = len(self.layers)
        bits, hashes = self.size_of(layer)
        self.layers.append(
            ReferenceBloomFilter(lambda key: self.positions(key, layer), bits, hashes)
        )
        self.taken = 0

    def false_positive_rate(self) -> float:
        """The chance that at least one layer is wrong about an absent key."""
        all_right = math.prod(1 - layer.false_positive_rate() for layer in self.layers)
        return 1 - all_right
