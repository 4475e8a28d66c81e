"""Streams of keys: drawn by Zipf's law, or read from real files, one `.zst` file each.

The files belong to others and are not part of the project. Without them an experiment goes without.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import zstandard

Keys = npt.NDArray[np.int64]


@lru_cache(maxsize=64)
def _shares(n: int, theta: float) -> npt.NDArray[np.float64]:
    weights = np.arange(1, n + 1) ** -theta
    shares: npt.NDArray[np.float64] = np.cumsum(weights) / weights.sum()
    return shares


def zipf(random: np.random.Generator, n: int, theta: float, size: int) -> Keys:
    """Keys 0 to n - 1, key r in proportion to 1 / (r + 1)^theta; theta = 0 is even."""
    drawn: Keys = np.minimum(np.searchsorted(_shares(n, theta), random.random(size)), n - 1)
    return drawn


def default_folder() -> Path:
    """Beside the checkout."""
    return Path(__file__).resolve().parents[3] / "shared" / "data"


def lines_of(folder: Path | None, name: str) -> Iterator[bytes] | None:
    """The lines of `<name>.zst`; None with a message where it is absent."""
    path = folder / f"{name}.zst" if folder else None
    if path is None or not path.exists():
        print(f"no {name}.zst in {folder or 'the data folder'}: skipped")
        return None
    return _lines(path)


def _lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from io.BufferedReader(zstandard.ZstdDecompressor().stream_reader(file))
