"""One header for everything: docs/formats/index.md lists what the code knows, and no bit of any
header can flip without a refusal."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bloomtide
from bloomtide import BloomFilter, RecentFilter
from bloomtide._core import (
    HistoryBuffer,
    HistorySegment,
    Keyspace,
    crc32c,
    history_roll_up,
    pack_header,
)
from bloomtide.distributed import build_partition
from bloomtide.distributed.partial import unpack
from bloomtide.errors import (
    ChecksumError,
    JournalError,
    KindError,
    SnapshotError,
    VersionError,
)
from bloomtide.format import JSON_FORMATS, KINDS, pack_json, read_json
from bloomtide.integrations.scrapy.log import SeenLog
from bloomtide.store import Ledger
from tests.files import crafted
from tests.files.crafted import with_fields, with_version
from tests.golden.make_golden import path_of

PAGE = Path(__file__).resolve().parents[2] / "docs" / "formats" / "index.md"
NOW = 1_700_000_000.0
FILTERS = {
    "bloom": "bloom-classic",
    "scalable": "scalable",
    "counting": "counting-4",
    "sbf": "sbf-blocked",
    "dcf": "dcf-blocked",
    "psbf": "psbf-blocked",
    "pdcf": "pdcf-blocked",
    "tbf": "tbf-basic-blocked",
    "hot": "hot",
    "url": "url",
}
STRUCTURES = {
    "count-min sketch": b"CMS.INITBYDIM a 20 3\r\nCMS.INCRBY a k 3\r\n",
    "top-k list": b"TOPK.RESERVE a 3\r\nTOPK.ADD a k\r\n",
    "counts structure": b"COUNT.RESERVE a 100 0.01\r\nCOUNT.INCRBY a k 1\r\n",
    "decay structure": b"DECAY.RESERVE a 100 0.01 HALFLIFE 10m TOP 3\r\nDECAY.ADD a k\r\n",
    "url structure": b"URL.RESERVE a 100 0.01\r\nURL.ADD a http://a.example/b\r\n",
}


class Sample:
    """Something of one kind, and what reads it: `read` raises or returns."""

    def __init__(self, data: bytes, read: Callable[[bytes], object]) -> None:
        self.data = data
        self.read = read
        self.header = int.from_bytes(data[12:16], "little")


def _file(path: Path, read: Callable[[Path], object]) -> Callable[[bytes], object]:
    def act(data: bytes) -> object:
        path.write_bytes(data)
        return read(path)

    return act


def _buffer() -> HistoryBuffer:
    return HistoryBuffer(window=60_000_000, rows=4)


def _replay(data: bytes) -> None:
    """A journal reports damage, and the store refuses it."""
    report = _buffer().replay(data)
    if report.damaged is not None:
        raise ChecksumError("damaged", expected=None, got=None)


def _sealed() -> Any:
    buffer = _buffer()
    buffer.add_many(["a", "b"], at=NOW)
    return buffer.seal(buffer.segments()[0].index, error_rate=0.01)


def _roll_up(items: bytes) -> object:
    made = _sealed()
    return history_roll_up([items], begin=made.begin, end=made.end, level=1, error_rate=0.01)


def _run(keyspace: Keyspace, lines: bytes) -> bytes:
    return keyspace.session().execute(lines, NOW)


def _keyspace(path: Path, lines: bytes) -> bytes:
    keyspace = Keyspace()
    assert not re.search(rb"^-", _run(keyspace, lines), re.MULTILINE)
    keyspace.save(path)
    return path.read_bytes()


def _seen_log(path: Path) -> None:
    SeenLog(path, "no").close()


def _ledger(path: Path) -> bytes:
    with Ledger.open(path) as ledger:
        ledger.append(b"payload")
    [journal] = path.glob("journal-*")
    return journal.read_bytes()


def _bulk(data: bytes) -> bytes:
    return b"$%d\r\n%s\r\n" % (len(data), data)


def _chunk() -> Sample:
    keyspace = Keyspace()
    _run(keyspace, b"BF.ADD a k\r\n")
    reply = _run(keyspace, b"BF.SCANDUMP a 0\r\n")
    data = reply.split(b"\r\n", 3)[3][:-2]

    def load(data: bytes) -> None:
        words = (b"BF.LOADCHUNK", b"b", b"1", data)
        reply = _run(Keyspace(), b"*4\r\n" + b"".join(map(_bulk, words)))
        if reply != b"+OK\r\n":
            raise SnapshotError(reply.decode())

    return Sample(data, load)


def sample(kind: str, folder: Path) -> Sample:
    """One of that kind."""
    if kind in FILTERS:
        return Sample(path_of(FILTERS[kind]).read_bytes(), bloomtide.from_bytes)
    if kind in STRUCTURES:
        return _structure(kind, folder)
    made: dict[str, Callable[[], Sample]] = {
        "history segment": lambda: Sample(_sealed().segment, HistorySegment.from_bytes),
        "history items": lambda: Sample(_sealed().items, _roll_up),
        "history journal": lambda: Sample(_buffer().take_journal(), _replay),
        "keyspace": lambda: Sample(
            _keyspace(folder / "keyspace", b"SET a text\r\nBF.ADD b k\r\n"),
            _file(folder / "read", lambda path: Keyspace().load(path)),
        ),
        "first chunk": _chunk,
        "partial": lambda: Sample(
            build_partition([["a", "b"]], BloomFilter.plan(100, 0.01)), unpack
        ),
        "recent": lambda: Sample(_recent().to_bytes(), RecentFilter.from_bytes),
        "seen log": lambda: Sample(_seen_data(folder / "seen.log"), _file(folder / "r", _seen_log)),
        "ledger journal": lambda: Sample(
            _ledger(folder / "ledger"),
            _file(
                next((folder / "ledger").glob("journal-*")),
                lambda path: Ledger.open(path.parent).close(),
            ),
        ),
    }
    return made[kind]()


def _recent() -> RecentFilter:
    recent = RecentFilter(100, 0.01, within="1h", clock=lambda: NOW)
    recent.add("a")
    return recent


def _seen_data(path: Path) -> bytes:
    log = SeenLog(path, "no")
    log.append(bytes(20), NOW)
    log.close()
    return path.read_bytes()


def _structure(kind: str, folder: Path) -> Sample:
    """A structure on its own, taken out of the only entry of a keyspace and put back."""
    file = _keyspace(folder / "keyspace", STRUCTURES[kind])
    directory, size, names = struct.unpack_from("<QQQ", file, len(file) - 28)
    name, tag, at, length, _ = struct.unpack_from("<xxxxcBQQI", file, directory)
    assert (names, name) == (1, b"a")

    def load(data: bytes) -> None:
        entry = struct.pack("<I1sBQQI", 1, b"a", tag, at, len(data), crc32c(data))
        footer = struct.pack("<QQQ", at + len(data), len(entry), 1)
        check = crc32c(entry + footer, int.from_bytes(file[24:28], "little"))
        path = folder / "put back"
        path.write_bytes(file[:at] + data + entry + footer + check.to_bytes(4, "little"))
        Keyspace().load(path)

    assert size == 26
    return Sample(file[at : at + length], load)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_every_header_is_that_of_the_page(kind: str, tmp_path: Path) -> None:
    one = sample(kind, tmp_path)
    magic, number, version, header, length = struct.unpack_from("<8sHHIQ", one.data)
    assert (magic, number, version) == (b"BLOOMTID", KINDS[kind], 1)
    if kind == "first chunk":
        assert header == len(one.data) < length
    elif kind in {"history journal", "keyspace", "seen log", "ledger journal"}:
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
    other = "seen log" if kind == "ledger journal" else "ledger journal"
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


def test_the_page_lists_the_kinds_that_the_code_knows() -> None:
    rows = re.findall(r"^\| (\d+) \| `([^`]+)` \|", PAGE.read_text(), flags=re.MULTILINE)
    assert {name: int(number) for number, name in rows} == KINDS
    assert len(rows) == len(KINDS)


def test_the_page_lists_the_files_of_json_that_the_code_knows() -> None:
    text = PAGE.read_text().partition("## Files of JSON")[2].partition("\n## ")[0]
    assert tuple(re.findall(r"^\| `([^`]+)` \|", text, flags=re.MULTILINE)[1:]) == JSON_FORMATS
    sources = [path.read_text() for path in Path(bloomtide.__file__).parent.rglob("*.py")]
    called = re.compile(r'(?:pack_json\(|read_json\([^":]*)"([^"]+)"')
    assert {name for text in sources for name in called.findall(text)} == set(JSON_FORMATS)


def test_the_checksum_is_crc_32c() -> None:
    assert crc32c(b"123456789") == crafted.crc32c(b"123456789") == 0xE3069283
    assert crc32c(memoryview(b"6789"), crc32c(bytearray(b"12345"))) == 0xE3069283
    assert crc32c(b"") == 0
