"""Drivers and executors as processes of their own, which are killed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bloomtide import History
from tests.distributed.recipes import BOUNDS, EXACT, columns, exactly, one_machine
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


KILLS = int(os.environ.get("BLOOMTIDE_KILLS", "1"))
"""How often something is killed: each takes a JVM, so more only in `make kills`."""


def test_two_executors_build_what_one_machine_builds_and_one_may_be_killed(tmp_path: Path) -> None:
    from tests.integrations.spark import cluster

    killed = ["pdcf", "tbf-optimized", "bloom"][:KILLS]
    done = run("cluster", str(tmp_path), *killed)
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["exact"].keys() == EXACT.keys()
    for name, recipe in EXACT.items():
        expected = one_machine(recipe, columns(recipe, cluster.NUMBERS))
        assert found["exact"][name] == cluster.digest(expected), name
    assert found["killed"] == {name: found["exact"][name] for name in killed}
    assert found["files"] == found["exact"]["bloom"]
    assert found["contained"] == len(cluster.NUMBERS)
    for name, recipe in BOUNDS.items():
        truth = exactly(recipe, columns(recipe, cluster.NUMBERS))
        for key, (count, saturated) in zip(cluster.ASKED, found["bounds"][name], strict=True):
            assert count >= truth[key] * (1 - 1e-9) or saturated, name
        assert sum(count for count, _ in found["bounds"][name]) < 1.5 * sum(truth.values())
    for name, recipe in cluster.HOT.items():
        truth = exactly(recipe, columns(recipe, cluster.HOT_NUMBERS))
        told = {key: (count, lower) for key, count, lower in found["hot"][name]}
        for key, (count, lower) in told.items():
            assert lower * (1 - 1e-9) <= truth[key] <= count * (1 + 1e-9), name
        hottest = sum(truth.values()) / (recipe.k or 0)
        assert {key for key in truth if truth[key] > hottest} <= told.keys()
    assert {key: count for key, count, _ in found["hot"]["with room"]} == exactly(
        cluster.HOT["with room"], columns(cluster.HOT["with room"], cluster.HOT_NUMBERS)
    )


def test_a_stream_that_is_killed_counts_every_event_once(tmp_path: Path) -> None:
    from tests.integrations.spark.test_streaming import events, exact, write

    for number in range(4):
        write(tmp_path / "in", number, events(number))
    for kill in (("after", "1"), ("before", "2"))[:KILLS]:
        assert run("killed_stream", str(tmp_path), *kill).returncode == -9
    done = run("killed_stream", str(tmp_path))
    assert done.returncode == 0, done.stderr[-4000:]
    with History.open(tmp_path / "store", mode="r") as store:
        assert store.total().upper == 1200
        assert {url: store.count(url).upper for url in exact(range(4))} == exact(range(4))
        assert not store.verify().problems
