"""Sentences of the documentation that promise something, and the page that registers them."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
REGISTER = DOCS / "promises.md"
LEFT_OUT = ("decisions", "experiments", "plots")
"""Reasons and the papers' experiments: what was found, not what is promised."""
WORDS = r"never|always|certain|certainly|certainty|exact|exactly|at most|bounds?|bounded|surviv\w+"
PROMISING = re.compile(rf"\b({WORDS})\b", re.IGNORECASE)
NOTHING = "none"
"""Stands in the register beside a sentence that has such a word and promises nothing."""


def pages() -> dict[str, str]:
    """The text of every page, by the name under which the register has it."""
    found = {"README.md": (ROOT / "README.md").read_text()}
    for path in sorted(DOCS.rglob("*.md")):
        name = path.relative_to(DOCS)
        if name.parts[0] not in LEFT_OUT and path != REGISTER:
            found[str(name)] = path.read_text()
    return found


def promising(text: str) -> list[str]:
    """The sentences of a page, and the rows of its tables, that have one of the words."""
    return [sentence for sentence in sentences(text) if PROMISING.search(sentence)]


def sentences(text: str) -> Iterator[str]:
    """Without examples and without marks of Markdown; a row of a table is one sentence."""
    text = re.sub(r"^(```|~~~).*?^\1\s*$", "\n\n", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)(\{[^}]*\})?", r"\1", text)
    block: list[str] = []
    for line in [*text.splitlines(), ""]:
        stripped = line.strip()
        begins = re.match(r"(\||#+ |[-*+] |\d+\. )", stripped)
        if begins or not stripped:
            yield from _cut(" ".join(block))
            block = []
        if stripped.startswith("|"):
            if stripped.strip("|-: "):
                yield plain(stripped.strip("| "))
        elif stripped:
            block.append(stripped[begins.end() :] if begins else stripped)


def _cut(block: str) -> Iterator[str]:
    for sentence in re.split(r"(?<=[.!?:;])\s+(?=[A-Z`\"'(0-9])", plain(block)):
        if sentence:
            yield sentence


def plain(text: str) -> str:
    """Words with one space between, without marks."""
    return " ".join(re.sub(r"[*`]|\\(?=\|)", "", text).split())


@dataclass(frozen=True, slots=True)
class Promise:
    """A row of the register."""

    name: str
    text: str
    condition: str
    tests: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Said:
    """Words of a page, and the promises that they make."""

    page: str
    words: str
    names: tuple[str, ...]


def registered(text: str) -> tuple[list[Promise], list[Said]]:
    """What the page has in its tables."""
    promises, said, page = [], [], ""
    for line in text.splitlines():
        if line.startswith("### "):
            page = line.removeprefix("### ").strip("`")
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
        if not line.startswith("| ") or cells[0] in {"name", "words"}:
            continue
        if page:
            words, names = cells
            said.append(Said(page, plain(words), tuple(re.findall(r"[\w-]+", names))))
        else:
            name, promise, condition, tests = cells
            tried = tuple(re.findall(r"`([^`]+)`", tests))
            promises.append(Promise(name.strip("`"), promise, condition, tried))
    return promises, said


def unregistered(pages: dict[str, str], said: list[Said]) -> list[str]:
    """Sentences that promise something and stand on no line of the register."""
    known = defaultdict(list)
    for one in said:
        known[one.page].append(one.words)
    return [
        f"{page}: {sentence}"
        for page, text in pages.items()
        for sentence in promising(text)
        if not any(words in sentence for words in known[page])
    ]


def outdated(pages: dict[str, str], said: list[Said]) -> list[str]:
    """Lines of the register whose words stand on their page no more."""
    return [
        f"{one.page}: {one.words}"
        for one in said
        if not any(one.words in sentence for sentence in promising(pages.get(one.page, "")))
    ]


def exists(test: str) -> bool:
    """Whether there is such a function: `folder/file.py::name` below tests."""
    file, _, name = test.partition("::")
    return name in _functions(ROOT / "tests" / file)


@cache
def _functions(path: Path) -> frozenset[str]:
    if not path.exists():
        return frozenset()
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = ast.walk(ast.parse(path.read_text()))
    return frozenset(node.name for node in nodes if isinstance(node, kinds))
