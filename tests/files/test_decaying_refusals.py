"""Files of fading counters that no program of ours writes, with checksums that are right."""

from __future__ import annotations

import struct

import pytest

import bloomtide
from bloomtide import errors
from tests.files.crafted import PRELUDE, sections_of, with_header, with_sections
from tests.golden.make_golden import FOLDER, path_of

FADING = sorted(path.stem for path in FOLDER.glob("tbf-*.bloom"))
REST = PRELUDE + 64
NAN, INFINITE = struct.pack("<d", float("nan")), struct.pack("<d", float("inf"))
PARAMETERS = {
    "storage": (REST, [b"\0", b"\x09", b"\xff"]),
    "rounding": (REST + 1, [b"\0", b"\3", b"\xff"]),
    "fraction_bits": (REST + 2, [b"\x1d", b"\xff"]),
    "time": (REST + 3, [b"\2", b"\xff"]),
    "reserved": (REST + 5, [b"\1", b"\0\0\1"]),
    "decay": (REST + 8, [NAN, INFINITE, struct.pack("<d", -0.1), struct.pack("<d", 1.1)]),
    "epoch": (REST + 16, [NAN, INFINITE, bytes(8), struct.pack("<d", 0.01)]),
    "origin": (REST + 24, [NAN, INFINITE, struct.pack("<d", -1)]),
    "half_life": (REST + 32, [NAN, INFINITE, struct.pack("<d", -1)]),
    "max_jump": (REST + 40, [NAN, struct.pack("<d", -1)]),
    "now": (REST + 48, [struct.pack("<q", 2**62), struct.pack("<q", -(2**62))]),
    "since": (REST + 96, [struct.pack("<q", 2**62), struct.pack("<q", -(2**62))]),
    "layout": (PRELUDE + 2, [b"\0", b"\3"]),
    "policy": (PRELUDE + 3, [b"\0", b"\3"]),
    "counter_bits": (PRELUDE + 4, [b"\0", b"\4", b"\x08", b"\x40"]),
}


def _refused(data: bytes) -> str:
    with pytest.raises(errors.SnapshotError) as caught:
        bloomtide.from_bytes(data)
    assert type(caught.value) is errors.SnapshotError, repr(caught.value)
    assert caught.value.hint
    return str(caught.value)


def test_the_craft_itself_is_right() -> None:
    assert len(FADING) >= 6
    for name in FADING:
        data = path_of(name).read_bytes()
        assert with_sections(data, sections_of(data)) == data


@pytest.mark.parametrize("name", FADING)
@pytest.mark.parametrize("field", PARAMETERS)
def test_a_parameter_that_no_version_writes_is_refused(name: str, field: str) -> None:
    data = path_of(name).read_bytes()
    offset, values = PARAMETERS[field]
    for value in values:
        _refused(with_header(data, offset, value))


@pytest.mark.parametrize("name", [name for name in FADING if "empty" not in name])
def test_a_stamp_of_an_empty_block_or_beyond_the_last_is_refused(name: str) -> None:
    data = path_of(name).read_bytes()
    stamps, *rest = sections_of(data)
    _refused(with_sections(data, [stamps[:-4] + b"\1\0\0\0", *rest]))
    _refused(with_sections(data, [stamps[:3] + b"\x80" + stamps[4:], *rest]))
    _refused(with_sections(data, [stamps + bytes(64), *rest]))


def test_values_without_a_time_are_refused() -> None:
    data = path_of("tbf-basic-blocked").read_bytes()
    never = struct.pack("<q", -(2**63))
    fields = ((REST + 3, b"\0"), (REST + 48, bytes(8)), (REST + 88, bytes(8)), (REST + 96, never))
    for offset, value in fields:
        data = with_header(data, offset, value)
    assert "no time yet" in _refused(data)


def test_a_strict_count_that_is_too_small_is_refused() -> None:
    data = path_of("tbf-basic-blocked").read_bytes()
    assert "cannot have been" in _refused(with_header(data, REST + 80, b"\1"))


def test_a_value_beyond_the_counter_bits_is_refused() -> None:
    data = path_of("tbf-basic-blocked").read_bytes()
    assert "largest" in _refused(with_header(data, PRELUDE + 4, b"\x10"))


def test_the_stamp_of_an_empty_filter_is_refused() -> None:
    data = path_of("tbf-empty").read_bytes()
    stamps, *rest = sections_of(data)
    _refused(with_sections(data, [b"\1" + stamps[1:], *rest]))
