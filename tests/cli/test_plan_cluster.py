"""`bloomtide plan --cluster`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bloomtide import BloomFilter, PartitionedDynamicCountFilter
from bloomtide.cli.cluster import SHARD, VALUE, Rates, forecast
from bloomtide.distributed.partial import LIMIT
from tests.cli.command import refused, run


def rows(*options: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(run("plan", *options, "--json").stdout)["rows"]
    return found


def test_the_table_goes_from_a_billion_to_a_million_million_keys() -> None:
    found = rows("--cluster", "64", "--error", "1%")
    assert [row["keys"] for row in found] == [10**9, 10**10, 10**11, 10**12]
    assert [row["bytes"] for row in found] == [
        BloomFilter.plan(r["keys"], 0.01).bytes for r in found
    ]
    shown = run("plan", "--cluster", "64").stdout
    assert "a build on 64 cores" in shown
    assert "M keys/s" in shown


def test_small_filters_are_merged_and_large_ones_sharded() -> None:
    [small] = rows("--cluster", "8", "--items", "100M")
    assert (small["way"], small["shards"]) == ("merge", 1)
    assert small["shuffle_bytes"] == 8 * small["bytes"]
    [wide] = rows("--cluster", "1000", "--items", "100M")
    assert (wide["way"], wide["shards"]) == ("shards", 1000)
    [large] = rows("--cluster", "8", "--items", "1e11")
    assert large["way"] == "shards"
    assert (large["shards"] - 1) * SHARD < large["bytes"] <= large["shards"] * SHARD
    assert large["shuffle_bytes"] == 10**11 * Rates().key_bytes


def test_time_and_price_follow_from_the_rates() -> None:
    rates = Rates(build=9e9, rows=1e6, shuffle=1e7, merge=1e9, key_bytes=10, core_hour=0.1)
    row = forecast(BloomFilter.plan(10**10, 0.01), 100, rates)
    assert row["build_hours"] * 3600 == pytest.approx(10**10 / 1e8 + 10**11 / 1e9)
    assert row["dollars_per_billion"] == pytest.approx(row["build_hours"] * 100 * 0.1 / 10)
    twice = forecast(BloomFilter.plan(10**10, 0.01), 200, rates)
    assert twice["build_hours"] == pytest.approx(row["build_hours"] / 2)


def test_partials_that_count_merge_at_their_own_rate() -> None:
    slow, quick = Rates(build=1e12, merges={"pdcf": 1e6}), Rates(build=1e12, merges={"pdcf": 1e7})
    plan = PartitionedDynamicCountFilter.plan(10**7, 0.01)
    row = forecast(plan, 4, slow)
    assert row["way"] == "merge"
    assert row["build_hours"] == pytest.approx(10 * forecast(plan, 4, quick)["build_hours"], 1e-3)
    assert row["build_hours"] * 3600 == pytest.approx(2 * plan.bytes / 1e6, 1e-3)


def test_no_cores_are_refused() -> None:
    assert "--cluster" in refused("plan", "--cluster", "0")


def test_the_largest_value_is_that_of_the_distributed_builds() -> None:
    assert VALUE == LIMIT
