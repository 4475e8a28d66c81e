"""Files of growing counters that no program of ours writes, with checksums that are right.

Parameters are a record of 64 bytes, total, partitions, 24 bytes of shape, and how many stuck cells
there are. Sections are directory, fields and stuck cells.
"""

from __future__ import annotations

import struct
from typing import Any

import pytest

import bloomtide
from bloomtide import errors
from tests.files.crafted import PRELUDE, sections_of, with_header, with_sections
from tests.golden.make_golden import FOLDER, path_of

GROWING = sorted(
    path.stem
    for path in FOLDER.glob("*.bloom")
    if path.stem.split("-")[0] in ("sbf", "dcf", "psbf", "pdcf")
)
RECORD = PRELUDE + 64
TOTAL, PARTITIONS, SHAPE, STUCK = (RECORD + at for at in (0, 8, 16, 40))
DIRECTORY, FIELDS, STUCK_CELLS = range(3)


def _refused(data: bytes) -> str:
    with pytest.raises(errors.SnapshotError) as caught:
        bloomtide.from_bytes(data)
    assert type(caught.value) is errors.SnapshotError, repr(caught.value)
    assert caught.value.hint
    return str(caught.value)


def _refused_or_sound(data: bytes) -> bool:
    """Whether it was refused; if not, it is another filter, whole and written as we would."""
    try:
        loaded = bloomtide.from_bytes(data)
    except errors.SnapshotError:
        return True
    loaded.validate()
    assert loaded.to_bytes() == data
    return False


def _golden(name: str) -> bytes:
    return path_of(name).read_bytes()


def _changed(data: bytes, number: int, offset: int, new: bytes) -> bytes:
    """`new` at an offset of one section."""
    sections = sections_of(data)
    old = sections[number]
    assert offset + len(new) <= len(old)
    sections[number] = old[:offset] + new + old[offset + len(new) :]
    return with_sections(data, sections)


def _words(*numbers: int) -> bytes:
    """Numbers as a section: one a word, whole lines."""
    packed = struct.pack(f"<{len(numbers)}Q", *numbers)
    return packed + bytes(-len(packed) % 64)


def _list_of(data: bytes, number: int, count_at: int) -> list[int]:
    (count,) = struct.unpack_from("<Q", data, count_at)
    return list(struct.unpack_from(f"<{count}Q", sections_of(data)[number]))


def test_the_craft_itself_is_right() -> None:
    assert len(GROWING) == 14
    for name in GROWING:
        data = _golden(name)
        assert with_sections(data, sections_of(data)) == data
        assert len(sections_of(data)) == 3


@pytest.mark.parametrize("name", GROWING)
def test_a_directory_of_other_widths_is_refused(name: str) -> None:
    data = _golden(name)
    directory = sections_of(data)[DIRECTORY]
    for width in (65, 66, 128, 255):
        assert "64 bits" in _refused(_changed(data, DIRECTORY, 0, bytes([width])))
    others = set(range(65)) - {directory[0]}
    # Another width moves all later fields; once in a while that is a filter too.
    changed = [_changed(data, DIRECTORY, 0, bytes([width])) for width in others]
    assert sum(map(_refused_or_sound, changed)) > 50
    assert "cells" in _refused(_changed(data, DIRECTORY, len(directory) - 1, b"\x01"))


@pytest.mark.parametrize("name", [name for name in GROWING if "empty" not in name])
def test_fields_that_do_not_fit_the_directory_are_refused(name: str) -> None:
    data = _golden(name)
    sections = sections_of(data)
    fields = sections[FIELDS]
    _refused(_changed(data, FIELDS, 0, bytes(len(fields))))  # every run is wider than its counters
    _refused_or_sound(_changed(data, FIELDS, len(fields) - 1, b"\x80"))
    if name == "dcf-classic-odd":  # 331 counters end within a byte
        _refused(_changed(data, FIELDS, len(fields) - 1, b"\x80"))
    for other in (fields[:-64], fields + bytes(64), b""):
        _refused(with_sections(data, [sections[0], other, *sections[2:]]))


def test_a_list_of_stuck_cells_goes_up_and_stays_inside() -> None:
    data = _golden("sbf-saturated")
    stuck = _list_of(data, STUCK_CELLS, STUCK)
    cells = bloomtide.from_bytes(data).stats().cells
    assert len(stuck) > 1
    lies: list[list[int]] = [
        stuck[::-1],
        [stuck[0], *stuck[:-1]],
        [*stuck[:-1], cells],
        [*stuck[:-1], 2**64 - 1],
    ]
    for lie in lies:
        assert "stuck" in _refused(_changed(data, STUCK_CELLS, 0, _words(*lie)))
    for count in (0, len(stuck) - 1, len(stuck) + 1, 2**61, 2**64 - 1):
        _refused(with_header(data, STUCK, count.to_bytes(8, "little")))


@pytest.mark.parametrize("name", ["dcf-blocked", "sbf-blocked"])
def test_a_file_without_lists_promises_none(name: str) -> None:
    data = _golden(name)
    assert _list_of(data, STUCK_CELLS, STUCK) == []
    for count in (9, 2**64 - 1):
        assert "sections" in _refused(with_header(data, STUCK, count.to_bytes(8, "little")))


def test_a_dynamic_counter_below_the_largest_value_is_not_stuck() -> None:
    assert "stuck" in _refused(with_header(_golden("dcf-blocked"), STUCK, b"\x01"))  # cell 0


def test_a_counter_at_the_largest_value_is_stuck_without_a_list() -> None:
    data = _golden("dcf-stuck")
    loaded: Any = bloomtide.from_bytes(data)
    full = [cell for cell, value in enumerate(loaded.cells()) if value == 2**64 - 1]
    assert (len(full), _list_of(data, STUCK_CELLS, STUCK)) == (loaded.stats().saturated, [])
    sections = [*sections_of(data)[:STUCK_CELLS], _words(full[0])]
    listed = with_header(with_sections(data, sections), STUCK, b"\x01")
    assert "stuck" in _refused(listed)


@pytest.mark.parametrize(
    ("name", "offset", "new", "blame"),
    [
        ("psbf-blocked", PARTITIONS, _words(0)[:8], "partitions"),
        ("psbf-blocked", PARTITIONS, _words(641)[:8], "partitions"),
        ("sbf-blocked", PARTITIONS, _words(2)[:8], "partitions"),
        ("dcf-blocked", PARTITIONS, _words(2)[:8], "partitions"),
        ("dcf-blocked", SHAPE, struct.pack("<d", 1.5), "shrink"),
        ("dcf-blocked", SHAPE, struct.pack("<d", float("nan")), "shrink"),
        ("dcf-blocked", SHAPE + 8, b"\x02", "shape"),
        ("dcf-blocked", SHAPE + 9, b"\x01", "shape"),
        ("sbf-blocked", SHAPE, struct.pack("<d", -0.5), "slack"),
        ("sbf-blocked", SHAPE, struct.pack("<d", float("nan")), "slack"),
        ("sbf-blocked", SHAPE + 8, struct.pack("<d", 65.0), "design_bits"),
        ("sbf-blocked", SHAPE + 8, struct.pack("<d", float("nan")), "design_bits"),
        ("sbf-blocked", SHAPE + 16, b"\x02", "shape"),
        ("sbf-blocked", SHAPE + 17, b"\x02", "shape"),
        ("sbf-blocked", SHAPE + 18, b"\x01", "shape"),
        ("dcf-blocked", PRELUDE + 4, b"\x00", "counter_bits"),
        ("dcf-blocked", PRELUDE + 4, b"\x21", "counter_bits"),
        ("dcf-blocked", PRELUDE + 3, b"\x00", "policy"),
        ("dcf-blocked", PRELUDE + 3, b"\x04", "policy"),
        ("dcf-blocked", PRELUDE + 3, b"\x03", "policy"),
        ("dcf-blocked", PRELUDE + 16, _words(639)[:8], "cells"),
    ],
)
def test_parameters_that_no_constructor_takes(
    name: str, offset: int, new: bytes, blame: str
) -> None:
    assert blame in _refused(with_header(_golden(name), offset, new))


@pytest.mark.parametrize("name", ["dcf-blocked", "psbf-blocked"])
def test_a_total_below_the_capacity_is_refused(name: str) -> None:
    for total in (0, 59):
        data = with_header(_golden(name), TOTAL, total.to_bytes(8, "little"))
        assert "total" in _refused(data)
