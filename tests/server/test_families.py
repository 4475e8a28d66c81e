"""CMS, TOPK, COUNT, DECAY and URL answer as the structures in Python do, or as exact counters.

One fixed stream for all; and a journal gives the same contents again.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from bloomtide import (
    CountingBloomFilter,
    DynamicCountFilter,
    HotList,
    PartitionedDynamicCountFilter,
    PartitionedSpectralBloomFilter,
    SpectralBloomFilter,
    TimeDecayingBloomFilter,
    UrlFilter,
)
from bloomtide._core import Keyspace
from tests.server.resp import Talk

START = 1_700_000_000.0


def stream(events: int = 3000, keys: int = 800) -> list[str]:
    """Skewed: a few keys come often, most once or twice."""
    chance = random.Random(9)
    return [f"/page/{int(keys ** chance.random())}" for _ in range(events)]


@pytest.fixture(params=[2, 3])
def talk(request: pytest.FixtureRequest) -> Talk:
    return Talk(protocol=request.param)


def close(a: float, b: float) -> bool:
    return abs(a - b) <= 1e-9 * max(1.0, abs(b))


KINDS: dict[str, Any] = {
    "PDCF": PartitionedDynamicCountFilter,
    "DCF": DynamicCountFilter,
    "PSBF": PartitionedSpectralBloomFilter,
    "SBF": SpectralBloomFilter,
    "COUNTING": CountingBloomFilter,
}


@pytest.mark.parametrize("kind", KINDS)
def test_counts_are_those_of_the_filter_in_python(talk: Talk, kind: str) -> None:
    filter = KINDS[kind](1000, 0.01)
    assert talk("COUNT.RESERVE", "c", 1000, 0.01, "KIND", kind) == "OK"
    events = stream()
    new = [bool(talk("COUNT.ADD", "c", item)) for item in events[:500]]
    assert new == [filter.add(item) for item in events[:500]]
    assert [bool(it) for it in talk("COUNT.MADD", "c", *events[500:])] == [
        filter.add(item) for item in events[500:]
    ]
    for item in sorted(set(events))[::3]:
        assert talk("COUNT.COUNT", "c", item) == filter.count(item)
    keys = [*sorted(set(events)), "absent", "another"]
    assert talk("COUNT.MCOUNT", "c", *keys) == [filter.count(key) for key in keys]
    exists = talk("COUNT.MEXISTS", "c", *keys)
    assert [bool(it) for it in exists] == [key in filter for key in keys]
    assert talk.pairs("COUNT.INFO", "c")["Size"] == filter.stats().bytes


def test_an_estimate_is_that_of_the_filter_in_python(talk: Talk) -> None:
    filter = PartitionedDynamicCountFilter(1000, 0.01)
    talk("COUNT.RESERVE", "c", 1000, 0.01)
    for item, count in Counter(stream()).items():
        filter.add(item, count)
        talk("COUNT.INCRBY", "c", item, count)
    for item in ["/page/1", "/page/2", "/page/700", "absent"]:
        told = talk.pairs("COUNT.ESTIMATE", "c", item, "CONFIDENCE", 0.9)
        expected = filter.estimate(item, confidence=0.9)
        assert (told["value"], told["lower"]) == (expected.value, expected.lower)
        assert (told["upper"], float(told["confidence"])) == (expected.upper, 0.9)
        assert bool(told["saturated"]) is expected.saturated


def test_what_is_removed_is_counted_no_more(talk: Talk) -> None:
    filter = PartitionedDynamicCountFilter(1000, 0.001)
    talk("COUNT.RESERVE", "c", 1000, 0.001)
    counts = Counter(stream())
    for item, count in counts.items():
        filter.add(item, count)
        talk("COUNT.ADD", "c", item, count)
    for item, count in sorted(counts.items())[::2]:
        filter.remove(item, count)
        assert talk("COUNT.REMOVE", "c", item, count) == filter.count(item)
    keys = sorted(counts)
    assert talk("COUNT.MCOUNT", "c", *keys) == [filter.count(key) for key in keys]
    with pytest.raises(RuntimeError, match=r"ABSENT cannot remove 9999: .* is [0-9]+$"):
        talk("COUNT.REMOVE", "c", "/page/1", 9999)


def test_a_sketch_never_counts_too_little(talk: Talk) -> None:
    talk("CMS.INITBYPROB", "c", 0.002, 0.01)
    exact = Counter(stream())
    for item in exact:
        talk("CMS.INCRBY", "c", item, exact[item])
    keys = sorted(exact)
    told = dict(zip(keys, talk("CMS.QUERY", "c", *keys), strict=True))
    assert all(told[key] >= exact[key] for key in keys)
    too_large = sum(told[key] > exact[key] + 0.002 * exact.total() for key in keys)
    assert too_large <= 0.01 * len(keys)
    info = talk.pairs("CMS.INFO", "c")
    assert info == {"width": 1000, "depth": 7, "count": exact.total()}


def test_the_list_has_the_most_frequent_keys(talk: Talk) -> None:
    talk("TOPK.RESERVE", "t", 20, 500, 5, 0.9)
    exact = Counter(stream())
    talk("TOPK.ADD", "t", *stream())
    listed = talk("TOPK.LIST", "t", "WITHCOUNT")
    told = dict(zip(listed[::2], listed[1::2], strict=True))
    assert len(told) == 20
    assert {item for item, _ in exact.most_common(10)} <= set(told)
    assert all(count <= exact[item] for item, count in told.items())
    assert listed[1::2] == sorted(listed[1::2], reverse=True)


@pytest.mark.parametrize("layout", ["basic", "optimized"])
def test_faded_counts_are_those_of_the_filter_in_python(talk: Talk, layout: Any) -> None:
    filter = TimeDecayingBloomFilter(1000, 0.01, half_life="10m", storage=layout)
    hot = HotList(50, half_life="10m", epoch=filter.epoch)
    talk("DECAY.RESERVE", "d", 1000, 0.01, "HALFLIFE", "10m", "TOP", 50, "STORAGE", layout)
    for number, item in enumerate(stream(1500)):
        talk.now = START + number * 3
        late = number % 10 == 9
        at = talk.now - 1000 if late else talk.now
        told = talk("DECAY.ADD", "d", item, "AT", at) if late else talk("DECAY.ADD", "d", item)
        assert bool(told) is filter.add(item, at=at)
        hot.add(item, at=at)
    keys = sorted(set(stream(1500)))[::5]
    talk.now += 120
    told = [float(count) for count in talk("DECAY.MCOUNT", "d", *keys)]
    assert told == [filter.count(key, at=talk.now) for key in keys]
    assert close(
        float(talk("DECAY.RATE", "d", keys[0], "PER", "1m")),
        filter.rate(keys[0], "1m", at=talk.now),
    )
    top = talk("DECAY.TOP", "d", 10)
    expected = hot.top(10, at=talk.now)
    assert [item[0] for item in top] == [item.key for item in expected]
    for one, other in zip(top, expected, strict=True):
        numbers = [float(number) for number in one[1:]]
        assert numbers == [other.count, other.lower, other.share]


def test_urls_are_those_of_the_filter_in_python(talk: Talk) -> None:
    filter = UrlFilter(1000, 0.01)
    talk("URL.RESERVE", "u", 1000, 0.01)
    urls = [f"HTTP://site{number % 37}.org:80/a/{number % 11}/./{number}" for number in range(600)]
    told = talk("URL.MADD", "u", *urls)
    assert [bool(new) for new in told] == [filter.add(url) for url in urls]
    asked = urls[::7] + [url.replace("/a/", "/b/") for url in urls[::7]]
    assert [bool(it) for it in talk("URL.MEXISTS", "u", *asked)] == [url in filter for url in asked]
    for url in asked[::5]:
        assert bool(talk("URL.PREFIX", "u", url, 3)) is filter.seen_prefix(url, 3)
    hosts = [f"site{number}.org" for number in range(30, 45)]
    seen = [bool(talk("URL.HOST", "u", host)) for host in hosts]
    assert seen == [filter.seen_host(host) for host in hosts]


def busy(talk: Talk, rounds: int) -> None:
    """Something of every family, more of it with every round."""
    for number in range(rounds):
        talk.now += 7
        items = stream(40 + number)[number:]
        talk("CMS.INCRBY", "cms", *(word for item in items for word in (item, 2)))
        talk("TOPK.ADD", "top", *items)
        talk("COUNT.MADD", "count", *items)
        talk("COUNT.ADD", "merged", items[0], 10**10)
        talk("COUNT.REMOVE", "count", items[0])
        talk("DECAY.MADD", "decay", *items)
        talk("DECAY.ADD", "decay", items[0], "COUNT", 5, "AT", talk.now - 100)
        talk("URL.MADD", "url", *(f"http://example.org{item}/{number}" for item in items))
    talk("COUNT.MERGE", "merged", "count", "count")
    talk("CMS.MERGE", "cms", 1, "cms", "WEIGHTS", 3)


def reserved() -> Talk:
    talk = Talk(protocol=3)
    talk("CMS.INITBYDIM", "cms", 200, 4)
    talk("TOPK.RESERVE", "top", 10, 30, 3, 0.9)
    talk("COUNT.RESERVE", "count", 500, 0.01)
    talk("COUNT.RESERVE", "merged", 500, 0.01)
    talk("DECAY.RESERVE", "decay", 500, 0.01, "HALFLIFE", "1m", "TOP", 10)
    talk("URL.RESERVE", "url", 500, 0.01)
    return talk


def test_a_journal_gives_the_same_contents_again() -> None:
    talk = reserved()
    busy(talk, 20)
    again = Keyspace()
    again.replay(talk.keyspace.take_changes())
    assert again.digest() == talk.keyspace.digest()
    assert again.digest() != Keyspace().digest()


def test_a_file_and_the_journal_after_it_give_the_same_contents_again(tmp_path: Path) -> None:
    talk = reserved()
    busy(talk, 10)
    talk.keyspace.take_changes()
    talk.keyspace.save(tmp_path / "keyspace")
    before = talk.keyspace.digest()
    again = Keyspace()
    again.load(tmp_path / "keyspace")
    assert again.digest() == before
    busy(talk, 15)
    again.replay(talk.keyspace.take_changes())
    assert again.digest() == talk.keyspace.digest() != before
