"""Chapter: a saved filter, then the same file with one bit changed."""

from __future__ import annotations

from typing import Any

import bloomtide
from bloomtide import BloomFilter
from bloomtide.cli.demo.stage import Stage
from bloomtide.cli.quantities import show_bytes
from bloomtide.errors import SnapshotError


def damaged_file(stage: Stage) -> dict[str, Any]:
    """Save, load, flip one bit in the middle, load again."""
    seen = BloomFilter(stage.expected, 0.01)
    for batch in stage.batches:
        seen.add_many(batch)
    file = stage.folder / "seen.bloom"
    seen.save(file)
    good = file.read_bytes()
    same = bloomtide.load(file).to_bytes() == seen.to_bytes()
    stage.say(
        f"save(): {show_bytes(len(good))}, written beside and moved into place in one step.",
        f"load(): {'equal to' if same else 'DIFFERENT FROM'} the filter that was saved.",
    )
    bad = bytearray(good)
    bad[len(bad) // 2] ^= 0b0001_0000
    file.write_bytes(bad)
    flipped = _refusal(stage, "one bit flipped")
    file.write_bytes(good[:-1])
    cut = _refusal(stage, "one byte cut off")
    return {"file_bytes": len(good), "equal": same, "flipped": flipped, "cut": cut}


def _refusal(stage: Stage, damage: str) -> str | None:
    try:
        bloomtide.load(stage.folder / "seen.bloom")
    except SnapshotError as refusal:
        stage.say(f"{damage}: [red]{type(refusal).__name__}[/red]")
        return refusal.code
    stage.say(f"{damage}: loaded, which must not happen")
    return None
