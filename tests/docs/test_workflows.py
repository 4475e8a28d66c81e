"""What the workflows under .github/ name is there: commands, files, Python versions."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).resolve().parents[2]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))


@cache
def _read(path: Path) -> dict[str, Any]:
    parsed = YAML(typ="safe", pure=True).load(path)
    assert isinstance(parsed, dict), path
    return parsed


def _steps(path: Path) -> list[dict[str, Any]]:
    return [step for job in _read(path)["jobs"].values() for step in job.get("steps", [])]


def _commands(path: Path) -> str:
    return "\n".join(step["run"] for step in _steps(path) if "run" in step)


def _versions() -> set[str]:
    """The versions of Python that the package promises, the free-threaded build of the last too."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    last = re.compile(r"Programming Language :: Python :: (3\.\d+)$")
    plain = {found[1] for name in project["classifiers"] if (found := last.match(name))}
    newest = max(plain, key=lambda version: int(version.partition(".")[2]))
    return plain | {f"{newest}t"}


def test_there_are_workflows() -> None:
    assert {path.stem for path in WORKFLOWS} >= {"test", "wheels", "release", "docs"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_every_make_target_of_a_workflow_exists(path: Path) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    for command in re.findall(r"^make (.+)$", _commands(path), re.MULTILINE):
        assert set(command.split()) <= targets, command


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_every_file_that_a_workflow_names_exists(path: Path) -> None:
    named = re.findall(
        r"(?<![\w/])((?:\.github|\.ci|tests|requirements|scripts)/[\w./-]+)", _commands(path)
    )
    for job in _read(path)["jobs"].values():
        if job.get("uses", "").startswith("./"):
            named.append(job["uses"])
    for name in named:
        assert (ROOT / name).is_file(), name


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_every_action_is_pinned_by_its_commit(path: Path) -> None:
    for step in _steps(path):
        if "uses" in step:
            assert re.fullmatch(r"[\w-]+/[\w/-]+@[0-9a-f]{40}", step["uses"]), step["uses"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_every_job_names_its_permissions_and_the_workflow_has_none(path: Path) -> None:
    assert _read(path)["permissions"] == {}
    for name, job in _read(path)["jobs"].items():
        assert job["permissions"], name


def test_the_versions_in_the_workflows_are_those_of_the_classifiers() -> None:
    tested = _read(GITHUB / "workflows/test.yml")["jobs"]["portable"]["strategy"]["matrix"]
    wheels = _read(GITHUB / "workflows/wheels.yml")["jobs"]
    assert set(tested["python"]) == _versions()
    assert set(wheels["desktop"]["strategy"]["matrix"]["python"]) == _versions()
    (linux,) = (
        step["with"]["args"] for step in wheels["linux"]["steps"] if "args" in step.get("with", {})
    )
    assert set(re.findall(r"python(3\.\d+t?)", linux)) == _versions()


def test_wheels_are_built_by_the_maturin_that_is_pinned() -> None:
    requirements = (ROOT / "requirements/run.txt").read_text(encoding="utf-8")
    pinned = re.search(r"^maturin==(\S+)", requirements, re.MULTILINE)
    assert pinned
    assert _read(GITHUB / "workflows/wheels.yml")["env"]["MATURIN"] == f"v{pinned[1]}"


def test_every_line_of_the_portable_tests_is_a_test_or_a_folder_of_them() -> None:
    lines = (ROOT / "tests/portable.txt").read_text(encoding="utf-8").splitlines()
    assert len(lines) == len(set(lines))
    for line in lines:
        path = ROOT / line
        assert list(path.rglob("test_*.py")) if path.is_dir() else path.is_file(), line
    for command in ("plan", "add", "check", "dedup", "top"):
        assert f"tests/cli/test_{command}.py" in lines


@cache
def _release_notes() -> ModuleType:
    path = GITHUB / "release_notes.py"
    spec = importlib.util.spec_from_file_location("release_notes", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _project(folder: Path, changelog: str) -> Path:
    (folder / "Cargo.toml").write_text('[workspace.package]\nversion = "1.2.3"\n')
    (folder / "CHANGELOG.md").write_text(changelog)
    return folder


CHANGELOG = """# Changelog

## [Unreleased]

## [1.2.3] - 2027-01-02

- New.

## [1.2.2] - 2026-12-01

- Old.
"""


def test_the_notes_of_a_release_are_its_part_of_the_changelog(tmp_path: Path) -> None:
    assert _release_notes().notes("v1.2.3", _project(tmp_path, CHANGELOG)) == "- New.\n"


@pytest.mark.parametrize("tag", ["v1.2.4", "1.2.3", "v1.2.3rc1", "v1x2x3"])
def test_a_tag_that_is_not_the_version_is_refused(tag: str, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=re.escape("1.2.3")):
        _release_notes().notes(tag, _project(tmp_path, CHANGELOG))


@pytest.mark.parametrize(
    "changelog",
    ["## [Unreleased]\n- New.\n", "## [1.2.3]\n\n## [1.2.2]\n- Old.\n"],
)
def test_a_version_that_the_changelog_does_not_know_is_refused(
    changelog: str, tmp_path: Path
) -> None:
    with pytest.raises(SystemExit, match="has no part for"):
        _release_notes().notes("v1.2.3", _project(tmp_path, changelog))
