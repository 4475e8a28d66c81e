"""`Removals`: asks the database whether the rows are gone that a transaction has deleted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Column, Engine, text

from bloomtide.errors import KeyTypeError
from bloomtide.guard.filter.keys import KeyFilter
from bloomtide.guard.key_parts import Unseen
from bloomtide.guard.schema.facts import full_name, literal, quoted
from bloomtide.guard.values import KeyMaker
from bloomtide.guard.writes.sql import Row
from bloomtide.guard.writes.tokens import Parameter
from bloomtide.guard.writes.transaction import Key, OpenTransaction


class Removals:
    """For the keys of one store, which lists those that are gone."""

    def __init__(
        self, engine: Engine, columns: Sequence[Column[Any]], keys: KeyMaker, store: KeyFilter
    ) -> None:
        self._dialect = engine.dialect
        self._table = columns[0].table.name
        self._columns = [column.name for column in columns]
        self._keys = keys
        self._store = store
        self._names = [f"k{place}" for place in range(len(columns))]
        self._sql = ""
        self._order: Sequence[str] | None = None

    def ask_in(self, schema: str | None) -> None:
        """Looks in this schema from now on. The session that has deleted may have another path, and
        a role that some rows are hidden from: that counts as a row."""
        if schema is None or self._dialect.name not in ("sqlite", "postgresql"):
            self._sql = ""  # the name alone may mean another table
            return
        pairs = zip(self._columns, self._names, strict=True)
        terms = [f"own.{_colons(quoted(column))} = :{name}" for column, name in pairs]
        table = _colons(full_name(self._table, schema))
        query = f"SELECT 1 FROM {table} AS own WHERE {' AND '.join(terms)}"
        if self._dialect.name == "postgresql":
            hidden = f"row_security_active(to_regclass({literal(table)}))"
            query = f"{query} UNION ALL SELECT 1 WHERE {hidden}"
        compiled: Any = text(query).compile(dialect=self._dialect)
        self._order = compiled.positiontup if compiled.positional else None
        self._sql = str(compiled)

    def remember(self, transaction: OpenTransaction, old: Row, sets: Sequence[Any]) -> None:
        """A statement deletes the rows of these keys, for each set of its parameters."""
        for given in sets:
            try:
                values = tuple(given[each.place] for each in old if isinstance(each, Parameter))
                known = len(values) == len(old) and self._keys.is_exact(values)
                key = self._keys.written(values) if known else None
            except (Unseen, KeyTypeError, LookupError, TypeError):
                key = None
            if key is not None:
                transaction.deleted.append((key, values))

    def look(self, deleted: Sequence[tuple[Key, tuple[Any, ...]]], driver: Any) -> None:
        """The transaction has ended: which of its deleted rows are gone?"""
        if not self._sql:
            return
        asked = self._store.removable(key for key, _ in deleted)
        gone: list[Key] = []
        try:
            wanted = set(asked)  # a key that is written meanwhile leaves `asked`
            gone = [
                key for key, values in deleted if key in wanted and not self._has(driver, values)
            ]
        except Exception:  # noqa: BLE001 - whatever the driver raises, the keys stay inside
            gone = []
        finally:
            self._store.remove_many(gone, asked)

    def _has(self, driver: Any, values: Sequence[Any]) -> bool:
        """Whether such a row is committed; ends the transaction that it begins."""
        given: Any = dict(zip(self._names, values, strict=True))
        if self._order is not None:
            given = tuple(given[name] for name in self._order)
        cursor = driver.cursor()
        try:
            cursor.execute(self._sql, given)
            return cursor.fetchone() is not None
        finally:
            cursor.close()
            driver.rollback()


def _colons(name: str) -> str:
    """A name in a text of SQLAlchemy, where a colon begins a parameter."""
    return name.replace(":", r"\:")
