"""`HistoryBuffer`: what a history has not sealed yet, against an exact dictionary."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bloomtide._core import (
    HistoryBuffer,
    HistorySegment,
    LogCounter,
    RecordScan,
    history_roll_up,
)
from bloomtide.durable.log import pack_file
from bloomtide.errors import (
    BloomtideError,
    IncompatibleError,
    KeyTypeError,
    NullKeyError,
    ParameterError,
    SnapshotError,
)
from bloomtide.records import SealedSegment
from bloomtide.stream import web_log
from tests.cli.access_log import hit

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
START = 1_760_000_400 * SECOND  # on a whole hour


def hourly(**more: Any) -> HistoryBuffer:
    return HistoryBuffer(window=MINUTE, rows=60, **more)


def roll_up(items: list[bytes], *, begin: int, end: int, **more: Any) -> SealedSegment:
    [made] = history_roll_up([(items, begin, end)], **more)
    return made


def events(count: int, seed: int = 1) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Keys of a skewed stream with counts and times over three hours, out of order."""
    random = np.random.default_rng(seed)
    keys = [f"/page/{rank}" for rank in np.minimum(random.zipf(1.3, count), 5000)]
    times = START + random.integers(0, 3 * HOUR, count)
    return keys, random.integers(1, 4, count), times


def exact(keys: list[Any], counts: Any, times: Any) -> dict[Any, Counter[int]]:
    """The count of every key by the number of its minute."""
    rows: dict[Any, Counter[int]] = defaultdict(Counter)
    for key, count, at in zip(keys, counts, times, strict=True):
        rows[key][int(at) // MINUTE] += int(count)
    return rows


def held(buffer: HistoryBuffer, keys: Any) -> dict[Any, Counter[int]]:
    rows: dict[Any, Counter[int]] = defaultdict(Counter)
    for segment in buffer.segments():
        for key in keys:
            for row, count in enumerate(buffer.rows_of(segment.index, key)):
                if count:
                    rows[key][segment.begin // MINUTE + row] += int(count)
    return rows


def utc(times: Any, unit: str = "us") -> pa.Array:
    """A column of instants."""
    return pa.array(times, pa.timestamp(unit, "UTC"))


FORMS: dict[str, Any] = {
    "list": lambda keys: list(keys),
    "tuple": lambda keys: tuple(keys),
    "iterator": lambda keys: iter(keys),
    "NumPy": lambda keys: np.array(keys),
    "Arrow": lambda keys: pa.array(keys),
    "Arrow views": lambda keys: pa.array(keys, pa.string_view()),
    "Arrow chunks": lambda keys: pa.chunked_array([keys[:7], keys[7:]]),
    "Arrow dictionary": lambda keys: pa.array(keys).dictionary_encode(),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_batch_of_any_form_counts_and_names_like_an_exact_dictionary(form: str) -> None:
    keys, counts, times = events(3000)
    buffer = hourly(names=8)
    given = FORMS[form](keys)
    assert buffer.add_many(given, counts, at=utc(times)) == 3000
    expected = exact(keys, counts, times)
    assert held(buffer, expected) == expected
    assert buffer.entries == sum(len(rows) for rows in expected.values())
    assert buffer.newest == times.max()
    for segment in buffer.segments():
        inside = range(segment.begin // MINUTE, segment.end // MINUTE)
        totals = Counter({k: sum(rows[i] for i in inside) for k, rows in expected.items()})
        names, unlisted = buffer.names(segment.index)
        assert [count for _, count in names] == [count for _, count in totals.most_common(8)]
        for key, count in names:
            assert totals.pop(key.item() if isinstance(key, np.generic) else key) == count
        assert unlisted == max(totals.values())


@pytest.mark.parametrize(
    "at",
    [
        np.array([START, START + MINUTE]) / 1e6,
        utc([START, START + MINUTE]),
        utc([START * 1000 + 999, (START + MINUTE) * 1000], "ns"),
        utc([START // SECOND, (START + MINUTE) // SECOND], "s"),
        utc([START, START + MINUTE]).cast(pa.timestamp("us", "Asia/Tokyo")),
        pa.chunked_array([utc([START // 1000], "ms"), utc([(START + MINUTE) // 1000], "ms")]),
        [datetime.fromtimestamp(START / 1e6, UTC), (START + MINUTE) / 1e6],
        ["2025-10-09T09:00:00Z", "2025-10-09T09:01:00Z"],
    ],
    ids=["seconds", "us", "ns", "s", "Arrow us", "Arrow ms", "mixed", "text"],
)
def test_instants_are_read_in_every_spelling(at: Any) -> None:
    buffer = hourly()
    buffer.add_many(["a", "a"], at=at)
    (segment,) = buffer.segments()
    assert (segment.first, segment.last) == (START, START + MINUTE)
    assert buffer.rows_of(segment.index, "a")[:3].tolist() == [1, 1, 0]


def test_the_last_nanosecond_of_a_window_belongs_to_it() -> None:
    buffer = hourly()
    buffer.add_many(["a"], at=utc([(START + MINUTE) * 1000 - 1], "ns"))
    assert buffer.rows_of(buffer.segments()[0].index, "a")[:2].tolist() == [1, 0]


@pytest.mark.parametrize(
    ("keys", "counts", "at", "nulls", "error"),
    [
        (["a", None], None, 5.0, "refuse", NullKeyError),
        (pa.array(["a", None]), None, 5.0, "refuse", NullKeyError),
        (["a", 1.5], None, 5.0, "refuse", KeyTypeError),
        (["a", "b"], [1, 0], 5.0, "refuse", ParameterError),
        (["a", "b"], [1], 5.0, "refuse", ParameterError),
        (["a", "b"], None, [5.0], "refuse", ParameterError),
        (["a", "b"], None, [5.0, float("nan")], "refuse", ParameterError),
        (["a", "b"], None, utc([START, None]), "refuse", ParameterError),
        (["a", "b"], None, [5.0, datetime(2020, 1, 1)], "refuse", ParameterError),  # noqa: DTZ001
        (["a", "b"], None, 5.0, "maybe", ParameterError),
        (["a", "b"], None, [5.0, 1e13], "refuse", ParameterError),
        (["a", "b"], None, -1e13, "refuse", ParameterError),
        ("ab", None, 5.0, "refuse", ParameterError),
    ],
)
def test_a_batch_with_anything_bad_changes_nothing(
    keys: Any, counts: Any, at: Any, nulls: Any, error: type[BloomtideError]
) -> None:
    buffer = hourly()
    buffer.take_journal()
    with pytest.raises(error) as caught:
        buffer.add_many(keys, counts, at=at, nulls=nulls)
    assert caught.value.hint
    assert buffer.entries == 0
    assert buffer.segments() == []
    assert buffer.take_journal() == []


@pytest.mark.parametrize("at", [2**60, -(2**63)])
def test_an_instant_too_far_away_is_refused(at: int) -> None:
    buffer = hourly()
    with pytest.raises(ParameterError, match="at"):
        buffer.add("a", 1, at)
    assert buffer.segments() == []


def test_an_error_in_a_batch_names_its_row_and_says_that_nothing_went_in() -> None:
    with pytest.raises(NullKeyError, match=r"keys\[1\] is null; nothing was added") as null:
        hourly().add_many(["a", None], at=5.0)
    assert (null.value.index, null.value.added) == (1, 0)
    with pytest.raises(KeyTypeError, match=r"keys\[2\]") as bad:
        hourly().add_many(["a", "b", 0.5], at=5.0)
    assert bad.value.added == 0


@pytest.mark.parametrize("make", [list, pa.array], ids=["list", "Arrow"])
def test_skipped_rows_take_their_counts_and_times_with_them(make: Any) -> None:
    buffer = hourly()
    keys = make(["a", None, "b", None, "c"])
    at = (START + np.arange(5) * MINUTE) / 1e6
    assert buffer.add_many(keys, [1, 2, 3, 4, 5], at=at, nulls="skip") == 3
    (segment,) = buffer.segments()
    assert [int(buffer.rows_of(segment.index, k).argmax()) for k in "abc"] == [0, 2, 4]
    assert sorted(buffer.names(segment.index)[0]) == [("a", 1), ("b", 3), ("c", 5)]


def test_the_second_column_of_a_table_is_the_counts() -> None:
    buffer = hourly()
    buffer.add_many(pa.table({"key": ["a", "b"], "n": [2, 7]}), at=START / 1e6)
    [segment] = buffer.segments()
    assert [buffer.rows_of(segment.index, key).sum() for key in "ab"] == [2, 7]


def test_keys_keep_their_domain_and_their_spelling() -> None:
    buffer = hourly()
    for key in ("5", b"bytes", 5, -5, 2**64 - 1):
        buffer.add(key, 1, START)
    buffer.add("bytes", 1, START)
    names, unlisted = buffer.names(buffer.segments()[0].index)
    assert dict(names) == {
        "5": 1, b"bytes": 2, 5: 1, -5: 1, 2**64 - 1: 1,
    }  # fmt: skip
    assert unlisted == 0


# ---- the journal


def test_the_journal_makes_the_same_buffer_again_and_goes_on() -> None:
    keys, counts, times = events(2000)
    at = utc(times)
    buffer, journal = hourly(), []
    for start in range(0, 2000, 300):
        part = slice(start, start + 300)
        buffer.add_many(keys[part], counts[part], at=at[part])
        journal += buffer.take_journal()
    again = hourly()
    assert again.replay(written(journal)) == counts.sum()
    # For each piece a record of each row at most, and of the names of each of three hours.
    assert len(journal) <= 1 + 7 * (180 + 3)
    journal += add_and_take(again)
    third = hourly()
    assert third.replay(written(journal)) == counts.sum() + 1
    assert held(third, set(keys)) == held(again, set(keys))
    for segment in again.segments():
        assert third.names(segment.index) == again.names(segment.index)


def written(payloads: list[bytes]) -> RecordScan:
    """A journal of these records."""
    return RecordScan(pack_file("history journal", payloads), "history journal")


def add_and_take(buffer: HistoryBuffer) -> list[bytes]:
    buffer.add("/one/more", 1, START)
    return buffer.take_journal()


def test_a_record_that_says_nothing_is_refused() -> None:
    buffer = hourly()
    [state, *_] = buffer.take_journal()
    for payload in (b"", b"\x09", state[:-1], state + b"\0", b"\x02" + bytes(23)):
        with pytest.raises(SnapshotError):
            hourly().replay(written([payload]))


def test_a_dump_leaves_out_what_is_being_sealed() -> None:
    buffer = hourly()
    buffer.add("a", 1, START)
    buffer.add("a", 2, START + HOUR)
    first, second = buffer.segments()
    with pytest.raises(BloomtideError):
        buffer.dump()
    buffer.take_journal()
    again = hourly()
    again.replay(written(buffer.dump(without=[first.index])))
    assert again.segments() == [second]
    assert again.newest == START + HOUR


def test_a_dump_makes_the_same_buffer_again() -> None:
    keys, counts, times = events(3000)
    buffer = hourly(names=8)
    buffer.add_many(keys, counts, at=utc(times))
    with pytest.raises(BloomtideError):
        buffer.replay(written(hourly().take_journal()))  # what was not taken would be lost
    buffer.take_journal()
    again = hourly(names=8)
    again.replay(written(buffer.dump()))
    expected = exact(keys, counts, times)
    assert held(buffer, expected) == held(again, expected) == expected
    assert again.segments() == buffer.segments()
    for segment in buffer.segments():
        assert again.names(segment.index) == buffer.names(segment.index)
        records, others = (b.row_records(segment.index) for b in (buffer, again))
        assert all((records[name] == others[name]).all() for name in records)


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ({"window": MINUTE, "rows": 60, "seed": 1}, "hash"),
        ({"window": MINUTE, "rows": 60, "hash": "keyed", "secret": bytes(16)}, "hash"),
        ({"window": MINUTE, "rows": 59}, "rows"),
        ({"window": SECOND, "rows": 60}, "rows by"),
        ({"arrivals": MINUTE, "rows": 60}, "rows by"),
    ],
)
def test_a_journal_of_another_store_is_refused(words: dict[str, Any], name: str) -> None:
    with pytest.raises(IncompatibleError, match=name):
        HistoryBuffer(**words).replay(written(hourly().take_journal()))


def test_without_names_the_largest_count_is_told_all_the_same() -> None:
    buffer = hourly(names=0)
    buffer.add_many(["a", "b", "a"], [1, 7, 2], at=START / 1e6)
    assert buffer.names(buffer.segments()[0].index) == ([], 7)


# ---- sealing and rolling up


def test_a_sealed_segment_answers_at_least_what_was_open_and_names_the_same() -> None:
    keys, counts, times = events(4000)
    buffer = hourly(names=20)
    buffer.add_many(keys, counts, at=utc(times))
    distinct = sorted(set(keys))
    for open_one in buffer.segments():
        made = buffer.seal(open_one.index, error_rate=0.01)
        segment = HistorySegment.from_bytes(made.segment)
        assert (made.begin, made.end, made.rows) == (open_one.begin, open_one.end, 60)
        assert (made.first, made.last) == (open_one.first, open_one.last)
        assert made.events == open_one.events == segment.info.events
        assert made.parameters["items"] == open_one.entries
        exactly = np.array([buffer.rows_of(open_one.index, key) for key in distinct])
        upper = np.array([segment.rows_of(key) for key in distinct])
        assert (upper >= exactly).all()
        # Binomial, with room for ten deviations: the error that was asked for is per key.
        wrong = (upper != exactly).any(axis=1).sum()
        assert wrong <= 0.01 * len(distinct) + 10 * (0.01 * len(distinct)) ** 0.5
        assert segment.names() == buffer.names(open_one.index)
        records, sealed_records = buffer.row_records(open_one.index), segment.row_records()
        assert records.keys() == sealed_records.keys()
        for name, column in records.items():
            assert (column == sealed_records[name]).all()


def test_many_segments_are_sealed_at_once_as_each_would_be_by_itself() -> None:
    keys, counts, times = events(60_000)  # so many that threads share them
    buffer = hourly()
    buffer.add_many(keys, counts, at=utc(times))
    assert buffer.entries > 2**14
    indexes = [each.index for each in buffer.segments()]
    parts = [([index], 0, 0.01) for index in indexes]
    *alone, together = buffer.seal_many([*parts, (indexes, 1, 0.001)], gate_error=0.02)
    for index, made in zip(indexes, alone, strict=True):
        assert made == buffer.seal(index, error_rate=0.01, gate_error=0.02)
    assert (together.level, together.events) == (1, counts.sum())
    assert together.parameters["error_rate"] == 0.001
    assert buffer.seal_many([]) == []
    with pytest.raises(ParameterError, match="index"):
        buffer.seal_many([*parts, ([-1], 0, 0.01)])


def test_many_roll_ups_are_made_at_once_as_each_would_be_by_itself() -> None:
    keys, counts, times = events(60_000)
    buffer = hourly()
    buffer.add_many(keys, counts, at=utc(times))
    parts = [([each.index], 0, 0.01) for each in buffer.segments()]
    groups = [([made.items], made.begin, made.end) for made in buffer.seal_many(parts)]
    words: dict[str, Any] = {"level": 1, "row_span": HOUR, "error_rate": 0.01}
    for (items, begin, end), made in zip(groups, history_roll_up(groups, **words), strict=True):
        assert made == roll_up(items, begin=begin, end=end, **words)
    assert history_roll_up([], **words) == []


def test_a_buffer_without_a_journal_records_nothing_and_can_be_dumped() -> None:
    keys, counts, times = events(1000)
    written_down, silent = hourly(), hourly(journal=False)
    for buffer in (written_down, silent):
        buffer.add_many(keys, counts, at=utc(times))
    assert silent.take_journal() == []
    written_down.take_journal()
    assert silent.dump() == written_down.dump()
    again = hourly(journal=False)
    again.replay(written(silent.dump()))
    again.replay(written(silent.dump()))
    assert sum(each.events for each in again.segments()) == 2 * counts.sum()
    assert again.take_journal() == []


def test_a_roll_up_has_each_hour_as_a_row_late_ones_too() -> None:
    keys, counts, times = events(4000)
    early, late = hourly(), hourly()
    half = slice(0, 2000), slice(2000, None)
    for buffer, part in zip((early, late), half, strict=True):
        buffer.add_many(keys[part], counts[part], at=utc(times[part]))
    sealed = [b.seal(s.index, error_rate=0.01) for b in (early, late) for s in b.segments()]
    assert len(sealed) == 6
    begin = START // (24 * HOUR) * 24 * HOUR
    day = roll_up(
        [each.items for each in sealed],
        begin=begin, end=begin + 24 * HOUR, level=1, row_span=HOUR, error_rate=0.001,
    )  # fmt: skip
    assert (day.level, day.rows, day.events) == (1, 24, counts.sum())
    segment = HistorySegment.from_bytes(day.segment)
    expected = exact(keys, counts, times)
    wrong = 0
    for key, minutes in expected.items():
        hours = Counter[int]()
        for minute, count in minutes.items():
            hours[(minute * MINUTE - begin) // HOUR] += count
        rows = segment.rows_of(key)
        assert all(rows[hour] >= count for hour, count in hours.items())
        wrong += rows.sum() != hours.total()
    assert wrong <= 0.001 * len(expected) + 10
    assert set(segment.row_records()["windows"].tolist()) == {60}
    totals = Counter({key: minutes.total() for key, minutes in expected.items()})
    names, unlisted = segment.names()
    assert [count for _, count in names[:20]] == [count for _, count in totals.most_common(20)]
    listed = {key for key, _ in names}
    assert unlisted == max((n for key, n in totals.items() if key not in listed), default=0)


def test_the_largest_count_without_a_name_is_that_of_all_children_together() -> None:
    """The key 2 is on no child's list, and the keys 1 and 3 on half of them."""
    fine = HistoryBuffer(window=10, rows=1, names=1)
    for child in range(10):
        fine.add((1, 3)[child % 2], 5, child * 10)
        fine.add(2, 4, child * 10)
    items = [fine.seal(each.index, error_rate=0.01).items for each in fine.segments()]
    made = roll_up(items, begin=0, end=100, level=1, row_span=10, error_rate=0.01)
    names, unlisted = HistorySegment.from_bytes(made.segment).names()
    assert sorted(names) == [(1, 25), (3, 25)]
    assert unlisted == 40


def test_items_that_were_damaged_or_do_not_fit_are_refused() -> None:
    buffer = hourly()
    buffer.add("a", 1, START)
    made = buffer.seal(buffer.segments()[0].index, error_rate=0.01)
    span: dict[str, Any] = {"begin": made.begin, "end": made.end, "level": 1, "error_rate": 0.01}
    bad = made.items[:30] + bytes([made.items[30] ^ 1]) + made.items[31:]
    for items in (bad, made.items[:-1], made.items + b"\0", b"", b"something else entirely" * 3):
        with pytest.raises(SnapshotError):
            roll_up([items], row_span=HOUR, **span)
    with pytest.raises(IncompatibleError):
        roll_up([made.items], row_span=HOUR, seed=9, **span)
    with pytest.raises(ParameterError, match="row_span"):
        roll_up([made.items], row_span=7, **span)
    with pytest.raises(ParameterError, match="items"):
        roll_up([made.items], row_span=HOUR, **(span | {"begin": made.end - HOUR // 2}))


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"error_rate": 0.0}, "error_rate"),
        ({"error_rate": float("nan")}, "error_rate"),
        ({"gate_error": 2.0}, "gate_error"),
        ({"index": 3}, "index"),
    ],
)
def test_a_seal_that_makes_no_sense_is_refused(changed: dict[str, Any], name: str) -> None:
    buffer = hourly()
    buffer.add("a", 1, START)
    words: dict[str, Any] = {"index": buffer.segments()[0].index, "error_rate": 0.01} | changed
    with pytest.raises(ParameterError, match=name):
        buffer.seal(words.pop("index"), **words)


def test_a_sealed_segment_is_dropped_and_a_late_event_opens_it_anew() -> None:
    buffer = hourly()
    buffer.add("a", 1, START)
    (segment,) = buffer.segments()
    assert not segment.complete
    buffer.add("a", 1, START + HOUR)
    assert [each.complete for each in buffer.segments()] == [True, False]
    buffer.drop(segment.index)
    with pytest.raises(ParameterError, match="index"):
        buffer.drop(segment.index)
    buffer.add("a", 5, START)
    assert buffer.rows_of(segment.index, "a").sum() == 5


# ---- the rest


def test_by_arrivals_a_row_is_so_many_events() -> None:
    buffer = HistoryBuffer(arrivals=100, rows=3)
    times = START + np.arange(750) * SECOND
    buffer.add_many(["a", "b", "c"] * 250, at=utc(times))
    assert [each.events for each in buffer.segments()] == [300, 300, 150]
    assert [each.complete for each in buffer.segments()] == [True, True, False]
    rows = buffer.row_records(1)
    assert rows["events"].tolist() == [100, 100, 100]
    assert rows["first"].tolist() == times[[300, 400, 500]].tolist()
    assert rows["last"].tolist() == times[[399, 499, 599]].tolist()
    made = buffer.seal(1, error_rate=0.01)
    assert HistorySegment.from_bytes(made.segment).rows_of("a").sum() == 100


@pytest.mark.parametrize("by", ["path", "ip"])
def test_a_log_goes_in_by_its_own_time_without_python_for_a_line(by: str) -> None:
    log = b"".join(web_log(3000, pages=50, per_second=2))
    counted, added = hourly(), hourly()
    counter = LogCounter(counted, by=by)
    for start in range(0, len(log), 1000):
        counter.feed(log[start : start + 1000])
    counter.finish()
    assert counter.report().counted == 3000
    from bloomtide import LogReader

    reader = LogReader()
    for record in [*reader.feed(log), *reader.finish()]:
        assert record.time is not None
        added.add(getattr(record, by), 1, round(record.time * 1e6))
    assert counted.segments() == added.segments()
    for segment in added.segments():
        assert counted.names(segment.index) == added.names(segment.index)
    again = hourly()
    assert again.replay(written(counted.take_journal())) == 3000
    assert again.segments() == added.segments()


def test_a_log_goes_into_a_hot_list_and_a_history_at_once() -> None:
    from bloomtide import HotList

    hot, buffer = HotList(10), hourly()
    counter = LogCounter(hot, buffer)
    counter.feed(hit("/a") * 3)
    counter.finish()
    (segment,) = buffer.segments()
    assert (hot.count(b"/a"), buffer.rows_of(segment.index, "/a").sum()) == (3.0, 3)


def test_threads_lose_no_event() -> None:
    buffer, journal = hourly(names=4), []
    stop = threading.Event()

    def add(number: int) -> None:
        for _ in range(50):
            buffer.add_many([f"k{number}", "shared"] * 100, at=START / 1e6)
            buffer.add("single", 1, START)

    def take() -> None:
        while not stop.is_set():
            journal.extend(buffer.take_journal())
            list(buffer.segments())

    threads = [threading.Thread(target=add, args=(n,)) for n in range(3)]
    taker = threading.Thread(target=take)
    for thread in (*threads, taker):
        thread.start()
    for thread in threads:
        thread.join()
    stop.set()
    taker.join()
    journal.extend(buffer.take_journal())
    (segment,) = buffer.segments()
    expected = {"k0": 5000, "k1": 5000, "k2": 5000, "shared": 15000, "single": 150}
    again = hourly(names=4)
    again.replay(written(journal))
    for each in (buffer, again):
        counts = {key: each.rows_of(segment.index, key).sum() for key in expected}
        assert counts == expected


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ({"rows": 60}, "window"),
        ({"window": 1, "arrivals": 1, "rows": 60}, "window"),
        ({"window": 0, "rows": 60}, "window"),
        ({"arrivals": 0, "rows": 60}, "arrivals"),
        ({"window": MINUTE, "rows": 0}, "rows"),
        ({"window": MINUTE, "rows": 2**32 - 1}, "rows"),
        ({"window": 2**63 - 1, "rows": 60}, "window"),
        ({"window": MINUTE, "rows": 60, "names": 2**60}, "names"),
        ({"window": MINUTE, "rows": 60, "hash": "md5"}, "hash"),
    ],
)
def test_a_buffer_that_makes_no_sense_is_refused(words: dict[str, Any], name: str) -> None:
    with pytest.raises(ParameterError, match=name):
        HistoryBuffer(**words)
