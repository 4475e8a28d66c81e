"""The scripts in examples/ run as their users would run them, and say what they should."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.crawl.local import LocalSite

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


def run(script: str, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-W", "error", str(EXAMPLES / script), *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, check=True, timeout=60)


def test_new_urls_passes_each_line_on_once_and_remembers(tmp_path: Path) -> None:
    path = str(tmp_path / "seen.bloom")
    first = run("new_urls.py", path, stdin=b"/a\n/b\n/a\r\n/c")
    assert first.stdout == b"/a\n/b\n/c\n"
    assert first.stderr.startswith(b"4 lines, 3 new")
    second = run("new_urls.py", path, stdin=b"/c\n/d\n")
    assert second.stdout == b"/d\n"


def test_new_urls_goes_on_beyond_one_batch(tmp_path: Path) -> None:
    lines = [b"/page/%d\n" % (i % 12_000) for i in range(25_000)]
    done = run("new_urls.py", str(tmp_path / "seen.bloom"), stdin=b"".join(lines))
    # Of 12,000 new lines a filter for a million at 0.001 takes far less than one for a repeat.
    assert done.stdout == b"".join(lines[:12_000])


def test_new_links_goes_on_the_next_night(tmp_path: Path) -> None:
    first, second = tmp_path / "1.txt.gz", tmp_path / "2.txt.gz"
    first.write_bytes(gzip.compress(b"http://a.example/\nhttp://b.example/\nHTTP://A.example\n"))
    second.write_bytes(gzip.compress(b"http://b.example\nhttp://c.example/x#y\n"))
    printed = []
    for links in (first, second):
        command = ["sh", str(EXAMPLES / "new_links.sh"), str(tmp_path / "seen"), str(links)]
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            command, capture_output=True, check=True, timeout=60, env={**os.environ, "PATH": path}
        )
        printed.append((done.stdout, done.stderr.splitlines()[0]))
    assert printed == [
        (b"http://a.example/\nhttp://b.example/\n", b"3 lines: 2 new, 1 repeats"),
        (b"http://c.example/x#y\n", b"2 lines: 1 new, 1 repeats"),
    ]


def test_shared_filter_fetches_every_page_and_hardly_any_twice() -> None:
    words = run("shared_filter.py").stdout.split()
    fetched, missing = int(words[0]), int(words[-2])
    assert missing == 0
    # At most one page in a thousand is wrongly called known: Binomial(10,000, 0.001) exceeds 50
    # with a chance below 1e-15. Two workers at one page in the same instant may both be told
    # "new"; workers that shared nothing would fetch 40,000.
    assert 9_950 <= fetched < 20_000


def test_open_baskets_counts_removes_and_refuses() -> None:
    assert run("open_baskets.py").stdout.decode().splitlines() == [
        "eve: nothing removed, 0 there",
        "ann: ask True, at most 1 items",
        "bob: ask False, at most 0 items",
        "eve: ask False, at most 0 items",
    ]


def test_badges_asks_only_for_the_one_who_has_a_basket() -> None:
    pytest.importorskip("sqlalchemy")
    assert run("badges.py").stdout.decode().splitlines() == [
        "customer 7: 2 by ASGI, 2 by WSGI",
        "customer 8: 0 by ASGI, 0 by WSGI",
        "customer 9: 0 by ASGI, 0 by WSGI",
        "2 queries for 6 pages",
    ]


def test_hot_pages_counts_hits_in_less_memory_and_forgets_an_hour() -> None:
    pytest.importorskip("pyarrow")
    lines = run("hot_pages.py").stdout.decode().replace(",", "").splitlines()
    counted = [(int(line.split()[0]), int(line.split()[2])) for line in lines[:3]]
    # The hottest pages are so far above the rest that what others add to them is below one in 100.
    assert all(true <= count < 1.01 * true for count, true in counted)
    took, fixed = int(lines[3].split()[3]), int(lines[4].split()[-2])
    assert took < fixed / 2
    left = int(lines[6].split()[0])
    assert left == counted[0][0] - counted[0][1] // 10


def test_the_scrapy_project_is_killed_and_goes_on(tmp_path: Path) -> None:
    pages = 60
    with LocalSite(pages, tmp_path) as site:
        settings = ["-s", f"JOBDIR={tmp_path / 'job'}", "-s", "LOG_LEVEL=WARNING"]
        url = ["-a", f"url=http://127.0.0.1:{site.port}/p?n=0&lang=en"]
        command = [sys.executable, "-m", "scrapy", "crawl", "site", *url, *settings]
        slowly = ["-s", "DOWNLOAD_DELAY=0.1", "-s", "RANDOMIZE_DOWNLOAD_DELAY=0"]
        with subprocess.Popen([*command, *slowly], cwd=EXAMPLES / "scrapy_project") as process:
            site.wait_for(10)
            process.kill()
        before = len(site.fetched())
        assert 10 <= before < pages
        items = tmp_path / "pages.jsonl"
        done = [*command, "-o", str(items)]
        subprocess.run(done, cwd=EXAMPLES / "scrapy_project", check=True, timeout=60)
        fetched = site.fetched()
    assert set(fetched) == set(range(pages))
    assert len(fetched) <= pages + 2 * 16, "what was on its way comes again, and no more"
    assert len(items.read_text().splitlines()) == len(fetched) - before


def test_every_example_is_run_here() -> None:
    source = Path(__file__).read_text()
    assert [path.name for path in EXAMPLES.glob("*.py") if f'run("{path.name}"' not in source] == []


def test_a_failing_example_would_be_noticed() -> None:
    with pytest.raises(subprocess.CalledProcessError):
        run("no_such_example.py")


def test_two_servers_share_the_names_and_answer_for_all() -> None:
    redis = pytest.importorskip("redis")
    from tests.server.process import running

    with running(None) as first, running(None) as second:
        done = run("two_servers.py", str(first.port), str(second.port))
        names = [redis.Redis(port=server.port).dbsize() for server in (first, second)]
    assert sum(names) == 40
    assert min(names) > 0
    # At most one page in a thousand is wrongly seen: Binomial(20,000, 0.001) exceeds 60 with a
    # chance below 1e-12.
    words = done.stdout.decode().replace(",", "").replace(";", "").split()
    assert [int(word) for word in words[4:6]] == names
    assert int(words[6]) == 0
    assert int(words[9]) <= 60
