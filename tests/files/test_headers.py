"""One header for everything: docs/formats/index.md lists what the code knows, and no bit of any
header can flip without a refusal."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest

import bloomtide
from bloomtide._core import crc32c, pack_header
from bloomtide.errors import JournalError, KindError, SnapshotError, VersionError
from bloomtide.format import JSON_FORMATS, KINDS, pack_json, read_json
from tests.files import crafted
from tests.files.crafted import with_fields, with_version
from tests.golden.kinds import FILTERS, FOLDER, golden_of, sample

PAGE = Path(__file__).resolve().parents[2] / "docs" / "formats" / "index.md"


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_every_header_is_that_of_the_page(kind: str, tmp_path: Path) -> None:
    one = sample(kind, tmp_path)
    magic, number, version, header, length = struct.unpack_from("<8sHHIQ", one.data)
    assert (magic, number, version) == (b"BLOOMTID", KINDS[kind], 1)
    if kind == "first chunk":
        assert header == len(one.data) < length
    elif kind in {"history journal", "keyspace", "ledger journal"}:
        assert length == 0
    else:
        assert length == len(one.data)
    covered = one.data[: header - 4]
    if kind in FILTERS:
        covered = covered[:24] + bytes(8) + covered[32:]
    assert crafted.crc32c(covered) == int.from_bytes(one.data[header - 4 : header], "little")


def test_every_flipped_bit_of_every_header_is_refused(kind: str, tmp_path: Path) -> None:
    """The state word of a filter is no exception: one bit makes no state of the other."""
    one = sample(kind, tmp_path)
    one.read(one.data)
    accepted = []
    for bit in range(one.header * 8):
        damaged = bytearray(one.data)
        damaged[bit // 8] ^= 1 << bit % 8
        try:
            one.read(bytes(damaged))
        except (SnapshotError, JournalError):
            continue
        accepted.append(bit)
    assert accepted == []
    one.read(one.data)


def test_another_kind_is_refused_by_name(kind: str, tmp_path: Path) -> None:
    one = sample(kind, tmp_path)
    other = "partial" if kind == "ledger journal" else "ledger journal"
    if kind == "first chunk":  # a server's reply has one wording
        return
    with pytest.raises(KindError, match=f"this is a {other}, not ") as caught:
        one.read(pack_header(other, bytes(4), 0))
    assert caught.value.got == other
    assert caught.value.hint


def test_a_newer_version_is_told_from_damage(kind: str, tmp_path: Path) -> None:
    one = sample(kind, tmp_path)
    if kind == "first chunk":
        return
    newer = (
        crafted.with_header(one.data, 10, b"\x02") if kind in FILTERS else with_version(one.data, 2)
    )
    with pytest.raises(VersionError) as caught:
        one.read(newer)
    assert (caught.value.expected, caught.value.got) == (1, 2)


@pytest.mark.parametrize("other", sorted(set(KINDS) - set(FILTERS)))
def test_the_golden_file_of_every_kind_is_read_and_written_again(
    other: str, tmp_path: Path
) -> None:
    stored = golden_of(other).read_bytes()
    one = sample(other, tmp_path)
    one.read(stored)
    if other.endswith(" journal"):  # its mark is random
        assert stored[28:36] == one.data[28:36]
        assert len(stored) == len(one.data)
    elif other == "partial":  # zstd may pack it otherwise
        assert stored[24 : one.header - 4] == one.data[24 : one.header - 4]
    else:
        assert one.data == stored
    assert len(list(FOLDER.iterdir())) == len(KINDS) - len(FILTERS)


@pytest.mark.parametrize("name", JSON_FORMATS)
def test_every_flipped_bit_of_a_file_of_json_is_refused(name: str) -> None:
    data = pack_json(name, {"a": 1, "text": "ü", "list": [1.5, None]})
    assert read_json(data, name, "here") == {"a": 1, "text": "ü", "list": [1.5, None]}
    for bit in range(len(data) * 8):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(SnapshotError, match="here"):
            read_json(bytes(damaged), name, "here")
    for cut in range(len(data)):
        with pytest.raises(SnapshotError):
            read_json(data[:cut], name, "here")
    with pytest.raises(VersionError):
        read_json(with_fields(data, version=2), name, "here")
    with pytest.raises(KindError, match="other"):
        read_json(with_fields(data, format="other"), name, "here")


@pytest.mark.parametrize("version", [0, -1, True, 1.0, "1"])
def test_a_version_that_no_format_has_is_damage(version: object) -> None:
    data = pack_json("ledger", {"version": version})
    with pytest.raises(SnapshotError, match="no format has the version"):
        read_json(data, "ledger", "manifest")


def test_the_page_lists_the_kinds_that_the_code_knows() -> None:
    rows = re.findall(r"^\| (\d+) \| `([^`]+)` \|", PAGE.read_text(), flags=re.MULTILINE)
    assert {name: int(number) for number, name in rows} == KINDS
    assert len(rows) == len(KINDS)


def test_the_page_lists_the_files_of_json_that_the_code_knows() -> None:
    text = PAGE.read_text().partition("## Files of JSON")[2].partition("\n## ")[0]
    assert tuple(re.findall(r"^\| `([^`]+)` \|", text, flags=re.MULTILINE)[1:]) == JSON_FORMATS
    sources = [path.read_text() for path in Path(bloomtide.__file__).parent.rglob("*.py")]
    called = re.compile(r'(?:pack_json\(|write_manifest\(.*|read_json\([^":]*)"([a-z ]+)"')
    assert {name for text in sources for name in called.findall(text)} == set(JSON_FORMATS)


def test_the_checksum_is_crc_32c() -> None:
    assert crc32c(b"123456789") == crafted.crc32c(b"123456789") == 0xE3069283
    assert crc32c(memoryview(b"6789"), crc32c(bytearray(b"12345"))) == 0xE3069283
    assert crc32c(b"") == 0
