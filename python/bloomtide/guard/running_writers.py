"""Waits for commits that nobody is waiting for any more.

A process that is killed, or whose connection breaks, may have sent a commit that the server has yet
to carry out. A build that reads before that, in a process that knows nothing of it, would miss its
rows. PostgreSQL can be asked who writes to a table; SQLite works inside the process that dies.

Only writers that are at work count, and those that were a moment ago: one that is idle in its
transaction will not commit by itself. If its client is alive, that one's guard takes care of it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from bloomtide.errors import StorageError
from bloomtide.guard.schema.facts import Run, literal

_GLANCE = 0.02
_LOCKED = """
    lock.mode = 'RowExclusiveLock' AND lock.relation IN (
        WITH RECURSIVE tree AS (
            SELECT CAST(to_regclass({table}) AS oid) AS rel
            UNION SELECT inhrelid FROM pg_inherits JOIN tree ON inhparent = rel
        ) SELECT rel FROM tree
    )
"""
"""Whoever writes to a table has this lock on it until the transaction has ended; who writes to a
partition or to a table that inherits, by its own name, has it on that one only."""
_OURS = f"""
    SELECT lock.virtualtransaction
    FROM pg_locks AS lock JOIN pg_stat_activity AS client USING (pid)
    WHERE {_LOCKED} AND lock.granted
    AND client.datname = current_database() AND client.usename = current_user
    AND client.client_addr IS NOT DISTINCT FROM inet_client_addr()
    AND client.pid <> pg_backend_pid()
"""
"""Others than those of the same user and machine are no processes of this guard."""
_WRITERS = f"""{_OURS}
    AND (client.state = 'active' OR client.state_change > clock_timestamp() - interval '0.5 s')
"""
_OLDER = f"{_OURS} AND client.xact_start < clock_timestamp() - interval '{{age}} s'"
_PREPARED = f"""
    SELECT count(*) FROM pg_locks AS lock
    WHERE {_LOCKED} AND lock.pid IS NULL AND lock.database = (
        SELECT oid FROM pg_database WHERE datname = current_database()
    )
"""
"""Transactions that are prepared, and will be committed by anybody."""


def prepared_writers(run: Run, table: str) -> int:
    """How many prepared transactions have written to a table of PostgreSQL."""
    return int(run(_PREPARED.format(table=literal(table)))[0][0])


def older_writers(run: Run, table: str, age: float) -> bool:
    """Whether a transaction is open that began more than so many seconds ago, and has written."""
    return bool(run(_OLDER.format(table=literal(table), age=f"{age:.3f}")))


def wait_for_writers(
    run: Run, end: Callable[[], None], table: str, patience: float = 60.0, *, in_loop: bool = False
) -> None:
    """Returns when all who may be committing to a table of PostgreSQL now have done so.

    `end` ends the transaction of a look; `in_loop`: those waited for may be in the same loop.
    """
    deadline = time.monotonic() + patience
    before: set[str] | None = None
    while before is None or before:
        now = {row[0] for row in run(_WRITERS.format(table=literal(table)))}
        end()
        before = now if before is None else before & now
        if before and time.monotonic() > deadline:
            raise StorageError(
                f"a transaction that writes to `{table}` does not end",
                hint="wait for it, then build again", path=table, operation="build",
            )  # fmt: skip
        if before and in_loop:
            from sqlalchemy.util import await_only

            await_only(asyncio.sleep(_GLANCE))
        elif before:
            time.sleep(_GLANCE)
