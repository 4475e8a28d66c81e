"""Numbers as people write and read them."""

from __future__ import annotations

import math

import click
import pytest

from bloomtide.cli.quantities import (
    parse_error_rate,
    parse_items,
    parse_partitions,
    show_bytes,
    show_count,
    show_rate,
    show_seconds,
)


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("1", 1),
        ("1000000", 10**6),
        ("1_000_000", 10**6),
        ("1e9", 10**9),
        ("1E9", 10**9),
        ("10M", 10**7),
        ("10m", 10**7),
        ("1.5k", 1500),
        ("2.5e3", 2500),
        ("3B", 3 * 10**9),
        ("3G", 3 * 10**9),
        ("1T", 10**12),
        (" 7 ", 7),
        ("9223372036854775807", 2**63 - 1),
    ],
)
def test_items_are_read_in_every_usual_form(text: str, items: int) -> None:
    assert parse_items(text) == items


@pytest.mark.parametrize(
    "text",
    ["", "M", "x", "1.5", "0", "-1", "0.1k1", "nan", "inf", "-inf", "1e", "1KB", "1e19",
     "9223372036854775808", "1e999999999", "1e99999999999999999999", "9e999999T", "1e-999999999"],
)  # fmt: skip
def test_what_is_no_number_of_keys_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter):
        parse_items(text)


@pytest.mark.parametrize(
    ("text", "rate"), [("0.01", 0.01), ("1%", 0.01), ("0.1 %", 0.001), ("1e-6", 1e-6), (".5", 0.5)]
)
def test_error_rates_are_read_as_share_or_percent(text: str, rate: float) -> None:
    assert parse_error_rate(text) == rate


@pytest.mark.parametrize(
    "text", ["", "%", "0", "1", "100%", "-0.1", "2", "nan", "inf", "x", "1e-999"]
)
def test_what_is_no_rate_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter):
        parse_error_rate(text)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.00 kB"),
        (1_250_000_000, "1.25 GB"),
        (999_999, "1.00 MB"),
        (148 * 10**9, "148 GB"),
    ],
)
def test_bytes_are_shown_with_three_digits(count: int, text: str) -> None:
    assert show_bytes(count) == text


def test_rates_are_shown_as_percent_until_they_are_tiny() -> None:
    assert show_rate(0.01) == "1.00 %"
    assert show_rate(0.000012) == "0.00120 %"
    assert show_rate(2.5e-7) == "2.50e-07"
    assert show_rate(0.0) == "0 %"
    assert show_rate(None) == "-"


def test_counts_are_grouped_and_infinity_is_a_word() -> None:
    assert show_count(1234567.4) == "1,234,567"
    assert show_count(math.inf) == "infinite"
    assert show_count(None) == "-"


def test_partitions_are_a_number_or_a_word() -> None:
    assert [parse_partitions(text) for text in ("auto", "1k")] == ["auto", 1000]
    for text in ("0", "Auto", "adaptive", "", "1.5"):
        with pytest.raises(click.BadParameter):
            parse_partitions(text)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.0, "0 s"), (2.5, "2.50 s"), (0.9999, "1.00 s"), (0.0123, "12.3 ms"), (4.2e-7, "0.420 us")],
)
def test_a_pause_has_three_digits_and_a_unit(seconds: float, shown: str) -> None:
    assert show_seconds(seconds) == shown
