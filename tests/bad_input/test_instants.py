"""Times: one vocabulary for every class, and one clear error for what is no time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from bloomtide import History, HotList, Monitor, RecentFilter, TimeDecayingBloomFilter
from bloomtide._core import parse_duration, parse_instant
from bloomtide.distributed import Recipe, ShardedFilter
from bloomtide.errors import ParameterError

NOON = 1_700_000_000.0
AWARE = datetime.fromtimestamp(NOON, UTC)


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("90s", 90),
        ("15m", 900),
        ("1h", 3600),
        ("7d", 604_800),
        ("2w", 1_209_600),
        ("250ms", 0.25),
        ("1h30m", 5400),
        (" 1h 30m ", 5400),
        ("1.5h", 5400),
        ("42", 42),
        (3600, 3600),
        (0.5, 0.5),
        (np.float32(0.5), 0.5),
        (np.int64(60), 60),
        (timedelta(days=1, seconds=2, microseconds=500_000), 86_402.5),
        (np.timedelta64(1500, "ms"), 1.5),
        (np.timedelta64(2, "h"), 7200),
    ],
)
def test_a_duration_is_read_as_it_is_written(written: Any, seconds: float) -> None:
    assert parse_duration(written) == seconds


@pytest.mark.parametrize(
    "wrong",
    [
        *("", "h", "1x", "1h30", "-1h", "1 hour", "nan", "inf", "1..5h", "0s", "1H"),
        *(0, -1, 0.0, np.bool_(True), float("nan"), float("inf"), 10**400, True, None, b"1h", [1]),
        *(
            timedelta(0),
            timedelta(-1),
            np.timedelta64("NaT"),
            np.datetime64("2023-01-01"),
            datetime.now(UTC),
        ),
    ],
)
def test_what_is_no_duration_is_refused_by_name(wrong: Any) -> None:
    with pytest.raises(ParameterError, match="`half_life` must be a length of time") as caught:
        parse_duration(wrong, "half_life")
    assert caught.value.name == "half_life"
    assert "15m" in caught.value.hint


@pytest.mark.parametrize(
    "written",
    [
        NOON,
        int(NOON),
        np.int32(NOON),
        np.float64(NOON),
        AWARE,
        AWARE.astimezone(ZoneInfo("Asia/Kathmandu")),
        "2023-11-14T22:13:20Z",
        "2023-11-14T23:13:20+01:00",
        "20231114T221320+0000",
        pd.Timestamp(NOON, unit="s", tz="Asia/Tokyo"),
    ],
)
def test_an_instant_is_the_same_in_every_form(written: Any) -> None:
    assert parse_instant(written) == NOON


def test_fractions_of_a_second_are_kept() -> None:
    assert parse_instant("1970-01-01T00:00:01.5Z") == 1.5
    assert parse_instant(pd.Timestamp("1970-01-01T00:00:01.250Z")) == 1.25


@pytest.mark.parametrize(
    "zoneless",
    [
        AWARE.replace(tzinfo=None),
        "2023-11-14T22:13:20",
        "2023-11-14",
        np.datetime64("2023-11-14T22:13:20"),
        pd.Timestamp("2023-11-14T22:13:20"),
    ],
)
def test_an_instant_without_a_zone_is_refused(zoneless: Any) -> None:
    with pytest.raises(ParameterError, match="time zone") as caught:
        parse_instant(zoneless)
    assert caught.value.name == "at"
    assert "which zone" in caught.value.hint


@pytest.mark.parametrize("text", ["2023-11-14T22:13:20", "2023-11-14", "1969-12-31T00:00:00Z"])
def test_text_that_is_refused_is_told_as_it_was_written(text: str) -> None:
    with pytest.raises(ParameterError, match=f"got: '{text}'"):
        parse_instant(text)


@pytest.mark.parametrize(
    "wrong",
    [
        *(float("nan"), float("inf"), -1, -0.5, NOON * 1000, 10**400, True, None, "soon", b"1", 1j),
        *(datetime(1969, 12, 31, tzinfo=UTC), np.datetime64("NaT"), pd.NaT),
        *(np.timedelta64(1, "s"), timedelta(1), AWARE.date(), "10000-01-01T00:00:00Z", object()),
    ],
)
def test_what_is_no_instant_is_refused_by_name(wrong: Any) -> None:
    with pytest.raises(ParameterError, match="`now` must be") as caught:
        parse_instant(wrong, "now")
    assert caught.value.name == "now"


SECONDS = [0.0, 1.5, NOON]
MILLIS = (np.array(SECONDS) * 1000).astype("int64")
NAIVE: list[Any] = [
    *(MILLIS.astype(f"datetime64[{unit}]") for unit in ("s", "ms", "25ms", "us", "ns", "D")),
    MILLIS.astype("datetime64[ms]").astype(">M8[ms]"),
    np.array([], "datetime64[s]"),
    pa.array(MILLIS.astype("datetime64[ms]")),
    pa.chunked_array([pa.array(MILLIS, pa.timestamp("us"))]),
    pa.array([1, 2], pa.date32()),
    pd.Series(MILLIS.astype("datetime64[ms]")),
    pd.DatetimeIndex(MILLIS.astype("datetime64[ms]")),
    pl.Series(MILLIS).cast(pl.Datetime("ms")),
    pl.Series([1, 2]).cast(pl.Date),
    list(MILLIS.astype("datetime64[ms]")),
    [datetime.fromtimestamp(NOON)],  # noqa: DTZ006
]


@pytest.mark.parametrize(
    "column",
    [
        SECONDS,
        tuple(SECONDS),
        iter(SECONDS),
        np.array(SECONDS),
        np.array(SECONDS, ">f8"),
        np.array([s for s in SECONDS for _ in range(2)])[::2],
        pa.array(SECONDS),
        pa.chunked_array([SECONDS[:1], SECONDS[1:]]),
        pa.array(MILLIS, pa.timestamp("ms", tz="Asia/Tokyo")),
        pa.chunked_array([pa.array(MILLIS * 1_000_000, pa.timestamp("ns", tz="UTC"))]),
        pd.Series(SECONDS),
        pd.Series(pd.to_datetime(SECONDS, unit="s", utc=True)),
        pd.to_datetime(SECONDS, unit="s", utc=True).tz_convert("America/New_York"),
        pl.Series(MILLIS).cast(pl.Datetime("ms", "Asia/Tokyo")),
        [
            0,
            "1970-01-01T00:00:01.500Z",
            datetime.fromtimestamp(NOON, timezone(timedelta(hours=-3))),
        ],
        np.array([0, 1.5, AWARE], object),
    ],
)
def test_a_column_of_instants_is_read_whatever_holds_it(column: Any) -> None:
    assert parse_instant(column).tolist() == SECONDS


def test_an_empty_column_has_no_instants() -> None:
    assert parse_instant([]).shape == parse_instant(np.array([])).shape == (0,)


@pytest.mark.parametrize("column", NAIVE, ids=lambda column: type(column).__module__)
def test_a_column_of_times_without_a_zone_is_refused_as_one_of_them_is(column: Any) -> None:
    with pytest.raises(ParameterError, match="time zone") as caught:
        parse_instant(column)
    assert caught.value.name == "at"
    assert "which zone" in caught.value.hint


def _everything_with_a_time(folder: Path) -> list[Any]:
    goal: Any = {"capacity": 100, "error_rate": 0.01}
    decaying = TimeDecayingBloomFilter(**goal, half_life="1h")
    sharded = ShardedFilter(
        Recipe.of(TimeDecayingBloomFilter.plan(**goal, half_life=60), at=NOON), 2
    )
    return [
        decaying,
        HotList(5),
        TimeDecayingBloomFilter(**goal, half_life="1h").with_hot_list(5),
        RecentFilter(**goal),
        History.open(folder / "history", background=False),
        Monitor.open(),
        sharded,
    ]


def test_every_class_that_takes_instants_refuses_a_column_without_a_zone(tmp_path: Path) -> None:
    naive = np.array([int(NOON)] * 2).astype("datetime64[s]")
    zoned = pa.array([int(NOON)] * 2, pa.timestamp("s", "UTC"))
    for made in _everything_with_a_time(tmp_path):
        for column in (naive, pa.array(naive), pd.Series(naive), naive[0], list(naive)):
            with pytest.raises(ParameterError, match="time zone") as caught:
                made.add_many(["a", "b"], at=column)
            assert caught.value.name == "at", made
        made.add_many(["a", "b"], at=zoned)
        if hasattr(made, "close"):
            made.close()


@pytest.mark.parametrize(
    "column",
    [
        [1.0, float("nan")],
        [1.0, None],
        [AWARE, AWARE.replace(tzinfo=None)],
        ["2023-11-14T22:13:20Z", "2023-11-14T22:13:20"],
        np.array([1.0, np.nan]),
        np.array([1, -1]),
        np.array([1, 1_700_000_000_000]),
        pd.to_datetime(["2023-01-01", "NaT"], utc=True),
        pa.array([1, -1], pa.timestamp("s", tz="UTC")),
        np.ma.masked_array([1.0, 2.0], [False, True]),
        pa.chunked_array([pa.array([1, None], pa.timestamp("s", tz="UTC"))]),
        np.array([1.0, None], object),
    ],
)
def test_a_bad_instant_in_a_column_is_told_with_its_row(column: Any) -> None:
    with pytest.raises(ParameterError, match="in row 1") as caught:
        parse_instant(column)
    assert caught.value.name == "at"


@pytest.mark.parametrize("column", [np.zeros((2, 2)), np.array([True]), pa.array(["x"])])
def test_what_is_no_column_of_instants_is_refused(column: Any) -> None:
    with pytest.raises(ParameterError, match="`at` must be"):
        parse_instant(column)
