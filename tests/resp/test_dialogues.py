"""Conversations with a session, as text files: what every command answers, in both protocols.

A line is `request -> answer`. The request is typed as at a terminal; the answer is what comes back
in RESP3, its line breaks as blanks, and `...` is anything. For RESP2 the answer is translated. A
line that begins with `@` changes what is around the session, and `#` is a remark. At the end the
journal, replayed into an empty keyspace, must give the same contents.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from bloomtide._core import Keyspace, Session

DIALOGUES = sorted((Path(__file__).parent / "dialogues").glob("*.txt"))
TYPES = re.compile(r"(?<!\S)(?:#[tf]|_|%\d+|,\S+)(?!\S)")


def in_resp2(answer: str) -> str:
    """True and false are numbers there, maps flat arrays, and fractions texts."""

    def translated(found: re.Match[str]) -> str:
        word = found[0]
        match word[0]:
            case "#":
                return ":1" if word == "#t" else ":0"
            case "_":
                return "$-1"
            case "%":
                return f"*{2 * int(word[1:])}"
        length = "..." if word.endswith("...") else len(word) - 1
        return f"${length} {word[1:]}"

    return TYPES.sub(translated, answer)


class Conversation:
    """A keyspace and one client of it."""

    def __init__(self, protocol: int) -> None:
        self.keyspace = Keyspace(max_bulk=1 << 20, foreign=["INFO"])
        self.now = 1_700_000_000.0
        self.session = self.client()
        self.say(f"HELLO {protocol}")

    def client(self) -> Session:
        return self.keyspace.session(client=1)

    def say(self, line: str) -> str:
        answer = self.session.execute(line.encode() + b"\r\n", self.now)
        return answer.decode().replace("\r\n", " ").rstrip()

    def change(self, directive: str) -> None:
        """`+seconds` moves the clock, `user` is a line of the access list, `client` a new one."""
        word, _, rest = directive.partition(" ")
        if word == "user":
            self.keyspace.set_users([directive])
        elif word == "client":
            self.session = self.client()
        else:
            assert not rest
            self.now += float(word)

    def hold(self, dialogue: str, protocol: int) -> None:
        for line in filter(None, dialogue.splitlines()):
            if line.startswith("#"):
                continue
            if line.startswith("@ "):
                self.change(line[2:])
                continue
            words, arrow, expected = line.partition(" -> ")
            assert arrow, line
            if protocol == 2:
                expected = in_resp2(expected)
            pattern = ".*".join(re.escape(part) for part in expected.strip().split("..."))
            answer = self.say(words.replace("\\r\\n", "\r\n"))
            assert re.fullmatch(pattern, answer), f"{words} -> {answer}, not {expected}"

    def chunk(self, family: str, name: str, number: int) -> tuple[int, bytes]:
        """The next number and the chunk that SCANDUMP answers."""
        answer = self.session.execute(f"{family}.SCANDUMP {name} {number}\n".encode(), self.now)
        _, following, length, rest = answer.split(b"\r\n", 3)
        return int(following[1:]), rest[: max(0, int(length[1:]))]

    def load(self, command: str, name: str, number: int, data: bytes) -> str:
        words = [command.encode(), name.encode(), b"%d" % number, data]
        request = b"*4\r\n" + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)
        return self.session.execute(request, self.now).decode().rstrip()

    def digest_again(self) -> str:
        again = Keyspace()
        again.replay(self.keyspace.take_changes())
        assert again.take_changes() == b""
        return again.digest()


def cases() -> Iterator[object]:
    """Each dialogue in both protocols, unless its first line says that it is of RESP2."""
    for file in DIALOGUES:
        text = file.read_text()
        for protocol in [2] if text.startswith("# RESP2 ") else [2, 3]:
            yield pytest.param(text, protocol, id=f"{file.stem}-{protocol}")


@pytest.mark.parametrize(("text", "protocol"), list(cases()))
def test_a_dialogue_goes_as_written(text: str, protocol: int) -> None:
    talk = Conversation(protocol)
    talk.hold(text, protocol)
    assert talk.digest_again() == talk.keyspace.digest()


@pytest.mark.parametrize("file", DIALOGUES, ids=lambda file: file.stem)
def test_fed_byte_by_byte_a_dialogue_is_answered_as_fed_whole(file: Path) -> None:
    lines = [line for line in file.read_text().splitlines() if " -> " in line]
    data = "".join(f"{line.partition(' -> ')[0]}\r\n" for line in lines if line[0] != "*").encode()
    key = b"\x00\r\n"
    data += b"*3\r\n$6\r\nBF.ADD\r\n$1\r\nq\r\n$3\r\n%s\r\n*0\r\n*1\r\n$4\r\nQUIT\r\nPING\r\n" % key

    def answers(step: int) -> tuple[bytes, str]:
        talk = Conversation(2)
        pieces = (data[at : at + step] for at in range(0, len(data), step))
        said = b"".join(talk.session.execute(piece, talk.now) for piece in pieces)
        while talk.session.foreign or talk.session.more:
            if talk.session.foreign:
                said += talk.session.resume("told", talk.now)
            else:
                said += talk.session.execute(b"", talk.now)
        assert talk.session.closing
        return said, talk.keyspace.digest()

    whole = answers(len(data))
    assert whole[0].endswith(b"+OK\r\n")
    for step in (1, 7, 64):
        assert answers(step) == whole
