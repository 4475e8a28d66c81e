"""docs/reference/api.md names every public function, method, property, parameter and field."""

from __future__ import annotations

import ast
import dataclasses
import re
from pathlib import Path

import pytest

from bloomtide import history, records

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "reference" / "api.md").read_text()
STUB = ast.parse((ROOT / "python" / "bloomtide" / "_core.pyi").read_text())

SECTIONS = dict(re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", PAGE, flags=re.MULTILINE | re.DOTALL))
CLASSES = {node.name: node for node in STUB.body if isinstance(node, ast.ClassDef)}


def words_in_code(section: str) -> set[str]:
    """Every word that stands between backticks."""
    return {word for code in re.findall(r"`([^`]+)`", section) for word in re.findall(r"\w+", code)}


def public_names(cls: ast.ClassDef) -> set[str]:
    """Methods, properties and the parameters of all of them."""
    found: set[str] = set()
    for node in cls.body:
        if isinstance(node, ast.FunctionDef) and (node.name == "__new__" or node.name[0] != "_"):
            arguments = [*node.args.args, *node.args.kwonlyargs]
            found |= {node.name, *(argument.arg for argument in arguments)}
    return found - {"__new__", "cls", "self"}


def test_the_stub_holds_classes_and_the_page_has_a_section_for_each() -> None:
    assert CLASSES
    assert CLASSES.keys() <= SECTIONS.keys()


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_is_documented_whole(name: str) -> None:
    told = words_in_code(SECTIONS[name]) | words_in_code(SECTIONS["Verbs of every filter"])
    assert public_names(CLASSES[name]) - told == set()


def test_the_history_is_documented_whole() -> None:
    source = ast.parse((ROOT / "python" / "bloomtide" / "history" / "store.py").read_text())
    [store] = (node for node in source.body if isinstance(node, ast.ClassDef))
    assert {"open", "count", "rollups"} <= public_names(store)
    assert public_names(store) - words_in_code(SECTIONS["History"]) == set()


def test_every_function_is_documented() -> None:
    functions = {node.name for node in STUB.body if isinstance(node, ast.FunctionDef)}
    assert functions
    assert functions - words_in_code(SECTIONS["Functions"]) == set()


@pytest.mark.parametrize(
    "record",
    [
        records.Plan,
        records.Stats,
        records.Estimate,
        records.HotItem,
        records.LogRecord,
        records.LogReport,
        records.LineReport,
        records.BadLine,
        records.SegmentInfo,
        records.OpenSegment,
        records.SealedSegment,
        history.RangeCount,
        history.DecayedCount,
        history.TopKeys,
        history.SegmentReport,
        history.HistoryStats,
        history.CompactionReport,
        history.VerifyReport,
    ],
)
def test_every_field_of_a_record_is_documented(record: type) -> None:
    [row] = re.findall(rf"^\| `{record.__name__}` \|.*$", SECTIONS["Records"], flags=re.MULTILINE)
    fields = {field.name for field in dataclasses.fields(record)}
    assert fields - words_in_code(row) == set()
