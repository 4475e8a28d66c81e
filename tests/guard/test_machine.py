"""Any mix of writes, in two transactions at a time, with builds in between: no wrong "absent".

After each step the keys that are committed are read by a connection the guard knows nothing of, and
those that an open transaction has written by that transaction itself. The guard must call none of
them absent. Each transaction has keys of its own, so neither waits for the other's locks. Half of
the keys are new: one that the filter holds already would hide that it was not added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Literal

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import Engine, create_engine, delete, event, insert, select, text, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session, SessionTransaction

from bloomtide import DatabaseGuard
from bloomtide.guard.stats import State
from tests.guard.shop import ABSENT, Base, Basket

TABLE: Any = Basket.__table__
numbers = st.integers(0, 1)
keys = st.integers(0, 7)

Write = Callable[[Session, int, int], object]


def upsert(session: Session, key: int, new: int) -> None:
    kind = sqlite if session.get_bind().dialect.name == "sqlite" else postgresql
    made: Any = kind.insert(Basket).values(owner=key)
    session.execute(made.on_conflict_do_update(index_elements=["customer_id"], set_={"items": new}))


def set_attribute(session: Session, key: int, new: int) -> None:
    for basket in session.scalars(select(Basket).where(Basket.owner == key)):
        basket.owner = new
    session.flush()


def delete_object(session: Session, key: int, new: int) -> None:
    for basket in session.scalars(select(Basket).where(Basket.owner == key)):
        session.delete(basket)
    session.flush()


def add(session: Session, key: int, new: int) -> None:
    # Not in vain: what is added twice would survive a removal too many.
    if session.scalar(select(Basket.id).where(Basket.owner == key)) is None:
        session.add(Basket(owner=key))
        session.flush()


SEEN: dict[str, Write] = {
    "add": add,
    "bulk": lambda s, k, n: s.execute(insert(Basket), [{"owner": k}, {"owner": n}]),
    "values": lambda s, k, n: s.execute(insert(Basket).values([{"owner": k}, {"owner": n}])),
    "upsert": upsert,
    "core": lambda s, k, n: s.connection().execute(TABLE.insert(), {"customer_id": k, "items": n}),
    "attribute": set_attribute,
    "update": lambda s, k, n: s.execute(
        update(Basket).where(Basket.owner == k).values(owner=n),
        execution_options={"synchronize_session": False},
    ),
    "delete": lambda s, k, n: s.connection().execute(
        TABLE.delete().where(TABLE.c.customer_id == k)
    ),
    "delete both": lambda s, k, n: s.execute(delete(Basket).where(Basket.owner.in_([k, n]))),
    "delete object": delete_object,
    "nothing": lambda s, k, n: s.execute(
        update(Basket).where(Basket.owner == k).values(items=n),
        execution_options={"synchronize_session": False},
    ),
}


def delete_and_undo(session: Session, key: int, new: int) -> None:
    with session.begin_nested() as savepoint:
        SEEN["delete"](session, key, new)
        savepoint.rollback()


def delete_and_fail(session: Session, key: int, new: int) -> None:
    SEEN["delete"](session, key, new)
    fail(session, key, new)


def fail(session: Session, key: int, new: int) -> None:
    """An error that is swallowed. PostgreSQL answers a commit then with a silent rollback."""
    with suppress(SQLAlchemyError):
        session.connection().execute(TABLE.insert(), {"customer_id": None, "items": None})


UNDONE: dict[str, Write] = {
    "delete and undo": delete_and_undo,
    "delete and fail": delete_and_fail,
    "fail": fail,
}
UNSEEN: dict[str, Write] = {
    "text": lambda s, k, n: s.execute(
        text("INSERT INTO basket (customer_id, items) VALUES (:k, 1)"), {"k": k}
    ),
    "computed": lambda s, k, n: s.execute(
        update(Basket).where(Basket.owner == k).values(owner=Basket.owner + (n - k)),
        execution_options={"synchronize_session": False},
    ),
    "from select": lambda s, k, n: s.execute(
        TABLE.insert().from_select(
            ["customer_id", "items"],
            select(TABLE.c.customer_id + (n - k), TABLE.c["items"]).where(TABLE.c.customer_id == k),
        )
    ),
}


WRITES = {**SEEN, **UNDONE, **UNSEEN}
doings = st.sampled_from(
    ["commit", "rollback", "delete", "add", "build", "meanwhile", *UNDONE] * 4
    + [*SEEN, *UNSEEN, "savepoint", "release", "back", "back to the first", "close"]
    + ["text"] * 3
)


class Mix(RuleBasedStateMachine):
    url: str
    removals: Literal["never", "commit"]
    ready = 0
    """Steps after which the guard could have said something wrong."""

    @initialize()
    def begin(self) -> None:
        self.reader = create_engine(self.url)
        Base.metadata.create_all(self.reader)
        with self.reader.begin() as connection:
            connection.execute(delete(Basket))
            connection.execute(insert(Basket), [{"customer_id": key} for key in range(8)])
        self.engine = create_engine(self.url, connect_args=fast(self.url))
        prepare(self.engine)
        self.guard = DatabaseGuard(self.engine, Basket.owner, 1e-6, removals=self.removals)
        assert self.guard.build()
        self.sessions = [Session(self.engine), Session(self.engine)]
        self.savepoints: list[list[SessionTransaction]] = [[], []]

    def teardown(self) -> None:
        if hasattr(self, "guard"):
            for session in self.sessions:
                session.close()
            self.guard.close()
            self.engine.dispose()
            self.reader.dispose()

    @rule(
        number=numbers,
        steps=st.lists(st.tuples(doings, keys, keys), min_size=1, max_size=6),
        end=st.sampled_from(["commit", "rollback", "build", "stay open"]),
    )
    def work(self, number: int, steps: list[tuple[str, int, int]], end: str) -> None:
        """A piece of a transaction, or several."""
        for what, key, new in [*steps, (end, 0, 0)]:
            try:
                self.step(number, what, 2 * key + number, 2 * new + number)
            except SQLAlchemyError:
                self.end(number, self.sessions[number].rollback)
            self.nothing_is_called_absent_that_is_there()

    def step(self, number: int, what: str, key: int, new: int) -> None:
        session, savepoints = self.sessions[number], self.savepoints[number]
        if what in WRITES:
            WRITES[what](session, key, new)
        elif what == "savepoint":
            savepoints.append(session.begin_nested())
        elif what == "build":
            self.guard.build()
        elif what == "meanwhile":
            self.build_and_commit(number, key, new)
        elif what in ("release", "back") and savepoints:
            nested = savepoints.pop()
            nested.commit() if what == "release" else nested.rollback()
        elif what == "back to the first" and savepoints:
            first = savepoints[0]
            savepoints.clear()
            first.rollback()
        elif what == "commit":
            self.end(number, session.commit)
        elif what == "rollback":
            self.end(number, session.rollback)
        elif what == "close":
            self.end(number, session.close)

    def build_and_commit(self, number: int, key: int, new: int) -> None:
        """When all rows have been read, and the new filter is not yet in use."""
        ways: Iterator[list[str]] = iter([["delete", "text"] if new < key else ["delete", "add"]])

        def meanwhile(done: int, of: int | None) -> None:
            for write in next(ways, []):  # once, though a build that was spoilt begins again
                WRITES[write](self.sessions[number], key, new)
            self.end(number, self.sessions[number].commit)

        self.guard.build(meanwhile)

    def end(self, number: int, how: Callable[[], None]) -> None:
        self.savepoints[number].clear()
        how()

    def nothing_is_called_absent_that_is_there(self) -> None:
        if self.guard.state is State.READY and not self.guard.may_exist(ABSENT):
            type(self).ready += 1
        with self.reader.connect() as connection:
            there = set(connection.scalars(select(TABLE.c.customer_id)))
        for number, session in enumerate(self.sessions):
            if session.in_transaction() and session.is_active:
                with suppress(SQLAlchemyError):
                    seen = session.connection().scalars(select(TABLE.c.customer_id))
                    there.update(key for key in seen if key % 2 == number)
        absent = [key for key in there if not self.guard.may_exist(key)]
        assert not absent, f"called absent: {absent}; {self.guard.stats()}"


def fast(url: str) -> dict[str, Any]:
    # SQLite has one writer at a time; the other one is refused at once.
    return {"timeout": 0} if url.startswith("sqlite") else {}


def prepare(engine: Engine) -> None:
    if engine.dialect.name != "sqlite":
        return
    # Readers beside a writer; and no commit that waits for the disk.
    with engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA journal_mode = WAL")
    event.listen(engine, "connect", lambda dbapi, record: dbapi.execute("PRAGMA synchronous = OFF"))


@pytest.mark.parametrize("removals", ["never", "commit"])
def test_no_mix_of_writes_makes_the_guard_call_a_key_absent_that_is_there(
    url: str, removals: Literal["never", "commit"], monkeypatch: pytest.MonkeyPatch
) -> None:
    # No process is killed here, so there is no need to wait for what it may have left.
    monkeypatch.setattr("bloomtide.guard.table.wait_for_writers", lambda *_, **__: None)
    machine: type[Mix] = type("Mix", (Mix,), {"url": url, "removals": removals, "ready": 0})
    run_state_machine_as_test(
        machine, settings=settings(max_examples=60, stateful_step_count=10, deadline=None)
    )
    assert machine.ready > 100, "the guard has to be trusted most of the time to be proven right"
