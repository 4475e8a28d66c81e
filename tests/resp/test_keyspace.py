"""The Redis protocol from Python: what a session answers, what is journaled, what a host does."""

from __future__ import annotations

from pathlib import Path

import pytest

from bloomtide import errors
from bloomtide._core import Keyspace, Session

NOW = 1_700_000_000.0


def request(*words: str | bytes) -> bytes:
    parts = [word.encode() if isinstance(word, str) else word for word in words]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(p), p) for p in parts)


def filled() -> tuple[Keyspace, Session]:
    keyspace = Keyspace()
    session = keyspace.session(client=5)
    for key in range(500):
        session.execute(request("BF.ADD", f"set{key % 3}", str(key)), NOW + key)
        session.execute(request("CF.ADD", "counts", str(key % 50)), NOW + key)
    session.execute(request("CMS.INITBYDIM", "sketch", "100", "3"), NOW)
    session.execute(request("CMS.INCRBY", "sketch", "a", "7"), NOW)
    return keyspace, session


def test_a_whole_pipeline_is_answered_by_one_call_and_the_rest_is_kept() -> None:
    session = Keyspace().session()
    data = request("PING") + request("BF.ADD", "a", "x") + request("BF.EXISTS", "a", "x")
    assert session.execute(data + data[:10], NOW) == b"+PONG\r\n:1\r\n:1\r\n"
    assert (session.buffered, session.settled) == (10, False)
    assert session.execute(data[10:], NOW) == b"+PONG\r\n:0\r\n:1\r\n"
    assert (session.buffered, session.settled) == (0, True)


def test_a_buffer_so_long_that_the_interpreter_is_let_go_is_answered_alike() -> None:
    session = Keyspace().session()
    data = request("BF.ADD", "a", "x") * 2000
    assert session.execute(data, NOW) == b":1\r\n" + b":0\r\n" * 1999


def test_what_is_done_again_or_saved_and_loaded_has_the_same_digest(tmp_path: Path) -> None:
    keyspace, _ = filled()
    payload = keyspace.take_changes()
    assert keyspace.take_changes() == b""
    again = Keyspace()
    again.replay(payload)
    assert again.digest() == keyspace.digest()
    assert again.take_changes() == b"", "a replay is not journaled again"
    path = tmp_path / "keys"
    assert keyspace.save(path) == path.stat().st_size
    loaded = Keyspace()
    loaded.load(path)
    assert loaded.digest() == keyspace.digest() != Keyspace().digest()
    assert len(loaded) == len(keyspace) == 5
    with pytest.raises(errors.ParameterError):
        loaded.load(path)


def test_what_is_changed_after_a_snapshot_is_in_the_changes_after_it(tmp_path: Path) -> None:
    keyspace, session = filled()
    keyspace.take_changes()
    keyspace.save(tmp_path / "keys")
    session.execute(request("BF.ADD", "set0", "one more") + request("CF.DEL", "counts", "7"), NOW)
    restarted = Keyspace()
    restarted.load(tmp_path / "keys")
    assert restarted.digest() != keyspace.digest()
    restarted.replay(keyspace.take_changes())
    assert restarted.digest() == keyspace.digest()


def test_without_a_journal_nothing_is_kept() -> None:
    keyspace = Keyspace(journal=False)
    keyspace.session().execute(request("BF.ADD", "a", "x"), NOW)
    assert keyspace.take_changes() == b""
    keyspace.journal = True
    keyspace.session().execute(request("BF.ADD", "a", "y"), NOW)
    assert b"BF.ADD" in keyspace.take_changes()


def test_damage_is_an_error_with_a_name(tmp_path: Path) -> None:
    keyspace, _ = filled()
    payload = keyspace.take_changes()
    with pytest.raises(errors.SnapshotError):
        Keyspace().replay(payload[:-1])
    path = tmp_path / "keys"
    keyspace.save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[:100] + b"!" + whole[101:])
    damaged = Keyspace()
    with pytest.raises(errors.ChecksumError) as caught:
        damaged.load(path)
    assert caught.value.path == str(path)
    assert len(damaged) == 0
    path.write_bytes(whole[:-5])
    with pytest.raises(errors.TruncatedError):
        damaged.load(path)
    path.write_bytes(b"something else")
    with pytest.raises(errors.NotASnapshotError):
        damaged.load(path)
    with pytest.raises(errors.StorageError):
        damaged.load(tmp_path / "absent")


@pytest.mark.parametrize(
    ("words", "none"),
    [(["KEYS", "*"], b"*0\r\n"), (["SCAN", "0", "COUNT", "500"], b"*2\r\n$1\r\n0\r\n*0\r\n"),
     (["RANDOMKEY"], b"$-1\r\n")],
)  # fmt: skip
def test_who_looks_at_all_names_forgets_those_whose_time_has_come(
    words: list[str], none: bytes
) -> None:
    keyspace = Keyspace()
    session = keyspace.session()
    for number in range(200):
        session.execute(request("SET", str(number), "x", "PX", "10"), NOW)
    begun = keyspace.take_changes()
    assert session.execute(request(*words), NOW + 1) == none
    gone = keyspace.take_changes()
    assert gone.count(b"DEL") == 200
    assert session.execute(request(*words), NOW - 1) == none, "the clock jumped back"
    again = Keyspace()
    again.replay(begun)
    assert len(again) == 200, "a replay forgets by what is in the journal alone"
    again.replay(gone)
    assert len(again) == 0


def test_the_host_forgets_names_that_nobody_asks_for_a_few_at_a_time() -> None:
    keyspace = Keyspace()
    session = keyspace.session()
    for number in range(100):
        session.execute(request("SET", str(number), "x", "PXAT", str(1000 + number)), 0.5)
    assert [keyspace.expire(1.0495, most=20) for _ in range(4)] == [20, 20, 10, 0]
    stats = keyspace.stats()
    assert (stats["keys"], stats["expires"], stats["expired"]) == (50, 50, 50)
    assert stats["mean_deadline"] == sum(range(1050, 1100)) // 50
    assert session.execute(request("GET", "50"), 1.0495) == b"$1\r\nx\r\n"


def test_a_file_has_the_time_when_a_name_expires(tmp_path: Path) -> None:
    keyspace = Keyspace()
    session = keyspace.session()
    session.execute(request("SET", "a", "x", "EX", "10") + request("SET", "b", "x"), NOW)
    keyspace.save(tmp_path / "keys")
    loaded = Keyspace()
    loaded.load(tmp_path / "keys")
    assert loaded.digest() == keyspace.digest()
    session.execute(request("PERSIST", "a"), NOW)
    assert loaded.digest() != keyspace.digest(), "the time is a part of the contents"
    asked = request("PTTL", "a") + request("PTTL", "b")
    assert loaded.session().execute(asked, NOW + 1) == b":9000\r\n:-1\r\n"
    assert loaded.session().execute(request("EXISTS", "a", "b"), NOW + 10) == b":1\r\n"


def test_where_nothing_may_be_changed_a_name_is_gone_without_a_note() -> None:
    keyspace = Keyspace()
    session = keyspace.session()
    session.execute(request("SET", "a", "x", "EX", "10"), NOW)
    keyspace.take_changes()
    keyspace.read_only = "the disk is full"
    assert session.execute(request("GET", "a"), NOW + 10) == b"$-1\r\n"
    assert keyspace.take_changes() == b""


def test_a_client_watches_no_more_than_the_page_says() -> None:
    session = Keyspace().session()
    names = [str(number) for number in range(10_000)]
    assert session.execute(request("WATCH", *names), NOW) == b"+OK\r\n"
    assert session.execute(request("WATCH", "one more"), NOW).startswith(b"-ERR a client")
    assert session.execute(request("UNWATCH"), NOW) == b"+OK\r\n"
    long = "x" * (9 << 20)
    assert session.execute(request("WATCH", long), NOW) == b"+OK\r\n"
    assert session.execute(request("WATCH", long), NOW).startswith(b"-ERR a client")


REPLIES: list[tuple[object, bytes, bytes]] = [
    (7, b":7\r\n", b":7\r\n"),
    (True, b":1\r\n", b"#t\r\n"),
    (0.5, b"$3\r\n0.5\r\n", b",0.5\r\n"),
    (b"a\r\nb", b"$4\r\na\r\nb\r\n", b"$4\r\na\r\nb\r\n"),
    ("OK", b"+OK\r\n", b"+OK\r\n"),
    ("two\r\nlines", b"$10\r\ntwo\r\nlines\r\n", b"=14\r\ntxt:two\r\nlines\r\n"),
    (None, b"$-1\r\n", b"_\r\n"),
    ([1, [b"x"]], b"*2\r\n:1\r\n*1\r\n$1\r\nx\r\n", b"*2\r\n:1\r\n*1\r\n$1\r\nx\r\n"),
    ((), b"*0\r\n", b"*0\r\n"),
    ({"a": 1}, b"*2\r\n+a\r\n:1\r\n", b"%1\r\n+a\r\n:1\r\n"),
    (frozenset({1}), b"*1\r\n:1\r\n", b"~1\r\n:1\r\n"),
    (ValueError("no\nsuch"), b"-ERR no\r\n", b"-ERR no\r\n"),
    (RuntimeError("NOPERM no"), b"-NOPERM no\r\n", b"-NOPERM no\r\n"),
]


@pytest.mark.parametrize(("value", "two", "three"), REPLIES)
def test_the_host_answers_with_python_values(value: object, two: bytes, three: bytes) -> None:
    for protocol, expected in [(2, two), (3, three)]:
        session = Keyspace(foreign=["INFO", "history.top"]).session()
        session.execute(request("HELLO", str(protocol)), NOW)
        assert session.protocol == protocol
        data = request("INFO", "x") + request("PING") + request("History.Top", "5")
        assert session.execute(data, NOW) == b""
        assert session.foreign == [b"INFO", b"x"]
        assert session.resume(value, NOW) == expected + b"+PONG\r\n"
        assert session.foreign == [b"History.Top", b"5"]
        assert session.resume(1, NOW) == b":1\r\n"
        assert session.foreign is None


def test_what_is_no_reply_is_refused_and_the_command_still_waits() -> None:
    session = Keyspace(foreign=["INFO"]).session()
    session.execute(request("INFO"), NOW)
    loop: list[object] = []
    loop.append(loop)
    for value, error in [(object(), TypeError), (loop, RecursionError), (1 << 70, OverflowError)]:
        with pytest.raises(error):
            session.resume(value, NOW)
    assert session.foreign == [b"INFO"]
    assert session.resume("OK", NOW) == b"+OK\r\n"
    with pytest.raises(errors.ParameterError):
        session.resume("OK", NOW)


def test_a_client_says_who_it_is() -> None:
    keyspace = Keyspace()
    keyspace.set_users(["user default on >secret ~* +@all", "user ann on nopass ~a* +@read"])
    session = keyspace.session(client=9)
    assert (session.authenticated, session.user, session.client) == (False, "", 9)
    assert session.execute(request("BF.ADD", "a", "x"), NOW).startswith(b"-NOAUTH ")
    hello = session.execute(
        request("HELLO", "3", "AUTH", "default", "secret", "SETNAME", "me"), NOW
    )
    assert hello.startswith(b"%7\r\n")
    assert (session.authenticated, session.user, session.name) == (True, "default", "me")
    session.name, session.library = "you", ("redis-py", "8.1")
    assert session.name == "you"
    assert session.library == ("redis-py", "8.1")
    assert any(line.startswith("user ann on nopass ~a*") for line in keyspace.users())
    with pytest.raises(errors.ParameterError, match="nonsense"):
        keyspace.set_users(["user bob nonsense"])
    assert not any("bob" in line for line in keyspace.users())


def test_what_does_not_fit_is_refused() -> None:
    keyspace = Keyspace(max_memory=1 << 20)
    session = keyspace.session()
    answer = session.execute(request("BF.RESERVE", "a", "0.0001", "1000000000"), NOW)
    assert answer.startswith(b"-OOM ")
    keyspace.max_memory = None
    assert session.execute(request("BF.RESERVE", "a", "0.01", "100000"), NOW) == b"+OK\r\n"
    assert keyspace.stats()["bytes"] > 100_000


def test_a_key_that_is_one_too_many_is_refused() -> None:
    keyspace = Keyspace(max_keys=1)
    session = keyspace.session()
    assert session.execute(request("BF.ADD", "a", "x"), NOW) == b":1\r\n"
    assert session.execute(request("BF.ADD", "b", "x"), NOW).startswith(b"-ERR max number of keys")
    assert (keyspace.max_keys, keyspace.stats()["max_keys"], len(keyspace)) == (1, 1, 1)
    keyspace.max_keys = None
    assert session.execute(request("BF.ADD", "b", "x"), NOW) == b":1\r\n"


def test_a_protocol_error_ends_the_session() -> None:
    session = Keyspace().session()
    answer = session.execute(b"*1\r\n$9223372036854775808\r\n", NOW)
    assert answer == b"-ERR Protocol error: invalid bulk length\r\n"
    assert session.closing
    assert session.buffered == 0
    assert session.execute(request("PING"), NOW) == b""


def test_the_numbers_of_the_whole() -> None:
    keyspace, session = filled()
    session.execute(request("NO.SUCH") + request("BF.ADD"), NOW)
    stats = keyspace.stats()
    assert stats["keys"] == 5
    assert stats["unknown"] == 1
    assert stats["errors"] == 2
    assert stats["commands"]["BF.ADD"] == (501, 1)
    rows = {row["name"]: row for row in keyspace.structures()}
    assert rows[b"set0"]["kind"] == "scalable"
    assert rows[b"set0"]["type"] == "MBbloom--"
    assert 150 <= rows[b"set0"]["items"] <= 167
    assert 0 < rows[b"set0"]["fill"] < 1
    assert 0 < rows[b"set0"]["predicted_error"] < 0.02
    assert len(keyspace.structures(limit=2)) == 2
    keyspace.read_only = "the disk is full"
    answer = session.execute(request("BF.ADD", "set0", "y"), NOW)
    assert answer == b"-MISCONF the disk is full\r\n"
    keyspace.read_only = None
    keyspace.loading = True
    assert session.execute(request("BF.EXISTS", "set0", "y"), NOW).startswith(b"-LOADING ")


def test_what_a_client_sent_can_be_forgotten() -> None:
    session = Keyspace(foreign=["INFO"]).session()
    session.execute(request("INFO") + request("PING") + b"*1\r\n", NOW)
    session.discard()
    assert session.foreign is None
    assert session.buffered == 0
    assert session.execute(request("PING"), NOW) == b"+PONG\r\n"
