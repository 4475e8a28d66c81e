"""What of `make spark` needs no Spark: rates of one core, for `bloomtide plan --cluster`."""

from __future__ import annotations

import os

import pytest

pytest.importorskip("pyspark", reason="the steps of `make spark` import PySpark")

from benchmarks.spark.measure import Watch, family
from benchmarks.spark.step import KINDS, run_rates

pytestmark = pytest.mark.spark  # it is installed for `make test-all`


def test_the_rates_of_a_core_are_measured() -> None:
    rates = run_rates(20_000)
    merges = {f"{kind}_merge_bytes" for kind in KINDS}
    assert {name.rpartition("_per_")[0] for name in rates} == merges | {
        "large_keys", "long_keys", "url_keys", "merge_bytes",
    }  # fmt: skip
    assert min(rates.values()) > 10_000


def test_a_process_counts_itself() -> None:
    assert family()[os.getpid()] == "driver"
    watch = Watch()
    run_rates(200_000)
    assert watch.cpu()["driver"] > 0
    assert watch.peak > 1 << 20
