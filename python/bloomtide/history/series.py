"""A key's counts step by step: `series`, as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Counts of one key in steps of equal length, as `RangeCount` for each."""

    start: npt.NDArray[np.datetime64]
    """Where each step begins (UTC, microseconds); it ends where the next one begins."""
    upper: npt.NDArray[np.uint64]
    inner: npt.NDArray[np.uint64]
    estimate: Floats
    missing: tuple[tuple[float, float], ...]
    """Times that could not be read, in seconds since 1970."""

    def __len__(self) -> int:
        return len(self.start)
