"""Numbers as people write them on a command line, and as they read them in a table."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import NoReturn

import click

SUFFIXES = {"k": 10**3, "m": 10**6, "g": 10**9, "b": 10**9, "t": 10**12}
LARGEST = 2**63 - 1


def parse_items(text: str) -> int:
    """`1000000`, `1_000_000`, `1e6`, `10M` or `1.5k` as a whole number of keys."""
    digits, factor = text.strip(), 1
    if digits[-1:].lower() in SUFFIXES:
        digits, factor = digits[:-1], SUFFIXES[digits[-1:].lower()]
    try:
        value = Decimal(digits) * factor
    except ArithmeticError:
        refuse(f"{text!r} is not a number like 1000000, 1e6 or 10M")
    # Compared before it is made an int: 1e999999999 would fill the memory with digits.
    if not (value.is_finite() and 1 <= value <= LARGEST):
        refuse(f"{text} is not within 1 and {LARGEST}")
    if value != int(value):
        refuse(f"{text} is not a whole number of keys")
    return int(value)


def parse_partitions(text: str) -> int | str:
    """`auto` or a number of partitions."""
    return text if text == "auto" else parse_items(text)


def parse_layer_sizes(text: str) -> list[int] | str:
    """`uniform` or a number for each depth: `1k,10k,1M`."""
    if text == "uniform":
        return text
    return [parse_items(size) for size in text.split(",")]


def parse_error_rate(text: str) -> float:
    """`0.001`, `1e-3` or `0.1%` as a rate between 0 and 1."""
    digits, factor = text.strip(), Decimal(1)
    if digits.endswith("%"):
        digits, factor = digits[:-1].rstrip(), Decimal("0.01")
    try:
        rate = float(Decimal(digits) * factor)
    except ArithmeticError:
        refuse(f"{text!r} is not a rate like 0.01 or 1%")
    if not 0 < rate < 1:
        refuse(f"{text} is not between 0 and 1 (or 0% and 100%)")
    return rate


def parse_skew(text: str) -> float:
    """An exponent from 0, all keys alike, to 10."""
    try:
        skew = float(text)
    except ValueError:
        skew = math.nan
    if not 0 <= skew <= 10:
        refuse(f"{text!r} is not a number from 0 to 10")
    return skew


def show_count(value: float | None) -> str:
    """`12,345,678`; nothing known is a dash."""
    if value is None:
        return "-"
    return "infinite" if math.isinf(value) else f"{value:,.0f}"


def show_bytes(value: float) -> str:
    """`1.80 GB`: powers of 1000, as disks and `plan` count."""
    units = ["B", "kB", "MB", "GB", "TB", "PB"]
    while value >= 999.5 and len(units) > 1:
        value /= 1000
        units.pop(0)
    return f"{value:.0f} B" if units[0] == "B" else f"{_three_digits(value)} {units[0]}"


def show_rate(value: float | None) -> str:
    """A probability as percent with three digits, or as a power when it is tiny."""
    if value is None:
        return "-"
    return f"{value:.2e}" if 0 < value < 1e-6 else f"{_three_digits(value * 100)} %"


def show_seconds(value: float) -> str:
    """`12.3 ms`: pauses are far below a second."""
    units = ["s", "ms", "us"]
    while value and value < 0.9995 and len(units) > 1:
        value *= 1000
        units.pop(0)
    return f"{_three_digits(value)} {units[0]}"


def show_span(seconds: float | None) -> str:
    """`1.5 h`: a length of time in its largest unit; nothing known is a dash."""
    if seconds is None:
        return "-"
    units = {"d": 86_400, "h": 3600, "min": 60}
    name = next((name for name, size in units.items() if seconds >= size), "s")
    return f"{seconds / units.get(name, 1):.4g} {name}"


def refuse(text: str) -> NoReturn:
    """What was typed cannot be meant; Click adds the option's name."""
    raise click.BadParameter(text) from None


def _three_digits(value: float) -> str:
    # "#" keeps the zeros, so that a column of numbers shows one precision: 1.80, 24.0, 148.
    return f"{value:#.3g}".removesuffix(".") if value else "0"
