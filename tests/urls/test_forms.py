"""The canonical form of odd URLs, case by case, and the segments that layers are made of."""

from __future__ import annotations

from typing import Any

import pytest

from bloomtide import UrlFilter, canonical_url
from bloomtide.errors import ParameterError

FORMS = """
HTTP://Example.ORG http://example.org/
http://example.org:80/ http://example.org/
https://example.org:443/a https://example.org/a
http://example.org:443/a http://example.org:443/a
http://example.org:08080/ http://example.org:8080/
http://h/a/./b/../c/%2e%2E/d http://h/a/d
http://h/../../a http://h/a
http://h/%7Euser/%c3%a9?q=%7e http://h/~user/%C3%A9?q=~
http://h/a\u2423b|c?d\u2423e' http://h/a%20b%7Cc?d%20e%27
http://h/a%2fb%3A?a%2fb%3A http://h/a%2Fb%3A?a%2Fb%3A
http://h/%%34%31?%zz%4 http://h/%2541?%25zz%254
http://h/100% http://h/100%25
http://h/a#b http://h/a
http://h/a?# http://h/a
http://h?a http://h/?a
http://h/a?b=1&b=1&&c=+ http://h/a?b=1&b=1&&c=+
https://example.org https://example.org/
http://example.org:8080 http://example.org:8080/
http://h\\a\\b http://h/a/b
http:h/a http://h/a
\u2423\u2423http://h/a\r http://h/a
http://ex%61mple.org/ http://example.org/
http://bücher.example/é http://xn--bcher-kva.example/%C3%A9
http://\uff10\uff387f.1/ http://127.0.0.1/
http://[2001:DB8:0::1]:80/ http://[2001:db8::1]/
http://Me:p%77@h/ http://Me:pw@h/
http://me:@h/ http://me@h/
ftp://H:21/a ftp://h/a
GIT+ssh://git@GitHub.com:22/a/../b git+ssh://git@github.com:22/b
git://GitHub.com git://github.com/
File://Host/%43:/../a file://host/a
file://host/%43|// file://host/C%7C//
"""


def rows(table: str) -> list[list[str]]:
    """The columns of each row; an open box stands for a blank."""
    found = [line.split(" ") for line in table.strip().split("\n")]
    return [[part.replace("\u2423", " ") for part in row] for row in found]


@pytest.mark.parametrize(("written", "expected"), rows(FORMS))
def test_each_address_has_one_spelling(written: str, expected: str) -> None:
    assert canonical_url(written) == expected
    assert canonical_url(expected) == expected


def test_bytes_that_are_no_text_are_encoded_where_they_may_be() -> None:
    assert canonical_url(b"http://h/caf\xe9?\xff") == "http://h/caf%E9?%FF"
    with pytest.raises(ParameterError, match="UTF-8 in its host"):
        canonical_url(b"http://caf\xe9.example/")


REFUSED = {
    "": "a URL, got: nothing",
    " \n": "a URL, got: nothing",
    "example.org/a": "an absolute URL",
    "/a/b": "an absolute URL",
    "//h/a": "an absolute URL",
    "localhost:8080/a": "a URL with a host",
    "data:text/plain,a": "a URL with a host",
    "mailto:me@example.org": "a URL with a host",
    "file:///etc/passwd": "a URL with a host",
    "http://": "a URL with a host",
    "http://h:99999/": "whose port",
    "git+ssh://git@h:me/repo": "whose port",
    "http://1.2.3.400/": "IPv4",
    "http://[::g]/": "IPv6",
    "http://a b/": "host is a valid name",
    "http://xn--a/": "host is a valid name",
    "http://h/a\tb": "free of control characters, got: http://h/a\\tb",
    "http://h/#\x1b[1m": "free of control characters, got: http://h/#\\u{1b}[1m",
    "http://h/\0": "free of control characters",
    "é" * 40: "éé... and 20 bytes more",
    "http://h/" + "a" * 2**20: "at most 1 MiB long",
    "http://h/" + " " * 2**19 + "a": "at most 1 MiB long",
}


@pytest.mark.parametrize("url", REFUSED, ids=lambda url: repr(url[:30]))
def test_what_is_no_url_is_refused_with_the_reason(url: str) -> None:
    with pytest.raises(ParameterError) as refusal:
        canonical_url(url)
    message = str(refusal.value).split("\n")[0]
    assert REFUSED[url] in message
    assert len(message) < 200


OPTIONS: dict[str, dict[str, Any]] = {
    "sorted": {"sort_query": True},
    "slash": {"trailing_slash": "drop"},
    "tracking": {"drop_tracking": True},
    "names": {"drop_tracking": ["a*b*c", "*d", "Ref[]", "a b"]},
    "sessions": {"drop_sessions": True},
    "fragment": {"keep_fragment": True},
    "all": {
        "sort_query": True,
        "trailing_slash": "drop",
        "drop_tracking": ["x*"],
        "drop_sessions": True,
        "keep_fragment": True,
    },
}
EDITED = """
sorted http://h/?b=2&a=2&a=1&&c&d=%20%2B'/ http://h/?a=1&a=2&b=2&c=&d=+%2B%27%2F
sorted http://h/?& http://h/
slash http://h/a/ http://h/a
slash http://h/a//?b http://h/a?b
slash http://h// http://h/
slash ftp://h/ ftp://h/
tracking http://h/?utm_source=a&b&UTM_x&fbclid=1&c http://h/?b&c
tracking http://h/?gclid=1#f http://h/
tracking http://h/utm_x?a=utm_x&&b http://h/utm_x?a=utm_x&&b
names http://h/?a_b_b_c=1&a_c_b&abc=2&x http://h/?a_c_b&x
names http://h/?d&ddxd&de&Dd http://h/?de
names http://h/?ref[]=1&REF%5B%5d&a+b=&a%20b=2&x=ref[] http://h/?x=ref%5B%5D
sessions http://h/a;jsessionid=1;b/c;JSESSIONID=2?d http://h/a;b/c?d
sessions http://h/(S(1))/a.aspx?sid=1&PHPSESSID=2 http://h/a.aspx
sessions http://h/(S(1)) http://h/
sessions http://h/a/..;sid=1/b http://h/a/..;sid=1/b
sessions http://me;sid=1@h/ http://me%3Bsid%3D1@h/
fragment http://h/a?b#c\u2423d/? http://h/a?b#c%20d/?
fragment http://h/a# http://h/a
all http://h/a/;sid=1/?z&xy=1&a#f http://h/a?a=&z=#f
"""


@pytest.mark.parametrize(("option", "written", "expected"), rows(EDITED))
def test_each_option_does_what_its_name_says(option: str, written: str, expected: str) -> None:
    assert canonical_url(written, **OPTIONS[option]) == expected
    assert canonical_url(expected, **OPTIONS[option]) == expected


# A URL, then one with the same prefix of that depth and one with another.
PREFIXES = """
http://h/ 1 https://h/x https://g/
https://h:8080/a/b 2 http://h:8080/a/x http://h:8080/b
https://h/a/ 3 http://h/a/ http://h/a/b
https://h/a//b 3 https://h/a//c https://h/a/b
https://h/a?to=/x/y 2 https://h/a?to=/x/y https://h/a?to=/x
https://h/?a/b 2 http://h/?a/b http://h/?a
ftp://h/a 1 ftp://h/b http://h/a
ftp://h/a?b/c 2 ftp://h/a?b/c ftp://h/a?b
https://me:pw@h/a?b/c 1 http://me:pw@h/x http://h/a
https://me:pw@h/a#b/c 2 http://me:pw@h/a http://me:pw@h/b
x://h?a/b 2 x://h?a/b x://h/a
"""


@pytest.mark.parametrize(("url", "depth", "same", "other"), rows(PREFIXES))
def test_a_url_is_its_host_and_the_parts_of_its_path(
    url: str, depth: str, same: str, other: str
) -> None:
    seen = UrlFilter(100, 1e-9)
    seen.add(url)
    assert seen.seen_prefix(same, int(depth))
    assert not seen.seen_prefix(other, int(depth))


def test_what_lies_too_deep_is_joined_into_the_last_segment() -> None:
    for layers, expected in ((1, 1), (3, 3), (4, 4), (5, 4)):
        filled = UrlFilter(100, 1e-9, max_layers=layers)
        filled.add("http://h/a/b/c?d/e")
        assert len(filled.stats().layers) == min(expected, 4)
        assert "http://h/a/b/c?d/e" in filled
        assert "http://h/a/b/c?d" not in filled
