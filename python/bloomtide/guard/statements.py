"""What a statement writes to the key columns of a table, as far as it can be seen beforehand.

SQLAlchemy compiles a statement once and runs it with many parameters. So a compiled statement is
read once, and its `Effect` says which parameters hold keys. Whatever is not understood is `unseen`:
a key that is not added is a wrong answer, one too many only costs a query.

The attributes of SQLAlchemy with an underscore are the only place where it keeps which column gets
which parameter. `tests/guard` runs each kind of statement, so a version that moves them is noticed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy import BindParameter, Column, Delete, Insert, Null, Table, TextClause, Update
from sqlalchemy.engine import Compiled
from sqlalchemy.sql import operators
from sqlalchemy.sql.compiler import DDLCompiler
from sqlalchemy.sql.elements import (
    BinaryExpression,
    BooleanClauseList,
    ClauseElement,
    ReleaseSavepointClause,
    RollbackToSavepointClause,
    SavepointClause,
)
from sqlalchemy.sql.selectable import TextualSelect

from bloomtide.guard.sql_text import Doing, read_text
from bloomtide.guard.values import Normal, Reader

Names = tuple[str | None, ...]
"""For each key column the name of the parameter that holds it; None if only the database knows."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row that each set of parameters writes."""

    names: Names
    key: Reader | None
    """Takes its key out of a set of parameters; None if only the database knows it."""


@dataclass(frozen=True, slots=True)
class Effect:
    """What one execution does."""

    unseen: str = ""
    """Why the keys it writes cannot be seen; empty if they can."""
    transaction: bool = False
    """It is a text that begins, ends or rolls back a transaction or a part of one."""
    savepoint: str = ""
    """The savepoint that it makes."""
    back_to: str = ""
    """The savepoint that it rolls back to."""
    rows: tuple[Row, ...] = ()
    """The rows that each set of parameters writes."""
    old: Reader | None = None
    """Takes the key of the one row that each set of parameters deletes out of it."""
    loses: bool = False
    """Its rows lose their keys: it deletes them, or gives them new ones."""
    generated: bool = False
    """Some key is known only after the execution."""
    sole: Reader | None = None
    """Takes the key out of a set of parameters, if each writes one row with a key of its own."""


NOTHING = Effect()


class _NotSeen(Exception):
    """With the reason."""


class Statements:
    """Reads statements for the key columns of one table."""

    def __init__(self, columns: Sequence[Column[Any]], normal: Normal) -> None:
        self._columns = tuple(columns)
        self._normal = normal
        self._table: Table = columns[0].table
        self._parents = frozenset(_cascading(columns, set()))
        self._reached_from = (self._table.name, *sorted({table for table, _ in self._parents}))
        """The tables by which the keys may be changed."""
        self._known: WeakKeyDictionary[Compiled, Effect] = WeakKeyDictionary()
        self.last: tuple[Compiled | None, Effect] = (None, NOTHING)
        """The compiled statement that was read last, and its effect."""

    def read(self, compiled: Compiled | None, text: str) -> Effect:
        """The effect of a compiled statement, or of a text that was not compiled."""
        if compiled is None:
            return self._read_text(text)
        known = self._known.get(compiled)
        if known is None:
            known = self._known[compiled] = self._read(compiled)
        self.last = (compiled, known)
        return known

    def _read_text(self, text: str) -> Effect:
        doing = Doing.NOTHING
        for table in self._reached_from:
            doing = read_text(text, table)
            if doing is Doing.UNKNOWN:
                return Effect(unseen=f"a statement of plain text may write to `{table}`")
        return Effect(transaction=True) if doing is Doing.TRANSACTION else NOTHING

    def _read(self, compiled: Compiled) -> Effect:
        statement: Any = compiled.statement
        if statement is None or isinstance(statement, (TextClause, TextualSelect)):
            return self._read_text(compiled.string)
        if isinstance(statement, SavepointClause):
            # Here it has its name, which the event before it has not.
            return Effect(savepoint=statement.ident)
        if isinstance(statement, RollbackToSavepointClause):
            return Effect(back_to=statement.ident)
        if isinstance(statement, ReleaseSavepointClause):
            return NOTHING
        if isinstance(compiled, DDLCompiler):
            return self._read_text(str(compiled))
        for cte in getattr(compiled, "ctes", None) or ():
            inner: Any = cte.element
            if inner.is_dml and self.is_ours(inner.table):
                return Effect(unseen="a common table expression writes to the table")
        if not getattr(statement, "is_dml", False):
            # Whatever somebody has invented is known by its text.
            is_select = getattr(statement, "is_select", False)
            return NOTHING if is_select else self._read_text(compiled.string)
        try:
            return self._read_dml(compiled, statement)
        except _NotSeen as reason:
            return Effect(unseen=str(reason), loses=not isinstance(statement, Insert))

    def _read_dml(self, compiled: Any, statement: Any) -> Effect:
        state = compiled.compile_state
        table = state.dml_table
        if getattr(_without_alias(table), "name", None) is None:
            raise _NotSeen("it writes to something that is no table")
        if not self.is_ours(table):
            self._read_other(compiled, statement, table)
            return NOTHING
        if isinstance(statement, Insert):
            written = self._inserted(compiled, statement)
            rows = tuple(Row(names, self._reader(names)) for names in written)
            sole = rows[0].key if len(rows) == 1 else None
            return Effect(rows=rows, sole=sole, generated=any(row.key is None for row in rows))
        old = self._equal_to(compiled, statement)
        if isinstance(statement, Delete):
            return Effect(old=self._reader(old), loses=True)
        if not isinstance(statement, Update):
            raise _NotSeen(f"a statement of an unknown kind: {type(statement).__name__}")
        return self._updated(compiled, old)

    def _reader(self, names: Sequence[str | None]) -> Reader | None:
        known = [name for name in names if name is not None]
        return self._normal.reader(known) if len(known) == len(names) else None

    def is_ours(self, table: Any) -> bool:
        """By name: another `MetaData` may describe the same table."""
        table = _without_alias(table)
        name, schema = getattr(table, "name", None), getattr(table, "schema", None)
        if name is None or name.lower() != self._table.name.lower():
            return False
        return schema == self._table.schema or schema is None or self._table.schema is None

    # --- insert -------------------------------------------------------------------------------

    def _inserted(self, compiled: Any, statement: Any) -> Iterator[Names]:
        if statement.select is not None:
            raise _NotSeen("INSERT from SELECT")
        self._check_upsert(statement)
        many = compiled.compile_state._multi_parameters
        if many:
            for number, given in enumerate(many):
                yield from self._inserted_row(compiled, _by_key(given), f"_m{number}")
        else:
            yield from self._inserted_row(compiled, _given(compiled), "")

    def _inserted_row(
        self, compiled: Any, given: Mapping[str, Any], suffix: str
    ) -> Iterator[Names]:
        names: list[str | None] = []
        for column in self._columns:
            if isinstance(given.get(column.key), Null):
                if not column.primary_key:
                    return  # a row with NULL in its key has none
                names.append(None)
                continue
            name = _parameter(compiled, column, given, suffix)
            if name is None and not column.primary_key:
                if column.nullable and column.default is None and column.server_default is None:
                    return
                raise _NotSeen(f"the database chooses the value of `{column.name}`")
            names.append(name)
        yield tuple(names)

    def _check_upsert(self, statement: Any) -> None:
        """What happens to a row in the way must not give it another key than the one inserted."""
        clause = statement._post_values_clause
        if clause is None:
            return
        changes = getattr(clause, "update_values_to_set", None)
        if changes is None:
            changes = getattr(clause, "update", None)
        if changes is None:
            if "nothing" in clause.__visit_name__:
                return
            raise _NotSeen("an upsert of an unknown kind")
        for key, value in _by_key(dict(changes)).items():
            if key not in self._spellings():
                continue
            same = isinstance(value, Column) and value.key in self._spellings()
            if not (same and getattr(value.table, "name", "") == "excluded"):
                raise _NotSeen("an upsert changes the key of the row in its way")

    def _spellings(self) -> frozenset[str]:
        return frozenset(name for column in self._columns for name in (column.key, column.name))

    # --- update and delete --------------------------------------------------------------------

    def _updated(self, compiled: Any, old: Names) -> Effect:
        given = _given(compiled)
        names: list[str | None] = []
        changed = False
        for column, was in zip(self._columns, old, strict=True):
            name: str | None = None
            if column.key in given or column.onupdate is not None:
                if compiled.compile_state.is_multitable:
                    raise _NotSeen("an UPDATE of several tables changes the key")
                changed = True
                if isinstance(given.get(column.key), Null):
                    return Effect(old=self._reader(old), loses=True)
                name = _parameter(compiled, column, given, "")
                if name is None:
                    raise _NotSeen(f"an UPDATE computes `{column.name}` in the database")
            elif column.server_onupdate is not None:
                raise _NotSeen(f"the database changes `{column.name}` in an UPDATE")
            names.append(name or was)
        if not changed:
            return NOTHING
        if None in names:
            raise _NotSeen("an UPDATE changes a part of the key of rows that are not named")
        row = Row(tuple(names), self._reader(names))
        return Effect(rows=(row,), old=self._reader(old), loses=True)

    def _equal_to(self, compiled: Any, statement: Any) -> Names:
        """The parameters that the key columns must equal for a row to be meant."""
        found: dict[str, str] = {}
        target = compiled.compile_state.dml_table
        for term in _terms(statement._where_criteria):
            if isinstance(term, BinaryExpression) and term.operator is operators.eq:
                column, value = term.left, term.right
                if (
                    isinstance(column, Column)
                    and isinstance(value, BindParameter)
                    and self.is_ours(column.table)
                    # Under another name the same table is another row.
                    and column.table.name == target.name
                    and (name := compiled.bind_names.get(value))
                ):
                    found[column.key] = name
        return tuple(found.get(column.key) for column in self._columns)

    def _read_other(self, compiled: Any, statement: Any, table: Any) -> None:
        """A write to another table may reach the keys by a foreign key that cascades."""
        if isinstance(statement, Insert):
            return
        name = getattr(_without_alias(table), "name", "").lower()
        for parent, column in self._parents:
            if parent != name:
                continue
            if isinstance(statement, Delete):
                if column is None:
                    raise _NotSeen(f"a DELETE from `{name}` sets keys to their default")
            elif column is not None and column in _given(compiled):
                raise _NotSeen(f"an UPDATE of `{name}` cascades to the keys")
        if isinstance(statement, Update) and compiled.compile_state.is_multitable:
            raise _NotSeen("an UPDATE of several tables")


def _cascading(columns: Sequence[Column[Any]], seen: set[str]) -> Iterator[tuple[str, str | None]]:
    """Tables and columns whose UPDATE reaches these columns; None for a DELETE that does."""
    for column in columns:
        for key in column.foreign_keys:
            # The name, and not the column: its table need not be described anywhere.
            table, _, referred = key.target_fullname.rpartition(".")
            table = table.rpartition(".")[2].lower()
            if (key.ondelete or "").upper() == "SET DEFAULT":
                yield table, None
            if (key.onupdate or "").upper() in ("CASCADE", "SET DEFAULT"):
                yield table, referred
                if key.target_fullname not in seen and _is_described(key):
                    yield from _cascading([key.column], seen | {key.target_fullname})


def _without_alias(table: Any) -> Any:
    while hasattr(table, "element"):
        table = table.element
    return table


def _is_described(key: Any) -> bool:
    return key.target_fullname.rpartition(".")[0] in key.parent.table.metadata.tables


def _by_key(given: Mapping[Any, Any]) -> dict[str, Any]:
    """Assignments by the key of their column, however it was named."""
    found = {}
    for name, value in given.items():
        if hasattr(name, "__clause_element__"):
            name = name.__clause_element__()
        key = name if isinstance(name, str) else getattr(name, "key", None)
        if key is None:
            raise _NotSeen("it assigns to something that is not a column")
        found[key] = value
    return found


def _given(compiled: Any) -> dict[str, Any]:
    """What is assigned to each column; None stands for a parameter of the column's own name."""
    given: dict[str, Any] = dict.fromkeys(compiled.column_keys or ())
    given.update(_by_key(compiled.compile_state._dict_parameters or {}))
    return given


def _parameter(
    compiled: Any, column: Column[Any], given: Mapping[str, Any], suffix: str
) -> str | None:
    """The name of the parameter with the column's value; None if there is none."""
    value = given.get(column.key)
    names = [f"{column.key}{suffix}"]
    if suffix == "_m0":  # a default of the first row has no number
        names.append(column.key)
    if isinstance(value, BindParameter):
        names.insert(0, value.key)
    elif isinstance(value, ClauseElement):
        raise _NotSeen(f"the database computes `{column.name}`")
    known = set(compiled.bind_names.values())
    return next((name for name in names if name in known), None)


def _terms(criteria: Sequence[Any]) -> Iterator[Any]:
    """The conditions that must all hold."""
    for term in criteria:
        if isinstance(term, BooleanClauseList) and term.operator is operators.and_:
            yield from _terms(term.clauses)
        else:
            yield term
