"""Pass on each line of a stream once, whatever its length, and remember across runs.

python examples/new_urls.py seen.bloom < urls.txt > new.txt
"""

from __future__ import annotations

import sys
from itertools import islice
from pathlib import Path

from bloomtide import BloomFilter

BATCH = 10_000


def main(path: Path) -> None:
    """Copy the new lines of stdin to stdout; `path` keeps what was seen."""
    seen = BloomFilter.load(path) if path.exists() else BloomFilter(1_000_000, error_rate=0.001)
    lines = (line.rstrip(b"\r\n") for line in sys.stdin.buffer)
    read = new = 0
    while batch := list(islice(lines, BATCH)):
        fresh = seen.add_many(batch)  # one bool for each line, also for repeats inside the batch
        sys.stdout.buffer.writelines(
            line + b"\n" for line, is_new in zip(batch, fresh, strict=True) if is_new
        )
        read += len(batch)
        new += int(fresh.sum())
    seen.save(path)
    sys.stderr.write(f"{read} lines, {new} new; error now {seen.stats().predicted_error:.2g}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
