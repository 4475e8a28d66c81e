"""PDCF = DCF = PSBF = SBF = `CountingBloomFilter` of 32 bits, and each is its model.

Any sequence of verbs, in both layouts. Beyond 32 bits the counting filter drops out, and the four
others go on to where their counters stick.
"""

from __future__ import annotations

import pickle
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import bloomtide
from bloomtide.errors import AbsentKeyError, UnsupportedError
from bloomtide.reference.policies import LIMIT
from tests.property.growing import SIZES, filters, models
from tests.property.keys import keys, threads

COUNTS = st.integers(1, 6) | st.sampled_from([14, 15, 16, 255, 1026, 65_535, 2**33, 2**63, LIMIT])
WEIGHED = st.lists(st.tuples(keys, COUNTS), max_size=30)
FULL = 2**32 - 1
CUTS = st.sampled_from([1, 2, 3, "auto"])


def outcome(filled: Any, verb: str, *arguments: Any) -> Any:
    """The answer as plain Python, or how it was refused."""
    try:
        answer = getattr(filled, verb)(*arguments)
    except (AbsentKeyError, KeyError):
        return "absent"
    except (UnsupportedError, TypeError):
        return "unsupported"
    return answer.tolist() if hasattr(answer, "tolist") else answer


def again(filled: Any, how: str) -> Any:
    """A filter that is the same by another way."""
    match how:
        case "copy":
            return filled.copy()
        case "pickle":
            return pickle.loads(pickle.dumps(filled))
        case _:
            return bloomtide.from_bytes(filled.to_bytes())


class GrowingMachine(RuleBasedStateMachine):
    """Two of each filter, one beside its model and one to be merged."""

    @initialize(
        size=st.sampled_from(SIZES),
        policy=st.sampled_from(["plain", "conservative"]),
        partitions=CUTS,
        counter_bits=st.sampled_from([1, 2, 5, 32]),
        shrink=st.sampled_from([0.0, 0.3, 0.5, 1.0]),
        slack=st.sampled_from([0.0, 0.1, 1.0]),
        largest=st.sampled_from([6, 65_535, 2**63, LIMIT]),
    )
    def start(self, size: Any, policy: str, partitions: Any, largest: int, **shape: Any) -> None:
        self.largest = largest
        self.cores = filters(size, policy, partitions=partitions, **shape)
        self.others = filters(size, policy, partitions=partitions, **shape)
        self.models = models(self.cores, **shape)
        self.other_models = models(self.others, **shape)

    def all_say(self, verb: str, *arguments: Any) -> Any:
        """What every filter and every model answers; they must not differ."""
        everyone = [*self.cores.items(), *self.models.items()]
        said = {name: outcome(filled, verb, *arguments) for name, filled in everyone}
        assert all(answer == said["dcf"] for answer in said.values()), (verb, arguments, said)
        return said["dcf"]

    def mind_the_width(self) -> None:
        """The counting filter is compared until one of its counters would be full."""
        if max(self.models["dcf"].cells) >= FULL:
            self.cores.pop("counting", None)
            self.others.pop("counting", None)

    @rule(key=keys, count=COUNTS)
    def add(self, key: Any, count: int) -> None:
        self.add_many([(key, count)], 1)

    @rule(key=keys)
    def add_once(self, key: Any) -> None:
        self.all_say("add", key)
        self.mind_the_width()

    @rule(batch=WEIGHED, threads=threads)
    def add_many(self, batch: list[tuple[Any, int]], threads: int) -> None:
        names, counts = [key for key, _ in batch], [min(n, self.largest) for _, n in batch]
        answers = self.models["dcf"].add_many(names, counts)
        for name, model in self.models.items():
            assert name == "dcf" or model.add_many(names, counts) == answers
        for name, core in self.cores.items():
            if name != "counting":
                if len(batch) == 1:
                    assert core.add(names[0], counts[0]) == answers[0], name
                else:
                    assert core.add_many(names, counts, threads=threads).tolist() == answers, name
        self.mind_the_width()
        if "counting" in self.cores:
            counting = self.cores["counting"]
            pairs = zip(names, counts, strict=True)
            assert [counting.add(key, count) for key, count in pairs] == answers

    @rule(key=keys, count=COUNTS)
    def remove(self, key: Any, count: int) -> None:
        self.all_say("remove", key, count)

    @rule(batch=WEIGHED)
    def remove_many(self, batch: list[tuple[Any, int]]) -> None:
        names, counts = [key for key, _ in batch], [count for _, count in batch]
        said = {
            outcome(filled, "remove_many", names, counts)
            for group in (self.cores, self.models)
            for name, filled in group.items()
            if name != "counting"
        }
        assert len(said) == 1
        if "counting" in self.cores:
            for key, count in batch:
                if outcome(self.cores["counting"], "remove", key, count) is not None:
                    break

    @rule(key=keys)
    def count(self, key: Any) -> None:
        count = self.all_say("count", key)
        self.all_say("__contains__", key)
        for name, model in self.models.items():
            estimate = self.cores[name].estimate(key)
            assert estimate.lower <= estimate.value == count
            assert estimate.saturated == (model.count(key) == LIMIT)

    @rule(batch=st.lists(keys, max_size=30), threads=threads)
    def count_many(self, batch: list[Any], threads: int) -> None:
        answers = self.models["dcf"].count_many(batch)
        for core in self.cores.values():
            assert core.count_many(batch, threads=threads).tolist() == answers
            assert core.contains_many(batch, threads=threads).tolist() == [a > 0 for a in answers]

    @rule()
    def swap(self) -> None:
        self.cores, self.others = self.others, self.cores
        self.models, self.other_models = self.other_models, self.models

    @rule(in_place=st.booleans())
    def merge(self, in_place: bool) -> None:
        for name, model in self.models.items():
            model.merge(self.other_models[name])
        self.mind_the_width()
        for name, core in self.cores.items():
            if in_place:
                core.merge(self.others[name])
            else:
                self.cores[name] = core | self.others[name]

    @rule()
    def clear(self) -> None:
        self.all_say("clear")

    @rule(how=st.sampled_from(["copy", "bytes", "pickle"]))
    def replace_by_a_copy(self, how: str) -> None:
        self.cores = {name: again(core, how) for name, core in self.cores.items()}

    @rule(cut=CUTS)
    def repartition(self, cut: Any) -> None:
        """Both, since only filters of equal partitions are merged."""
        for group in (self.cores, self.others):
            for name in ("pdcf", "psbf"):
                group[name].repartition(cut)
        for group in (self.models, self.other_models):
            for name in ("pdcf", "psbf"):
                group[name].repartition(self.cores[name].partitions)

    @invariant()
    def every_counter_is_that_of_the_models(self) -> None:
        for name, core in self.cores.items():
            core.validate()
            assert core.cells().tolist() == self.models["dcf"].cells, name
        for name, model in self.models.items():
            assert model.cells == self.models["dcf"].cells, name
            assert self.cores[name].stats().saturated == model.saturated, name


TestGrowingMachine = GrowingMachine.TestCase
TestGrowingMachine.settings = settings(max_examples=120, stateful_step_count=30, deadline=None)
