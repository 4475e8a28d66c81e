"""Every `python` example in the README and the documentation runs and gives what it says.

The examples of one page run in order in one namespace, in an empty directory. A line such as
`seen.add("/a")  # True: it was absent` is checked: `True`, `False` or an array before the colon
must be what the line gives.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```python\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
CLAIM = re.compile(r"#\s*(True|False|array\([^)]*\))(?=[:;,]|\s|$)")


def pages_with_examples() -> list[str]:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [str(page.relative_to(ROOT)) for page in pages if FENCE.search(page.read_text())]


def run_example(source: str, namespace: dict[str, Any]) -> None:
    lines = source.encode().splitlines()  # ast counts columns in bytes
    for statement in ast.parse(source).body:
        assert statement.end_lineno is not None
        rest = lines[statement.end_lineno - 1][statement.end_col_offset :]
        claim = CLAIM.search(rest.decode())
        code = ast.unparse(statement)
        if isinstance(statement, ast.Expr) and claim:
            assert repr(eval(code, namespace)) == claim[1], code
        else:
            exec(code, namespace)


@pytest.mark.parametrize("page", pages_with_examples())
def test_the_examples_of_a_page_run(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {}
    for source in FENCE.findall((ROOT / page).read_text()):
        run_example(source, namespace)


@pytest.mark.parametrize(
    "source", ["1 + 1 == 3  # True", "x = 1\nx > 0     # False: never", "undefined_name"]
)
def test_an_example_that_is_wrong_is_caught(source: str) -> None:
    with pytest.raises((AssertionError, NameError)):
        run_example(source, {})
