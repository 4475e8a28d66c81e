"""Where a store keeps things: object stores, another directory, PostgreSQL; and who reads them."""

from __future__ import annotations

import threading
import uuid
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pytest
import sqlalchemy as sql

from bloomtide.durable.disk import Disk
from bloomtide.errors import IncompatibleError, LockedError, StorageError
from bloomtide.history import History
from bloomtide.history.catalogue import Catalogue
from bloomtide.history.places import ObjectStore
from tests.history_store.exact import DAY, HOUR, START, SURE, ExactHistory, require_bounds
from tests.services.postgres import Postgres, postgres

__all__ = ["postgres"]


def fill(store: History, days: int = 2) -> ExactHistory:
    exact = ExactHistory()
    for hour in range(days * 24):
        for key in ("often", f"at {hour % 5}"):
            store.add(key, at=START + hour * HOUR)
            exact.add(key, START + hour * HOUR)
    store.compact()
    return exact


def open_store(path: Path, **words: Any) -> History:
    settings: dict[str, Any] = {"error_rate": SURE, "background": False, "sync": "no"}
    return History.open(path, **settings | {"clock": lambda: START + 99 * DAY} | words)


@pytest.mark.parametrize("scheme", ["memory", "file"])
def test_a_store_whose_segments_lie_elsewhere_answers_the_same(tmp_path: Path, scheme: str) -> None:
    location = f"memory://{uuid.uuid4().hex}" if scheme == "memory" else f"file://{tmp_path}/far"
    with open_store(tmp_path / "store", location=location) as store:
        exact = fill(store)
        require_bounds(store, exact, START + 100, START + DAY + 7 * HOUR)
    assert not (tmp_path / "store" / "segments").exists()
    files, root = fsspec.core.url_to_fs(location)
    assert len(files.find(root)) == 4
    stray = f"{files.find(root)[0]}.tmp"
    files.pipe_file(stray, b"left by a crash")
    with open_store(tmp_path / "store") as store:
        require_bounds(store, exact, START, START + 2 * DAY)
        assert store.verify().problems == ()
    assert not files.exists(stray)


def test_the_cache_of_an_object_store_is_bounded_and_filled_again(tmp_path: Path) -> None:
    place = ObjectStore(Disk(), f"memory://{uuid.uuid4().hex}", tmp_path / "cache", 2500)
    for number in range(5):
        place.write(f"file {number}", bytes([number]) * 1000)
    for number in (0, 1, 2, 3, 4, 0):
        assert place.local(f"file {number}").read_bytes() == bytes([number]) * 1000
        assert len(list((tmp_path / "cache").iterdir())) <= 2
    place.remove("file 0")
    with pytest.raises(FileNotFoundError):
        place.local("file 0")
    assert place.names() == [f"file {number}" for number in range(1, 5)]


def test_an_upload_that_loses_bytes_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = ObjectStore(Disk(), f"memory://{uuid.uuid4().hex}", tmp_path, 100)
    kind = type(place._files)
    whole = kind.pipe_file
    monkeypatch.setattr(
        kind, "pipe_file", lambda self, path, value, **words: whole(self, path, value[:-1], **words)
    )
    with pytest.raises(StorageError, match="of 9 bytes arrived"):
        place.write("name", b"all of it")


def test_a_location_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="gopher"):
        open_store(tmp_path / "store", location="gopher://hole")


def test_postgresql_holds_the_catalogues_of_many_stores(tmp_path: Path, postgres: Postgres) -> None:
    url = postgres.new_database()
    with (
        open_store(tmp_path / "one", catalogue=url, retention="1m for 1d, 1h for 9y") as one,
        open_store(tmp_path / "two", catalogue=url) as two,
    ):
        exact, other = fill(one, 4), fill(two, 1)
    assert not (tmp_path / "one" / "catalogue.sqlite").exists()
    assert "postgres@" not in (tmp_path / "one" / "store.json").read_text()
    with pytest.raises(IncompatibleError, match="catalogue"):
        open_store(tmp_path / "one")
    with (
        open_store(tmp_path / "one", catalogue=url) as one,
        open_store(tmp_path / "two", catalogue=url, mode="r") as two,
    ):
        for key in exact.all_keys():
            assert one.count(key).upper == exact.count(key)
        one.merge(two)
        assert one.count("often").upper == exact.count("often") + other.count("often")
        assert one.verify().problems == ()


def test_a_database_that_goes_away_is_named_and_the_events_stay(
    tmp_path: Path, postgres: Postgres
) -> None:
    url = postgres.new_database()
    store = open_store(tmp_path / "store", catalogue=url, sync="always")
    store.add("a", at=START)
    engine = sql.create_engine(postgres.url(), isolation_level="AUTOCOMMIT")
    with engine.connect() as admin:
        name = sql.make_url(url).database
        admin.execute(sql.text(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false"))
        ending = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = :name"
        admin.execute(sql.text(ending), {"name": name})
        with pytest.raises(StorageError, match="catalogue"):
            store.seal()
        assert store.count("a").upper == 1
        # Nobody knows what the catalogue says by now, so nothing more is acknowledged.
        with pytest.raises(StorageError, match="takes no more records"):
            store.add("a", at=START)
        admin.execute(sql.text(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true"))
    engine.dispose()
    store.close()
    with open_store(tmp_path / "store", catalogue=url) as store:
        assert store.count("a").upper == 1


def test_a_writer_that_was_overtaken_is_refused(tmp_path: Path) -> None:
    with open_store(tmp_path / "store") as store:
        store.add("a", at=START)
        other = Catalogue(tmp_path / "store" / "catalogue.sqlite", store._state.catalogue.store)
        other.load()
        other.change(horizon=5)
        other.close()
        with pytest.raises(LockedError, match="another process"):
            store.seal()
        with pytest.raises(StorageError, match="takes no more records"):
            store.add("a", at=START)
        assert store.count("a").upper == 1


def test_a_reader_sees_the_moment_of_its_opening_until_it_looks_again(tmp_path: Path) -> None:
    with open_store(tmp_path / "store", sync="always") as store:
        exact = fill(store, 1)
        with open_store(tmp_path / "store", mode="r") as reader:
            store.add("new", at=START + 30 * DAY)
            assert not reader.contains("new")
            reader.refresh()
            assert reader.count("new").upper == 1
            require_bounds(reader, exact, START, START + DAY)


def test_a_reader_follows_when_the_writer_replaces_what_it_reads(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with open_store(path, sync="always") as store:
        exact = fill(store, 2)
    with open_store(path, mode="r") as reader:
        with open_store(path, retention="1m for 1h, 1h for 9y") as store:
            assert store.compact().dropped > 0
        found = reader.count("often")
        assert (found.upper, found.missing) == (exact.count("often"), ())


def test_many_threads_add_ask_and_compact_at_once(tmp_path: Path) -> None:
    errors: list[Exception] = []
    with open_store(tmp_path / "store", background=True, sync="everysec", entries=2000) as store:

        def work(thread: int) -> None:
            try:
                for step in range(60):
                    store.add_many([f"key {thread}"] * 20, at=START + step * HOUR + thread)
                    store.count(f"key {thread}", START, START + step * HOUR)
                    if step % 20 == 19:
                        store.compact()
                        store.flush()
            except Exception as error:  # noqa: BLE001  told to the test below
                errors.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        for number in range(4):
            assert store.count(f"key {number}").upper == 1200
        assert store.stats().failure is None
        assert store.verify().problems == ()


def test_columns_of_arrow_and_numpy_are_events(tmp_path: Path) -> None:
    keys = pa.array(["a", "b", "a", None, "c"])
    times = pa.array(
        np.datetime64(START, "s") + np.arange(5) * np.timedelta64(30, "s"),
        type=pa.timestamp("us", "UTC"),
    )
    with open_store(tmp_path / "store") as store:
        assert store.add_many(keys, at=times, nulls="skip") == 4
        assert store.add_many(np.array([7, 8, 7]), [5, 1, 2], at=START + 200) == 3
        assert store.count("a", START, START + 60).upper == 1
        assert store.count_many(pa.array(["a", "b", "c", "d"])).tolist() == [2, 1, 1, 0]
        assert store.count(7).upper == 7
        assert store.total().upper == 12
