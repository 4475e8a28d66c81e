"""`bloomtide dedup --state`: going on tomorrow, and what cannot be gone on with."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner

import bloomtide
from bloomtide import BloomFilter, CountingBloomFilter, HotList
from bloomtide.cli.app import app
from bloomtide.store import ExactSet
from tests.cli.command import refused, run

WAYS: tuple[list[str], ...] = ([], ["--items", "1000"], ["--exact"], ["--within", "7d"])


def dedup(*arguments: str | Path, stdin: bytes = b"") -> bytes:
    return run("dedup", *arguments, stdin=stdin).stdout_bytes


@pytest.mark.parametrize("way", WAYS)
def test_tomorrow_goes_on_where_today_ended(tmp_path: Path, way: list[str]) -> None:
    state = tmp_path / "seen"
    assert dedup("--state", state, *way, stdin=b"a\nb\na\n") == b"a\nb\n"
    assert dedup("--state", state, *way, stdin=b"b\nc\n") == b"c\n"
    assert dedup("--state", state, *way, "-v", stdin=b"b\nc\nd\n") == b"b\nc\n"


def test_a_state_is_a_filter_like_any_other(tmp_path: Path) -> None:
    state = tmp_path / "seen"
    dedup("--state", state, "--items", "1000", stdin=b"a\r\nb\n")
    loaded = bloomtide.load(state)
    assert isinstance(loaded, BloomFilter)
    assert (loaded.capacity, loaded.error_rate) == (1000, 1e-4)
    assert run("check", state, stdin=b"a\nb\nc\n").stdout == "a\nb\n"


def test_a_filter_made_by_hand_can_be_the_state(tmp_path: Path) -> None:
    state = tmp_path / "seen"
    run("new", state, "--items", "500", "--error", "1%")
    assert dedup("--state", state, stdin=b"a\na\n") == b"a\n"
    assert bloomtide.load(state).capacity == 500


def test_the_state_is_behind_a_link_and_stays_there(tmp_path: Path) -> None:
    link, state = tmp_path / "link", tmp_path / "seen"
    link.symlink_to(state)
    dedup("--state", link, stdin=b"a\n")
    assert link.is_symlink()
    assert dedup("--state", state, stdin=b"a\nb\n") == b"b\n"


@pytest.mark.parametrize("way", WAYS)
def test_a_damaged_state_is_refused_before_a_line_is_read(tmp_path: Path, way: list[str]) -> None:
    state, lines = tmp_path / "seen", tmp_path / "lines"
    dedup("--state", state, *way, stdin=b"a\n")
    good = state.read_bytes()
    flipped = good[:-20] + bytes([good[-20] ^ 1]) + good[-19:]
    for bad in (b"", b"other", good[:-1], flipped, good + b"x"):
        state.write_bytes(bad)
        # A file that is not there would be told, had it been asked for.
        assert str(lines) not in refused("dedup", "--state", state, *way, lines)
        assert state.read_bytes() == bad


def test_a_state_of_another_kind_is_refused(tmp_path: Path) -> None:
    state = tmp_path / "seen"
    for other in (CountingBloomFilter(10, 0.1), HotList(5, half_life="1h")):
        other.save(state)
        assert type(other).__name__ in refused("dedup", "--state", state, stdin=b"a\n")
    BloomFilter(10, 0.1).save(state)
    assert "--within" in refused("dedup", "--state", state, "--within", "1h", stdin=b"a\n")
    assert "--exact" in refused("dedup", "--state", state, "--exact", stdin=b"a\n")
    state.unlink()
    dedup("--state", state, "--within", "1h", stdin=b"a\n")
    assert "--within" in refused("dedup", "--state", state, stdin=b"a\n")
    assert "--within" in refused("dedup", "--state", state, "--within", "2h", stdin=b"a\n")
    state.unlink()
    dedup("--state", state, "--exact", stdin=b"a\n")
    state.with_name("seen.exact").write_bytes(b"not a set of keys, but a text " * 9)
    assert "seen.exact" in refused("dedup", "--state", state, "--exact", stdin=b"a\n")


def test_a_set_on_disk_that_lost_its_state_is_not_gone_on_with(tmp_path: Path) -> None:
    state = tmp_path / "seen"
    dedup("--state", state, "--exact", stdin=b"a\n")
    state.unlink()
    assert "seen.exact" in refused("dedup", "--state", state, "--exact", stdin=b"a\n")
    (tmp_path / "seen.exact").unlink()
    assert dedup("--state", state, "--exact", stdin=b"a\n") == b"a\n"


def test_a_state_made_for_another_size_is_refused(tmp_path: Path) -> None:
    fixed, auto = tmp_path / "fixed", tmp_path / "auto"
    dedup("--state", fixed, "--items", "1000", "--error", "1%", stdin=b"a\n")
    dedup("--state", auto, "--items", "auto", stdin=b"a\n")
    for state, option, value in (
        (fixed, "--items", "2000"),
        (fixed, "--items", "auto"),
        (fixed, "--error", "2%"),
        (auto, "--items", "1000"),
    ):
        assert option in refused("dedup", "--state", state, option, value, stdin=b"b\n")
    assert dedup("--state", fixed, "--items", "1000", stdin=b"a\nb\n") == b"b\n"
    assert dedup("--state", auto, "--items", "auto", stdin=b"a\nb\n") == b"b\n"


def test_a_state_that_cannot_be_written_is_refused_before_a_line_is_read(tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    told = refused("dedup", "--state", tmp_path / "none" / "seen", lines)
    assert str(lines) not in told


def test_nothing_is_saved_when_the_header_is_wrong(tmp_path: Path) -> None:
    state = tmp_path / "seen"
    dedup("--state", state, stdin=b"a\n")
    before = state.read_bytes()
    refused("dedup", "--state", state, "--key", "id", "--format", "csv", stdin=b"x,y\n1,2\n")
    assert state.read_bytes() == before


@pytest.mark.parametrize("way", WAYS)
def test_a_first_run_that_fails_leaves_no_state_behind(tmp_path: Path, way: list[str]) -> None:
    header = ["--key", "id", "--format", "csv"]
    refused("dedup", "--state", tmp_path / "seen", *way, *header, stdin=b"x,y\n1,2\n")
    assert list(tmp_path.iterdir()) == []


# --- The set of --exact ---------------------------------------------------------------------------


def test_a_plain_run_on_an_exact_state_is_refused_since_its_set_would_not_learn(
    tmp_path: Path,
) -> None:
    """It printed a line, and the next exact run printed it again."""
    state = tmp_path / "seen"
    dedup("--state", state, "--exact", stdin=b"a\n")
    before = state.read_bytes()
    for way in ([], ["--items", "1000"], ["--error", "1%"]):
        told = refused("dedup", "--state", state, *way, stdin=b"b\n")
        assert "seen" in told
    assert "give --exact again" in refused("dedup", "--state", state, stdin=b"b\n")
    assert state.read_bytes() == before
    assert dedup("--state", state, "--exact", stdin=b"a\nb\nb\n") == b"b\n"
    assert dedup("--state", state, "--exact", stdin=b"a\nb\n") == b""


def test_a_state_whose_set_is_gone_is_refused_by_every_run(tmp_path: Path) -> None:
    state = tmp_path / "seen"
    dedup("--state", state, "--exact", stdin=b"a\n")
    (tmp_path / "seen.exact").unlink()
    for way in ([], ["--exact"]):
        told = refused("dedup", "--state", state, *way, stdin=b"a\n")
        assert "seen.exact is gone" in told
        assert "restore it" in told
    assert not (tmp_path / "seen.exact").exists()
    state.unlink()
    assert dedup("--state", state, "--exact", stdin=b"a\n") == b"a\n"


def test_a_plain_state_is_not_begun_beside_a_set(tmp_path: Path) -> None:
    state = tmp_path / "seen"
    dedup("--state", state, "--exact", stdin=b"a\n")
    state.unlink()
    assert "seen.exact" in refused("dedup", "--state", state, stdin=b"a\n")
    assert not state.exists()


def test_an_exact_run_that_was_killed_before_its_first_line_can_be_begun_again(
    tmp_path: Path,
) -> None:
    """The set is made first: an empty one without a state has forgotten nothing."""
    state = tmp_path / "seen"
    dedup("--state", state, "--exact", stdin=b"")
    state.unlink()
    assert dedup("--state", state, "--exact", stdin=b"a\na\n") == b"a\n"


def _exact(state: Path, lines: bytes) -> bytes:
    return dedup("--state", state, "--exact", stdin=lines)


def test_the_set_of_another_state_is_refused_by_name(tmp_path: Path) -> None:
    """Repeats were printed and new lines dropped, with the exit code 0."""
    state, other = tmp_path / "seen", tmp_path / "other"
    _exact(state, b"a\nb\n")
    _exact(other, b"c\nd\n")
    own = (tmp_path / "seen.exact").read_bytes()
    (tmp_path / "seen.exact").write_bytes((tmp_path / "other.exact").read_bytes())
    told = refused("dedup", "--state", state, "--exact", stdin=b"a\nc\n")
    assert "seen.exact is the set of another state" in told
    (tmp_path / "seen.exact").write_bytes(own)
    assert _exact(state, b"a\nc\n") == b"c\n"


def test_an_emptied_set_is_refused_and_the_hint_helps(tmp_path: Path) -> None:
    """Every old line was printed again."""
    state, copies = tmp_path / "seen", tmp_path / "copies"
    exact = tmp_path / "seen.exact"
    _exact(state, b"a\nb\n")
    shutil.copytree(tmp_path, copies)

    def emptied() -> None:
        with sqlite3.connect(exact) as database:
            database.execute("DELETE FROM keys")
        database.close()

    def made_anew() -> None:
        exact.unlink()
        ExactSet(exact).close()

    for empty in (lambda: exact.write_bytes(b""), emptied, made_anew):
        empty()
        told = refused("dedup", "--state", state, "--exact", stdin=b"a\n")
        assert f"restore {state} and {exact} from copies" in told
        assert "remove both to start anew" in told
        for name in ("seen", "seen.exact"):
            shutil.copy(copies / name, tmp_path / name)
        assert _exact(state, b"a\nb\n") == b""
    state.unlink()
    exact.unlink()
    assert _exact(state, b"a\n") == b"a\n"


def test_every_flipped_bit_of_a_set_is_refused_or_changes_no_answer(tmp_path: Path) -> None:
    """SQLite takes a changed key for another one: its line was printed again."""
    state, exact = tmp_path / "seen", tmp_path / "seen.exact"
    lines = b"".join(b"https://e.example/%d\n" % number for number in range(300))
    _exact(state, lines)
    good, filter = exact.read_bytes(), state.read_bytes()
    random = Random(20240501)
    told = 0
    for _ in range(150):
        bad = bytearray(good)
        bad[random.randrange(len(bad))] ^= 1 << random.randrange(8)
        exact.write_bytes(bad)
        result = CliRunner().invoke(
            app, ["dedup", "--state", str(state), "--exact"], input=lines + b"new\n"
        )
        told += result.exit_code == 2
        if result.exit_code == 0:
            assert result.stdout == "new\n"
        else:
            assert result.stdout == ""
        state.write_bytes(filter)
        for journal in ("seen.exact-wal", "seen.exact-shm"):
            (tmp_path / journal).unlink(missing_ok=True)
    assert told > 75


def test_a_set_that_a_killed_run_left_loses_no_key_unseen(tmp_path: Path) -> None:
    """Its seal is broken: the number of keys is still known."""
    state, exact = tmp_path / "seen", tmp_path / "seen.exact"
    _exact(state, b"a\n")
    program = f"""
import os, signal
from pathlib import Path
from bloomtide import load
from bloomtide.store.sealed import SealedSet
kept = SealedSet({str(exact)!r}, load(Path({str(state)!r})).seed)
kept.add_many(b"%d" % n for n in range(100))
kept.flush()
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == -9
    assert _exact(state, b"a\n5\nb\n") == b"b\n"
    subprocess.run([sys.executable, "-c", program.replace('b"%d"', 'b"later %d"')], check=False)
    with sqlite3.connect(exact) as database:
        database.execute("DELETE FROM keys WHERE key = ?", (b"5",))
    database.close()
    told = refused("dedup", "--state", state, "--exact", stdin=b"5\n")
    assert "it has 201 keys and should have 202" in told


# --- A state that is full -------------------------------------------------------------------------


def _numbers(start: int, end: int) -> bytes:
    return b"".join(b"%d\n" % i for i in range(start, end))


def test_a_state_that_is_full_is_refused_before_a_line_is_read(tmp_path: Path) -> None:
    """It dropped most of the new lines, with the exit code 0."""
    state, lines = tmp_path / "seen", tmp_path / "lines"
    full = BloomFilter(1000, 1e-4)
    full.add_many(range(4000))
    full.save(state)
    before = state.read_bytes()
    told = refused("dedup", "--state", state, lines)
    assert "is full" in told
    assert "made for 1000" in told
    assert str(lines) not in told
    assert state.read_bytes() == before


def test_a_run_that_overfills_its_state_leaves_it_as_it_was(tmp_path: Path) -> None:
    state = tmp_path / "seen"
    dedup("--state", state, "--items", "1000", stdin=_numbers(0, 900))
    before = state.read_bytes()
    result = run("dedup", "--state", state, stdin=_numbers(0, 9000), code=2)
    assert "far too small" in result.stderr
    assert result.stdout_bytes == b""
    assert state.read_bytes() == before
    assert dedup("--state", state, stdin=_numbers(800, 1000)) == _numbers(900, 1000)


# --- States of --within ---------------------------------------------------------------------------

EVENTS = b"2024-05-01T09:00:00Z,a\n2024-05-01T12:00:00Z,b\n"


@pytest.fixture
def recent(tmp_path: Path) -> Path:
    """A state that has seen a at nine and b at twelve."""
    state = tmp_path / "seen"
    options = ["--format", "csv", "--key", "2", "--time", "1"]
    dedup("--state", state, "--within", "7d", *options, stdin=EVENTS)
    return state


def test_info_knows_a_state_that_forgets(recent: Path) -> None:
    shown = run("info", recent).stdout
    for part in ("recent", "within", "604800", "2024-05-01T12:00:00Z"):
        assert part in shown
    facts = json.loads(run("info", "--json", recent).stdout)
    assert (facts["kind"], facts["parameters"]["within"]) == ("recent", 604800.0)
    assert facts["time"] == 1_714_564_800.0
    assert round(facts["stats"]["items"]) == 2
    assert run("validate", recent).stdout.endswith(": ok, recent\n")


def test_check_asks_a_state_that_forgets_as_of_its_own_time(recent: Path) -> None:
    assert run("check", recent, stdin=b"a\nb\nc\n").stdout == "a\nb\n"
    run("check", recent, "--key", "c", code=1)
    later = ["--at", "2024-05-08T11:00:00Z"]
    assert run("check", recent, *later, stdin=b"a\nb\nc\n").stdout in ("b\n", "a\nb\n")
    run("check", recent, "--at", "2024-06-01T00:00:00Z", stdin=b"a\nb\n", code=1)
    told = refused("check", recent, "--at", "2024-05-01T10:00:00Z", "--key", "a")
    assert "2024-05-01T12:00:00Z" in told


def test_other_commands_say_what_reads_a_state_that_forgets(recent: Path) -> None:
    before = recent.read_bytes()
    for command in ("add", "remove", "count"):
        assert "dedup --within" in refused(command, recent, stdin=b"a\n")
    assert "dedup --within" in refused("merge", recent.with_name("out"), recent, recent)
    assert recent.read_bytes() == before
