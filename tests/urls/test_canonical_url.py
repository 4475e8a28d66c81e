"""`canonical_url`: one spelling for each address, and one clear error for what has no address."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bloomtide import canonical_url
from bloomtide.errors import KeyTypeError, ParameterError
from tests.bad_input.refusal import refused

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "guides" / "canonical-urls.md").read_text()

ALL: dict[str, Any] = {
    "sort_query": True,
    "drop_tracking": True,
    "trailing_slash": "drop",
    "drop_sessions": True,
    "keep_fragment": True,
}


def table(heading: str) -> list[list[str]]:
    """The rows of the first table below a heading, each cell without its backticks."""
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (.*) \|$", section, flags=re.MULTILINE)
    cells = [row.replace(r"\|", "|").split(" | ") for row in rows[1:]]
    return [[cell.strip().strip("`") for cell in row] for row in cells]


def options_of(code: str) -> dict[str, Any]:
    """The keywords of `name=value, name=value`."""
    return dict(eval(f"dict({code})"))


@pytest.mark.parametrize(("rule", "written", "expected"), table("What it does"))
def test_a_rule_of_the_page_holds(rule: str, written: str, expected: str) -> None:
    assert canonical_url(written) == expected
    assert canonical_url(expected) == expected


@pytest.mark.parametrize(("code", "meaning", "written", "expected"), table("Options"))
def test_an_option_does_what_the_page_says(
    code: str, meaning: str, written: str, expected: str
) -> None:
    options = options_of(code)
    assert canonical_url(written, **options) == expected
    assert canonical_url(expected, **options) == expected
    assert canonical_url(written) != expected


@pytest.mark.parametrize(("written", "reason"), table("What it refuses"))
def test_a_refusal_of_the_page_tells_the_reason(written: str, reason: str) -> None:
    url = (
        written.encode().decode("unicode_escape").encode("latin-1") if "\\" in written else written
    )
    found = refused(ParameterError, canonical_url, url, name="url")
    assert found.allowed == reason


def test_what_has_no_end_or_no_beginning_is_refused() -> None:
    for url in ["", " \n", b"", "http://h/" + "a" * 2**20, "http://h/" + "é" * 200_000]:
        refused(ParameterError, canonical_url, url, name="url")
    assert len(canonical_url("http://h/" + "a" * (2**20 - 9))) == 2**20


def test_text_and_bytes_are_the_same_url() -> None:
    assert canonical_url("http://h/é") == canonical_url("http://h/é".encode()) == "http://h/%C3%A9"
    assert canonical_url(bytearray(b"http://h/a")) == "http://h/a"
    assert canonical_url(memoryview(b"HTTP://h/a")) == "http://h/a"


def test_a_canonical_text_is_given_back_as_it_is() -> None:
    url = "https://example.org/a/b?c=d"
    assert canonical_url(url) is url


@pytest.mark.parametrize("url", [None, 1.5, ["http://h/"], "http://h/\udcff"])
def test_what_is_no_text_is_refused_as_a_key(url: Any) -> None:
    refused(KeyTypeError, canonical_url, url)


def test_parameters_are_refused_by_name() -> None:
    def call(**options: Any) -> str:
        return canonical_url("http://h/", **options)

    refused(ParameterError, canonical_url, 17, name="url")
    for wrong in ("utm_*", 1, [1], [""]):
        with pytest.raises(ParameterError) as caught:
            call(drop_tracking=wrong)
        assert caught.value.name == "drop_tracking"
    with pytest.raises(ParameterError) as caught:
        call(trailing_slash="add")
    assert caught.value.name == "trailing_slash"


def test_own_names_take_the_place_of_the_list() -> None:
    url = "http://h/?utm_source=a&ref=b&Referer=c&d"
    assert canonical_url(url, drop_tracking=["ref*"]) == "http://h/?utm_source=a&d"
    assert canonical_url(url, drop_tracking=("REF",)) == "http://h/?utm_source=a&Referer=c&d"
    assert canonical_url(url, drop_tracking=[]) == url


@pytest.mark.parametrize(
    ("option", "constant"), [("drop_tracking", "TRACKING"), ("drop_sessions", "SESSIONS")]
)
def test_the_page_names_every_parameter_of_a_list(option: str, constant: str) -> None:
    source = (ROOT / "crates/bloomtide-core/src/url/names.rs").read_text()
    built_in = re.search(rf"{constant}: \[&str; \d+\] = \[(.*?)\];", source, flags=re.DOTALL)
    assert built_in
    names = re.findall(r'"([^"]+)"', built_in[1])
    line = re.search(rf"^`{option}` leaves out (.*)$", PAGE, flags=re.MULTILINE)
    assert line
    assert re.findall("`([^`]+)`", line[1]) == names
    for name in names:
        url = f"http://h/?a&{name.replace('*', 'x')}=1&b"
        assert canonical_url(url) == url
        assert canonical_url(url, **{option: True}) == "http://h/?a&b"  # type: ignore[arg-type]


PIECES = st.one_of(
    st.sampled_from(
        ["http://", "HTTPS://h", "//", "/./", "/../", "..", "%2e", "%7E", "%zz", ";sid=1"]
    ),
    st.sampled_from(["utm_x=1", "(S(a))", ":80", "[::1]", "1.2.3", "xn--"]),
    st.sampled_from("hA/.%?&=+#éß:@|' 𝒳\\\x00\t"),
)


@given(st.lists(PIECES, max_size=12).map("".join), st.booleans())
def test_the_form_of_the_form_is_the_form(tail: str, everything: bool) -> None:
    options = ALL if everything else {}
    for url in (tail, f"http://h/{tail}", f"git://H{tail}"):
        try:
            once = canonical_url(url, **options)
        except ParameterError:
            continue
        assert canonical_url(once, **options) == once
        assert once.isascii()
        assert once.isprintable()
        assert " " not in once


@given(st.text("abcXYZ019-._~!$()*,;:@/=&", max_size=60))
def test_harmless_characters_stay_as_they_are(path: str) -> None:
    url = f"http://example.org/a{path}"
    if "/." not in path:
        assert canonical_url(url) is url
