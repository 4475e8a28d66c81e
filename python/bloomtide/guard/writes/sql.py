"""`Reader`: which keys a statement writes, read from the text that is sent to the driver.

The text names tables and columns as the database knows them, whoever made it: SQLAlchemy's
compiler, Django, or a program. An INSERT or UPDATE of plain values says which parameters hold keys.
Everything else that may write to the table is `unseen`: a key that is not added is a wrong answer,
a doubt only costs queries until the next build.

Not seen are writes that the text does not show: functions that write, and what triggers and rules
do; `guard/schema` refuses tables that have such.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from bloomtide.guard.writes.tokens import (
    Parameter,
    Token,
    Tokens,
    Unclear,
    cut,
    is_literal,
    name_of,
    only_name,
    split,
    tokens_of,
)

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_ANY_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
_ENDED_BY_RETURN = re.compile(r"--[^\n]*\r(?!\n)")
_FIRST_WORD = re.compile(r"(?:\s|\(|--[^\n]*\n|/\*.*?\*/)*([A-Za-z]+)", re.DOTALL)
_HARMLESS = re.compile(
    "SELECT|VALUES|TABLE|SHOW|DESCRIBE|DESC|PRAGMA|SET|RESET|USE|LISTEN|UNLISTEN|NOTIFY|ANALYZE"
    "|VACUUM|REINDEX|CLUSTER|CHECKPOINT|GRANT|REVOKE|COMMENT|LOCK|DECLARE|FETCH|CLOSE|MOVE|DISCARD"
    "|DEALLOCATE|REFRESH"
)
_CHANGES_NAMES = re.compile(
    r"search_path|\bschema\b|writable_schema|schema_version\W*\d", re.IGNORECASE
)
"""Of SET, RESET and PRAGMA: the same name may mean another table afterwards."""
_SETS_PATH = re.compile(r"\bset_config\s*\((?!\s*'(?!search_path))", re.IGNORECASE)
"""Of any other statement; the name of the setting may also be a parameter."""
_TRANSACTION = re.compile("BEGIN|START|COMMIT|END|ROLLBACK|ABORT|SAVEPOINT|RELEASE")
_PLAIN = ("INSERT", "REPLACE", "UPDATE", "DELETE")
_ROWS = re.compile("INSERT|REPLACE|UPDATE|DELETE|MERGE|COPY|TRUNCATE")
_KNOWN_DDL = re.compile(
    r"\W*(?:(?:CREATE|DROP)\s+(?:(?:TEMP|TEMPORARY|UNLOGGED|UNIQUE|MATERIALIZED)\s+)*"
    r"(?:TABLE|INDEX|VIEW|SEQUENCE|TYPE|EXTENSION|ROLE|USER|DATABASE)\b"
    r"|ALTER\s+(?:SEQUENCE|INDEX|ROLE|USER)\b"
    r"|ALTER\s+TABLE\s+(?:IF\s+EXISTS\s+)?(?:ONLY\s+)?\S+\s+(?:ADD|ALTER|DROP|OWNER|VALIDATE)\b)",
    re.IGNORECASE,
)
_WRITES_INSIDE = re.compile(
    r"\b(?:(?:insert\s+(?:or\s+\w+\s+)?|replace\s+|merge\s+)into\b|delete\s+from\b"
    r"|(?<!for )(?<!do )(?<!key )update\s+(?!set\b))",
    re.IGNORECASE,
)
_ESCAPED_NAME = 'u&"'
"""A name in which each letter may be written as its number: it may be any name."""
ROW_NUMBERS = frozenset({"rowid", "oid", "_rowid_"})
"""SQLite's other names of an INTEGER PRIMARY KEY."""
_SHORT = 8192
"""Only statements of this length are remembered: a bulk insert may be megabytes of text."""
_REMEMBERED = 2048

TEMPORARY_TRIGGERS = "SELECT 1 FROM sqlite_temp_master WHERE type = 'trigger' LIMIT 1"
"""Asks a connection of SQLite for triggers that it alone has."""


class Special(Enum):
    """What a row may have instead of a parameter."""

    NULL = "null"
    FILLED = "filled"
    """The column is left out, or DEFAULT."""


Value = Parameter | Special
Row = tuple[Value, ...]
"""One value for each key column."""


@dataclass(frozen=True, slots=True)
class Effect:
    """What a statement does to the keys, for each set of its parameters."""

    unseen: str = ""
    """Why the keys it writes are not known; empty if they are."""
    rows: tuple[Row, ...] = ()
    """The rows that it writes."""
    old: Row | None = None
    """The key of the rows that it deletes, or gives another key, if it names one."""
    loses: bool = False
    """Rows lose their keys."""
    ends_transaction: bool = False
    """It begins, ends or rolls back a transaction, or a part of one."""
    makes_trigger: bool = False
    """It may make a trigger of SQLite that only its connection has."""


NOTHING = Effect()


@dataclass(frozen=True)
class Target:
    """The guarded columns, and all names by which they can be written."""

    dialect: str
    table: str
    columns: tuple[str, ...]
    schema: str | None = None
    also: frozenset[tuple[str | None, str]] = frozenset()
    """Partitions and other tables by which the same rows are written: schema and name."""
    views: frozenset[str] = frozenset()
    """Names through which rows are written in ways that are not read here."""
    parents: frozenset[tuple[str, str]] = frozenset()
    """Tables and columns whose UPDATE cascades to the keys."""
    resetting: frozenset[str] = frozenset()
    """Tables whose DELETE sets keys to their default."""
    defaults: frozenset[str] = frozenset()
    """Columns for which the database has a default."""
    mentioned: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        names = {self.table, *self.views, *self.resetting}
        names |= {name for _, name in self.also} | {name for name, _ in self.parents}
        mentioned = sorted(cut(name).lower() for name in names)
        object.__setattr__(self, "mentioned", tuple(mentioned))

    @property
    def reaches(self) -> frozenset[object]:
        """All by which rows are written other than through the table's own name."""
        return frozenset().union(self.also, self.views, self.parents, self.resetting)

    @property
    def names(self) -> list[tuple[str | None, str]]:
        """By which rows of the table are written: schema and name."""
        return [(self.schema, self.fold(self.table)), *self.also]

    def fold(self, name: str) -> str:
        """A name of the mapping or of the catalogue, for comparison with names in SQL."""
        return cut(name) if self.dialect == "postgresql" else name.lower()


class Reader:
    """Reads statements for one `Target`."""

    def __init__(
        self, target: Target, accepts: Callable[[int, str], bool] = lambda place, cast: True
    ) -> None:
        """`accepts` a parameter for the column of that place that is cast to that type."""
        self.target = target
        self._accepts = accepts
        self._exact = target.dialect == "postgresql"
        self._columns = [target.fold(name) for name in target.columns]
        own = {name for _, name in target.names}
        cascading = {column for parent, column in target.parents if parent in own}
        # A key of one column that refers to itself gets no other value than the one assigned.
        self._cascading = cascading - (set(self._columns) if len(self._columns) == 1 else set())
        """Columns of the table itself whose UPDATE cascades to the keys."""
        self._resets_itself = not own.isdisjoint(target.resetting)
        self.known: dict[str, Effect] = {}
        """What was read already."""

    def read(self, text: str) -> Effect:
        """What the text does; remembered."""
        effect = self.known.get(text)
        if effect is None:
            try:
                effect = self._read(text)
            except Exception:  # noqa: BLE001 - the program's statement must not fail here
                effect = Effect(unseen="a statement that could not be read", loses=True)
            if effect.unseen and not self._exact and "trigger" in text.lower():
                effect = replace(effect, makes_trigger=True)
            if len(text) <= _SHORT:
                if len(self.known) >= _REMEMBERED:
                    self.known.clear()
                self.known[text] = effect
        return effect

    def _mentions(self, text: str) -> bool:
        lowered = text.lower().replace('""', '"').replace("''", "'").replace("%%", "%")
        return _ESCAPED_NAME in lowered or any(name in lowered for name in self.target.mentioned)

    def _read(self, text: str) -> Effect:
        if odd_comments(text):
            return Effect(unseen="a comment in a comment, or a line that ends in its own way")
        match = _FIRST_WORD.match(text)
        word = match[1].upper() if match else ""
        if ";" not in text.rstrip("; \n\t"):
            if not text.strip("; \n\t"):
                return NOTHING
            if word not in _PLAIN:
                return self._by_first_word(word, text)
            if not self._mentions(text):
                return NOTHING
        try:
            if self._exact and _ESCAPED_NAME in text.lower():
                raise Unclear("letters as numbers")
            tokens = tokens_of(text, exact=self._exact)
            found = [self._statement(each) for each in split(tokens, ";") if each]
            if len(found) > 1 and any(each != NOTHING for each in found):
                raise Unclear("others in one text")
            return found[0] if found else NOTHING
        except Unclear as error:
            return Effect(unseen=f"a statement with {error}", loses=word in ("UPDATE", "DELETE"))

    def _by_first_word(self, word: str, text: str) -> Effect:
        unknown = Effect(unseen=f"{word or 'a statement'} that is not understood")
        if self._exact and _SETS_PATH.search(text):
            return unknown
        if _HARMLESS.fullmatch(word):
            renames = word in ("SET", "RESET", "PRAGMA") and _CHANGES_NAMES.search(text)
            return unknown if renames else NOTHING
        if _TRANSACTION.fullmatch(word) and "PREPARED" not in text.upper():
            return Effect(ends_transaction=True)
        mentions = self._mentions(text)
        if word in ("WITH", "EXPLAIN"):
            plain = _ANY_COMMENT.sub(" ", text)
            return unknown if mentions and _WRITES_INSIDE.search(plain) else NOTHING
        if not mentions and (_ROWS.fullmatch(word) or _KNOWN_DDL.match(text)):
            return NOTHING
        return unknown

    # --- one statement ------------------------------------------------------------------------

    def _statement(self, tokens: list[Token]) -> Effect:
        whole = _joined(tokens)
        word = whole.partition(" ")[0].upper()
        if word not in _PLAIN:
            return self._by_first_word(word, whole)
        if not self._mentions(whole):
            return NOTHING
        text = _joined("'" if is_literal(token) else token for token in tokens)
        rest = Tokens(tokens)
        rest.take()
        replaces = word == "REPLACE"
        if rest.skip("or"):
            rest.take()
            replaces = word == "INSERT"
        rest.skip("ignore", "into", "from", "only")
        schema, table = rest.name()
        if len(_WRITES_INSIDE.findall(text)) > 1:
            raise Unclear("another one inside")
        if table in self.target.views:
            raise Unclear("a view")
        if not any(
            table == name and (schema is None or known is None or schema == known)
            for known, name in self.target.names
        ):
            return self._other(word, table, rest)
        if self._resets_itself and (word == "DELETE" or replaces):
            raise Unclear("effect on keys that the table itself sets to their default")
        if word in ("INSERT", "REPLACE"):
            return Effect(rows=tuple(self._inserted(rest)))
        alias = rest.alias("set", "using", "where", "returning")
        if word == "DELETE":
            return Effect(old=self._equal(rest, {table, alias}), loses=True)
        return self._updated(rest, {table, alias})

    def _other(self, word: str, table: str, rest: Tokens) -> Effect:
        """A write to another table may reach the keys by a foreign key that cascades."""
        if word == "DELETE" and table in self.target.resetting:
            raise Unclear(f"effect on keys that `{table}` sets to their default")
        columns = {column for parent, column in self.target.parents if parent == table}
        if columns and word == "UPDATE":
            rest.alias("set")
            assigned = {name for name, _ in rest.assignments("from", "where", "returning")}
            if not assigned.isdisjoint(columns | ROW_NUMBERS):
                raise Unclear(f"an UPDATE of `{table}` that cascades to the keys")
        elif columns and word != "DELETE":
            rest.before("do", "replace")
            if word == "REPLACE" or rest.next:
                raise Unclear(f"an upsert of `{table}`, which cascades to the keys")
        return NOTHING

    def _inserted(self, rest: Tokens) -> Iterator[Row]:
        rest.alias("default", "values", "select", "overriding")
        if rest.skip("default"):
            yield tuple(Special.FILLED for _ in self._columns)
            return
        names = [only_name(piece) for piece in rest.group()]
        if not self._exact and not ROW_NUMBERS.isdisjoint(names):
            raise Unclear("a key under another name")
        if rest.skip("select"):
            if rest.skip("*"):
                rest.expect("from", "unnest")
                yield self._row(names, [_unnested(each) for each in rest.group()])
            else:
                yield self._row(names, _selected(rest))
                return
        elif rest.skip("values"):
            yield self._row(names, rest.group())
            while rest.skip(","):
                yield self._row(names, rest.group())
        else:
            raise Unclear("rows that are not plain values")
        self._upserted(rest)

    def _row(self, names: Sequence[str], values: Sequence[list[Token]]) -> Row:
        if len(values) != len(names):
            raise Unclear("another number of values than columns")
        if len(set(names)) < len(names):  # SQLite takes the first
            raise Unclear("a column that is named twice")
        given = dict(zip(names, values, strict=True))
        return tuple(
            self._value(given[column], place) if column in given else Special.FILLED
            for place, column in enumerate(self._columns)
        )

    def _value(self, tokens: Sequence[Token], place: int) -> Value:
        value = _value(tokens)
        if isinstance(value, Parameter) and not self._accepts(place, value.cast):
            raise Unclear(f"a parameter cast to {value.cast}")
        return value

    def _upserted(self, rest: Tokens) -> None:
        """What happens to a row in the way must not give it another key than the one inserted."""
        if rest.next in ("", "returning"):
            return
        rest.expect("on", "conflict")
        rest.before("do")
        rest.expect("do")
        if rest.skip("nothing"):
            return
        rest.expect("update")
        for name, value in rest.assignments("where", "returning"):
            if name in self._columns or name in ROW_NUMBERS:
                is_same = len(value) == 3 and value[:2] == ["excluded", "."]
                if not is_same or name_of(value[2]) != name:
                    raise Unclear("an upsert that changes the key of the row in its way")
            if name in self._cascading:
                raise Unclear("an upsert that cascades to the keys")

    def _updated(self, rest: Tokens, names: set[str]) -> Effect:
        given = dict(rest.assignments("from", "where", "returning"))
        if not self._exact and not ROW_NUMBERS.isdisjoint(given):
            raise Unclear("a key under another name")
        if not self._cascading.isdisjoint(given):
            raise Unclear("an UPDATE of the table itself that cascades to the keys")
        if given.keys().isdisjoint(self._columns):
            return NOTHING
        old = self._equal(rest, names)
        row: list[Value] = []
        for place, column in enumerate(self._columns):
            if column in given:
                row.append(self._value(given[column], place))
            elif old is not None:
                row.append(old[place])
            else:
                raise Unclear("a part of the key of rows that are not named")
        if Special.NULL in row:
            return Effect(old=old, loses=True)
        if Special.FILLED in row:
            raise Unclear("DEFAULT as key")
        return Effect(rows=(tuple(row),), old=old, loses=True)

    def _equal(self, rest: Tokens, names: set[str]) -> Row | None:
        """The parameters that the key columns must equal for a row to be meant."""
        if not rest.skip("where"):
            return None
        terms = rest.before("or", "case", "between", "returning")
        if rest.next not in ("", "returning"):
            return None
        found = dict(filter(None, (_equality(term, names) for term in split(terms, "and"))))
        row = [found.get(column) for column in self._columns]
        accepted = tuple(
            value for place, value in enumerate(row)
            if value is not None and self._accepts(place, value.cast)
        )  # fmt: skip
        return accepted if len(accepted) == len(row) else None


def odd_comments(text: str) -> bool:
    """Whether it has comments that end elsewhere in PostgreSQL than in SQLite."""
    nested = "/*" in text and any("/*" in each[2:] for each in _COMMENT.findall(text))
    return nested or ("\r" in text and _ENDED_BY_RETURN.search(text) is not None)


def _joined(tokens: Iterable[Token]) -> str:
    return " ".join(token if isinstance(token, str) else "?" for token in tokens)


def _equality(term: list[Token], names: set[str]) -> tuple[str, Parameter] | None:
    """The column and the parameter of `table.column = parameter`, either way round."""
    sides = split(term, "=")
    if len(sides) != 2 or not all(sides):
        return None
    column, value = reversed(sides) if isinstance(sides[0][0], Parameter) else sides
    if any(map(is_literal, column)):
        return None  # here it is no name
    try:
        parts, found = [name_of(token) for token in column[::2]], _value(value)
    except Unclear:
        return None
    is_name = len(column) in (1, 3, 5) and all(token == "." for token in column[1::2])
    if not is_name or not (len(parts) == 1 or parts[-2] in names):
        return None
    return (parts[-1], found) if isinstance(found, Parameter) else None


def _value(tokens: Sequence[Token]) -> Value:
    if tokens and isinstance(tokens[0], Parameter):
        if len(tokens) == 1:
            return tokens[0]
        if tokens[1] == "::":
            listed = tokens[0].is_list
            cast = " ".join(str(token).removeprefix('"') for token in tokens[2:])
            return Parameter(tokens[0].place, re.sub(r"\s*([(),.])\s*", r"\1", cast), listed)
    if len(tokens) == 1 and tokens[0] in ("null", "default"):
        return Special.NULL if tokens[0] == "null" else Special.FILLED
    raise Unclear("an expression as key")


def _selected(rest: Tokens) -> list[list[Token]]:
    """The values of `SELECT p0::INTEGER, p1 FROM (VALUES (%s, %s)) AS t(p0, p1)`, which SQLAlchemy
    makes in order to know which row got which key."""
    wanted = split(rest.before("from"), ",")
    rest.expect("from")
    inner = Tokens(rest.group()[0])
    inner.expect("values")
    values = inner.group()
    rest.skip("as")
    if inner.next:
        raise Unclear("rows of a SELECT")
    name_of(rest.take())
    given = dict(zip(map(only_name, rest.group()), values, strict=False))
    found = []
    for name, *cast in wanted:
        value = given.get(str(name).removeprefix('"'), [name])
        found.append(value if value[1:] == cast else [*value, *cast])
    return found


def _unnested(tokens: list[Token]) -> list[Token]:
    """Of Django's bulk insert for PostgreSQL: each column is one parameter, a list, as in
    `(%s)::integer[]`, or without the parenthesis."""
    plain = [token for token in tokens if token not in ("(", ")", "[", "]")]
    if len(tokens) - len(plain) in (2, 4) and isinstance(plain[0], Parameter):
        return [Parameter(plain[0].place, is_list=True), *plain[1:]]
    return tokens
