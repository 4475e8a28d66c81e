"""`bloomtide plan --total --skew`: the structures that count, for a skewed stream."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from bloomtide import DynamicCountFilter, PartitionedDynamicCountFilter
from bloomtide.cli.skew import EXACT, QUICK, Stream
from tests.cli.command import run


def planned(*options: str) -> dict[str, Any]:
    return dict(json.loads(run("plan", "--json", "--error", "5%", *options).stdout))


def rows_of(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in report["alternatives"]}


@pytest.mark.parametrize("theta", [0.0, 0.5, 1.0, 1.3])
@pytest.mark.parametrize("items", [1000, EXACT, 3 * EXACT])
def test_a_stream_is_described_without_making_it(items: int, theta: float) -> None:
    stream = Stream(items, 20 * items, theta)
    ranks = np.arange(1, items + 1, dtype=float)
    counts = stream.total * ranks**-theta / (ranks**-theta).sum()
    assert stream.shares == pytest.approx((ranks**-theta).sum(), rel=1e-6)
    assert stream.largest == round(counts[0])
    for bits in (2, 3, 5, 10, 30):
        # A key may be on the edge of its level, where rounding decides.
        assert abs(stream.keys_with(bits) - int((counts >= 2.0 ** (bits - 1)).sum())) <= 1
    assert stream.keys_with(1) == items


def test_every_structure_that_counts_has_a_row() -> None:
    report = planned("--items", "2k", "--total", "40k", "--skew", "1.2")
    assert report["stream"]["total"] == 40_000
    assert [row["kind"] for row in report["alternatives"]] == [
        "counting", "sbf", "psbf", "dcf", "pdcf", "pdcf",
    ]  # fmt: skip
    plan = DynamicCountFilter.plan(2000, 0.05, total=40_000)
    assert rows_of(report)["DynamicCountFilter"]["planned_bytes"] == plan.bytes
    assert report["plan"]["kind"] == "pdcf"


def test_a_hot_key_widens_all_of_a_whole_filter_and_little_of_a_partitioned_one() -> None:
    rows = rows_of(planned("--items", "20k", "--total", "200k", "--skew", "1.1"))
    whole, cut, split = (
        rows[name]["measured_bytes"]
        for name in (
            "DynamicCountFilter",
            "PartitionedDynamicCountFilter",
            "PartitionedDynamicCountFilter, adaptive",
        )
    )
    assert split < 0.7 * cut
    assert cut < 0.9 * whole


def test_the_models_are_near_what_is_measured() -> None:
    rows = rows_of(planned("--items", "50k", "--total", "500k", "--skew", "1"))
    for name in ("DynamicCountFilter", "PartitionedDynamicCountFilter"):
        row = rows[name]
        assert row["level_bytes"] == pytest.approx(row["measured_bytes"], rel=0.06)
    for name in ("SpectralBloomFilter", "PartitionedSpectralBloomFilter"):
        row = rows[name]
        assert row["model_bytes"] == pytest.approx(row["measured_bytes"], rel=0.25)


def test_fixed_counters_are_as_wide_as_the_hottest_key_needs() -> None:
    even = planned("--items", "1k", "--total", "4k", "--skew", "0")["alternatives"]
    assert even[0]["name"] == "CountingBloomFilter, 4 bits"
    hot = planned("--items", "1k", "--total", "4k", "--skew", "2")["alternatives"]
    assert hot[0]["name"] == "CountingBloomFilter, 16 bits"


def test_a_large_stream_is_predicted_and_not_measured() -> None:
    report = planned("--items", str(QUICK + 1), "--total", "1e9")
    assert report["stream"]["skew"] == 1.0
    for row in report["alternatives"]:
        assert row["measured_bytes"] is None
        assert row["planned_bytes"] > 0


def test_options_of_the_chosen_kind_reach_its_plan() -> None:
    told = planned(
        "--items", "1k", "--total", "1e5", "--kind", "pdcf", "--partitions", "adaptive",
        "--layout", "classic", "--hashes", "3", "--counter-bits", "6", "--shrink", "0.25",
    )["plan"]  # fmt: skip
    told.pop("bits_per_key")
    wanted = PartitionedDynamicCountFilter.plan(
        1000, 0.05, total=10**5, partitions="adaptive", layout="classic", hashes=3,
        counter_bits=6, shrink=0.25,
    )  # fmt: skip
    assert told == json.loads(json.dumps(wanted.as_dict()))


def test_the_table_says_what_each_number_is() -> None:
    shown = run("plan", "--items", "1k", "--total", "10k").stdout
    for words in ("the hottest", "partitions", "by levels", "measured", "adaptive"):
        assert words in shown
