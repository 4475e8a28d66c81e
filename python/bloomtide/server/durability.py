"""What the server's structures survive: their ledger, and when a reply may go out.

Replies of one turn of the event loop are held until its changes are in the journal, as one record.
Under `always` one sync, in a thread, then covers all of them: the more clients, the more share it.
Replies leave in the order they were made, and none tells of a change that is not yet as safe as
`appendfsync` says.

After a write that failed the keyspace is read only, with the reason. Replies that wait are not
sent: nobody knows whether their changes are safe. Questions are answered as before.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from bloomtide._core import Keyspace
from bloomtide.durable.disk import Disk
from bloomtide.errors import BloomtideError, StorageError
from bloomtide.server.settings import Settings
from bloomtide.store import Ledger
from bloomtide.store.rewriting import Rewriting

log = logging.getLogger("bloomtide.server")
FILE = "keyspace"
"""The name of the snapshot's file."""
_TICKS = 10
"""How often in a second the clock is looked at."""
_EXPIRED = 1000
"""Keys that are forgotten without letting others in."""


class Receiver(Protocol):
    """Who waits for a reply."""

    def send(self, reply: bytes) -> None:
        """The reply may go out."""

    def fail(self, reason: str) -> None:
        """The change of this reply may not be safe: it must not be acknowledged."""


class Durability:
    """Holds replies until what they tell of is safe."""

    def __init__(self, keyspace: Keyspace, settings: Settings, *, disk: Disk | None = None) -> None:
        self.settings = settings
        self.last_save = time.time()
        self.last_save_failed: str | None = None
        self._keyspace = keyspace
        self._disk = disk
        self._ledger: Ledger | None = None
        self._rewriting: Rewriting | None = None
        self._snapshot_bytes = 0
        self._waiting: list[tuple[Receiver, bytes]] = []
        self._scheduled = False
        self._syncing = False
        self._thread = ThreadPoolExecutor(1, "bloomtide-sync")
        self._clock: asyncio.Task[None] | None = None

    # --- the start ------------------------------------------------------------------------------

    def load(self) -> None:
        """Reads the snapshot and the journal into the empty keyspace. May take seconds."""
        if not self.settings.appendonly:
            return
        ledger = Ledger.open(self.settings.dir, sync=self.settings.appendfsync, disk=self._disk)
        try:
            if ledger.snapshot is not None:
                path = ledger.snapshot / FILE
                self._keyspace.load(str(path))
                self._snapshot_bytes = path.stat().st_size
                self.last_save = path.stat().st_mtime
            for _, payload in ledger.replay():
                self._keyspace.replay(payload)
        except BaseException:
            ledger.close()
            raise
        if ledger.cut:
            log.warning("cut a torn tail of %d bytes off the journal", ledger.cut)
        self._ledger = ledger

    def start(self) -> None:
        """Begins to watch the clock, in the running loop."""
        self._loop = asyncio.get_running_loop()
        self._clock = asyncio.create_task(self._watch_clock())

    # --- replies --------------------------------------------------------------------------------

    def hold(self, receiver: Receiver, reply: bytes) -> None:
        """Sends the reply once the changes before it are as safe as they must be."""
        self._waiting.append((receiver, reply))
        self._schedule()

    def _schedule(self) -> None:
        if not self._scheduled and not self._syncing:
            self._scheduled = True
            self._loop.call_soon(self._end_turn)

    def _end_turn(self) -> None:
        self._scheduled = False
        if self._syncing:
            return
        waiting, self._waiting = self._waiting, []
        changed = self._append()
        if self._failed() is not None and changed:
            _refuse(waiting, self._failed())
        elif changed and self._ledger is not None and self._ledger.log.policy == "always":
            self._syncing = True
            done = self._loop.run_in_executor(self._thread, self._sync)
            done.add_done_callback(lambda done: self._end_sync(waiting, done.exception()))
        else:
            for receiver, reply in waiting:
                receiver.send(reply)

    def _append(self) -> bool:
        """Brings the changes since the last call into the journal. Were there any?"""
        changes = self._keyspace.take_changes()
        if not changes:
            return False
        if self._ledger is not None:
            with suppress(BloomtideError):
                self._ledger.write(changes)
            self._note_failure()
        return True

    def _end_sync(self, waiting: list[tuple[Receiver, bytes]], error: BaseException | None) -> None:
        self._syncing = False
        self._note_failure()
        if (reason := self._failed()) is not None or error is not None:
            _refuse(waiting, reason or repr(error))
        else:
            for receiver, reply in waiting:
                receiver.send(reply)
        if self._waiting:
            self._end_turn()

    async def synced(self) -> bool:
        """Brings all changes up to now to the disk; False if that failed, or nothing is kept."""
        self._append()
        if self._ledger is None:
            return False
        await self._loop.run_in_executor(self._thread, self._sync)
        return self._failed() is None

    # --- the disk -------------------------------------------------------------------------------

    def _sync(self) -> None:
        """In the thread."""
        assert self._ledger is not None
        with suppress(BloomtideError):  # which the ledger remembers
            self._ledger.sync()

    def _failed(self) -> str | None:
        return None if self._ledger is None else self._ledger.failed

    def _note_failure(self) -> None:
        """Once the ledger takes nothing more, neither does the keyspace."""
        reason = self._failed()
        if reason is not None and self._keyspace.read_only is None:
            log.error("the journal failed, so nothing more is written: %s", reason)
            self._keyspace.read_only = f"The journal takes no more changes: {reason}"

    async def _watch_clock(self) -> None:
        while True:
            await asyncio.sleep(1 / _TICKS)
            await self._forget_expired()
            ledger = self._ledger
            if ledger is None:
                continue
            self._note_failure()  # of a sync that nobody waited for
            if self._rewriting is not None:
                # In the thread: it removes the old files, which may be large.
                await self._loop.run_in_executor(self._thread, self._poll_rewriting)
            elif self._has_grown(ledger):
                # First what is not on the disk yet, so that nobody waits for it.
                await self._loop.run_in_executor(self._thread, self._sync)
                self._rewrite()

    async def _forget_expired(self) -> None:
        """Keys that nobody asks for expire too. Their end is in the journal like any change."""
        while forgotten := self._keyspace.expire(time.time(), _EXPIRED):
            self._schedule()
            if forgotten < _EXPIRED:
                return
            await asyncio.sleep(0)

    # --- snapshots ------------------------------------------------------------------------------

    @property
    def syncs(self) -> int:
        """How often the journal was brought to the disk."""
        return 0 if self._ledger is None else self._ledger.log.syncs

    @property
    def sync_seconds(self) -> float:
        """What the last time took."""
        return 0.0 if self._ledger is None else self._ledger.log.sync_seconds

    @property
    def rewriting(self) -> bool:
        """Is a snapshot being written by a child?"""
        return self._rewriting is not None

    def save(self) -> None:
        """Makes a snapshot now; nothing else happens meanwhile."""
        self._require_ledger().rewrite(self._write_after_append())
        self._note_saved()

    def save_in_background(self) -> bool:
        """Begins a snapshot in a child; False if one is being made already."""
        ledger = self._require_ledger()
        if self._rewriting is not None:
            return False
        self._rewriting = ledger.rewrite_in_child(self._write_after_append())
        return True

    def _write_after_append(self) -> Callable[[Path], object]:
        """A snapshot holds all changes up to now, so they must be in the journal before it."""
        self._append()
        return lambda directory: self._keyspace.save(str(directory / FILE))

    def _require_ledger(self) -> Ledger:
        if self._ledger is None:
            raise StorageError(
                "there is no data directory: appendonly is off", hint="start with appendonly yes",
                path="", operation="save",
            )  # fmt: skip
        return self._ledger

    def _poll_rewriting(self) -> None:
        """In the thread."""
        assert self._rewriting is not None
        try:
            if not self._rewriting.poll():
                return
            self._note_saved()
        except BloomtideError as error:
            self.last_save_failed = error.message
            log.error("no snapshot was made: %s", error.message)
        self._rewriting = None

    def _note_saved(self) -> None:
        snapshot = self._require_ledger().snapshot
        assert snapshot is not None
        self._snapshot_bytes = (snapshot / FILE).stat().st_size
        self.last_save = time.time()
        self.last_save_failed = None
        log.info("made a snapshot of %d bytes", self._snapshot_bytes)

    def _has_grown(self, ledger: Ledger) -> bool:
        """As Redis decides: the journal against what the last rewrite left."""
        percentage, settings = self.settings.auto_aof_rewrite_percentage, self.settings
        least = max(settings.auto_aof_rewrite_min_size, self._snapshot_bytes * percentage // 100)
        return bool(percentage) and ledger.failed is None and ledger.bytes > least

    def _rewrite(self) -> None:
        try:
            self.save_in_background()
        except BloomtideError as error:
            self.last_save_failed = error.message
            log.error("no snapshot was begun: %s", error.message)

    # --- the end --------------------------------------------------------------------------------

    async def drain(self) -> None:
        """Returns when no reply waits any more."""
        while self._waiting or self._syncing or self._scheduled:
            await asyncio.sleep(0.001)

    def close(self, *, snapshot: bool) -> None:
        """Syncs, makes a last snapshot if there is something new, and lets go of the directory."""
        if self._clock is not None:
            self._clock.cancel()
        self._thread.shutdown()
        ledger, self._ledger = self._ledger, None
        if ledger is None:
            return
        try:
            if ledger.failed is None:
                if changes := self._keyspace.take_changes():
                    ledger.write(changes)
                if self._rewriting is not None:
                    self._rewriting.cancel()
                if snapshot and ledger.sequence > ledger.snapshot_sequence:
                    ledger.rewrite(lambda where: self._keyspace.save(str(where / FILE)))
        finally:
            ledger.close()

    def change(self, settings: Settings) -> None:
        """Takes other settings while it runs."""
        self.settings = settings
        if self._ledger is not None:
            self._ledger.log.policy = settings.appendfsync

    def about(self) -> dict[str, object]:
        """INFO persistence, under Redis's names."""
        ledger = self._ledger
        failed = self._failed()
        return {
            "loading": int(self._keyspace.loading),
            "rdb_bgsave_in_progress": int(self.rewriting),
            "rdb_last_save_time": int(self.last_save),
            "rdb_last_bgsave_status": "err" if self.last_save_failed else "ok",
            "aof_enabled": int(ledger is not None),
            "aof_rewrite_in_progress": int(self.rewriting),
            "aof_last_bgrewrite_status": "err" if self.last_save_failed else "ok",
            "aof_last_write_status": "err" if failed else "ok",
            "aof_last_write_error": failed or "",
            "aof_current_size": ledger.bytes + self._snapshot_bytes if ledger else 0,
            "aof_base_size": self._snapshot_bytes,
            "aof_sequence": ledger.sequence if ledger else 0,
            "aof_fsyncs": self.syncs,
            "aof_last_fsync_seconds": round(self.sync_seconds, 6),
        }


def _refuse(waiting: list[tuple[Receiver, bytes]], reason: str | None) -> None:
    for receiver, _ in waiting:
        receiver.fail(reason or "")
