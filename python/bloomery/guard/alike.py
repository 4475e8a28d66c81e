"""Which strings does a column call equal? The database is asked, since only it knows.

A column may compare without case, without accents or without blanks at the end, and neither a
mapping nor reflection need know it. A UNION keeps one of two values that are equal, by the rules of
its first column. So two strings that come out as one are one key, or the guard would be wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

PAIRS = (("a", "A"), ("a", "a "), ("a", "á"), ("á", "a\u0301"), ("ss", "ß"))
"""What collations are known to differ in. Quoted below as they are."""


def question(table: str, column: str) -> str:
    """Asks for the number of values that are left of each pair; both names are quoted already."""
    none = f"SELECT {column} FROM {table} WHERE 1 = 0"
    unions = (f"{none} UNION SELECT '{one}' UNION SELECT '{other}'" for one, other in PAIRS)
    return "SELECT " + ", ".join(f"(SELECT count(*) FROM ({each}) AS two)" for each in unions)


def equal_pairs(counts: Sequence[int]) -> Iterator[tuple[str, str]]:
    """The pairs that are equal, by the answer to that question."""
    return (pair for pair, count in zip(PAIRS, counts, strict=True) if count == 1)
