"""Writes that a guard must see: by objects and by statements of SQLAlchemy."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg
from sqlalchemy.dialects import sqlite

from benchmarks.guard_histories.play import Play
from benchmarks.guard_histories.schema import INTEGERS, STRINGS, Target
from benchmarks.guard_histories.steps import Args, Draw, verb
from benchmarks.guard_histories.values import literal, raw


def condition(play: Play, target: Target, where: Args) -> Any:
    """A WHERE clause on a target."""
    match where["by"]:
        case "k":
            return sa.and_(
                *(
                    target.column(name) == play.value(name, index)
                    for name, index in where.items()
                    if name in target.keys
                )
            )
        case "several":
            return target.column("k").in_([play.value("k", index) for index in where["k"]])
        case "id":
            return target.column("id") == where["id"]
        case "note":
            return target.column("note") > where["note"]
    return sa.true()


# --- objects


def _for_orm(draw: Draw) -> float:
    return 6.0 if draw.schema.orm else 0.0


def _objects(play: Play, rows: list[Args]) -> list[Any]:
    made = []
    for row in rows:
        thing = play.mapping.cls()
        for name, value in play.row(play.target("entity"), row).items():
            setattr(thing, name, value)
        made.append(thing)
    return made


def _loaded(play: Play, slot: Any, where: Args) -> list[Any]:
    wanted = sa.select(play.mapping.cls).where(condition(play, play.target("entity"), where))
    return list(slot.opened().scalars(wanted))


@verb(_for_orm, lambda d: {"rows": d.rows(), "how": d.pick(add=6, bulk=1, merge=1, many=1)})
def orm_add(play: Play, slot: Any, rows: list[Args], how: str) -> None:
    """New objects, flushed."""
    session = slot.opened()
    if how == "bulk":
        session.bulk_save_objects(_objects(play, rows))
    elif how == "many":
        slot.execute(
            sa.insert(play.mapping.cls),
            _alike([play.row(play.target("entity"), row) for row in rows]),
        )
    elif how == "merge":
        for thing in _objects(play, rows):
            session.merge(thing)
    else:
        session.add_all(_objects(play, rows))
    session.flush()


@verb(_for_orm, lambda d: {"rows": d.rows()})
def orm_add_later(play: Play, slot: Any, rows: list[Args]) -> None:
    """New objects that the next query or commit flushes."""
    slot.opened().add_all(_objects(play, rows))


@verb(_for_orm, lambda d: {"where": d.where(), "change": d.change(), "flush": d.chance(0.6)})
def orm_update(play: Play, slot: Any, where: Args, change: Args, flush: bool) -> None:
    for thing in _loaded(play, slot, where):
        for name, value in play.row(play.target("entity"), change).items():
            setattr(thing, name, value)
    if flush:
        slot.opened().flush()


@verb(lambda d: _for_orm(d) * 0.2, lambda d: {"where": d.where()})
def orm_computed(play: Play, slot: Any, where: Args) -> None:
    """An attribute set to an expression of SQL."""
    key = play.target("entity").keys["k"]
    column = play.mapping.key_columns[0]
    for thing in _loaded(play, slot, where):
        setattr(
            thing,
            key,
            column + 500 if play.schema.columns[0].kind in INTEGERS else sa.func.lower(column),
        )
    slot.opened().flush()


@verb(_for_orm, lambda d: {"where": d.where(), "flush": d.chance(0.7)})
def orm_delete(play: Play, slot: Any, where: Args, flush: bool) -> None:
    for thing in _loaded(play, slot, where):
        slot.opened().delete(thing)
    if flush:
        slot.opened().flush()


@verb(lambda d: _for_orm(d) * 0.3, lambda d: {"where": d.where(), "change": d.change()})
def orm_update_many(play: Play, slot: Any, where: Args, change: Args) -> None:
    """A bulk update by primary key."""
    main = play.target("entity")
    guarded = [main.keys[col.logical] for col in play.schema.columns]
    primary = guarded if play.schema.primary else ["id"]
    rows = [
        {name: getattr(thing, name) for name in primary} | play.row(main, change)
        for thing in _loaded(play, slot, where)
    ]
    if rows:
        slot.execute(sa.update(play.mapping.cls), rows)


# --- statements


def _alike(rows: list[Args]) -> list[Args]:
    """Rows with the names that all have: an `executemany` needs the same in each."""
    common = set.intersection(*(set(row) for row in rows))
    return [{name: row[name] for name in row if name in common} for row in rows]


def _insert_style(d: Draw) -> str:
    words = {
        "values": 5.0,
        "many": 3.0,
        "multi": 2.0,
        "literal": 1.0,
        "literal_column": 0.7,
        "text": 0.5,
        "bind": 1.0,
        "expression": 0.7,
        "select": 0.8,
        "from_u": 0.7,
        "returning": 1.0,
        "returning_many": 0.6,
        "inline": 0.5,
        "scalar": 0.6,
        "positional": 0.5,
        "literal_text": 0.4,
        "cte": 0.5,
        "no_values": 0.3,
    }
    if d.sqlite:
        words |= {"or_replace": 0.8, "or_ignore": 0.5}
    return d.pick(**words)


def _draw_insert(d: Draw) -> Args:
    return {
        "target": d.target(),
        "style": _insert_style(d),
        "rows": d.rows(),
        "goes_on": d.chance(0.4),
    }


def _one(play: Play, table: Any, target: Target, row: Args, style: str) -> tuple[Any, Any]:
    """An INSERT of one row, and its parameters."""
    insert, values = sa.insert(table), play.row(target, row)
    types = {name: target.column(name).type for name in row if name in target.keys}
    typed = {target.keys[name]: type_ for name, type_ in types.items()}
    match style:
        case "literal":
            return insert.values({n: sa.literal(v, typed[n]) for n, v in values.items()}), None
        case "literal column":
            return insert.values(
                {
                    target.keys[n]: sa.literal_column(play.literal(n, i))
                    for n, i in row.items()
                    if n in target.keys
                }
            ), None
        case "text":
            return insert.values(
                {
                    target.keys[n]: sa.text(play.literal(n, i).replace(":", "\\:"))
                    for n, i in row.items()
                    if n in target.keys
                }
            ), None
        case "bind":
            return insert.values(
                {n: sa.bindparam(f"b_{number}", type_=typed[n]) for number, n in enumerate(values)}
            ), {f"b_{number}": value for number, value in enumerate(values.values())}
        case "expression":
            return insert.values(
                {
                    n: sa.func.coalesce(sa.literal(v, typed[n]), sa.literal(v, typed[n]))
                    for n, v in values.items()
                }
            ), None
        case "select":
            chosen = sa.select(*(sa.literal(v, typed[n]) for n, v in values.items()))
            return insert.from_select(list(values), chosen), None
        case "scalar":
            return insert.values(
                {n: sa.select(sa.literal(v, typed[n])).scalar_subquery() for n, v in values.items()}
            ), None
        case "returning":
            return insert.values(values).returning(*target.table.c), None
        case "inline":
            return insert.values(values).inline(), None
        case "or replace" | "or ignore":
            return insert.values(values).prefix_with(style.upper()), None
        case "positional":
            return insert.values(tuple(values.get(c.key) for c in target.table.c)), None
    return insert.values(values), None


@verb(9.0, _draw_insert)
def core_insert(play: Play, slot: Any, target: str, style: str, rows: list[Args]) -> None:
    """INSERT in every form of Core."""
    found = play.target(target)
    table: Any = found.dml
    given = [play.row(found, row) for row in rows]
    match style:
        case "many":
            slot.execute(sa.insert(table), _alike(given))
        case "multi":
            slot.execute(sa.insert(table).values(_alike(given)))
        case "returning many":
            slot.execute(sa.insert(table).returning(found.column("note")), _alike(given))
        case "no values":
            slot.execute(sa.insert(table))
        case "from u":
            names = [name for name in found.keys if name != "id" or play.schema.primary]
            source = play.target("u")
            chosen = sa.select(*(source.column(name) for name in names))
            slot.execute(sa.insert(table).from_select([found.keys[name] for name in names], chosen))
        case "cte":
            _by_cte(play, slot, found, given[0])
        case "literal text":
            made = sa.insert(table).values(given[0])
            compiled = made.compile(
                dialect=play.engine.dialect, compile_kwargs={"literal_binds": True}
            )
            slot.execute(sa.text(str(compiled).replace(":", "\\:")))
        case _:
            for row in rows:
                statement, params = _one(play, table, found, row, style)
                slot.execute(statement, params)


def _by_cte(play: Play, slot: Any, target: Target, row: Args) -> None:
    """PostgreSQL: an INSERT within a SELECT. SQLite: an INSERT from a CTE."""
    table: Any = target.dml
    if play.schema.database == "postgresql":
        inner = (
            sa.insert(table).values(row).returning(target.column("note").label("noted")).cte("made")
        )
        slot.execute(sa.select(inner.c.noted))
        return
    chosen = sa.select(
        *(sa.literal(v, target.type_of(n)).label(f"x{i}") for i, (n, v) in enumerate(row.items()))
    )
    made = chosen.cte("made")
    slot.execute(sa.insert(table).from_select(list(row), sa.select(*made.c)))


def _draw_upsert(d: Draw) -> Args:
    return {
        "target": d.target(),
        "rows": d.rows(2),
        "on": d.rnd.choice(["id", "k"]),
        "then": d.pick(nothing=2, note=1, excluded=2, other=2),
        "change": d.change(),
        "goes_on": d.chance(0.4),
    }


@verb(4.0, _draw_upsert)
def upsert(
    play: Play, slot: Any, target: str, rows: list[Args], on: str, then: str, change: Args
) -> None:
    """INSERT .. ON CONFLICT."""
    found = play.target(target)
    kind: Any = sqlite if play.schema.database == "sqlite" else pg
    given = _alike([play.row(found, row) for row in rows])
    made = kind.insert(found.dml).values(given)
    if on == "id" and not play.schema.primary:
        elements = [found.column("id")]
    else:
        elements = [found.column(col.logical) for col in play.schema.columns]
    if then == "nothing":
        slot.execute(made.on_conflict_do_nothing())
        return
    if then == "excluded":
        changes = {name: made.excluded[name] for name in given[0]}
    elif then == "other":
        changes = play.row(found, change)
    else:
        changes = {found.keys["note"]: 7}
    slot.execute(made.on_conflict_do_update(index_elements=elements, set_=changes))


def _draw_update(d: Draw) -> Args:
    style = d.pick(
        values=6,
        literal=1,
        many=1.5,
        expression=1,
        case=0.6,
        from_u=0.5,
        ordered=0.5,
        returning=0.7,
        swap=0.5,
        cte=0.4,
        literal_text=0.3,
    )
    return {
        "target": d.target(),
        "style": style,
        "where": d.where(),
        "change": d.change(),
        "goes_on": d.chance(0.4),
    }


@verb(6.0, _draw_update)
def core_update(play: Play, slot: Any, target: str, style: str, where: Args, change: Args) -> None:
    """UPDATE in every form of Core."""
    found = play.target(target)
    table: Any = found.dml
    values = play.row(found, change)
    made = sa.update(table).where(condition(play, found, where))
    first = play.schema.columns[0]
    key = found.column("k")
    match style:
        case "literal":
            slot.execute(
                made.values({n: sa.literal(v, found.type_of(n)) for n, v in values.items()})
            )
        case "many":
            if where["by"] == "id":
                by = sa.update(table).where(found.column("id") == sa.bindparam("b_id"))
                slot.execute(
                    by.values({n: sa.bindparam(f"b_{i}") for i, n in enumerate(values)}),
                    [
                        {"b_id": where["id"] + more}
                        | {f"b_{i}": v for i, v in enumerate(values.values())}
                        for more in (0, 1)
                    ],
                )
            else:
                slot.execute(made, values)
        case "expression":
            new = (
                key + 500
                if first.kind in INTEGERS
                else sa.func.coalesce(sa.func.max(play.value("k", 3)), key)
                if play.schema.database == "sqlite" and first.kind in STRINGS
                else sa.func.coalesce(key, key)
            )
            slot.execute(made.values({found.keys["k"]: new}))
        case "case":
            value = sa.literal(values.get(found.keys["k"], play.value("k", 0)), key.type)
            slot.execute(
                made.values(
                    {found.keys["k"]: sa.case((found.column("note") >= 0, value), else_=key)}
                )
            )
        case "from u":
            other = play.target("u")
            chosen = sa.select(other.column("k")).limit(1).scalar_subquery()
            slot.execute(made.values({found.keys["k"]: chosen}))
        case "ordered":
            slot.execute(made.ordered_values(*values.items()))
        case "returning":
            slot.execute(made.values(values).returning(found.column("note")))
        case "swap":
            slot.execute(
                made.values({found.keys["k"]: found.column("note"), found.keys["note"]: 1})
            )
        case "cte" if play.schema.database == "postgresql":
            inner = made.values(values).returning(found.column("note").label("noted")).cte("made")
            slot.execute(sa.select(inner.c.noted))
        case "literal text":
            compiled = made.values(values).compile(
                dialect=play.engine.dialect, compile_kwargs={"literal_binds": True}
            )
            slot.execute(sa.text(str(compiled).replace(":", "\\:")))
        case _:
            slot.execute(made.values(values))


def _draw_delete(d: Draw) -> Args:
    return {
        "target": d.target(),
        "where": d.where(),
        "style": d.pick(plain=6, returning=1, cte=0.5),
        "goes_on": d.chance(0.4),
    }


@verb(lambda d: 8.0 if d.options.get("removals") else 4.0, _draw_delete)
def core_delete(play: Play, slot: Any, target: str, where: Args, style: str) -> None:
    found = play.target(target)
    made = sa.delete(found.dml).where(condition(play, found, where))
    if style == "returning":
        slot.execute(made.returning(found.column("k")))
    elif style == "cte" and play.schema.database == "postgresql":
        slot.execute(
            sa.select(made.returning(found.column("note").label("noted")).cte("gone").c.noted)
        )
    else:
        slot.execute(made)


@verb(
    lambda d: 2.5 if d.options.get("removals") else 0.5,
    lambda d: {
        "target": d.target(),
        "row": d.row(),
        "order": d.pick(delete_first=2, insert_first=1, twice=1),
    },
)
def come_and_go(play: Play, slot: Any, target: str, row: Args, order: str) -> None:
    """The same key deleted and inserted in one transaction, in some order."""
    found = play.target(target)
    where = {"by": "k", **{name: index for name, index in row.items() if name in ("k", "j")}}
    if len(where) == 1 or None in where.values():
        return
    gone = sa.delete(found.dml).where(condition(play, found, where))
    comes = sa.insert(found.dml).values(play.row(found, row))
    orders = {
        "delete first": [gone, comes],
        "insert first": [comes, gone],
        "twice": [gone, comes, gone, comes],
    }
    for statement in orders[order]:
        slot.execute(statement)


# --- the parent of a foreign key


def _has_parent(d: Draw) -> float:
    return 8.0 if any(col.cascade for col in d.schema.columns) else 0.0


def _draw_parent(d: Draw) -> Args:
    new = [i for i in range(len(d.schema.columns[0].of.values) - 3) if i % 4 == 3]
    what = d.pick(core=3, text=1, several=1, delete=1)
    return {"old": d.known(), "new": d.rnd.choice(new or [0]), "what": what}


@verb(_has_parent, _draw_parent)
def update_parent(play: Play, slot: Any, old: int, new: int, what: str) -> None:
    """What ON UPDATE CASCADE or ON DELETE SET DEFAULT takes to the guarded column."""
    cascade = play.schema.columns[0].cascade
    name = {"deep": "grand", "self": "main"}.get(str(cascade), "parent")
    found = play.target(name)
    column, value = found.column("id" if name == "main" else "k"), play.value("k", old)
    keys = play.keys()
    if keys and value not in keys:
        value = keys[0]
    if name == "main":
        slot.execute(sa.update(found.table).values(id=100 + new).where(column == value))
    elif what == "delete":
        slot.execute(sa.delete(found.table).where(column == value))
    elif what == "text":
        kind, dialect = play.schema.columns[0].of, play.schema.dialect
        before, after = (
            literal(raw(kind, one, dialect), dialect) for one in (value, play.value("k", new))
        )
        sql = f"UPDATE {play.schema.named(name)} SET pid = {after} WHERE pid = {before}"
        slot.execute(sa.text(sql.replace(":", "\\:")))
    else:
        met = column == value if what == "core" else column.in_([value])
        slot.execute(sa.update(found.table).values(pid=play.value("k", new)).where(met))


@verb(_has_parent, lambda d: {"value": d.fresh()})
def insert_parent(play: Play, slot: Any, value: int) -> None:
    """So that more rows can be written."""
    if play.schema.columns[0].cascade != "self":
        for name in (
            ("grand", "parent") if play.schema.columns[0].cascade == "deep" else ("parent",)
        ):
            table = play.target(name).table
            slot.execute(sa.insert(table).values(pid=play.value("k", value), note=0))
