"""`bloomtide top` on logs that do not grow: what is counted, and what is said of the rest."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import zstandard

from bloomtide.reference.logs import formats
from bloomtide.stream import web_log
from tests.cli.access_log import START, hit
from tests.cli.command import refused, run


@pytest.fixture
def log(tmp_path: Path) -> Path:
    file = tmp_path / "access.log"
    file.write_bytes(hit("/a") * 3 + hit("/b?x") * 2 + hit("/c"))
    return file


def top(*arguments: str | Path, stdin: bytes = b"") -> dict[str, Any]:
    """The one object that `--json` writes."""
    [line] = run("top", "--json", *arguments, stdin=stdin).stdout.splitlines()
    answer: dict[str, Any] = json.loads(line)
    return answer


def counts(answer: dict[str, Any]) -> dict[str, float]:
    return {row["key"]: row["count"] for row in answer["hot"]}


def test_the_hottest_page_comes_first_in_the_table(log: Path) -> None:
    shown = run("top", log).stdout
    assert "COMBINED" in shown
    assert "6 lines" in shown
    assert shown.index("/a") < shown.index("/b?x") < shown.index("/c")
    assert "50.0 %" in shown


def test_json_has_counts_bounds_shares_and_rates(log: Path) -> None:
    answer = top(log)
    assert counts(answer) == {"/a": 3, "/b?x": 2, "/c": 1}
    first = answer["hot"][0]
    assert (first["lower"], first["share"], first["trend"]) == (3, 0.5, "flat")
    assert (answer["lines"], answer["counted"], answer["skipped"]) == (6, 6, 0)
    assert (answer["at"], answer["format"]) == (START.timestamp(), "COMBINED")


def test_empty_lines_are_in_the_number_of_lines_only(log: Path) -> None:
    answer = top(stdin=b"\n\n" + log.read_bytes() + b"\n")
    assert answer["lines"] == answer["counted"] + 3
    others = ("skipped", "without_field", "later", "ahead", "aside")
    assert [answer[name] for name in others] == [0] * 5


def test_only_as_many_as_asked_for_are_shown(log: Path) -> None:
    assert counts(top(log, "-n", "1")) == {"/a": 3}


def test_a_query_can_be_left_out(log: Path) -> None:
    assert counts(top(log, "--no-query"))["/b"] == 2


@pytest.mark.parametrize(
    ("by", "key"),
    [
        ("path", "/a"),
        ("host", "shop.example"),
        ("ip", "2001:db8::1"),
        ("status", "404"),
        ("referer", "http://news.example/"),
    ],
)
def test_any_field_can_be_counted_by(by: str, key: str) -> None:
    other = hit("/b", host="other.example")
    line = hit(
        "/a", ip="2001:db8::1", status=404, referer="http://news.example/", host="shop.example"
    )
    answer = top("--by", by, stdin=line + other + line)
    assert answer["hot"][0]["key"] == key
    assert answer["hot"][0]["count"] == 2
    assert answer["without_field"] == (by == "referer")


def test_hits_fade_by_the_time_of_the_log() -> None:
    data = hit("/old") * 8 + hit("/new", minutes=20) * 3
    assert counts(top(stdin=data)) == {"/new": 3, "/old": 2}
    assert counts(top("--half-life", "5m", stdin=data)) == {"/new": 3, "/old": 0.5}
    assert counts(top("--half-life", "never", stdin=data)) == {"/old": 8, "/new": 3}


def skewed(pages: int) -> list[str]:
    """Page n comes 300 // n times, least once, in an order that mixes them."""
    names = [f"/{page}" for page in range(1, pages + 1) for _ in range(max(1, 300 // page))]
    return [names[i * 7919 % len(names)] for i in range(len(names))]


def plain(stdin: bytes, *options: str) -> dict[str, str]:
    """The hits of each page in the table, as they are shown."""
    shown = run("top", "--half-life", "never", "--format", "bare", *options, stdin=stdin).stdout
    rows = [line.split("│")[2:4] for line in shown.splitlines() if "│" in line]
    return {page.strip(): hits.strip() for page, hits in rows}


def test_plain_counts_are_those_of_uniq_or_marked() -> None:
    """They were too high without a sign, by up to one in a hundred."""
    stream = skewed(pages=2000) + ["/late"] * 1000
    true = Counter(stream)
    data = "".join(f"{page}\n" for page in stream).encode()
    rows = plain(data, "--places", "400", "-n", "300")
    assert len(rows) == 300
    marked = {page: hits for page, hits in rows.items() if hits.startswith("≤ ")}
    assert len(marked) > 10
    assert len(rows) - len(marked) > 10
    for page, hits in rows.items():
        number = float(hits.removeprefix("≤ ").replace(",", ""))
        assert number >= true[page] if page in marked else number == true[page]
    assert 1000 < float(marked["/late"][2:].replace(",", "")) < 1010
    shown = run("top", "--places", "400", "--half-life", "never", "-n", "300", stdin=data).stdout
    assert "more different ones than --places" in shown


def test_a_place_for_every_page_makes_each_count_exact() -> None:
    stream = skewed(pages=20_000)
    true = Counter(stream)
    data = "".join(f"{page}\n" for page in stream).encode()
    options = ["--half-life", "never", "--format", "bare", "-n", "2000"]
    full = top(*options, stdin=data)
    assert any(row["lower"] < row["count"] for row in full["hot"])
    answer = top(*options, "--places", "20000", stdin=data)
    assert counts(answer) == {row["key"]: true[row["key"]] for row in answer["hot"]}
    assert all(row["lower"] == row["count"] for row in answer["hot"])
    assert "≤" not in "".join(plain(data, "--places", "20000").values())


def test_counts_that_do_not_fade_are_those_of_all_lines_whatever_their_times() -> None:
    """A line after a gap of three days was set aside, and missing."""
    data = hit("/a") * 3 + hit("/a", minutes=3 * 24 * 60) + hit("/b", minutes=10 * 24 * 60)
    answer = top("--half-life", "never", stdin=data)
    assert counts(answer) == {"/a": 4, "/b": 1}
    assert answer["total"] == 5
    assert counts(top("--half-life", "never", "--at", "2024-05-05", stdin=data)) == {"/a": 4}


def test_the_past_can_be_asked_for() -> None:
    data = hit("/old") * 8 + hit("/new", minutes=20) * 3
    answer = top("--at", "2024-05-01T14:10:00+02:00", stdin=data)
    assert counts(answer) == {"/old": 4}
    assert (answer["later"], answer["counted"]) == (3, 8)
    assert top("--at", str(START.timestamp() + 600), stdin=data) == answer


def test_arrows_tell_what_comes_up_and_what_cools() -> None:
    lines = []
    for minute in range(600):
        lines += [hit("/steady", minute) * 4]
        lines += [hit("/cools", minute) * 12] if minute < 590 else []
        lines += [hit("/comes", minute) * 40] if minute >= 590 else []
    trends = {row["key"]: row["trend"] for row in top(stdin=b"".join(lines))["hot"]}
    assert trends == {"/steady": "flat", "/cools": "down", "/comes": "up"}
    shown = run("top", stdin=b"".join(lines)).stdout
    assert "▲" in shown
    assert "▼" in shown


def test_a_rate_is_that_of_the_stream() -> None:
    data = b"".join(hit("/a", minute) * 6 for minute in range(240))
    assert top(stdin=data)["hot"][0]["per_minute"] == pytest.approx(6, rel=0.05)
    assert top("--half-life", "never", stdin=data)["hot"][0]["per_minute"] == pytest.approx(
        6, rel=0.05
    )


def test_packed_logs_stdin_and_several_files_count_together(tmp_path: Path, log: Path) -> None:
    packed = tmp_path / "old.log.gz"
    packed.write_bytes(gzip.compress(log.read_bytes()))
    other = tmp_path / "older.log.zst"
    other.write_bytes(zstandard.compress(log.read_bytes()))
    answer = top(log, packed, other, "-", stdin=hit("/a"))
    assert counts(answer) == {"/a": 10, "/b?x": 6, "/c": 3}


def test_each_file_may_have_its_own_format(tmp_path: Path, log: Path) -> None:
    squid = tmp_path / "squid.log"
    time = START.timestamp()
    squid.write_text(f"{time:.3f} 5 ::1 TCP_HIT/200 42 GET http://example.org/a - NONE/- -\n")
    answer = top(log, squid)
    assert answer["format"] == "COMBINED, SQUID"
    assert counts(answer)["http://example.org/a"] == 1


def test_json_logs_are_read_by_a_map() -> None:
    line = b'{"req": {"uri": "/a"}, "when": "2024-05-01T12:00:00Z"}\n'
    answer = top("--json-map", "path=req.uri,time=when", stdin=line * 2)
    assert counts(answer) == {"/a": 2}
    assert (answer["format"], answer["at"]) == ("JSON", START.timestamp())


def test_keys_that_are_no_text_come_as_base64() -> None:
    [row] = top(stdin=hit("/x").replace(b"/x", b"/\xff"))["hot"]
    assert row["key_base64"] == "L/8="


def test_a_cut_gzip_file_shows_what_was_in_it_and_is_an_error(tmp_path: Path, log: Path) -> None:
    # What cannot be packed well, so that the cut leaves most of it readable.
    data = b"".join(web_log(20_000))
    packed = tmp_path / "cut.log.gz"
    packed.write_bytes(gzip.compress(data)[:-1000])
    result = run("top", "--json", packed, log, code=2)
    answer = json.loads(result.stdout)
    assert 15_000 < answer["counted"] < 20_006
    assert "damaged gzip data" in result.stderr
    assert "cut.log.gz" in result.stderr


# --- lines that are not understood


def test_odd_lines_are_counted_and_shown_and_not_fatal(log: Path) -> None:
    with log.open("ab") as file:
        file.write(b"\x16\x03 what is this\n" + hit("/a")[:60] + b"\n" + hit("/a"))
    result = run("top", log, "--json")
    answer = json.loads(result.stdout)
    assert (answer["lines"], answer["counted"], answer["skipped"]) == (9, 7, 2)
    assert "lines skipped: 2" in result.stderr
    assert f"{log}, line 7: not COMBINED: \\x16\\x03 what is this" in result.stderr
    assert "line 8" in result.stderr


def test_a_log_in_another_format_says_which_line_and_what_was_tried(tmp_path: Path) -> None:
    file = tmp_path / "words.txt"
    file.write_text("\nsome words here\nand here\n")
    stderr = run("top", file, code=2).stderr
    assert f"{file}, line 2: not " in stderr
    assert all(name in stderr for name in formats())
    assert "some words here" in stderr
    assert "hint: name it with --format" in stderr


def test_a_format_that_was_named_and_is_wrong_is_told(log: Path) -> None:
    stderr = run("top", log, "--format", "squid", code=2).stderr
    assert "line 1: not SQUID" in stderr


def test_a_field_that_no_line_has_is_told(log: Path) -> None:
    result = run("top", log, "--by", "host", code=1)
    assert "lines without a host: 6" in result.stderr


def test_an_empty_log_is_no_hit() -> None:
    assert run("top", stdin=b"", code=1).stderr == ""


def test_a_wrong_name_shows_its_error_alone(tmp_path: Path) -> None:
    assert run("top", tmp_path / "missing.log", code=2).stdout == ""


@pytest.mark.parametrize(
    ("arguments", "blame"),
    [
        (["--half-life", "soon"], "half_life"),
        (["--half-life", "-5m"], "half_life"),
        (["--half-life", "0"], "half_life"),
        (["-n", "0"], "number"),
        (["--places", "9"], "places"),
        (["--places", "0", "-n", "1"], "places"),
        (["--places", "2000000000"], "places"),
        (["--refresh", "0"], "refresh"),
        (["--at", "noon"], "at"),
        (["--at", "nan"], "at"),
        (["--at", "1e9", "--follow"], "--follow"),
        (["--format", "nginx"], "combined, common"),
        (["--format", "json"], "json_map"),
        (["--json-map", "page=x"], "json_map"),
        (["--json-map", "path=x", "--format", "squid"], "json_map"),
        (["--by", "agent"], "referer"),
        (["missing.log"], "missing.log"),
        (["--follow", "missing.log"], "missing.log"),
    ],
)
def test_a_wrong_argument_is_one_error(arguments: list[str], blame: str) -> None:
    assert blame in refused("top", *arguments)
