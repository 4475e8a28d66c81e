"""The four filters whose counters grow: any count, every storage, whole and in partitions."""

from __future__ import annotations

from typing import Any

from benchmarks.oracle.counts import STOPS, CountTrial
from benchmarks.oracle.trial import Verb, same_key, sound
from bloomtide import (
    CountFilter,
    DynamicCountFilter,
    PartitionedDynamicCountFilter,
    PartitionedSpectralBloomFilter,
    SpectralBloomFilter,
)
from bloomtide.errors import AbsentKeyError
from bloomtide.partitions import EvenModel


class GrowingTrial(CountTrial):
    """The four filters whose counters grow, by their names and by `CountFilter`."""

    structure = "CountFilter"
    widest = 2**64 - 1
    kinds: tuple[Any, ...] = ()

    def make(self) -> Any:
        if not self.words:
            self.words = self.words_of_all() | self.words_of_kind()
        return self.named(self.words)

    def named(self, words: dict[str, Any]) -> Any:
        """The structure by its own name."""
        raise NotImplementedError

    def words_of_kind(self) -> dict[str, Any]:
        """Parameters of this storage."""
        words: dict[str, Any] = {}
        if self.draw.random() < 0.3:
            words["total"] = int(self.draw.choice([8_000, 10_000_000]))
        return words

    def spectral(self) -> dict[str, Any]:
        return {"slack": float(self.draw.choice([0.0, 0.1, 5.0]))}

    def dynamic(self) -> dict[str, Any]:
        return {"counter_bits": [None, 1, 3, 32][int(self.draw.integers(4))],
                "shrink": float(self.draw.choice([0.0, 0.5, 1.0]))}  # fmt: skip

    def cut(self) -> Any:
        model = EvenModel(rebuild_seconds=0.02, requests_per_second=1e4, element_bytes=24)
        return ["auto", 1, 7, model][int(self.draw.integers(4))]

    def verbs(self) -> dict[Verb, float]:
        verbs = super().verbs() | {self.add_very_many: 0.2}
        if self.plain:
            verbs |= {self.change_batch: 2}
        if "Partitioned" in self.structure:
            verbs |= {self.repartition: 0.5}
        return verbs

    def add_very_many(self) -> None:
        """Counts beyond 32 bits; rarely up to the end of 64."""
        [key] = self.next_rows(1)[0]
        count = int(self.draw.choice([2**33 + 5, 10**15]))
        if self.draw.random() < 0.02:
            count = 2**64 - 1
        known = self.truth.get(same_key(key), 0) > 0
        must = self.put(key, count)
        self.answered(key, self.made.add(key, count), must, known)
        self.check_count(key, self.made.count(key))

    def change_batch(self) -> None:
        """Adds, removes and counts in order."""
        keys = self.next_rows(40)[0]
        given, changes, must = [], [], []
        for key in keys:
            have = min(self.truth.get(same_key(key), 0), self.value(key))
            change = int(self.draw.integers(-min(have, 50), 5))
            if change > 0:
                self.put(key, change)
            elif change < 0:
                self.take(key, -change)
            given.append(key)
            changes.append(change)
            must.append(self.value(key))
        absent = self.absent(1)[0]
        if not self.can_take(absent, 1) and self.draw.random() < 0.3:
            error: Any = self.refusal(
                lambda: self.made.change_many([*given, absent, "never"], [*changes, -1, 5]),
                AbsentKeyError,
            )
            self.holds(error.added == len(given), STOPS, error.added)
            return
        counts = self.made.change_many(self.form(given), changes).tolist()
        self.holds(counts == must, "change_many answers the count after each row", counts, must)

    def repartition(self) -> None:
        self.done += 1
        before = sound(self.made).cells()
        # Filters merge with equal parameters only, so others are made like this one from now on.
        self.words["partitions"] = self.cut()
        self.only_added = False
        self.made.repartition(self.words["partitions"])
        self.holds((self.made.cells() == before).all(), "repartition changes no answer")

    def kept(self, after: Any, before: Any) -> Any:
        # A name reads its own kind, the base all four.
        data = sound(after).to_bytes()
        self.holds(CountFilter.from_bytes(data) == after, "CountFilter reads all four kinds")
        return super().kept(after, before)


class SpectralTrial(GrowingTrial):
    """`SpectralBloomFilter`."""

    structure = "SpectralBloomFilter"

    def words_of_kind(self) -> dict[str, Any]:
        return super().words_of_kind() | self.spectral()

    def named(self, words: dict[str, Any]) -> Any:
        return SpectralBloomFilter(**words)


class DynamicTrial(GrowingTrial):
    """`DynamicCountFilter`."""

    structure = "DynamicCountFilter"

    def words_of_kind(self) -> dict[str, Any]:
        return super().words_of_kind() | self.dynamic()

    def named(self, words: dict[str, Any]) -> Any:
        return DynamicCountFilter(**words)


class PartitionedSpectralTrial(SpectralTrial):
    """`PartitionedSpectralBloomFilter`."""

    structure = "PartitionedSpectralBloomFilter"

    def words_of_kind(self) -> dict[str, Any]:
        return super().words_of_kind() | {"partitions": self.cut()}

    def named(self, words: dict[str, Any]) -> Any:
        return PartitionedSpectralBloomFilter(**words)


class PartitionedDynamicTrial(DynamicTrial):
    """`PartitionedDynamicCountFilter`."""

    structure = "PartitionedDynamicCountFilter"

    def words_of_kind(self) -> dict[str, Any]:
        return super().words_of_kind() | {"partitions": self.cut()}

    def named(self, words: dict[str, Any]) -> Any:
        return PartitionedDynamicCountFilter(**words)
