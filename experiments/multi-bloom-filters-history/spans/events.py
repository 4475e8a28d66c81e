"""Streams of events, a key and an instant each: real logs where there are some, and generated ones.

Keys are an Arrow column of strings and instants one of Unix microseconds, in the order of time, as
a log has them: all stores take them from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bloomtide.stream import distinct_urls
from trials.streams import lines_of, zipf

Micros = npt.NDArray[np.int64]
Event = tuple[str, int]
"""Key and Unix second."""

MINUTE = 60_000_000
START = 1_700_000_040
"""A whole minute; where generated streams begin."""


@dataclass(frozen=True, slots=True)
class Events:
    """A stream, and how wide a window of it is."""

    name: str
    keys: pa.Array
    at: Micros
    window: str
    about: str

    def __len__(self) -> int:
        return len(self.at)

    @property
    def width(self) -> int:
        """Microseconds of a window."""
        return {"1m": MINUTE, "1h": 60 * MINUTE}[self.window]

    def batches(self, size: int) -> Iterator[tuple[pa.Array, Micros]]:
        """Pieces of the stream."""
        for first in range(0, len(self), size):
            yield self.keys.slice(first, size), self.at[first : first + size]


def _sorted(name: str, events: list[Event], window: str, about: str) -> Events:
    seconds = np.array([second for _, second in events], dtype=np.int64)
    order = np.argsort(seconds, kind="stable")
    keys = pa.array([key for key, _ in events], pa.string()).take(pa.array(order))
    return Events(name, keys, seconds[order] * 1_000_000, window, about)


def generated_urls(events: int, days: int, repeated: float) -> Events:
    """Rare long keys: a crawler's or a proxy's URLs, most of which come once or twice.

    A share `repeated` of the events goes to pages that came before, the rest to new ones. A URL has
    about 100 characters: its page, and a query as trackers add them.
    """
    random = np.random.default_rng(2009)
    again = random.random(events) < repeated
    again[0] = False
    new = np.cumsum(~again)
    pages = np.where(again, (random.random(events) * new).astype(np.int64), new - 1)
    catalogue = distinct_urls(int(new[-1]), 2009)
    marks = random.integers(1 << 62, size=len(catalogue)).tolist()
    urls = [
        f"{page}?session={mark:016x}&from=newsletter"
        for page, mark in zip(catalogue, marks, strict=True)
    ]
    keys = pa.array(urls, pa.string()).take(pa.array(pages))
    at = START * 1_000_000 + np.sort(random.integers(days * 1440 * MINUTE, size=events))
    return Events("generated URLs, mostly rare", keys, at, "1m", f"{days} days")


def generated_pages(events: int, pages: int, days: int) -> Events:
    """The pages of a web site by Zipf's law: few keys, each of them often."""
    random = np.random.default_rng(2010)
    keys = pa.array(distinct_urls(pages, 2010), pa.string())
    drawn = zipf(random, pages, 1.0, events)
    at = START * 1_000_000 + np.sort(random.integers(days * 1440 * MINUTE, size=events))
    return Events("generated pages, Zipf", keys.take(pa.array(drawn)), at, "1m", f"{days} days")


def logs(folder: Path | None, limit: int) -> Iterator[Events]:
    """Real logs, as far as they are there."""
    for name, (file, parse, window, about) in LOGS.items():
        lines = lines_of(folder, file)
        if lines is not None:
            events = [event for line in islice(lines, limit) if (event := parse(line))]
            yield _sorted(name, events, window, about)


@lru_cache(maxsize=4096)
def _hour(day_and_hour: str, zone: str) -> int:
    return int(datetime.strptime(f"{day_and_hour} {zone}", "%d/%b/%Y:%H %z").timestamp())


@lru_cache(maxsize=64)
def _day(day: str) -> int:
    return int(datetime.fromisoformat(f"{day}T00:00:00Z").timestamp())


def _combined(line: bytes) -> Event | None:
    """`host - - [17/Apr/2018:06:25:06 +0000] "GET /page HTTP/1.1" ...`."""
    words = line.split(maxsplit=7)
    if len(words) < 8 or not words[3].startswith(b"["):
        return None
    hour, minute, second = words[3][1:].decode().rsplit(":", 2)
    at = _hour(hour, words[4].decode().rstrip("]")) + int(minute) * 60 + int(second)
    return words[6].decode("utf-8", "backslashreplace"), at


def _package(line: bytes) -> Event | None:
    """`"2014-12-16","00:00:00",893598,...`: the package is the seventh column."""
    words = line.decode("utf-8", "backslashreplace").split(",")
    if len(words) < 10 or words[0] == '"date"':
        return None
    hour, minute, second = words[1].strip('"').split(":")
    day = _day(words[0].strip('"'))
    return words[6].strip('"'), day + int(hour) * 3600 + int(minute) * 60 + int(second)


def _link(line: bytes) -> Event | None:
    """`1643397022<TAB>https://...`."""
    second, tab, url = line.rstrip(b"\n").partition(b"\t")
    return (url.decode("utf-8", "backslashreplace"), int(second)) if tab else None


Parse = Callable[[bytes], Event | None]
LOGS: dict[str, tuple[str, Parse, str, str]] = {
    "package downloads 2014": ("cran_downloads_2014-12-16_28.csv", _package, "1m", "13 days"),
    "web server 2018": ("nginx_stickerapp_2018-04.log", _combined, "1m", "13 days"),
    "news links 2022": ("news_links_2022_2023.tsv", _link, "1h", "22 months"),
}
"""The log, its file, how a line is read, its window, and how long it is."""
