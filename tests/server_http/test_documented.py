"""docs/reference/http.md names every path and every metric that there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="Starlette is not installed")

from bloomtide.server.figures import figures
from bloomtide.server.http.failures import STATUS
from bloomtide.server.http.metrics import families
from bloomtide.server.http.parts import Limits, Parts
from bloomtide.server.http.routes import PATHS
from bloomtide.server.listener import Server
from bloomtide.server.settings import Settings
from tests.server_http.events import open_monitor

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "http.md").read_text()


def test_the_page_names_every_path_and_no_other() -> None:
    named = set(re.findall(r"(?<=`)(?:GET |POST )?(/[a-z][\w/.]*)", PAGE))
    assert named == {path.path for path in PATHS}


def test_the_page_names_every_metric(tmp_path: Path) -> None:
    named = set()
    for group in re.findall(r"^\| (`bloomtide_.*?) \|", PAGE, flags=re.MULTILINE):
        first, *rest = re.findall(r"`(\w+)`", group)
        base = next(
            (name for name in ("bloomtide_filter", "bloomtide_guard") if first.startswith(name)), ""
        )
        named |= {first, *(base + name if name.startswith("_") else name for name in rest)}
    with open_monitor(None) as monitor:
        parts = Parts(
            monitor=monitor, keyspace=None, token=None, limits=Limits(), ready=None, metrics=()
        )
        there = {family.name for family in families(parts)}
    own = Server(Settings(appendonly=False, dir=tmp_path))
    there |= {family.name for family in figures(own)}
    assert named == there | {"bloomtide_commands_total"}


def test_the_page_names_every_status_that_a_class_has() -> None:
    named = {int(status) for line in re.findall(r"^\| (\d[\d, ]+) \|", PAGE, flags=re.MULTILINE)
             for status in line.split(", ")}  # fmt: skip
    assert set(STATUS.values()) - {500} <= named
