"""The command as a process: pipes, signals, terminals, exit codes."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import bloomtide
from bloomtide.cli import progress
from tests.cli.command import filter_of, run, run_process, start

COLOUR = re.compile(rb"\x1b\[[0-9;]*3[0-9]m")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return filter_of(tmp_path, ["a", "b"])


def test_version_and_both_ways_to_start_it() -> None:
    script = Path(sys.executable).with_name("bloomtide")
    expected = f"bloomtide {bloomtide.__version__}\n".encode()
    assert run_process("--version").stdout == expected
    assert subprocess.run([script, "--version"], capture_output=True).stdout == expected


def test_without_a_command_the_help_is_shown() -> None:
    result = run_process()
    assert result.returncode == 2
    assert b"validate" in result.stdout


def test_a_pipeline_keeps_only_what_is_new(file: Path) -> None:
    first = run_process("add", file, "--new", stdin=b"a\nc\nd\n")
    assert (first.returncode, first.stdout) == (0, b"c\nd\n")
    second = run_process("check", file, "-", stdin=first.stdout + b"e\n")
    assert (second.returncode, second.stdout, second.stderr) == (0, b"c\nd\n", b"")


def test_lines_are_answered_before_the_input_ends(file: Path) -> None:
    with start("check", file, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin
        assert process.stdout
        for key in (b"a\n", b"b\n"):
            process.stdin.write(key)
            process.stdin.flush()
            assert process.stdout.readline() == key
        process.stdin.close()
        assert process.wait(60) == 0


@pytest.mark.parametrize("options", [[], ["--shared"]])
def test_commands_that_add_at_the_same_time_lose_no_key(file: Path, options: list[str]) -> None:
    parts = [[f"{part}-{key}" for key in range(100)] for part in range(4)]
    workers = []
    for number, part in enumerate(parts):
        keys = file.with_name(f"keys-{number}")
        keys.write_text("\n".join(part))
        workers.append(start("add", file, keys, *options, stderr=subprocess.PIPE))
    for worker in workers:
        worker.communicate(timeout=60)
        assert worker.returncode == 0
    assert bloomtide.load(file).contains_many([key for part in parts for key in part]).all()


def test_a_shared_add_is_seen_by_others_before_it_ends(file: Path) -> None:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with start("add", file, "--shared", "--new", **pipes) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(b"new\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"new\n"
        assert run("check", file, "--key", "new").stdout == "new\n"
        process.stdin.close()
        assert process.wait(60) == 0


def test_a_reader_that_leaves_ends_the_command_without_a_word(file: Path, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_bytes(b"a\n" * 1_000_000)  # more than any pipe holds
    with start("check", file, keys, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stderr
        assert process.stdout.readline() == b"a\n"
        process.stdout.close()
        assert process.wait(60) == 141
        assert process.stderr.read() == b""


def test_keys_nobody_read_are_not_remembered(tmp_path: Path) -> None:
    file = tmp_path / "f"
    run("new", file, "--items", "200k")
    keys = tmp_path / "keys"
    keys.write_bytes(b"".join(b"%d\n" % number for number in range(200_000)))
    before = file.read_bytes()
    with start("add", file, "--new", keys, stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline() == b"0\n"
        process.stdout.close()
        assert process.wait(60) == 141
    assert file.read_bytes() == before


def test_an_interrupt_is_130_without_a_traceback_and_saves_nothing(file: Path) -> None:
    before = file.read_bytes()
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with start("add", file, "--new", **pipes) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        process.stdin.write(b"new\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"new\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        assert b"Traceback" not in process.stderr.read()
    assert file.read_bytes() == before


@pytest.mark.parametrize("arguments", [["info"], ["check", "--key", "a"], ["info", "--json"]])
def test_a_full_disk_behind_stdout_is_an_error(file: Path, arguments: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        process = start(arguments[0], file, *arguments[1:], stdout=full, stderr=subprocess.PIPE)
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == 2
    assert stderr == b"error: cannot write to stdout: No space left on device\n"


def test_no_permission_is_an_error(file: Path) -> None:
    # Root may read everything, so the command gives up its rights before it starts.
    script = (
        "import contextlib, os\n"
        "from bloomtide.cli.app import app\n"
        # Once before, so that every module is imported that may not be readable afterwards.
        "with contextlib.suppress(SystemExit): app(['info', 'missing'])\n"
        "if os.geteuid() == 0: os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "app()"
    )
    file.chmod(0)
    command = [sys.executable, "-c", script, "info", str(file)]
    result = subprocess.run(command, capture_output=True, timeout=60)
    assert result.returncode == 2
    _, told = [line for line in result.stderr.splitlines() if line.startswith(b"error: ")]
    assert b"Permission denied" in told
    assert b"Traceback" not in result.stderr


def test_a_closed_stdout_or_stdin_is_an_error(file: Path) -> None:
    for closed, command in ((1, "info"), (0, "check")):
        process = start(
            command,
            file,
            stderr=subprocess.PIPE,
            preexec_fn=lambda closed=closed: os.close(closed),
        )
        _, stderr = process.communicate(timeout=60)
        assert process.returncode == 2
        assert b"is closed" in stderr
        assert b"Traceback" not in stderr


def on_terminal(*arguments: str | Path, **environment: str) -> bytes:
    """Everything the command writes to a terminal as its stderr; stdout and stdin are none."""
    terminal, theirs = pty.openpty()
    env = {"PATH": os.environ["PATH"], "TERM": "xterm-256color", **environment}
    options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": theirs}
    with start(*arguments, env=env, **options):
        os.close(theirs)
        shown = b""
        # Reading the terminal of a process that ended is an error, which is its end of file.
        try:
            while piece := os.read(terminal, 1 << 16):
                shown += piece
        except OSError:
            pass
    os.close(terminal)
    return shown


def test_long_work_shows_progress_on_a_terminal_only(file: Path, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_bytes((b"x" * 999 + b"\n") * (progress.LONG // 1000 + 1))
    assert b"reading keys" in on_terminal("add", file, keys)
    assert b"reading keys" not in run_process("add", file, keys).stderr
    keys.write_bytes(b"short\n")
    assert b"reading keys" not in on_terminal("add", file, keys)


def test_no_color_is_respected(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    assert COLOUR.search(on_terminal("info", missing))
    assert not COLOUR.search(on_terminal("info", missing, NO_COLOR="1"))
    assert b"\x1b" not in run_process("info", missing).stderr


def test_a_file_name_cannot_speak_to_the_terminal(tmp_path: Path) -> None:
    name = tmp_path / "red\x1b[31m\nerror: fake"
    result = run("info", name, code=2)
    assert "\x1b" not in result.stderr
    assert len(re.findall("^error: ", result.stderr, flags=re.MULTILINE)) == 1


def test_a_file_name_that_is_no_text_works(tmp_path: Path) -> None:
    name = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.bloom")
    assert run_process("new", name, "--items", "100").returncode == 0
    result = run_process("validate", name)
    assert (result.returncode, result.stderr) == (0, b"")
    assert result.stdout.endswith(b": ok, bloom\n")
    assert run_process("info", name, "--json").returncode == 0


def test_a_mistake_of_ours_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: object, **options: object) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("bloomtide.cli.plan._set_row", broken)
    stderr = run("plan", "--items", "5", code=2).stderr
    assert stderr.startswith("error: unexpected ZeroDivisionError: oops\nhint: ")


@pytest.mark.parametrize("problem", [ImportError, ModuleNotFoundError])
def test_a_module_of_ours_that_is_missing_is_no_mistake_to_report(
    monkeypatch: pytest.MonkeyPatch, problem: type[ImportError]
) -> None:
    def broken(*arguments: object, **options: object) -> None:
        raise problem("No module named 'bloomtide.lost'", name="bloomtide.lost")

    monkeypatch.setattr("bloomtide.cli.plan._set_row", broken)
    stderr = run("plan", "--items", "5", code=2).stderr
    assert stderr.startswith("error: the installation is broken: No module named 'bloomtide.lost'")
    assert "mistake" not in stderr


@pytest.mark.parametrize("command", [["nonsense"], ["ad"], ["--nonsense"], ["check"]])
def test_a_wrong_command_line_is_one_error_with_a_hint(command: list[str]) -> None:
    lines = run(*command, code=2).stderr.splitlines()
    assert [line.split(": ")[0] for line in lines] == ["error", "hint"]
