"""Streams: every event counts once, through restarts and batches that are sent again."""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bloomtide import History, HotList
from bloomtide.errors import ParameterError

pytest.importorskip("pyspark", reason="PySpark is not installed")

from bloomtide.integrations import spark as by_spark
from bloomtide.integrations.spark.streaming import States, latest
from tests.integrations.spark.conftest import ROOT
from tests.server.process import running
from tests.services.postgres import Postgres, postgres

__all__ = ["postgres"]

pytestmark = [
    pytest.mark.filterwarnings("ignore:PySpark does not yet:FutureWarning"),
    pytest.mark.timeout(300),  # a JVM starts slowly on a machine that has other work
]
START = 1_700_000_000
SCHEMA = "url string, at double"
NOW: dict[str, Any] = {"trigger": {"availableNow": True}}


def write(folder: Path, number: int, rows: Sequence[tuple[str | None, float]]) -> None:
    """One file of events, which appears whole."""
    folder.mkdir(exist_ok=True)
    lines = "".join(json.dumps({"url": url, "at": at}) + "\n" for url, at in rows)
    hidden = folder / f".{number}"
    hidden.write_text(lines)
    os.utime(hidden, (START + number, START + number))  # Spark takes the oldest first
    hidden.rename(folder / f"{number:04d}.json")


def events(number: int) -> list[tuple[str, float]]:
    return [(f"/page/{(n * 7 + number) % 40}", START + 60 * number + n / 10) for n in range(300)]


def stream(spark: Any, folder: Path) -> Any:
    """The files as a stream, one for each micro-batch."""
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(folder))


def finished(query: Any) -> None:
    """Waits for the end, and raises what went wrong."""
    assert query.awaitTermination(100)


def exact(numbers: range) -> dict[str, int]:
    found: dict[str, int] = {}
    for number in numbers:
        for url, _ in events(number):
            found[url] = found.get(url, 0) + 1
    return found


def test_a_history_counts_each_event_once_although_batches_run_again(
    spark: Any, tmp_path: Path
) -> None:
    store_path = tmp_path / "data" / "histories" / "history-web"  # where a server finds it
    checkpoint = tmp_path / "checkpoint"
    for number in range(3):
        write(tmp_path / "in", number, events(number))
    with History.open(store_path, "1m", background=False) as store:
        source = stream(spark, tmp_path / "in")
        finished(by_spark.history_sink(source, store, "url", at="at", checkpoint=checkpoint, **NOW))
        assert store.total().upper == 900
    # As if the driver was killed after the store took the last batch, before Spark noted it.
    (checkpoint / "commits" / "2").unlink()
    (checkpoint / "commits" / ".2.crc").unlink(missing_ok=True)
    for number in range(3, 5):
        write(tmp_path / "in", number, events(number))
    with History.open(store_path, "1m", background=False) as store:
        source = stream(spark, tmp_path / "in")
        finished(by_spark.history_sink(source, store, "url", at="at", checkpoint=checkpoint, **NOW))
        assert store.total().upper == 1500
        counted = {url: store.count(url).upper for url in exact(range(5))}
    assert counted == exact(range(5))
    with History.open(store_path, mode="r") as store:
        minute = store.total(START + 60, START + 120)
        assert minute.upper == 300
        with running(tmp_path / "data") as server, server.client() as client:
            for url, count in exact(range(5)).items():
                words = client.execute_command("HISTORY.COUNT", "web", url)
                assert dict(zip(*[iter(words)] * 2, strict=True))[b"upper"] == count


def test_a_history_may_have_its_files_and_its_catalogue_elsewhere(
    spark: Any, tmp_path: Path, postgres: Postgres
) -> None:
    words: dict[str, Any] = {"catalogue": postgres.new_database(), "background": False}
    for number in range(3):
        write(tmp_path / "in", number, events(number))
        # Each time as after a restart of the driver; the second time a batch is sent again.
        if number == 1:
            (tmp_path / "checkpoint" / "commits" / "0").unlink()
            (tmp_path / "checkpoint" / "commits" / ".0.crc").unlink(missing_ok=True)
        place = f"file://{tmp_path}/objects" if number == 0 else None
        with History.open(tmp_path / "store", "1m", location=place, **words) as store:
            source = stream(spark, tmp_path / "in")
            sink: dict[str, Any] = {"at": "at", "checkpoint": tmp_path / "checkpoint"}
            finished(by_spark.history_sink(source, store, "url", **sink, **NOW))
    with History.open(tmp_path / "store", mode="r", catalogue=words["catalogue"]) as store:
        assert {url: store.count(url).upper for url in exact(range(3))} == exact(range(3))
    assert any((tmp_path / "objects").rglob("*.*"))


def test_dedup_hands_on_each_key_once_within_its_time(spark: Any, tmp_path: Path) -> None:
    rows: list[list[tuple[str | None, float]]] = [
        [("a", START), ("b", START + 1), ("a", START + 2), (None, START)],
        [("a", START + 100), ("c", START + 100)],
        [("b", START + 5000), ("a", START + 100), ("d", START + 5001)],
    ]
    got: dict[int, list[str]] = {}
    words: dict[str, Any] = {
        "at": "at", "within": "1h", "capacity": 1000, "state": tmp_path / "state",
        "checkpoint": tmp_path / "checkpoint", "shards": 2,
    }  # fmt: skip

    def then(new: Any, number: int) -> None:
        got[number] = sorted(row.url for row in new.collect())

    for number in range(2):
        write(tmp_path / "in", number, rows[number])
    finished(by_spark.dedup(stream(spark, tmp_path / "in"), "url", then, **words, **NOW))
    assert got == {0: ["a", "b"], 1: ["c"]}
    (tmp_path / "checkpoint" / "commits" / "1").unlink()
    (tmp_path / "checkpoint" / "commits" / ".1.crc").unlink(missing_ok=True)
    write(tmp_path / "in", 2, rows[2])
    finished(by_spark.dedup(stream(spark, tmp_path / "in"), "url", then, **words, **NOW))
    # The second batch ran again with the same result; after an hour a key is new again.
    assert got == {0: ["a", "b"], 1: ["c"], 2: ["b", "d"]}


def test_a_hot_list_is_a_table_that_follows_the_stream(spark: Any, tmp_path: Path) -> None:
    words: dict[str, Any] = {
        "at": "at", "name": "hot", "state": tmp_path / "state", "k": 10, "half_life": "1h",
        "checkpoint": tmp_path / "checkpoint",
    }  # fmt: skip
    write(tmp_path / "in", 0, [("/old", START)] * 8)
    finished(by_spark.hot_table(stream(spark, tmp_path / "in"), "url", **words, **NOW))
    rows = spark.sql("SELECT key, round(count, 6) AS n FROM hot").collect()
    assert [(row.key, row.n) for row in rows] == [("/old", 8)]
    write(tmp_path / "in", 1, [("/new", START + 7200)] * 3)
    finished(by_spark.hot_table(stream(spark, tmp_path / "in"), "url", **words, **NOW))
    rows = spark.sql("SELECT key, round(count, 6) AS n FROM hot").collect()
    assert [(row.key, row.n) for row in rows] == [("/new", 3), ("/old", 2)]
    saved = HotList.load(latest(tmp_path / "state"))
    assert [item.key for item in saved.top(at=saved.time)] == ["/new", "/old"]


def test_a_stream_that_cannot_be_read_is_refused_before_it_starts(
    spark: Any, tmp_path: Path
) -> None:
    write(tmp_path / "in", 0, events(0))
    source = stream(spark, tmp_path / "in")
    with History.open(tmp_path / "store", "1m", background=False) as store:
        with pytest.raises(ParameterError, match="`at` must hold instants"):
            by_spark.history_sink(source, store, "url", at="url", checkpoint=tmp_path)
        with pytest.raises(ParameterError, match="`column` must hold"):
            by_spark.history_sink(source, store, "at", at="at", checkpoint=tmp_path)


def test_a_state_is_kept_for_the_batch_that_may_run_again(tmp_path: Path) -> None:
    states = States(tmp_path, "state")
    assert states.before(0) is None
    for number in range(5):
        states.write(number, str(number).encode())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["3.state", "4.state"]
    before = states.before(4)
    assert before is not None
    assert before.read_bytes() == b"3"
    states.write(4, b"again")
    assert states.before(5).read_bytes() == b"again"  # type: ignore[union-attr]


def test_the_example_profiles_logs_from_parquet_to_the_numbers_of_a_dashboard(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyarrow import parquet

    monkeypatch.syspath_prepend(str(ROOT / "examples" / "spark_logs"))
    example: Any = importlib.import_module("profile_logs")
    example.make_logs(tmp_path / "logs", days=2, lines=3000)
    told = example.profile(spark, tmp_path / "logs", tmp_path / "out")
    lines = parquet.read_table(tmp_path / "logs").to_pylist()
    unique = {line["id"]: line for line in lines}
    assert (told["lines"], told["sent twice"]) == (6120, 6120 - len(unique))
    assert len(unique) == 6000
    hits: dict[str, int] = {}
    for line in unique.values():
        hits[line["page"]] = hits.get(line["page"], 0) + 1
    assert told["hottest"] == {page: hits[page] for page in told["hottest"]}
    assert next(iter(told["hottest"])) == max(hits, key=lambda page: hits[page])
    visitors = len({line["visitor"] for line in lines})
    assert told["visitors"] == pytest.approx(visitors, rel=0.05)
    assert len(told["visitors by day"]) == 2
    assert json.loads((tmp_path / "out" / "dashboard.json").read_text()) == told
    with History.open(tmp_path / "out" / "history", mode="r") as store:
        assert store.total().upper == 6000
