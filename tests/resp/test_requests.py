"""What a client may send: requests in bytes, numbers, patterns, access lists, and the journal."""

from __future__ import annotations

from contextlib import suppress

import pytest

from bloomtide._core import Keyspace, Session
from bloomtide.errors import ParameterError, SnapshotError

PROTOCOL = "-ERR Protocol error: "
ELEMENTS, BULK = PROTOCOL + "invalid multibulk length", PROTOCOL + "invalid bulk length"
QUOTES = PROTOCOL + "unbalanced quotes in request"
END = PROTOCOL + "a bulk string must end with a line break"
# Bytes, and how their last answer begins.
SAMPLES = {
    b"*1\r\n$4\r\nPING\r\n*2\r\n$4\r\nECHO\r\n$0\r\n\r\n": "$0",
    b"PING\r\n\r\n   \nECHO \"a\\x41\\n\" \r\n": "$3",
    b"*0\r\n*-1\r\n*1\r\n$4\r\nPING\r\n": "+PONG",
    b"*3\r\n$3\r\nSET\r\n$12\r\n0123456789\r\n\r\n$1\r\nx\r\n": "+OK",
    b"*1\r\n+4\r\nPING\r\n": PROTOCOL + "expected '$', got '+'",
    b"*1\r\n:1\r\n": PROTOCOL + "expected '$', got ':'",
    b"*1\r\n$4\r\nPINGxx\r\n": END,
    b"*1\r\n$4\r\nPINGx": END,
    b"*1\r\n$4\r\nPING\rx": END,
    **{f"*{n}\r\n".encode(): ELEMENTS for n in (2**63, 2**20 + 1, "01", "+1", "1x", "", "-", "-0")},
    b"*1\rx": ELEMENTS,
    **{f"*1\r\n${n}\r\n".encode(): BULK for n in (2**63, 2**29 + 1, 2**63 - 1, -1, "00", "x")},
    b'GET "open\r\n': QUOTES,
    b'GET "a"b\r\n': QUOTES,
    b"GET 'a'b c\r\n": QUOTES,
}  # fmt: skip


def answers(*pieces: bytes) -> bytes:
    session = Keyspace().session()
    return b"".join(session.execute(piece, 1.0) for piece in pieces)


@pytest.mark.parametrize("data", SAMPLES, ids=repr)
def test_however_it_is_cut_a_request_is_answered_alike(data: bytes) -> None:
    whole = answers(data)
    assert whole.count(b"-ERR") == ("-ERR" in SAMPLES[data])
    last = whole.decode().split("\r\n")[-3 if SAMPLES[data][0] == "$" else -2]
    assert last.startswith(SAMPLES[data])
    assert answers(*(bytes([byte]) for byte in data)) == whole
    for cut in range(len(data)):
        assert answers(data[:cut], data[cut:]) == whole


@pytest.mark.parametrize("data", [b"*1\r\n$4\r\nPINGx", b"*1\r\n$4\r\nPING\rx", b"*1x"])
def test_a_refusal_comes_with_the_first_byte_that_shows_it(data: bytes) -> None:
    assert answers(data[:-1]) == b""
    assert answers(data).startswith(PROTOCOL.encode())


@pytest.mark.parametrize(
    ("line", "word"),
    [
        (r'"a\x41\n\q\r\t\b\a\xZ"', b"aA\nq\r\t\x08\x07xZ"),
        (r"'it\'s \n'", rb"it's \n"),
        (r'k"x y"', b"kx y"),
    ],
)
def test_words_of_a_line_may_be_quoted(line: str, word: bytes) -> None:
    assert answers(f"ECHO {line}\n".encode()) == b"$%d\r\n%s\r\n" % (len(word), word)


def test_a_line_without_an_end_is_refused_and_a_claimed_length_waits() -> None:
    assert answers(b"a" * (2**16 - 1)) == b""
    assert answers(b"a" * 2**16).startswith(b"-ERR Protocol error: too big inline request")
    assert answers(b"*1048576\r\n$536870912\r\n") == b""
    two = Keyspace(max_bulk=1 << 19).session()
    some = b"$500000\r\n" + b"x" * 500_000 + b"\r\n"
    assert b"too big request" in two.execute(b"*9\r\n" + some * 3, 1.0)


def test_an_answer_of_one_line_stays_one() -> None:
    session = Keyspace(foreign=["INFO"]).session()
    assert session.execute(b"INFO\n", 1.0) == b""
    assert session.resume(RuntimeError("ERR a\x0bb"), 1.0) == b"-ERR a b\r\n"
    assert answers(b'"NO\\r\\n+OK"\n').count(b"\r\n") == 1


@pytest.mark.parametrize(
    "text", ["", "-", "+1", "01", "-0", " 1", "1 ", "0x1", "9223372036854775808", "9" * 20]
)
def test_what_is_no_number_is_refused(text: str) -> None:
    assert answers(f'SELECT "{text}"\n'.encode()).startswith(b"-ERR value is not an integer")


def test_numbers_are_those_of_64_bits_and_rates_are_finite() -> None:
    for text in ("1", "-1", "9", "10", "-10", str(2**63 - 1), str(-(2**63))):
        assert answers(f"SELECT {text}\n".encode()).startswith(b"-ERR DB index")
    for rate in ("nan", "inf", "1e400"):
        assert answers(f"BF.RESERVE a {rate} 100\n".encode()).startswith(b"-ERR bad error rate")
    assert answers(b"BF.RESERVE a 1e-3 100\n") == b"+OK\r\n"


# Each pattern with a name.
MATCHES = r"*= *=abc a*c=abbc a?c=abc [a-c]x=bx [^a]x=bx \*=* a**b=ab *a*b*=xxaxxbxx [\]]=]"
DIFFERS = r"a= a?c=ac [a-c]=d [^a]=a \*=a a*c=abcd ?="


@pytest.mark.parametrize("found", [True, False])
def test_a_pattern_matches_what_it_says(found: bool) -> None:
    for pattern, name in (pair.split("=") for pair in (MATCHES if found else DIFFERS).split()):
        session = Keyspace().session()
        session.execute(
            b"*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$1\r\nx\r\n" % (len(name), name.encode()), 1.0
        )
        keys = b"*2\r\n$4\r\nKEYS\r\n$%d\r\n%s\r\n" % (len(pattern), pattern.encode())
        assert session.execute(keys, 1.0).startswith(b"*1" if found else b"*0"), (pattern, name)


@pytest.mark.parametrize(("pattern", "length"), [("*a" * 2000, 1999), ("a*" * 1000 + "c", 20_000)])
def test_many_stars_take_no_exponential_time(pattern: str, length: int) -> None:
    session = Keyspace().session()
    assert session.execute(f"SET {'a' * length} x\n".encode(), 1.0) == b"+OK\r\n"
    assert session.execute(f"KEYS {pattern}\n".encode(), 1.0) == b"*0\r\n"


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("user ann on what", "what"),
        ("user ann +@nothing", "+@nothing"),
        ("user ann +no.such", "+no.such"),
        ("ann on", "ann"),
        ("user ann #12", "(a password)"),
    ],
)
def test_a_wrong_word_of_an_access_list_is_named_and_a_password_is_not(
    line: str, named: str
) -> None:
    keyspace = Keyspace()
    with pytest.raises(ParameterError) as refusal:
        keyspace.set_users([line])
    assert refusal.value.got == named
    assert len(keyspace.users()) == 1, "nothing was changed"


def test_a_user_written_as_a_line_is_the_same_user() -> None:
    one, other = Keyspace(), Keyspace()
    one.set_users(
        ["user ann on >pw ~a* ~b +@all -flushall", "user bob off <pw #" + "0f" * 32 + " -@all +get"]
    )
    other.set_users(one.users()[1:])
    assert other.users() == one.users()
    assert one.users()[1].endswith(" ~a* ~b +@all -flushall")
    assert one.users()[2] == f"user bob off #{'0f' * 32} -@all +get"
    session = other.session()
    assert session.execute(b"AUTH ann pw\nFLUSHALL\n", 1.0).startswith(b"+OK\r\n-NOPERM")


def journal(session: Session, keyspace: Keyspace, *commands: tuple[float, bytes]) -> bytes:
    for now, command in commands:
        assert not session.execute(command + b"\n", now).startswith(b"-")
    return keyspace.take_changes()


def test_what_was_noted_is_done_again_and_every_cut_is_damage_or_less() -> None:
    keyspace = Keyspace()
    session = keyspace.session()
    sets = [(1.5, b'SET A ""'), (1.5, b"SET B " + b"7" * 1000), (2.5, b"SET C 1")]
    payload = journal(session, keyspace, *sets)
    again = Keyspace()
    again.replay(payload)
    assert again.digest() == keyspace.digest()
    assert payload.count(b"\x00\x00\x00\x00\x00\x00\x00\xf8?") == 1, (
        "the time is noted where it changes"
    )
    assert journal(session, keyspace, (2.5, b"SET D 1"))[0] == 0, "each payload begins with a time"
    for cut in range(len(payload)):
        part = Keyspace()
        with suppress(SnapshotError):
            part.replay(payload[:cut])
        assert len(part) < 3
    for wrong in (
        bytes(9) + b"\xff\xff\xff\xff\x0f",
        b"\0" + b"\xff" * 8 + payload[9:],
        payload[9:],
    ):
        with pytest.raises(SnapshotError):
            Keyspace().replay(wrong)
