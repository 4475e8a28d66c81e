"""Streams of adds and removes for the models that need no compiled filter."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence


def spread(cells: int, hashes: int, salt: int = 0) -> Callable[[int], Sequence[int]]:
    """Positions of whole-number keys; two of one key may coincide, as they do in a filter."""

    def positions(key: int) -> Sequence[int]:
        draw = random.Random(key * 1_000_003 + salt)
        return [draw.randrange(cells) for _ in range(hashes)]

    return positions


def mixed(operations: int, keys: int, seed: int) -> Iterator[tuple[str, int, int]]:
    """("add" | "remove", key, count): few keys hot, and never more removed than was added.

    It swings between times of growth and of decline, so that counters cross powers of two often
    in both directions.
    """
    draw, held = random.Random(seed), Counter[int]()
    for step in range(operations):
        growing = step // (operations // 8 + 1) % 2 == 0
        key = int(keys * draw.random() ** 3)
        count = min(1 + int(draw.paretovariate(1.0)), 5_000)
        if draw.random() < (0.8 if growing else 0.2):
            held[key] += count
            yield "add", key, count
        elif held[key]:
            count = draw.choice((min(count, held[key]), held[key] // 2 + 1))
            held[key] -= count
            yield "remove", key, count
