"""What only the database knows of a column: which strings it calls equal, and if it hides rows.

A column may compare without case, without accents or without blanks at the end, and neither a
mapping nor reflection need know it. A UNION keeps one of two values that are equal, by the rules of
its first column. So two strings that come out as one are one key, or the guard would be wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bloomtide.errors import ParameterError

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


ROW_SECURITY = "SELECT row_security_active(to_regclass(%s))"
"""Asks PostgreSQL whether a policy decides which rows this user sees."""


def hidden_rows(table: str) -> ParameterError:
    """Keys that a build cannot see would be called absent."""
    return ParameterError(
        f"`{table}` has row security, which hides rows from a build that others may see",
        hint="connect as the owner of the table or as a role with BYPASSRLS",
        name="column", got=table, allowed="a table of which all rows are seen",
    )  # fmt: skip
