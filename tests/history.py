"""Statistics without what depends on how a filter came to be."""

from __future__ import annotations

from dataclasses import replace

from bloomtide.records import Stats


def without_history(stats: Stats) -> Stats:
    """What is inside, whatever led to it: copies of growing counters are laid out anew."""
    if stats.kind == "hot":
        # A place keeps some of the room that its longest key needed.
        return replace(stats, bytes=0)
    if stats.kind == "tbf":  # a pool keeps a little room, more or less
        return replace(stats, bytes=0, late=0, clock_jumps=0)
    if stats.partitions is None:
        return stats
    return replace(stats, bytes=0, rebuilds=0, moved=0, longest_pause=0.0, pauses=0.0)
