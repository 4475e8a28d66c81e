"""UrlFilter takes a URL in canonical form, or refuses it with the reason and changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bloomtide import UrlFilter
from bloomtide.errors import KeyTypeError, NullKeyError, ParameterError

REFUSED: list[str | bytes] = [
    "",
    " ",
    "not a URL",
    "example.org/no/scheme",
    "//example.org/no/scheme",
    "/path",
    "data:text/plain,hello",
    "mailto:a@example.org",
    "http://",
    "http:///",
    "http://[::1",
    "http://exa mple.org/",
    "http://example.org:99999/",
    "http://xn--0/",
    b"http://\xff\xfe.example/",
    "http://example.org/" + "x" * (1 << 20),
    b"\x00",
]
TAKEN: list[tuple[str | bytes, str]] = [
    ("HTTP://EXAMPLE.ORG:80/a/../b", "http://example.org/b"),
    ("https://example.org", "http://example.org/"),
    ("https://b\u00fccher.example/", "https://xn--bcher-kva.example/"),
    ("http://[2001:DB8::0:1]/x", "http://[2001:db8::1]/x"),
    ("http://user:pw@example.org/", "http://user:pw@example.org/"),
    ("http://example.org/%zz", "http://example.org/%zz"),
    ("http://example.org/%7Euser", "http://example.org/~user"),
    ("http://example.org/a#part", "http://example.org/a"),
    (b"  http://example.org/blanks\n", "http://example.org/blanks"),
    ("ftp://example.org/file", "ftp://example.org/file"),
    ("http://example.org/" + "x" * 100_000, "https://example.org/" + "x" * 100_000),
]


@pytest.fixture
def filled() -> UrlFilter:
    made = UrlFilter(1000)
    made.add_many(["http://example.org/a", "http://example.org/b/c"])
    return made


@pytest.mark.parametrize("url", REFUSED, ids=lambda url: repr(url[:30]))
def test_what_is_no_url_is_refused_with_the_reason(filled: UrlFilter, url: Any) -> None:
    before = filled.to_bytes()
    calls = (filled.add, filled.__contains__, filled.positions, lambda u: filled.seen_prefix(u, 1))
    for call in calls:
        with pytest.raises(ParameterError) as caught:
            call(url)
        assert caught.value.name == "url"
        assert caught.value.allowed
        assert caught.value.hint
        assert len(str(caught.value)) < 500, "a long URL is not shown whole"
    assert filled.to_bytes() == before


@pytest.mark.parametrize(("url", "canonical"), TAKEN, ids=lambda url: repr(url[:30]))
def test_an_odd_url_is_its_canonical_form(url: Any, canonical: str) -> None:
    made = UrlFilter(1000)
    assert made.add(url)
    assert canonical in made
    assert not made.add(canonical)
    assert made.positions(url) == made.positions(canonical)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("size", [5, 8192, 8193, 100_000])
def test_a_bad_url_in_a_batch_is_named_by_its_row_and_nothing_goes_in(
    filled: UrlFilter, size: int, threads: int
) -> None:
    before = filled.to_bytes()
    urls = [f"http://example.org/{i}" for i in range(size)]
    urls[size - 2] = "bad"
    urls[size - 1] = "worse"
    batches: list[Any] = [
        urls,
        tuple(urls),
        pa.array(urls),
        pa.chunked_array([urls[:3], urls[3:]]),
        pa.array(urls).dictionary_encode(),
        np.array(urls, dtype="S"),
        np.array(urls, dtype=object),
    ]
    for batch in batches:
        for call in (filled.add_many, filled.contains_many):
            with pytest.raises(ParameterError, match=rf"keys\[{size - 2}\]") as caught:
                call(batch, threads=threads)
            assert caught.value.name == "url"
            assert caught.value.fields["index"] == size - 2
        with pytest.raises(ParameterError) as caught:
            filled.add_many(batch, threads=threads)
        assert caught.value.fields["added"] == 0
        assert filled.to_bytes() == before


def test_a_bad_row_counts_the_nulls_before_it(filled: UrlFilter) -> None:
    for batch in (
        pa.array([None, "http://a/", None, "bad"]),
        [None, "http://a/", None, "bad"],
        pa.array([None, "http://a/", None, "bad"]).dictionary_encode(),
    ):
        with pytest.raises(ParameterError) as caught:
            filled.add_many(batch, nulls="skip")
        assert caught.value.fields["index"] == 3
        assert "http://a/" not in filled


def test_an_iterator_is_taken_in_parts_and_the_error_says_what_went_in(filled: UrlFilter) -> None:
    def urls() -> Iterator[str]:
        yield from (f"http://example.org/{i}" for i in range(40_000))
        yield "bad"

    with pytest.raises(ParameterError) as caught:
        filled.add_many(urls())
    added = caught.value.fields["added"]
    assert caught.value.fields["index"] == 40_000
    assert 0 < added < 40_000
    assert f"http://example.org/{added - 1}" in filled
    expected = UrlFilter(1000)
    expected.add_many(["http://example.org/a", "http://example.org/b/c"])
    expected.add_many([f"http://example.org/{i}" for i in range(added)])
    assert filled.to_bytes() == expected.to_bytes()


def test_a_number_is_no_url(filled: UrlFilter) -> None:
    before = filled.to_bytes()
    for call in (filled.add, filled.__contains__, filled.positions, filled.seen_host):
        with pytest.raises(KeyTypeError, match="a URL must be `str` or bytes-like, got: `int`"):
            call(5)  # type: ignore[arg-type]
    for column in (np.arange(3), pa.array([1, 2]), pa.array([1, 2]).dictionary_encode()):
        with pytest.raises(ParameterError, match="URLs as text or bytes") as caught:
            filled.add_many(column)
        assert caught.value.name == "keys"
    with pytest.raises(NullKeyError):
        filled.add_many([None])
    assert filled.to_bytes() == before


@pytest.mark.parametrize("depth", [0, -1, 8, 9, 2**40, 1.5, "1", True, None])
def test_a_depth_that_no_layer_of_prefixes_has_is_refused(filled: UrlFilter, depth: Any) -> None:
    with pytest.raises(ParameterError) as caught:
        filled.seen_prefix("http://example.org/1/2/3/4/5/6/7/8/9", depth)
    assert caught.value.name == "depth"


def test_a_depth_that_the_url_does_not_have_is_refused(filled: UrlFilter) -> None:
    assert filled.seen_prefix("http://example.org/a", 2)
    with pytest.raises(ParameterError, match="the number of the URL's segments") as caught:
        filled.seen_prefix("http://example.org/a", 3)
    assert caught.value.name == "depth"
    alone = UrlFilter(10, max_layers=1)
    with pytest.raises(ParameterError, match="at least 2") as caught:
        alone.seen_host("example.org")  # the one layer holds whole URLs
    assert caught.value.name == "max_layers"


@pytest.mark.parametrize("host", ["example.org/a", "http://example.org/a", "example.org?x", "a/b"])
def test_a_host_with_anything_behind_it_is_refused(filled: UrlFilter, host: str) -> None:
    with pytest.raises(ParameterError) as caught:
        filled.seen_host(host)
    assert caught.value.name == "host"


@pytest.mark.parametrize("host", ["", " ", "exa mple.org", "http://"])
def test_what_is_no_host_is_refused(filled: UrlFilter, host: str) -> None:
    with pytest.raises(ParameterError) as caught:
        filled.seen_host(host)
    assert (caught.value.name, caught.value.got) == ("host", host)


def test_a_host_is_asked_for_in_any_spelling(filled: UrlFilter) -> None:
    for host in ("example.org", "EXAMPLE.ORG", b"example.org", "example.org:80"):
        assert filled.seen_host(host)
    assert filled.seen_host("https://example.org:443/")
    assert not filled.seen_host("example.org:8080")
    assert not filled.seen_host("www.example.org")
    filled.add("ftp://files.example/x")
    assert filled.seen_host("ftp://files.example")
    assert not filled.seen_host("files.example")
