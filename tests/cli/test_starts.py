"""What a command does not need is not imported; `python -m benchmarks.starts` has the times."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command import filter_of

ALWAYS = {"typer", "sqlalchemy", "fsspec", "starlette", "uvicorn", "pyarrow", "pandas", "redis",
          "asyncio", "multiprocessing", "ssl", "zstandard", "pydantic"}  # fmt: skip
DRAWN = {"rich"}
COUNTED = {"numpy"}

CODE = """
import sys
from bloomtide.cli.main import main
try:
    main()
except SystemExit as ended:
    code = ended.code
sys.stdout.flush()
print(*sorted(sys.modules), file=sys.stderr)
raise SystemExit(code)
"""

HELP = [
    "--version", "--help", "history --help", "plan --help", "new --help", "add --help",
    "remove --help", "check --help", "count --help", "info --help", "merge --help",
    "validate --help", "top --help", "dedup --help", "watch --help", "serve --help", "demo --help",
    "history ingest --help", "history count --help", "history series --help",
    "history top --help", "history segments --help", "history compact --help",
    "history total --help", "history info --help", "history verify --help", "history export --help",
]  # fmt: skip


def imported(folder: Path, line: str, stdin: bytes) -> set[str]:
    """The modules that a command has imported when it is done."""
    command = [sys.executable, "-c", CODE, *line.split()]
    done = subprocess.run(command, input=stdin, capture_output=True, cwd=folder, timeout=60)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.decode().splitlines()[-1].split())


@pytest.mark.parametrize("line", HELP)
def test_help_imports_the_parser_and_the_core(tmp_path: Path, line: str) -> None:
    found = imported(tmp_path, line, b"")
    assert "click" in found
    assert found & (ALWAYS | DRAWN | COUNTED) == set()


@pytest.mark.parametrize(
    ("line", "unneeded"),
    [
        ("dedup", DRAWN | COUNTED),
        ("dedup --items 1k --url", DRAWN | COUNTED),
        ("check f.bloom", DRAWN),
        ("add f.bloom", DRAWN),
        ("count f.bloom", DRAWN),
        ("info f.bloom", COUNTED),
        ("plan --items 1M", COUNTED),
        ("top -", COUNTED),
    ],
)
def test_plain_work_imports_little_more(tmp_path: Path, line: str, unneeded: set[str]) -> None:
    filter_of(tmp_path, ["a"], "--kind", "counting")
    log = b'192.0.2.1 - - [01/May/2024:12:00:00 +0000] "GET /a HTTP/1.1" 200 5\n'
    found = imported(tmp_path, line, log if line == "top -" else b"a\n")
    assert found & (ALWAYS | unneeded) == set()


@pytest.mark.parametrize("question", ["count --key /a", "total", "verify"])
def test_a_question_to_a_history_imports_no_database(tmp_path: Path, question: str) -> None:
    log = b'192.0.2.1 - - [01/May/2024:12:00:00 +0000] "GET /a HTTP/1.1" 200 5\n'
    imported(tmp_path, "history ingest store", log)
    command, _, options = question.partition(" ")
    found = imported(tmp_path, f"history {command} store {options}", b"")
    assert found & (ALWAYS | DRAWN | COUNTED) == set()


def test_one_command_imports_no_other(tmp_path: Path) -> None:
    found = imported(tmp_path, "check --help", b"")
    ours = {name for name in found if name.startswith("bloomtide.cli.")}
    others = {"add", "plan", "top", "dedup", "watch", "serve", "demo", "history", "merge"}
    assert ours & {f"bloomtide.cli.{name}" for name in others} == set()


def without(package: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """The command where a package is not installed."""
    (folder / "sitecustomize.py").write_text(f"import sys\nsys.modules[{package!r}] = None\n")
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-m", "bloomtide", *arguments]
    env = os.environ | {"PYTHONPATH": path}
    return subprocess.run(command, input=b"", capture_output=True, env=env, timeout=60)


def test_without_the_parser_one_line_says_what_to_install(tmp_path: Path) -> None:
    done = without("click", tmp_path, "--version")
    told = done.stderr.decode().splitlines()
    assert done.returncode == 2
    assert len(told) == 1
    assert told[0].startswith("error: the command `bloomtide` needs ")
    assert "click" in told[0]
    assert told[0].endswith("'bloomtide[cli]'")


@pytest.mark.parametrize(
    ("package", "extra", "arguments"),
    [
        ("rich", "cli", ["info", "f.bloom"]),
        ("zstandard", "cli", ["dedup", "lines.zst"]),
        ("starlette", "serve", ["serve", "--memory", "--port", "0", "--http-port", "auto"]),
        ("redis", "redis", ["watch", "--no-server", "redis://127.0.0.1:1/stream"]),
    ],
)
def test_a_package_that_is_missing_is_named_with_its_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str, extra: str, arguments: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    filter_of(tmp_path, ["a"])
    (tmp_path / "lines.zst").write_bytes(b"x")
    (tmp_path / "access.log").write_bytes(b"x\n")
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "store.json").write_text("{}")
    done = without(package, tmp_path, *arguments)
    told = done.stderr.decode()
    assert done.returncode == 2, told
    error, hint = told.splitlines()
    assert error.startswith("error: ")
    assert package in error.lower()
    assert hint.startswith("hint: pip install ")
    assert any(f"'bloomtide[{name}]'" in hint for name in extra.split())
    assert "mistake in bloomtide" not in told
