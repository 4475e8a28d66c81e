"""`Reader`: which keys a statement writes, read from the text that is sent to the driver.

The text names tables and columns as the database knows them, whoever made it: SQLAlchemy's
compiler, Django, or a program. An INSERT or UPDATE of plain values says which parameters hold keys.
Everything else that may write to the table is `unseen`: a key that is not added is a wrong answer,
a doubt only costs queries until the next build.

Not seen are writes that the text does not show: functions called by SELECT, and what triggers and
rules do; `guard/schema` refuses tables that have such.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

_TOKEN = re.compile(
    r"""(?P<space>\s+|--[^\n]*|/\*.*?\*/)
    |(?P<string>'(?:[^']|'')*')
    |(?P<quoted>"(?:[^"]|"")*"|`[^`]*`)
    |(?P<parameter>%\([^)]*\)[sbt]|%[sbt]\b|\?|\$\d+|(?<!:):[A-Za-z_]\w*)
    |(?P<word>[^\W\d][\w$]*)
    |(?P<number>\d[\w.]*)
    |(?P<sign>::|.)""",
    re.VERBOSE | re.DOTALL,
)
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_ANY_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
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
_TRANSACTION = re.compile("BEGIN|START|COMMIT|END|ROLLBACK|ABORT|SAVEPOINT|RELEASE")
_ROWS = re.compile("INSERT|REPLACE|UPDATE|DELETE|MERGE|COPY|TRUNCATE|WITH|EXPLAIN")
_DDL = re.compile("CREATE|ALTER|DROP")
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
_ROW_NUMBERS = frozenset({"rowid", "oid", "_rowid_"})
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


@dataclass(frozen=True, slots=True)
class Parameter:
    """A value that the program gives."""

    place: int | str
    cast: str = ""
    """The type in `%s::NUMERIC(10, 2)`, in lower case."""
    is_list: bool = False
    """It is a list with the values of many rows."""


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
        object.__setattr__(self, "mentioned", tuple(sorted(name.lower() for name in names)))

    @property
    def reaches(self) -> frozenset[object]:
        """All by which rows are written other than through the table's own name."""
        return frozenset().union(self.also, self.views, self.parents, self.resetting)

    def fold(self, name: str) -> str:
        """A name of the mapping or of the catalogue, for comparison with names in SQL."""
        return name if self.dialect == "postgresql" else name.lower()


class _Unclear(Exception):
    """The text has something in it that is not read here."""


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    """Of words and quoted names, the name as the database compares it."""
    place: int | str = ""

    def says(self, *words: str) -> bool:
        return self.kind == "word" and self.text.lower() in words

    def is_sign(self, sign: str) -> bool:
        return self.kind == "sign" and self.text == sign


class Reader:
    """Reads statements for one `Target`."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._columns = [target.fold(name) for name in target.columns]
        own = {name for _, name in self._names()}
        cascading = {column for parent, column in target.parents if parent in own}
        # A key of one column that refers to itself gets no other value than the one assigned.
        self._cascading = cascading - (set(self._columns) if len(self._columns) == 1 else set())
        """Columns of the table itself whose UPDATE cascades to the keys."""
        self._resets_itself = not own.isdisjoint(target.resetting)
        self._known: dict[str, Effect] = {}

    def read(self, text: str) -> Effect:
        """What the text does; remembered."""
        known = self._known.get(text)
        if known is None:
            try:
                known = self._read(text)
            except Exception:  # noqa: BLE001 - the program's statement must not fail here
                known = Effect(unseen="a statement that could not be read", loses=True)
            if known.unseen and self.target.dialect == "sqlite" and "trigger" in text.lower():
                known = replace(known, makes_trigger=True)
            if len(text) <= _SHORT:
                if len(self._known) >= _REMEMBERED:
                    self._known.clear()
                self._known[text] = known
        return known

    def _read(self, text: str) -> Effect:
        if "/*" in text and any("/*" in each[2:] for each in _COMMENT.findall(text)):
            return Effect(unseen="a comment in a comment")  # nested only in PostgreSQL
        match = _FIRST_WORD.match(text)
        word = match[1].upper() if match else ""
        lowered = text.lower().replace('""', '"').replace("%%", "%")
        mentions = _ESCAPED_NAME in lowered or any(
            name in lowered for name in self.target.mentioned
        )
        if ";" not in text.rstrip("; \n\t"):
            if not word and not text.strip("; \n\t"):
                return NOTHING
            if word not in ("INSERT", "REPLACE", "UPDATE", "DELETE"):
                return self._by_first_word(word, text, mentions=mentions)
            if not mentions:
                return NOTHING
        try:
            found = [self._statement(each) for each in _statements(self._tokens(text))]
        except _Unclear as error:
            return Effect(unseen=f"a statement with {error}", loses=word in ("UPDATE", "DELETE"))
        if len(found) == 1:
            return found[0]
        unseen = next((each.unseen for each in found if each.unseen), "")
        if any(each.rows for each in found):
            unseen = unseen or "several statements in one"
        return Effect(
            unseen=unseen,
            loses=any(each.loses for each in found),
            ends_transaction=any(each.ends_transaction for each in found),
        )

    def _by_first_word(self, word: str, text: str, *, mentions: bool) -> Effect:
        unknown = Effect(unseen=f"{word or 'a statement'} that is not understood")
        if _HARMLESS.fullmatch(word):
            renames = word in ("SET", "RESET", "PRAGMA") and _CHANGES_NAMES.search(text)
            return unknown if renames else NOTHING
        if _TRANSACTION.fullmatch(word) and "PREPARED" not in text.upper():
            return Effect(ends_transaction=True)
        if word in ("WITH", "EXPLAIN"):
            plain = _ANY_COMMENT.sub(" ", text)
            return unknown if mentions and _WRITES_INSIDE.search(plain) else NOTHING
        if _ROWS.fullmatch(word):
            return unknown if mentions else NOTHING
        if _DDL.fullmatch(word) and not mentions and _KNOWN_DDL.match(text):
            return NOTHING
        return unknown

    def _tokens(self, text: str) -> list[_Token]:
        exact = self.target.dialect == "postgresql"
        if exact and _ESCAPED_NAME in text.lower():
            raise _Unclear("letters as numbers")
        found: list[_Token] = []
        styles: set[str] = set()
        positional = 0
        for match in _TOKEN.finditer(text):
            kind, piece = match.lastgroup or "", match[0]
            place: int | str = ""
            if kind == "space":
                continue
            if kind == "parameter" and piece == "?" and exact:
                kind = "sign"  # an operator of PostgreSQL
            if kind == "parameter":
                if piece[0] in "?%$":
                    styles.add(piece[0])
                if piece[:2] == "%(":
                    place = piece[2:-2]
                elif piece[0] == "$":
                    place = int(piece[1:]) - 1
                elif piece[0] == ":":
                    place = piece[1:]
                else:
                    place, positional = positional, positional + 1
            elif kind == "quoted":
                piece = piece[1:-1].replace('""', '"').replace("%%", "%")
                piece = piece if exact else piece.lower()
            elif kind == "word":
                piece = piece.lower()
            elif (kind == "string" and ("\\" in piece or "%" in piece)) or piece in ("$", "'", '"'):
                raise _Unclear("a literal that is not plain")
            found.append(_Token(kind, piece, place))
        if len(styles) > 1 or ("$" in styles and not exact):
            raise _Unclear("parameters of several kinds")
        return found

    # --- one statement ------------------------------------------------------------------------

    def _statement(self, tokens: list[_Token]) -> Effect:
        word = tokens[0].text.upper()
        text = " ".join(token.text for token in tokens)
        mentions = any(name in text.lower() for name in self.target.mentioned)
        if word not in ("INSERT", "REPLACE", "UPDATE", "DELETE"):
            return self._by_first_word(word, text, mentions=mentions)
        if not mentions:
            return NOTHING
        cursor = _Cursor(tokens)
        cursor.next()
        cursor.skip_pair("or")
        cursor.skip("ignore", "into", "from", "only")
        schema, table = cursor.name()
        if len(_WRITES_INSIDE.findall(text)) > 1:
            raise _Unclear("another one inside")
        if table in self.target.views:
            raise _Unclear("a view")
        if not self.is_ours(schema, table):
            return self._other(word, table, cursor)
        replaces = word == "REPLACE" or (word == "INSERT" and tokens[1].says("or"))
        if self._resets_itself and (word == "DELETE" or replaces):
            raise _Unclear("effect on keys that the table itself sets to their default")
        if word in ("INSERT", "REPLACE"):
            return Effect(rows=tuple(self._inserted(cursor)))
        alias = cursor.alias("set", "using", "where", "returning")
        if word == "DELETE":
            return Effect(old=self._equal(cursor, {table, alias}), loses=True)
        return self._updated(cursor, {table, alias})

    def is_ours(self, schema: str | None, table: str) -> bool:
        """Whether the name may mean the guarded table, or one that has rows of it."""
        return any(
            table == name and (schema is None or known is None or schema == known)
            for known, name in self._names()
        )

    def _names(self) -> list[tuple[str | None, str]]:
        """By which rows of the table are written: schema and name."""
        ours = self.target
        return [(ours.schema, ours.fold(ours.table)), *ours.also]

    def _other(self, word: str, table: str, cursor: _Cursor) -> Effect:
        """A write to another table may reach the keys by a foreign key that cascades."""
        ours = self.target
        if word == "DELETE" and table in ours.resetting:
            raise _Unclear(f"effect on keys that `{table}` sets to their default")
        columns = {column for parent, column in ours.parents if parent == table}
        if not columns:
            return NOTHING
        if word == "UPDATE":
            cursor.alias("set")
            assigned = cursor.assignments("from", "where", "returning")
        else:
            start = cursor.find("do", "replace") if word == "INSERT" else 0
            if start is None:
                return NOTHING
            raise _Unclear(f"an upsert of `{table}`, which cascades to the keys")
        if any(name in columns | _ROW_NUMBERS for name, _ in assigned):
            raise _Unclear(f"an UPDATE of `{table}` that cascades to the keys")
        return NOTHING

    def _inserted(self, cursor: _Cursor) -> Iterator[Row]:
        cursor.alias("default", "values", "select", "overriding")
        if cursor.skip("default"):
            yield tuple(Special.FILLED for _ in self._columns)
            return
        names = [_only_name(piece) for piece in cursor.parenthesis()]
        if not _ROW_NUMBERS.isdisjoint(names) and self.target.dialect == "sqlite":
            raise _Unclear("a key under another name")
        if cursor.skip("select"):
            if cursor.peek().is_sign("*"):
                yield self._unnested(cursor, names)
            else:
                yield self._row(names, _selected(cursor))
                return
        elif cursor.skip("values"):
            while True:
                values = cursor.parenthesis()
                if len(values) != len(names):
                    raise _Unclear("another number of values than columns")
                yield self._row(names, values)
                if not cursor.skip_sign(","):
                    break
        else:
            raise _Unclear("rows that are not plain values")
        self._upserted(cursor)

    def _row(self, names: Sequence[str], values: Sequence[list[_Token]]) -> Row:
        given = dict(zip(names, values, strict=True))
        return tuple(
            _value(given[column]) if column in given else Special.FILLED for column in self._columns
        )

    def _unnested(self, cursor: _Cursor, names: Sequence[str]) -> Row:
        """Django's bulk insert for PostgreSQL: each column is one parameter, a list."""
        if not (cursor.skip_sign("*") and cursor.skip("from") and cursor.skip("unnest")):
            raise _Unclear("rows of a SELECT")
        given = dict(zip(names, cursor.parenthesis(), strict=False))
        row: list[Value] = []
        for column in self._columns:
            tokens = given.get(column)
            # As in `(%s)::integer[]`, or without the parenthesis.
            plain = [each for each in tokens or () if each.text not in "()[]"]
            if tokens is None:
                row.append(Special.FILLED)
            elif len(tokens) - len(plain) in (2, 4) and tokens[-1].is_sign("]"):
                value = _value(plain)
                if not isinstance(value, Parameter):
                    raise _Unclear("an expression as key")
                row.append(Parameter(value.place, value.cast, is_list=True))
            else:
                raise _Unclear("an expression as key")
        return tuple(row)

    def _upserted(self, cursor: _Cursor) -> None:
        """What happens to a row in the way must not give it another key than the one inserted."""
        if cursor.ended() or cursor.peek().says("returning"):
            return
        if not cursor.skip("on") or not cursor.skip("conflict"):
            raise _Unclear("something after its values")
        start = cursor.find("do")
        if start is None:
            raise _Unclear("an upsert of an unknown kind")
        cursor.at = start + 1
        if cursor.skip("nothing"):
            return
        cursor.expect("update")
        for name, value in cursor.assignments("where", "returning"):
            same = [_Token("word", "excluded"), _Token("sign", "."), _Token("word", name)]
            is_same = [each.text for each in value] == [each.text for each in same]
            if name in (*self._columns, *_ROW_NUMBERS) and not is_same:
                raise _Unclear("an upsert that changes the key of the row in its way")
            if name in self._cascading:
                raise _Unclear("an upsert that cascades to the keys")

    def _updated(self, cursor: _Cursor, names: set[str]) -> Effect:
        given = dict(cursor.assignments("from", "where", "returning"))
        if not _ROW_NUMBERS.isdisjoint(given) and self.target.dialect == "sqlite":
            raise _Unclear("a key under another name")
        if not self._cascading.isdisjoint(given):
            raise _Unclear("an UPDATE of the table itself that cascades to the keys")
        if given.keys().isdisjoint(self._columns):
            return NOTHING
        old = self._equal(cursor, names)
        row: list[Value] = []
        for number, column in enumerate(self._columns):
            if column in given:
                row.append(_value(given[column]))
            elif old is not None:
                row.append(old[number])
            else:
                raise _Unclear("a part of the key of rows that are not named")
        if Special.NULL in row:
            return Effect(old=old, loses=True)
        if Special.FILLED in row:
            raise _Unclear("DEFAULT as key")
        return Effect(rows=(tuple(row),), old=old, loses=True)

    def _equal(self, cursor: _Cursor, names: set[str]) -> Row | None:
        """The parameters that the key columns must equal for a row to be meant."""
        if not cursor.skip("where"):
            return None
        found: dict[str, Parameter] = {}
        terms: list[list[_Token]] = [[]]
        depth = 0
        while not cursor.ended():
            token = cursor.next()
            depth += token.is_sign("(") - token.is_sign(")")
            if not depth and token.says("or", "case", "between"):
                return None
            if not depth and token.says("returning"):
                break
            if not depth and token.says("and"):
                terms.append([])
            else:
                terms[-1].append(token)
        for term in terms:
            named = _equality(term, names)
            if named is not None:
                found[named[0]] = named[1]
        if any(column not in found for column in self._columns):
            return None
        return tuple(found[column] for column in self._columns)


class _Cursor:
    """A place in a list of tokens."""

    def __init__(self, tokens: list[_Token]) -> None:
        self.tokens = tokens
        self.at = 0

    def ended(self) -> bool:
        return self.at >= len(self.tokens)

    def peek(self) -> _Token:
        return _END if self.ended() else self.tokens[self.at]

    def next(self) -> _Token:
        token = self.peek()
        self.at += 1
        return token

    def skip(self, *words: str) -> bool:
        """Passes over all of these words that come now; whether there was any."""
        before = self.at
        while self.peek().says(*words):
            self.at += 1
        return self.at > before

    def skip_pair(self, word: str) -> None:
        if self.peek().says(word):
            self.at += 2

    def skip_sign(self, sign: str) -> bool:
        found = self.peek().is_sign(sign)
        self.at += found
        return found

    def expect(self, word: str) -> None:
        if not self.skip(word):
            raise _Unclear(f"no {word.upper()} where it should be")

    def name(self) -> tuple[str | None, str]:
        """A schema, or None, and a name."""
        parts = [self._part()]
        while self.skip_sign("."):
            parts.append(self._part())
        self.skip_sign("*")
        return (parts[-2] if len(parts) > 1 else None), parts[-1]

    def _part(self) -> str:
        token = self.next()
        if token.kind not in ("word", "quoted"):
            raise _Unclear("no name where one should be")
        return token.text

    def alias(self, *ends: str) -> str:
        """The other name that a table has in this statement; empty if it has none."""
        if self.skip("as"):
            return self._part()
        if self.peek().kind in ("word", "quoted") and not self.peek().says(*ends):
            return self._part()
        return ""

    def parenthesis(self) -> list[list[_Token]]:
        """What commas separate in the parenthesis that opens here."""
        if not self.skip_sign("("):
            raise _Unclear("no parenthesis where one should be")
        pieces: list[list[_Token]] = [[]]
        depth = 1
        while True:
            token = self.next()
            if token is _END:
                raise _Unclear("an open parenthesis")
            depth += (token.text in "([") - (token.text in ")]") if token.kind == "sign" else 0
            if not depth:
                return pieces
            if depth == 1 and token.is_sign(","):
                pieces.append([])
            else:
                pieces[-1].append(token)

    def find(self, *words: str) -> int | None:
        """Where one of these words comes next, outside of parentheses."""
        depth = 0
        for at in range(self.at, len(self.tokens)):
            token = self.tokens[at]
            depth += token.is_sign("(") - token.is_sign(")")
            if not depth and token.says(*words):
                return at
        return None

    def assignments(self, *ends: str) -> list[tuple[str, list[_Token]]]:
        """Columns and what they are set to."""
        self.expect("set")
        end = self.find(*ends)
        pieces = _split(self.tokens[self.at : end])
        self.at = len(self.tokens) if end is None else end
        found = []
        for piece in pieces:
            equals = next((i for i, token in enumerate(piece) if token.is_sign("=")), 0)
            if not equals or piece[0].kind == "sign":
                raise _Unclear("no plain assignment")
            found.append((_Cursor(piece[:equals]).name()[1], piece[equals + 1 :]))
        return found


_END = _Token("end", "")


def _statements(tokens: Sequence[_Token]) -> list[list[_Token]]:
    pieces: list[list[_Token]] = [[]]
    for token in tokens:
        if token.is_sign(";"):
            pieces.append([])
        else:
            pieces[-1].append(token)
    return [piece for piece in pieces if piece]


def _split(tokens: Sequence[_Token]) -> list[list[_Token]]:
    return _Cursor([_Token("sign", "("), *tokens, _Token("sign", ")")]).parenthesis()


def _only_name(piece: list[_Token]) -> str:
    if len(piece) != 1 or piece[0].kind not in ("word", "quoted"):
        raise _Unclear("a column that is not plain")
    return piece[0].text


def _value(tokens: Sequence[_Token]) -> Value:
    first = tokens[0] if tokens else _END
    if first.kind == "parameter":
        if len(tokens) == 1:
            return Parameter(first.place)
        if tokens[1].is_sign("::"):
            cast = " ".join(token.text for token in tokens[2:])
            return Parameter(first.place, re.sub(r"\s*([(),.])\s*", r"\1", cast).lower())
    if len(tokens) == 1 and first.says("null"):
        return Special.NULL
    if len(tokens) == 1 and first.says("default"):
        return Special.FILLED
    raise _Unclear("an expression as key")


def _selected(cursor: _Cursor) -> list[list[_Token]]:
    """The values of `SELECT p0::INTEGER, p1 FROM (VALUES (%s, %s)) AS t(p0, p1)`, which SQLAlchemy
    makes in order to know which row got which key."""
    end = cursor.find("from")
    wanted = _split(cursor.tokens[cursor.at : end])
    cursor.at = len(cursor.tokens) if end is None else end + 1
    inner = _Cursor(cursor.parenthesis()[0]) if cursor.peek().is_sign("(") else _Cursor([])
    values = inner.parenthesis() if inner.skip("values") else []
    cursor.skip("as")
    if not inner.ended() or cursor.next().kind != "word":
        raise _Unclear("rows of a SELECT")
    names = [_only_name(piece) for piece in cursor.parenthesis()]
    given = dict(zip(names, values, strict=False))
    return [given.get(piece[0].text, piece) for piece in wanted]


def _equality(term: list[_Token], names: set[str]) -> tuple[str, Parameter] | None:
    """The column and the parameter of `table.column = parameter`, either way round."""
    at = next((i for i, token in enumerate(term) if token.is_sign("=")), 0)
    if not at:
        return None
    sides = [term[:at], term[at + 1 :]]
    if sides[0] and sides[0][0].kind == "parameter":
        sides.reverse()
    column, value = sides
    name = column[-1].text if column and column[-1].kind in ("word", "quoted") else ""
    qualified = len(column) == 1 or (len(column) == 3 and column[0].text in names)
    longer = len(column) == 5 and column[2].text in names
    if not name or not (qualified or longer):
        return None
    try:
        found = _value(value)
    except _Unclear:
        return None
    return (name, found) if isinstance(found, Parameter) else None
