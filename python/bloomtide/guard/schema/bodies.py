"""Whether the body of a trigger may write keys. What cannot be shown harmless may.

Functions that a body calls are not looked into.
"""

from __future__ import annotations

from collections.abc import Set

from bloomtide.guard.writes.sql import odd_comments
from bloomtide.guard.writes.tokens import Token, Tokens, Unclear, tokens_of

_OPAQUE = frozenset({"execute", "copy", "merge", "alter", "create", "drop", "do"})
"""What writes in ways that are not read here; `do` but for an upsert."""
_RETURNED = (
    ["new", ";"], ["old", ";"], ["null", ";"], ["coalesce", "(", "new", ",", "old", ")", ";"],
)  # fmt: skip


def may_write(
    source: str, *, exact: bool, tables: Set[str], columns: Set[str], resetting: Set[str]
) -> bool:
    """Whether it may write these columns of these tables, or delete rows of those `resetting`."""
    try:
        return _writes(_tokens(source, exact), tables, columns, resetting)
    except Unclear:
        return True


def may_change_row(source: str, columns: Set[str]) -> bool:
    """Whether a function that is called before a row is written may give it another key."""
    try:
        tokens = _tokens(source, exact=True)
    except Unclear:
        return True
    named = any(isinstance(each, str) and each.removeprefix('"') in columns for each in tokens)
    return named or any(
        (token == "return" and not any(tokens[at + 1 :][: len(end)] == end for end in _RETURNED))
        or (token == "new" and not _only_looks(tokens, at))
        for at, token in enumerate(tokens)
    )


def _tokens(source: str, exact: bool) -> list[Token]:
    if (exact and 'u&"' in source.lower()) or odd_comments(source):
        raise Unclear("letters as numbers, or a comment in a comment")
    return tokens_of(source.replace("%", " "), exact=exact)


def _writes(tokens: list[Token], tables: Set[str], columns: Set[str], resetting: Set[str]) -> bool:
    for at, token in enumerate(tokens):
        before, rest = tokens[at - 1] if at else "", Tokens(tokens[at + 1 : at + 2])
        if token in _OPAQUE and (token != "do" or rest.next not in ("update", "nothing")):
            return True
        if token not in ("into", "update", "delete") or before in ("for", "do", "key"):
            continue
        rest = Tokens(tokens[at + 1 :])
        if token == "delete":
            if rest.skip("from"):
                rest.skip("only")
                if rest.name()[1] in resetting:
                    return True
        elif token == "into":
            rest.skip("strict")
            if rest.name()[1] in tables | resetting:
                return True
        else:
            if rest.skip("or"):
                rest.take()
            rest.skip("only")
            if rest.name()[1] in tables:
                rest.alias("set")
                assigned = rest.assignments("from", "where", "returning", ";")
                if not columns.isdisjoint(name for name, _ in assigned):
                    return True
    return False


def _only_looks(tokens: list[Token], at: int) -> bool:
    """Whether `new` stands where nothing is put into the whole row."""
    before, after = tokens[at - 1] if at else "", tokens[at + 1] if at + 1 < len(tokens) else ""
    return (
        after == "."
        or before == "return"
        or (before == "(" and after in (")", ",") and "call" not in tokens)
        or (before == "from" and tokens[at - 2] == "distinct")
        or after == "is"
    )
