"""What a filter's fingerprints cost a process: `python -m benchmarks.crawl.memory MODE COUNT`.

The real filter gets COUNT fingerprints, 20 bytes each as Scrapy's are. Two numbers come out:

counted   what is known to hold fingerprints: for Scrapy's own filter the set and its objects, for
          ours the cells of the filter (the set on disk is on disk)
grew      by how much the process grew, with everything around it: freed memory is given back to the
          system before each look, and a filter that was used and closed has loaded all code before
"""

from __future__ import annotations

import ctypes
import gc
import json
import sys
from hashlib import sha1
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from scrapy import Spider
from scrapy.dupefilters import RFPDupeFilter
from scrapy.utils.test import get_crawler

from benchmarks.crawl.spider import fingerprint_bytes
from benchmarks.machine import resident_bytes
from bloomtide.integrations.scrapy import BloomDupeFilter


class NumberFingerprinter:
    """Takes a number for a request: making requests would cost more than the filters do."""

    def fingerprint(self, request: Any) -> bytes:
        return sha1(b"%d" % request).digest()


def opened(mode: str, directory: str, count: int) -> Any:
    """The filter of a crawl."""
    settings: dict[str, Any] = {
        "REQUEST_FINGERPRINTER_CLASS": NumberFingerprinter,
        "JOBDIR": directory,
    }
    if mode == "scrapy":
        return RFPDupeFilter.from_crawler(get_crawler(Spider, settings_dict=settings))
    settings["BLOOMTIDE_CAPACITY"] = count
    if mode == "exact":
        settings["BLOOMTIDE_VERIFY"] = "exact"
    dupefilter = BloomDupeFilter.from_crawler(get_crawler(Spider, settings_dict=settings))
    dupefilter.open()
    return dupefilter


def resident() -> int:
    """Memory of the process without what was freed."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return resident_bytes() or 0


def measure(mode: str, count: int) -> dict[str, int]:
    """Both numbers."""
    with TemporaryDirectory() as directory:
        warm = opened(mode, str(Path(directory, "warm")), 3000)
        for number in range(3000):
            warm.request_seen(number)
        warm.close("finished")
        del warm
        before = resident()
        dupefilter = opened(mode, str(Path(directory, "job")), count)
        new = sum(not dupefilter.request_seen(number) for number in range(count))
        grew = resident() - before
        counted = fingerprint_bytes(dupefilter)
        dupefilter.close("finished")
    return {"count": count, "new": new, "counted": counted, "grew": grew}


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))
