"""Dumps that RedisBloom 2.8 made are loaded and go on as there: the same keys are present.

`test_redisbloom_dumps.json` has of each filter its chunks; which of `other 0` to `other 2999` were
wrongly present; what ADD answered to `more 0` to `more 299`; who was wrongly present then; and of
CF how often each `more` was inside, and what DEL answered to the first of them.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from tests.resp.test_dialogues import Conversation

FILES: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_suffix(".json").read_text())
DUMPS = {name: dump for dumps in FILES.values() for name, dump in dumps.items()}
FAMILIES = {name: family for family, dumps in FILES.items() for name in dumps}
MANY = [f"key {number}" for number in range(100)]
LONG = ["x" * number + "é" for number in range(40)]
BYTES = [b"\x00\xff"]
KEYS: dict[str, list[Any]] = {
    "grows": MANY, "fixed": LONG, "one": BYTES, "c_grows": MANY, "c_fixed": LONG, "c_one": BYTES,
}  # fmt: skip
MORE = [f"more {number}" for number in range(300)]


def answers(talk: Conversation, command: str, name: str, keys: list[Any]) -> list[str]:
    found = []
    for key in keys:
        data = key if isinstance(key, bytes) else key.encode()
        words = [f"{FAMILIES[name]}.{command}".encode(), name.encode(), data]
        request = b"*3\r\n" + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)
        found.append(talk.session.execute(request, talk.now).decode().rstrip())
    return found


def parts(name: str) -> list[tuple[int, bytes]]:
    return [(number, base64.b64decode(data)) for number, data in DUMPS[name]["chunks"]]


def load(talk: Conversation, name: str, number: int, data: bytes) -> str:
    return talk.load(f"{FAMILIES[name]}.LOADCHUNK", name, number, data)


def loaded(name: str) -> Conversation:
    talk = Conversation(2)
    for place, (number, data) in enumerate(parts(name)):
        if place:
            said = answers(talk, "EXISTS", name, ["a"])
            assert said == ["-ERR the key is still being loaded by chunks"]
        assert load(talk, name, number, data) == "+OK"
    return talk


def wrong(talk: Conversation, name: str) -> list[str]:
    keys = [f"other {number}" for number in range(3000)]
    found = answers(talk, "EXISTS", name, keys)
    return [key for key, answer in zip(keys, found, strict=True) if answer == ":1"]


SIGNS = {":1": "1", ":0": "0", "-ERR non scaling filter is full": "-", "-Filter is full": "-"}


@pytest.mark.parametrize("name", DUMPS)
def test_a_loaded_filter_is_the_one_that_was_dumped(name: str, tmp_path: Path) -> None:
    dump, talk = DUMPS[name], loaded(name)
    assert set(answers(talk, "EXISTS", name, KEYS[name])) == {":1"}
    assert wrong(talk, name) == dump["wrong"]
    # It is kept like every other structure, and its chunks are ours now.
    talk.keyspace.save(str(tmp_path / "file"))
    again = Conversation(2)
    again.keyspace.load(str(tmp_path / "file"))
    assert again.keyspace.digest() == talk.keyspace.digest()
    number, other = 0, Conversation(2)
    while True:
        number, data = talk.chunk(FAMILIES[name], name, number)
        if number == 0:
            break
        assert load(other, name, number, data) == "+OK"
    assert other.keyspace.digest() == talk.keyspace.digest()
    # It takes keys and grows as it would have there.
    added = answers(talk, "ADD", name, MORE)
    assert "".join(SIGNS[answer] for answer in added) == dump["added"]
    assert wrong(talk, name) == dump["wrong_then"]
    if FAMILIES[name] == "CF":
        counts = answers(talk, "COUNT", name, MORE)
        assert "".join(answer[1:] for answer in counts) == dump["counts"]
        deleted = answers(talk, "DEL", name, MORE[: len(dump["deleted"])])
        assert "".join(SIGNS[answer] for answer in deleted) == dump["deleted"]
    assert talk.digest_again() == talk.keyspace.digest()


@pytest.mark.parametrize("name", DUMPS)
def test_a_dump_that_is_cut_or_made_up_is_refused_or_an_error_and_never_absent(name: str) -> None:
    (_, head), (number, data), *more = parts(name)
    for length in range(len(head)):
        talk = Conversation(2)
        assert load(talk, name, 1, head[:length]) == "-ERR received bad data"
        assert talk.say(f"EXISTS {name}") == ":0"
    for place in range(len(head)):
        for bit in range(8):
            changed = bytearray(head)
            changed[place] ^= 1 << bit
            talk = Conversation(2)
            talk.keyspace.max_memory = 1 << 24
            load(talk, name, 1, bytes(changed))
            load(talk, name, number, data)
            answers(talk, "EXISTS", name, ["a"])
            answers(talk, "ADD", name, ["a"])
    talk = Conversation(2)
    assert load(talk, name, 1, head) == "+OK"
    assert load(talk, name, number - 1, data[:-1]) == "+OK"
    assert answers(talk, "EXISTS", name, ["a"])[0].startswith("-ERR ")
    assert load(talk, name, number + 999, data).startswith("-ERR ")
    # A chunk that is left out is noticed.
    talk = Conversation(2)
    load(talk, name, 1, head)
    if more:
        assert load(talk, name, *more[-1]).startswith("-ERR ")
