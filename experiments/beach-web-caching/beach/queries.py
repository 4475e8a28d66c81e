"""E15, third part: how many database queries a filter in front avoids.

Customers ask for pages, a few of them for most (Zipf's law, so that one customer's false positive
may weigh as much as a thousand's); each page asks whether the customer has a basket. Expected are

    avoided = (share of pages for customers with an empty basket) (1 - false positives).

`turnover`  Baskets are emptied and others filled. Bits cannot be taken back, so emptied baskets go
            on costing a query, and every new one adds to the error, until the filter is rebuilt
            from the database; a counting filter is told of both. How many of the possible
            queries each avoids, after so many changes of all full baskets.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from beach.chance import near
from bloomtide import BloomFilter, CountingBloomFilter
from trials.outcome import Claim, Outcome, Row
from trials.streams import zipf

SEED = 2000
THETA = 0.8
"""Of the law by which customers ask for pages."""

Numbers = npt.NDArray[np.int64]


def queries(
    customers: int, views: int, empty: tuple[int, ...], rates: tuple[float, ...]
) -> Outcome:
    """For each percentage of empty baskets and each error rate."""
    random = np.random.default_rng(SEED)
    order: Numbers = random.permutation(customers)
    pages = order[zipf(random, customers, THETA, views)]
    rows = [_row(order, pages, percent, rate) for percent in empty for rate in rates]
    return Outcome(rows, list(_claims(rows)))


def _row(order: Numbers, pages: Numbers, percent: int, rate: float) -> Row:
    customers = len(order)
    full = np.random.default_rng(percent).choice(
        order, round(customers * (100 - percent) / 100), replace=False
    )
    filter = BloomFilter(len(full), rate)
    filter.add_many(full)
    has_basket = np.zeros(customers, dtype=np.bool_)
    has_basket[full] = True
    passed, needed = filter.contains_many(pages), has_basket[pages]
    empty_pages = int((~needed).sum())
    empty = np.flatnonzero(~has_basket)
    predicted = filter.stats().predicted_error
    return {
        "empty_percent": percent,
        "error_rate": rate,
        "pages": len(pages),
        "empty_pages": empty_pages,
        "avoided": int((~passed).sum()),
        "false_true": int((passed & ~needed).sum()),
        "wrong_false": int((~passed & needed).sum()),
        "avoided_share": float((~passed).mean()),
        "formula": empty_pages / len(pages) * (1 - predicted),
        "empty_customers": len(empty),
        "false_customers": int(filter.contains_many(empty).sum()),
        "predicted": predicted,
        "bytes": filter.stats().bytes,
    }


def _claims(rows: list[Row]) -> Iterator[Claim]:
    wrong = sum(row["wrong_false"] for row in rows)
    asked = sum(row["pages"] for row in rows)
    yield Claim(
        "the filter will accurately tell us if the basket is empty",
        "guaranteed",
        f"{wrong} of {asked:,} answers were empty and wrong",
        wrong == 0,
    )
    holds = [
        row
        for row in rows
        if near(row["false_customers"], row["predicted"], row["empty_customers"])
    ]
    yield Claim(
        "customers with an empty basket who are asked for all the same: the predicted error",
        "",
        f"{len(holds)} of {len(rows)} within 4 sigma",
        len(holds) == len(rows),
    )
    worst = max(rows, key=lambda row: abs(row["avoided_share"] - row["formula"]))
    off = abs(worst["avoided_share"] - worst["formula"])
    yield Claim(
        "queries avoided are the share of pages with an empty basket x (1 - error)",
        "",
        f"off by at most {off:.2%} of all pages ({worst['empty_percent']} % empty,"
        f" error {worst['error_rate']:g})",
        off <= 0.01,
    )
    for row in rows:
        if row["empty_percent"] in (50, 95, 99) and row["error_rate"] == 0.01:
            yield Claim(
                f"{row['empty_percent']} % of baskets empty, error 0.01: queries avoided",
                "",
                f"{row['avoided_share']:.1%} with {row['bytes'] / 1024:,.1f} KiB",
                row["avoided_share"] >= row["empty_percent"] / 100 - 0.05,
            )


def turnover(customers: int, full: int, rounds: int) -> Outcome:
    """In each round a quarter of the full baskets is emptied, and as many others are filled."""
    random = np.random.default_rng(SEED)
    order: Numbers = random.permutation(customers)
    first, waiting = order[:full], order[full:]
    rebuilt, bits = BloomFilter(full, 0.01), BloomFilter(full, 0.01)
    counters = CountingBloomFilter(full, 0.01)
    for filter in (rebuilt, bits, counters):
        filter.add_many(first)
    now: Numbers = first
    rows = [_shares(0, order, now, rebuilt, bits, counters)]
    part = full // 4
    for number in range(1, rounds + 1):
        leaving, now = now[:part], now[part:]
        coming, waiting = waiting[:part], np.concatenate([waiting[part:], leaving])
        now = np.concatenate([now, coming])
        bits.add_many(coming)
        counters.add_many(coming)
        for customer in leaving.tolist():
            counters.remove(customer)
        rebuilt = BloomFilter(full, 0.01)
        rebuilt.add_many(now)
        rows.append(_shares(number, order, now, rebuilt, bits, counters))
    return Outcome(rows, list(_turnover_claims(rows)))


def _shares(
    number: int,
    order: Numbers,
    now: Numbers,
    rebuilt: BloomFilter,
    bits: BloomFilter,
    counters: CountingBloomFilter,
) -> Row:
    """Of the customers with an empty basket, how many each filter calls empty."""
    empty = np.setdiff1d(order, now)
    row: Row = {"changes": number / 4, "empty": len(empty), "wrong_false": 0}
    for name, filter in (("rebuilt", rebuilt), ("bits", bits), ("counters", counters)):
        row[name] = float((~filter.contains_many(empty)).mean())
        row["wrong_false"] += int((~filter.contains_many(now)).sum())
    return row


def _turnover_claims(rows: list[Row]) -> Iterator[Claim]:
    wrong = sum(row["wrong_false"] for row in rows)
    yield Claim("baskets that come and go: a full one is called empty", "", str(wrong), wrong == 0)
    first, last = rows[0], rows[-1]
    yield Claim(
        f"bits without a rebuild avoid as much after {last['changes']:g} changes of all baskets",
        "",
        f"{last['bits']:.1%} of the possible queries, {first['bits']:.1%} before",
        last["bits"] >= first["bits"] - 0.01,
    )
    yield Claim(
        "counters that are told of emptied baskets do",
        "",
        f"{last['counters']:.1%}, and bits that were rebuilt {last['rebuilt']:.1%}",
        last["counters"] >= first["counters"] - 0.01,
    )
