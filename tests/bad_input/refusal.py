"""What every refusal must be: the right class, the field it names, and a hint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from bloomtide import errors

Refusal = TypeVar("Refusal", bound=errors.BloomtideError)


def refused(
    error: type[Refusal], act: Callable[..., object], *arguments: Any, **fields: object
) -> Refusal:
    """Run `act(*arguments)`, which must raise exactly `error` with these fields and a hint."""
    with pytest.raises(errors.BloomtideError) as caught:
        act(*arguments)
    found = caught.value
    assert type(found) is error, repr(found)
    assert found.hint, repr(found)
    assert found.hint in str(found)
    for name, value in fields.items():
        assert getattr(found, name) == value, repr(found)
    return found
