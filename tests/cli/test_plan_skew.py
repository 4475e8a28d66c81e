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
        "counting", "sbf", "psbf", "dcf", "pdcf",
    ]  # fmt: skip
    plan = DynamicCountFilter.plan(2000, 0.05, total=40_000, skew=1.2)
    assert rows_of(report)["DynamicCountFilter"]["planned_bytes"] == plan.bytes
    assert report["plan"]["kind"] == "pdcf"


def test_a_hot_key_widens_all_of_a_whole_filter_and_little_of_a_partitioned_one() -> None:
    rows = rows_of(planned("--items", "20k", "--total", "200k", "--skew", "1.1"))
    whole, cut = (
        rows[name]["measured_bytes"]
        for name in ("DynamicCountFilter", "PartitionedDynamicCountFilter")
    )
    assert cut < 0.65 * whole


def test_plans_say_what_is_measured_and_the_papers_models_are_near_it() -> None:
    rows = rows_of(planned("--items", "50k", "--total", "500k", "--skew", "1"))
    for row in rows.values():
        assert row["planned_bytes"] == pytest.approx(row["measured_bytes"], rel=0.05)
    row = rows["DynamicCountFilter"]
    assert row["model_bytes"] == pytest.approx(row["measured_bytes"], rel=0.06)
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
        "--items", "1k", "--total", "1e5", "--kind", "pdcf", "--partitions", "auto",
        "--layout", "classic", "--hashes", "3", "--counter-bits", "6", "--shrink", "0.25",
    )["plan"]  # fmt: skip
    told.pop("bits_per_key")
    wanted = PartitionedDynamicCountFilter.plan(
        1000, 0.05, total=10**5, partitions="auto", layout="classic", hashes=3,
        counter_bits=6, shrink=0.25,
    )  # fmt: skip
    assert told == json.loads(json.dumps(wanted.as_dict()))


def test_the_number_of_partitions_is_told_once() -> None:
    for cut in (("--partitions", "7"), ("--partitions", "auto"), ()):
        report = planned("--items", "5k", "--total", "50k", "--skew", ".5", *cut)
        rows = rows_of(report)
        wanted = report["plan"]["partitions"]
        assert rows["PartitionedDynamicCountFilter"]["partitions"] == wanted
        assert rows["DynamicCountFilter"]["partitions"] == 1
        if cut == ("--partitions", "7"):
            assert rows["PartitionedSpectralBloomFilter"]["partitions"] == wanted == 7


def test_the_row_of_the_chosen_kind_is_the_plan() -> None:
    more = ("--kind", "dcf", "--counter-bits", "9", "--layout", "classic", "--skew", "0.7")
    report = planned("--items", "5k", "--total", "50k", *more)
    row = rows_of(report)["DynamicCountFilter"]
    assert row["planned_bytes"] == report["plan"]["bytes"]
    assert report["plan"]["counter_bits"] == 9
    assert report["plan"]["skew"] == 0.7


def test_the_table_says_what_each_number_is() -> None:
    shown = run("plan", "--items", "1k", "--total", "10k").stdout
    for words in ("the hottest", "partitions", "planned", "measured", "never more than"):
        assert words in shown
