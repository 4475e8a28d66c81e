"""`bloomtide dedup`: which lines are printed, and what is said of the rest."""

from __future__ import annotations

import gzip
import json
import re
import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from bloomtide import BloomFilter, Dedup, ScalableBloomFilter
from bloomtide.cli.dedup.memory import Size
from bloomtide.cli.sources import READS_AHEAD, ahead, expected_lines
from bloomtide.errors import ParameterError
from bloomtide.records import LineReport
from tests.cli.command import refused, run

LINES = st.lists(st.sampled_from([b"", b"a", b"a\r", b"b", b"\xff\x00", b"long" * 30, b"a b"]))


def model(text: bytes) -> tuple[bytes, bytes]:
    """What is new and what is not, by a plain set; a line is its bytes without the line end."""
    seen: set[bytes] = set()
    new, repeats = b"", b""
    for line in text.split(b"\n")[: -1 if text.endswith(b"\n") or not text else None]:
        key = line.removesuffix(b"\r")
        if key in seen:
            repeats += line + b"\n"
        else:
            new += line + b"\n"
        seen.add(key)
    return new, repeats


def dedup(*arguments: str | Path, stdin: bytes = b"") -> bytes:
    return run("dedup", *arguments, stdin=stdin).stdout_bytes


def numbers(*arguments: str | Path, stdin: bytes = b"") -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(dedup("--json", *arguments, stdin=stdin))
    return answer


# Without the command around it


@settings(max_examples=300)
@given(LINES, st.booleans(), st.lists(st.integers(0, 200), max_size=5))
def test_what_comes_out_is_what_a_set_says_wherever_the_chunks_are_cut(
    lines: list[bytes], ends: bool, cuts: list[int]
) -> None:
    text = b"\n".join(lines) + b"\n" * ends
    edges = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    for number, expected in enumerate(model(text)):
        for filter in (BloomFilter(1000, 1e-9), ScalableBloomFilter(1000, 1e-9)):
            reader = Dedup(filter, invert=bool(number))
            out = b"".join(reader.feed(text[a:b]) for a, b in pairwise(edges))
            assert out + reader.finish() == expected


def test_two_threads_and_large_chunks_change_nothing() -> None:
    text = b"".join(b"https://example.org/%d\n" % (i * 7919 % 30_011) for i in range(60_000))
    answers = []
    for threads in (1, 2):
        reader = Dedup(BloomFilter(100_000, 1e-9), threads=threads)
        answers.append(reader.feed(text) + reader.finish())
        expected = LineReport(lines=60_000, new=30_011, repeats=29_989, without_key=0)
        assert reader.report() == expected
    assert answers[0] == answers[1] == model(text)[0]


@pytest.mark.parametrize("ahead", [1, 3])
def test_lines_may_be_hashed_ahead_of_the_filter(ahead: int) -> None:
    text = b"".join(b"line %d\n" % (i * i % 997) for i in range(3000)) + b"last"
    chunks = [*(text[at : at + 700] for at in range(0, len(text), 700)), None]
    reader, waiting, out = Dedup(BloomFilter(10_000, 1e-9)), list[Any](), b""
    for chunk in chunks:
        waiting.append(reader.hash(chunk))
        if len(waiting) > ahead:
            out += reader.filter(waiting.pop(0))
    assert out + b"".join(map(reader.filter, waiting)) == model(text)[0]
    assert reader.without_key == 0


@pytest.mark.parametrize(
    "words",
    [
        {"format": "xml"},
        {"key": "a"},
        {"format": "csv", "key": "0"},
        {"format": "csv", "key": ""},
        {"threads": "x"},
        {"threads": 0},
    ],
)
def test_parameters_that_make_no_sense_are_refused(words: dict[str, object]) -> None:
    with pytest.raises(ParameterError):
        Dedup(BloomFilter(10, 0.1), **words)  # type: ignore[arg-type]


def test_a_verdict_is_needed_for_each_key() -> None:
    reader = Dedup()
    with pytest.raises(ParameterError):
        reader.feed(b"a\n")
    assert reader.take(b"a\nb\nc") == (b"", [b"a", b"b"], [None, None])
    for new in ([True], [True, True, True]):
        with pytest.raises(ParameterError):
            reader.keep(new)
    assert reader.keep([False, True]) == b"b\n"
    assert reader.take() == (b"", [b"c"], [None])
    assert reader.keep([True], [7]) == b"7\tc\n"
    with pytest.raises(ParameterError):
        Dedup("a filter")  # type: ignore[arg-type]


# The command


@given(LINES, st.booleans())
@settings(max_examples=15)
def test_every_way_to_remember_keeps_the_same_lines(lines: list[bytes], ends: bool) -> None:
    text = b"\n".join(lines) + b"\n" * ends
    for options in ([], ["--items", "1000"], ["--exact"], ["--within", "1h"]):
        for invert, expected in zip(([], ["--invert"]), model(text), strict=True):
            assert dedup(*options, *invert, stdin=text) == expected


def test_many_files_are_one_stream_packed_or_not(tmp_path: Path) -> None:
    plain, packed, zstd = (tmp_path / name for name in ("a", "b.gz", "c.zst"))
    plain.write_bytes(b"1\n2")
    packed.write_bytes(gzip.compress(b"2\n3\n"))
    zstd.write_bytes(zstandard.compress(b"3\r\n4\r\n"))
    files = (plain, packed, "-", zstd)
    assert dedup(*files, stdin=b"5\n1\n") == b"1\n2\n3\n5\n4\r\n"
    assert dedup("-v", *files, stdin=b"5\n1\n") == b"2\n1\n3\r\n"


def test_a_file_that_cannot_be_read_does_not_keep_the_others_from_it(tmp_path: Path) -> None:
    cut = tmp_path / "cut.gz"
    cut.write_bytes(gzip.compress(b"1\n" * 9)[:-4])
    result = run("dedup", tmp_path / "none", cut, "-", stdin=b"2\n1\n", code=2)
    assert result.stdout_bytes == b"1\n2\n"
    assert result.stderr.count("error: ") == 2


def test_json_has_the_numbers_and_no_lines() -> None:
    answer = numbers("--items", "1000", stdin=b"a\nb\na\n")
    assert (answer["lines"], answer["new"], answer["repeats"]) == (3, 2, 1)
    assert answer["error_rate"] == 1e-4
    assert 0 < answer["predicted_error"] < 1e-4
    assert answer["memory"] == BloomFilter.plan(1000, 1e-4).bytes


def test_stats_are_told_on_stderr() -> None:
    result = run("dedup", "--stats", stdin=b"a\nb\na\n")
    assert result.stdout == "a\nb\n"
    assert "3 lines: 2 new, 1 repeats" in result.stderr


def test_more_lines_than_items_are_told() -> None:
    text = b"".join(b"%d\n" % i for i in range(1000))
    assert "--items 700" in run("dedup", "--items", "700", stdin=text).stderr
    for enough in (["--items", "1000"], ["--items", "auto"], ["--items", "100", "--exact"]):
        result = run("dedup", *enough, stdin=text)
        assert (result.stderr, result.stdout_bytes) == ("", text)


def test_exact_drops_no_line_whatever_the_filter_thinks() -> None:
    text = b"".join(b"%d\n" % i for i in range(2000))
    filtered = dedup("--items", "1500", "--error", "0.5", stdin=text * 2)
    assert filtered.count(b"\n") < 2000
    for items in ("10", "1500"):
        exact = dedup("--items", items, "--error", "0.5", "--exact", stdin=text * 2)
        assert exact == text


LONG = b"".join(b"%060d\n" % i for i in range(100_000))
"""Six chunks of some 17 000 lines each."""


def test_far_too_few_items_end_the_run_before_new_lines_are_lost() -> None:
    """It was 93 of a hundred new lines, with the exit code 0."""
    result = run("dedup", "--items", "20k", stdin=LONG, code=2)
    assert result.stderr.startswith("error: --items 20,000 is far too small: ")
    assert "hint: " in result.stderr
    said = re.search(r": ([\d,]+) lines were filtered and written", result.stderr)
    assert said is not None
    passed = int(said[1].replace(",", ""))
    assert 20_000 < passed < 60_000
    written = result.stdout_bytes.splitlines()
    before = LONG.splitlines()[:passed]
    assert set(written) <= set(before), "whole lines, of those that it names"
    assert len(written) > 0.95 * passed, "up to there hardly one is missing"
    for enough in (["--items", "100k"], ["--items", "auto"], ["--items", "20k", "--exact"]):
        assert dedup(*enough, "--error", "1e-9", stdin=LONG) == LONG


def test_a_small_input_of_far_more_items_writes_nothing() -> None:
    text = b"".join(b"%d\n" % i for i in range(1000))
    result = run("dedup", "--items", "100", stdin=text, code=2)
    assert result.stdout_bytes == b""
    assert "0 lines were filtered" in result.stderr
    assert run("dedup", "--count", "--items", "100", stdin=text, code=2).stdout_bytes == b""


def test_urls_are_compared_by_their_canonical_form_and_printed_as_they_came() -> None:
    text = (
        b"http://a.example\nHTTP://A.EXAMPLE:80/\nhttp://a.example/x/../\n"
        b"mailto:a@b\nmailto:a@b\n\n\nno url\n\xff\xfe\n%zz\nhttp://a.example/%7eb\n"
        b"http://a.example/~b#top\n" + b"http://a.example/" + b"x" * (1 << 20) + b"\n"
    )
    result = run("dedup", "--url", stdin=text)
    kept = text.split(b"\n")
    for repeat in (kept[1], kept[2], kept[11]):
        kept.remove(repeat)
    assert result.stdout_bytes == b"\n".join(kept)
    assert "lines that are no URL, passed through: 8" in result.stderr
    assert dedup("--url", "-v", stdin=text).count(b"\n") == 3


@pytest.mark.parametrize(
    ("name", "text", "key", "expected"),
    [
        ("a.csv", "id,u\n1,x\n2,x\n1,y\n", "id", "id,u\n1,x\n2,x\n"),
        ("a.csv", "id,u\n1,x\n2,x\n1,y\n", "2", "id,u\n1,x\n1,y\n"),
        ("a.csv", '"i,d",u\n"a\n""b""",x\n2,x\n"a\n""b""",y\n', "i,d",
         '"i,d",u\n"a\n""b""",x\n2,x\n'),
        ("a.tsv", "id\tu\n1\t'x\"\n2\tx\n1\ty\n", "id", "id\tu\n1\t'x\"\n2\tx\n"),
        ("a.jsonl", '{"u": {"id": 1}}\n{"u": {"id": 2}}\n{"x": 0, "u": {"id": 1}}\n', "u.id",
         '{"u": {"id": 1}}\n{"u": {"id": 2}}\n'),
    ],
)  # fmt: skip
def test_lines_are_compared_by_a_field(
    tmp_path: Path, name: str, text: str, key: str, expected: str
) -> None:
    file = tmp_path / name
    file.write_text(text)
    assert dedup("--key", key, file).decode() == expected
    packed = tmp_path / f"{name}.gz"
    packed.write_bytes(gzip.compress(text.encode()))
    assert dedup("--key", key, "--exact", packed).decode() == expected


def test_a_field_may_be_a_url() -> None:
    text = b'{"url": "http://a.example/"}\n{"url": "http:\\/\\/A.example"}\n{"url": 5}\n{}\n'
    result = run("dedup", "--key", "url", "--url", "--format", "json", stdin=text)
    assert result.stdout_bytes.splitlines() == [text.splitlines()[row] for row in (0, 2, 3)]


def test_lines_without_the_field_pass_and_are_counted() -> None:
    text = b'{"id": 1}\nbroken {\nbroken {\n{"id": null}\n{"id": 1}\n'
    result = run("dedup", "--key", "id", "--format", "json", stdin=text)
    assert result.stdout_bytes == text[: -len(b'{"id": 1}\n')]
    assert "lines without a `id`, passed through: 3" in result.stderr
    assert numbers("--key", "id", "--format", "json", stdin=text)["without_key"] == 3


def test_a_column_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("x,y\n1,2\n")
    assert "x,y" in refused("dedup", "--key", "id", file)
    assert "--format" in refused("dedup", "--key", "id", stdin=b"a\n")


def test_lines_are_forgotten_after_a_time_of_their_own() -> None:
    hour = 3600
    rows = [(0, "a"), (hour // 2, "a"), (hour, "b"), (2 * hour, "a"), (2 * hour + 60, "b"),
            (2 * hour + 120, "a")]  # fmt: skip
    text = "".join(f"{1_700_000_000 + at},{key}\n" for at, key in rows).encode()
    options = ("--within", "1h", "--key", "2", "--time", "1", "--format", "csv")
    kept = dedup(*options, stdin=text).splitlines()
    lines = text.splitlines()
    # b came an hour and a minute later: forgetting may take an eighth of the hour longer.
    assert kept in ([lines[row] for row in rows_] for rows_ in ((0, 2, 3), (0, 2, 3, 4)))


def test_a_line_without_a_time_has_that_of_the_line_before() -> None:
    text = b"id,t\na,\nb,2023-11-14T00:00:00Z\na,\na,2023-11-14T10:00:00Z\n"
    options = ("--within", "1h", "--key", "id", "--time", "t", "--format", "csv")
    assert dedup(*options, stdin=text) == text.replace(b"\na,\na,", b"\na,")


def test_counts_stand_before_lines_in_the_order_of_their_first_sight(tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_bytes(b"b\na\nb\nb\nc")
    expected = b"3\tb\n1\ta\n1\tc\n"
    for options in ([], ["--items", "1000"]):
        assert dedup("--count", *options, file) == expected
        assert dedup("-c", *options, stdin=file.read_bytes()) == expected
    assert dedup("-c", file, "-", stdin=b"a\n") == b"3\tb\n2\ta\n1\tc\n"
    table = b"id,x\n1,a\n2,a\n1,b\n"
    counted = dedup("-c", "--key", "id", "--format", "csv", stdin=table)
    assert counted == b"count\tid,x\n2\t1,a\n1\t2,a\n"
    assert run("dedup", "-c", tmp_path / "none", file, code=2).stdout_bytes == expected


def test_counting_drops_new_lines_and_counts_too_high_for_the_share_of_the_error() -> None:
    lines = [b"https://e.example/%d" % number for number in range(20_000)]
    text = b"".join(line + b"\n" for line in lines)
    out = dedup("--count", "--items", "20k", "--error", "2%", stdin=text)
    printed = {line: int(count) for count, line in (row.split(b"\t") for row in out.splitlines())}
    assert printed.keys() < set(lines)
    assert len(lines) - len(printed) < 0.02 * len(lines)
    assert 0 < sum(count > 1 for count in printed.values()) < 0.02 * len(lines)


@pytest.mark.parametrize(
    "options",
    [
        ["--count", "--state", "x"],
        ["--count", "--invert"],
        ["--exact", "--within", "1h"],
        ["--time", "t"],
        ["--within", "soon"],
        ["--items", "0"],
        ["--items", "many"],
        ["--error", "2"],
        ["--format", "xml"],
    ],
)
def test_options_that_do_not_go_together_are_refused(options: list[str]) -> None:
    refused("dedup", *options, stdin=b"a\n")


def test_a_thread_that_reads_ahead_hands_on_its_error_and_ends_with_its_reader(
    tmp_path: Path,
) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"a\n")

    def pieces() -> Iterator[int]:
        yield from range(5)
        raise ValueError("the sixth")

    def threads() -> int:
        return sum(thread.name == READS_AHEAD for thread in threading.enumerate())

    taken: list[int] = []
    with pytest.raises(ValueError, match="the sixth"):
        taken.extend(ahead(pieces(), str(file)))
    assert (taken, threads()) == ([0, 1, 2, 3, 4], 0)
    reader = ahead(pieces(), str(file))
    assert (next(reader), threads()) == (0, 1)
    reader.close()
    assert threads() == 0


def test_empty_input_is_no_error() -> None:
    for options in ([], ["--count"], ["--exact"], ["--within", "1h"]):
        assert dedup(*options) == b""


def test_the_filter_begins_with_the_lines_that_the_files_have(tmp_path: Path) -> None:
    file, packed = tmp_path / "lines", tmp_path / "lines.gz"
    file.write_bytes(b"".join(b"%07d\n" % i for i in range(50_000)))
    packed.write_bytes(b"")
    assert expected_lines([str(file), str(file), "-", str(packed), str(tmp_path / "none")]) == 10**5
    assert Size(expected=3 << 20).flat().capacity == 3 << 20
    assert Size(expected=10).flat().capacity == Size().flat().capacity


def test_more_lines_than_the_beginning_of_a_file_promises_are_still_told_apart(
    tmp_path: Path,
) -> None:
    file = tmp_path / "lines"
    long = b"x" * (1 << 16) + b"\n"
    lines = [b"%d\n" % i for i in range(2000)]
    file.write_bytes(long + b"".join(lines * 2))
    seen = Size(expected=expected_lines([str(file)])).flat()
    assert isinstance(seen, ScalableBloomFilter)
    dedup = Dedup(seen)
    assert dedup.feed(file.read_bytes()) == long + b"".join(lines)
