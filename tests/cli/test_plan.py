"""`bloomtide plan`."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from bloomtide import BloomFilter, CountingBloomFilter, Plan, ScalableBloomFilter, UrlFilter
from tests.cli.command import refused, run


def as_json(plan: Plan) -> dict[str, Any]:
    """The plan as it comes out of JSON."""
    told: dict[str, Any] = json.loads(json.dumps(plan.as_dict()))
    return told


def test_the_plan_is_the_librarys_plan() -> None:
    told = json.loads(run("plan", "--items", "1e9", "--error", "0.1%", "--json").stdout)["plan"]
    plan = BloomFilter.plan(10**9, 0.001)
    assert told == as_json(plan) | {"bits_per_key": plan.bits_per_key}


@pytest.mark.parametrize(
    ("options", "plan"),
    [
        (["--layout", "classic"], BloomFilter.plan(5000, 0.01, layout="classic")),
        (["--kind", "counting"], CountingBloomFilter.plan(5000, 0.01)),
        (
            ["--kind", "counting", "--layout", "classic"],
            CountingBloomFilter.plan(5000, 0.01, layout="classic"),
        ),
        (
            ["--kind", "counting", "--error", "1e-4", "--layout", "blocked"],
            CountingBloomFilter.plan(5000, 1e-4, layout="blocked"),
        ),
        (
            ["--kind", "counting", "--counter-bits", "16", "--policy", "conservative"],
            CountingBloomFilter.plan(5000, 0.01, counter_bits=16, policy="conservative"),
        ),
        (
            ["--kind", "scalable", "--growth", "4", "--tightening", "0.8"],
            ScalableBloomFilter.plan(5000, 0.01, growth=4, tightening=0.8),
        ),
        (
            ["--kind", "url", "--max-layers", "4", "--layer-sizes", "9,1k"],
            UrlFilter.plan(5000, 0.01, 4, layer_sizes=[9, 1000]),
        ),
    ],
)
def test_every_option_reaches_the_planner(options: list[str], plan: Plan) -> None:
    told = json.loads(run("plan", "--items", "5k", *options, "--json").stdout)["plan"]
    told.pop("bits_per_key")
    assert told == as_json(plan)


def test_siblings_are_compared_with_their_own_plans() -> None:
    report = json.loads(run("plan", "--items", "1M", "--error", "1%", "--json").stdout)
    rows = {row["name"]: row for row in report["alternatives"]}
    classic = BloomFilter.plan(10**6, 0.01, layout="classic")
    counting = CountingBloomFilter.plan(10**6, 0.01, counter_bits=8)
    for layout in ("blocked", "classic"):
        row = rows[f"CountingBloomFilter, 4 bits, {layout}"]
        assert row["bytes"] == CountingBloomFilter.plan(10**6, 0.01, layout=layout).bytes
    assert rows["BloomFilter, classic"]["bytes"] == classic.bytes
    assert rows["BloomFilter, classic"]["predicted_error"] == classic.predicted_error
    assert rows["CountingBloomFilter, 8 bits"]["bytes"] == counting.bytes
    chosen = report["plan"]["bytes"]
    assert all(row["ratio"] == row["bytes"] / chosen for row in rows.values())


def test_the_set_estimate_is_near_a_real_set() -> None:
    report = json.loads(run("plan", "--items", "100k", "--json").stdout)
    estimate = report["alternatives"][-1]
    assert "estimate" in estimate["name"]
    urls = {f"{number:057d}" for number in range(100_000)}
    assert estimate["bytes"] == sys.getsizeof(urls) + sum(map(sys.getsizeof, urls))


def test_the_table_names_the_numbers_that_matter() -> None:
    shown = run("plan", "--items", "1e9", "--error", "0.001").stdout
    plan = BloomFilter.plan(10**9, 0.001)
    assert f"{plan.bytes:,} bytes" in shown
    assert f"{plan.cells:,}" in shown
    for words in ("blocked", "bits per key", "at capacity", "twice the keys", "set of str"):
        assert words in shown


@pytest.mark.parametrize(("rate", "layout"), [("1%", "blocked"), ("0.1%", "classic")])
def test_the_table_shows_where_the_counters_lie(rate: str, layout: str) -> None:
    shown = run("plan", "--items", "1M", "--error", rate, "--kind", "counting").stdout
    assert f"{layout}, plain" in shown


@pytest.mark.parametrize(
    ("arguments", "blame"),
    [
        ([], "--items"),
        (["--items", "0"], "--items"),
        (["--items", "many"], "many"),
        (["--items", "5", "--error", "2"], "--error"),
        (["--items", "5", "--error", "nan"], "--error"),
        (["--items", "5", "--kind", "magic"], "magic"),
        (["--items", "5", "--layout", "classic", "--kind", "scalable"], "bloom or counting or sbf"),
        (["--items", "5", "--layout", "striped", "--kind", "counting"], "striped"),
        (["--items", "5", "--counter-bits", "8"], "--kind counting"),
        (["--items", "5", "--counter-bits", "5", "--kind", "counting"], "counter_bits"),
        (["--items", "5", "--growth", "nan", "--kind", "scalable"], "growth"),
        (["--items", "5", "--total", "4"], "total"),
        (["--items", "5", "--total", "50", "--kind", "counting"], "--kind sbf"),
        (["--items", "5", "--skew", "-1"], "--skew"),
        (["--items", "5", "--skew", "nan"], "skew"),
        (["--items", "5", "--kind", "sbf", "--shrink", "1"], "--kind dcf or pdcf"),
        (["--items", "5", "--kind", "dcf", "--partitions", "2"], "--kind psbf or pdcf"),
        (["--items", "5", "--kind", "pdcf", "--partitions", "some"], "some"),
        (["--items", "5", "--kind", "dcf", "--policy", "recurring_minimum"], "policy"),
        (["--items", "5", "--nonsense"], "--nonsense"),
        (["--items", "5", "stray"], "stray"),
    ],
)
def test_a_wrong_argument_is_named(arguments: list[str], blame: str) -> None:
    assert blame in refused("plan", *arguments)
