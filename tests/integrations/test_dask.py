"""Dask builds what one machine builds, on a cluster of its own workers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from bloomtide import BloomFilter
from bloomtide.distributed import Recipe
from bloomtide.errors import ParameterError
from tests.distributed.recipes import EXACT, key_of, one_machine

pytest.importorskip("dask", reason="Dask is not installed")
pytest.importorskip("distributed", reason="dask.distributed is not installed")

import dask.bag
import dask.dataframe
import pandas as pd
from distributed import Client, LocalCluster

from bloomtide.integrations.dask import build, contains

NUMBERS = [n * n % 2003 for n in range(6000)]
KEYS = [key_of(n) for n in NUMBERS]
PLAN = BloomFilter.plan(10_000, 0.01)


pytestmark = pytest.mark.slow  # `make test` does not install the engines


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two worker processes on this machine."""
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as local,
        Client(local) as client,
    ):
        yield client


@pytest.mark.parametrize("name", [name for name in EXACT if not EXACT[name].fades])
def test_a_bag_makes_the_filter_of_one_machine(cluster: Any, name: str) -> None:
    bag = dask.bag.from_sequence(KEYS, npartitions=5)
    made = build(bag, EXACT[name], fan_in=2)
    assert made.to_bytes() == one_machine(EXACT[name], {"key": KEYS}).to_bytes()


def test_a_column_makes_it_too_and_can_be_asked(cluster: Any) -> None:
    frame = pd.DataFrame({"url": KEYS, "n": NUMBERS})
    parts = dask.dataframe.from_pandas(frame, npartitions=4)
    seen = build(parts["url"], PLAN)
    assert seen == one_machine(Recipe.of(PLAN), {"key": KEYS})
    low = build(parts[parts["n"] < 100]["n"], PLAN)
    found = parts[contains(parts["n"], low)].compute()
    expected = frame[low.contains_many(frame["n"].to_numpy())]
    assert found["n"].tolist() == expected["n"].tolist()
    assert 0 < len(found) < len(frame) / 5


def test_missing_keys_are_refused_or_skipped(cluster: Any) -> None:
    series = dask.dataframe.from_pandas(pd.Series(["a", None, "b"], name="k"), npartitions=1)
    with pytest.raises(ValueError, match="null"):
        build(series, PLAN)
    assert build(series, PLAN, nulls="skip") == one_machine(Recipe.of(PLAN), {"key": ["a", "b"]})


def test_what_has_no_partitions_is_refused() -> None:
    with pytest.raises(ParameterError, match="a Dask bag or series"):
        build(KEYS, PLAN)
