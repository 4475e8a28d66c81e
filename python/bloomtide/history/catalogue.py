"""The table of segments (the paper's MBF_Table), in a real database.

SQLite in the store's directory, or what SQLAlchemy finds at a URL; PostgreSQL is the one tested.
One database may hold many stores. One table has a JSON value for each store and name:

    segment <id>    what is registered of a segment: times, sizes, files, checksums, parent
    source <hash>   a source, and how far it was read, or the number of its last batch
    settings, generation, journal, next_id, revision, horizon, mark, change, version, sum

1. A segment is registered only when its file is safe on the disk, and its row never changes but
   for its parent.
2. Every change is one transaction, which also moves the revision on. Who finds another revision
   than the last one seen was overtaken by another writer and is refused.
3. Ids are never used twice.
4. `sum` is the sum of the digests of all other rows: a row that was changed, lost or added by
   anything else is noticed when the catalogue is read.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import fields
from hashlib import blake2b
from pathlib import Path
from typing import Any

from bloomtide.errors import LockedError, SnapshotError, StorageError, VersionError
from bloomtide.history.database import Database, Execute, SqliteFile
from bloomtide.history.entry import Entry

VERSION = 1
_SEGMENT = "segment "
_SOURCE = "source "
_SUM = "sum"
_TABLE = """CREATE TABLE IF NOT EXISTS bloomtide_catalogue (
    store VARCHAR(64) NOT NULL, name VARCHAR(64) NOT NULL, value TEXT NOT NULL,
    PRIMARY KEY (store, name))"""


class Catalogue:
    """The rows of one store."""

    def __init__(self, place: str | Path, store: str) -> None:
        """`place`: a SQLite file, or the URL of a database. Connects when first used."""
        self.store = store
        self.settings: dict[str, Any] = {}
        self.generation = 0
        self.journal: dict[str, Any] = {}
        """What the journal of this generation was when it was registered (`begun_as`)."""
        self.revision = 0
        self.horizon: int | None = None
        """Events before this instant have been dropped for good."""
        self.mark = 0
        """The caller's number of the last events that the store holds (`History.feed`)."""
        self._values: dict[str, Any] = {}
        self._digests: dict[str, int] = {}
        self._next_id = 1
        self._change = ""
        self._database = _find_database(place)

    def exists(self) -> bool:
        """Whether the store is in this database."""
        if not self._database.has_table():
            return False
        return self._read("version") is not None

    def create(self, settings: Mapping[str, Any], journal: Mapping[str, Any]) -> None:
        """Registers a new store, with its first journal."""
        values = {"version": VERSION, "settings": dict(settings), "generation": 0, "change": ""}
        values |= {
            "journal": dict(journal),
            "revision": 0,
            "next_id": 1,
            "horizon": None,
            "mark": 0,
        }
        with self._database.begin("write") as execute:
            execute(_TABLE)
            self._write(execute, {name: json.dumps(value) for name, value in values.items()})

    def load(self) -> list[Entry]:
        """Reads everything as of one moment: the entries, and the rest into the attributes."""
        with self._database.begin("read") as execute:
            query = "SELECT name, value FROM bloomtide_catalogue WHERE store = :store"
            rows: dict[Any, Any] = dict(execute(query, store=self.store).fetchall())
        told = rows.pop(_SUM, None)
        version = _parse(rows.get("version"))
        if type(version) is int and version != VERSION:
            self._refuse_version(version)
        digests = {name: _digest(name, value) for name, value in rows.items()}
        if told != json.dumps(_total(digests)):
            raise SnapshotError(
                f"{self._database.shown} is damaged: its rows are not those that were written",
                hint="restore it from a backup", path=self._database.shown, offset=None,
            )  # fmt: skip
        self._digests = digests
        values = {name: json.loads(value) for name, value in rows.items()}
        entries = [Entry(**values.pop(name)) for name in rows if name.startswith(_SEGMENT)]
        self._take(values)
        return sorted(entries, key=lambda entry: entry.id)

    def allocate(self) -> int:
        """An id for a new segment; it counts as used when the segment is registered."""
        self._next_id += 1
        return self._next_id - 1

    def prepare_change(self) -> None:
        """Gives the next change a name of its own, for `is_committed`."""
        self._change = uuid.uuid4().hex

    def change(
        self,
        *,
        put: Iterable[Entry] = (),
        remove: Iterable[int] = (),
        positions: Mapping[str, Any] | None = None,
        **given: Any,
    ) -> None:
        """All of it or nothing, in one transaction. `put` are new segments, and those with a new
        parent; `positions` are those of sources that were read on; `given` is any of `settings`,
        `generation`, `journal`, `horizon` and `mark`, None for what stays."""
        values = {"change": self._change, "next_id": self._next_id, "revision": self.revision + 1}
        values |= {name: value for name, value in given.items() if value is not None}
        for source, position in (positions or {}).items():
            name = _SOURCE + blake2b(source.encode(), digest_size=12).hexdigest()
            values[name] = [source, position]
        values = {
            name: value for name, value in values.items() if value != self._values.get(name, self)
        }
        rows = {name: json.dumps(value) for name, value in values.items()}
        rows |= {f"{_SEGMENT}{entry.id}": _row(entry) for entry in put}
        with self._database.begin("write") as execute:
            self._claim_revision(execute)
            self._write(execute, rows, {f"{_SEGMENT}{number}" for number in remove})
        self._take(self._values | values)

    @property
    def positions(self) -> dict[str, Any]:
        """How far each source was read: what was stored with the last events that came from it."""
        return dict(value for name, value in self._values.items() if name.startswith(_SOURCE))

    def is_behind(self) -> bool:
        """Whether the database has another revision by now than the last one seen."""
        return int(self._read("revision") or 0) != self.revision

    def is_committed(self) -> bool:
        """Whether the change prepared last went through, for one whose answer was lost."""
        return bool(self._read("change") == self._change)

    def problems(self) -> list[str]:
        """What is wrong with the database as it is now."""
        again = Catalogue.__new__(Catalogue)
        again.__dict__ |= self.__dict__
        try:
            again.load()
            found = self._database.problems()
        except (SnapshotError, StorageError) as error:
            return [str(error.message)]
        if again.revision < self.revision:
            found.append(f"{self._database.shown} is older than what was read of it before")
        return found

    def close(self) -> None:
        """Gives the connections back."""
        self._database.close()

    def _take(self, values: dict[str, Any]) -> None:
        self._values = values
        self.settings = values["settings"]
        self.generation = values["generation"]
        self.journal = values["journal"]
        self.revision = values["revision"]
        self.horizon = values["horizon"]
        self.mark = values["mark"]
        self._next_id = values["next_id"]

    def _read(self, name: str) -> Any:
        query = "SELECT value FROM bloomtide_catalogue WHERE store = :store AND name = :name"
        with self._database.begin("read") as execute:
            row = execute(query, store=self.store, name=name).fetchone()
        return None if row is None else _parse(row[0])

    def _write(
        self, execute: Execute, rows: Mapping[str, str], removed: Iterable[str] = ()
    ) -> None:
        """Puts and removes rows, with the sum of what is there then."""
        gone = set(removed)
        digests = {name: one for name, one in self._digests.items() if name not in gone}
        digests |= {name: _digest(name, value) for name, value in rows.items()}
        rows = {**rows, _SUM: json.dumps(_total(digests))}
        delete = "DELETE FROM bloomtide_catalogue WHERE store = :store AND name = :name"
        insert = "INSERT INTO bloomtide_catalogue VALUES (:store, :name, :value)"
        for name in gone | rows.keys():
            execute(delete, store=self.store, name=name)
        for name, value in rows.items():
            execute(insert, store=self.store, name=name, value=value)
        self._digests = digests

    def _claim_revision(self, execute: Execute) -> None:
        """Refuses if the revision is not the one last seen; its row stays locked until the end."""
        claim = (
            "UPDATE bloomtide_catalogue SET value = :next"
            " WHERE store = :store AND name = 'revision' AND value = :last"
        )
        next_, last = json.dumps(self.revision + 1), json.dumps(self.revision)
        if execute(claim, store=self.store, next=next_, last=last).rowcount != 1:
            raise LockedError(
                f"another process has changed the catalogue since revision {self.revision}",
                hint="one store has one writer; open it again",
                path=self._database.shown, operation="write", pid=None,
            )  # fmt: skip

    def _refuse_version(self, version: int) -> None:
        raise VersionError(
            f"{self._database.shown} was written by version {version} of the catalogue; "
            f"this bloomtide reads {VERSION}",
            hint="update bloomtide", path=self._database.shown, offset=None,
            expected=VERSION, got=version,
        )  # fmt: skip


def _find_database(place: str | Path) -> Database | SqliteFile:
    if isinstance(place, str) and place.startswith("sqlite:///"):
        place = Path(place.removeprefix("sqlite:///"))
    return SqliteFile(place) if isinstance(place, Path) else Database(place)


def _parse(text: Any) -> Any:
    """None for what is no JSON."""
    try:
        return json.loads(text)
    except (TypeError, ValueError):
        return None


def _row(entry: Entry) -> str:
    """The value of a segment's row."""
    # asdict() copies what is in it, which takes as long as to seal a small segment.
    return json.dumps({field.name: getattr(entry, field.name) for field in fields(entry)})


def _digest(name: Any, value: Any) -> int:
    text = f"{name!r} {value!r}"
    return int.from_bytes(blake2b(text.encode(), digest_size=16).digest(), "little")


def _total(digests: Mapping[Any, int]) -> str:
    return f"{sum(digests.values()) % (1 << 128):032x}"
