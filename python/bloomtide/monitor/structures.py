"""The structures of a monitor: made by its settings, written to a directory, read from it.

All have one hash function and seed, so that a key is hashed once for all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from bloomtide._core import (
    BloomFilter,
    CountFilter,
    HotList,
    Intake,
    PartitionedDynamicCountFilter,
    TimeDecayingBloomFilter,
    UrlFilter,
    load,
)
from bloomtide.errors import KindError, SnapshotError
from bloomtide.format import digest_of, require_digest
from bloomtide.monitor.records import StructureStats
from bloomtide.monitor.settings import Settings
from bloomtide.trend import SLOWER

if TYPE_CHECKING:
    from bloomtide.history import History

Structure: TypeAlias = BloomFilter | UrlFilter | CountFilter | TimeDecayingBloomFilter | HotList


@dataclass(frozen=True, slots=True)
class Structures:
    """What a monitor counts into, besides its history."""

    seen: BloomFilter | UrlFilter | None
    counts: CountFilter | None
    heat: TimeDecayingBloomFilter | None
    hot: HotList | None
    slow: HotList | None

    @classmethod
    def create(cls, settings: Settings) -> Structures:
        """Empty ones."""
        capacity, error_rate = settings.capacity, settings.error_rate
        seen: BloomFilter | UrlFilter | None = None
        if settings.seen is not None:
            kind = UrlFilter if settings.seen == "url" else BloomFilter
            seen = kind(capacity, error_rate)
        half_life = settings.half_life
        counts = PartitionedDynamicCountFilter(capacity, error_rate) if settings.counts else None
        if settings.hot is None:
            return cls(seen, counts, None, None, None)
        # A quarter of the memory of plain cells, and no slower.
        heat = TimeDecayingBloomFilter(
            capacity, error_rate, half_life=half_life, storage="optimized"
        )
        hot = HotList(settings.hot, half_life=half_life)
        # All believe the same times, or one would be ahead of the others.
        slow = HotList(settings.hot, half_life=SLOWER * half_life, max_jump=2 * half_life)
        return cls(seen, counts, heat, hot, slow)

    @classmethod
    def load(cls, directory: Path, settings: Settings, digests: dict[str, str]) -> Structures:
        """Those that `save` wrote, by what it returned."""
        wanted = cls._wanted(settings)
        kinds = _KINDS | {"seen": settings.seen or ""}
        found = [
            _load(directory, name, kinds[name], digests.get(name, "")) if name in wanted else None
            for name in _NAMES
        ]
        return cls(*found)

    def copy(self) -> Structures:
        """What they hold now; memory is copied, nothing is worked out."""
        held = (getattr(self, name) for name in _NAMES)
        return Structures(*(None if each is None else each.copy() for each in held))

    def save(self, directory: Path) -> dict[str, str]:
        """One file for each; answers the digests that tell them from others of their kind."""
        digests = {}
        for name, structure in self:
            structure.save(directory / _file(name))
            digests[name] = digest_of(directory / _file(name))
        return digests

    def intake(self, time: Any) -> Intake:
        """What counts blocks of events into all of them. The first one tells which keys are new.

        `time`: what the intake before knew of the times of events.
        """
        kept = None if time is None else tuple(time)
        return Intake(*(structure for _, structure in self), time=kept)

    def stats(self) -> list[StructureStats]:
        """Of each."""
        return [_stats(name, structure) for name, structure in self]

    def __iter__(self) -> Iterator[tuple[str, Structure]]:
        for name in _NAMES:
            structure: Structure | None = getattr(self, name)
            if structure is not None:
                yield name, structure

    @staticmethod
    def _wanted(settings: Settings) -> set[str]:
        wanted = {"heat", "hot", "slow"} if settings.hot is not None else set()
        wanted |= {"seen"} if settings.seen is not None else set()
        return wanted | ({"counts"} if settings.counts else set())


_NAMES = ("seen", "counts", "heat", "hot", "slow")
"""In this order events go in."""
_KINDS = {"counts": "pdcf", "heat": "tbf", "hot": "hot", "slow": "hot"}
"""What each file holds; `seen` is as the settings say."""


def _file(name: str) -> str:
    return f"{name}.bloom"


def _load(directory: Path, name: str, kind: str, digest: str) -> Any:
    path = directory / _file(name)
    try:
        found = load(path)
    except FileNotFoundError as error:
        raise SnapshotError(
            f"{path} is missing", hint="restore the monitor from a backup",
            path=str(path), offset=None,
        ) from error  # fmt: skip
    if (got := found.stats().kind) != kind:
        raise KindError(
            f"{path} holds a `{got}`, not a `{kind}`", hint="restore the monitor from a backup",
            path=str(path), offset=0, expected=kind, got=got,
        )  # fmt: skip
    require_digest(path, digest, "restore the monitor from a backup")
    return found


def history_stats(history: History) -> StructureStats:
    """Of a monitor's history."""
    stats = history.stats()
    return StructureStats(
        name="history", kind="history", items=float(stats.entries), capacity=None, fill=None,
        predicted_error=stats.predicted_error, bytes=history.memory,
    )  # fmt: skip


def _stats(name: str, structure: Structure) -> StructureStats:
    if isinstance(structure, HotList):
        stats = structure.stats()
        return StructureStats(
            name=name, kind=stats.kind, items=float(len(structure)), capacity=structure.k,
            fill=len(structure) / structure.k, predicted_error=None, bytes=stats.bytes,
        )  # fmt: skip
    stats = structure.stats()
    return StructureStats(
        name=name, kind=stats.kind, items=stats.items, capacity=stats.capacity,
        fill=stats.fill, predicted_error=stats.predicted_error, bytes=stats.bytes,
    )  # fmt: skip
