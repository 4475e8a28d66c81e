"""Real streams for E12, if there are any: words, links and requests, one `.zst` file each.

They belong to others and are not part of the project. Without them the experiment goes without.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import zstandard

from skew.setting import Keys

FILES: dict[str, int | None] = {
    "linuxdoc_words.txt": None,
    "rustdoc_crawl_links.txt": None,
    "news_links_2022_2023.tsv": 1,
    "nginx_stickerapp_2018-04.log": 6,
}
"""The file, and the column of its key: None for the whole line."""


def default_folder() -> Path:
    """Beside the checkout."""
    return Path(__file__).resolve().parents[4] / "shared" / "data"


def read_streams(folder: Path | None, limit: int) -> Iterator[tuple[str, Keys]]:
    """Name and keys of each stream; a key is the number of its first appearance."""
    for name, column in FILES.items():
        path = folder / f"{name}.zst" if folder else None
        if path is None or not path.exists():
            print(f"no {name}.zst in {folder or 'the data folder'}: skipped")
            continue
        seen: dict[bytes, int] = {}
        with path.open("rb") as file:
            lines = io.BufferedReader(zstandard.ZstdDecompressor().stream_reader(file))
            keys = [
                seen.setdefault(key, len(seen))
                for key in (_key(line, column) for line in islice(lines, limit))
            ]
        yield name, np.array(keys, dtype=np.int64)


def _key(line: bytes, column: int | None) -> bytes:
    words = line.split()
    return line.strip() if column is None or column >= len(words) else words[column]
