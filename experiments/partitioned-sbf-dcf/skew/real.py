"""Real streams for E12, if there are any: words, links and requests."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from trials.streams import Keys, lines_of

FILES: dict[str, int | None] = {
    "linuxdoc_words.txt": None,
    "rustdoc_crawl_links.txt": None,
    "news_links_2022_2023.tsv": 1,
    "nginx_stickerapp_2018-04.log": 6,
}
"""The file, and the column of its key: None for the whole line."""


def read_streams(folder: Path | None, limit: int) -> Iterator[tuple[str, Keys]]:
    """Name and keys of each stream; a key is the number of its first appearance."""
    for name, column in FILES.items():
        lines = lines_of(folder, name)
        if lines is None:
            continue
        seen: dict[bytes, int] = {}
        keys = [
            seen.setdefault(key, len(seen))
            for key in (_key(line, column) for line in islice(lines, limit))
        ]
        yield name, np.array(keys, dtype=np.int64)


def _key(line: bytes, column: int | None) -> bytes:
    words = line.split()
    return line.strip() if column is None or column >= len(words) else words[column]
