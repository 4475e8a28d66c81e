"""What a client sees of a session and no dialogue can say: memory, chunks, long answers, limits."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest

from bloomtide import errors
from bloomtide._core import Keyspace
from tests.resp.test_dialogues import Conversation


def test_what_waits_for_exec_is_no_more_than_two_texts_may_have() -> None:
    talk = Conversation(2)
    talk.say("MULTI")
    answers = [talk.say("SET a " + "x" * 60_000) for _ in range(40)]
    assert answers[0] == "+QUEUED"
    assert answers[-1].startswith("-ERR ")
    assert talk.say("EXEC").startswith("-EXECABORT ")


def test_the_memory_of_a_list_is_that_of_its_keys_too() -> None:
    talk = Conversation(2)
    talk.say("TOPK.RESERVE t 2")
    before = talk.keyspace.stats()["bytes"]
    for item, weight, more in [("x" * 1000, 1, 1000), ("yy", 7, 1002), ("zzz", 6, 5)]:
        talk.say(f"TOPK.INCRBY t {item} {weight}")
        assert talk.keyspace.stats()["bytes"] == before + more


def test_counters_that_grow_are_weighed_again() -> None:
    talk = Conversation(2)
    talk.say("COUNT.RESERVE c 1000 0.01")
    before = talk.keyspace.stats()["bytes"]
    for item in range(600):
        talk.say(f"COUNT.ADD c {item} 4000000000")
    used = talk.keyspace.stats()["bytes"]
    assert used > 2 * before
    # No more is taken than there may be.
    talk.keyspace.max_memory = used - 1
    assert talk.say("COUNT.ADD c a").startswith("-OOM ")
    assert talk.say("COUNT.REMOVE c 1 4000000000") == ":0"


def test_a_scan_sees_all_that_was_there_all_along() -> None:
    talk = Conversation(2)
    for key in range(100):
        talk.say(f"SET stay{key} x")
        talk.say(f"SET go{key} x")
    seen, cursor = [], "0"
    for round_ in range(1000):
        words = talk.say(f"SCAN {cursor} COUNT 7 MATCH stay*").split()
        seen += [word for word in words if word.startswith("stay")]
        talk.say(f"DEL go{round_}")
        talk.say(f"SET new{round_} x")
        if (cursor := words[2]) == "0":
            break
    assert len(seen) == len(set(seen)) == 100


def test_many_answers_are_sent_in_parts() -> None:
    session = Keyspace().session()
    text = b"x" * (1 << 20)
    session.execute(b"*3\r\n$3\r\nSET\r\n$1\r\nt\r\n$1048576\r\n%s\r\n" % text, 1.0)
    answered = len(session.execute(b"GET t\r\n" * 200, 1.0))
    while session.more:
        answer = session.execute(b"", 1.0)
        assert len(answer) < 80 << 20
        answered += len(answer)
    assert answered == 200 * ((1 << 20) + len("$1048576\r\n\r\n"))


FAMILIES = ("CMS.", "TOPK.", "COUNT.", "DECAY.", "URL.")


def test_a_key_of_another_kind_is_refused_by_every_command() -> None:
    talk = Conversation(2)
    # A name that is a number, too, so that it can stand at every place.
    talk.say("BF.ADD 1 a")
    asked = 0
    for name in re.findall(r"\S+\.\S+", talk.say("COMMAND LIST").upper()):
        makes = "RESERVE" in name or "INIT" in name or name == "URL.CANONICAL"
        if not name.startswith(FAMILIES) or makes:
            continue
        arity = int(talk.say(f"COMMAND INFO {name}").split()[4].removeprefix(":"))
        answer = talk.say(name + " 1" * (abs(arity) - 1))
        assert answer.startswith("-WRONGTYPE "), name
        asked += 1
    assert asked > 30


@pytest.mark.parametrize(("family", "other"), [("BF", "CF"), ("CF", "BF")])
def test_chunks_bring_a_filter_to_another_name(family: str, other: str) -> None:
    talk = Conversation(2)
    for key in range(500):
        talk.say(f"{family}.ADD from {key}")
    number, data = talk.chunk(family, "from", 0)
    assert talk.load(f"{other}.LOADCHUNK", "to", 1, data) == "-ERR received bad data"
    while number > 0:
        assert talk.load(f"{family}.LOADCHUNK", "to", number, data) == "+OK"
        if number == 1:
            refused = "-ERR the key is still being loaded by chunks"
            assert talk.say(f"{family}.ADD to a") == refused
        number, data = talk.chunk(family, "from", number)
    assert talk.say(f"{family}.INFO to") == talk.say(f"{family}.INFO from")
    assert talk.digest_again() == talk.keyspace.digest()


def test_a_set_that_grows_loses_no_key_and_a_fixed_one_takes_none_when_it_is_full() -> None:
    talk = Conversation(2)
    talk.say("BF.RESERVE grows 0.01 50")
    talk.say("BF.RESERVE fixed 0.01 50 NONSCALING")
    keys = range(1000)
    assert sum(talk.say(f"BF.ADD grows {key}") == ":1" for key in keys) > 950
    assert all(talk.say(f"BF.EXISTS grows {key}") == ":1" for key in keys)
    assert int(talk.say("BF.INFO grows FILTERS").removeprefix("*1 :")) > 3
    answers = [talk.say(f"BF.ADD fixed {key}") for key in range(70)]
    assert answers.count(":1") == 50
    assert answers[-1] == "-ERR non scaling filter is full"
    assert talk.say("BF.ADD fixed 0") == ":0"
    assert talk.digest_again() == talk.keyspace.digest()


def test_keys_that_are_taken_away_come_out_of_all_layers() -> None:
    talk = Conversation(2)
    talk.say("CF.RESERVE c 64 EXPANSION 2")
    keys = range(500)
    assert all(talk.say(f"CF.ADD c {key}") == ":1" for key in keys)
    assert "+Number of filters :4 +Number of items inserted :500" in talk.say("CF.INFO c")
    assert all(talk.say(f"CF.COUNT c {key}") != ":0" for key in keys)
    assert all(talk.say(f"CF.DEL c {key}") == ":1" for key in keys)
    told = talk.say("CF.INFO c")
    assert "+Number of items inserted :0 +Number of items deleted :500" in told
    # A key that comes often fills a layer, and can be taken away as often.
    talk.say("CF.RESERVE often 64 EXPANSION 2")
    assert all(talk.say("CF.ADD often a") == ":1" for _ in range(40))
    assert "+Number of filters :3 " in talk.say("CF.INFO often")
    for left in reversed(range(40)):
        assert talk.say("CF.DEL often a") == ":1"
        assert talk.say("CF.COUNT often a") == f":{left}"
    assert talk.say("CF.DEL often a") == ":0"
    assert talk.digest_again() == talk.keyspace.digest()


def test_a_long_pipeline_is_done_by_turns() -> None:
    talk = Conversation(2)
    lines = b"".join(b"BF.ADD name%d a\r\n" % number for number in range(50_000))
    answers = [talk.session.execute(lines, talk.now)]
    while talk.session.more:
        answers.append(talk.session.execute(b"", talk.now))
    assert b"".join(answers) == b":1\r\n" * 50_000
    assert len(answers) > 5
    assert talk.digest_again() == talk.keyspace.digest()


# --- limits ---------------------------------------------------------------------------------------

OUT_OF_MEMORY = "-OOM command not allowed when used memory > 'maxmemory'. This takes "
# All commands that reserve memory, each for the name `a`.
RESERVES = """
    BF.RESERVE a 0.0001 100000
    BF.RESERVE a 0.0001 100000 NONSCALING
    CF.RESERVE a 100000
    CMS.INITBYDIM a 100000 5
    CMS.INITBYPROB a 0.00001 0.001
    TOPK.RESERVE a 10000
    TOPK.RESERVE a 10 10000 10 0.9
    COUNT.RESERVE a 100000 0.01
    COUNT.RESERVE a 100000 0.01 KIND DCF
    COUNT.RESERVE a 100000 0.01 KIND SBF
    COUNT.RESERVE a 100000 0.01 KIND PSBF
    COUNT.RESERVE a 100000 0.01 KIND COUNTING
    DECAY.RESERVE a 100000 0.01 HALFLIFE 1h
    DECAY.RESERVE a 100000 0.01 HALFLIFE 1h STORAGE OPTIMIZED
    DECAY.RESERVE a 100 0.01 HALFLIFE 1h TOP 10000
    URL.RESERVE a 100000 0.01
""".strip().splitlines()
MAKERS = """
    SET a b
    BF.ADD a b
    BF.MADD a b c
    BF.INSERT a ITEMS b
    CF.ADD a b
    CF.ADDNX a b
    CF.INSERT a ITEMS b
    CF.INSERTNX a ITEMS b
""".strip().splitlines()


@pytest.mark.parametrize("line", [line.strip() for line in RESERVES])
def test_what_does_not_fit_is_refused_before_it_is_made(line: str) -> None:
    talk = Conversation(2)
    assert talk.say(line) == "+OK"
    talk.say("URL.ADD a http://a.org" + "/b" * 9)
    used = talk.keyspace.stats()["bytes"]

    def made_within(limit: int) -> str:
        small = Conversation(2)
        small.keyspace.max_memory = limit
        return small.say(line)

    refused = made_within(used * 6 // 10)
    assert refused.startswith(OUT_OF_MEMORY)
    assert refused.endswith("raise it by CONFIG SET maxmemory")
    assert "TOP " in line or made_within(used * 15 // 10) == "+OK"


def test_a_filter_that_grows_stops_where_its_next_layer_does_not_fit() -> None:
    talk = Conversation(2)
    talk.keyspace.max_memory = 1 << 16
    talk.say("BF.RESERVE small 0.01 1000")
    answers = (talk.say(f"BF.ADD small {key}") for key in range(2_000_000))
    assert next(it for it in answers if it.startswith("-")).startswith(OUT_OF_MEMORY)
    assert talk.keyspace.stats()["bytes"] <= 1 << 16
    assert talk.digest_again() == talk.keyspace.digest()


def growing(limit: int | None = None) -> tuple[Conversation, int]:
    """A filter that was added to until it had a second layer or was refused it, and how many."""
    talk = Conversation(2)
    talk.keyspace.max_memory = limit
    talk.say("BF.RESERVE f 0.001 12345 EXPANSION 4")
    before = talk.keyspace.stats()["bytes"]
    for added in range(20_000):
        answer = talk.say(f"BF.ADD f {added}")
        if answer.startswith(OUT_OF_MEMORY) or talk.keyspace.stats()["bytes"] > before:
            return talk, added
    raise AssertionError("it did not grow")


def chunks(talk: Conversation, family: str, name: str) -> list[tuple[int, bytes]]:
    """All that SCANDUMP answers, as LOADCHUNK takes it."""
    found: list[tuple[int, bytes]] = []
    number = 0
    while True:
        number, data = talk.chunk(family, name, number)
        if number == 0:
            return found
        found.append((number, data))


def test_all_structures_are_held_against_one_limit_however_they_come() -> None:
    source = Conversation(2)
    source.say("BF.RESERVE f 0.001 10000 NONSCALING")
    size = source.keyspace.stats()["bytes"]
    (number, head), *_ = chunks(source, "BF", "f")
    talk = Conversation(2)
    talk.keyspace.max_memory = 5 * size
    # What arrives needs its chunks and itself at the end: two fit, and one more does not.
    for name in "ab":
        assert talk.load("BF.LOADCHUNK", name, number, head) == "+OK"
    assert talk.load("BF.LOADCHUNK", "c", number, head).startswith(OUT_OF_MEMORY)
    assert talk.say("BF.RESERVE c 0.001 10000 NONSCALING").startswith(OUT_OF_MEMORY)
    talk.say("FLUSHALL")
    assert [talk.say(f"BF.RESERVE {n} 0.001 10000 NONSCALING") for n in "abcd"] == ["+OK"] * 4
    # Layers of a URL filter come later, but are there from the start.
    assert talk.say("URL.RESERVE u 5000 0.01 LAYERS 8").startswith(OUT_OF_MEMORY)
    talk.keyspace.max_memory = None
    talk.say("URL.RESERVE u 1000 0.01 LAYERS 8")
    used = talk.keyspace.stats()["bytes"]
    talk.say("URL.ADD u http://a.org" + "/b" * 9)
    assert talk.keyspace.stats()["bytes"] == used
    # A merge has the old sketch and the new one for a moment.
    talk.say("CMS.INITBYDIM s 1000 5")
    talk.say("COUNT.RESERVE n 1000 0.01")
    talk.keyspace.max_memory = talk.keyspace.stats()["bytes"] + 1000
    assert talk.say("CMS.MERGE s 1 s").startswith(OUT_OF_MEMORY)
    assert talk.say("COUNT.MERGE n n").startswith(OUT_OF_MEMORY)


@pytest.mark.parametrize(
    ("family", "makes"), [("BF", "BF.MADD f a b"), ("CF", "CF.INSERT f ITEMS a b")]
)
def test_no_changed_chunk_makes_a_key_look_absent(family: str, makes: str) -> None:
    source = Conversation(2)
    source.say(makes)
    parts = chunks(source, family, "f")
    assert len(parts) == 2
    for part in range(len(parts)):
        for place in range(len(parts[part][1])):
            changed = [data for _, data in parts]
            changed[part] = bytearray(changed[part])  # type: ignore[call-overload]
            changed[part][place] ^= 1 << place % 8  # type: ignore[index]
            talk = Conversation(2)
            said = [
                talk.load(f"{family}.LOADCHUNK", "f", number, bytes(data))
                for (number, _), data in zip(parts, changed, strict=True)
            ]
            assert any(answer.startswith("-ERR ") for answer in said), (part, place)
            assert talk.say("EXISTS f") == ":0"


def test_a_key_that_is_still_arriving_is_an_error_and_never_absent() -> None:
    source = Conversation(2)
    source.say("BF.ADD b a")
    source.say("CF.ADD c a")
    talk = Conversation(2)
    for family, name in (("BF", "b"), ("CF", "c")):
        (number, head), *rest = chunks(source, family, name)
        assert talk.load(f"{family}.LOADCHUNK", name, number, head) == "+OK"
        for line in ("EXISTS {} a", "MEXISTS {} a", "INFO {}", "ADD {} a", "SCANDUMP {} 0"):
            said = talk.say(f"{family}.{line.format(name)}")
            assert said == "-ERR the key is still being loaded by chunks", line
        for number, data in rest:
            assert talk.load(f"{family}.LOADCHUNK", name, number, data) == "+OK"
        assert talk.say(f"{family}.EXISTS {name} a") == ":1"
    assert talk.digest_again() == talk.keyspace.digest()


@pytest.mark.parametrize("word", ["POST", "post", "Host:", "HOST:"])
def test_the_lines_of_a_request_over_http_end_the_connection(word: str) -> None:
    talk = Conversation(2)
    assert talk.say(f"PING\r\n{word} / HTTP/1.1\r\nSET a b\r\n") == "+PONG"
    assert talk.session.closing
    assert len(talk.keyspace) == 0


def test_the_memory_of_a_layer_is_known_before_it_is_made() -> None:
    for words in ("NONSCALING", "EXPANSION 1", "EXPANSION 4"):
        line = f"BF.RESERVE f 0.001 12345 {words}"
        free, exact, small = Conversation(2), Conversation(2), Conversation(2)
        free.say(line)
        used = free.keyspace.stats()["bytes"]
        exact.keyspace.max_memory, small.keyspace.max_memory = used, used - 1
        assert exact.say(line) == "+OK"
        assert small.say(line).startswith(OUT_OF_MEMORY)
    talk, added = growing()
    used = talk.keyspace.stats()["bytes"]
    assert growing(used)[0].keyspace.stats()["bytes"] == used
    refused, last = growing(used - 1)
    assert last == added
    assert refused.keyspace.stats()["bytes"] < used


def test_no_command_makes_one_key_more_than_there_may_be() -> None:
    talk = Conversation(2)
    talk.session.execute(b"BF.ADD BF a\nCF.ADD CF a\nSET text a\n", talk.now)
    heads = {family: talk.chunk(family, family, 0)[1] for family in ("BF", "CF")}
    talk.keyspace.max_keys = 3
    digest = talk.keyspace.digest()
    talk.keyspace.take_changes()
    way_out = "DEL one, or raise it by CONFIG SET maxkeys"
    refused = f"-ERR max number of keys reached: 'maxkeys' is 3; {way_out}"
    makers = [line.strip() for line in MAKERS + RESERVES]
    for line in makers:
        assert talk.say(line) == refused, line
    for family, head in heads.items():
        assert talk.load(f"{family}.LOADCHUNK", "a", 1, head) == refused
    answer = talk.session.execute(b"MULTI\r\nBF.ADD a b\r\nEXEC\r\n", talk.now)
    assert answer.decode() == f"+OK\r\n+QUEUED\r\n*1\r\n{refused}\r\n"
    assert talk.keyspace.digest() == digest
    assert talk.keyspace.take_changes() == b""
    # Keys that are there are changed as ever, and one that goes makes room.
    assert [talk.say("BF.ADD BF b"), talk.say("SET text b")] == [":1", "+OK"]
    assert talk.say("RENAME text other") == "+OK"
    for line in makers:
        assert talk.say("DEL other a") == ":1"
        assert not talk.say(line).startswith("-"), line
        assert len(talk.keyspace) == 3, line
    assert talk.say("FLUSHALL") == "+OK"
    assert talk.keyspace.max_keys == 3


def test_what_was_kept_under_a_higher_limit_of_keys_is_kept(tmp_path: Path) -> None:
    talk = Conversation(2)
    for key in range(5):
        talk.say(f"BF.ADD f{key} a")
    talk.keyspace.save(tmp_path / "keys")
    replayed, loaded = Conversation(2), Conversation(2)
    replayed.keyspace.max_keys = loaded.keyspace.max_keys = 2
    replayed.keyspace.replay(talk.keyspace.take_changes())
    loaded.keyspace.load(tmp_path / "keys")
    for kept in (replayed, loaded):
        assert kept.keyspace.digest() == talk.keyspace.digest()
        kept.hold(
            """
BF.ADD f4 b -> :1
BF.ADD new a -> -ERR max number of keys...
DEL f0 f1 f2 -> :3
BF.ADD new a -> -ERR max number of keys...
DEL f3 -> :1
BF.ADD new a -> :1
""",
            2,
        )


# --- journals and files ---------------------------------------------------------------------------


def test_only_what_had_an_effect_is_noted() -> None:
    talk = Conversation(2)
    talk.session.execute(b"BF.MADD f a b a b a\nBF.ADD f a\n", talk.now)
    noted = talk.keyspace.take_changes()
    assert (noted.count(b"BF.RESERVE"), noted.count(b"BF.ADD"), noted.count(b"BF.M")) == (1, 2, 0)
    assert noted.startswith(b"\x00" + struct.pack("<d", talk.now))
    talk.session.execute(b"PING\nBF.EXISTS a b\nDEL a\nBF.ADD f a\n", talk.now)
    assert talk.keyspace.take_changes() == b"", "questions and vain commands change nothing"


@pytest.mark.parametrize("words", [[b"PING"], [b"CF.DEL", b"absent", b"x"], [b"NO.SUCH"], [b""]])
def test_a_record_that_is_no_change_is_damage(words: list[bytes]) -> None:
    record = bytes([len(words)]) + b"".join(bytes([len(word)]) + word for word in words)
    with pytest.raises(errors.SnapshotError, match="the record at byte 0"):
        Keyspace().replay(b"\x00" + struct.pack("<d", 1.0) + record)


ALL_KINDS = """
SET text a
BF.RESERVE grows 0.01 5
BF.MADD grows 1 2 3 4 5 6 7 8
BF.RESERVE fixed 0.01 5 NONSCALING
CF.RESERVE cuckoo 4
CF.INSERT cuckoo ITEMS 1 2 3 4 5 1 2
CMS.INITBYDIM sketch 9 3
CMS.INCRBY sketch a 3 b 4 c 5
TOPK.RESERVE top 3 4 2 0.9
TOPK.ADD top a b c d a b a
COUNT.RESERVE pdcf 5 0.1
COUNT.MADD pdcf a b a
COUNT.RESERVE sbf 5 0.1 KIND SBF
COUNT.RESERVE counting 5 0.1 KIND COUNTING
DECAY.RESERVE fading 5 0.1 HALFLIFE 10m TOP 2
DECAY.MADD fading a b c a
URL.RESERVE urls 5 0.1
URL.MADD urls http://a.org/b http://a.org/b/c
""".strip()


def test_every_cut_and_every_changed_byte_of_a_file_is_seen(tmp_path: Path) -> None:
    talk = Conversation(2)
    assert not any(talk.say(line).startswith("-") for line in ALL_KINDS.splitlines())
    assert talk.load("BF.LOADCHUNK", "arriving", 1, talk.chunk("BF", "grows", 0)[1]) == "+OK"
    path = tmp_path / "keys"
    assert talk.keyspace.save(path) == path.stat().st_size
    loaded = Keyspace()
    loaded.load(path)
    assert loaded.digest() == talk.keyspace.digest() == talk.digest_again()
    loaded.session().execute(b"DEL text\n", talk.now)
    assert loaded.digest() != talk.keyspace.digest()
    whole = path.read_bytes()
    for place in range(0, len(whole), 13):
        flipped = bytearray(whole)
        flipped[place] ^= 1
        for damaged in (whole[:place], bytes(flipped)):
            path.write_bytes(damaged)
            with pytest.raises(errors.SnapshotError):
                Keyspace().load(path)


# --- the host -------------------------------------------------------------------------------------


def test_the_host_answers_its_commands_in_their_turn() -> None:
    session = Conversation(2).session
    data = b"PING\r\nINFO server\r\nPING\r\nINFO\r\nECHO x\r\n"
    assert session.execute(data, 1.0) == b"+PONG\r\n"
    assert session.execute(b"PING\r\n", 1.0) == b"", "nothing is done out of turn"
    assert session.resume("OK", 1.0) == b"+OK\r\n+PONG\r\n"
    assert session.resume("OK", 1.0) == b"+OK\r\n$1\r\nx\r\n+PONG\r\n"
    assert session.foreign is None
    assert session.buffered == 0
    assert Keyspace().session().execute(b"INFO\r\n", 1.0).startswith(b"-ERR unknown command")


def test_nothing_is_changed_while_it_may_not_be() -> None:
    talk = Conversation(2)
    talk.keyspace.read_only = "the journal failed"
    talk.hold("BF.ADD a x -> -MISCONF the journal failed\nBF.EXISTS a x -> :0", 2)
    talk.keyspace.read_only = None
    talk.keyspace.loading = True
    talk.hold("BF.EXISTS a x -> -LOADING ...\nPING -> +PONG", 2)
    talk.keyspace.loading = False
    talk.hold("BF.ADD a x -> :1", 2)


@pytest.mark.parametrize(
    "data", ["*9223372036854775808\r\n", "*1\r\n$-1\r\n", "*1\r\n+1\r\n", "*1\r\n$2\r\nabc\r\n"]
)
def test_a_malformed_request_is_answered_and_ends_the_session(data: str) -> None:
    session = Keyspace().session()
    answer = session.execute(f"PING\r\n{data}PING\r\n".encode(), 1.0)
    assert answer.startswith(b"+PONG\r\n-ERR Protocol error: ")
    assert answer.count(b"PONG") == 1
    assert session.closing
    assert session.buffered == 0
    assert session.execute(b"PING\r\n", 1.0) == b""
