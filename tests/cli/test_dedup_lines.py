"""`Dedup` alone, against a plain set of the keys: chunks, files, columns, and keyless lines."""

from __future__ import annotations

from itertools import combinations_with_replacement
from typing import Any

import pytest

from bloomtide import BloomFilter, Dedup
from bloomtide.errors import ParameterError

TEXT = b"b\na\r\n\nb\r\na\nc\0d\n\xff\xfe\n\n\xff\xfe\nlast"
QUOTED = b'id,text\r\n1,"a""b,\n"\n2,x\n1,y\n"2","z'
Tally = tuple[int, int, int, int]


def kept(files: list[list[bytes]], invert: bool = False, **words: Any) -> tuple[bytes, Tally]:
    """What a filter keeps of these files, each in its chunks."""
    reader = Dedup(BloomFilter(10_000, 1e-9), invert=invert, **words)
    out = b"".join(b"".join(map(reader.feed, chunks)) + reader.finish() for chunks in files)
    return out, reader.tally


def kept_elsewhere(files: list[list[bytes]], **words: Any) -> tuple[bytes, Tally]:
    """The same by a set, which gives its verdicts through `take` and `keep`."""
    reader, seen, out = Dedup(**words), set(), b""
    for chunk in (chunk for chunks in files for chunk in [*chunks, None]):
        head, keys, _ = reader.take(chunk) if chunk is not None else reader.take()
        new = []
        for key in keys:
            new.append(key not in seen)
            seen.add(key)
        out += head + reader.keep(new)
    return out, reader.tally


def test_lines_are_kept_when_their_bytes_without_the_line_end_are_new() -> None:
    assert kept([[TEXT]]) == (b"b\na\r\n\nc\0d\n\xff\xfe\nlast\n", (10, 6, 4, 0))
    assert kept([[TEXT]], invert=True)[0] == b"b\r\na\n\n\xff\xfe\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (TEXT, {}),
        (QUOTED, {"format": "csv", "key": "id"}),
        (QUOTED, {"format": "csv", "key": "2"}),
        (TEXT, {"format": "tsv", "key": "1"}),
    ],
)
def test_borders_of_chunks_change_nothing(text: bytes, words: dict[str, Any]) -> None:
    whole = kept([[text]], **words)
    assert kept_elsewhere([[text]], **words) == whole
    for first, second in combinations_with_replacement(range(len(text) + 1), 2):
        chunks = [text[:first], text[first:second], text[second:]]
        assert kept([chunks], **words) == whole, (first, second)
        assert kept_elsewhere([chunks], **words) == whole, (first, second)


def test_a_last_line_without_end_does_not_stick_to_the_next_file() -> None:
    assert kept([[b"a\nb"], [b""], [b"b\nc"]])[0] == b"a\nb\nc\n"


def test_a_quote_that_is_never_closed_loses_nothing() -> None:
    files = [[b'a,1\n"b,2\n', b"c"], [b'"b,2\nc']]
    expected = b'a,1\n"b,2\nc\n', (3, 2, 1, 0)
    assert kept(files, format="csv", key="1") == expected
    assert kept_elsewhere(files, format="csv", key="1") == expected


def test_each_file_has_its_header_and_the_first_is_kept() -> None:
    files = [[b"id,a\n1,x\n2,x\n"], [b""], [b'\xef\xbb\xbfa,"id"\r\nx,1\nx,3\n']]
    assert kept(files, format="csv", key="id")[0] == b"id,a\n1,x\n2,x\nx,3\n"
    assert kept(files, invert=True, format="csv", key="id")[0] == b"id,a\nx,1\n"
    with pytest.raises(ParameterError, match="a,b"):
        kept([[b"a,b\n1,2\n"]], format="csv", key="id")


def test_a_line_without_a_key_is_never_dropped() -> None:
    text = b"""{"user":{"id":"a"}}
{"user.id":"\\u0061"}
not json
not json
{"user":{"id":null}}
{"user":{"id":null}}
{"user":{"id":[1, 2]}}
{"user":{"id":[1, 3]}}
{"user":{"id":[1, 2]}}
"""
    out, tally = kept([[text]], format="json", key="user.id")
    assert (tally, out.count(b"\n")) == ((9, 3, 2, 4), 7)
    assert kept([[text]], invert=True, format="json", key="user.id")[1] == tally
    short = b"a,b\na,b\n1,2,3\n1,2,3\n"
    assert kept([[short]], format="csv", key="3")[0] == b"a,b\na,b\n1,2,3\n"


def test_a_url_is_the_same_in_every_spelling_and_what_is_none_passes() -> None:
    text = b"http://a.example\nHTTP://A.example:80/\nnot a url\nnot a url\n\nhttp://a.example/b\n"
    expected = b"http://a.example\nnot a url\nnot a url\n\nhttp://a.example/b\n"
    assert kept([[text]], url=True) == (expected, (6, 2, 1, 3))


def test_times_come_with_their_keys_and_each_key_needs_a_verdict() -> None:
    reader = Dedup(format="csv", key="2", time="1")
    _, keys, times = reader.take(b'1700000000,a\n"2023-11-14T22:13:21Z",b\nnever,c\n')
    assert (keys, times) == ([b"a", b"b", b"c"], [1.7e9, 1_700_000_001.0, None])
    with pytest.raises(ParameterError, match="`new`"):
        reader.keep([True])
    assert reader.keep([True, False, True]).count(b"\n") == 2


def test_counts_stand_before_the_lines() -> None:
    reader = Dedup(format="csv", key="2")
    reader.take(b"1,a\n2,b\nnone\n3,a\r\n4,c")
    with pytest.raises(ParameterError, match="`new`"):
        reader.keep([True, True, False], [2, 1])
    assert reader.keep([True, True, False], [2, 1, 2]) == b"2\t1,a\n1\t2,b\n1\tnone\n"


def test_a_line_without_end_is_refused_before_it_fills_the_memory() -> None:
    reader, chunk = Dedup(BloomFilter(100, 0.01)), b"x" * 2**24
    for _ in range(4):
        assert reader.feed(chunk) == b""
    with pytest.raises(ParameterError, match="`line`"):
        reader.feed(b"x")
