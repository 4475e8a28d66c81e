"""`Removals`: asks the database whether the rows are gone that a transaction has deleted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Column, Engine, bindparam, select, type_coerce
from sqlalchemy import types as sql_types

from bloomtide.errors import KeyTypeError
from bloomtide.guard.filter.keys import KeyFilter
from bloomtide.guard.key_parts import Unseen
from bloomtide.guard.values import KeyMaker
from bloomtide.guard.writes.sql import Row
from bloomtide.guard.writes.tokens import Parameter
from bloomtide.guard.writes.transaction import Key, OpenTransaction


class Removals:
    """For the keys of one store, which lists those that are gone."""

    def __init__(
        self, engine: Engine, columns: Sequence[Column[Any]], keys: KeyMaker, store: KeyFilter
    ) -> None:
        self._keys = keys
        self._store = store
        plain = sql_types.NullType()
        self._names = [f"k{place}" for place in range(len(columns))]
        terms = [
            type_coerce(column, plain) == bindparam(name, type_=plain)
            for column, name in zip(columns, self._names, strict=True)
        ]
        query = select(type_coerce(columns[0], plain)).where(*terms)
        compiled: Any = query.compile(dialect=engine.dialect)
        self._sql = str(compiled)
        self._order = compiled.positiontup if compiled.positional else None

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
        asked = self._store.removable(key for key, _ in deleted)
        gone: list[Key] = []
        try:
            wanted = set(asked)
            gone = [
                key for key, values in deleted if key in wanted and not self._has(driver, values)
            ]
        except Exception:  # noqa: BLE001 - whatever the driver raises, the keys stay inside
            gone = []
        finally:
            self._store.remove_many(gone, asked=asked)

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
