"""NumPy's numbers, texts and truths as Python's own: programs compute their parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def plain(value: Any) -> Any:
    """A scalar of NumPy as Python spells it; anything else as it is."""
    # Without an import of NumPy, which some programs never need.
    scalar = getattr(value, "ndim", None) == 0 and hasattr(value, "dtype")
    return value.item() if scalar and value.dtype.kind in "biufU" else value


def all_plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Every value of a mapping."""
    return {name: plain(value) for name, value in values.items()}


def with_plain(function: Callable[P, T]) -> Callable[P, T]:
    """A function that gets every argument as Python spells it."""

    @wraps(function)
    def call(*places: P.args, **names: P.kwargs) -> T:
        return function(*map(plain, places), **all_plain(names))

    return call
