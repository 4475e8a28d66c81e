"""The site and the crawls as processes, and what the site gave out."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Self

ADDON = {"ADDONS": {"bloomtide.integrations.scrapy.Addon": 500}}
"""The settings of a crawl with ours."""

_ROOT = Path(__file__).parents[2]


class LocalSite:
    """A site that is up within a `with` block, and the crawls of it."""

    def __init__(self, pages: int, directory: Path) -> None:
        self.pages = pages
        self.directory = directory
        self._journal = directory / "journal"
        self._crawls = 0

    def __enter__(self) -> Self:
        self._server = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.crawl.site", str(self.pages), str(self._journal)],
            stdout=subprocess.PIPE,
            cwd=_ROOT,
        )
        assert self._server.stdout is not None
        self.port = int(self._server.stdout.readline())
        return self

    def __exit__(self, *exc: object) -> None:
        self._server.terminate()
        self._server.wait()
        assert self._server.stdout is not None
        self._server.stdout.close()

    def fetched(self) -> list[int]:
        """The pages that were given out since the last call of `forget`, in order."""
        # What a killed crawl had sent is answered before a new connection is.
        connection = HTTPConnection("127.0.0.1", self.port)
        connection.request("GET", "/nothing")
        assert connection.getresponse().status == 404
        connection.close()
        return [int(line) for line in self._journal.read_text().splitlines()]

    def wait_for(self, pages: int, seconds: float = 60) -> None:
        """Waits until that many pages were given out."""
        late = time.monotonic() + seconds
        while len(self.fetched()) < pages:
            if time.monotonic() > late:
                raise TimeoutError(f"{pages} pages were not fetched in {seconds} seconds")
            time.sleep(0.02)

    def forget(self) -> None:
        """Begins the list of fetched pages anew."""
        self._journal.write_text("")

    def begin(
        self, settings: dict[str, Any], *, start: int = 0, end: str = ""
    ) -> tuple[subprocess.Popen[bytes], Path]:
        """Starts a crawl; its process, and the report it will write."""
        self._crawls += 1
        report = self.directory / f"report-{self._crawls}.json"
        words = {
            "port": self.port,
            "report": str(report),
            "settings": settings,
            "start": start,
            "end": end,
        }
        command = [sys.executable, "-m", "benchmarks.crawl.spider", json.dumps(words)]
        return subprocess.Popen(command, cwd=_ROOT), report

    def crawl(self, settings: dict[str, Any], **words: Any) -> tuple[int, dict[str, Any]]:
        """Crawls to the end; the exit code, and Scrapy's statistics if it came to report any."""
        process, report = self.begin(settings, **words)
        code = process.wait()
        return code, json.loads(report.read_text()) if report.exists() else {}
