"""Writes as text, by the driver, and changes of the schema."""
# ruff: noqa: E501  a line of SQL is easier to read whole

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from benchmarks.guard_histories.play import Play
from benchmarks.guard_histories.steps import Args, Draw, verb


def statement_of(
    play: Play, what: str, rows: list[Args], where: Args, change: Args, table: str
) -> str:
    """SQL with the values in it."""
    name = play.schema.named(table)
    if what == "insert":
        row = rows[0]
        values = ", ".join(play.literal(key, index) for key, index in row.items())
        return f"INSERT INTO {name} ({', '.join(play.names(row))}) VALUES ({values})"
    met = " AND ".join(
        f"{column} = {play.literal(key, index)}"
        for (key, index), column in zip(
            _met(where).items(), play.names(_met(where)), strict=True
        )
    )  # fmt: skip
    if what == "delete":
        return f"DELETE FROM {name} WHERE {met or 'note > 50'}"
    sets = ", ".join(
        f"{column} = {play.literal(key, index)}"
        for (key, index), column in zip(change.items(), play.names(change), strict=True)
    )
    return f"UPDATE {name} SET {sets} WHERE {met or 'note >= 0'}"


def _met(where: Args) -> Args:
    return {
        name: index
        for name, index in where.items()
        if name in ("k", "j", "id") and not isinstance(index, list)
    }


def _style(d: Draw) -> str:
    words = {
        "text": 4.0,
        "bound": 2.0,
        "driver_sql": 3.0,
        "comment": 0.7,
        "lower": 0.5,
        "spaces": 0.5,
    }
    if d.sqlite:
        words |= {"replace": 0.6, "brackets": 0.5, "backticks": 0.4, "other_case": 0.5}
    else:
        words |= {"cte": 0.8, "two": 0.7, "explain": 0.5, "do": 0.5, "prepare": 0.5, "select_into": 0.2, "merge": 0.4,
                  "search_path": 0.3, "unicode": 0.4}  # fmt: skip
    return d.pick(**words)


def _draw_text(d: Draw) -> Args:
    table = (
        "u" if (d.schema.trigger == "from_u" or d.schema.rule) and d.chance(0.6) else d.schema.table
    )
    if d.schema.inherited and d.chance(0.5):
        table = "child"
    return {"style": _style(d), "what": d.pick(insert=5, update=3, delete=1), "rows": [d.row()], "where": d.where(),
            "change": d.change(), "table": table, "goes_on": d.chance(0.4)}  # fmt: skip


def _escaped(play: Play, sql: str) -> str:
    return sql.replace("%", "%%") if play.schema.database == "postgresql" else sql


@verb(4.0, _draw_text)
def as_text(
    play: Play,
    slot: Any,
    style: str,
    what: str,
    rows: list[Args],
    where: Args,
    change: Args,
    table: str,
) -> None:
    """`text()` and `exec_driver_sql`, plain and dressed up."""
    sql = statement_of(play, what, rows, where, change, table)
    match style:
        case "bound" if what == "insert":
            row = rows[0]
            marks = ", ".join(f":{name}" for name in row)
            made = f"INSERT INTO {play.schema.named(table)} ({', '.join(play.names(row))}) VALUES ({marks})"
            slot.execute(
                sa.text(made), {name: play.raw(name, index) for name, index in row.items()}
            )
        case "text":
            slot.execute(sa.text(sql.replace(":", "\\:")))
        case "comment":
            slot.execute(sa.text(("/* select */ -- it's\n " + sql).replace(":", "\\:")))
        case "lower" if play.schema.table == "t":
            slot.send(_escaped(play, sql.replace("INSERT INTO", "insert into").replace('"t"', "t")))
        case "spaces":
            slot.send(_escaped(play, sql.replace(" ", "\n\t", 2)))
        case "replace" if what == "insert":
            slot.send(sql.replace("INSERT", "REPLACE"))
        case "brackets":
            slot.send(sql.replace(play.schema.quote(table), f"[{table}]"))
        case "backticks":
            slot.send(sql.replace(play.schema.quote(table), f"`{table}`"))
        case "other case":
            slot.send(sql.replace(play.schema.quote(table), play.schema.quote(table.swapcase())))
        case "unicode":
            points = "".join(f"\\{ord(letter):04x}" for letter in table)
            slot.send(_escaped(play, sql.replace(play.schema.quote(table), f'U&"{points}"')))
        case "cte":
            slot.send(_escaped(play, f"WITH made AS ({sql} RETURNING 1) SELECT * FROM made"))
        case "two":
            slot.send(_escaped(play, f"SELECT 1; {sql}; SELECT 2"))
        case "explain":
            slot.send(_escaped(play, f"EXPLAIN ANALYZE {sql}"))
        case "do":
            slot.send(_escaped(play, f"DO $body$ BEGIN {sql}; END $body$"))
        case "prepare":
            slot.send(_escaped(play, f"PREPARE later AS {sql}"))
            try:
                slot.send("EXECUTE later")
            finally:
                slot.send("DEALLOCATE later")
        case "merge" if "k" in rows[0] and not play.schema.numbered:
            row = rows[0]
            listed = ", ".join(f"{play.literal(key, index)}" for key, index in row.items())
            slot.send(_escaped(play, f"MERGE INTO {play.schema.named(table)} AS old USING (SELECT 1) AS new ON false"
                      f" WHEN NOT MATCHED THEN INSERT ({', '.join(play.names(row))}) VALUES ({listed})"))  # fmt: skip
        case "search path" if play.schema.namespace:
            slot.send(f"SET LOCAL search_path = {play.schema.namespace}")
            slot.send(
                _escaped(play, sql.replace(play.schema.named(table), play.schema.quote(table)))
            )
            slot.send("RESET search_path")
        case _:
            slot.send(_escaped(play, sql))


def _draw_driver(d: Draw) -> Args:
    return {"what": d.pick(insert=5, update=2, delete=2, copy=0 if d.sqlite else 2), "rows": [d.row()],
            "where": d.where(), "change": d.change()}  # fmt: skip


@verb(1.2, _draw_driver)
def by_driver(
    play: Play, slot: Any, what: str, rows: list[Args], where: Args, change: Args
) -> None:
    """A cursor of the driver's own, within the transaction: not seen, so the remedy is due."""
    for other in (slot, play.slot("c")) if slot.name == "j" else (slot,):
        other.unseen = other.unseen or what != "delete"  # `c` commits what `j` writes
    connection = slot.driver
    if what == "copy":
        row = rows[0]
        with (
            connection.cursor() as cursor,
            cursor.copy(
                f"COPY {play.schema.named(play.schema.table)} ({', '.join(play.names(row))}) FROM STDIN"
            ) as copy,
        ):
            copy.write_row([play.raw(name, index) for name, index in row.items()])
    else:
        sql = statement_of(play, what, rows, where, change, play.schema.table)
        connection.cursor().execute(sql)
    slot.wrote()


@verb(lambda d: 1.5 if d.options.get("removals") else 0.8)
def driver_fails(play: Play, slot: Any) -> None:
    """A statement of the driver's own fails and nobody looks: PostgreSQL makes COMMIT a rollback."""
    try:
        slot.driver.cursor().execute("SELECT * FROM there_is_no_such_table")
    except play.ground.error:
        return


def _fails(d: Draw) -> Args:
    return {"how": d.pick(sql=1, core=1, same_id=1), "rows": [d.row()], "goes_on": True}


@verb(1.5, _fails)
def statement_fails(play: Play, slot: Any, how: str, rows: list[Args]) -> None:
    """A failing statement within a transaction that goes on."""
    if how == "sql":
        slot.send("SELECT * FROM there_is_no_such_table")
    elif how == "core":
        slot.execute(sa.select(sa.table("there_is_no_such_table", sa.column("x"))))
    else:
        main = play.target("main")
        row = play.row(main, rows[0]) | {main.keys["id"]: 1}
        for _ in range(2):
            slot.execute(sa.insert(main.table), row)


# --- the schema


def draw_ddl(d: Draw) -> Args:
    words = {"rename": 3.0, "swap_columns": 2.0, "truncate": 1.0, "recreate": 1.0, "default": 1.0, "trigger": 1.5,
             "view": 0.5, "add_column": 0.7, "create_as": 0.5, "index": 0.3}  # fmt: skip
    if d.sqlite:
        words["temporary_trigger"] = 1.0
    else:
        words |= {"prepare": 1.0, "procedure": 1.0}
    if not d.sqlite:
        words |= {"rename_schema": 1.0, "attach": 1.0, "rule": 1.0, "inherit": 1.0, "alter_type": 0.7,
                  "cascade_later": 0.5}  # fmt: skip
    return {
        "what": d.pick(**words),
        "how": d.pick(driver_sql=2, text=1, ddl=1),
        "value": d.fresh(),
        "part": "all",
        "goes_on": d.chance(0.3),
    }


@verb(0.8, draw_ddl)
def change_schema(play: Play, slot: Any, what: str, how: str, value: int, part: str) -> None:
    """DDL as text, through the guarded engine."""
    play.late = bool({"outbox", "refresh"} & set(play.history.options))
    for sql in part_of(ddl_of(play, what, value), part):
        if how == "driver sql":
            slot.send(_escaped(play, sql))
        elif how == "text":
            slot.execute(sa.text(sql.replace(":", "\\:")))
        else:
            slot.execute(
                sa.DDL(sql.replace("%", "%%"))  # type: ignore[no-untyped-call]
            )


def part_of(statements: list[str], part: str) -> list[str]:
    """The guard may build between what makes a change ready and its last statement."""
    return {"all": statements, "first": statements[:-1], "last": statements[-1:]}[part]


def ddl_of(play: Play, what: str, value: int) -> list[str]:
    s, q = play.schema, play.schema.quote
    table, k, new = s.named(s.table), q(s.columns[0].name), play.literal("k", value)
    sqlite = s.database == "sqlite"
    other = s.named("other")
    names = ", ".join(["id", *(q(col.name) for col in s.columns), "note"])
    row = ", ".join(["77", *(play.literal(col.logical, value) for col in s.columns), "5"])
    match what:
        case "rename":
            return [f"CREATE TABLE {other} AS SELECT * FROM {table}", f"INSERT INTO {other} ({names}) VALUES ({row})",
                    f"ALTER TABLE {table} RENAME TO {q('was')}", f"ALTER TABLE {other} RENAME TO {q(s.table)}"]  # fmt: skip
        case "swap columns":
            kind = s.columns[0].of.compiled(s.dialect)
            return [f"ALTER TABLE {table} ADD COLUMN fresh {kind}", f"UPDATE {table} SET fresh = {new}",
                    f"ALTER TABLE {table} RENAME COLUMN {k} TO was", f"ALTER TABLE {table} RENAME COLUMN fresh TO {k}"]  # fmt: skip
        case "truncate":
            return [f"DELETE FROM {table}" if sqlite else f"TRUNCATE {table} CASCADE"]
        case "recreate":
            return [f"CREATE TABLE {other} AS SELECT * FROM {table}", f"DROP TABLE {table}" + ("" if sqlite else " CASCADE"),
                    f"CREATE TABLE {table} AS SELECT * FROM {other}", f"INSERT INTO {table} ({names}) VALUES ({row})"]  # fmt: skip
        case "create as":
            return [f"DROP TABLE {table}" + ("" if sqlite else " CASCADE"),
                    f"CREATE TABLE {table} AS SELECT {', '.join(f'{v} AS {n}' for v, n in zip(row.split(', '), names.split(', '), strict=True))}"]  # fmt: skip
        case "default" if not sqlite:
            return [
                f"ALTER TABLE {table} ALTER COLUMN {k} SET DEFAULT {new}",
                f"INSERT INTO {s.named('u')} (note) VALUES (1)",
            ]
        case "temporary trigger" if sqlite:
            return [f"CREATE TEMP TRIGGER later AFTER UPDATE ON {s.named('u')} BEGIN UPDATE {q(s.table)} SET {k} = {new}; END",
                    f"UPDATE {s.named('u')} SET note = 3"]  # fmt: skip
        case "prepare":
            return [
                f"PREPARE later AS INSERT INTO {table} ({names}) VALUES ({row})",
                "EXECUTE later",
            ]
        case "procedure":
            return [f"CREATE PROCEDURE {s.named('later')}() LANGUAGE sql AS $$ INSERT INTO {table} ({names}) VALUES ({row}) $$",
                    f"CALL {s.named('later')}()"]  # fmt: skip
        case "trigger" if sqlite:
            return [f"CREATE TRIGGER IF NOT EXISTS {s.named('later')} AFTER UPDATE ON {q('u')} BEGIN UPDATE {q(s.table)} SET {k} = {new}; END",
                    f"UPDATE {s.named('u')} SET note = 3"]  # fmt: skip
        case "trigger":
            return [f"CREATE OR REPLACE FUNCTION {s.named('later')}() RETURNS trigger LANGUAGE plpgsql AS"
                    f" $$ BEGIN UPDATE {table} SET {k} = {new}; RETURN NULL; END $$",
                    f"CREATE TRIGGER later AFTER UPDATE ON {s.named('u')} EXECUTE FUNCTION {s.named('later')}()",
                    f"UPDATE {s.named('u')} SET note = 3"]  # fmt: skip
        case "view":
            return [f"CREATE VIEW {s.named('v2')} AS SELECT 1 AS x"]
        case "add column":
            return [f"ALTER TABLE {table} ADD COLUMN more INTEGER DEFAULT 3"]
        case "index":
            return [f"CREATE INDEX more ON {q(s.table) if sqlite else table} (note)"]
        case "rename schema":
            name = s.namespace or "public"
            return [f"CREATE SCHEMA made_later", f"CREATE TABLE made_later.{q(s.table)} AS SELECT * FROM {table}",  # noqa: F541
                    f"INSERT INTO made_later.{q(s.table)} ({names}) VALUES ({row})",
                    f"ALTER SCHEMA {q(name)} RENAME TO was", f"ALTER SCHEMA made_later RENAME TO {q(name)}"]  # fmt: skip
        case "attach" if s.partitioned:
            return [f"CREATE TABLE {other} (LIKE {table})", f"INSERT INTO {other} ({names}) VALUES ({row})",
                    f"DROP TABLE {s.named('part0')}",
                    f"ALTER TABLE {table} ATTACH PARTITION {other} FOR VALUES FROM (MINVALUE) TO (50)"]  # fmt: skip
        case "rule":
            return [f"CREATE OR REPLACE RULE later AS ON UPDATE TO {s.named('u')} DO ALSO UPDATE {table} SET {k} = {new}",
                    f"UPDATE {s.named('u')} SET note = 3"]  # fmt: skip
        case "inherit":
            return [f"CREATE TABLE {other} (LIKE {table})", f"INSERT INTO {other} ({names}) VALUES ({row})",
                    f"ALTER TABLE {other} INHERIT {table}"]  # fmt: skip
        case "alter type":
            return [
                f"ALTER TABLE {table} ALTER COLUMN {k} TYPE {s.columns[0].of.compiled(s.dialect)} USING {new}"
            ]
    return [f"ALTER TABLE {table} ADD COLUMN more INTEGER"]
