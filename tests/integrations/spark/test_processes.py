"""Drivers and executors as processes of their own, which are killed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bloomery import History
from tests.integrations.spark.conftest import ROOT

pytest.importorskip("pyspark", reason="PySpark is not installed")
pytestmark = [
    pytest.mark.skipif(shutil.which("java") is None, reason="Java is not installed"),
    pytest.mark.timeout(300),  # several JVMs, one after the other
]


def run(module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A program of this folder, to its end."""
    paths = os.pathsep.join([str(ROOT / "python"), str(ROOT)])
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-m", f"tests.integrations.spark.{module}", *arguments],
        cwd=ROOT, env=os.environ | {"PYTHONPATH": paths, "PYSPARK_PYTHON": sys.executable},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_two_executors_build_what_one_machine_builds_and_one_may_be_killed(tmp_path: Path) -> None:
    done = run("cluster", str(tmp_path))
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout)
    from tests.integrations.spark.cluster import PLANS

    keys = np.arange(30_000) % 10_000
    for name, plan in PLANS.items():
        made: Any = type_of(name).from_plan(plan)
        made.add_many(keys)
        assert found[name] == blake2b(made.to_bytes(), digest_size=16).hexdigest()
    assert found["killed"]
    assert found["pdcf after a kill"] == found["pdcf"]
    assert found["contained"] == 30_000


def type_of(name: str) -> Any:
    """The class of a plan of `cluster.py`."""
    from bloomery.distributed.recipe import CLASSES

    return CLASSES[name]


def test_a_stream_that_is_killed_counts_every_event_once(tmp_path: Path) -> None:
    from tests.integrations.spark.test_streaming import events, exact, write

    for number in range(4):
        write(tmp_path / "in", number, events(number))
    # Each takes a JVM: the second kill only in `make kills`.
    for kill in (("after", "1"), ("before", "2"))[: int(os.environ.get("BLOOMERY_KILLS", "1"))]:
        assert run("killed_stream", str(tmp_path), *kill).returncode == -9
    done = run("killed_stream", str(tmp_path))
    assert done.returncode == 0, done.stderr[-4000:]
    with History.open(tmp_path / "store", mode="r") as store:
        assert store.total().upper == 1200
        assert {url: store.count(url).upper for url in exact(range(4))} == exact(range(4))
        assert not store.verify().problems
