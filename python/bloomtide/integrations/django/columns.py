"""`KeyColumn`: the column that is guarded, and what makes a key of its values.

Two values that the database calls equal have the same key, whether a program asks for them, writes
them or reads them back. Integers, text that is compared byte by byte, and UUIDs are known here; for
other fields Django and the database do too much on the way.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from django.core.exceptions import FieldDoesNotExist, ValidationError
from django.db import models

from bloomtide.errors import KeyTypeError, ParameterError
from bloomtide.guard.filter.files import file_of
from bloomtide.guard.key_parts import LARGEST, SMALLEST, Unseen
from bloomtide.guard.schema.facts import (
    Run,
    TableFacts,
    check_rows,
    check_writers,
    equal_strings,
    quoted,
    read_facts,
)
from bloomtide.guard.schema.place import find_schema, seen_schema
from bloomtide.guard.writes.sql import Target
from bloomtide.guard.writes.transaction import Key

_PLACE = ("NAME", "HOST", "PORT")
_HINT = "guard an integer, a text without `db_collation`, a UUID, or a foreign key to one of them"


class KeyColumn:
    """One column of one table."""

    def __init__(self, model: type[models.Model], name: str, connection: Any) -> None:
        try:
            field = model._meta.get_field(name)
        except FieldDoesNotExist as error:
            raise _refusal(name, f"`{model.__name__}` has no such field") from error
        if not getattr(field, "concrete", False) or field.many_to_many:
            raise _refusal(name, "it is no column of its own")
        if isinstance(field, models.AutoField | models.GeneratedField):
            # The database makes its values, and nobody hears of one before it can be read.
            raise _refusal(name, "the database makes its values")
        if connection.vendor not in ("sqlite", "postgresql"):
            raise _refusal(name, f"nobody has tried how {connection.vendor} compares values")
        self.field: Any = field
        self.model: type[models.Model] = field.model
        """The model whose table has the column; the parent, if it was inherited."""
        self.table: str = self.model._meta.db_table
        self.name: str = field.column
        self.is_filled = not field.null or field.has_db_default()
        """An INSERT that leaves it out gets something from the database."""
        target: Any = field
        while target.is_relation:
            target = target.target_field
        self._written = _kind(name, target)
        self._place: str | None = None
        """The schema of the table, once it was found."""
        self._longest: int | None = getattr(target, "max_length", None)

    def subject(self, connection: Any) -> dict[str, Any]:
        """Whose keys they are: what must be the same for all who share them."""
        settings = connection.settings_dict
        place = {name: str(settings.get(name, "")) for name in _PLACE}
        if connection.vendor == "sqlite":
            place["NAME"] = file_of(place["NAME"])
        options = settings.get("OPTIONS") or {}
        place |= {name: str(options.get(name, "")) for name in ("service", "options")}
        return {
            "database": [connection.vendor, *place.values()],
            "table": self.table,
            "columns": [self.name],
            "types": [f"django {self._written.__name__}"],
        }

    def asked(self, value: object, connection: Any) -> Key | None:
        """The key of a value that a program asks for; None for None.

        Raises `Unseen` for a value that the column could hold only as another one.
        """
        return self.written(self._prepared(value, connection))

    def read(self, value: object, connection: Any) -> Key:
        """The key of a value that was read from the table, which has no other way to be one."""
        stored = self._prepared(value, connection)
        try:
            return self._written(stored)
        except Unseen as error:
            raise self._wrong(value) from error

    def _prepared(self, value: object, connection: Any) -> Any:
        """As Django sends it to the database."""
        try:
            return self.field.get_db_prep_value(value, connection, prepared=False)
        except (TypeError, ValueError, ValidationError) as error:
            raise self._wrong(value) from error

    def _wrong(self, value: object) -> KeyTypeError:
        return KeyTypeError(
            f"`{self.field.name}` cannot hold such a key, got: `{type(value).__name__}`",
            hint=f"it is a {type(self.field).__name__}",
            got=type(value).__name__,
            index=None,
            added=None,
        )

    def written(self, parameter: object) -> Key | None:
        """The key of a parameter of a statement; raises `Unseen` if it is of another type.

        Or longer than the column: PostgreSQL cuts off blanks at the end.
        """
        if isinstance(parameter, str) and self._longest and len(parameter) > self._longest:
            raise Unseen
        return None if parameter is None else self._written(parameter)

    def target(self, connection: Any) -> Target:
        """The names that statements are read for, as far as the model knows them."""
        return Target(connection.vendor, self.table.strip('"'), (self.name,))

    def _find_place(self, connection: Any) -> str | None:
        """The schema of the table, as a connection finds it that nobody has used."""
        table = self.target(connection).table
        if connection.vendor == "sqlite":  # whose connections differ in temporary tables only
            with connection.cursor() as cursor:
                return find_schema(_runner(cursor), connection.vendor, table)
        fresh = connection.copy()
        try:
            with fresh.cursor() as cursor:
                return find_schema(_runner(cursor), connection.vendor, table)
        finally:
            fresh.close()

    def refuse_another(self, connection: Any) -> None:
        """Raises if this connection would read another table of the same name."""
        if self._place is None:
            self._place = self._find_place(connection)
        with connection.cursor() as cursor:
            table = self.target(connection).table
            seen = seen_schema(_runner(cursor), connection.vendor, table)
        if seen != self._place:
            raise ParameterError(
                f"this connection reads `{seen}.{table}`, and the guard is for "
                f"`{self._place}.{table}`",
                hint="build with a connection without temporary tables or a `search_path` of its "
                "own, such as that of a new thread",
                name="using", got=f"{seen}.{table}", allowed=f"{self._place}.{table}",
            )  # fmt: skip

    def check(self, connection: Any) -> TableFacts:
        """Reads the table as it is; refuses one whose keys are not only what Django sends."""
        with connection.cursor() as cursor:
            run, table = _runner(cursor), self.target(connection).table
            check_rows(run, connection.vendor, table, None)
            facts = read_facts(run, connection.vendor, table, None, [self.name])
            assert facts is not None  # other databases are refused at once
            check_writers(facts, table, [self.name], frozenset())
            column = facts.columns.get(self.name)
            families: dict[Callable[[Any], Key], str] = {
                _integer: "integer", _text: "text", _uuid: "uuid",
            }  # fmt: skip
            family = families[self._written]
            if column is not None and family not in column.families:
                raise _refusal(self.field.name, f"the database has `{column.declared}`")
            if self._written is _text:
                name = connection.ops.quote_name(self.table)
                for one, other in equal_strings(run, name, quoted(self.name)):
                    both = f"to the database {one!r} and {other!r} are equal"
                    raise _refusal(self.field.name, both)
        return facts


def _runner(cursor: Any) -> Run:
    def run(sql: str) -> Any:
        cursor.execute(sql)
        return cursor.fetchall()

    return run


def _kind(name: str, field: Any) -> Callable[[Any], Key]:
    if isinstance(field, models.UUIDField):
        return _uuid
    if isinstance(field, models.CharField | models.TextField):
        if field.db_collation:
            raise _refusal(name, f"how `{field.db_collation}` compares is not known")
        return _text
    # A foreign key may lead to an AutoField: its own values come from the program.
    if isinstance(field, models.IntegerField):
        return _integer
    raise _refusal(name, f"a {type(field).__name__} is compared in its own way")


def _integer(value: object) -> Key:
    if not isinstance(value, int) or not SMALLEST <= value <= LARGEST:
        raise Unseen
    return int(value)


def _text(value: object) -> Key:
    if not isinstance(value, str):
        raise Unseen
    return str.__str__(value)  # the text itself, whatever a subclass shows


def _uuid(value: object) -> Key:
    """PostgreSQL gets a UUID, SQLite its 32 digits; other spellings are other texts to SQLite."""
    if isinstance(value, uuid.UUID):
        return value.hex
    try:
        digits = uuid.UUID(str(value)).hex
    except ValueError as error:
        raise Unseen from error
    if digits != value:
        raise Unseen
    return digits


def _refusal(name: str, reason: str) -> ParameterError:
    return ParameterError(
        f"`{name}` cannot be guarded: {reason}",
        hint=_HINT,
        name="field",
        got=name,
        allowed="a column whose values the program sets",
    )
