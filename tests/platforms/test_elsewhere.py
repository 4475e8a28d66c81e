"""Without fork and fcntl: what works as ever, and what is refused in one sentence.

docs/platforms.md is the table that these tests prove.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Literal

import pytest

ROOT = Path(__file__).resolve().parents[2]
SENTENCE = "needs Linux or macOS: this system has no"
PATIENCE = 60


def start(*arguments: str | Path, cwd: Path) -> subprocess.Popen[bytes]:
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, "-m", "tests.platforms.elsewhere", *map(str, arguments)],
        cwd=cwd, env=os.environ | {"PYTHONPATH": path, "COLUMNS": "200"},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def run(*arguments: str | Path, cwd: Path, stdin: bytes = b"", code: int = 0) -> tuple[str, str]:
    """Both outputs of a process that must exit with `code`."""
    process = start(*arguments, cwd=cwd)
    out, error = process.communicate(stdin, PATIENCE)
    assert process.returncode == code, (out, error)
    return (out.decode().replace("\r\n", "\n"), error.decode().replace("\r\n", "\n"))


def refused(*arguments: str | Path, cwd: Path) -> str:
    """The first line of stderr of a command that must fail: there is one sentence and a hint."""
    _, error = run(*arguments, cwd=cwd, code=2)
    lines = error.splitlines()
    assert len(lines) == 2
    assert lines[1] == "hint: run it there; on Windows, in WSL or a container"
    return lines[0]


@pytest.mark.skipif(os.name == "nt", reason="Windows hides them by itself")
def test_what_is_hidden_is_really_hidden(tmp_path: Path) -> None:
    code = """
import importlib, os
for name in ("fcntl", "resource", "termios"):
    try:
        importlib.import_module(name)
    except ImportError:
        print("no", name)
from bloomtide import system
print(hasattr(os, "fork"), hasattr(os, "fdatasync"), system.POSIX)
"""
    out, _ = run("-c", code, cwd=tmp_path)
    assert out == "no fcntl\nno resource\nno termios\nFalse False False\n"


def test_every_structure_is_made_saved_and_loaded(tmp_path: Path) -> None:
    code = """
import bloomtide
from bloomtide import *
from bloomtide.hot import HotList
made = [
    BloomFilter(1000, 0.01), ScalableBloomFilter(1000, 0.01), CountingBloomFilter(1000, 0.01),
    DynamicCountFilter(1000, 0.01), HotList(100, half_life="1h"),
]
for number, each in enumerate(made):
    each.add("a")
    each.save(f"{number}.bloom")
    each.save(f"{number}.bloom")
    found = bloomtide.load(f"{number}.bloom")
    assert type(found) is type(each)
    assert (found.stats() == each.stats()), each
assert "a" in bloomtide.load("0.bloom") and "b" not in bloomtide.load("0.bloom")
with BloomFilter.open("0.bloom", mode="r") as mapped:
    assert "a" in mapped
print(BloomFilter.plan(1000, 0.01).bytes > 0)
"""
    out, _ = run("-c", code, cwd=tmp_path)
    assert out == "True\n"


def test_the_commands_on_files_work(tmp_path: Path) -> None:
    run("plan", "--items", "1000", "--error", "0.01", cwd=tmp_path)
    run("new", "seen.bloom", "--items", "1000", "--error", "0.01", cwd=tmp_path)
    run("add", "seen.bloom", cwd=tmp_path, stdin=b"a\nb\n")
    out, _ = run("check", "seen.bloom", cwd=tmp_path, stdin=b"a\nb\nc\n")
    assert out == "a\nb\n"
    for expected in ("a\nb\n", ""):
        out, _ = run("dedup", "--state", "lines.bloom", cwd=tmp_path, stdin=b"a\nb\na\n")
        assert out == expected
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lines.bloom", "seen.bloom"]


def test_top_reads_a_log_from_a_file_and_from_stdin(tmp_path: Path) -> None:
    line = b'1.2.3.4 - - [10/Oct/2024:13:55:36 +0000] "GET /hot HTTP/1.1" 200 1 "-" "-"\n'
    (tmp_path / "access.log").write_bytes(line * 3)
    for source in ("access.log", "-"):
        out, _ = run("top", source, "--json", cwd=tmp_path, stdin=line * 3)
        assert '"/hot"' in out


def test_a_second_command_on_a_file_waits_for_the_first(tmp_path: Path) -> None:
    run("new", "seen.bloom", "--items", "1000", "--error", "0.01", cwd=tmp_path)
    first = start("hold", "seen.bloom", cwd=tmp_path)
    assert first.stdout is not None
    assert first.stdout.readline().split() == [b"held"]
    second = start("add", "seen.bloom", cwd=tmp_path)
    assert second.stderr is not None
    assert b"waiting for another command that changes" in second.stderr.readline()
    first.communicate(timeout=PATIENCE)
    second.communicate(b"a\n", PATIENCE)
    assert (first.returncode, second.returncode) == (0, 0)
    assert run("check", "seen.bloom", cwd=tmp_path, stdin=b"a\n")[0] == "a\n"
    assert [path.name for path in tmp_path.iterdir()] == ["seen.bloom"]


def test_serve_and_watch_are_refused_in_one_sentence(tmp_path: Path) -> None:
    assert refused("serve", cwd=tmp_path) == f"error: `bloomtide serve` {SENTENCE} fork"
    assert refused("watch", "--demo", cwd=tmp_path) == f"error: `bloomtide watch` {SENTENCE} fork"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("what", "lacks", "imports", "call"),
    [
        ("a history opened for writing", "flock",
         "from bloomtide.history import History", 'History.open("store")'),
        ("a monitor or server with a directory", "fork",
         "from bloomtide.monitor import Monitor", 'Monitor.open("store")'),
        ("the server", "fork",
         "import asyncio\nfrom bloomtide.server.run import serve\n"
         "from bloomtide.server.settings import Settings", "asyncio.run(serve(Settings()))"),
        ("a shared guard", "flock",
         "from bloomtide.guard.filter.files import SharedFiles", 'SharedFiles("store", {})'),
        ("a crawl with a JOBDIR", "flock",
         "from pathlib import Path\nfrom bloomtide.integrations.scrapy.seen import Seen, Options",
         'Seen(Options(), Path("store"))'),
    ],
)  # fmt: skip
def test_what_is_posix_only_is_refused_and_leaves_nothing(
    tmp_path: Path, what: str, lacks: str, imports: str, call: str
) -> None:
    code = f"""
from bloomtide.errors import UnsupportedError
{imports}
try:
    {call}
except UnsupportedError as problem:
    print(problem.message)
"""
    out, _ = run("-c", code, cwd=tmp_path)
    assert out == f"{what} {SENTENCE} {lacks}\n"
    assert list(tmp_path.iterdir()) == []


def test_a_monitor_in_memory_and_a_guard_of_one_process_work(tmp_path: Path) -> None:
    code = """
from sqlalchemy import Column, Integer, MetaData, String, Table, create_engine
from bloomtide.guard import DatabaseGuard
from bloomtide.monitor import Monitor

monitor = Monitor.open()
print(monitor.add("a"), monitor.add("a"))
table = Table("t", MetaData(), Column("id", Integer, primary_key=True), Column("name", String))
engine = create_engine("sqlite:///t.db")
table.metadata.create_all(engine)
with engine.begin() as connection:
    connection.execute(table.insert(), [{"id": 1, "name": "a"}])
with DatabaseGuard(engine, table.c.name) as guard:
    guard.build()
    print(guard.may_exist("a"), guard.may_exist("b"))
engine.dispose()
"""
    out, _ = run("-c", code, cwd=tmp_path)
    assert out == "True False\nTrue False\n"


@pytest.mark.skipif(os.name != "nt", reason="the core of POSIX systems shares maps")
@pytest.mark.parametrize("mode", ["c", "r+"])
def test_a_map_for_writing_is_refused_on_windows(tmp_path: Path, mode: Literal["c", "r+"]) -> None:
    from bloomtide import BloomFilter
    from bloomtide.errors import UnsupportedError

    with pytest.raises(UnsupportedError, match=SENTENCE):
        BloomFilter.open(tmp_path / "shared.bloom", 1000, 0.01, mode=mode)
    assert list(tmp_path.iterdir()) == []
