"""One filter for many processes: four workers share out the pages and none is fetched twice.

python examples/shared_filter.py
"""

from __future__ import annotations

import multiprocessing
import sys
import tempfile
from pathlib import Path

from bloomtide import BloomFilter

WORKERS = 4
PAGES = [f"https://example.org/page/{i}" for i in range(10_000)]


def work(path: str, worker: int) -> int:
    """Go through all pages, starting somewhere else than the others; fetch what nobody has."""
    mine = PAGES[worker * 2500 :] + PAGES[: worker * 2500]
    # Opened here, in the worker: a mapped filter is not handed from process to process.
    with BloomFilter.open(path, mode="r+") as seen:
        return sum(seen.add(page) for page in mine)  # True: this worker is the first


def main() -> None:
    """Run the workers and look at what they left behind."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "pages.bloom")
        BloomFilter.open(path, len(PAGES), 0.001, mode="c").close()
        with multiprocessing.get_context("spawn").Pool(WORKERS) as pool:
            fetched = pool.starmap(work, [(path, worker) for worker in range(WORKERS)])
        seen = BloomFilter.load(path)  # the last worker's close sealed it
        missing = len(PAGES) - int(seen.contains_many(PAGES).sum())
    sys.stdout.write(f"{sum(fetched)} pages fetched by {WORKERS} workers, {missing} missing\n")


if __name__ == "__main__":
    main()
