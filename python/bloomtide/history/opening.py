"""Opening a store: make it if it is new, read the catalogue, replay the journal, collect orphans.

In a directory `store.json` says which store it is and where its catalogue lies, `catalogue.sqlite`
is that catalogue unless a URL was given, `lock` is held by the writer, `journal-<generation>` holds
the open segments and `segments` the sealed ones.

The journal is what the catalogue names. A torn tail is what a crash leaves, and is cut; anything
that was acknowledged lies before it. Damage with sound records behind it is no crash: a writer
refuses it by name, and only `repair` goes on without the damaged part. A reader names it
(`State.lost`), and answers from the rest.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bloomtide import extras
from bloomtide._core import HistoryBuffer, RecordScan
from bloomtide.durable.disk import TEMPORARY, Disk, storage_errors
from bloomtide.durable.log import Log, pack_file, scan
from bloomtide.durable.manifest import read_manifest, write_manifest
from bloomtide.errors import (
    IncompatibleError,
    SnapshotError,
    StorageError,
)
from bloomtide.history.catalogue import Catalogue
from bloomtide.history.entry import Entry
from bloomtide.history.forest import Forest
from bloomtide.history.journal import KIND, begin, begun_as, journal_path
from bloomtide.history.places import open_place
from bloomtide.history.settings import GIVEN, Settings
from bloomtide.history.state import State, read_note

CACHE = 1 << 30
"""Bytes of segments from an object store that are kept here."""
_ATTEMPTS = 100
"""A reader reads again if the writer begins a new journal meanwhile."""


def open_state(
    directory: Path,
    given: dict[str, Any],
    *,
    secret: bytes | None,
    catalogue: str | None,
    writing: bool,
    repair: bool,
    clock: Callable[[], Any] | None,
    keep: Callable[[], object] | None,
    disk: Disk,
) -> State:
    """The store in this directory. The writer's lock is held by the caller."""
    identity = directory / "store.json"
    if not identity.exists():
        if not writing:
            raise StorageError(
                f"there is no store in {directory}", hint='mode="w" makes one',
                path=str(directory), operation="open",
            )  # fmt: skip
        _require_new(directory, "store.json")
        Settings.create(given, secret, None).levels()  # or else nothing is made
        about = {"store": uuid.uuid4().hex, "catalogue": shown(catalogue)}
        write_manifest(disk, identity, "history", about)
    store = read_identity(identity, catalogue)
    rows = Catalogue(directory / "catalogue.sqlite" if catalogue is None else catalogue, store)
    try:
        if not rows.exists():
            _create(directory, given, secret, rows, writing, disk)
        entries, settings, buffer, found, lost = _read(
            directory, given, secret, rows, writing=writing, repair=repair,
            journal=writing and keep is None,
        )  # fmt: skip
        place = open_place(disk, directory, settings.location, store, CACHE)
        forest = Forest(place, entries, by_order=settings.window is None)
        state = State(directory, disk, settings, secret, rows, place, forest, buffer, None, clock)
        state.mark, state.keep = rows.mark, keep
        buffer.set_sealed(sum(entry.events for entry in forest.roots))
        if writing:
            _resume(state, found if lost is None else None)
        else:
            state.lost = lost
        return state
    except BaseException:
        rows.close()
        raise


def reload(state: State) -> None:
    """Reads the catalogue and the journal again, for a reader."""
    entries, settings, buffer, _, lost = _read(
        state.directory, dict.fromkeys(GIVEN), state.secret, state.catalogue,
        writing=False, repair=False,
    )  # fmt: skip
    state.settings, state.buffer, state.lost = settings, buffer, lost
    state.forest = Forest(state.place, entries, by_order=settings.window is None)


def _read(
    directory: Path,
    given: dict[str, Any],
    secret: bytes | None,
    rows: Catalogue,
    *,
    writing: bool,
    repair: bool,
    journal: bool = False,
) -> tuple[list[Entry], Settings, HistoryBuffer, RecordScan | None, str | None]:
    """The catalogue and the buffer of one moment, the journal, and why not all of it is sound. A
    reader reads again if the writer has begun a new journal meanwhile."""
    for _ in range(_ATTEMPTS):
        entries = rows.load()
        if not repair and read_note(directory, rows.store) > rows.revision:
            if not writing and rows.is_behind():
                continue
            raise SnapshotError(
                f"the catalogue of {directory} is older than the store",
                hint="restore all files of one moment, or open with repair=True to go on without"
                " what is lost", path=str(directory), offset=None,
            )  # fmt: skip
        settings = Settings.create(given, secret, rows.settings)
        settings.levels()
        buffer, found, lost = read_journal(directory, rows, settings, secret, journal)
        if lost is not None and not writing and rows.is_behind():
            continue
        if lost is not None and writing and not repair:
            path = journal_path(directory, rows.generation)
            raise SnapshotError(
                lost, hint="restore it, or open with repair=True to go on without what is lost",
                path=str(path), offset=0 if found is None else found.damaged,
            )  # fmt: skip
        return entries, settings, buffer, found, lost
    raise StorageError(
        f"{directory} changes faster than it can be read", hint="try again",
        path=str(directory), operation="read",
    )  # fmt: skip


def read_journal(
    directory: Path,
    rows: Catalogue,
    settings: Settings,
    secret: bytes | None,
    journal: bool = False,
) -> tuple[HistoryBuffer, RecordScan | None, str | None]:
    """What the journal has, and what is wrong with it: not a torn tail."""
    path = journal_path(directory, rows.generation)
    buffer = settings.buffer(secret, journal=journal)
    buffer.take_journal()
    try:
        with storage_errors(path, "read"):
            data = path.read_bytes()
    except StorageError as error:
        if not isinstance(error.__cause__, FileNotFoundError):
            raise
        return buffer, None, f"{path} is missing: what was in the open segments is lost"
    found = scan(path, KIND, data)
    buffer.replay(found)
    if found.damaged is not None:
        return buffer, found, f"{path} is damaged at byte {found.damaged}"
    begun = rows.journal
    if begun_as(data)["head"] != begun["head"]:
        buffer = settings.buffer(secret, journal=journal)
        buffer.take_journal()
        return buffer, None, f"{path} is another journal than the one that was registered"
    if begun_as(data[: begun["bytes"]]) != begun:
        return buffer, found, f"{path} was changed or cut before byte {begun['bytes']}"
    return buffer, found, None


def _create(
    directory: Path,
    given: dict[str, Any],
    secret: bytes | None,
    rows: Catalogue,
    writing: bool,
    disk: Disk,
) -> None:
    """Registers a new store. Its journal is there first: from now on a missing one is a loss."""
    settings = Settings.create(given, secret, None)
    settings.levels()
    payloads = settings.buffer(secret, journal=True).take_journal()
    try:
        _require_new(directory, "catalogue", len(pack_file(KIND, payloads)))
    except SnapshotError:
        if writing or not rows.exists():
            raise
        return  # it was made meanwhile, and events came
    if not writing:
        raise StorageError(
            f"the store in {directory} was begun and is not finished yet",
            hint='it has no events; if who made it was killed, open it with mode="w" to finish it',
            path=str(directory), operation="open",
        )  # fmt: skip
    open_place(disk, directory, settings.location, rows.store, CACHE)
    journal, begun = begin(disk, journal_path(directory, 0), "no", payloads)
    journal.close()
    disk.commit(lambda: rows.create(settings.as_dict(), begun))


def read_identity(path: Path, catalogue: str | None) -> str:
    """Which store this is, if its catalogue is the one that was given."""
    about = read_manifest(path, "history", hint="restore it from a backup") or {}
    store, told = about["store"], about["catalogue"]
    if told != shown(catalogue):
        raise IncompatibleError(
            f"the store has another `catalogue`: {told or 'its own SQLite file'}",
            hint="give the URL that it was made with", field="catalogue",
            expected=told, got=shown(catalogue),
        )  # fmt: skip
    return str(store)


def _require_new(directory: Path, lost: str, empty: int = -1) -> None:
    """Refuses to make a store over one that has lost a file: its events would go with it. `empty`
    is how long the first journal is before any event: a crash may leave it, and nothing else."""
    first = journal_path(directory, 0)
    journals = [path for path in directory.glob("journal-*") if path.suffix != TEMPORARY]
    if first in journals and first.stat().st_size <= empty:
        journals.remove(first)
    table = directory / "catalogue.sqlite"
    registered = table.is_file() and table.stat().st_size > 0 and lost != "catalogue"
    if journals or registered or any((directory / "segments").glob("*.segment")):
        raise SnapshotError(
            f"{directory} has events but no {lost}", hint="restore it from a backup",
            path=str(directory), offset=None,
        )  # fmt: skip


def shown(catalogue: str | None) -> str | None:
    """The URL without what must not lie about in files: who connects, and how."""
    if catalogue is None:
        return None
    with extras.require("history", "`catalogue`"):
        from sqlalchemy import exc, make_url
    try:
        url = make_url(catalogue)
    except exc.ArgumentError as error:
        raise StorageError(
            f"`catalogue` is no URL of a database: {catalogue}",
            hint="write postgresql+psycopg://user:password@host/database",
            path=catalogue, operation="open",
        ) from error  # fmt: skip
    port = f":{url.port}" if url.port else ""
    return f"{url.get_backend_name()}://{url.host or ''}{port}/{url.database or ''}"


def _resume(state: State, found: RecordScan | None) -> None:
    """Goes on with the journal that was replayed, or with a sound copy of it."""
    settings = state.settings.as_dict()
    changed = settings if settings != state.catalogue.settings else None
    if found is None:
        journal, begun = state.begin_journal(without=[])
        try:
            generation = state.catalogue.generation + 1
            state.register(settings=changed, generation=generation, journal=begun)
        except BaseException:
            journal.close()
            raise
    else:
        if changed is not None:
            state.register(settings=changed)
        journal = Log.resume(state.disk, state.journal_path(), state.sync, found)
    state.collect_orphans()
    state.journal = journal
