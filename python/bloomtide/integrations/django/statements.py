"""Which keys does a statement write? Read from its text, as Django writes it.

Django hands every statement to its execute wrappers as text with parameters. An INSERT or UPDATE
of plain values, which is what `save`, `bulk_create`, `update` and upserts make, says where its keys
are: at such and such a parameter. Everything else that may write to the table is `unseen`. A reader
can be too careful here, which costs queries until the next build; it must never be too sure.

Not seen are writes that the text does not show: triggers, functions in a SELECT, rules, updatable
views of another name, and keys that follow a changed parent by ON UPDATE CASCADE.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from bloomtide.guard.sql_text import Doing, read_text

_NAME = r'((?:"[^"]+"|\w+)(?:\s*\.\s*(?:"[^"]+"|\w+))*)'
_INTO = rf"insert\s+(?:or\s+\w+\s+|ignore\s+)?into\s+{_NAME}"
_OF = rf"update\s+(?:or\s+\w+\s+)?(?:only\s+)?{_NAME}"
_TARGET = re.compile(rf"(?:{_INTO}|{_OF})", re.IGNORECASE)
_INSERT = re.compile(
    rf"{_INTO}\s*\(([^()]*)\)\s*(values\s*|select\s+\*\s+from\s+unnest\s*\()", re.IGNORECASE
)
_UPDATE = re.compile(rf"{_OF}\s+set\s+", re.IGNORECASE)
_DELETE = re.compile(r"delete\b|truncate\b", re.IGNORECASE)
_UPSERT = re.compile(r"\bdo\s+update\s+set\b", re.IGNORECASE)
_END_OF_SET = re.compile(r"\b(where|from|returning|order|limit)\b", re.IGNORECASE)
_ASSIGNED = re.compile(rf"\s*{_NAME}\s*=\s*(.*?)\s*", re.DOTALL)
_EXCLUDED = re.compile(rf"excluded\s*\.\s*{_NAME}", re.IGNORECASE)
_ARRAY = re.compile(r"\(%s\)::[\w ]+\[\]")
_COMMA = re.compile(r"\s*,\s*")
_SHORT = 4096
"""Only statements of this length are remembered: a bulk insert may be megabytes of text."""


@dataclass(frozen=True, slots=True)
class Written:
    """Where a statement's keys are."""

    places: tuple[int, ...] = ()
    """Numbers of the parameters that are keys."""
    arrays: bool = False
    """Each of these parameters is a list of keys."""
    unseen: str = ""
    """Why its keys are not known; empty if they are."""
    missing: bool = False
    """It inserts rows without naming the column."""
    deletes: bool = False
    """It deletes rows, whose keys stay behind and may cost a query each."""


NOTHING = Written()


class _Unclear(Exception):
    """The text has something in it that is not read here."""


def read(sql: str, table: str, column: str) -> Written:
    """What the statement writes into that column; names are compared without case."""
    return (_read_once if len(sql) <= _SHORT else _read)(sql, table, column)


def what_text_does(sql: str, table: str) -> Doing:
    """`read_text`, which remembers what it has read, if the text is short."""
    return (read_text if len(sql) <= _SHORT else read_text.__wrapped__)(sql, table)


def _read(sql: str, table: str, column: str) -> Written:
    if what_text_does(sql, _last(table)) is not Doing.UNKNOWN:
        return NOTHING
    text = sql.replace("%%", "__").strip().rstrip(";")
    target = _TARGET.match(text)
    try:
        _check(text)
        if target and _last(target[1] or target[2]) != _last(table):
            return NOTHING  # the table is only named further on
        if _DELETE.match(text):
            return Written(deletes=True)
        if _INSERT.match(text):
            return _insert(text, column)
        if _UPDATE.match(text):
            return _update(text, column)
    except _Unclear as error:
        return Written(unseen=f"a statement with {error}")
    return Written(unseen=f"{text.split(maxsplit=1)[0].upper()} that is not plain")


_read_once = lru_cache(maxsize=1024)(_read)


def _insert(text: str, column: str) -> Written:
    head = _INSERT.match(text)
    if not head:
        raise _Unclear("no plain values")
    columns = [_last(name) for name in head[2].split(",")]
    if _last(column) not in columns:
        return Written(missing=True)
    at = columns.index(_last(column))
    if head[3].casefold().startswith("select"):
        return _unnest(text, head.end(), at, column)
    # As Django writes it, all rows are alike, and there may be very many of them.
    row = re.escape(f"({', '.join(['%s'] * len(columns))})")
    alike = re.compile(rf"{row}(?:, {row})*").match(text, head.end())
    if alike and not _COMMA.match(text, alike.end()):
        places = range(at, alike[0].count("%s"), len(columns))
        return Written((*places, *_upserted(text, alike.end(), column)))
    return _different_rows(text, head.end(), at, len(columns), column)


def _different_rows(text: str, position: int, at: int, width: int, column: str) -> Written:
    places = []
    end = position
    while text[position : position + 1] == "(":
        end = _closing(text, position) + 1
        pieces = _pieces(text, position + 1, end - 1)
        if len(pieces) != width or pieces[at][1] != "%s":
            raise _Unclear("an expression as key")
        places.append(text.count("%s", 0, pieces[at][0]))
        comma = _COMMA.match(text, end)
        position = comma.end() if comma else len(text)
    if not places:
        raise _Unclear("no plain values")
    return Written((*places, *_upserted(text, end, column)))


def _unnest(text: str, start: int, at: int, column: str) -> Written:
    """Django's bulk insert for PostgreSQL: each column is one parameter, a list."""
    end = _closing(text, start - 1)
    pieces = _pieces(text, start, end)
    if at >= len(pieces) or not _ARRAY.fullmatch(pieces[at][1]):
        raise _Unclear("an expression as key")
    if _upserted(text, end, column):
        raise _Unclear("a key of its own where rows exist")
    return Written((text.count("%s", 0, pieces[at][0]),), arrays=True)


def _upserted(text: str, start: int, column: str) -> tuple[int, ...]:
    update = _UPSERT.search(_masked(text[start:]))
    return _assigned(text, start + update.end(), column) if update else ()


def _update(text: str, column: str) -> Written:
    head = _UPDATE.match(text)
    return Written(_assigned(text, head.end(), column) if head else ())


def _assigned(text: str, start: int, column: str) -> tuple[int, ...]:
    """The parameters that a list of assignments gives the column."""
    stop = _END_OF_SET.search(_masked(text[start:]))
    places = []
    for begin, piece in _pieces(text, start, start + stop.start() if stop else len(text)):
        assigned = _ASSIGNED.fullmatch(piece)
        if not assigned:
            raise _Unclear("no plain assignment")
        if _last(assigned[1]) != _last(column):
            continue
        excluded = _EXCLUDED.fullmatch(assigned[2])
        if excluded and _last(excluded[1]) == _last(column):
            continue  # the inserted value, which is known
        if assigned[2] != "%s":
            raise _Unclear("an expression as key")
        places.append(text.count("%s", 0, begin))
    return tuple(places)


def _last(name: str) -> str:
    """`"public"."Basket"` is `basket`: too many names are equal here, never too few."""
    return name.split(".")[-1].strip().strip('"`').casefold()


def _check(text: str) -> None:
    """Below, parentheses and commas mean what they seem to."""
    if any(odd in text for odd in ("'", "$", "--", "/*", "%(", ";")):
        raise _Unclear("a literal, a comment, a named parameter or another statement")


def _masked(text: str) -> str:
    """The same text with blanks for all that stands in parentheses or is a quoted name."""
    masked, depth, quoted = [], 0, False
    for char in text:
        if char == '"':
            quoted = not quoted
        depth += (char == "(" and not quoted) - (char == ")" and not quoted)
        masked.append(" " if depth or quoted or char in '")' else char)
    return "".join(masked)


def _closing(text: str, opening: int) -> int:
    """Where the parenthesis ends that opens there."""
    depth, quoted = 0, False
    for position in range(opening, len(text)):
        char = text[position]
        if char == '"':
            quoted = not quoted
        elif not quoted:
            depth += (char == "(") - (char == ")")
            if not depth:
                return position
    raise _Unclear("an open parenthesis")


def _pieces(text: str, start: int, end: int) -> list[tuple[int, str]]:
    """What commas separate, with the place where it begins."""
    masked = _masked(text[start:end])
    found, begin = [], 0
    for position, char in enumerate([*masked, ","]):
        if char == ",":
            found.append((start + begin, text[start + begin : start + position].strip()))
            begin = position + 1
    return found
