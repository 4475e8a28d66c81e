"""`make crawl`: a hundred thousand local pages, crawled by Scrapy with its own filter and ours.

own       Scrapy's own filter: which pages there are, and how long it takes
default   ours in its default mode
exact     ours with the second check on disk: the same pages, each once
killed    exact again, killed by SIGKILL in the middle and resumed: no page lost, and none fetched
          twice that was done when the kill came
memory    what fingerprints cost a process, without a crawl around them

Each step writes its result into `--into` and can be run alone (`--steps exact`). The report and the
tables in docs/integrations/scrapy.md are made of all that are there.
"""

from __future__ import annotations

import argparse
import json
import pickle
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks import documents, machine
from benchmarks.crawl.local import ADDON, LocalSite
from benchmarks.markdown import NOTHING, table
from bloomtide.integrations.scrapy.frontier import Frontier

PAGES = 100_000
LINKS = 6  # of a page, see site.py
ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "integrations" / "scrapy.md"
MODES = {"own": "Scrapy's own", "default": "ours", "exact": "ours, exact"}
STEPS = (*MODES, "killed", "memory")
LEAST_RATIO = 20
"""How many times less memory ours must take, from `PAGES` fingerprints on: those of a small crawl
are less than what a process is apart from them."""


def settings_of(step: str, pages: int, job: Path) -> dict[str, Any]:
    """The settings of a crawl; all of them could be stopped and resumed."""
    common = {"JOBDIR": str(job)}
    if step == "own":
        return common
    ours = common | ADDON | {"BLOOMTIDE_CAPACITY": pages}
    return ours if step == "default" else ours | {"BLOOMTIDE_VERIFY": "exact"}


def crawl(step: str, pages: int, directory: Path) -> dict[str, Any]:
    """One crawl from beginning to end."""
    with LocalSite(pages, directory) as site:
        _, stats = site.crawl(settings_of(step, pages, directory / "job"))
        times = Counter(site.fetched())
    return {
        "fetched": sum(times.values()),
        "distinct": len(times),
        "seconds": stats["seconds"],
        "filtered": stats["dupefilter/filtered"],
        "bytes": stats["fingerprint_bytes"],
        "rescued": stats.get("bloomtide/rescued"),
    }


def kill(pages: int, directory: Path) -> dict[str, Any]:
    """A crawl that is killed in the middle of a callback, and goes on."""
    job = directory / "job"
    settings = settings_of("exact", pages, job)
    with LocalSite(pages, directory) as site:
        code, _ = site.crawl(settings, end=f"SIGKILL parse {pages * LINKS // 2}")
        assert code == -9, "it was to be killed"
        before = site.fetched()
        frontier = Frontier(job / "bloomtide" / "pending.sqlite")
        urls = [pickle.loads(data)["url"] for data in frontier]
        frontier.release()
        not_done = {int(url.partition("n=")[2].partition("&")[0]) for url in urls}
        site.forget()
        _, stats = site.crawl(settings)
        after = site.fetched()
    again = set(before) & set(after)
    return {
        "before": len(before),
        "not_done": len(not_done),
        "after": len(after),
        "distinct": len({*before, *after}),
        "again": len(again),
        "done_and_again": len(again - not_done),
        "replayed": stats["bloomtide/replayed"],
        "recovered": stats["bloomtide/recovered"],
        "seconds": stats["seconds"],
    }


def remember(pages: int) -> list[dict[str, Any]]:
    """Memory for that many fingerprints and for ten times as many, each in a fresh process."""
    found = []
    for count in (pages, 10 * pages):
        for mode in ("scrapy", "default", "exact"):
            command = [sys.executable, "-m", "benchmarks.crawl.memory", mode, str(count)]
            said = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout
            found.append({"mode": mode} | json.loads(said))
    return found


def failures(results: dict[str, Any], pages: int) -> list[str]:
    """What does not hold, in words."""
    found = []
    for step in ("own", "exact"):
        if step in results and not (results[step]["fetched"] == results[step]["distinct"] == pages):
            found.append(f"{step}: not every page was fetched exactly once")
    if killed := results.get("killed"):
        if killed["distinct"] != pages:
            found.append(f"killed: {pages - killed['distinct']} pages were lost")
        if killed["done_and_again"]:
            found.append(f"killed: {killed['done_and_again']} pages were done and fetched again")
    own = {row["count"]: row for row in results.get("memory", []) if row["mode"] == "scrapy"}
    for row in results.get("memory", []):
        if row["mode"] != "scrapy" and row["count"] >= PAGES:
            ratio = own[row["count"]]["grew"] / row["grew"]
            if ratio < LEAST_RATIO:
                found.append(f"memory: {row['mode']} takes only {ratio:.1f} times less")
    return found


def report(results: dict[str, Any], pages: int) -> str:
    """The tables for the documentation and the terminal."""
    about = machine.describe()
    parts = [
        f"Made by `make crawl`: {pages:,} pages, each linked about six times, on {about['cpu']},"
        f" {about['cores']} cores, Python {about['python']}."
    ]
    crawls = [
        [
            name,
            f"{result['fetched']:,}",
            f"{result['distinct']:,}",
            f"{result['filtered']:,}",
            NOTHING if result["rescued"] is None else f"{result['rescued']:,}",
            f"{result['seconds']:.0f}",
            f"{result['bytes']:,}",
        ]
        for step, name in MODES.items()
        if (result := results.get(step))
    ]
    if crawls:
        head = ["filter", "fetched", "different pages", "duplicates", "rescued", "seconds", "bytes"]
        parts.append(table(crawls, head))
    if killed := results.get("killed"):
        parts.append(
            f"Killed by `kill -9` after {killed['before']:,} pages and resumed: {killed['after']:,}"
            f" pages more, {killed['distinct']:,} different ones in all, so"
            f" {pages - killed['distinct']:,} lost. {killed['again']:,} pages were on their way at"
            f" the kill and fetched again; {killed['done_and_again']:,} that were done."
            f" {killed['recovered']:,} waiting requests came back from the list and"
            f" {killed['replayed']:,} pages from the log."
        )
    if memory := results.get("memory"):
        own = {row["count"]: row["grew"] for row in memory if row["mode"] == "scrapy"}
        names = {"scrapy": MODES["own"], "default": MODES["default"], "exact": MODES["exact"]}
        rows = [
            [
                names[row["mode"]],
                f"{row['count']:,}",
                f"{row['counted']:,}",
                f"{row['grew']:,}",
                f"{own[row['count']] / row['grew']:.1f}",
            ]
            for row in memory
        ]
        head = ["filter", "fingerprints", "bytes counted", "process grew by", "times less"]
        parts.append(table(rows, head))
    wrong = failures(results, pages)
    parts.append(
        "Does **not** hold:\n\n" + "\n".join(f"- {text}" for text in wrong)
        if wrong
        else "Everything that was run holds."
    )
    return "\n\n".join(parts)


def main(arguments: list[str] | None = None) -> int:
    """Runs the steps; the exit code is 1 if anything does not hold."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.crawl")
    parser.add_argument("--pages", type=int, default=PAGES)
    parser.add_argument("--steps", default=",".join(STEPS))
    parser.add_argument("--into", type=Path, default=ROOT / "target" / "crawl")
    options = parser.parse_args(arguments)
    results: dict[str, Any] = {}
    for step in STEPS:
        kept = options.into / f"{step}-{options.pages}.json"
        if step in options.steps.split(","):
            directory = options.into / step
            shutil.rmtree(directory, ignore_errors=True)
            directory.mkdir(parents=True)
            print(f"{step}: {options.pages:,} pages", file=sys.stderr)
            if step == "memory":
                result: Any = remember(options.pages)
            elif step == "killed":
                result = kill(options.pages, directory)
            else:
                result = crawl(step, options.pages, directory)
            shutil.rmtree(directory)
            kept.write_text(json.dumps(result))
        if kept.exists():
            results[step] = json.loads(kept.read_text())
    text = report(results, options.pages)
    print(text)
    if options.pages == PAGES:
        documents.update(DOCUMENT, "crawl", text)
    return 1 if failures(results, options.pages) else 0


if __name__ == "__main__":
    sys.exit(main())
