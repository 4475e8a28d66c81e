"""Files of growing counters that no program of ours writes, with checksums that are right.

Parameters are a record of 64 bytes, total, partitions and 16 bytes of shape. Sections are directory
and fields.
"""

from __future__ import annotations

import struct

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
TOTAL, PARTITIONS, SHAPE = (RECORD + at for at in (0, 8, 16))
DIRECTORY, FIELDS = range(2)


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


def test_the_craft_itself_is_right() -> None:
    assert len(GROWING) == 13
    for name in GROWING:
        data = _golden(name)
        assert with_sections(data, sections_of(data)) == data
        assert len(sections_of(data)) == 2


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
        _refused(with_sections(data, [sections[0], other]))


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
