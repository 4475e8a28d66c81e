"""`bloomtide history ingest` as people run it: again, stopped, on all kinds of logs."""

from __future__ import annotations

import gzip
import json
import os
import signal
import threading
from pathlib import Path

import pytest

from bloomtide import History
from bloomtide.cli import log_files
from bloomtide.cli.history import ingest
from bloomtide.cli.log_counts import LogCounts
from bloomtide.cli.log_files import Piece
from tests.cli.access_log import hit
from tests.cli.command import run

LINES = [hit(f"/{n}", n) for n in range(300)]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "access.log"
    path.write_bytes(b"".join(LINES))
    return path


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "hits"


def counts(store: Path, keys: list[str]) -> list[int]:
    with History.open(store, mode="r") as history:
        return [int(count) for count in history.count_many(keys)]


def require_once(store: Path) -> None:
    assert counts(store, [f"/{n}" for n in range(300)]) == [1] * 300


def test_a_second_run_finds_nothing_new_and_again_counts_again(log: Path, store: Path) -> None:
    words = ("history", "ingest", store, "--error", "0.001%")
    assert "300 lines counted" in run(*words, log).stderr
    log.with_name("b.gz").write_bytes(gzip.compress(log.read_bytes()))
    for names in ((log,), (f"{log}*", log.with_name("b.gz"))):
        assert "nothing new" in run(*words, *names).stderr
    require_once(store)
    told = json.loads(run(*words, log, "--json").stdout)
    assert (told["lines"], told["store"]["events"]) == (0, 300)
    run(*words, "--again", log, log)
    assert counts(store, ["/1", "/299"]) == [2, 2]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("at", [1, 7])
def test_a_signal_ends_a_run_in_order_and_the_next_one_goes_on(
    log: Path, store: Path, number: int, at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_files, "CHUNK", 2000)
    taken, take = 0, LogCounts.take

    def stopped(self: LogCounts, piece: Piece) -> None:
        nonlocal taken
        taken += 1
        if taken == at:
            os.kill(os.getpid(), number)
        take(self, piece)

    with monkeypatch.context() as patch:
        patch.setattr(LogCounts, "take", stopped)
        told = run("history", "ingest", store, log, "--error", "0.001%", "--json", code=130)
    assert 0 < json.loads(told.stdout)["counted"] < 300
    assert taken == at
    run("history", "ingest", store, log)
    require_once(store)


def test_what_is_read_is_committed_now_and_then(
    log: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_files, "CHUNK", 2000)
    monkeypatch.setattr(ingest, "COMMIT", 0.0)
    commits = 0
    checkpoint = History.checkpoint

    def counted(self: History, *, seal: bool = False) -> None:
        nonlocal commits
        commits += 1
        checkpoint(self, seal=seal)

    monkeypatch.setattr(History, "checkpoint", counted)
    run("history", "ingest", store, log, "--error", "0.001%")
    assert commits > 10
    require_once(store)


def test_files_and_pipes_are_counted_in_one_run(log: Path, store: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(hit("/pipe") + hit("/last")[:-1]))
    writer.start()
    told = run("history", "ingest", store, log, "-", pipe, stdin=hit("/stdin", 1000))
    writer.join()
    assert "303 lines counted" in told.stderr
    assert counts(store, ["/pipe", "/last", "/stdin", "/7"]) == [1, 1, 1, 1]


def test_what_was_not_counted_is_told(store: Path, tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_bytes(b"".join(LINES[:20]) + b"\xff\x00 what\n" + LINES[20] + LINES[21][:30])
    gone = tmp_path / "gone.log"
    pattern = tmp_path / "b.log*"
    words = ("history", "ingest", store, "--by", "host", log, gone, tmp_path, pattern)
    told = run(*words, code=2).stderr
    assert f"there is no log {pattern}" in told
    assert "lines without a host: 21" in told
    assert "lines skipped: 1; the first:" in told
    assert "a.log, line 21: not COMBINED" in told
    assert f"cannot read a log from {gone}" in told
    assert f"cannot read a log from {tmp_path}: it is not a regular file" in told
    assert f"{log}: the last line has no end yet" in told


def test_lines_without_the_field_are_told_also_if_others_have_it(
    store: Path, tmp_path: Path
) -> None:
    log = tmp_path / "a.json"
    log.write_bytes(b'{"path": "/a", "ts": 1700000000}\n{"ts": 1700000001}\n' * 10)
    told = run("history", "ingest", store, log, "--json-map", "path=path,time=ts").stderr
    assert "10 lines counted" in told
    assert "lines without a path: 10" in told


W3C = b"#Version: 1.0\n#Fields: date time cs-uri-stem sc-status\n"
SWAPPED = b"#Fields: date time sc-status cs-uri-stem\n"


def w3c(first: int, count: int, *, swapped: bool = False) -> bytes:
    pairs = [(b"/%d" % n, b"200") for n in range(first, first + count)]
    ordered = [(status, path) if swapped else (path, status) for path, status in pairs]
    return b"".join(b"2024-05-01 12:00:00 %s %s\n" % each for each in ordered)


@pytest.mark.parametrize("packed", [False, True])
def test_a_log_with_columns_keeps_them_when_it_is_read_on(
    store: Path, tmp_path: Path, packed: bool
) -> None:
    parts = [W3C + w3c(0, 100), w3c(100, 1), SWAPPED + w3c(101, 100, swapped=True)]
    parts += [w3c(201, 1, swapped=True), w3c(202, 98, swapped=True)]
    log, data = tmp_path / ("a.log.gz" if packed else "a.log"), b""
    for part in parts:
        data += part
        log.write_bytes(gzip.compress(data) if packed else data)
        run("history", "ingest", store, log, "--error", "0.001%")
    require_once(store)


def test_a_log_with_columns_that_was_packed_has_nothing_new(store: Path, tmp_path: Path) -> None:
    log, packed = tmp_path / "u.log", tmp_path / "u.log.gz"
    log.write_bytes(W3C + w3c(0, 5))
    run("history", "ingest", store, log)
    packed.write_bytes(gzip.compress(log.read_bytes()))
    log.unlink()
    assert "nothing new" in run("history", "ingest", store, packed).stderr
    packed.write_bytes(gzip.compress(W3C + w3c(0, 6)))
    assert json.loads(run("history", "ingest", store, packed, "--json").stdout)["lines"] == 1


@pytest.mark.parametrize("columns", [False, True])
def test_a_line_is_told_by_its_number_in_the_log_also_when_that_goes_on(
    store: Path, tmp_path: Path, columns: bool
) -> None:
    log, lines = tmp_path / "a.log", W3C + w3c(0, 8) if columns else b"".join(LINES[:10])
    log.write_bytes(lines)
    run("history", "ingest", store, log)
    log.write_bytes(lines + (w3c(8, 1) if columns else LINES[10]) + b"what?\n")
    assert "a.log, line 12: not" in run("history", "ingest", store, log).stderr


JSON_LOG = b"".join(
    b'{"ts": %d, "request": {"u": "/%d"}}\n' % (1_700_000_000 + n, n) for n in range(300)
)
MAPPED = ("--format", "json", "--json-map", "path=request.u,time=ts")


@pytest.mark.parametrize("chunk", [100, 1 << 20])
@pytest.mark.parametrize("mistaken", [(), ("--json-map", "path=request.uu,time=ts")])
def test_a_log_of_which_nothing_counted_is_read_again(
    store: Path, tmp_path: Path, mistaken: tuple[str, ...], chunk: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(log_files, "CHUNK", chunk)
    log = tmp_path / "app.log"
    log.write_bytes(JSON_LOG)
    words = ("history", "ingest", store, "--error", "0.001%", log)
    for _ in range(2):
        told = run(*words, *mistaken, code=1 if mistaken else 2).stderr
        assert ("lines without a path: 300" if mistaken else "name it with --format") in told
    for again in ("300 lines counted", "nothing new"):
        assert again in run(*words, *MAPPED).stderr
    require_once(store)


def test_a_log_whose_first_lines_do_not_count_is_counted_from_there_on(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_files, "CHUNK", 100)
    log = tmp_path / "app.log"
    log.write_bytes(b'{"ts": 1700000000}\n' * 50 + JSON_LOG)
    words = ("history", "ingest", store, "--error", "0.001%", log, *MAPPED)
    for again in ("lines without a path: 50", "nothing new"):
        assert again in run(*words).stderr
    require_once(store)


def test_an_odd_line_does_not_change_the_format_of_a_log_that_is_read_on(
    log: Path, store: Path
) -> None:
    run("history", "ingest", store, log)
    with log.open("ab") as file:
        file.write(b"/odd\n" + hit("/good", 400))
    told = run("history", "ingest", store, log).stderr
    assert "lines skipped: 1" in told
    assert counts(store, ["/odd", "/good"]) == [0, 1]


def test_a_line_of_ten_megabytes_is_told_and_the_others_count(log: Path, store: Path) -> None:
    long = hit("/" + "x" * 10_000_000)
    log.write_bytes(b"".join(LINES[:150]) + long + b"".join(LINES[150:]))
    told = run("history", "ingest", store, log, "--error", "0.001%").stderr
    assert "longer than 65,536 bytes" in told
    require_once(store)
