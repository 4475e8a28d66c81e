"""Lists of URLs: real ones where there are some, and generated ones.

A URL is in canonical form, and its scheme is https or none that the paper knows: the paper drops
http and https alike, so for its filter two URLs that differ only there are one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from bloomtide import canonical_url
from bloomtide.errors import ParameterError
from bloomtide.reference.url import segments
from trials.streams import lines_of, zipf

LAYERS = 8
"""As `UrlFilter` has them unless told: what is deeper belongs to the last."""

FILES = {
    "npm": "npm_repo_urls.txt",
    "news": "news_links_2022_2023.tsv",
    "rustdoc": "rustdoc_crawl_links.txt",
    "ada": "ada_url_lists.txt",
}
AUTHORS = "dataset3.csv"
"""The smallest of the authors' lists, pages on films; in their repository, in its folder Test1."""

GENERATED = ("unique leaves", "shared words")
WORDS, LEAF_WORDS = 3000, 60_000

Urls = list[bytes]


def real(folder: Path | None, names: Iterable[str]) -> Iterator[tuple[str, Urls]]:
    """The named lists as far as they are there, with their repeats."""
    for name in names:
        lines = lines_of(folder, FILES[name])
        if lines is not None:
            yield name, list(canonical(line.rpartition(b"\t")[2] for line in lines))


def authors(folder: Path | None) -> Urls | None:
    """Their list as it is: a year, then a URL."""
    lines = lines_of(folder, AUTHORS)
    if lines is None:
        return None
    return list(canonical(line.partition(b",")[2].strip().strip(b'"') for line in lines))


def canonical(lines: Iterable[bytes]) -> Iterator[bytes]:
    """What is no URL with a host is left out."""
    for line in lines:
        try:
            url = canonical_url(line.strip()).encode()
        except ParameterError:
            continue
        yield b"https" + url[4:] if url.startswith(b"http://") else url


def distinct(urls: Iterable[bytes]) -> Urls:
    """In the order of their first time."""
    return list(dict.fromkeys(urls))


def generated(kind: str, count: int) -> Urls:
    """Distinct URLs: a host, one to four directories, a leaf; the same ones each time.

    Hosts and words follow Zipf's law, and a word may stand at any depth. A leaf is a page's own
    number, or one of many words that other URLs have too.
    """
    random = np.random.default_rng(2010)
    found: dict[bytes, None] = {}
    for page in _pages(random, kind, count):
        found.setdefault(page)
        if len(found) == count:
            break
    return list(found)


def _pages(random: np.random.Generator, kind: str, count: int) -> Iterator[bytes]:
    made = 0
    while True:
        hosts = zipf(random, max(20, count // 50), 1.0, count).tolist()
        depths = random.integers(1, 5, count).tolist()
        words = zipf(random, WORDS, 1.0, 4 * count).reshape(count, 4).tolist()
        leaves = zipf(random, LEAF_WORDS, 0.6, count).tolist()
        for host, depth, path, leaf in zip(hosts, depths, words, leaves, strict=True):
            made += 1
            directories = "/".join(f"w{word}" for word in path[:depth])
            page = f"{made:x}" if kind == "unique leaves" else f"w{leaf}"
            yield f"https://site{host}.example/{directories}/{page}".encode()


def lists(
    folder: Path | None, count: int, names: Iterable[str] = FILES, *, generate: int | None = None
) -> Iterator[tuple[str, Urls]]:
    """Up to `count` distinct URLs of each list, then as many or `generate` generated ones."""
    for name, urls in real(folder, names):
        yield name, distinct(urls)[:count]
    for kind in GENERATED:
        yield f"generated, {kind}", generated(kind, generate or count)


def cut(url: bytes) -> list[bytes]:
    """Its segments."""
    return segments(url, LAYERS)


def joined(parts: list[bytes]) -> bytes:
    """The URL of these segments."""
    path = b"/".join(parts)
    return path if b"://" in parts[0] else b"https://" + path
