"""`bloomtide history` on small logs: what goes in comes out, for every range, in every form."""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bloomtide import History
from tests.cli.access_log import START, hit
from tests.cli.command import refused, run

FIRST = START.timestamp()
MINUTES = {"/a": (0, 0, 1, 59, 60, 61, 180), "/b": (1, 200), "/c": (61,)}
"""Pages, and the minutes after the start in which they were asked for."""


def log_of(minutes: dict[str, tuple[int, ...]]) -> bytes:
    lines = [(minute, path) for path, times in minutes.items() for minute in times]
    return b"".join(hit(path, minute) for minute, path in sorted(lines))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "hits"
    run("history", "ingest", path, stdin=log_of(MINUTES))
    return path


def at(minute: float) -> str:
    return str(FIRST + 60 * minute)


def counts(*arguments: str | Path, code: int = 0) -> dict[str, int]:
    """What `count` prints."""
    lines = run("history", "count", *arguments, code=code).stdout.splitlines()
    return {key: int(number) for number, _, key in (line.partition("\t") for line in lines)}


def objects(*arguments: str | Path, code: int = 0) -> list[dict[str, Any]]:
    """What `--json` writes, an object a line."""
    text = run("history", *arguments, "--json", code=code).stdout
    return [json.loads(line) for line in text.splitlines()]


def test_every_range_has_its_own_counts(store: Path) -> None:
    keys = ("--key", "/a", "--key", "/b", "--key", "/c")
    assert counts(store, *keys) == {"/a": 7, "/b": 2, "/c": 1}
    assert counts(store, *keys, "--end", at(60)) == {"/a": 4, "/b": 1, "/c": 0}
    assert counts(store, *keys, "--start", at(60), "--end", at(62)) == {"/a": 2, "/b": 0, "/c": 1}
    assert counts(store, *keys, "--last", "30m") == {"/a": 1, "/b": 1, "/c": 0}


def test_a_key_that_never_came_is_no(store: Path) -> None:
    assert counts(store, "--key", "/never", code=1) == {"/never": 0}
    assert counts(store, "--key", "/c", "--end", at(60), code=1) == {"/c": 0}


def test_keys_come_from_files_and_stdin(store: Path, tmp_path: Path) -> None:
    file = tmp_path / "keys.txt"
    file.write_bytes(b"/a\n/b\n")
    assert counts(store, file) == {"/a": 7, "/b": 2}
    printed = run("history", "count", store, stdin=b"/c\n").stdout
    assert printed == "1\t/c\n"


def test_json_has_the_bounds_and_a_range_that_cuts_a_row_says_so(store: Path) -> None:
    [answer] = objects("count", store, "--key", "/a", "--end", at(60))
    assert answer == {
        "key": "/a", "upper": 4, "inner": 4, "estimate": 4.0, "rows": answer["rows"],
        "partial": 0, "predicted_error": answer["predicted_error"], "missing": [],
    }  # fmt: skip
    assert 0 <= answer["predicted_error"] < 0.01
    twice = hit("/a", 0.25) + hit("/a", 0.75)
    path = store.with_name("cut")
    run("history", "ingest", path, stdin=twice)
    result = run("history", "count", path, "--key", "/a", "--end", at(0.5))
    assert result.stdout == "2\t/a\n"
    assert "rows that the range cuts: 1" in result.stderr


def test_a_second_log_is_added_and_late_lines_count_at_their_time(store: Path) -> None:
    run("history", "ingest", store, stdin=log_of({"/a": (0, 500)}))
    assert counts(store, "--key", "/a") == {"/a": 9}
    assert counts(store, "--key", "/a", "--end", at(1)) == {"/a": 3}


def test_packed_logs_are_read_and_a_damaged_one_is_told(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.log.gz", tmp_path / "bad.log.gz"
    good.write_bytes(gzip.compress(log_of(MINUTES)))
    bad.write_bytes(gzip.compress(log_of(MINUTES))[:-20])
    store = tmp_path / "hits"
    stderr = run("history", "ingest", store, bad, code=2).stderr
    assert f"error: {bad}: damaged" in stderr
    run("history", "ingest", store, good)
    assert counts(store, "--key", "/c")["/c"] >= 1


def test_any_field_can_be_counted_and_a_query_left_out(tmp_path: Path) -> None:
    lines = hit("/a?x=1", ip="192.0.2.7") + hit("/a?x=2", 1, ip="192.0.2.7")
    run("history", "ingest", tmp_path / "ip", "--by", "ip", stdin=lines)
    assert counts(tmp_path / "ip", "--key", "192.0.2.7") == {"192.0.2.7": 2}
    run("history", "ingest", tmp_path / "path", "--no-query", stdin=lines)
    assert counts(tmp_path / "path", "--key", "/a") == {"/a": 2}


def test_ingest_tells_what_it_did(tmp_path: Path) -> None:
    stderr = run("history", "ingest", tmp_path / "a", stdin=log_of(MINUTES)).stderr
    assert "10 lines counted" in stderr
    assert "the store holds 10 events" in stderr
    result = run("history", "ingest", tmp_path / "b", "--json", stdin=log_of(MINUTES) + b"?\n")
    told = json.loads(result.stdout)
    assert (told["lines"], told["counted"], told["skipped"]) == (11, 10, 1)
    assert told["store"]["events"] == 10
    assert "lines skipped: 1" in result.stderr


def test_lines_that_nobody_understands_are_an_error(tmp_path: Path) -> None:
    options = ("--format", "combined")
    stderr = refused("history", "ingest", tmp_path / "hits", *options, stdin=b"?\n")
    assert "no line was understood" in stderr


def test_the_total_of_a_range_counts_every_key(store: Path) -> None:
    assert run("history", "total", store).stdout == "10\n"
    late = ("--start", START.isoformat(), "--end", f"{FIRST + 60}")
    assert run("history", "total", store, *late).stdout == "2\n"
    answer = json.loads(run("history", "total", store, "--last", "90s", "--json").stdout)
    assert answer["inner"] <= 1 <= answer["upper"]
    assert run("history", "total", store, "--start", "2100-01-01", code=1).stdout == "0\n"


def test_info_says_what_a_store_was_made_by_and_what_it_holds(store: Path) -> None:
    facts = json.loads(run("history", "info", store, "--json").stdout)
    assert (facts["window"], facts["events"], facts["damaged"]) == (60.0, 10, [])
    assert facts["first"] == FIRST
    shown = run("history", "info", store).stdout
    assert "window" in shown
    assert "1 min" in shown
    [journal] = store.glob("journal-*")
    journal.unlink()
    assert f"{journal} is missing" in run("history", "info", store).stderr


def test_a_series_counts_each_step(store: Path) -> None:
    rows = objects(
        "series", store, "--key", "/a", "--start", at(0), "--end", at(240), "--step", "1h"
    )
    assert [row["upper"] for row in rows] == [4, 2, 0, 1]
    assert [row["start"] - FIRST for row in rows] == [0, 3600, 7200, 10_800]
    assert {row["key"] for row in rows} == {"/a"}


def test_a_series_without_a_key_counts_all_events(store: Path) -> None:
    rows = objects("series", store, "--start", at(0), "--end", at(240), "--step", "1h")
    assert [row["upper"] for row in rows] == [5, 3, 0, 2]
    assert {row["key"] for row in rows} == {None}


def test_the_same_series_as_csv_and_arrow(store: Path) -> None:
    asked = ("series", store, "--key", "/a", "--key", "/b", "--step", "1h")
    rows = list(csv.DictReader(io.StringIO(run("history", *asked, "--csv").stdout)))
    assert [row["upper"] for row in rows] == ["4", "2", "0", "1", "1", "0", "0", "1"]
    assert rows[0]["start"] == "2024-05-01T12:00:00Z"
    data = run("history", *asked, "--arrow").stdout_bytes
    table = pa.ipc.open_stream(data).read_all()
    assert table["upper"].to_pylist() == [int(row["upper"]) for row in rows]
    assert table["key"].to_pylist() == [b"/a"] * 4 + [b"/b"] * 4


def test_a_series_is_drawn_on_the_terminal_and_as_svg(store: Path, tmp_path: Path) -> None:
    shown = run("history", "series", store, "--key", "/a", "--step", "1h").stdout
    assert "/a: 7 in all, at most 4 a step" in shown
    assert "█" in shown or "@" in shown
    assert "2024-05-01 12:00" in shown
    file = tmp_path / "out.svg"
    run("history", "series", store, "--key", "/a", "--key", "/b", "--plot", file)
    drawn = file.read_text()
    assert drawn.startswith("<svg")
    assert drawn.count('stroke-width="1.5"') == 2


def test_the_most_frequent_keys_come_first_with_their_bounds(store: Path) -> None:
    rows = objects("top", store)
    assert [(row["key"], row["upper"], row["lower"]) for row in rows] == [
        ("/a", 7, 7), ("/b", 2, 2), ("/c", 1, 1)
    ]  # fmt: skip
    assert rows[0]["share"] == 0.7
    result = run("history", "top", store, "-n", "1")
    assert "/a" in result.stdout
    assert "/b" not in result.stdout
    assert "10 events; any other key at most 2" in result.stderr
    assert {row["key"] for row in objects("top", store, "--last", "1h")} == {"/a", "/b"}


def test_segments_are_listed_and_each_event_is_in_one_that_has_no_parent(store: Path) -> None:
    rows = objects("segments", store)
    assert sum(row["events"] for row in rows if row["parent"] is None) == 10
    assert {row["state"] for row in rows} <= {"open", "sealed", "rolled up"}
    shown = run("history", "segments", store).stdout
    assert "2024-05-01 12:00" in shown


def test_compaction_changes_no_count(tmp_path: Path) -> None:
    path = tmp_path / "hits"
    days = {f"/{page}": tuple(range(page, 3 * 1440, 97)) for page in range(5)}
    run("history", "ingest", path, stdin=log_of(days))
    keys = [word for page in days for word in ("--key", page)]
    assert counts(path, *keys) == {page: len(times) for page, times in days.items()}
    report = json.loads(run("history", "compact", path, "--json").stdout)
    assert report["dropped"] == 0
    result = run("history", "compact", path, "--retention", "1m for 1h, 1h for 1d, 1d for 10y")
    assert "dropped 0" not in result.stderr
    assert counts(path, *keys) == {page: len(times) for page, times in days.items()}


def test_a_sound_store_is_verified_and_a_damaged_file_is_named_with_its_time(
    tmp_path: Path,
) -> None:
    path = tmp_path / "hits"
    run("history", "ingest", path, stdin=log_of({"/a": tuple(range(0, 200, 7))}))
    assert "ok" in run("history", "verify", path).stdout
    [file, *_] = sorted((path / "segments").glob("*.segment"))
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    result = run("history", "verify", path, "--json", code=2)
    told = json.loads(result.stdout)
    assert told["ok"] is False
    assert file.name in told["problems"][0]
    assert "2024-05-01" in told["problems"][0]


def test_rows_are_exported_without_empty_ones(store: Path, tmp_path: Path) -> None:
    out = tmp_path / "rows.csv"
    result = run("history", "export", store, "--key", "/a", "--out", out)
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert [int(row["upper"]) for row in rows] == [2, 1, 1, 1, 1, 1]
    assert "6 rows" in result.stderr
    hours = objects("export", store, "-n", "2", "--step", "1h")
    assert {row["key"] for row in hours} == {"/a", "/b"}
    assert all(row["upper"] for row in hours)
    everything = objects("export", store)
    assert sum(row["upper"] for row in everything) == 10


def test_readers_and_the_writer_do_not_disturb_each_other_but_a_second_writer_is_refused(
    store: Path,
) -> None:
    with History.open(store) as history:
        history.add("/a", at=FIRST)
        history.flush()
        assert counts(store, "--key", "/a") == {"/a": 8}
        assert "process" in refused("history", "ingest", store, stdin=hit("/a"))
    run("history", "ingest", store, stdin=hit("/a"))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("count", "--start", "2024-05-02T00:00:00Z", "--end", "2024-05-01T00:00:00Z"), "start"),
        (("count", "--start", "yesterday"), "2026-01-31T09:00:00Z"),
        (("count", "--last", "1h", "--start", "0"), "--last"),
        (("count", "--last", "soon"), "last"),
        (("series", "--step", "0s"), "step"),
        (("series", "--step", "1ms", "--start", "0"), "step"),
        (("series", "--csv", "--json"), "--csv and --json"),
        (("export", "--out", "rows.xlsx"), "ending"),
        (("export", "--out", "rows.csv", "--json"), "csv"),
        (("top", "-n", "0"), "number"),
        (("compact", "--retention", "for ever"), "retention"),
        (("ingest", "--window", "1h"), "window"),
    ],
)
def test_bad_input_is_one_clear_error(store: Path, arguments: tuple[str, ...], told: str) -> None:
    command, *options = arguments
    key = ("--key", "/a") if command in ("count", "series") else ()
    assert told in refused("history", command, store, *key, *options, stdin=hit("/a"))


@pytest.mark.parametrize(
    "command", ["count", "total", "series", "top", "info", "segments", "verify", "export"]
)
def test_a_store_that_is_not_there_is_not_made(tmp_path: Path, command: str) -> None:
    missing = tmp_path / "none"
    assert "there is no store" in refused("history", command, missing, stdin=b"/a\n")
    assert "there is no store" in refused("history", "compact", missing)
    assert not missing.exists()


def test_an_empty_store_answers_no(tmp_path: Path) -> None:
    path = tmp_path / "hits"
    History.open(path).close()
    assert counts(path, "--key", "/a", code=1) == {"/a": 0}
    for command in ("series", "top", "export"):
        assert "empty" in run("history", command, path, code=1).stderr
    assert "ok" in run("history", "verify", path).stdout


def test_the_group_alone_shows_its_commands() -> None:
    shown = run("history", code=2)
    assert all(name in shown.output for name in ("ingest", "series", "export"))
