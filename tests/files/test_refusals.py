"""Files of other programs, other versions and other kinds, and files that lie about themselves."""

from __future__ import annotations

import gzip
import io
import pickle
import struct
import zipfile
from pathlib import Path
from typing import Any

import pytest

import bloomtide
from bloomtide import (
    BloomFilter,
    CountingBloomFilter,
    DynamicCountFilter,
    PartitionedDynamicCountFilter,
    PartitionedSpectralBloomFilter,
    ScalableBloomFilter,
    SpectralBloomFilter,
    UrlFilter,
    errors,
)
from tests.files.another_process import run
from tests.files.crafted import (
    FILE_LENGTH_AT,
    HEADER_LENGTH_AT,
    PRELUDE,
    SECTIONS_AT,
    STATE_AT,
    VERSION_AT,
    cells_of,
    checksum_offset,
    crc32c,
    number_at,
    sections_of,
    with_cells,
    with_header,
    with_sections,
)
from tests.golden.make_golden import MAKERS, path_of

KINDS: dict[str, Any] = {
    "bloom-blocked": BloomFilter,
    "scalable": ScalableBloomFilter,
    "counting-4": CountingBloomFilter,
    "sbf-classic-keyed": SpectralBloomFilter,
    "dcf-stuck": DynamicCountFilter,
    "psbf-blocked": PartitionedSpectralBloomFilter,
    "pdcf-classic": PartitionedDynamicCountFilter,
    "url": UrlFilter,
}
BLOOM = path_of("bloom-classic-odd").read_bytes()


def _refused(data: bytes) -> errors.SnapshotError:
    with pytest.raises(errors.SnapshotError) as caught:
        bloomtide.from_bytes(data)
    assert caught.value.hint
    return caught.value


def test_the_craft_itself_is_right() -> None:
    assert crc32c(b"123456789") == 0xE3069283
    for name in MAKERS:
        stored = path_of(name).read_bytes()
        assert with_header(stored, VERSION_AT, stored[10:12]) == stored
    assert with_cells(BLOOM, cells_of(BLOOM)) == BLOOM


# --- Not ours ---------------------------------------------------------------------------------


def _zip() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a.txt", "a")
    return file.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"hello world\n" * 50,
        bytes(10_000),
        b"\xff" * 10_000,
        gzip.compress(BLOOM, mtime=0),
        _zip(),
        pickle.dumps({"a": 1}),
        b"\x89PNG\r\n\x1a\n" + bytes(500),
        b"SQLite format 3\x00" + bytes(4080),
        b"PAR1" + bytes(100) + b"PAR1",
        BLOOM[1:],
        b" " + BLOOM,
        BLOOM[:8].lower() + BLOOM[8:],
    ],
    ids=lambda content: repr(content[:8]),
)
def test_foreign_files(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "foreign"
    path.write_bytes(content)
    for kind in (bloomtide, *KINDS.values()):
        loader: Any = kind
        with pytest.raises(errors.NotASnapshotError) as caught:
            loader.from_bytes(content)
        assert caught.value.hint
        with pytest.raises(errors.NotASnapshotError) as caught:
            loader.load(path)
        assert caught.value.path == str(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("version", [2, 3, 255, 65535])
def test_a_newer_version_is_named(version: int) -> None:
    new = version.to_bytes(2, "little")
    found = _refused(with_header(BLOOM, VERSION_AT, new))
    assert isinstance(found, errors.VersionError)
    assert (found.expected, found.got) == (1, version)
    # The header's checksum is the same in every version, so damage is told from a newer format.
    assert isinstance(_refused(BLOOM[:10] + new + BLOOM[12:]), errors.ChecksumError)


@pytest.mark.parametrize("name", KINDS)
def test_another_kind_is_named(name: str, tmp_path: Path) -> None:
    stored = path_of(name).read_bytes()
    for other, kind in KINDS.items():
        if other == name:
            assert type(kind.from_bytes(stored)) is kind
            assert type(bloomtide.from_bytes(stored)) is kind
            assert type(bloomtide.load(path_of(name))) is kind
            continue
        for load, source in ((kind.from_bytes, stored), (kind.load, path_of(name))):
            with pytest.raises(errors.KindError) as caught:
                load(source)
            assert caught.value.got == name.split("-")[0]
            assert caught.value.expected == other.split("-")[0]
            assert caught.value.hint


# --- Lies -------------------------------------------------------------------------------------

HUGE = 1 << 45


def _claims(data: bytes) -> list[bytes]:
    """The same few bytes, claiming more and more."""
    sections_at = PRELUDE + number_at(data, PRELUDE - 28, 4)
    huge_cells = with_header(data, PRELUDE + 16, HUGE.to_bytes(8, "little"))
    huge_section = with_header(huge_cells, sections_at, (HUGE // 8).to_bytes(8, "little"))
    return [
        huge_cells,
        with_header(data, sections_at, (HUGE // 8).to_bytes(8, "little")),
        with_header(data, sections_at, b"\xff" * 8),
        huge_section,
        with_header(huge_section, FILE_LENGTH_AT, (HUGE // 8 + 1000).to_bytes(8, "little")),
        with_header(data, FILE_LENGTH_AT, b"\xff" * 8),
        with_header(data, SECTIONS_AT, b"\xff\xff\xff\xff"),
        with_header(data, SECTIONS_AT, b"\x00\x00\x00\x10"),
        with_header(data, SECTIONS_AT - 4, b"\xff\xff\xff\xff"),
        with_header(data, HEADER_LENGTH_AT, b"\xff\xff\xff\xff"),
        with_header(data, HEADER_LENGTH_AT, (1 << 20).to_bytes(4, "little")),
    ]


STATUS = Path("/proc/self/status")


def _peak() -> int:
    """The most address space this process ever had, in bytes."""
    with STATUS.open() as status:
        line = next(line for line in status if line.startswith("VmPeak"))
    return int(line.split()[1]) * 1024


def _load_lies(folder: Path) -> int:
    """Growth of the address space over all lies, by `from_bytes`, `load` and `open`."""
    bloomtide.from_bytes(BLOOM)
    lies = [lie for name in KINDS for lie in _claims(path_of(name).read_bytes())]
    before = _peak()
    for lie in lies:
        _refused(lie)
        path = folder / "lie.bloom"
        path.write_bytes(lie)
        for act in (bloomtide.load, BloomFilter.open):
            with pytest.raises(errors.SnapshotError):
                act(path)
    return _peak() - before


@pytest.mark.skipif(not STATUS.exists(), reason="only Linux tells the peak of the address space")
def test_no_more_is_allocated_than_the_file_is_long(tmp_path: Path) -> None:
    growth = run(_load_lies, tmp_path)
    assert isinstance(growth, int), growth
    assert growth < 16 << 20


@pytest.mark.parametrize(
    "name",
    [
        "bloom-blocked",
        "bloom-classic-odd",
        "scalable",
        "counting-4",
        "counting-blocked",
        "sbf-blocked",
        "sbf-classic-keyed",
        "psbf-blocked",
        "dcf-classic-odd",
        "pdcf-classic",
        "dcf-stuck",
    ],
)
def test_any_header_with_a_right_checksum_loads_soundly_or_is_refused(name: str) -> None:
    """Every bit of the header flipped and its checksum mended: no panic, no other exception."""
    stored = path_of(name).read_bytes()
    refused = 0
    # Magic and header length are what the craft itself finds the checksum by.
    bits = [bit for bit in range(checksum_offset(stored) * 8) if not 96 <= bit < 128]
    for bit in bits:
        flipped = bytes([stored[bit // 8] ^ 1 << bit % 8])
        data = with_header(stored, bit // 8, flipped)
        try:
            loaded = bloomtide.from_bytes(data)
        except errors.SnapshotError:
            refused += 1
        else:
            # A seed or a goal may differ; then it is that other filter, whole and sound.
            loaded.validate()
            assert loaded.to_bytes() == data
    assert refused > PRELUDE * 7, "nearly every bit of the prelude matters"


COUNTING = path_of("counting-blocked").read_bytes()


@pytest.mark.parametrize(
    ("offset", "width", "value", "blame"),
    [
        (2, 1, 0, "layout"),
        (2, 1, 3, "layout"),
        (1, 1, 2, "derivation"),
        (1, 1, 3, "derivation"),
        *((8, 4, hashes, "hashes") for hashes in (0, 3, 5, 6, 7, 16, 64)),
        (16, 8, 639, "cells"),  # 640 counters are five blocks, and the section has room for them
        (16, 8, 513, "cells"),
    ],
)
def test_blocked_counters_that_no_constructor_makes(
    offset: int, width: int, value: int, blame: str
) -> None:
    new = value.to_bytes(width, "little")
    assert blame in str(_refused(with_header(COUNTING, PRELUDE + offset, new)))


@pytest.mark.parametrize("hashes", [1, 2, 8])
def test_blocked_counters_with_another_number_of_groups_are_that_other_filter(hashes: int) -> None:
    data = with_header(COUNTING, PRELUDE + 8, hashes.to_bytes(4, "little"))
    loaded = CountingBloomFilter.from_bytes(data)
    assert (loaded.layout, loaded.hashes) == ("blocked", hashes)
    assert loaded.to_bytes() == data


def test_a_filter_of_counters_says_its_layout_as_every_other_does() -> None:
    for name in ("counting-4", "counting-keyed", "bloom-classic"):
        stored = path_of(name).read_bytes()
        assert stored[PRELUDE + 2] == 2
        assert "layout" in str(_refused(with_header(stored, PRELUDE + 2, b"\x00")))
    assert COUNTING[PRELUDE + 2] == 1


@pytest.mark.parametrize("state", [b"LIVE\0\0\0\0", b"OPEN\0\0\0\0", bytes(8)])
def test_a_snapshot_that_is_not_sealed(state: bytes) -> None:
    found = _refused(BLOOM[:STATE_AT] + state + BLOOM[STATE_AT + 8 :])
    assert isinstance(found, errors.UnsealedError) == state.startswith(b"LIVE")


def test_cells_beyond_the_last_bit_are_refused() -> None:
    """1021 bits fill two lines of 512 but for three: those must be zero, or the fill is wrong."""
    cells = bytearray(cells_of(BLOOM))
    cells[-1] |= 0x80
    _refused(with_cells(BLOOM, bytes(cells)))


def test_a_lying_section_cannot_borrow_from_the_next() -> None:
    """Two sections whose sum is right but whose single lengths are not."""
    stored = path_of("scalable").read_bytes()
    at = PRELUDE + number_at(stored, PRELUDE - 28, 4)
    first, second = struct.unpack_from("<QQ", stored, at)
    _refused(with_header(stored, at, struct.pack("<QQ", first + 64, second - 64)))
    _refused(with_header(stored, at, struct.pack("<QQ", first + second, 0)))


# --- Goals --------------------------------------------------------------------------------------


def _with_first_part(data: bytes, record: int, bits: int) -> bytes:
    """Another number of cells in a part's record, and as many lines of cells as that needs."""
    changed = with_header(data, record + 16, bits.to_bytes(8, "little"))
    lines = -(-bits // 512)
    first, *rest = sections_of(data)
    first = (first + bytes(64 * lines))[: 64 * lines]
    return with_sections(changed, [first, *rest])


SIZED: dict[str, tuple[Any, int]] = {
    "scalable blocked": (ScalableBloomFilter(100, 0.01), PRELUDE),
    "scalable classic": (ScalableBloomFilter(100, 1e-5), PRELUDE),
    "scalable tiny": (ScalableBloomFilter(8, 0.05), PRELUDE),
    "url": (UrlFilter(100, 0.01), PRELUDE + 48),
    "url classic": (UrlFilter(100, 1e-5), PRELUDE + 48),
}


@pytest.mark.parametrize("name", SIZED)
def test_a_first_layer_that_does_not_follow_from_the_goals_is_refused(name: str) -> None:
    made, record = SIZED[name]
    data = made.to_bytes()
    bits = number_at(data, record + 16, 8)
    assert _with_first_part(data, record, bits) == data
    blocked = data[record + 2] == 1
    steps = [512 * step for step in range(-8, 9)] if blocked else [*range(-600, 600, 7), 1, -1, 512]
    others = {bits + step for step in steps} - {bits}
    tried = 0
    for other in others:
        if other > 0:
            tried += 1
            _refused(_with_first_part(data, record, other))
    assert tried > 3


def test_a_scalable_filter_of_other_goals_than_its_layer_is_refused() -> None:
    """Each goal is changed, or what the record of the first layer says of it."""
    made = ScalableBloomFilter(100, 0.01)
    data = made.to_bytes()
    goals = {"capacity": 64, "error_rate": 72, "tightening": 88}
    for name, at in goals.items():
        for new in (
            (struct.pack("<Q", 101), struct.pack("<Q", 90))
            if name == "capacity"
            else (
                struct.pack("<d", getattr(made, name) * factor) for factor in (0.9, 1.1, 1 - 1e-6)
            )
        ):
            _refused(with_header(data, PRELUDE + at, new))
    for at, value in ((24, struct.pack("<Q", 99)), (32, struct.pack("<d", 0.0051))):
        _refused(with_header(data, PRELUDE + at, value))
