"""`canonical_url(sort_query=True)` beside `w3lib.url.canonicalize_url`, which Scrapy uses.

The inputs are those of w3lib's own tests, and more; w3lib itself says what it expects. Both agree,
or the difference stands in the documentation with both answers: no other difference is allowed, and
none that is documented may have gone.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bloomtide import canonical_url
from bloomtide.errors import ParameterError
from tests.urls.test_canonical_url import table

w3lib_url = pytest.importorskip("w3lib.url")

SITE = "http://www.example.com"

OWN_CASES: list[str | bytes] = [
    *("http://www.example.com/", SITE, b"http://www.example.com"),
    *(f"{SITE}/do?a=1&b=2&c=3", f"{SITE}/do?c=1&b=2&a=3", f"{SITE}/do?&a=1"),
    *(f"{SITE}:8888/do?a=1&b=2&c=3", f"{SITE}:/do?a=1&b=2&c=3", f"{SITE}/do?c=3&b=5&b=2&a=50"),
    *(f"{SITE}/do?b=&a=2", f"{SITE}/do?b=&c&a=2", f"{SITE}/do?1750,4"),
    *(f"{SITE}/do?q=a space&a=1", f"{SITE}/do?q=a+space&a=1", f"{SITE}/do?q=a%20space&a=1"),
    *(f"{SITE}/résumé", f"{SITE}/résumé?q=résumé", f"{SITE}/résumé?currency=€"),
    f"{SITE}/résumé?country=Россия",
    *("http://exa\tmple.com/a\r\nb?q=a\tb", b"http://exa\tmple.com/a\r\nb?q=a\tb"),
    *(f"{SITE}/r%c3%a9sum%c3%a9", f"{SITE}/a%a3do", f"{SITE}/a%a3do?q=r%c3%a9sum%c3%a9"),
    *(f"{SITE}/a%a3do?q=r%e9sum%e9", "https://example.com/a%23b%2cc#bash"),
    *(f"{SITE}/do?k=b%a3", f"{SITE}/do?k=r%c3%a9sum%c3%a9"),
    *(f"{SITE}/a do?a=1", f"{SITE}/a %20do?a=1", f"{SITE}/a do£.html?a=1"),
    b"http://www.example.com/a do\xc2\xa3.html?a=1",
    f"{SITE}/do?price=£500&a=5&z=3",
    b"http://www.example.com/do?price=\xc2\xa3500&a=5&z=3",
    b"http://www.example.com/do?price(\xc2\xa3)=500&a=1",
    *("http://user:pass@www.example.com:81/do?now=1", "http://[::1]/do?a=1#frag"),
    "http://user:pass@www.example.com/do?a=1#frag",
    *("a#frag", "a?b=1#frag", "?b=1"),
    "http://www.simplybedrooms.com/White-Bedroom-Furniture/Bedroom-Mirror:-Josephine-Mirror.html",
    *(f"{SITE}/caf%E9-con-leche.htm", f"{SITE}/caf%e9-con-leche.htm"),
    *("http://www.EXAMPLE.com/", "sftp://UsEr:PaSsWoRd@www.EXAMPLE.com/"),
    *("http://www.bücher.de?q=bücher", "http://www.bücher.de:8080/?q=bücher"),
    "http://はじめよう.みんな/?query=サ&maxResults=5",
    *("http://user@例え.jp/path", "http://user:pass@例え.jp:8080/p"),
    *("http://foo.com/AC%2FDC+rocks%3f/?yeah=1", "http://foo.com/AC%2FDC/"),
    *(f"{SITE}/path;params?x=1#frag", f"{SITE}/a;b/c;params?x=1", f"{SITE}/a;b/c"),
    *(f"{SITE}/abc/def?x=1", f"{SITE}/dir;x/a%7Eb", f"{SITE}/public;/../admin/secret"),
    *("http://.éxamplé.com/", f"http://{'é' * 60}.com/"),
    *(f"{SITE}/path/to/%23/foo/bar", f"{SITE}/path/to/%23/foo/bar#frag"),
    f"{SITE}/path/to/%23/foo/bar?url=http%3A%2F%2Fwww.example.com%2F%2Fpath%2Fto%2F%23%2Fbar#frag",
    *(" https://example.com", "https://example.com ", " https://example.com "),
    *("http://[::0:1]/a/../b", "http://[2001:DB8:0:0::1]:8080/"),
]
"""What w3lib tests itself with, as far as it has no option that we lack."""

MORE_CASES: list[str | bytes] = [
    *(
        "HTTP://h/a",
        "http://h/a/./b/../../c/",
        "http://h/..",
        "http://h/a/%2e%2E/b",
        "http://h//a//",
    ),
    *("http://h?", "http://h/?", "http://h/?&&", "http://h/#", "http://h?a#b?c", "http://h/?a=b=c"),
    *("http://h/?a=1&a=1", "http://h/?a=%26&b=%3D", "http://h/?%7ea=%41", "http://h/?a=b/c?d:e@f"),
    *(
        "http://h/?a;b=1",
        "http://h/?b=é&b=z",
        "http://h/a+b",
        "http://h/(a)!$&'*,=:@~",
        "http://h/a:b",
    ),
    *(
        "http://h./",
        "http://a_b.c/",
        "http://h:8080",
        "http://127.0.0.1/",
        "http://xn--bcher-kva.de/",
    ),
    *(
        "ftp://h/a",
        "git+ssh://git@github.com/a",
        "https://h/ä;b",
        "http://h/a%00b",
        "http://h/%F0%9F",
    ),
    b"http://h/caf\xe9?q=\xff",
]


def ours(url: str | bytes, *, keep_fragment: bool) -> str:
    try:
        return canonical_url(url, sort_query=True, keep_fragment=keep_fragment)
    except ParameterError:
        return "refused"


def shown(url: str | bytes) -> str:
    """As the page writes it."""
    return repr(url)[1:-1] if isinstance(url, str) else repr(url)


PATHS = st.lists(st.sampled_from(["/", ".", "..", "a", "B.html", "~", ":", "é", " ", "%c3"]))
QUERIES = st.lists(
    st.sampled_from(["&", "=", "+", " ", "%20", "a", "b", "B", "/", "?", "é", "%2f"])
)


@given(PATHS.map("".join), QUERIES.map("".join))
def test_both_agree_on_ordinary_urls(path: str, query: str) -> None:
    url = f"https://www.Example.org:8080/{path}?{query}"
    assert ours(url, keep_fragment=False) == w3lib_url.canonicalize_url(url)


DIFFERENCES = {written: (mine, other) for _, written, mine, other in table("Beside w3lib")}


def written(url: str) -> str | bytes:
    """The input behind a cell of the page."""
    if url.startswith("b'"):
        return bytes(eval(url))
    return str(eval(f'"{url}"'))


@pytest.mark.parametrize("keep_fragment", [False, True])
@pytest.mark.parametrize("url", [*OWN_CASES, *MORE_CASES], ids=shown)
def test_both_agree_or_the_page_says_so(url: str | bytes, keep_fragment: bool) -> None:
    mine = ours(url, keep_fragment=keep_fragment)
    other = w3lib_url.canonicalize_url(url, keep_fragments=keep_fragment)
    if mine != other:
        assert shown(url) in DIFFERENCES


@pytest.mark.parametrize("url", DIFFERENCES)
def test_a_difference_of_the_page_is_one(url: str) -> None:
    found = ours(written(url), keep_fragment=False)
    other = w3lib_url.canonicalize_url(written(url))
    assert (found, other) == DIFFERENCES[url]
    assert found != other
