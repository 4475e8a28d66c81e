"""What a segment refuses, and what it says then."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bloomtide import errors
from bloomtide._core import Digests, HistoryBuffer, HistorySegment
from tests.files.crafted import with_version

KEYS = [f"https://example.org/{i}" for i in range(40)]


def build(keys: list[Any] = KEYS, *, rows: int = 5, error_rate: float = 0.01, **more: Any) -> bytes:
    """A small segment."""
    buffer = HistoryBuffer(window=1, rows=rows, names=0)
    for i, key in enumerate(keys):
        buffer.add(key, 1 + i % 3, i % rows)
    return buffer.seal(0, error_rate=error_rate, **more).segment


def test_damage_in_any_byte_of_a_file_is_refused_by_name(tmp_path: Path) -> None:
    data = build()
    path = tmp_path / "a.segment"
    for at in range(len(data)):
        path.write_bytes(data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :])
        with pytest.raises(errors.SnapshotError) as caught:
            HistorySegment.open(path).validate()
        assert str(path) in str(caught.value)


def test_a_file_that_was_cut_is_refused(tmp_path: Path) -> None:
    data = build()
    path = tmp_path / "a.segment"
    for length in {1, 7, 100, 300, len(data) // 2, len(data) - 1}:
        path.write_bytes(data[:length])
        with pytest.raises(errors.TruncatedError):
            HistorySegment.open(path)


def test_files_of_others_and_of_later_versions_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.segment"
    path.write_bytes(b"PAR1" * 100)
    with pytest.raises(errors.NotASnapshotError):
        HistorySegment.open(path)
    path.write_bytes(b"")
    with pytest.raises(errors.NotASnapshotError):
        HistorySegment.open(path)
    data = build()
    with pytest.raises(errors.ChecksumError):
        HistorySegment.from_bytes(data[:10] + b"\x03\x00" + data[12:])
    with pytest.raises(errors.VersionError):
        HistorySegment.from_bytes(with_version(data, 3))
    with pytest.raises(errors.StorageError):
        HistorySegment.open(tmp_path / "none")
    with pytest.raises(errors.StorageError):
        HistorySegment.open(tmp_path)


def test_a_question_meets_damage_only_where_it_looks(tmp_path: Path) -> None:
    keys = list(range(30_000))
    data = build(keys, rows=7)
    path = tmp_path / "a.segment"
    middle = len(data) // 2
    path.write_bytes(data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :])
    segment = HistorySegment.open(path)
    whole = HistorySegment.from_bytes(data)
    answers: dict[int, int] = {}
    refusals: list[str] = []
    for key in keys[:2000]:
        try:
            answers[key] = segment.count(key)
        except errors.ChecksumError as error:
            refusals.append(str(error))
    assert answers
    assert answers == {key: whole.count(key) for key in answers}
    assert refusals
    assert all(str(path) in refusal for refusal in refusals)


def test_a_mapped_file_answers_as_its_bytes_do(tmp_path: Path) -> None:
    path = tmp_path / "a.segment"
    path.write_bytes(build())
    mapped, owned = HistorySegment.open(path), HistorySegment.from_bytes(build())
    assert mapped.info == owned.info
    for key in KEYS:
        assert mapped.rows_of(key).tolist() == owned.rows_of(key).tolist()
    path.unlink()
    assert mapped.count(KEYS[0]) == owned.count(KEYS[0])


def test_digests_of_another_seed_are_refused() -> None:
    segment = HistorySegment.from_bytes(build())
    with pytest.raises(errors.IncompatibleError, match="seed"):
        segment.count_many(Digests(KEYS, seed=1))
    with pytest.raises(errors.IncompatibleError, match="hash"):
        segment.count_many(Digests(KEYS, hash="keyed", secret=bytes(16)))


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: HistorySegment.from_bytes(build()).count("a", -1), "first"),
        (lambda: HistorySegment.from_bytes(build()).count("a", 0, -1), "last"),
        (lambda: build(error_rate=0.0), "error_rate"),
        (lambda: build(gate_error=2.0), "gate_error"),
    ],
)
def test_bad_values_are_refused_by_name(call: Callable[[], object], name: str) -> None:
    with pytest.raises(errors.ParameterError) as caught:
        call()
    assert caught.value.name == name
    assert caught.value.hint
