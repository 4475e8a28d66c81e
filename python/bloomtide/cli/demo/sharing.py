"""Chapter: two processes add to one memory-mapped filter while a third has it open."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bloomtide import BloomFilter
from bloomtide.cli.console import CommandError
from bloomtide.cli.demo.stage import Stage


def many_processes(stage: Stage) -> dict[str, Any]:
    """Open a shared file, let two `bloomtide add` commands fill it, look for every key."""
    file = stage.folder / "shared.bloom"
    pages = sorted(stage.exact)
    with BloomFilter.open(file, stage.expected, 0.01, mode="c") as shared:
        stage.say("This process opens shared.bloom, then starts two that add half the pages each.")
        with ThreadPoolExecutor() as workers:
            added = list(workers.map(_add, (file, file), (pages[0::2], pages[1::2])))
        lost = int((~shared.contains_many(pages)).sum())
    stage.say(
        f"They report {added[0]:,} and {added[1]:,} new pages; {len(pages) - sum(added):,} were"
        " taken for seen when they came, as the error rate has it.",
        f"All {len(pages):,} looked up here, in the third process: {lost} missing.",
    )
    BloomFilter.load(file).validate()
    stage.say("The last one to close it sealed it: shared.bloom is a checked file like any other.")
    return {"pages": len(pages), "added": added, "lost": lost}


def _add(file: Path, keys: list[str]) -> int:
    """Run `bloomtide add` on the keys; answers how many it found new."""
    command = [sys.executable, "-m", "bloomtide", "add", str(file), "--json"]
    done = subprocess.run(command, input="\n".join(keys), capture_output=True, text=True)
    if done.returncode:
        raise CommandError(f"`bloomtide add` failed: {done.stderr.strip()}")
    return int(json.loads(done.stdout)["added"])
