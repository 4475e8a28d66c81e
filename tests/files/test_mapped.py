"""BloomFilter.open in one process: modes, parameters, sealing, closing."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bloomtide
from bloomtide import BloomFilter, errors
from tests.waiting import until

SECRET = bytes(range(16))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shared.bloom"


def _create(path: Path, *keys: Any) -> None:
    with BloomFilter.open(path, 1000, 0.01, mode="c") as shared:
        shared.add_many(list(keys))


@pytest.mark.parametrize(
    "options",
    [
        {"capacity": 1000, "error_rate": 0.01},
        {"capacity": 1000, "error_rate": 0.1},
        {"capacity": 1000, "error_rate": 1e-6},
        {"bits": 10_007, "hashes": 4, "paper": {"derivation": "double"}, "seed": 3},
        {"capacity": 1000, "error_rate": 0.01, "hash": "keyed", "secret": SECRET},
    ],
    ids=["blocked", "few hashes", "classic", "sizes", "keyed"],
)
def test_a_shared_file_is_an_ordinary_filter_and_snapshot(
    path: Path, options: dict[str, Any]
) -> None:
    ordinary = BloomFilter(**options)
    keys = [*range(500), "text", b"bytes"]
    ordinary.add_many(keys)
    with BloomFilter.open(path, mode="c", **options) as shared:
        assert (shared.path, shared.closed) == (str(path), False)
        assert shared.add_many(keys).tolist() == BloomFilter(**options).add_many(keys).tolist()
        assert shared.contains_many(keys).all()
        assert shared.positions("text") == ordinary.positions("text")
        assert shared.stats() == ordinary.stats()
        assert shared == ordinary
        assert shared.to_bytes() == ordinary.to_bytes()
        shared.validate()
    assert bloomtide.load(path) == ordinary
    assert BloomFilter.load(path).to_bytes() == ordinary.to_bytes()
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_what_was_added_is_there_when_it_is_opened_again(path: Path) -> None:
    _create(path, "a", "b")
    with BloomFilter.open(path) as shared:
        assert "a" in shared
        assert "c" not in shared
        assert (shared.capacity, shared.error_rate) == (1000, 0.01)
    with BloomFilter.open(path, mode="r+") as shared:
        assert shared.add("c")
        assert not shared.add("a")
    with BloomFilter.open(path, 1000, 0.01, mode="c") as shared:
        assert shared.contains_many(["a", "b", "c"]).all()


def test_a_saved_snapshot_can_be_opened(path: Path) -> None:
    made = BloomFilter(1000, 0.01)
    made.add("a")
    made.save(path)
    with BloomFilter.open(path, mode="r+") as shared:
        assert "a" in shared
        shared.add("b")
    assert bloomtide.load(path).contains_many(["a", "b"]).all()


def test_reading_changes_no_byte(path: Path) -> None:
    _create(path, "a")
    before = path.read_bytes(), path.stat().st_mtime_ns
    with BloomFilter.open(path) as shared:
        assert "a" in shared
        shared.stats()
        shared.to_bytes()
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before


@pytest.mark.parametrize(
    "change",
    [
        lambda shared: shared.add("x"),
        lambda shared: shared.add_many(["x"]),
        lambda shared: shared.add_many(iter(["x"])),
        lambda shared: shared.clear(),
        lambda shared: shared.merge(BloomFilter(1000, 0.01)),
        lambda shared: shared.__ior__(BloomFilter(1000, 0.01)),
        lambda shared: shared.__iand__(BloomFilter(1000, 0.01)),
    ],
    ids=["add", "add_many", "add_many of an iterator", "clear", "merge", "|=", "&="],
)
def test_a_reader_cannot_write(path: Path, change: Callable[[BloomFilter], object]) -> None:
    _create(path, "a")
    before = path.read_bytes()
    with BloomFilter.open(path) as shared:
        with pytest.raises(errors.ReadOnlyError) as caught:
            change(shared)
        assert caught.value.path == str(path)
        assert "r+" in caught.value.hint
        assert "x" not in shared
    assert path.read_bytes() == before


def test_copies_and_unions_live_in_memory(path: Path) -> None:
    _create(path, "a")
    other = BloomFilter(1000, 0.01)
    other.add("b")
    with BloomFilter.open(path) as shared:
        both, copied = shared | other, shared.copy()
    assert (both.path, copied.path) == (None, None)
    assert both.contains_many(["a", "b"]).all()
    assert copied.add("c")
    assert not bloomtide.load(path).contains_many(["b", "c"]).any()


DIFFERENT = [
    ({"capacity": 2000, "error_rate": 0.01}, "capacity"),
    ({"capacity": 1000, "error_rate": 0.02}, "error_rate"),
    ({"capacity": 1000, "error_rate": 0.01, "seed": 1}, "seed"),
    ({"capacity": 1000, "error_rate": 0.01, "layout": "classic"}, "layout"),
    ({"capacity": 1000, "error_rate": 0.01, "hash": "keyed", "secret": SECRET}, "hash"),
    ({"bits": 4096, "hashes": 3}, "bits"),
]


@pytest.mark.parametrize(("options", "field"), DIFFERENT, ids=[field for _, field in DIFFERENT])
@pytest.mark.parametrize("mode", ["r", "r+", "c"])
def test_parameters_that_disagree_with_the_file_are_refused(
    path: Path, options: dict[str, Any], field: str, mode: Any
) -> None:
    _create(path, "a")
    before = path.read_bytes()
    with pytest.raises(errors.IncompatibleError) as caught:
        BloomFilter.open(path, mode=mode, **options)
    # Other sizes may show first as the number of cells they lead to.
    assert caught.value.field in {field, "bits", "hashes", "layout", "capacity"}
    assert caught.value.hint
    assert path.read_bytes() == before
    assert "a" in BloomFilter.load(path)


@pytest.mark.parametrize("mode", ["w", "a", "", "rb", "x"])
def test_other_modes_are_refused(path: Path, mode: Any) -> None:
    with pytest.raises(errors.ParameterError) as caught:
        BloomFilter.open(path, 1000, 0.01, mode=mode)
    assert caught.value.name == "mode"
    assert caught.value.hint
    assert not path.exists()


def test_only_creating_needs_sizes(path: Path) -> None:
    with pytest.raises(errors.ParameterError) as caught:
        BloomFilter.open(path, mode="c")
    assert caught.value.name == "capacity"
    assert not path.exists()
    for mode in ("r", "r+"):
        with pytest.raises(errors.StorageError) as missing:
            BloomFilter.open(path, 1000, 0.01, mode=mode)
        assert missing.value.errno == errno.ENOENT
        assert not path.exists()
    _create(path, "a")
    with BloomFilter.open(path, mode="c") as shared:
        assert "a" in shared


def test_bad_sizes_create_nothing(path: Path) -> None:
    for capacity, rate, name in [(0, 0.01, "capacity"), (10, 2.0, "error_rate")]:
        with pytest.raises(errors.ParameterError) as caught:
            BloomFilter.open(path, capacity, rate, mode="c")
        assert caught.value.name == name
    assert not path.exists()


def test_other_kinds_and_other_files_are_refused_untouched(path: Path) -> None:
    bloomtide.CountingBloomFilter(10, 0.1).save(path)
    for content, error in [
        (path.read_bytes(), errors.KindError),
        (b"", errors.SnapshotError),
        (b"some notes\n" * 100, errors.NotASnapshotError),
    ]:
        path.write_bytes(content)
        for mode in ("r", "r+", "c"):
            with pytest.raises(error):
                BloomFilter.open(path, 10, 0.1, mode=mode)
            assert path.read_bytes() == content


def test_a_file_open_for_writing_is_not_loaded(path: Path) -> None:
    with BloomFilter.open(path, 1000, 0.01, mode="c") as shared:
        shared.add("a")
        for load in (bloomtide.load, BloomFilter.load):
            with pytest.raises(errors.UnsealedError) as caught:
                load(path)
            assert "r+" in caught.value.hint
        with pytest.raises(errors.UnsealedError):
            bloomtide.from_bytes(path.read_bytes())
    assert "a" in bloomtide.load(path)


def test_the_last_of_several_writers_seals(path: Path) -> None:
    first = BloomFilter.open(path, 1000, 0.01, mode="c")
    second = BloomFilter.open(path, mode="r+")  # must not wait for the first to close
    first.add("a")
    assert "a" in second, "both map the same pages"
    first.close()
    with pytest.raises(errors.UnsealedError):
        bloomtide.load(path)
    second.add("b")
    second.close()
    assert bloomtide.load(path).contains_many(["a", "b"]).all()


def test_a_writer_is_sealed_when_it_is_forgotten(path: Path) -> None:
    shared = BloomFilter.open(path, 1000, 0.01, mode="c")
    shared.add("a")
    del shared
    assert "a" in bloomtide.load(path)


def test_every_flipped_bit_of_a_sealed_file_is_refused_on_open(path: Path) -> None:
    with BloomFilter.open(path, 30, 0.05, mode="c") as shared:
        shared.add_many(["a", "b", "c"])
    stored = path.read_bytes()
    for offset in range(len(stored)):
        damaged = bytearray(stored)
        damaged[offset] ^= 1 << offset % 8
        path.write_bytes(damaged)
        for mode in ("r", "r+"):
            try:
                BloomFilter.open(path, mode=mode).close()
            except errors.SnapshotError:
                continue
            pytest.fail(f"byte {offset} was damaged and mode {mode} did not see it")
        assert path.read_bytes() == damaged
    path.write_bytes(stored)
    assert "a" in BloomFilter.open(path)


def test_every_cut_of_a_sealed_file_is_refused_on_open(path: Path) -> None:
    _create(path, "a")
    stored = path.read_bytes()
    for length in range(0, len(stored), 13):
        path.write_bytes(stored[:length])
        for mode in ("r", "r+"):
            with pytest.raises(errors.SnapshotError):
                BloomFilter.open(path, mode=mode)
        assert path.stat().st_size == length


def test_after_close_every_verb_says_so(path: Path) -> None:
    other = BloomFilter(1000, 0.01)
    shared = BloomFilter.open(path, 1000, 0.01, mode="c")
    shared.add("a")
    shared.close()
    shared.close()
    assert shared.closed
    verbs: list[Callable[[], object]] = [
        lambda: shared.add("b"),
        lambda: shared.add_many(["b"]),
        lambda: "a" in shared,
        lambda: shared.contains_many(["a"]),
        shared.stats,
        shared.estimated_items,
        shared.validate,
        shared.to_bytes,
        shared.copy,
        shared.clear,
        shared.flush,
        lambda: shared.merge(other),
        lambda: other.merge(shared),
        lambda: shared | other,
        lambda: other | shared,
        lambda: shared.save(path),
        shared.__enter__,
    ]
    for verb in verbs:
        with pytest.raises(errors.ClosedError) as caught:
            verb()
        assert caught.value.path == str(path)
        assert caught.value.hint
    assert "a" in bloomtide.load(path)


def test_an_exception_inside_with_still_seals(path: Path) -> None:
    shared = BloomFilter.open(path, 1000, 0.01, mode="c")
    with pytest.raises(ZeroDivisionError), shared:
        shared.add_many(1 // 0 if key == "b" else key for key in "ab")
    assert shared.closed
    assert "a" in bloomtide.load(path)


def test_closing_while_another_thread_adds_seals_what_went_in(path: Path) -> None:
    """Checksums made while bits still change would never match again."""
    sizes = [1_000_000 << attempt for attempt in range(6)]
    assert any(_bits_came_after_close_was_called(path, size) for size in sizes)


def _bits_came_after_close_was_called(path: Path, size: int) -> bool:
    """Closes a filter in the midst of a batch; False if the batch was over too early."""
    keys = np.arange(size)
    shared = BloomFilter.open(path, keys.size, 0.01, mode="c")
    written = np.memmap(path, np.uint8, "r")
    middle = slice(written.size // 4, 3 * written.size // 4)  # bits only, no header, no checksums

    def add() -> None:
        with contextlib.suppress(errors.ClosedError):
            shared.add_many(keys, threads=2)

    adding, closing = threading.Thread(target=add), threading.Thread(target=shared.close)
    adding.start()
    until(lambda: written[middle].any())
    closing.start()
    until(lambda: shared.closed)
    early = written[middle].tobytes()
    closing.join()
    sealed = path.read_bytes()
    BloomFilter.load(path).validate()
    adding.join()
    assert path.read_bytes() == sealed, "nothing changes after close returned"
    late = written[middle].tobytes()
    path.unlink()
    return late != early


def test_an_overfull_file_warns_its_writer_and_whoever_opens_it(path: Path) -> None:
    with BloomFilter.open(path, 1000, 0.01, mode="c") as shared:
        with pytest.warns(errors.OverfullWarning, match="made for 1000") as found:
            _ = [shared.add(number) for number in range(8000)]
        assert len(found) == 1
    for mode in ("r", "r+"):
        with pytest.warns(errors.OverfullWarning), BloomFilter.open(path, mode=mode) as shared:
            assert 7999 in shared


def test_flush_and_close_of_a_filter_in_memory_do_no_harm() -> None:
    with BloomFilter(100, 0.01) as made:
        made.add("a")
        made.flush()
    assert made.path is None


def test_a_batch_whose_own_keys_close_the_filter_stops_there(path: Path) -> None:
    """No bit may change after the checksums were written, or the file is lost."""
    shared = BloomFilter.open(path, 1000, 0.01, mode="c")

    def keys() -> Iterator[str]:
        yield "before"
        shared.close()
        yield "after"

    with pytest.raises(errors.ClosedError):
        shared.add_many(keys())
    assert "after" not in BloomFilter.load(path)


def _maps(path: Path) -> int:
    """How often this process has the file mapped or open."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    links = [link for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    opened = [os.fspath(link.readlink()) for link in links]
    names = [line.split(maxsplit=5)[-1] for line in lines] + opened
    return sum(name.removesuffix(" (deleted)") == str(path) for name in names)


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc")
@pytest.mark.parametrize("mode", ["r", "r+"])
def test_close_gives_the_map_and_the_space_of_a_deleted_file_back(path: Path, mode: Any) -> None:
    _create(path, "a")
    shared = BloomFilter.open(path, mode=mode)
    assert "a" in shared
    assert _maps(path) == 2
    path.unlink()
    assert _maps(path) == 2
    shared.close()
    assert _maps(path) == 0
    with pytest.raises(errors.ClosedError):
        _ = "a" in shared


def test_a_question_that_is_being_asked_when_the_filter_is_closed_gets_no_wrong_answer(
    path: Path,
) -> None:
    """The map goes under it, so it raises; "no" would be a lie."""
    _create(path, *range(100))
    shared = BloomFilter.open(path)

    def keys() -> Iterator[int]:
        yield from range(50)
        shared.close()
        yield from range(50, 100)

    with pytest.raises(errors.ClosedError):
        shared.contains_many(keys())
