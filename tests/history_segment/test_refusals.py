"""What a segment refuses, and what it says then."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bloomtide import errors
from bloomtide._core import Digests, HistorySegment, history_formulas, history_paper_sizes
from tests.files.crafted import with_version

KEYS = [f"https://example.org/{i}" for i in range(40)]


def build(**words: Any) -> bytes:
    """A small segment."""
    rows = [i % 5 for i in range(len(KEYS))]
    return HistorySegment.build(KEYS, rows, [1 + i % 3 for i in range(40)], row_count=5, **words)


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
    data = HistorySegment.build(keys, [key % 7 for key in keys], row_count=7)
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


def test_a_compression_beyond_the_allowed_error_is_refused_with_the_error() -> None:
    a = HistorySegment.from_bytes(build(window=10))
    b = HistorySegment.from_bytes(build(window=10, begin=50))
    with pytest.raises(errors.ParameterError, match=r"max_error.*would be"):
        a.merge_rows(max_error=0.0)
    with pytest.raises(errors.ParameterError, match=r"max_error.*would be"):
        a.join(b, max_error=0.0)
    for other in (build(seed=1), build(policy="plain")):
        with pytest.raises(errors.IncompatibleError):
            a.join(HistorySegment.from_bytes(other), max_error=1.0)


SIZES = history_paper_sizes(100, 10)
FORMULAS: Callable[..., dict[str, float]] = history_formulas


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: HistorySegment.from_bytes(build()).merge_rows(1, max_error=1.0), "factor"),
        (lambda: HistorySegment.from_bytes(build()).count("a", -1), "first"),
        (lambda: HistorySegment.from_bytes(build()).count("a", 0, -1), "last"),
        (lambda: build(policy="smallest"), "policy"),
        (lambda: build(error_rate=0.0), "error_rate"),
        (lambda: build(gate_error=2.0), "gate_error"),
        (lambda: build(sizes={"columns": 5}), "sizes"),
        (lambda: build(sizes={**SIZES, "columns": 0}), "columns"),
        (lambda: build(sizes={**SIZES, "hashes": 65}), "hashes"),
        (lambda: HistorySegment.build(KEYS, [0], row_count=5), "rows"),
        (lambda: HistorySegment.build(["a"], [5], row_count=5), "rows"),
        (lambda: HistorySegment.build(["a"], [0], [0], row_count=5), "counts"),
        (lambda: HistorySegment.build(["a"], [0], [1, 2], row_count=5), "counts"),
        (lambda: history_paper_sizes(100, 10, row_error=0.0), "error_rate"),
        (
            lambda: FORMULAS(elements=1, row_elements=1, rows=1, **{**SIZES, "gate_bits": 0}),
            "gate_bits",
        ),
    ],
)
def test_bad_values_are_refused_by_name(call: Callable[[], object], name: str) -> None:
    with pytest.raises(errors.ParameterError) as caught:
        call()
    assert caught.value.name == name
    assert caught.value.hint
