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
from bloomtide._core import HistoryBuffer
from bloomtide.durable.disk import TEMPORARY, Disk, storage_errors
from bloomtide.errors import (
    IncompatibleError,
    SnapshotError,
    StorageError,
)
from bloomtide.format import pack_json, read_json
from bloomtide.history.catalogue import Catalogue
from bloomtide.history.entry import Entry
from bloomtide.history.forest import Forest
from bloomtide.history.journal import Journal, begun_as, journal_path
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
        about = {"store": uuid.uuid4().hex, "catalogue": shown(catalogue)}
        disk.write_file(identity, pack_json("history", about))
    store = read_identity(identity, catalogue)
    rows = Catalogue(directory / "catalogue.sqlite" if catalogue is None else catalogue, store)
    try:
        if not rows.exists():
            _create(directory, given, secret, rows, writing, disk)
        entries, settings, buffer, length, lost = _read(
            directory, given, secret, rows, writing=writing, repair=repair
        )
        place = open_place(disk, directory, settings.location, store, CACHE)
        forest = Forest(place, entries, by_order=settings.window is None)
        state = State(directory, disk, settings, secret, rows, place, forest, buffer, None, clock)
        state.mark, state.keep = rows.mark, keep
        if writing:
            _resume(state, length, damaged=lost is not None)
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
) -> tuple[list[Entry], Settings, HistoryBuffer, int, str | None]:
    """The catalogue and the buffer of one moment, how much of the journal is sound, and why the
    rest is not. A reader reads again if the writer has begun a new journal meanwhile."""
    for _ in range(_ATTEMPTS):
        entries = rows.load()
        if not repair and read_note(directory) > rows.revision:
            if not writing and rows.read_revision() != rows.revision:
                continue
            raise SnapshotError(
                f"the catalogue of {directory} is older than the store",
                hint="restore all files of one moment, or open with repair=True to go on without"
                " what is lost", path=str(directory), offset=None,
            )  # fmt: skip
        settings = Settings.create(given, secret, rows.settings)
        settings.levels()
        buffer, length, lost = read_journal(directory, rows, settings, secret)
        if lost is not None and not writing and rows.read_revision() != rows.revision:
            continue
        if lost is not None and writing and not repair:
            path = journal_path(directory, rows.generation)
            raise SnapshotError(
                lost, hint="restore it, or open with repair=True to go on without what is lost",
                path=str(path), offset=length,
            )  # fmt: skip
        return entries, settings, buffer, length, lost
    raise StorageError(
        f"{directory} changes faster than it can be read", hint="try again",
        path=str(directory), operation="read",
    )  # fmt: skip


def read_journal(
    directory: Path, rows: Catalogue, settings: Settings, secret: bytes | None
) -> tuple[HistoryBuffer, int, str | None]:
    """What the journal has, up to where it is sound, and what is wrong: not a torn tail."""
    path = journal_path(directory, rows.generation)
    buffer = settings.buffer(secret)
    buffer.take_journal()
    try:
        with storage_errors(path, "read"):
            data = path.read_bytes()
    except StorageError as error:
        if not isinstance(error.__cause__, FileNotFoundError):
            raise
        return buffer, 0, f"{path} is missing: what was in the open segments is lost"
    report = buffer.replay(data)
    if report.damaged is not None:
        return buffer, report.damaged, f"{path} is damaged at byte {report.damaged}"
    begun = rows.journal
    if begun_as(data)["head"] != begun["head"]:
        buffer = settings.buffer(secret)
        buffer.take_journal()
        return buffer, 0, f"{path} is another journal than the one that was registered"
    if begun_as(data[: begun["bytes"]]) != begun:
        return buffer, report.valid_bytes, f"{path} was changed or cut before byte {begun['bytes']}"
    return buffer, report.valid_bytes, None


def _create(
    directory: Path,
    given: dict[str, Any],
    secret: bytes | None,
    rows: Catalogue,
    writing: bool,
    disk: Disk,
) -> None:
    """Registers a new store. Its journal is there first: from now on a missing one is a loss."""
    if not writing:
        raise StorageError(
            f"the catalogue of {directory} is missing", hint="restore it from a backup",
            path=str(directory), operation="open",
        )  # fmt: skip
    settings = Settings.create(given, secret, None)
    settings.levels()
    journal = settings.buffer(secret).take_journal()
    _require_new(directory, "catalogue", len(journal))
    open_place(disk, directory, settings.location, rows.store, CACHE)
    disk.write_file(journal_path(directory, 0), journal)
    disk.commit(lambda: rows.create(settings.as_dict(), begun_as(journal)))


def read_identity(path: Path, catalogue: str | None) -> str:
    """Which store this is, if its catalogue is the one that was given."""
    with storage_errors(path, "read"):
        data = path.read_bytes()
    about = read_json(data, "history", path)
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


def _resume(state: State, length: int, *, damaged: bool) -> None:
    """Goes on with the journal that was replayed, or with a sound copy of it."""
    settings = state.settings.as_dict()
    changed = settings if settings != state.catalogue.settings else None
    generation = begun = None
    path = journal_path(state.directory, state.catalogue.generation)
    if damaged or not path.exists():
        generation = state.catalogue.generation + 1
        path = journal_path(state.directory, generation)
        data = state.buffer.dump(without=[])
        state.disk.write_file(path, data)
        length = len(data)
        begun = begun_as(data)
    if changed is not None or generation is not None:
        state.register(settings=changed, generation=generation, journal=begun)
    state.collect_orphans()
    state.journal = Journal(state.disk, path, state.settings.sync, length)
