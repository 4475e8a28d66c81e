"""How long `bloomtide serve` takes to answer again after kill -9, with much of one kind inside.

Builds a data directory with about so many bytes of filters, starts a server on it, waits for the
first answer, kills the server and starts it again. What was just written or read comes from the
page cache, as it does after a kill.

    python -m benchmarks.restart --kind count --bytes 1e9
    python -m benchmarks.restart --kind all --bytes 2e8
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bloomtide._core import Keyspace, Session
from bloomtide.server.durability import FILE
from bloomtide.store import Ledger

LIMIT = 5.0
"""Seconds that a gigabyte may take."""
ENOUGH = 10_000_000
"""Keys for a kind whose file is as long and as quickly read whatever is in it."""
HOT, TIMES = 64, 20
"""Each so manieth key comes so many times more: there are large counters too."""
_PROBE = 100_000
_MANY = 1 << 14
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)


@dataclass(frozen=True, slots=True)
class Kind:
    """A structure of some size, and how keys get into it."""

    reserve: str
    """With a `{n}` that its memory is proportional to."""
    add: str
    """Takes many keys."""
    per_n: float = 0.0
    """Keys for each of `n`; 0 for one whose cells are all kept, whatever is in them."""
    before: bytes = b""
    after: bytes = b""
    """What stands around the eight letters of a key."""


_DECAY = "DECAY.RESERVE a {n} 0.01 HALFLIFE 1h STORAGE "
KINDS = {
    "bloom": Kind("BF.RESERVE a 0.01 {n} NONSCALING", "BF.MADD a"),
    "cuckoo": Kind("CF.RESERVE a {n}", "CF.INSERT a ITEMS"),
    "cms": Kind("CMS.INITBYDIM a {n} 5", "CMS.INCRBY a", after=b"\r\n$1\r\n1"),
    "topk": Kind("TOPK.RESERVE a 1000 {n} 7 0.9", "TOPK.ADD a"),
    "count": Kind("COUNT.RESERVE a {n} 0.01", "COUNT.MADD a", 1.0),
    "count-psbf": Kind("COUNT.RESERVE a {n} 0.01 KIND PSBF", "COUNT.MADD a", 1.0),
    "count-counting": Kind("COUNT.RESERVE a {n} 0.01 KIND COUNTING", "COUNT.MADD a"),
    "decay": Kind(_DECAY + "basic", "DECAY.MADD a", 1.0),
    "decay-optimized": Kind(_DECAY + "optimized", "DECAY.MADD a", 1.0),
    "hot": Kind("DECAY.RESERVE a 1000 0.01 HALFLIFE 1h TOP {n}", "DECAY.MADD a", 1.0),
    "urls": Kind("URL.RESERVE a {n} 0.01", "URL.MADD a", before=b"http://x.org/"),
}
"""By their words on the command line."""


def requests(kind: Kind, keys: npt.NDArray[np.uint32]) -> Iterator[bytes]:
    """Commands that add all these keys."""
    words = kind.add.split()
    head = b"$%d\r\n%s" % (len(kind.before) + 8, kind.before)
    around = np.frombuffer(head + bytes(8) + kind.after + b"\r\n", np.uint8)
    each = 1 + kind.after.count(b"$")
    for start in range(0, len(keys), _MANY):
        some = keys[start : start + _MANY]
        items = np.tile(around, (len(some), 1))
        for letter in range(8):
            items[:, len(head) + letter] = _HEX[(some >> np.uint32(4 * letter)) & np.uint32(15)]
        start_of = b"".join(b"$%d\r\n%s\r\n" % (len(word), word.encode()) for word in words)
        yield b"*%d\r\n%s%s" % (len(words) + each * len(some), start_of, items.tobytes())


def fill(kind: Kind, session: Session, n: int) -> None:
    """Makes one structure and puts its keys in."""
    said = [session.execute(f"{kind.reserve.format(n=n)}\r\n".encode(), 1e9)]
    count = round(n * kind.per_n) if kind.per_n else min(n, ENOUGH)
    keys = np.arange(count, dtype=np.uint32) * np.uint32(2_654_435_761)
    said += [session.execute(each, 1e9)[:4] for each in requests(kind, keys)]
    for _ in range(TIMES if kind.per_n else 0):
        said += [session.execute(each, 1e9)[:4] for each in requests(kind, keys[::HOT])]
    if wrong := [each for each in said if each.startswith(b"-")]:
        raise SystemExit(f"{kind.reserve}: {wrong[0].decode()}")


def build(kinds: list[Kind], size: float, pieces: int, directory: Path) -> tuple[int, int]:
    """A data directory of so many bytes in memory; those, and the bytes of the file."""
    keyspace = Keyspace(journal=False)
    session = keyspace.session()
    for number in range(pieces):
        kind = kinds[number % len(kinds)]
        probe = Keyspace(journal=False)
        fill(kind, probe.session(), _PROBE)  # some take their memory as keys come
        fill(kind, session, max(10, round(size / pieces * _PROBE / probe.stats()["bytes"])))
        session.execute(f"RENAME a {number}\r\n".encode(), 1e9)
    lengths = []
    with Ledger.open(directory, sync="no") as ledger:
        ledger.rewrite(lambda where: lengths.append(keyspace.save(where / FILE)))
    return keyspace.stats()["bytes"], lengths[0]


def start(directory: Path) -> tuple[float, int]:
    """Starts a server and kills it: the seconds until it answered, and how many keys it had."""
    command = [sys.executable, "-m", "bloomtide", "serve", "--json", "--port", "auto"]
    command += ["--http-port", "0", "--dir", str(directory)]
    began = time.perf_counter()
    with subprocess.Popen(
        [*command, "--set", "loglevel=warning"], stdout=subprocess.PIPE
    ) as server:
        assert server.stdout is not None
        try:
            told = server.stdout.readline()
            if not told:
                raise SystemExit("the server did not start")
            address = ("127.0.0.1", json.loads(told)["port"])
            with socket.create_connection(address, timeout=60) as connection:
                connection.sendall(b"DBSIZE\r\n")
                answer = connection.recv(100)
            seconds = time.perf_counter() - began
            if not answer.startswith(b":"):
                raise SystemExit("the server does not answer")
            return seconds, int(answer[1:])
        finally:
            os.kill(server.pid, signal.SIGKILL)


def main(arguments: list[str] | None = None) -> int:
    """Measures each kind; 1 if one of them takes too long."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.restart", description=__doc__)
    parser.add_argument("--kind", choices=[*KINDS, "mix", "all"], default="mix")
    parser.add_argument("--bytes", type=float, default=1e9)
    parser.add_argument("--pieces", type=int, help="structures; if left out one, of `mix` one each")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(arguments)
    names = [*KINDS, "mix"] if options.kind == "all" else [options.kind]
    slow = False
    for name in names:
        kinds = list(KINDS.values()) if name == "mix" else [KINDS[name]]
        with tempfile.TemporaryDirectory() as directory:
            place = Path(directory) / "data"
            used, length = build(kinds, options.bytes, options.pieces or len(kinds), place)
            seconds = sorted(start(place)[0] for _ in range(options.rounds))
        middle = seconds[len(seconds) // 2]
        slow |= middle > LIMIT * max(1.0, used / 1e9)
        sizes = f"{used / 1e6:.0f} MB in memory, {length / 1e6:.0f} MB of file"
        print(f"{name}: {sizes}, {middle:.2f} s (best {seconds[0]:.2f})", flush=True)
    return int(slow)


if __name__ == "__main__":
    sys.exit(main())
