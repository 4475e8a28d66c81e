"""`LogFiles`: each line of a log once, whatever becomes of its file, wherever reading stops."""

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bloomtide.cli import log_files
from bloomtide.cli.log_files import LogFiles, _File
from bloomtide.cli.positions import Log, Logs
from tests.rotation import Rotation

HISTORIES = int(os.environ.get("BLOOMTIDE_KILLS", "0")) * 5 or 20


class Reader:
    """Counts lines and keeps the positions, both at once, as a store does."""

    def __init__(self, **options: Any) -> None:
        self.lines: Counter[bytes] = Counter()
        self.positions: dict[str, Any] = {}
        self.files: LogFiles | None = None
        self._options = options

    def begin(self, names: list[str], **options: Any) -> LogFiles:
        """As a new process: what is known is what was stored."""
        if self.files is not None:
            self.files.close()
        stored = json.loads(json.dumps(self.positions))
        self.files = LogFiles(names, stored, by="path", **self._options, **options)
        return self.files

    def round(self, pieces: int = 1 << 30) -> None:
        """Reads what is new; stops after so many pieces."""
        assert self.files is not None
        amid: dict[str, bytes] = {}
        for piece in self.files.read():
            if piece.position is None:
                amid[piece.path] = amid.get(piece.path, b"") + piece.data
            else:
                if piece.data:
                    whole = amid.pop(piece.path, b"") + piece.data
                    self.lines.update(whole.splitlines())
                self.positions[piece.log.key] = piece.position
            pieces -= 1
            if not pieces:
                return

    def read(self, *paths: Path | str, **options: Any) -> LogFiles:
        """A whole run on these files."""
        files = self.begin([str(path) for path in paths], **options)
        self.round()
        return files


def numbered(number: int, draw: random.Random) -> bytes:
    return b"%d %s\n" % (number, b"x" * draw.choice((0, 20, 200, 200, 2000)))


def require_once(reader: Reader, lines: list[bytes]) -> None:
    assert reader.lines == Counter(line[:-1] for line in lines)


# ---- one thing at a time


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "access.log"


def lines_of(first: int, count: int) -> list[bytes]:
    return [
        b"line %d of the log, which is not very long\n" % n for n in range(first, first + count)
    ]


LINES = lines_of(0, 200)


@pytest.mark.parametrize("count", [1, 5, 200])
@pytest.mark.parametrize(
    "change",
    [
        lambda log: log.rename(log.with_name("access.log.1")),
        lambda log: shutil.copy(log, log.with_name("access.log.1")),
        lambda log: os.link(log, log.with_name("access.log.1")),
        lambda log: log.with_name("access.log.1.gz").write_bytes(gzip.compress(log.read_bytes())),
        lambda log: None,
    ],
    ids=["renamed", "copied", "linked", "packed beside it", "as it was"],
)
def test_what_was_counted_is_known_again(
    log: Path, change: Callable[[Path], object], count: int
) -> None:
    reader = Reader()
    log.write_bytes(b"".join(LINES[:count]))
    reader.read(log, log)
    change(log)
    for _ in range(2):
        reader.read(f"{log}*")
        require_once(reader, LINES[:count])


@pytest.mark.parametrize("grown", [0, 3, 100])
def test_a_copy_of_an_earlier_state_was_counted_and_one_that_went_on_goes_on(
    log: Path, grown: int
) -> None:
    reader, copy = Reader(), log.with_name("access.log.copy")
    log.write_bytes(b"".join(LINES[:60]))
    shutil.copy(log, copy)
    with log.open("ab") as file:
        file.write(b"".join(LINES[60 : 60 + grown]))
    for names in ([log], [copy], [log, copy], [copy, log]):
        reader.read(*names)
    require_once(reader, LINES[: 60 + grown])


def test_a_log_that_was_cut_off_and_began_anew_is_another_one(log: Path) -> None:
    reader = Reader()
    log.write_bytes(b"".join(LINES[:60]))
    reader.read(log)
    # Shorter, the same length, and longer than what was read; in the same file.
    written = LINES[:60]
    for first, count in ((60, 10), (70, 10), (100, 100)):
        os.truncate(log, 0)
        log.write_bytes(b"".join(LINES[first : first + count]))
        reader.read(log)
        written = written + LINES[first : first + count]
        require_once(reader, written)


def test_a_log_that_was_cut_off_and_says_the_same_again_is_counted_again(log: Path) -> None:
    reader = Reader()
    log.write_bytes(b"".join(LINES[:60]))
    reader.read(log)
    os.truncate(log, 0)
    log.write_bytes(b"".join(LINES[:50]))
    reader.read(log)
    require_once(reader, LINES[:60] + LINES[:50])


@pytest.mark.parametrize("same", [1, 10, 40])
@pytest.mark.parametrize("longer_first", [True, False])
def test_two_logs_with_the_same_first_lines_are_two(
    tmp_path: Path, same: int, longer_first: bool
) -> None:
    reader = Reader()
    logs = [LINES[:same] + lines_of(1000, 60), LINES[:same] + lines_of(2000, 20)]
    for name, lines in zip("ab" if longer_first else "ba", logs, strict=True):
        (tmp_path / f"{name}.log").write_bytes(b"".join(lines))
    for _ in range(2):
        reader.read(tmp_path / "*.log")
        require_once(reader, logs[0] + logs[1])


def test_another_file_with_the_same_inode_is_another_log(log: Path) -> None:
    reader = Reader()
    log.write_bytes(b"".join(LINES[:60]))
    reader.read(log)
    # As a file system does that gives the number of a removed file to the next one.
    other = LINES[:30] + lines_of(1000, 60)
    log.write_bytes(b"".join(other))
    reader.read(log)
    require_once(reader, LINES[:60] + other)


def test_an_empty_file_is_no_log_yet(log: Path) -> None:
    reader = Reader()
    log.touch()
    log.with_name("access.log.1").touch()
    reader.read(f"{log}*")
    assert reader.positions == {}
    log.write_bytes(LINES[0])
    reader.read(f"{log}*")
    require_once(reader, LINES[:1])


def test_a_begun_line_waits_for_its_end(log: Path) -> None:
    reader = Reader()
    log.write_bytes(LINES[0] + LINES[1][:9])
    files = reader.read(log)
    require_once(reader, LINES[:1])
    assert files.begun == {str(log)}
    with log.open("ab") as file:
        file.write(LINES[1][9:])
    assert reader.read(log).begun == set()
    require_once(reader, LINES[:2])


@pytest.mark.parametrize("before", [True, False])
def test_a_packed_copy_that_ends_amid_a_line_says_nothing_of_that_line(
    log: Path, before: bool
) -> None:
    reader, packed = Reader(), log.with_name("backup.gz")
    log.write_bytes(b"".join(LINES[:2]) + LINES[2][:9])
    packed.write_bytes(gzip.compress(log.read_bytes()))
    names = [packed, log] if before else [log, packed]
    for count in (2, 4):
        files = reader.read(*names)
        require_once(reader, LINES[:count])
        assert count == 4 or files.begun == {str(log), str(packed)}
        log.write_bytes(b"".join(LINES[:4]))
    [position] = reader.positions.values()
    assert position["offset"] == sum(map(len, LINES[:4]))


def test_a_packed_log_that_was_cut_counts_up_to_the_cut_and_goes_on_when_it_is_whole(
    log: Path,
) -> None:
    draw = random.Random(3)
    lines = [b"%d %d\n" % (n, draw.randrange(10**9)) for n in range(5000)]
    packed, data = log.with_name("a.gz"), gzip.compress(b"".join(lines))
    reader = Reader()
    for cut in (len(data) // 3, len(data) // 2, len(data) - 1):
        packed.write_bytes(data[:cut])
        for _ in range(2):
            files = reader.read(packed)
            assert "damaged gzip" in files.problems[str(packed)].message
            require_once(reader, lines[: len(reader.lines)])
        assert reader.lines
    packed.write_bytes(data)
    for _ in range(2):
        assert reader.read(packed).problems == {}
        require_once(reader, lines)


def test_a_packed_log_that_was_damaged_is_counted_once_or_refused_when_it_is_mended(
    log: Path,
) -> None:
    """A flipped byte of gzip is found at the end of the file only, or behind wrong lines."""
    draw = random.Random(4)
    lines = [b"%d %d\n" % (n, draw.randrange(10**9)) for n in range(20_000)]
    data, refused = gzip.compress(b"".join(lines)), 0
    for number, place in enumerate([*range(12, 40, 7), *range(100, len(data), len(data) // 40)]):
        packed = log.with_name(f"{number}.gz")
        packed.write_bytes(data[:place] + bytes([data[place] ^ 16]) + data[place + 1 :])
        reader = Reader()
        assert reader.read(packed).problems
        counted = Counter(reader.lines)
        mended = log.with_name(f"{number}.mended.gz")
        mended.write_bytes(data)
        packed.unlink()
        for _ in range(2):
            problems = reader.read(mended).problems
            if problems:
                assert "from a damaged file" in problems[str(mended)].message
                assert reader.lines == counted
            else:
                require_once(reader, lines)
        refused += bool(problems)
        if problems:
            assert reader.read(mended, again=True).problems == {}
            assert reader.lines == counted + Counter(line[:-1] for line in lines)
            assert reader.read(mended).problems == {}
    assert refused > 5


def test_the_packed_form_of_a_counted_log_is_named_if_it_is_cut(log: Path) -> None:
    reader = Reader()
    log.write_bytes(b"".join(LINES))
    reader.read(log)
    packed = log.with_name("access.log.gz")
    packed.write_bytes(gzip.compress(b"".join(LINES))[:-100])
    files = reader.read(f"{log}*")
    assert set(files.problems) == {str(packed)}
    require_once(reader, LINES)
    log.unlink()
    reader.read(f"{log}*")
    require_once(reader, LINES)


def test_what_cannot_be_read_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    (tmp_path / "good.log").write_bytes(b"".join(LINES))
    (tmp_path / "folder.log").mkdir()
    gone = tmp_path / "gone.log"
    names = [str(tmp_path / "folder.log"), str(gone), str(tmp_path / "good.log")]
    reader = Reader()
    files = reader.read(*names)
    assert set(files.problems) == {str(tmp_path / "folder.log"), str(gone)}
    require_once(reader, LINES)


def test_a_file_that_vanishes_before_it_is_opened_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "ab":
        (tmp_path / f"{name}.log").write_bytes(b"".join(lines_of(ord(name) * 1000, 20)))
    opened = Path.open

    def open_(path: Path, *words: Any, **more: Any) -> Any:
        if path.name == "a.log":
            path.unlink()
        return opened(path, *words, **more)

    monkeypatch.setattr(Path, "open", open_)
    reader = Reader()
    files = reader.read(tmp_path / "*.log")
    assert set(files.problems) == {str(tmp_path / "a.log")}
    assert len(reader.lines) == 20


def test_a_file_that_may_not_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "a.log"
    log.write_bytes(LINES[0])

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", refuse)  # root may read everything
        reader = Reader()
        files = reader.read(log)
    assert "Permission denied" in files.problems[str(log)].message
    reader.read(log)
    require_once(reader, LINES[:1])


def test_a_pattern_that_means_nothing_is_named_and_one_that_is_followed_is_waited_for(
    log: Path,
) -> None:
    log.write_bytes(LINES[0])
    pattern = str(log.with_name("b.log*"))
    reader = Reader()
    files = reader.read(pattern, log)
    assert files.problems[pattern].message == f"there is no log {pattern}"
    require_once(reader, LINES[:1])
    files = reader.read(pattern, log, follow=True)
    assert (files.problems, files.missing) == ({}, {pattern})
    log.with_name("b.log.1").write_bytes(LINES[1])
    reader.round()
    assert files.missing == set()
    require_once(reader, LINES[:2])
    files.close()


def test_bytes_that_are_no_text_and_very_long_lines_are_passed_on(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_files, "CHUNK", 1000)
    long = b"y" * 10_000 + b"\n"
    whole = [LINES[0], b"\x00\xff\xfe\n", long, LINES[1]]
    log.write_bytes(b"".join(whole[:2]) + long[:4000])
    seen = b""
    reader = Reader()
    reader.begin([str(log)], follow=True)
    assert reader.files is not None
    seen = b"".join(piece.data for piece in reader.files.read() if piece.position is not None)
    assert seen == b"".join(whole[:2])
    with log.open("ab") as file:
        file.write(long[4000:] + LINES[1])
    pieces = list(reader.files.read())
    assert b"".join(piece.data for piece in pieces) == long + LINES[1]
    assert max(len(piece.data) for piece in pieces) <= 3000
    assert pieces[-1].position is not None
    assert pieces[-1].position["offset"] == sum(map(len, whole))
    reader.files.close()


def test_each_field_has_its_own_positions_and_again_begins_anew(log: Path) -> None:
    reader = Reader()
    log.write_bytes(b"".join(LINES))
    reader.read(log)
    assert list(LogFiles([str(log)], reader.positions, by="status").read())
    reader.read(log, log, again=True)
    assert set(reader.lines.values()) == {2}
    reader.read(log)
    assert set(reader.lines.values()) == {2}


def test_counting_again_that_was_stopped_goes_on_without_being_asked(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_files, "CHUNK", 1000)
    reader = Reader()
    log.write_bytes(b"".join(LINES))
    reader.read(log)
    reader.begin([str(log)], again=True)
    reader.round(3)
    assert set(reader.lines.values()) == {1, 2}
    reader.read(log)
    assert set(reader.lines.values()) == {2}


def test_a_packed_log_that_is_known_is_not_unpacked_again(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = log.with_name("a.gz")
    packed.write_bytes(gzip.compress(b"".join(LINES)))
    reader = Reader()
    reader.read(packed)
    monkeypatch.setattr(log_files, "unpacked", None)
    reader.read(packed)
    require_once(reader, LINES)


def test_a_file_that_lost_its_name_is_read_on_for_a_while(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr("bloomtide.cli.log_files.time.monotonic", lambda: now)
    reader = Reader(follow=True)
    log.write_bytes(b"".join(LINES[:10]))
    old = log.with_name("old")  # which the name given does not mean
    files = reader.read(log)
    log.rename(old)
    reader.round()
    assert files.missing == {str(log)}
    log.write_bytes(LINES[20])
    with old.open("ab") as file:
        file.write(LINES[10])
    reader.round()
    assert files.missing == set()
    with old.open("ab") as file:
        file.write(LINES[11][:-1])
    reader.round()
    require_once(reader, [*LINES[:11], LINES[20]])
    with old.open("ab") as file:
        file.write(b"\n")
    now += log_files.GRACE
    reader.round()
    require_once(reader, [*LINES[:12], LINES[20]])
    with old.open("ab") as file:
        file.write(b"nobody reads this\n")
    reader.round()
    assert len(reader.lines) == 13
    files.close()


def test_more_files_are_followed_than_can_be_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_files, "OPEN", 3)
    logs = [tmp_path / f"{n}.log" for n in range(9)]
    logs[0].touch()
    reader = Reader(follow=True)
    files = reader.begin([str(tmp_path / "*.log")])
    for n, line in enumerate(LINES):
        with logs[n % 9].open("ab") as file:
            file.write(line)
        if n % 5 == 0:
            reader.round()
            assert len(files._open) <= 3
    reader.round()
    require_once(reader, LINES)
    files.close()


# ---- everything at once


def live(folder: Path, seed: int, *, follow: bool, steps: int = 60) -> tuple[Reader, Rotation]:
    """Rotation with reading in between, each stopped somewhere, by one reader after another."""
    draw = random.Random(seed)
    reader = Reader(follow=follow)

    def between() -> None:
        if draw.random() < 0.4:
            if reader.files is None or not follow or draw.random() < 0.2:
                reader.begin([rotation.pattern])
            reader.round(draw.choice((1, 2, 5, 1 << 30)))

    folder.mkdir()
    rotation = Rotation(folder, seed, numbered)
    rotation.between = between
    for _ in range(steps):
        rotation.step()
        between()
    rotation.finish()
    reader.read(rotation.pattern).close()
    return reader, rotation


def wrong(reader: Reader, rotation: Rotation) -> list[bytes]:
    """Lines that were not read, or more than once."""
    return [line for line in rotation.lines if reader.lines[line[:-1]] != 1]


@pytest.mark.parametrize("follow", [False, True])
@pytest.mark.timeout(3600 if HISTORIES > 100 else 120)
def test_every_line_is_read_once_through_any_rotation(
    tmp_path: Path, follow: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_files, "CHUNK", 700)
    for seed in range(HISTORIES):
        reader, rotation = live(tmp_path / str(seed), seed, follow=follow)
        assert wrong(reader, rotation) == [], seed
        assert len(reader.lines) == len(rotation.lines), seed
        shutil.rmtree(tmp_path / str(seed))


@pytest.mark.parametrize(
    ("where", "name", "broken"),
    [
        (Log, "is_in", lambda *_: True),
        (Log, "was_seen", lambda self, status: self.is_known_in(status)),
        (Logs, "find", lambda *_: (None, False)),
        (LogFiles, "_is_part", lambda *_: False),
        (LogFiles, "_is_part", lambda *_: True),
        (_File, "still_has", lambda *_: True),
    ],
)
def test_broken_a_reader_that_does_not_look_is_found(
    tmp_path: Path, where: type, name: str, broken: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_files, "CHUNK", 700)
    monkeypatch.setattr(where, name, broken)
    for seed in range(60):
        reader, rotation = live(tmp_path / str(seed), seed, follow=False)
        if wrong(reader, rotation):
            return
    pytest.fail("sixty histories found nothing")
