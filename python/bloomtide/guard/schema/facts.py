"""`TableFacts`: what the catalogue of a database says of a table; each build reads it.

Keys are made by what a mapping says of a column, and seen as they pass the driver. Two things would
make that wrong without anybody noticing: a column that compares in another way than its mapping
says, and a key that the database writes by itself. `check` refuses both. What may be written under
another name, by a partition, a view or a cascade, is added to what statements are read for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from bloomtide.errors import ParameterError
from bloomtide.guard.writes.sql import Target

Run = Callable[[str], Sequence[Sequence[Any]]]
"""Executes a query without parameters and answers its rows."""

_PAIRS = (("a", "A"), ("a", "a "), ("a", "á"), ("á", "a\u0301"), ("ss", "ß"))
"""What collations are known to differ in. Quoted below as they are."""
OWN_NUMBER = "a number of its own"
OWN_PREFIX = "bloomtide_"
"""Of the names of change tables and their triggers."""


@dataclass(frozen=True)
class ColumnFacts:
    """A column as it is."""

    declared: str
    """In words of the database."""
    families: frozenset[str]
    """Of the mappings that fit."""
    digits: int | None = None
    scale: int | None = None
    """The numbers in parentheses after the type."""
    filled_by: str = ""
    """What the database puts there if an INSERT leaves it out; empty: NULL, or nothing."""
    generated: bool = False
    """It is computed from other columns."""
    is_native_enum: bool = False


@dataclass
class TableFacts:
    """A table, and whatever else may write to it."""

    columns: dict[str, ColumnFacts] = field(default_factory=dict)
    schema: str | None = None
    also: set[tuple[str | None, str]] = field(default_factory=set)
    views: set[str] = field(default_factory=set)
    parents: set[tuple[str, str]] = field(default_factory=set)
    resetting: set[str] = field(default_factory=set)
    writers: list[str] = field(default_factory=list)
    """Triggers and rules that may write keys, in words."""
    instead: str = ""
    """What it is if it is no table of this database, whose rows are written under its names."""
    fingerprint: str = ""
    """Another one means that something of this has changed."""
    own_triggers: str = ""
    """Another one means that a change table may have missed something."""

    def target(self, before: Target) -> Target:
        """The names to read statements for: those of the mapping, and those found here."""
        return Target(
            before.dialect, before.table, before.columns, self.schema,
            frozenset(self.also), frozenset(self.views),
            frozenset(self.parents) | before.parents, frozenset(self.resetting) | before.resetting,
            frozenset(
                name for name, column in self.columns.items()
                if column.filled_by not in ("", OWN_NUMBER)
            ),
        )  # fmt: skip


def fingerprint_of(*parts: object) -> str:
    return blake2b(repr(parts).encode(), digest_size=16).hexdigest()


def quoted(name: str) -> str:
    """As an identifier of SQLite and PostgreSQL."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def full_name(table: str, schema: str | None) -> str:
    return f"{quoted(schema)}.{quoted(table)}" if schema else quoted(table)


def read_facts(
    run: Run, dialect: str, table: str, schema: str | None, columns: Sequence[str]
) -> TableFacts | None:
    """What the catalogue says; None for a database whose catalogue nobody reads here."""
    from bloomtide.guard.schema import postgres, sqlite

    readers = {"sqlite": sqlite.read, "postgresql": postgres.read}
    reader = readers.get(dialect)
    return None if reader is None else reader(run, table, schema, columns)


# --- what is refused ----------------------------------------------------------------------------


def check_writers(
    facts: TableFacts | None, table: str, columns: Sequence[str], made: frozenset[str]
) -> None:
    """Raises if anything but the program writes keys; those of the columns `made` are read back."""
    check_is_table(facts, f"{table}.{', '.join(columns)}")
    if facts is None:
        raise _needs_outbox(table, "nobody reads the catalogue of this database here")
    for name in columns:
        column = facts.columns.get(name)
        if column is not None and column.generated:
            raise _needs_outbox(f"{table}.{name}", "the database computes it")
        if column is not None and column.filled_by and name not in made:
            why = f"the database fills it with {column.filled_by} when an INSERT leaves it out"
            raise _needs_outbox(f"{table}.{name}", why)
    for writer in facts.writers:
        raise _needs_outbox(f"{table}.{', '.join(columns)}", f"{writer} may write it")


def check_is_table(facts: TableFacts | None, column: str) -> None:
    """Raises if the rows are written where neither the guard nor a change table sees it."""
    if facts is not None and facts.instead:
        raise ParameterError(
            f"`{column}` cannot be guarded: it belongs to {facts.instead}, whose rows are written "
            "elsewhere",
            hint='guard the table that has the rows, or use `refresh="5m"` and no `outbox`',
            name="column", got=column, allowed="a column of a table",
        )  # fmt: skip


def _needs_outbox(column: str, why: str) -> ParameterError:
    return ParameterError(
        f"`{column}` cannot be guarded by what the program sends alone: {why}",
        hint="use `outbox=True` or `refresh`, which see what the database writes, or remove it",
        name="column", got=column, allowed="a column that only the program writes",
    )  # fmt: skip


def equal_strings(run: Run, table: str, column: str) -> Iterator[tuple[str, str]]:
    """Pairs of strings that the column calls equal, which only the database knows.

    A UNION keeps one of two values that are equal, by the rules of its first column.
    """
    none = f"SELECT {column} FROM {table} WHERE 1 = 0"
    unions = (f"{none} UNION SELECT '{one}' UNION SELECT '{other}'" for one, other in _PAIRS)
    counts = run("SELECT " + ", ".join(f"(SELECT count(*) FROM ({u}) AS two)" for u in unions))[0]
    return (pair for pair, count in zip(_PAIRS, counts, strict=True) if count == 1)


def check_rows(run: Run, dialect: str, table: str, schema: str | None) -> None:
    """Raises if PostgreSQL hides rows from who builds that others may see."""
    if dialect == "postgresql":
        name = literal(full_name(table, schema))
        if run(f"SELECT row_security_active(to_regclass({name}))")[0][0]:
            raise ParameterError(
                f"`{table}` has row security, which hides rows from a build that others may see",
                hint="connect as the owner of the table or as a role with BYPASSRLS",
                name="column", got=table, allowed="a table of which all rows are seen",
            )  # fmt: skip
