"""Absent URLs of every kind: whether layers help depends on what of a URL was seen before.

Paper    Its formula multiplies the errors of L layers, as if every segment of an absent
         URL were new.
Here     One list of URLs that are in no list, for each of: all segments new, another half of the
         same list, segments that were seen but not together, a new page of a known site, a
         directory, two segments exchanged, a pair of equal segments at the end.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from itertools import count as numbers
from itertools import pairwise

import numpy as np

from layered.urls import LAYERS, Urls, cut, joined

Parts = list[bytes]
TRIES = 4


class Asked:
    """Makes URLs that are absent from `known`, out of the segments of `added`."""

    def __init__(self, added: Urls, known: set[bytes], seed: int) -> None:
        self.added = added
        self.known = known
        self.random = np.random.default_rng(seed)
        self.numbers = numbers()
        self.at: list[set[bytes]] = [set() for _ in range(LAYERS)]
        self.of_depth: dict[int, list[Parts]] = defaultdict(list)
        for url in added:
            parts = cut(url)
            self.of_depth[len(parts)].append(parts)
            for layer, part in zip(self.at, parts, strict=False):
                layer.add(part)
        self.twice = [sorted(filter(_plain, here & below)) for here, below in pairwise(self.at)]

    def some(self, way: Callable[[Parts], Parts | None], count: int) -> Urls:
        """Up to `count` different ones, as far as a few tries for each find them."""
        found: dict[bytes, None] = {}
        for number in self.random.integers(len(self.added), size=TRIES * count).tolist():
            parts = way(cut(self.added[number]))
            if parts and (url := joined(parts)) not in self.known:
                found.setdefault(url)
                if len(found) == count:
                    break
        return list(found)

    def never(self) -> bytes:
        """A segment that no list has."""
        return b"never-seen-%x" % next(self.numbers)

    def new(self, parts: Parts) -> Parts:
        """No segment was seen at any depth."""
        return [self.never() for _ in parts]

    def recombined(self, parts: Parts) -> Parts:
        """Each segment was seen at its depth, in a URL of the same depth, all in different ones."""
        others = self.of_depth[len(parts)]
        chosen = self.random.integers(len(others), size=len(parts)).tolist()
        return [others[number][depth] for depth, number in enumerate(chosen)]

    def new_leaf(self, parts: Parts) -> Parts:
        """A page that is new, where others were seen."""
        return [*parts[:-1], self.never()]

    def directory(self, parts: Parts) -> Parts | None:
        """A directory of a URL that was added: every layer knows it."""
        return parts[:-1] if len(parts) > 2 else None

    def swapped(self, parts: Parts) -> Parts | None:
        """The first two parts of the path exchanged."""
        if len(parts) < 3 or not all(map(_plain, parts[1:3])) or parts[1] == parts[2]:
            return None
        return [parts[0], parts[2], parts[1], *parts[3:]]

    def swapped_known(self, parts: Parts) -> Parts | None:
        """The same, if both were seen at both depths: no layer can object."""
        found = self.swapped(parts)
        return found if found and found[1] in self.at[1] and found[2] in self.at[2] else None

    def pair(self, parts: Parts) -> Parts | None:
        """x/a/a, for a URL x and an a that was seen at both of these depths."""
        depth = len(parts)
        if depth + 2 >= LAYERS or not all(map(_plain, parts)):
            return None
        twice = self.twice[depth]
        return [*parts, *[twice[self.random.integers(len(twice))]] * 2] if twice else None


def _plain(segment: bytes) -> bool:
    """Can stand anywhere in a path."""
    return segment != b"" and not {*segment} & {*b"?/"}


def absent_urls(added: Urls, others: Urls, count: int) -> dict[str, Urls]:
    """Of every kind up to `count`; `others` are absent ones of the same list."""
    asked = Asked(added, {*added, *others}, seed=10)
    ways = {
        "all new": asked.new,
        "same list": None,
        "new leaf": asked.new_leaf,
        "directory": asked.directory,
        "recombined": asked.recombined,
        "swapped": asked.swapped,
        "swapped known": asked.swapped_known,
        "x/a/a": asked.pair,
    }
    return {name: asked.some(way, count) if way else others[:count] for name, way in ways.items()}
