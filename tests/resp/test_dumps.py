"""DUMP and RESTORE: every structure carried over to the bit, every damage refused."""

from __future__ import annotations

import pytest

from bloomtide._core import Keyspace
from tests.resp.test_keyspace import NOW, filled, request

BAD = b"-ERR DUMP payload version or checksum are wrong\r\n"
MADE = {
    "text": ["SET text a"],
    "bloom": ["BF.RESERVE bloom 0.01 5", "BF.MADD bloom 1 2 3 4 5 6 7 8"],
    "cuckoo": ["CF.RESERVE cuckoo 4", "CF.INSERT cuckoo ITEMS 1 2 3 4 5 1"],
    "sketch": ["CMS.INITBYDIM sketch 9 3", "CMS.INCRBY sketch a 3"],
    "top": ["TOPK.RESERVE top 3", "TOPK.ADD top a b c d"],
    "counts": ["COUNT.RESERVE counts 5 0.1", "COUNT.MADD counts a b a"],
    "fading": ["DECAY.RESERVE fading 5 0.1 HALFLIFE 10m TOP 2", "DECAY.MADD fading a b"],
    "urls": ["URL.RESERVE urls 5 0.1", "URL.ADD urls http://a.org/b"],
}


def dumped(keyspace: Keyspace, name: str) -> bytes:
    reply = keyspace.session().execute(request("DUMP", name), NOW)
    return reply.split(b"\r\n", 1)[1][:-2]


@pytest.mark.parametrize("name", MADE)
def test_a_structure_is_restored_to_the_bit_and_every_damage_is_refused(name: str) -> None:
    keyspace = Keyspace()
    for line in MADE[name]:
        assert not keyspace.session().execute(line.encode() + b"\r\n", NOW).startswith(b"-")
    payload = dumped(keyspace, name)
    other = Keyspace()
    session = other.session()
    for at in range(0, len(payload), max(1, len(payload) // 100)):
        damaged = payload[:at] + bytes([payload[at] ^ 1]) + payload[at + 1 :]
        assert session.execute(request("RESTORE", name, "0", damaged), NOW) == BAD
        assert session.execute(request("RESTORE", name, "0", payload[:at]), NOW) == BAD
    assert session.execute(request("RESTORE", name, "0", payload + b"x"), NOW) == BAD
    assert session.execute(request("RESTORE", name, "0", payload), NOW) == b"+OK\r\n"
    assert other.digest() == keyspace.digest()
    again = Keyspace()
    again.replay(other.take_changes())
    assert again.digest() == other.digest()


def test_what_is_restored_expires_as_it_is_told() -> None:
    keyspace, session = filled()
    payload = dumped(keyspace, "set0")

    def restore(*words: str) -> bytes:
        return session.execute(request("RESTORE", "new", words[0], payload, *words[1:]), NOW)

    assert restore("0") == b"+OK\r\n"
    assert session.execute(request("PTTL", "new"), NOW) == b":-1\r\n"
    assert restore("0") == b"-BUSYKEY Target key name already exists.\r\n"
    assert restore("500", "REPLACE") == b"+OK\r\n"
    assert session.execute(request("PTTL", "new"), NOW) == b":500\r\n"
    assert restore("1800000000000", "REPLACE", "ABSTTL", "IDLETIME", "5") == b"+OK\r\n"
    assert session.execute(request("PEXPIRETIME", "new"), NOW) == b":1800000000000\r\n"
    assert restore("1000", "REPLACE", "ABSTTL") == b"+OK\r\n"
    assert session.execute(request("EXISTS", "new"), NOW) == b":0\r\n"
    again = Keyspace()
    again.replay(keyspace.take_changes())
    assert again.digest() == keyspace.digest()


def test_a_dump_of_redis_is_foreign() -> None:
    session = Keyspace().session()
    text = b"\x00\x05hello\x0b\x00\xd6\x13\x31\xd1\xa4\xb5\x1c\x05"
    assert session.execute(request("RESTORE", "a", "0", text), NOW) == BAD


def test_what_does_not_fit_is_neither_restored_nor_copied() -> None:
    keyspace, _ = filled()
    payload = dumped(keyspace, "set0")
    small = Keyspace(max_memory=len(payload))
    reply = small.session().execute(request("RESTORE", "a", "0", payload), NOW)
    assert reply.startswith(b"-OOM")
    assert len(small) == 0
    keyspace.max_memory = keyspace.stats()["bytes"]
    assert keyspace.session().execute(request("COPY", "set0", "b"), NOW).startswith(b"-OOM")
