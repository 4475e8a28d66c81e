"""kill -9 under load, at random points: `always` loses nothing that was acknowledged, counts
nothing twice, what has expired stays gone, and the server always comes back.

A handful of kills here; `make kills` (BLOOMTIDE_KILLS=100) is the long proof. One directory is
killed again and again, so what earlier kills left behind is there in all later ones.
"""

from __future__ import annotations

import os
import random
import threading
from pathlib import Path

import pytest

from tests.server.process import Running, request, running
from tests.waiting import until

KILLS = int(os.environ.get("BLOOMTIDE_KILLS", "10"))
WRITERS = 4
PIPELINE = 8
FAR = 4_000_000_000_000
"""Milliseconds: the year 2096."""


class Writer(threading.Thread):
    """Adds its own numbers in pipelines; knows which were acknowledged."""

    def __init__(self, server: Running, name: str, first: int) -> None:
        super().__init__()
        self.key = name
        self.acknowledged = first
        self.sent = first
        self._server = server

    def run(self) -> None:
        try:
            with self._server.wire() as wire:
                while True:
                    numbers = range(self.sent, self.sent + PIPELINE)
                    self.sent += PIPELINE
                    wire.send(b"".join(requests(self.key, number) for number in numbers))
                    for number in numbers:
                        if [wire.line() for _ in ANSWERS] != ANSWERS or not wire.line():
                            return
                        self.acknowledged = number + 1
        except OSError:
            return


ANSWERS = [b":1", b"+OK", b":1", b"+OK", b"+OK", b"+OK", b"*1"]
"""And then the new count."""


def requests(key: str, number: int) -> bytes:
    """A number into a filter, whose end moves; a text that ends at once; one that gets another
    name; a number into a digest; and one more into a counter."""
    return b"".join(
        request(*words)
        for words in [
            ("BF.ADD", f"seen-{key}", str(number)),
            ("SET", f"brief-{key}", str(number), "PX", "1"),
            ("PEXPIREAT", f"seen-{key}", str(FAR + number)),
            ("SET", f"before-{key}", str(number)),
            ("RENAME", f"before-{key}", f"after-{key}"),
            ("TDIGEST.ADD", f"digest-{key}", str(number)),
            ("CMS.INCRBY", f"count-{key}", "all", "1"),
        ]
    )


EVERYSEC = ["--appendfsync", "everysec", "--set", "auto-aof-rewrite-min-size=20000"]
"""What was acknowledged was handed to the system, which does not die with the process."""


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["--appendfsync", "always"], id="always"),
        pytest.param(
            EVERYSEC,
            id="everysec, many rewrites",
            marks=pytest.mark.skipif(KILLS < 100, reason="a part of `make kills`"),
        ),
    ],
)
def test_nothing_that_was_acknowledged_is_lost_or_counted_twice(
    tmp_path: Path, arguments: list[str]
) -> None:
    draw = random.Random(7)
    acknowledged = [0] * WRITERS
    sent = [0] * WRITERS
    begun = [0] * WRITERS
    """Numbers that were begun in all lives; a counter may have at most so many."""
    last = [-1] * WRITERS
    """The last number that was acknowledged."""
    digest = None
    rewrites_cut = 0
    for life in range(KILLS + 1):
        with running(tmp_path / "data", *arguments) as server:
            client = server.client()
            if digest is not None:
                assert client.execute_command("DEBUG", "DIGEST") == digest
            for number in range(WRITERS):
                if life == 0:
                    client.execute_command("BF.RESERVE", f"seen-{number}", "1e-9", "100000")
                    client.execute_command("CMS.INITBYDIM", f"count-{number}", "16", "2")
                    client.execute_command("TDIGEST.CREATE", f"digest-{number}")
                else:
                    require_all(server, str(number), acknowledged[number], begun[number])
                    require_last(server, str(number), last[number], sent[number])
            if life == KILLS:
                break
            writers = [Writer(server, str(number), sent[number]) for number in range(WRITERS)]
            for writer in writers:
                writer.start()
            wait_for(writers, sum(sent) + draw.randint(10, 500))
            if life % 3 == 2:
                client.bgsave()
            server.kill()
            # A rewrite begins a second journal, and removes the first when it has ended.
            rewrites_cut += len(list((tmp_path / "data").glob("journal-*"))) > 1
            for number, writer in enumerate(writers):
                writer.join(30)
                acknowledged[number] += writer.acknowledged - sent[number]
                begun[number] += writer.sent - sent[number]
                if writer.acknowledged > sent[number]:
                    last[number] = writer.acknowledged - 1
                sent[number] = writer.sent
        digest = digest_after_restart(tmp_path / "data") if life % 2 else None
    assert rewrites_cut > 0, "some kills met a rewrite"


def wait_for(writers: list[Writer], acknowledged: int) -> None:
    until(lambda: sum(writer.acknowledged for writer in writers) >= acknowledged)


def require_all(server: Running, key: str, acknowledged: int, begun: int) -> None:
    """Acknowledged numbers are there, each counted once."""
    with server.client() as client:
        [count] = client.execute_command("CMS.QUERY", f"count-{key}", "all")
        assert acknowledged <= count <= begun
        card = client.execute_command("BF.CARD", f"seen-{key}")
        assert acknowledged <= card <= begun
        told = client.execute_command("TDIGEST.INFO", f"digest-{key}")
        digested = dict(zip(told[::2], told[1::2], strict=True))[b"Observations"]
        assert acknowledged <= digested <= begun


def require_last(server: Running, key: str, last: int, sent: int) -> None:
    """The last name and the last time are there, and what ended at once is not."""
    with server.client() as client:
        assert client.exists(f"brief-{key}") == 0
        if last >= 0:
            assert last <= client.pexpiretime(f"seen-{key}") - FAR < sent
            assert last <= int(client.get(f"after-{key}")) < sent


def digest_after_restart(directory: Path) -> bytes:
    """A restart and a graceful stop change nothing; the digest is the witness."""
    with running(directory, "--appendfsync", "always") as server:
        client = server.client()
        until(lambda: client.exists(*(f"brief-{number}" for number in range(WRITERS))) == 0)
        digest: bytes = client.execute_command("DEBUG", "DIGEST")
        code, _ = server.stop()
        assert code == 0
    return digest
