"""docs/reference/errors.md describes every error that exists, and no other."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from bloomtide import errors
from bloomtide.errors import BloomtideError, list_error_codes

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "errors.md"

# A test elsewhere may define an error class of its own.
ERRORS = {
    code: cls for code, cls in list_error_codes().items() if cls.__module__ == errors.__name__
}


def read_sections() -> dict[str, tuple[str, str]]:
    """For each error code on the page: the class in its heading and the text below."""
    pieces = re.split(r"^### `([\w-]+)`: (\w+)$", PAGE.read_text(), flags=re.MULTILINE)
    return {
        code: (name, text)
        for code, name, text in zip(pieces[1::3], pieces[2::3], pieces[3::3], strict=True)
    }


SECTIONS = read_sections()


def fields_of(cls: type[BloomtideError]) -> set[str]:
    """The fields a class declares itself; the base's `code` and `hint` are told once."""
    return set() if cls is BloomtideError else set(inspect.get_annotations(cls))


def built_in_of(cls: type[BloomtideError]) -> str:
    return next(base.__name__ for base in cls.__mro__ if base.__module__ == "builtins")


def test_the_page_lists_exactly_the_errors_that_exist() -> None:
    assert {code: name for code, (name, _) in SECTIONS.items()} == {
        code: cls.__name__ for code, cls in ERRORS.items()
    }


@pytest.mark.parametrize("code", ERRORS)
def test_an_error_is_described_with_its_fields_its_built_in_and_a_way_out(code: str) -> None:
    cls = ERRORS[code]
    _, text = SECTIONS[code]
    meaning, way_out, remedy = text.partition("**Way out.**")
    assert way_out, "says no way out"
    assert remedy.strip()
    assert f"Also `{built_in_of(cls)}`" in meaning
    assert {field for field in fields_of(cls) if f"`{field}`" not in meaning} == set()


def test_each_error_class_has_a_code_of_its_own() -> None:
    classes = [
        value
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, BloomtideError)
    ]
    assert sorted(cls.code for cls in classes) == sorted(ERRORS)
