"""Visits to pages, in epochs: real web logs where there are some, and generated traffic.

A page is a number, that of its first visit: memory and answers do not depend on how a key is spelt,
and numbers are quick. Logs are sorted by time: some step back, one is sorted by site.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bloomtide.stream import web_stream
from trials.streams import Keys, lines_of

Visit = tuple[bytes, int]
"""Page and Unix second."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """Visits in their order."""

    name: str
    pages: Keys
    epochs: npt.NDArray[np.int64]

    @property
    def distinct(self) -> int:
        """Pages that were visited."""
        return int(self.pages.max()) + 1

    def hits(self) -> npt.NDArray[np.int64]:
        """Visits of each page, the hottest first."""
        return np.sort(np.bincount(self.pages))[::-1]

    def by_epoch(self) -> Iterator[tuple[int, Keys]]:
        """Every epoch that has visits, from 0 on, and its visits."""
        first = np.flatnonzero(np.diff(self.epochs, prepend=-1))
        for start, end in zip(first, [*first[1:], len(self.epochs)], strict=True):
            yield int(self.epochs[start] - self.epochs[0]), self.pages[start:end]


def generated(
    pages: int, visits_per_epoch: int, epochs: int, *, skew: float = 1.0, drift: float = 0.0
) -> Traffic:
    """The traffic of `bloomtide.stream`; with `drift` pages come up and are forgotten."""
    visits = web_stream(visits_per_epoch * epochs, seed=2004, pages=pages, skew=skew, drift=drift)
    numbers = _numbered(chain.from_iterable(visits))
    return Traffic("generated", numbers, np.repeat(np.arange(epochs), visits_per_epoch))


def logs(folder: Path | None, names: tuple[str, ...], limit: int) -> Iterator[Traffic]:
    """The named logs, as far as they are there."""
    for name in names:
        file, parse, epoch = LOGS[name]
        lines = lines_of(folder, file)
        if lines is None:
            continue
        visits = [visit for line in islice(lines, limit) if (visit := parse(line))]
        pages = _numbered(page for page, _ in visits)
        seconds = np.array([second for _, second in visits])
        order = np.argsort(seconds, kind="stable")
        yield Traffic(name, pages[order], seconds[order] // epoch)


def _numbered(pages: Iterator[str] | Iterator[bytes]) -> Keys:
    seen: dict[str | bytes, int] = {}
    return np.array([seen.setdefault(page, len(seen)) for page in pages], dtype=np.int64)


@lru_cache(maxsize=4096)
def _hour(day_and_hour: bytes, zone: bytes) -> int:
    text = f"{day_and_hour.decode()} {zone.decode()}"
    return int(datetime.strptime(text, "%d/%b/%Y:%H %z").timestamp())


def _combined(line: bytes) -> Visit | None:
    """`host - - [17/Apr/2018:06:25:06 +0000] "GET /page HTTP/1.1" ...`."""
    words = line.split(maxsplit=7)
    if len(words) < 8 or not words[3].startswith(b"["):
        return None
    hour, minute, second = words[3][1:].rsplit(b":", 2)
    return words[6], _hour(hour, words[4].rstrip(b"]")) + int(minute) * 60 + int(second)


def _columns(page: int, time: int) -> Callable[[bytes], Visit | None]:
    """Columns between tabs; a line without a time is the header."""

    def parse(line: bytes) -> Visit | None:
        words = line.rstrip(b"\n").split(b"\t")
        return (words[page], int(words[time])) if words[time].isdigit() else None

    return parse


def _page_alone(line: bytes) -> Visit:
    return line.strip(), 0


HOUR, DAY = 3600, 86_400

LOGS: dict[str, tuple[str, Callable[[bytes], Visit | None], int]] = {
    "web server 2018": ("nginx_stickerapp_2018-04.log", _combined, HOUR),
    "NASA 1995": ("nasa_19950801.tsv", _columns(page=4, time=2), HOUR),
    "web cache 2007": ("cache2k_web07_ids.txt", _page_alone, HOUR),
    "news links 2022": ("news_links_2022_2023.tsv", _columns(page=1, time=0), DAY),
}
"""The log, its file, how a line is read, and the seconds of an epoch."""
