"""The table of segments (the paper's MBF_Table), in a real database through SQLAlchemy.

SQLite in the store's directory unless a URL says otherwise; PostgreSQL is the other one tested. One
database may hold many stores, each under its own name. Two tables:

    bloomtide_segments   one row for each registered segment: times, sizes, parameters, file, parent
    bloomtide_stores     name and value of what else a store must know: its settings, the journal's
                        generation, the next id, the revision, the mark of who feeds it,
                        the last batch of each source

1. A segment is registered only when its file is safe on the disk, and its row never changes but
   for its parent.
2. Every change is one transaction, which also moves the revision on. Who finds another revision
   than the last one seen was overtaken by another writer and is refused.
3. Ids are never used twice.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from hashlib import blake2b
from pathlib import Path
from typing import Any

from bloomtide import extras
from bloomtide.errors import LockedError, SnapshotError, StorageError, VersionError
from bloomtide.history.entry import Entry

with extras.require("history", "`History`"):
    import sqlalchemy as sql
    from sqlalchemy import exc

    sql.MetaData  # noqa: B018 - a package whose files were emptied has none

VERSION = 1
_BUSY = 30
"""Seconds that a transaction waits for readers of a SQLite file."""
_CHUNK = 500
"""Ids in one statement."""

_metadata = sql.MetaData()
_stores = sql.Table(
    "bloomtide_stores",
    _metadata,
    sql.Column("store", sql.String(64), primary_key=True),
    sql.Column("name", sql.String(32), primary_key=True),
    sql.Column("value", sql.Text, nullable=False),
)
_segments = sql.Table(
    "bloomtide_segments",
    _metadata,
    sql.Column("store", sql.String(64), primary_key=True),
    sql.Column("id", sql.BigInteger, primary_key=True, autoincrement=False),
    sql.Column("level", sql.Integer, nullable=False),
    sql.Column("number", sql.BigInteger, nullable=False),
    sql.Column("begin", sql.BigInteger, nullable=False),
    sql.Column("end", sql.BigInteger, nullable=False),
    sql.Column("first", sql.BigInteger, nullable=False),
    sql.Column("last", sql.BigInteger, nullable=False),
    sql.Column("rows", sql.Integer, nullable=False),
    sql.Column("events", sql.BigInteger, nullable=False),
    sql.Column("file", sql.String(128), nullable=False),
    sql.Column("items", sql.String(128)),
    sql.Column("bytes", sql.BigInteger, nullable=False),
    sql.Column("checksum", sql.String(64), nullable=False),
    sql.Column("predicted_error", sql.Float, nullable=False),
    sql.Column("parameters", sql.Text, nullable=False),
    sql.Column("state", sql.String(16), nullable=False),
    sql.Column("parent", sql.BigInteger),
    sql.Column("created", sql.BigInteger, nullable=False),
)


class Catalogue:
    """The rows of one store."""

    def __init__(self, url: str | sql.URL, store: str) -> None:
        """Connects when first used."""
        self.store = store
        self.url = sql.make_url(url)
        self.settings: dict[str, Any] = {}
        self.generation = 0
        self.revision = 0
        self.horizon: int | None = None
        """Events before this instant have been dropped for good."""
        self.mark = 0
        """The caller's number of the last events that the store holds (`History.feed`)."""
        self._next_id = 1
        self._change = ""
        arguments: dict[str, Any] = {}
        if self.url.get_backend_name() == "sqlite":
            arguments["connect_args"] = {"timeout": _BUSY}
        self._engine = sql.create_engine(self.url, **arguments)
        if self.url.get_backend_name() == "sqlite":
            sql.event.listen(self._engine, "connect", _make_commits_durable)

    @classmethod
    def in_directory(cls, directory: Path, store: str) -> Catalogue:
        """The default: a SQLite file beside the segments."""
        path = directory / "catalogue.sqlite"
        return cls(sql.URL.create("sqlite", database=str(path.resolve())), store)

    def exists(self) -> bool:
        """Whether the store is in this database."""
        with self._errors("read"):
            if self.url.get_backend_name() == "sqlite":
                path = Path(self.url.database or "")
                if not (path.is_file() and path.stat().st_size):
                    return False  # connecting would make the file
            if not sql.inspect(self._engine).has_table(_stores.name):
                return False
            with self._engine.connect() as connection:
                query = sql.select(_stores.c.value).where(_stores.c.store == self.store)
                return connection.execute(query.limit(1)).first() is not None

    def create(self, settings: Mapping[str, Any]) -> None:
        """Registers a new store, with its first journal."""
        values = {"version": VERSION, "settings": dict(settings), "generation": 0, "change": ""}
        values |= {"revision": 0, "next_id": 1, "horizon": None}
        with self._errors("write"), self._engine.begin() as connection:
            _metadata.create_all(connection)
            connection.execute(
                _stores.insert(),
                [
                    {"store": self.store, "name": name, "value": json.dumps(value)}
                    for name, value in values.items()
                ],
            )

    def load(self) -> list[Entry]:
        """Reads everything as of one moment: the entries, and the rest into the attributes."""
        with self._errors("read"), self._engine.connect() as connection:
            if self._engine.dialect.name != "sqlite":
                connection = connection.execution_options(isolation_level="REPEATABLE READ")
            with connection.begin():
                pairs = connection.execute(
                    sql.select(_stores.c.name, _stores.c.value).where(_stores.c.store == self.store)
                ).all()
                query = _segments.select().where(_segments.c.store == self.store)
                found = connection.execute(query.order_by(_segments.c.id)).mappings().all()
        values = {name: json.loads(value) for name, value in pairs}
        self._require_version(values.get("version", 0))
        self.settings = values["settings"]
        self.generation = values["generation"]
        self.revision = values["revision"]
        self.horizon = values["horizon"]
        self.mark = values.get("mark", 0)
        self._next_id = values["next_id"]
        names = [field.name for field in fields(Entry)]
        return [
            Entry(
                **{name: row[name] for name in names}
                | {"parameters": json.loads(row["parameters"])}
            )
            for row in found
        ]

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
        add: Sequence[Entry] = (),
        remove: Iterable[int] = (),
        adopt: Mapping[int, int] | None = None,
        generation: int | None = None,
        settings: Mapping[str, Any] | None = None,
        horizon: int | None = None,
        mark: int | None = None,
        batch: tuple[str, int] | None = None,
    ) -> None:
        """All of it or nothing, in one transaction. `adopt` gives children their new parent, whose
        items file is no longer needed. `batch` is the source and number of what is added."""
        values: dict[str, Any] = {"change": self._change, "next_id": self._next_id}
        given = {"generation": generation, "settings": settings, "horizon": horizon}
        values |= {name: value for name, value in given.items() if value is not None}
        with self._errors("write"), self._engine.begin() as connection:
            self._claim_revision(connection)
            if add:
                connection.execute(_segments.insert(), [self._row(entry) for entry in add])
            for child, parent in (adopt or {}).items():
                connection.execute(
                    _segments.update()
                    .where(_segments.c.store == self.store, _segments.c.id == child)
                    .values(parent=parent, items=None)
                )
            gone = list(remove)
            for start in range(0, len(gone), _CHUNK):
                chosen = _segments.c.id.in_(gone[start : start + _CHUNK])
                connection.execute(
                    _segments.delete().where(_segments.c.store == self.store, chosen)
                )
            if batch is not None:
                self._write_batch(connection, *batch)
            for name, value in values.items():
                connection.execute(
                    _stores.update()
                    .where(_stores.c.store == self.store, _stores.c.name == name)
                    .values(value=json.dumps(value))
                )
            if mark is not None and mark != self.mark:
                self._set_mark(connection, mark)
        self.revision += 1
        self.mark = self.mark if mark is None else mark
        self.generation = self.generation if generation is None else generation
        self.settings = self.settings if settings is None else dict(settings)
        self.horizon = self.horizon if horizon is None else horizon

    def read_batch(self, source: str) -> int | None:
        """The number of the last batch of a source that is in the store; None if there is none."""
        with self._errors("read"), self._engine.connect() as connection:
            query = sql.select(_stores.c.value).where(
                _stores.c.store == self.store, _stores.c.name == _batch_name(source)
            )
            value = connection.execute(query).scalar_one_or_none()
        return None if value is None else int(json.loads(value)["number"])

    def _write_batch(self, connection: sql.Connection, source: str, number: int) -> None:
        name, value = _batch_name(source), {"source": source, "number": number}
        here = (_stores.c.store == self.store, _stores.c.name == name)
        connection.execute(_stores.delete().where(*here))
        row = {"store": self.store, "name": name, "value": json.dumps(value)}
        connection.execute(_stores.insert(), [row])

    def read_revision(self) -> int:
        """The revision that is in the database now."""
        return int(self._read("revision"))

    def is_committed(self) -> bool:
        """Whether the change prepared last went through, for one whose answer was lost."""
        return bool(self._read("change") == self._change)

    def _read(self, name: str) -> Any:
        with self._errors("read"), self._engine.connect() as connection:
            query = sql.select(_stores.c.value).where(
                _stores.c.store == self.store, _stores.c.name == name
            )
            return json.loads(connection.execute(query).scalar_one())

    def close(self) -> None:
        """Gives the connections back."""
        self._engine.dispose()

    def _claim_revision(self, connection: sql.Connection) -> None:
        """Moves the revision on from the one last seen; the row stays locked until the commit."""
        moved = connection.execute(
            _stores.update()
            .where(
                _stores.c.store == self.store,
                _stores.c.name == "revision",
                _stores.c.value == json.dumps(self.revision),
            )
            .values(value=json.dumps(self.revision + 1))
        )
        if moved.rowcount != 1:
            raise LockedError(
                f"another process has changed the catalogue since revision {self.revision}",
                hint="one store has one writer; open it again",
                path=self._shown(),
                operation="write",
                pid=None,
            )

    def _set_mark(self, connection: sql.Connection, mark: int) -> None:
        """Most stores have none, so the row may have to be made."""
        mine = (_stores.c.store == self.store, _stores.c.name == "mark")
        connection.execute(_stores.delete().where(*mine))
        row = {"store": self.store, "name": "mark", "value": json.dumps(mark)}
        connection.execute(_stores.insert(), [row])

    def _row(self, entry: Entry) -> dict[str, Any]:
        row = {field.name: getattr(entry, field.name) for field in fields(Entry)}
        return row | {"store": self.store, "parameters": json.dumps(dict(entry.parameters))}

    def _require_version(self, version: int) -> None:
        if version != VERSION:
            raise VersionError(
                f"{self._shown()} was written by version {version} of the catalogue; "
                f"this bloomtide reads {VERSION}",
                hint="update bloomtide",
                path=self._shown(),
                offset=None,
                expected=VERSION,
                got=version,
            )

    def _shown(self) -> str:
        if self.url.get_backend_name() == "sqlite":
            return self.url.database or "sqlite"
        return self.url.render_as_string(hide_password=True)

    @contextmanager
    def _errors(self, operation: str) -> Iterator[None]:
        """What the database refuses, as errors of this library."""
        try:
            yield
        except exc.DBAPIError as error:
            reason = str(error.orig).strip().partition("\n")[0]
            if isinstance(error, exc.OperationalError) or error.connection_invalidated:
                raise StorageError(
                    f"cannot {operation} the catalogue {self._shown()}: {reason}",
                    hint="check that the database runs, and that its disk has room",
                    path=self._shown(),
                    operation=operation,
                ) from error
            raise SnapshotError(
                f"{self._shown()} is no catalogue, or a damaged one: {reason}",
                hint="restore it from a backup; the segment files hold every count",
                path=self._shown(),
                offset=None,
            ) from error


def _batch_name(source: str) -> str:
    """The name of the row that has a source's last batch."""
    return f"batch {blake2b(source.encode(), digest_size=12).hexdigest()}"


def _make_commits_durable(connection: Any, _record: Any) -> None:
    # EXTRA also brings the directory to the disk. With less, a commit could come undone after a
    # power cut when the journal it replaced is gone already.
    connection.execute("PRAGMA synchronous=EXTRA")
