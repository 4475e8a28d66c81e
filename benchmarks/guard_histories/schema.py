"""A random schema: the DDL that the database gets, and the tables and classes of the programs.

A `Schema` is plain data and prints as such. What the mapping tells of it and what the database has
may differ: `"undeclared"` is in the database alone. `Mapping` makes the objects of SQLAlchemy.
"""
# ruff: noqa: E501  a line of SQL is easier to read whole

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg
from sqlalchemy.dialects import sqlite
from sqlalchemy.engine import Dialect
from sqlalchemy.orm import registry

from benchmarks.guard_histories.values import (
    BY_NAME,
    CLIENT,
    KINDS,
    SERVER,
    TRIGGER,
    Kind,
    literal,
    raw,
)

DIALECTS: dict[str, Dialect] = {"sqlite": sqlite.dialect(), "postgresql": pg.dialect()}  # type: ignore[no-untyped-call]
INTEGERS, STRINGS = ("integer", "small", "big"), ("string", "text", "unicode", "variant")


@dataclass(frozen=True, slots=True)
class Col:
    """One guarded column."""

    logical: str
    """`k` or `j`: what steps call it."""
    name: str
    key: str
    kind: str
    nullable: bool = True
    unique: bool = False
    client: str | None = None
    """How the mapping fills it: `scalar`, `callable`, `sql`, `onupdate`."""
    server: str | None = None
    """A server default: `declared` or `undeclared`; or one of a `domain` or a `sequence`."""
    generated: str | None = None
    cascade: str | None = None
    """ON UPDATE CASCADE from a parent table, `declared` or `undeclared`; from a parent of the parent
    (`deep`); from the table itself (`self`); or ON DELETE SET DEFAULT (`default`)."""

    @property
    def of(self) -> Kind:
        return BY_NAME[self.kind]


@dataclass(frozen=True, slots=True)
class Schema:
    """What is generated."""

    database: str
    table: str
    columns: tuple[Col, ...]
    namespace: str | None = None
    primary: bool = False
    """The guarded columns are the primary key."""
    orm: bool = True
    """Guarded by a mapped attribute, else by the column of a table."""
    trigger: str | None = None
    """`more`, `rewrite` or `from_u`."""
    rule: bool = False
    view: bool = False
    partitioned: bool = False
    inherited: bool = False
    wal: bool = False
    renamed: bool = False
    """The attributes of the class have names of their own."""

    @property
    def dialect(self) -> Dialect:
        return DIALECTS[self.database]

    @property
    def numbered(self) -> bool:
        """The database makes keys: an autoincrement column is guarded."""
        return self.primary and len(self.columns) == 1 and self.columns[0].kind == "integer"

    @property
    def hazards(self) -> list[str]:
        """What writes keys beside the client."""
        found = [f"{word} {getattr(col, word)}" for col in self.columns
                 for word in ("server", "generated", "cascade") if getattr(col, word)]  # fmt: skip
        words = ("trigger", "rule", "view", "partitioned", "inherited")
        return found + [word for word in words if getattr(self, word)]

    def quote(self, name: str) -> str:
        return self.dialect.identifier_preparer.quote_identifier(name)

    def named(self, table: str) -> str:
        """A table in SQL."""
        prefix = f"{self.quote(self.namespace)}." if self.namespace else ""
        return prefix + self.quote(table)

    def constant(self, col: Col, index: int) -> str:
        """A value of a column as SQL text."""
        return literal(raw(col.of, col.of.values[index], self.dialect), self.dialect)


def draw_schema(
    rnd: random.Random, database: str, kinds: tuple[Kind, ...] = KINDS, hazard: str | None = None
) -> Schema:
    """A schema with few hazards: most are guarded and READY."""
    kinds = tuple(kind for kind in kinds if kind.database in (None, database))
    weights = [kind.weight for kind in kinds]
    composite = rnd.random() < 0.12
    primary = rnd.random() < 0.25
    wanted = hazard
    hazard = rnd.choices(
        [None, "server", "generated", "cascade", "trigger", "rule", "view", "partitioned",
         "inherited"],
        [58, 9, 5, 7, 6, 3, 4, 4, 4],
    )[0]  # fmt: skip
    sqlite_ = database == "sqlite"
    if (sqlite_ and hazard in ("rule", "partitioned", "inherited")) or composite:
        hazard = None
    if wanted:
        hazard, composite = wanted, False
    columns = []
    for logical in ("k", "j")[: 1 + composite]:
        kind = rnd.choices(kinds, weights)[0]
        words: dict[str, Any] = {}
        if hazard == "generated":
            kind = BY_NAME[rnd.choice(INTEGERS + STRINGS)]
            primary = False
        elif hazard == "cascade" and kind.name in (
            "json",
            "jsonb",
            "array",
            "boolean",
            "inet",
            "bit",
        ):
            kind = BY_NAME["string"]
        name = logical if rnd.random() < 0.75 else rnd.choice(
            [logical.upper(), f"{logical} nr", f"Käse{logical}", "order" if logical == "k" else "group"])  # fmt: skip
        if hazard in ("server", "generated", "cascade"):
            words[hazard] = rnd.choice(["declared", "undeclared", "undeclared"])
            if hazard == "cascade" and rnd.random() < 0.4:
                words[hazard] = rnd.choice(["deep", "self", "default"])
            if hazard == "server" and rnd.random() < 0.3 and not sqlite_ and not primary:
                words[hazard] = rnd.choice(["domain", "sequence"])
            if words[hazard] == "self" and primary:
                words[hazard] = "deep"
            if words[hazard] in ("self", "sequence"):
                kind = BY_NAME["integer"]
        elif rnd.random() < 0.12:
            words["client"] = rnd.choice(["scalar", "callable", "sql", "onupdate"])
        key = f"{logical}_key" if rnd.random() < 0.12 else name
        columns.append(Col(logical, name, key, kind.name, not primary,
                           not primary and not composite and rnd.random() < 0.35, **words))  # fmt: skip
    partitioned = hazard == "partitioned"
    return Schema(
        database,
        rnd.choices(["t", "T", "Tab le", "user"], [80, 8, 6, 6])[0],
        tuple(columns),
        (("aux" if sqlite_ else "shop") if rnd.random() < 0.12 else None),
        primary and not partitioned,
        rnd.random() < 0.55,
        rnd.choice(["more", "rewrite", "from_u"]) if hazard == "trigger" else None,
        hazard == "rule",
        hazard == "view",
        partitioned,
        hazard == "inherited",
        sqlite_ and rnd.random() < 0.4,
        renamed=rnd.random() < 0.2,
    )


def ddl(schema: Schema) -> list[str]:
    """What makes the tables in an empty database, and fills `u` and the parent."""
    s, q = schema, schema.quote
    made: list[str] = []
    if s.namespace and s.database == "postgresql":
        made.append(f"CREATE SCHEMA {q(s.namespace)}")
    for col in s.columns:
        made += [text for text in col.of.before if text not in made]
    types = {col: col.of.compiled(s.dialect) for col in s.columns}
    for col in s.columns:
        if col.server == "domain":
            made.append(f"CREATE DOMAIN filled AS {types[col]} DEFAULT {s.constant(col, SERVER)}")
            types[col] = "filled"
        if col.server == "sequence":
            made.append("CREATE SEQUENCE numbers START 77")
    names = ", ".join(q(col.name) for col in s.columns)
    if any(col.cascade for col in s.columns):
        made += _parents(s, types[s.columns[0]])
    made.append(f"CREATE TABLE {s.named(s.table)} ({', '.join(_columns(s, types))})"
                + (" PARTITION BY RANGE (note)" if s.partitioned else ""))  # fmt: skip
    of_u = ", ".join(f"{q(col.name)} {types[col]}" for col in s.columns)
    made.append(f"CREATE TABLE {s.named('u')} (id INTEGER, {of_u}, note INTEGER)")
    if not any(col.cascade for col in s.columns):
        for number in range(2):
            row = ", ".join(s.constant(col, number * 3 % len(col.of.values)) for col in s.columns)
            made.append(
                f"INSERT INTO {s.named('u')} (id, {names}, note) VALUES ({900 + number}, {row}, 1)"
            )
    made += _partitions(s) + _beside(s)
    return made


def _parents(s: Schema, type_: str) -> list[str]:
    """The table that the guarded column refers to, and the one above it."""
    col, q, above, made = s.columns[0], s.quote, "", list[str]()
    values = [i for i in (*range(len(col.of.values) - 3), SERVER) if i % 4 != 3]
    for name in ("grand", "parent") if col.cascade == "deep" else ("parent",):
        made.append(f"CREATE TABLE {s.named(name)} (pid {type_} PRIMARY KEY{above}, note INTEGER)")
        made += [f"INSERT INTO {s.named(name)} VALUES ({s.constant(col, index)}, {index}) ON CONFLICT DO NOTHING"
                 for index in values]  # fmt: skip
        target = q(name) if s.database == "sqlite" else s.named(name)
        above = f" REFERENCES {target} (pid) ON UPDATE CASCADE ON DELETE CASCADE"
    return made


def _columns(s: Schema, types: dict[Col, str]) -> list[str]:
    q = s.quote
    number = {"sqlite": "INTEGER", "postgresql": "INTEGER GENERATED BY DEFAULT AS IDENTITY"}[
        s.database
    ]
    if s.partitioned:
        number = "SERIAL"
    if s.primary:
        parts = ["id INTEGER"]
    else:
        parts = [f"id {number}" + ("" if s.partitioned else " PRIMARY KEY")]
    for col in s.columns:
        text = f"{q(col.name)} {number if s.numbered else types[col]}"
        if s.numbered:
            text += " PRIMARY KEY"
        elif not col.nullable:
            text += " NOT NULL"
        if col.unique and not s.partitioned:
            text += " UNIQUE"
        if col.server == "sequence":
            text += " DEFAULT nextval('numbers')"
        elif (col.server and col.server != "domain") or col.cascade == "default":
            text += f" DEFAULT {s.constant(col, SERVER)}" if not s.numbered else ""
        if col.generated:
            stored = " STORED" if s.database == "postgresql" else ""
            text += f" GENERATED ALWAYS AS ({generated(s, col)}){stored}"
        if col.cascade:
            target, there = (s.table, "id") if col.cascade == "self" else ("parent", "pid")
            end = "DEFAULT" if col.cascade == "default" else "NULL"
            text += f" REFERENCES {q(target) if s.database == 'sqlite' else s.named(target)} ({there}) ON UPDATE CASCADE ON DELETE SET {end}"
        parts.append(text)
    parts.append("note INTEGER")
    if s.primary and not s.numbered:
        parts.append(f"PRIMARY KEY ({', '.join(q(col.name) for col in s.columns)})")
    return parts


def generated(s: Schema, col: Col) -> str:
    """The expression of a generated column."""
    if col.kind in INTEGERS:
        return "note + 1000"
    return "'g' || note" if s.database == "sqlite" else "'g' || (note)::text"


def _partitions(s: Schema) -> list[str]:
    if not s.partitioned:
        return []
    return [f"CREATE TABLE {s.named(f'part{number}')} PARTITION OF {s.named(s.table)} FOR VALUES FROM ({low}) TO ({high})"
            for number, (low, high) in enumerate([("MINVALUE", 50), (50, "MAXVALUE")])]  # fmt: skip


def _beside(s: Schema) -> list[str]:
    """Views, children, rules and triggers."""
    q, col, made = s.quote, s.columns[0], list[str]()
    table, k = s.named(s.table), q(s.columns[0].name)
    names = ", ".join(["id", *(q(col.name) for col in s.columns), "note"])
    new = ", ".join(["NEW.id", *(f"NEW.{q(col.name)}" for col in s.columns), "NEW.note"])
    sqlite_ = s.database == "sqlite"
    if s.view:
        made.append(f"CREATE VIEW {s.named('v')} AS SELECT {names} FROM {table}")
        if sqlite_:
            made.append(
                f"CREATE TRIGGER {s.named('in_v')} INSTEAD OF INSERT ON v BEGIN INSERT INTO {q(s.table)} ({names}) VALUES ({new}); END"
            )
    if s.inherited:
        made.append(f"CREATE TABLE {s.named('child')} (extra INTEGER) INHERITS ({table})")
    if s.rule:
        made.append(
            f"CREATE RULE copied AS ON INSERT TO {s.named('u')} DO ALSO INSERT INTO {table} ({names}) VALUES ({new})"
        )
    if not s.trigger:
        return made
    constant = s.constant(col, TRIGGER)
    ident = 5000
    does = {
        "more": f"INSERT INTO {{t}} (id, {k}, note) VALUES ({ident} + NEW.id, {constant}, 200)",
        "rewrite": f"UPDATE {{t}} SET {k} = {constant} WHERE id = NEW.id AND note % 3 = 0",
        "from_u": f"INSERT INTO {{t}} ({names}) VALUES ({new})",
    }[s.trigger]
    once = " ON CONFLICT DO NOTHING" if s.trigger == "more" else ""
    on = s.named("u") if s.trigger == "from_u" else table
    when = "NEW.note < 200 AND NEW.note % 2 = 0" if s.trigger == "more" else "NEW.note < 200"
    if sqlite_:
        body = does.replace("{t}", q(s.table)) + once
        plain = q("u") if s.trigger == "from_u" else q(s.table)
        return [
            *made,
            f"CREATE TRIGGER {s.named('writes')} AFTER INSERT ON {plain} WHEN {when} BEGIN {body}; END",
        ]
    body = does.replace("{t}", table) + once
    made.append(
        f"CREATE FUNCTION {s.named('writes')}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body}; RETURN NULL; END $$"
    )
    made.append(
        f"CREATE TRIGGER writes AFTER INSERT ON {on} FOR EACH ROW WHEN ({when}) EXECUTE FUNCTION {s.named('writes')}()"
    )
    return made


@dataclass(frozen=True, slots=True)
class Target:
    """A description of a table by which a program writes."""

    table: Any
    keys: dict[str, str]
    """From `id`, `k`, `j`, `note` to the name in `values()`."""
    cls: Any = None
    """Statements are given a mapped class, and `keys` are its attributes."""

    @property
    def dml(self) -> Any:
        """What INSERT, UPDATE and DELETE are given."""
        return self.cls or self.table

    def type_of(self, key: str) -> Any:
        """The type of the column that `values()` knows by this name."""
        return next(self.column(name).type for name, own in self.keys.items() if own == key)

    def column(self, logical: str) -> Any:
        if self.cls is not None:
            return getattr(self.cls, self.keys[logical])
        return self.table.c[self.keys[logical]]


class Mapping:
    """The objects of SQLAlchemy for a schema: the guarded table, and others that describe it."""

    def __init__(self, schema: Schema, judge: sa.Engine) -> None:
        self.schema = schema
        self.judge = judge
        self.metadata = sa.MetaData()
        self.registry = registry(metadata=self.metadata)
        self.parent: Any = None
        if any(col.cascade == "declared" for col in schema.columns):
            self.parent = sa.Table(
                "parent", self.metadata,
                sa.Column("pid", schema.columns[0].of.make(), primary_key=True),
                sa.Column("note", sa.Integer), schema=schema.namespace,
            )  # fmt: skip
        self.table = sa.Table(
            schema.table, self.metadata,
            sa.Column("id", sa.Integer, primary_key=not schema.primary),
            *(self._column(col) for col in schema.columns),
            sa.Column("note", sa.Integer), schema=schema.namespace,
        )  # fmt: skip
        self.cls: Any = None
        if schema.orm:
            self.cls = type("Row", (), {})
            own = {f"the_{col.logical}": self.table.c[col.key] for col in schema.columns}
            self.registry.map_imperatively(
                self.cls, self.table, properties=own if schema.renamed else {}
            )
        keys = {col.logical: col.key for col in schema.columns} | {"id": "id", "note": "note"}
        self.attributes = {
            name: f"the_{name}" if schema.renamed and name in ("k", "j") else key
            for name, key in keys.items()
        }
        self._targets = {"main": Target(self.table, keys)}
        if self.cls:
            self._targets["entity"] = Target(self.table, self.attributes, self.cls)

    def _column(self, col: Col) -> sa.Column[Any]:
        s, kind, words, more = self.schema, col.of, dict[str, Any](), list[Any]()
        value = kind.values[CLIENT]
        match col.client:
            case "scalar":
                words["default"] = value
            case "callable":
                words["default"] = lambda: value
            case "sql":
                words["default"] = sa.text(s.constant(col, CLIENT).replace(":", "\\:"))
            case "onupdate":
                words["onupdate"] = value
        if col.server == "declared" and not s.numbered:
            words["server_default"] = sa.text(s.constant(col, SERVER).replace(":", "\\:"))
        if col.generated == "declared":
            more.append(sa.Computed(generated(s, col), persisted=s.database == "postgresql"))
        if col.cascade == "declared":
            more.append(sa.ForeignKey(self.parent.c.pid, onupdate="CASCADE", ondelete="SET NULL"))
        return sa.Column(col.name, kind.make(), *more, key=col.key, primary_key=s.primary,
                         unique=col.unique or None, nullable=col.nullable, **words)  # fmt: skip

    @property
    def guarded(self) -> Any:
        """What the guard is given."""
        found = [
            getattr(self.cls, self.attributes[col.logical]) if self.cls else self.table.c[col.key]
            for col in self.schema.columns
        ]
        return found[0] if len(found) == 1 else tuple(found)

    @property
    def key_columns(self) -> list[sa.Column[Any]]:
        return [self.table.c[col.key] for col in self.schema.columns]

    def target(self, name: str) -> Target:
        """A description by its name; made when it is first asked for."""
        found = self._targets.get(name)
        if found is None:
            found = self._targets[name] = self._make(name)
        return found

    def _make(self, name: str) -> Target:
        s = self.schema
        named = {col.logical: col.name for col in s.columns} | {"id": "id", "note": "note"}
        columns = {col.logical: col.of.make() for col in s.columns}
        if name == "reflected":
            with self.judge.connect() as connection:
                table = sa.Table(
                    s.table, sa.MetaData(), autoload_with=connection, schema=s.namespace
                )
            return Target(table, named)
        if name in ("light", "cased"):
            say = str.swapcase if name == "cased" else str
            here = {logical: say(text) for logical, text in named.items()}
            made: Any = sa.table(say(s.table), *(
                sa.column(here[logical], columns.get(logical, sa.Integer())) for logical in here),
                schema=s.namespace)  # fmt: skip
            return Target(made, here)
        if name in ("parent", "grand"):
            return Target(sa.table(name, sa.column("pid", s.columns[0].of.make()), sa.column("note"),
                                   schema=s.namespace), {"k": "pid", "note": "note"})  # fmt: skip
        where = {"view": "v", "child": "child", "u": "u", "part0": "part0", "part1": "part1"}
        table_name, namespace, key, words = (
            where.get(name, s.table),
            s.namespace,
            "{}",
            dict[str, Any](),
        )
        if name == "keyed":
            key = "{}_kunde"
        elif name == "swapped keys" and len(s.columns) == 1:
            # `note` is written under the name of the key, and the key under the name of `note`.
            swap = {s.columns[0].name: "note", "note": s.columns[0].name, "id": "id"}
            table = sa.Table(table_name, sa.MetaData(), schema=namespace, *(  # noqa: B026
                sa.Column(text, columns.get(logical, sa.Integer()), key=swap[text],
                          primary_key=logical == "id")
                for logical, text in named.items()))  # fmt: skip
            return Target(table, {logical: swap[text] for logical, text in named.items()})
        elif name == "qualified" and namespace is None:
            namespace = "main" if s.database == "sqlite" else "public"
        elif name == "translated":
            namespace = "tenant"
        elif name in ("defaults", "onupdate"):
            word = "default" if name == "defaults" else "onupdate"
            words = {col.logical: {word: col.of.values[CLIENT]} for col in s.columns}
        primary = {"id"} if not s.primary else {col.logical for col in s.columns}
        table = sa.Table(table_name, sa.MetaData(), schema=namespace, *(  # noqa: B026
            sa.Column(text, columns.get(logical, sa.Integer()), key=key.format(text),
                      primary_key=logical in primary, **words.get(logical, {}))
            for logical, text in named.items()))  # fmt: skip
        return Target(table, {logical: key.format(text) for logical, text in named.items()})

    def close(self) -> None:
        self.registry.dispose()
