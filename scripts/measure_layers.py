"""Measures what `layer_sizes="measured"` of `UrlFilter` stands for: prefixes of real URLs by depth.

    python scripts/measure_layers.py FILE...

A file has one URL a line, as the last field of the line if that has tabs; `.gz` and `.zst` are
unpacked. For each depth it prints the distinct prefixes, and the URLs that are at least that
deep, as shares of the distinct URLs; then the largest share of any file, which is what
`crates/bloomtide-core/src/filters/url/plan.rs` rounds up.
"""

from __future__ import annotations

import sys

from bloomtide import UrlFilter
from bloomtide.cli.keys import split_lines
from bloomtide.cli.sources import chunks
from bloomtide.errors import ParameterError

DEPTHS = 12


def main(files: list[str]) -> None:
    """Print the table."""
    tables = [shares(file) for file in files]
    for name, column in zip(("distinct", "at least"), zip(*tables, strict=True), strict=True):
        print(f"largest {name:<9}", *(f"{max(depth):6.4f}" for depth in zip(*column, strict=True)))


def shares(file: str) -> tuple[list[float], list[float]]:
    """For each depth the share of distinct prefixes, and of URLs at least that deep."""
    found = set()
    for lines in split_lines(chunks(file, lambda _: None, "URLs", "one URL a line")):
        found.update(line.rpartition(b"\t")[2] for line in lines)
    urls = [url for url in found if is_url(url)]
    all_of_them = UrlFilter.measure(urls, 1)[0]
    distinct = padded(UrlFilter.measure(urls, 64), all_of_them)
    # What lies deeper is joined into the last segment, so there each URL is its own prefix.
    deep = [UrlFilter.measure(urls, depth) for depth in range(1, DEPTHS + 1)]
    lasts = [counts[-1] if len(counts) == depth else 0 for depth, counts in enumerate(deep, 1)]
    at_least = padded(lasts, all_of_them)
    print(f"{file}: {all_of_them:,} distinct URLs")
    print("        distinct ", *(f"{share:6.4f}" for share in distinct))
    print("        at least ", *(f"{share:6.4f}" for share in at_least))
    return distinct, at_least


def is_url(line: bytes) -> bool:
    """Whether a line is a URL that has a canonical form."""
    try:
        return bool(UrlFilter.measure([line]))
    except ParameterError:
        return False


def padded(counts: list[int], whole: int) -> list[float]:
    """Counts as shares, with zeros for the depths there are none of."""
    return [count / whole for count in (counts + [0] * DEPTHS)[:DEPTHS]]


if __name__ == "__main__":
    main(sys.argv[1:])
