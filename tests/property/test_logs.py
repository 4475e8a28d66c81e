"""Logs: the core reads what the plain reference reads, however the bytes are cut."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bloomtide import LogReader
from bloomtide.records import LogRecord
from bloomtide.reference import logs as reference
from tests.property.logs import lines, logs

MAP = "path=a.b|c|a,time=ts,status=status"
GOACCESS = '%h %^[%d:%t %^] "%r" %s %b "%R" "%u"'
NGINX = '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent'
SPREAD = "%v:%^ %~%h %x %U?%q %s"
PATTERNS = [GOACCESS, NGINX, SPREAD]
NAMES = [*reference.formats(), "JSON", *PATTERNS]


def read(data: bytes, cuts: list[int], name: str | None = None) -> tuple[list[LogRecord], int]:
    """All records and the number of skipped lines."""
    reader = LogReader(json_map=MAP) if name == "JSON" else LogReader(format=name)
    found = []
    for start, end in pairwise([0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]):
        found += reader.feed(data[start:end])
    found += reader.finish()
    report = reader.report()
    assert report.parsed == len(found)
    assert report.lines == data.count(b"\n") + (not data.endswith(b"\n") and data != b"")
    return found, report.skipped


def in_format(name: str) -> reference.Line:
    if name in PATTERNS:
        return reference.pattern(name)
    return reference.json_map(MAP) if name == "JSON" else reference.formats()[name]


@given(data=logs, cuts=st.lists(st.integers(0, 10_000), max_size=8))
def test_a_log_reads_like_the_reference_wherever_it_is_cut(data: bytes, cuts: list[int]) -> None:
    assert read(data, cuts) == reference.read_log(data)


@pytest.mark.parametrize("name", NAMES)
@given(data=logs)
def test_every_format_reads_like_the_reference(name: str, data: bytes) -> None:
    assert read(data, [], name) == reference.read_log(data, in_format(name))


@pytest.mark.parametrize("name", NAMES)
@given(line=lines)
def test_every_line_reads_like_the_reference(name: str, line: bytes) -> None:
    data = line + b"\n"
    if name == "W3C":
        data = b"#Fields: date time c-ip cs-uri-stem cs-uri-query sc-status\n" + data
    assert read(data, [], name) == reference.read_log(data, in_format(name))


@given(data=st.binary(max_size=300), cuts=st.lists(st.integers(0, 300), max_size=8))
def test_any_bytes_in_any_pieces_are_read_alike(data: bytes, cuts: list[int]) -> None:
    for name in (None, *NAMES):
        assert read(data, cuts, name) == read(data, [], name)
