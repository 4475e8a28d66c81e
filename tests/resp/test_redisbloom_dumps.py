"""Dumps that RedisBloom 2.8 made are loaded and go on as there: the same keys are present.

`test_redisbloom_dumps.json` has of each filter its chunks; then which of `other 0` to `other 2999`
were wrongly present, what BF.ADD answered to `more 0` to `more 299`, and who was wrongly present
then.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from tests.resp.test_dialogues import Conversation

DUMPS: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text())
KEYS: dict[str, list[Any]] = {
    "grows": [f"key {number}" for number in range(100)],
    "fixed": ["x" * number + "é" for number in range(40)],
    "one": [b"\x00\xff"],
}


def answers(talk: Conversation, command: str, name: str, keys: list[Any]) -> list[str]:
    found = []
    for key in keys:
        data = key if isinstance(key, bytes) else key.encode()
        words = [command.encode(), name.encode(), data]
        request = b"*3\r\n" + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)
        found.append(talk.session.execute(request, talk.now).decode().rstrip())
    return found


def parts(name: str) -> list[tuple[int, bytes]]:
    return [(number, base64.b64decode(data)) for number, data in DUMPS[name]["chunks"]]


def loaded(name: str) -> Conversation:
    talk = Conversation(2)
    for place, (number, data) in enumerate(parts(name)):
        if place:
            said = talk.say(f"BF.EXISTS {name} a")
            assert said == "-ERR the key is still being loaded by chunks"
        assert talk.load("BF.LOADCHUNK", name, number, data) == "+OK"
    return talk


def wrong(talk: Conversation, name: str) -> list[str]:
    keys = [f"other {number}" for number in range(3000)]
    found = answers(talk, "BF.EXISTS", name, keys)
    return [key for key, answer in zip(keys, found, strict=True) if answer == ":1"]


@pytest.mark.parametrize("name", DUMPS)
def test_a_loaded_filter_is_the_one_that_was_dumped(name: str, tmp_path: Path) -> None:
    talk = loaded(name)
    assert set(answers(talk, "BF.EXISTS", name, KEYS[name])) == {":1"}
    assert wrong(talk, name) == DUMPS[name]["wrong"]
    # It is kept like every other structure, and its chunks are ours now.
    talk.keyspace.save(str(tmp_path / "file"))
    again = Conversation(2)
    again.keyspace.load(str(tmp_path / "file"))
    assert again.keyspace.digest() == talk.keyspace.digest()
    number, other = 0, Conversation(2)
    while True:
        number, data = talk.chunk("BF", name, number)
        if number == 0:
            break
        assert other.load("BF.LOADCHUNK", name, number, data) == "+OK"
    assert other.keyspace.digest() == talk.keyspace.digest()
    # It takes keys and grows as it would have there.
    added = answers(talk, "BF.ADD", name, [f"more {number}" for number in range(300)])
    signs = {":1": "1", ":0": "0", "-ERR non scaling filter is full": "-"}
    assert "".join(signs[answer] for answer in added) == DUMPS[name]["added"]
    assert wrong(talk, name) == DUMPS[name]["wrong_then"]
    assert talk.digest_again() == talk.keyspace.digest()


@pytest.mark.parametrize("name", DUMPS)
def test_a_dump_that_is_cut_or_made_up_is_refused_or_an_error_and_never_absent(name: str) -> None:
    (_, head), (number, data), *_ = parts(name)
    for length in range(len(head)):
        talk = Conversation(2)
        assert talk.load("BF.LOADCHUNK", name, 1, head[:length]) == "-ERR received bad data"
        assert talk.say(f"EXISTS {name}") == ":0"
    for place in range(len(head)):
        for bit in range(8):
            changed = bytearray(head)
            changed[place] ^= 1 << bit
            talk = Conversation(2)
            talk.keyspace.max_memory = 1 << 24
            talk.load("BF.LOADCHUNK", name, 1, bytes(changed))
            talk.load("BF.LOADCHUNK", name, number, data)
            talk.say(f"BF.EXISTS {name} a")
            talk.say(f"BF.ADD {name} a")
    talk = Conversation(2)
    assert talk.load("BF.LOADCHUNK", name, 1, head) == "+OK"
    if len(DUMPS[name]["chunks"]) == 2:
        assert talk.load("BF.LOADCHUNK", name, number - 1, data[:-1]) == "+OK"
        assert talk.say(f"BF.EXISTS {name} a").startswith("-ERR ")
    assert talk.load("BF.LOADCHUNK", name, number + 999, data).startswith("-ERR ")
