"""Keys and their times: real logs and lists where there are any, generated ones otherwise."""

from __future__ import annotations

import functools
import io
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np

DATA = Path(__file__).parents[2].parent / "shared" / "data"
Key = str | bytes | int
Row = tuple[Key, float | None]

_CLF = re.compile(rb'\[([^\]]+)\] "\S+ (\S+)')


@dataclass(frozen=True, slots=True)
class Stream:
    """Rows in the order of their source; times never go back."""

    name: str
    keys: list[Key]
    times: list[float]


def _text_line(line: bytes) -> Row | None:
    try:
        return line.decode(), None
    except UnicodeDecodeError:
        return line, None


def _number_line(line: bytes) -> Row | None:
    return int(line), None


def _first_tab(line: bytes) -> Row | None:
    return _text_line(line.partition(b"\t")[0])


def _seconds_then_key(line: bytes) -> Row | None:
    at, _, key = line.partition(b"\t")
    return key.decode(), float(at)


@functools.cache
def _seconds(text: bytes) -> float:
    return datetime.strptime(text.decode(), "%d/%b/%Y:%H:%M:%S %z").timestamp()


def _access_log(line: bytes) -> Row | None:
    found = _CLF.search(line)
    if found is None:
        return None
    return found[2], _seconds(found[1])


def _nasa(line: bytes) -> Row | None:
    parts = line.split(b"\t")
    return (parts[4], float(parts[2])) if parts[2].isdigit() else None


def _cran(line: bytes) -> Row | None:
    parts = line.decode().replace('"', "").split(",")
    if parts[0] == "date":
        return None
    return parts[6], datetime.fromisoformat(f"{parts[0]}T{parts[1]}+00:00").timestamp()


def _zeek(line: bytes) -> Row | None:
    if line.startswith(b"#"):
        return None
    parts = line.split(b"\t")
    return parts[9], float(parts[0])


FILES: dict[str, Callable[[bytes], Row | None]] = {
    "ada_url_lists.txt": _text_line,
    "apache_honeynet_2004.log": _access_log,
    "apache_semicomplete_2015-05.log": _access_log,
    "cache2k_web07_ids.txt": _number_line,
    "cran_downloads_2014-12-16_28.csv": _cran,
    "google_unigram_counts.tsv": _first_tab,
    "hn_frontpage_2020-11_2021-12.tsv": _seconds_then_key,
    "linuxdoc_words.txt": _text_line,
    "nasa_19950801.tsv": _nasa,
    "news_links_2022_2023.tsv": _seconds_then_key,
    "nginx_stickerapp_2018-04.log": _access_log,
    "npm_downloads_2017-10.tsv": _first_tab,
    "npm_repo_urls.txt": _text_line,
    "rustdoc_crawl_links.txt": _text_line,
    "scarab_recs_ids.txt": _text_line,
    "zeek_dns_wrccdc_2018-03-24.log": _zeek,
}
LISTS_OF_URLS = (
    "ada_url_lists.txt",
    "hn_frontpage_2020-11_2021-12.tsv",
    "news_links_2022_2023.tsv",
    "npm_repo_urls.txt",
    "rustdoc_crawl_links.txt",
)


def read(path: Path, most: int) -> Stream:
    """At most so many rows from the beginning of one file."""
    import zstandard

    parse = FILES[path.name.removesuffix(".zst")]
    keys: list[Key] = []
    times: list[float] = []
    # Rows without times come one a second, and a time of a line that is behind is that of the last.
    now = 1.5e9
    with path.open("rb") as file, zstandard.ZstdDecompressor().stream_reader(file) as plain:
        for line in io.BufferedReader(plain):
            row = parse(line.rstrip(b"\r\n"))
            if row is None:
                continue
            key, at = row
            if not times and at is not None:
                now = at
            now = max(now, at) if at is not None else now + 1.0
            keys.append(key)
            times.append(now)
            if len(keys) == most:
                break
    return Stream(path.name.removesuffix(".zst"), keys, times)


def generated(seed: int, rows: int) -> Stream:
    """A Zipf stream of keys of every type with bursts and silent hours."""
    draw = np.random.default_rng(seed)
    gaps = draw.exponential(20, rows) + 30_000.0 * (draw.random(rows) < 2 / rows)
    times = 1.5e9 + np.cumsum(gaps)
    keys: list[Key] = []
    for number in ((draw.zipf(1.25, rows) - 1) % (rows // 2)).tolist():
        kind = number % 7
        keys.append(
            number - 50 if kind == 0
            else b"\xff%d" % number if kind == 1
            else f"sch\u00f6n/{number}" if kind == 2
            else f"/page/{number}"
        )  # fmt: skip
    return Stream("generated", keys, times.tolist())


def generated_urls(seed: int, rows: int) -> Stream:
    """URLs of some hosts with paths of one to ten segments, many of them shared."""
    draw = np.random.default_rng(seed)
    numbers = ((draw.zipf(1.3, rows) - 1) % rows).tolist()
    keys: list[Key] = []
    for number in numbers:
        path = "/".join(f"d{(number >> step) % 50}" for step in range(number % 10))
        keys.append(f"https://h{number % 97}.example.org/{path}")
    return Stream("generated URLs", keys, (1.5e9 + np.arange(rows) * 1.0).tolist())


@functools.cache
def streams(folder: Path | None, seed: int, rows: int, *, urls: bool = False) -> list[Stream]:
    """Each file of the folder, and a generated stream, about `rows` rows each."""
    names = LISTS_OF_URLS if urls else tuple(FILES)
    paths = [folder / f"{name}.zst" for name in names] if folder is not None else []
    found = [read(path, rows) for path in paths if path.exists()]
    return [*found, (generated_urls if urls else generated)(seed, max(rows, 1000))]
