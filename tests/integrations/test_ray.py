"""Ray builds what one machine builds, on workers of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from bloomtide import BloomFilter
from bloomtide.distributed import Recipe
from tests.distributed.recipes import EXACT, key_of, one_machine
from tests.integrations.spark.conftest import ROOT

pytest.importorskip("ray", reason="Ray is not installed")

import ray
import ray.data

from bloomtide.integrations.ray import Contains, build

pytestmark = [
    pytest.mark.slow,  # `make test` does not install the engines
    # Ray warns of its own settings, and leaves its log files to the garbage collector.
    pytest.mark.filterwarnings("ignore"),
]

NUMBERS = [n * n % 2003 for n in range(6000)]
KEYS = [key_of(n) for n in NUMBERS]
PLAN = BloomFilter.plan(10_000, 0.01)


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """Two workers on this machine."""
    environment = {"env_vars": {"PYTHONPATH": str(ROOT / "python")}}
    ray.init(
        num_cpus=2, include_dashboard=False, log_to_driver=False, runtime_env=environment,
        object_store_memory=100 << 20, configure_logging=False,
    )  # fmt: skip
    yield
    ray.shutdown()


def dataset() -> Any:
    table = pa.table({"url": KEYS, "n": NUMBERS})
    return ray.data.from_arrow([table.slice(i * 1500, 1500) for i in range(4)])


def test_blocks_make_the_filter_of_one_machine(cluster: None) -> None:
    for name in ("bloom", "counting", "pdcf", "url"):
        made = build(dataset(), "url", EXACT[name], fan_in=2)
        assert made.to_bytes() == one_machine(EXACT[name], {"key": KEYS}).to_bytes(), name


def test_batches_are_asked_and_nulls_skipped(cluster: None) -> None:
    seen = one_machine(Recipe.of(PLAN), {"key": KEYS[:50]})
    rows = pa.table({"url": [*KEYS[:100], None]})
    asked = ray.data.from_arrow(rows).map_batches(
        Contains, fn_constructor_args=("url", seen), batch_format="pyarrow", concurrency=1
    )
    answers = [row["seen"] for row in asked.take_all()]
    assert answers == [*seen.contains_many(KEYS[:100]).tolist(), False]
    assert build(ray.data.from_arrow(rows), "url", PLAN, nulls="skip") == one_machine(
        Recipe.of(PLAN), {"key": KEYS[:100]}
    )
