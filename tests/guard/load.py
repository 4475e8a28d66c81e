"""Load for a guard: threads that write in every way, ask and rebuild, all at once.

The judge is the database: a row that was just read there must not be called absent afterwards,
since no row is ever deleted here. A guard that always said "maybe" would pass as well, so what was
rightly called absent is counted, too.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from itertools import count
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, insert, select, text, update

from bloomtide import DatabaseGuard
from tests.guard.databases import BASKET

TURNS = int(os.environ.get("BLOOMTIDE_LOAD", "40"))
"""Transactions of each writer; more of them for a longer look."""
SPAN = 1_000_000
"""Each writer has keys of its own: this many."""
NEVER = -1
"""Keys from here down are never written."""


def connect(url: str) -> Engine:
    engine = create_engine(url, **({} if "sqlite" in url else {"pool_size": 12}))
    if "sqlite" in url:

        @event.listens_for(engine, "connect")
        def wait_for_your_turn(connection: Any, record: object) -> None:
            connection.execute("PRAGMA busy_timeout = 60000")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = OFF")

    return engine


def one_row(connection: Connection, key: int) -> None:
    connection.execute(insert(BASKET), {"customer": key})


def many_rows(connection: Connection, key: int) -> None:
    connection.execute(insert(BASKET), [{"customer": key + i * SPAN // 10} for i in range(3)])


def changed_key(connection: Connection, key: int) -> None:
    connection.execute(insert(BASKET), {"customer": key + SPAN // 2})
    connection.execute(
        update(BASKET).where(BASKET.c.customer == key + SPAN // 2).values(customer=key)
    )


def savepoint(connection: Connection, key: int) -> None:
    with connection.begin_nested():
        connection.execute(insert(BASKET), {"customer": key})
    undone = connection.begin_nested()
    connection.execute(insert(BASKET), {"customer": key + SPAN // 2})
    undone.rollback()


def unseen(connection: Connection, key: int) -> None:
    connection.execute(text(f"INSERT INTO basket (customer) VALUES ({key})"))


SEEN = (one_row, many_rows, changed_key, savepoint)


class Load:
    """Works on one guard until told to stop; `wrong` lists keys that were called absent."""

    def __init__(self, guard: DatabaseGuard, writer: int) -> None:
        self.guard = guard
        self.writer = writer
        self.wrong: list[int] = []
        self.errors: list[BaseException] = []
        self.avoided = 0
        self._stopped = threading.Event()
        self._writers: list[threading.Thread] = []
        self._others: list[threading.Thread] = []
        self._numbers = count(writer * 100)
        self._rebuilds: int | None = None
        """The writers go on until the guard was built more often, and spared a question."""

    def start(self, *, writers: int = 0, readers: int = 0, builders: int = 0) -> None:
        if builders:
            self._rebuilds = self.guard.stats().rebuilds
        self._writers += [self._thread(self._write) for _ in range(writers)]
        self._others += [self._thread(self._read) for _ in range(readers)]
        self._others += [self._thread(self._build) for _ in range(builders)]
        for thread in [*self._writers, *self._others]:
            thread.start()

    def _thread(self, work: Callable[[], None]) -> threading.Thread:
        return threading.Thread(target=self._run, args=(work,))

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            self.errors.append(error)
            self._stopped.set()
            raise

    def _write(self) -> None:
        """Some transactions are rolled back, some write keys unseen."""
        number = next(self._numbers)
        for turn in range(100 * TURNS):
            if turn >= TURNS and self._is_enough():
                break
            key = (number + 1) * SPAN + turn
            with self.guard.engine.connect() as connection:
                write = unseen if turn % 40 == 39 else SEEN[turn % len(SEEN)]
                write(connection, key)
                if turn % 10 == 5:
                    connection.rollback()
                else:
                    connection.commit()
            if not self.guard.may_exist(key) and turn % 10 != 5:
                self.wrong.append(key)

    def _is_enough(self) -> bool:
        if self._rebuilds is None:
            return True
        return self.avoided > 0 and self.guard.stats().rebuilds > self._rebuilds

    def _read(self) -> None:
        absent = count(NEVER, -1)
        while not self._stopped.is_set():
            with self.guard.engine.connect() as connection:
                rows = connection.execute(
                    select(BASKET.c.customer).order_by(BASKET.c.id.desc()).limit(20)
                )
                for key in rows.scalars().all():
                    if not self.guard.may_exist(key):
                        self.wrong.append(key)
            self.avoided += not self.guard.may_exist(next(absent))

    def _build(self) -> None:
        while not self._stopped.is_set():
            self.guard.build()

    def is_writing(self) -> bool:
        return any(thread.is_alive() for thread in self._writers)

    def finish(self) -> None:
        """Waits for the writers, stops the others, and looks at every row once more."""
        for thread in self._writers:
            thread.join()
        self._stopped.set()
        for thread in self._others:
            thread.join()
        self.look_at_all()

    def look_at_all(self) -> None:
        with self.guard.engine.connect() as connection:
            keys = connection.execute(select(BASKET.c.customer)).scalars().all()
        self.wrong += [key for key in keys if not self.guard.may_exist(key)]
