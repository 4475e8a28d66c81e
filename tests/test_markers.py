"""Markers say what a test needs, so that `-m "not postgres"` starts no PostgreSQL."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SERVICES = """
import pytest

@pytest.fixture
def postgres():
    return "not a real one"

@pytest.fixture
def table(postgres):
    return postgres

@pytest.fixture
def chosen(request):
    return request.getfixturevalue("postgres")

@pytest.fixture(params=["sqlite", "postgresql"])
def database(request):
    return request.getfixturevalue("postgres") if request.param == "postgresql" else None
"""


CONFTEST = "from tests.conftest import pytest_collection_modifyitems, services_are_marked\n"


def run(place: Path, tests: str, *options: str) -> tuple[int, str]:
    """pytest with the project's conftest.py on other tests: its exit code, and what it printed."""
    (place / "test_it.py").write_text(SERVICES + tests)
    (place / "conftest.py").write_text(CONFTEST)
    (place / "pytest.ini").write_text("[pytest]\nmarkers =\n  postgres\n  browser\n  spark\n")
    quiet = ("-p", "no:randomly", "-p", "no:cacheprovider", "--strict-markers")
    return pytest_in(place, "-v", *quiet, *options)


def pytest_in(place: Path, *options: str) -> tuple[int, str]:
    places = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        cwd=place, env=os.environ | {"PYTHONPATH": os.pathsep.join(places)},
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def test_a_test_is_marked_with_the_services_of_its_fixtures_and_parameters(tmp_path: Path) -> None:
    tests = """
def test_direct(postgres): pass
def test_behind_another(table): pass
def test_by_parameter(database): pass
def test_none(): pass
"""
    code, printed = run(tmp_path, tests, "-m", "not postgres")
    assert code == 0
    assert "2 passed, 3 deselected" in printed
    assert "test_by_parameter[sqlite] PASSED" in printed
    assert run(tmp_path, tests, "-m", "postgres")[1].count(" PASSED ") == 3


def test_a_service_that_is_used_without_its_marker_fails_the_test(tmp_path: Path) -> None:
    code, printed = run(tmp_path, "\ndef test_hidden(chosen): pass\n")
    assert code == 1
    assert "add what tells of {'postgres'}" in printed


def test_tests_of_spark_are_marked_by_their_folder() -> None:
    options = ("--collect-only", "-q", "-m", "not spark", "tests/integrations/spark")
    code, printed = pytest_in(ROOT, *options)
    assert code == pytest.ExitCode.NO_TESTS_COLLECTED, printed


@pytest.mark.parametrize("name", ["postgres", "browser", "spark", "slow"])
def test_a_marker_is_explained(name: str, pytestconfig: pytest.Config) -> None:
    assert any(line.startswith(f"{name}: ") for line in pytestconfig.getini("markers"))
