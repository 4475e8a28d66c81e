"""What a store refuses, with the name of what is wrong, and without changing anything."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from bloomtide.durable.disk import Disk
from bloomtide.errors import (
    BloomtideError,
    ClosedError,
    IncompatibleError,
    KeyTypeError,
    KindError,
    LockedError,
    NotASnapshotError,
    ParameterError,
    ReadOnlyError,
    SnapshotError,
    StorageError,
    VersionError,
)
from bloomtide.history import History
from tests.durable.faults import abandon
from tests.files.crafted import with_fields
from tests.history_store.exact import DAY, HOUR, START


@pytest.fixture
def store(tmp_path: Path) -> Iterator[History]:
    with History.open(
        tmp_path / "store", "1m", sync="always", background=False, clock=lambda: START + DAY
    ) as made:
        made.add("a", at=START)
        made.add("a", at=START + 2 * HOUR)
        yield made


def journal_of(path: Path) -> Path:
    [found] = path.glob("journal-*")
    return found


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ({"start": START + 2, "end": START + 1}, "start"),
        ({"start": datetime(2026, 1, 1), "end": START}, "start"),  # noqa: DTZ001
        ({"start": START, "end": "2026-02-01"}, "end"),
        ({"start": START, "last": "1h"}, "last"),
        ({"last": "soon"}, "last"),
        ({"last": "1h", "now": "now"}, "now"),
        ({"end": float("nan")}, "end"),
    ],
)
def test_a_range_that_makes_no_sense_is_refused_by_name(
    store: History, words: dict[str, Any], name: str
) -> None:
    for verb in (store.count, store.series, store.contains):
        with pytest.raises(ParameterError) as caught:
            verb("a", **words)
        assert caught.value.name == name
    with pytest.raises(ParameterError):
        store.total(**words)


def test_aware_datetimes_text_and_numbers_may_be_mixed(store: History) -> None:
    start = datetime.fromtimestamp(START, UTC)
    assert store.count("a", start, "2026-01-01T01:00:00+00:00").upper == 1
    assert store.count("a", "2026-01-01T02:00:00+02:00", START + 3 * HOUR).upper == 2


def test_ranges_outside_of_the_store_are_empty(store: History) -> None:
    for start, end in ((0, 10), (START + 900 * DAY, START + 901 * DAY), (START, START)):
        found = store.count("a", start, end)
        assert (found.upper, found.rows, found.missing) == (0, 0, ())
    assert store.series("a", START, START, "1m").upper.tolist() == []


def test_an_empty_store_answers_with_nothing(tmp_path: Path) -> None:
    with History.open(tmp_path / "new", background=False) as store:
        assert store.count("a").upper == 0
        assert store.count_many(["a", 5]).tolist() == [0, 0]
        assert store.top().items == ()
        assert len(store.series("a")) == 0
        assert store.compact().sealed == 0


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ({"window": "0s"}, "window"),
        ({"window": "1m", "arrivals": 10}, "arrivals"),
        ({"arrivals": 0}, "arrivals"),
        ({"arrivals": 10, "rows": 1}, "rows"),
        ({"arrivals": 10, "retention": "1m for 1d"}, "retention"),
        ({"window": "1m", "rows": 5}, "rows"),
        ({"error_rate": 1.5}, "error_rate"),
        ({"error_rate": 1e-13}, "error_rate"),
        ({"sync": "sometimes"}, "sync"),
        ({"lateness": "-1s"}, "lateness"),
        ({"retention": "1m for 1d, 90s for 2d"}, "retention"),
        ({"mode": "a"}, "mode"),
        ({"hash": "md5"}, "hash"),
    ],
)
def test_a_store_is_not_made_of_nonsense(tmp_path: Path, words: dict[str, Any], name: str) -> None:
    with pytest.raises(ParameterError) as caught:
        History.open(tmp_path / "store", **words)
    assert caught.value.name == name
    with History.open(tmp_path / "store", "1m") as store:  # and nothing stands in the way
        assert store.stats().segments == 0


@pytest.mark.parametrize(
    ("words", "field"),
    [
        ({"window": "5m"}, "window"),
        ({"arrivals": 100}, "arrivals"),
        ({"seed": 3}, "seed"),
        ({"secret": b"0123456789abcdef"}, "hash"),
        ({"location": "memory://elsewhere"}, "location"),
        ({"catalogue": "sqlite:///other.sqlite"}, "catalogue"),
    ],
)
def test_a_store_is_not_opened_as_another(
    tmp_path: Path, words: dict[str, Any], field: str
) -> None:
    History.open(tmp_path / "store", "1m").close()
    with pytest.raises(IncompatibleError) as caught:
        History.open(tmp_path / "store", **words)
    assert caught.value.field == field


def test_a_secret_is_needed_again_and_must_be_the_same(tmp_path: Path) -> None:
    secret = b"0123456789abcdef"
    with History.open(tmp_path / "store", "1m", secret=secret, background=False) as store:
        store.add("a", at=START)
        store.seal()
    for wrong in (None, b"fedcba9876543210"):
        with pytest.raises(IncompatibleError) as caught:
            History.open(tmp_path / "store", secret=wrong)
        assert caught.value.field == "secret"
    with History.open(tmp_path / "store", secret=secret) as store:
        assert store.count("a").upper == 1
        assert store.count_many(["a", "b"]).tolist() == [1, 0]
    assert secret not in (tmp_path / "store" / "catalogue.sqlite").read_bytes()


def test_settings_that_may_change_hold_from_the_next_open_on(tmp_path: Path) -> None:
    History.open(tmp_path / "store", "1m", lateness="1h").close()
    History.open(tmp_path / "store", retention="1m for 1d, 1h for 30d").close()
    with History.open(tmp_path / "store") as store:
        assert store._state.settings.retention == "1m for 1d, 1h for 30d"
        assert store._state.settings.lateness == HOUR * 1_000_000
    with pytest.raises(ParameterError, match="ladder"):
        History.open(tmp_path / "store", retention="7m for 1d")


@pytest.mark.parametrize("key", [1.5, None, ["a"], 2**64])
def test_what_is_no_key_is_refused_and_changes_nothing(store: History, key: Any) -> None:
    before = store.total()
    with pytest.raises((KeyTypeError, BloomtideError)):
        store.add(key, at=START)
    with pytest.raises(BloomtideError):
        store.add_many(["good", key], at=START)
    assert store.total() == before
    assert not store.contains("good")


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ({"at": "2026-01-01"}, "at"),
        ({"at": 10**12}, "at"),
        ({"count": 0, "at": START}, "count"),
        ({"count": -1, "at": START}, "count"),
    ],
)
def test_a_bad_event_is_refused_by_name(store: History, words: dict[str, Any], name: str) -> None:
    before = store.total()
    with pytest.raises(ParameterError) as caught:
        store.add("a", **words)
    assert name in caught.value.name
    assert store.total() == before


def test_instants_must_be_as_many_as_keys(store: History) -> None:
    with pytest.raises(ParameterError, match="at"):
        store.add_many(["a", "b", "c"], at=[START, START])


def test_a_second_writer_is_refused_with_the_pid_of_the_first(
    store: History, tmp_path: Path
) -> None:
    with pytest.raises(LockedError) as caught:
        History.open(tmp_path / "store")
    assert caught.value.pid == os.getpid()
    assert str(os.getpid()) in str(caught.value)
    with History.open(tmp_path / "store", mode="r") as reader:
        assert reader.count("a").upper == 2


def test_a_closed_store_and_a_reader_take_no_events(store: History, tmp_path: Path) -> None:
    with History.open(tmp_path / "store", mode="r") as reader:
        for verb in (reader.compact, reader.seal, reader.flush):
            with pytest.raises(ReadOnlyError, match="reading only"):
                verb()
        with pytest.raises(ReadOnlyError, match="reading only"):
            reader.add("a")
    store.close()
    store.close()
    with pytest.raises(ClosedError, match="closed"):
        store.add("a")
    with pytest.raises(ClosedError, match="closed"):
        store.count("a")


def test_a_reader_does_not_make_a_store(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="no store"):
        History.open(tmp_path / "nothing", mode="r")
    assert not (tmp_path / "nothing").exists()


def test_a_catalogue_newer_than_this_code_is_refused_by_its_version(
    store: History, tmp_path: Path
) -> None:
    store.close()
    path = tmp_path / "store" / "catalogue.sqlite"
    with sqlite3.connect(path) as database:
        database.execute("UPDATE bloomtide_catalogue SET value = '7' WHERE name = 'version'")
    database.close()
    with pytest.raises(VersionError) as caught:
        History.open(tmp_path / "store")
    assert (caught.value.expected, caught.value.got) == (1, 7)


def test_what_is_no_store_is_refused_by_name(store: History, tmp_path: Path) -> None:
    store.close()
    identity = tmp_path / "store" / "store.json"
    good = identity.read_bytes()
    for data, error in (
        (b"{}", NotASnapshotError),
        (b"\xff not json", NotASnapshotError),
        (with_fields(good, version=2), VersionError),
        (with_fields(good, format="monitor"), KindError),
    ):
        identity.write_bytes(data)
        with pytest.raises(error):
            History.open(tmp_path / "store")
    identity.write_bytes(good)
    (tmp_path / "store" / "catalogue.sqlite").write_bytes(b"no database at all " * 100)
    with pytest.raises(SnapshotError, match="no catalogue"):
        History.open(tmp_path / "store")


def test_a_lost_catalogue_is_not_replaced_by_an_empty_one(store: History, tmp_path: Path) -> None:
    store.seal()
    store.close()
    (tmp_path / "store" / "catalogue.sqlite").unlink()
    for mode in ("w", "r"):
        with pytest.raises(SnapshotError, match="has events but no catalogue"):
            History.open(tmp_path / "store", mode=mode)


def test_a_reader_of_a_store_that_is_being_made_says_so(tmp_path: Path) -> None:
    class Killed(Disk):
        def commit(self, transaction: Callable[[], None]) -> None:
            raise KeyboardInterrupt

    path = tmp_path / "store"
    with pytest.raises(KeyboardInterrupt):
        History.open(path, disk=Killed())
    with pytest.raises(StorageError, match="begun and is not finished") as caught:
        History.open(path, mode="r")
    assert 'mode="w"' in (caught.value.hint or "")
    with History.open(path):
        pass
    with History.open(path, mode="r") as reader:
        assert reader.total().upper == 0


def test_a_torn_tail_of_the_journal_is_cut(store: History, tmp_path: Path) -> None:
    store.compact()
    path = journal_of(tmp_path / "store")
    before = path.stat().st_size
    store.add("a", at=START + 2 * HOUR + 30)
    abandon(store)
    whole = path.read_bytes()
    for length in range(before, len(whole), 3):
        path.write_bytes(whole[:length])
        again = History.open(tmp_path / "store", background=False)
        found = again.count("a").upper
        assert found == 2 if length == before else found in (2, 3)
        again.add("b", at=START + 2 * HOUR)
        abandon(again)
        again = History.open(tmp_path / "store", background=False)
        assert (again.count("a").upper, again.count("b").upper) == (found, 1)
        abandon(again)
    path.write_bytes(whole + b"\0" * 100)
    with History.open(tmp_path / "store", background=False) as again:
        assert again.count("a").upper == 3


def test_a_damaged_middle_of_the_journal_is_reported_and_can_be_left_out(tmp_path: Path) -> None:
    path = tmp_path / "store"
    store = History.open(path, "1m", sync="always", background=False)
    for number in range(50):
        store.add(f"key {number}", at=START + number)
    abandon(store)
    journal = journal_of(path)
    data = bytearray(journal.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 120] = bytes(120)  # longer than what is written for one key
    journal.write_bytes(data)
    with pytest.raises(SnapshotError, match="damaged at byte") as caught:
        History.open(path)
    assert 0 < (caught.value.offset or 0) < len(data)
    assert journal.read_bytes() == data  # refusing has changed nothing
    with History.open(path, repair=True, background=False) as store:
        found = sum(store.contains(f"key {number}") for number in range(50))
        assert 45 <= found < 50
    with History.open(path, background=False) as store:  # sound from now on
        assert sum(store.contains(f"key {number}") for number in range(50)) == found


def test_a_missing_journal_is_a_loss_that_must_be_accepted(store: History, tmp_path: Path) -> None:
    store.seal()
    store.add("b", at=START + 5 * HOUR)
    store.close()
    journal_of(tmp_path / "store").unlink()
    with pytest.raises(SnapshotError, match="is missing"):
        History.open(tmp_path / "store")
    with History.open(tmp_path / "store", repair=True) as again:
        assert (again.count("a").upper, again.count("b").upper) == (2, 0)


@pytest.mark.parametrize("weigh", [lambda age: age, lambda age: -1.0, lambda age: float("nan"), 3])
def test_a_weight_that_grows_with_age_is_refused(store: History, weigh: Any) -> None:
    store.add("a", at=START + 2 * HOUR + 30)
    with pytest.raises(ParameterError) as caught:
        store.decayed("a", weigh, tolerance=0)
    assert caught.value.name == "g"


def test_a_weight_that_grows_from_row_to_row_is_refused(store: History) -> None:
    """Each row has one event, so no row by itself shows it."""
    with pytest.raises(ParameterError) as caught:
        store.decayed("a", lambda age: min(age, 1e6), now=START + DAY)
    assert caught.value.name == "g"


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda store: store.merge(None), "other"),
        (lambda store: store.merge("store"), "other"),
        (lambda store: store.add_batch(None, 1, print), "source"),
        (lambda store: store.add_batch("", 1, print), "source"),
        (lambda store: store.add_batch("s", 1.5, print), "number"),
        (lambda store: store.feed(print, mark=1.5), "mark"),
        (lambda store: store.series("a", step="1 fortnight"), "step"),
    ],
)
def test_an_argument_of_another_type_is_refused_by_name(
    tmp_path: Path, call: Callable[[History], object], name: str
) -> None:
    with History.open(tmp_path / "store", background=False, keep=lambda: None) as store:
        with pytest.raises(ParameterError) as caught:
            call(store)
        assert caught.value.name == name


def test_a_step_longer_than_all_time_is_one_step(store: History) -> None:
    for start in (None, START - DAY):
        assert store.series("a", start, START + DAY, 1e30).upper.tolist() == [2]


# ---- more events than a number holds

MOST = 2**62 - 1


@pytest.mark.parametrize("words", [{"window": "1m"}, {"arrivals": 10}])
def test_counts_are_refused_before_their_sum_is_more_than_a_row_holds(
    tmp_path: Path, words: dict[str, Any]
) -> None:
    path = tmp_path / "store"
    with History.open(path, **words, background=False, sync="no") as store:
        for counts in ([MOST, 1], [2**62], [2**63, 2**63], [2**64 - 1]):
            with pytest.raises(ParameterError) as caught:
                store.add_many([f"k{n}" for n in range(len(counts))], counts, at=START)
            assert caught.value.name == "counts"
        assert store.total().upper == 0
        store.add_many(["a", "b"], [2**61, 2**61 - 2], at=START)
        with pytest.raises(ParameterError) as caught:
            store.add("b", 2, at=START)
        assert caught.value.name == "count"
        store.seal()
        store.add("b", 1, at=START + DAY)
        store.seal()
        with pytest.raises(ParameterError):
            store.add("c", at=START)
    with History.open(path, background=False) as store:
        assert (store.count("a").upper, store.count("b").upper) == (2**61, 2**61 - 1)
        for add in (
            lambda: store.add("c", at=START),
            lambda: store.add_many(["c"], at=START),
            lambda: store.feed(lambda buffer: buffer.add("c", 1, START)),
        ):
            with pytest.raises(ParameterError):
                add()
        store.compact(now=START + 3000 * DAY)
        assert (store.total().upper, store.verify().problems) == (MOST, ())


def test_batches_and_merges_are_refused_before_their_sum_is_more_than_a_row_holds(
    tmp_path: Path,
) -> None:
    with (
        History.open(tmp_path / "one", background=False) as one,
        History.open(tmp_path / "two", background=False) as two,
    ):
        one.add("a", 2**61, at=START)
        two.add("a", 2**61, at=START)
        with pytest.raises(ParameterError) as caught:
            one.merge(two)
        assert caught.value.name == "other"
        with pytest.raises(ParameterError):
            one.add_batch("s", 1, lambda buffer: buffer.add("a", 2**61, START))
        assert (one.total().upper, one.positions) == (2**61, {})
        one.add_batch("s", 1, lambda buffer: buffer.add("a", 2**61 - 1, START))
        assert one.total().upper == MOST
        one.compact(now=START + 3000 * DAY)
        assert one.count("a").upper == MOST
