"""Ends of transactions, crashes, builds, and writers that do not use the engine."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from benchmarks.guard_histories.play import Play
from benchmarks.guard_histories.steps import VERBS, Args, Draw, Step, verb
from benchmarks.guard_histories.texts import ddl_of, draw_ddl, part_of, statement_of
from bloomtide.errors import BloomtideError


@verb(14.0)
def commit(play: Play, slot: Any) -> None:
    slot.commit()


@verb(4.0)
def rollback(play: Play, slot: Any) -> None:
    slot.rollback()


@verb(3.0)
def savepoint(play: Play, slot: Any) -> None:
    begin = slot.opened().begin_nested if slot.has_session else slot.connection.begin_nested
    slot.savepoints.append(begin())


@verb(1.5)
def release(play: Play, slot: Any) -> None:
    if slot.savepoints:
        slot.savepoints.pop().commit()


@verb(3.0)
def rollback_to(play: Play, slot: Any) -> None:
    if slot.savepoints:
        slot.savepoints.pop().rollback()


@verb(0.5, lambda d: {"end": d.pick(release=1, rollback=1)})
def outer_savepoint(play: Play, slot: Any, end: str) -> None:
    """Ends the outermost savepoint, and so all within it."""
    if slot.savepoints:
        first, slot.savepoints = slot.savepoints[0], []
        first.commit() if end == "release" else first.rollback()


@verb(lambda d: 2.0 if d.options.get("removals") else 0.6)
def driver_rollback(play: Play, slot: Any) -> None:
    """The driver's own rollback, of which SQLAlchemy hears nothing."""
    slot.driver.rollback()
    slot.unseen = False


def _draw_not_gone(d: Draw) -> Args:
    how = d.pick(
        driver=3, text=1, savepoint=1, fails=0 if d.sqlite else 3, raises=1, close=1, kill=0.5
    )
    return {
        "target": d.target(),
        "where": {"by": "k", **{c.logical: d.known(c.logical) for c in d.schema.columns}},
        "how": how,
        "orm": d.chance(0.3),
    }


@verb(lambda d: 10.0 if d.options.get("removals") else 0.3, _draw_not_gone)
def not_gone(play: Play, slot: Any, target: str, where: Args, how: str, orm: bool) -> None:
    """A row is deleted, but the deletion is not carried out; and then there is a commit."""
    if how == "savepoint":
        slot.send("SAVEPOINT mine")
    if orm and slot.has_session and play.mapping.cls is not None:
        VERBS["orm_delete"].do(play, slot, where, True)
    else:
        VERBS["core_delete"].do(play, slot, target, where, "plain")
    match how:
        case "driver":
            slot.driver.rollback()
        case "text":
            slot.send("ROLLBACK")
        case "savepoint":
            slot.send("ROLLBACK TO SAVEPOINT mine")
        case "fails":
            with suppress(play.ground.error):
                slot.driver.cursor().execute("SELECT * FROM there_is_no_such_table")
        case "raises":
            with suppress(SQLAlchemyError):
                slot.send("SELECT * FROM there_is_no_such_table")
        case "kill":
            play.ground.kill(slot.driver)
            slot.close()
            return
        case _:
            slot.close()
    if how in ("driver", "text"):
        slot.unseen = False
    slot.commit()


@verb(0.6)
def driver_commit(play: Play, slot: Any) -> None:
    slot.driver.commit()
    slot.committed(told=False)


@verb(
    lambda d: 1.0 if d.options.get("removals") else 0.4,
    lambda d: {"how": d.pick(rollback=2, commit=1, to=1)},
)
def end_as_text(play: Play, slot: Any, how: str) -> None:
    """The end of a transaction, or of a part of it, as a string."""
    if how == "to":
        slot.send("ROLLBACK TO SAVEPOINT mine")
        return
    slot.send(how.upper())
    if how == "commit":
        slot.committed(told=False)
    else:
        slot.unseen = False


@verb(0.6)
def savepoint_as_text(play: Play, slot: Any) -> None:
    slot.send("SAVEPOINT mine")


@verb(1.0)
def close(play: Play, slot: Any) -> None:
    slot.close()


@verb(0.5)
def invalidate(play: Play, slot: Any) -> None:
    """The connection is thrown away within its transaction."""
    slot.connection.invalidate()
    slot.close()


@verb(0.5)
def crash(play: Play, slot: Any) -> None:
    """The connection breaks between a statement and its commit."""
    connection = slot.driver
    play.ground.kill(connection)
    try:
        slot.commit()
    finally:
        slot.close()


@verb(
    lambda d: 0.0 if d.sqlite else 1.0,
    lambda d: {"end": d.pick(commit=3, rollback=1, recover=2, lost=0.5), "build": d.chance(0.4)},
)
def two_phases(play: Play, slot: Any, end: str, build: bool) -> None:
    """Prepares what `w` has written, perhaps builds, and ends it from here or from elsewhere."""
    two = play.slot("w")
    if two.trans is None:
        return
    trans, two.trans = two.trans, None
    trans.prepare()
    if build:
        with suppress(SQLAlchemyError, BloomtideError, play.ground.error):
            play.build()
    play.check()
    if end == "commit":
        trans.commit()
    elif end == "rollback":
        trans.rollback()
    else:
        xid = trans.xid
        two.connection.invalidate()
        two.close()
        if end == "recover":
            with play.engine.connect() as link:
                link.commit_prepared(xid, recover=True)
        else:
            with play.judge.connect().execution_options(isolation_level="AUTOCOMMIT") as link:
                link.exec_driver_sql(f"COMMIT PREPARED '{xid}'")
    two.committed(told=end == "commit")


# --- the guard


@verb(16.0)
def settle(play: Play, slot: Any) -> None:
    """Builds if the guard passes everything: otherwise nothing would be proved."""
    if play.state != "READY":
        play.build()


@verb(2.0)
def build(play: Play, slot: Any) -> None:
    play.build()


AMID: tuple[str, ...] = (
    "core_insert",
    "core_update",
    "core_delete",
    "commit",
    "upsert",
    "as_text",
    "rollback",
)


def _draw_amid(d: Draw) -> Args:
    steps = []
    for _ in range(d.rnd.randint(1, 3)):
        name = d.rnd.choice(AMID)
        steps.append(Step(name, "c", {**VERBS[name].draw(d)}))
    return {"steps": (*steps, Step("commit", "c"))}


@verb(1.5, _draw_amid)
def build_amid(play: Play, slot: Any, steps: tuple[Step, ...]) -> None:
    """Somebody writes and commits while a build reads."""
    done = False

    def progress(*numbers: int) -> None:
        nonlocal done
        if not done:
            done = True
            for step in steps:
                play.do(step)

    play.build(progress)


@verb(
    lambda d: 6.0 if "shared" in d.options else 0.0,
    lambda d: {
        "steps": tuple(
            Step(name, "c", VERBS[name].draw(d))
            for name in d.rnd.choices(("core_insert", "core_update", "as_text", "upsert"), k=2)
        ),
        "end": d.pick(commit=4, rollback=1, killed=1, killed_after=2),
    },
)
def neighbour(play: Play, slot: Any, steps: tuple[Step, ...], end: str) -> None:
    """Another process with the same shared filter writes, and may be killed around its commit."""
    from benchmarks.guard_histories import neighbour as process

    process.run(play, steps, end)


@verb(lambda d: 0.0 if d.simple or (d.sqlite and not d.schema.wal) else 0.6, _draw_amid)
def race(play: Play, slot: Any, steps: tuple[Step, ...]) -> None:
    """Somebody writes and commits while another thread builds."""
    builder = threading.Thread(target=_builds, args=(play,))
    builder.start()
    for step in steps:
        play.do(step)
    builder.join()


def _builds(play: Play) -> None:
    with suppress(SQLAlchemyError, BloomtideError, play.ground.error):
        play.guard.build()


@verb(0.7)
def new_guard(play: Play, slot: Any) -> None:
    """Another guard, made and built in the middle of transactions."""
    play.guard.close()
    for other in play.slots.values():
        other.older = True
    play.make_guard()
    play.build()


@verb(0.3)
def distrust(play: Play, slot: Any) -> None:
    play.guard.distrust()


# --- others


def _draw_outside(d: Draw) -> Args:
    return {
        "what": d.pick(insert=6, update=3, delete=1),
        "rows": d.rows(),
        "where": d.where(),
        "change": d.change(),
    }


@verb(lambda d: 8.0 if d.outside else 0.5, _draw_outside)
def outside(play: Play, slot: Any, what: str, rows: list[Args], where: Args, change: Args) -> None:
    """A program that knows nothing of the guard. Without a change table the remedy is due."""
    try:
        with play.judge.begin() as connection:
            for row in rows if what == "insert" else rows[:1]:
                sql = statement_of(play, what, [row], where, change, play.schema.table)
                connection.execute(sa.text(sql.replace(":", "\\:")))
    finally:
        play.remedy()


@verb(lambda d: 1.0 if d.outside else 0.0)
def drop_triggers(play: Play, slot: Any) -> None:
    """Somebody drops the triggers of the change table."""
    s = play.schema
    with play.judge.begin() as connection:
        if s.database == "sqlite":
            found = connection.execute(
                sa.text(
                    f"SELECT name FROM {s.namespace or 'main'}.sqlite_master"
                    " WHERE type = 'trigger' AND tbl_name = :t"
                    " AND name NOT IN ('writes', 'in_v')"
                ),
                {"t": s.table},
            ).scalars()
            for name in found.all():
                connection.exec_driver_sql(f"DROP TRIGGER {s.named(name)}")
        else:
            found = connection.execute(
                sa.text(
                    "SELECT tgname FROM pg_trigger"
                    " WHERE tgrelid = CAST(:t AS regclass) AND NOT tgisinternal"
                    " AND tgname <> 'writes'"
                ),
                {"t": s.named(s.table)},
            ).scalars()
            for name in found.all():
                connection.exec_driver_sql(f"DROP TRIGGER {s.quote(name)} ON {s.named(s.table)}")
    play.behind = True


@verb(lambda d: 0.7 if d.outside else 0.0, draw_ddl)
def outside_schema(play: Play, slot: Any, what: str, how: str, value: int, part: str) -> None:
    """Somebody else changes the schema."""
    with play.judge.begin() as connection:
        for sql in part_of(ddl_of(play, what, value), part):
            connection.execute(sa.text(sql.replace(":", "\\:")))
    play.behind = True
