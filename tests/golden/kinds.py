"""One small file or blob of every kind, and what reads it; those of no filter are golden files too.

Run `python -m tests.golden.kinds` to write a golden file for a new kind; one that is there is never
replaced. Golden filters are made by `make_golden.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import bloomtide
from bloomtide import BloomFilter, HotFilter, RecentFilter, TimeDecayingBloomFilter
from bloomtide._core import HistoryBuffer, HistorySegment, Keyspace, RecordScan, history_roll_up
from bloomtide.distributed import build_partition
from bloomtide.distributed.partial import unpack
from bloomtide.durable.log import pack_file
from bloomtide.errors import ChecksumError, SnapshotError
from bloomtide.format import KINDS
from bloomtide.store import Ledger
from tests.golden.make_golden import path_of

FOLDER = Path(__file__).parent / "kinds"
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
# One structure of each kind.
STRUCTURES = b"""SET text a
BF.RESERVE grows 0.01 5
BF.MADD grows 1 2 3 4 5 6 7 8
BF.RESERVE fixed 0.01 5 NONSCALING
BF.ADD fixed k
CF.ADD cuckoo k
CMS.INITBYDIM sketch 20 3
CMS.INCRBY sketch k 3
TOPK.RESERVE top 3
TOPK.ADD top k
COUNT.RESERVE counts 100 0.01
COUNT.INCRBY counts k 1
DECAY.RESERVE fading 100 0.01 HALFLIFE 10m TOP 3
DECAY.ADD fading k
URL.RESERVE urls 100 0.01
URL.ADD urls http://a.example/b
"""


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
    scan = RecordScan(data, "history journal")
    _buffer().replay(scan)
    if scan.damaged is not None:
        raise ChecksumError("damaged", expected=None, got=None)


def _filled() -> HistoryBuffer:
    buffer = _buffer()
    buffer.add_many(["a", "b"], at=NOW)
    return buffer


def _sealed() -> Any:
    buffer = _filled()
    return buffer.seal(buffer.segments()[0].index, error_rate=0.01)


def _roll_up(items: bytes) -> object:
    made = _sealed()
    return history_roll_up([([items], made.begin, made.end)], level=1, error_rate=0.01)


def _run(keyspace: Keyspace, lines: bytes) -> bytes:
    return keyspace.session().execute(lines, NOW)


def _keyspace(path: Path, lines: bytes) -> bytes:
    keyspace = Keyspace()
    assert not re.search(rb"^-", _run(keyspace, lines), re.MULTILINE)
    keyspace.save(path)
    return path.read_bytes()


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
    made: dict[str, Callable[[], Sample]] = {
        "history segment": lambda: Sample(_sealed().segment, HistorySegment.from_bytes),
        "history items": lambda: Sample(_sealed().items, _roll_up),
        "history journal": lambda: Sample(
            pack_file("history journal", _filled().take_journal()), _replay
        ),
        "keyspace": lambda: Sample(
            _keyspace(folder / "keyspace", STRUCTURES),
            _file(folder / "read", lambda path: Keyspace().load(path)),
        ),
        "first chunk": _chunk,
        "partial": lambda: Sample(
            build_partition([["a", "b"]], BloomFilter.plan(100, 0.01)), unpack
        ),
        "recent": lambda: Sample(_recent().to_bytes(), RecentFilter.from_bytes),
        "hot filter": lambda: Sample(_hot_filter().to_bytes(), HotFilter.from_bytes),
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


def _hot_filter() -> HotFilter:
    both: HotFilter = TimeDecayingBloomFilter(100, 0.01, half_life="1h").with_hot_list(3)
    both.add("a", 2, NOW)
    return both


def golden_of(kind: str) -> Path:
    """Where the golden file of a kind lies that is no filter."""
    return FOLDER / f"{kind.replace(' ', '-')}.v1"


def main() -> None:
    """Write what is missing; keep what is there."""
    FOLDER.mkdir(exist_ok=True)
    for kind in set(KINDS) - set(FILTERS):
        if not golden_of(kind).exists():
            with TemporaryDirectory() as folder:
                golden_of(kind).write_bytes(sample(kind, Path(folder)).data)


if __name__ == "__main__":
    main()
