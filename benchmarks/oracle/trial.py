"""What all trials share: a structure beside its model, random verbs, and promises that are counted.

A trial draws verbs by a fixed seed. Each does the same to the structure and to the model. After
some hundreds of operations `compare` asks both. A promise that does not hold raises `Broken`.
"""

from __future__ import annotations

import copy
import pickle
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from benchmarks.binomial import interval
from benchmarks.oracle.streams import Key, Stream
from bloomtide.errors import BloomtideError

ALPHA = 1e-9
"""Chance that a rate which is right is called wrong, in each statistical check."""

Plant = Callable[[Any], Any]
Verb = Callable[[], None]


class Broken(Exception):
    """A sentence of the documentation that does not hold."""

    def __init__(self, promise: str, found: object) -> None:
        super().__init__(f"{promise}: {found}")
        self.promise = promise


def sound(made: Any) -> Any:
    """The structure itself, without a planted fault around it."""
    return getattr(made, "inner", made)


def same_key(key: Key) -> bytes | int:
    """Text and its UTF-8 bytes are one key; numbers are a space of their own."""
    return key.encode() if isinstance(key, str) else key


class Trial(ABC):
    """One structure beside its model."""

    structure: ClassVar[str]
    block: ClassVar[int] = 600
    """Operations between two comparisons."""

    def __init__(self, seed: int, stream: Stream, folder: Path, plant: Plant | None = None) -> None:
        self.draw = np.random.default_rng(seed)
        self.seed = seed
        self.stream = stream
        self.folder = folder
        self.plant: Plant = plant or (lambda made: made)
        self.place = int(self.draw.integers(len(stream.keys)))
        self.start = self.place
        self.done = 0
        self.verb = ""
        self.checks: Counter[str] = Counter()
        self.fresh = 0
        self.asked_absent = 0
        self.expected_wrong = 0.0
        self.wrong = 0
        self.made: Any = self.plant(self.make())

    @abstractmethod
    def make(self) -> Any:
        """A new structure; its parameters are drawn once, in `__init__` or before."""

    @abstractmethod
    def verbs(self) -> dict[Verb, float]:
        """What may happen, with weights."""

    @abstractmethod
    def compare(self) -> None:
        """Asks the structure and the model."""

    def run(self, operations: int) -> None:
        """So many operations, and a comparison after each block."""
        try:
            self.work(operations)
        except BloomtideError as error:
            raise Broken("what is right is not refused", f"{self.verb}: {error!r:.400}") from error

    def work(self, operations: int) -> None:
        """The loop of `run`."""
        verbs = self.verbs()
        weights = np.array(list(verbs.values()))
        bounds, choices, compared = np.cumsum(weights / weights.sum()), list(verbs), 0
        while self.done < operations:
            verb = choices[min(int(np.searchsorted(bounds, self.draw.random())), len(choices) - 1)]
            self.verb = verb.__name__
            verb()
            if self.done - compared >= self.block:
                compared, self.verb = self.done, f"compare after {verb.__name__}"
                self.compare()
        self.compare()

    def holds(self, good: Any, promise: str, *found: object) -> None:
        """Counts a check, and raises `Broken` if it fails."""
        self.checks[promise] += 1
        if not good:
            raise Broken(promise, f"{self.verb}, operation {self.done}: {found!r:.600}")

    # --- keys

    def next_rows(self, most: int) -> tuple[list[Key], list[float]]:
        """Up to so many rows of the stream; their number is an operation each."""
        size = int(self.draw.integers(1, most + 1))
        keys, times = [], []
        for _ in range(size):
            lap, row = divmod(self.place, len(self.stream.keys))
            keys.append(self.stream.keys[row])
            span = self.stream.times[-1] - self.stream.times[0] + 1.0
            times.append(self.stream.times[row] + lap * span)
            self.place += 1
        self.done += size
        return keys, times

    def absent(self, size: int) -> list[Key]:
        """Keys that no stream has, never the same twice."""
        self.fresh += size
        return [f"absent \u2205 {self.seed} {n}" for n in range(self.fresh - size, self.fresh)]

    def some(self, keys: list[Any], most: int) -> list[Any]:
        """Some of the keys, each at most once."""
        if len(keys) <= most:
            return keys
        return [keys[row] for row in self.draw.choice(len(keys), most, replace=False).tolist()]

    def rate_of_wrong(self, trials: int, wrong: int, rate: float, promise: str) -> None:
        """False positives lie in the exact binomial interval around `rate`."""
        rate = min(max(rate, 1e-300), 1 - 1e-12)
        low, high = interval(trials, rate, ALPHA)
        self.holds(low <= wrong <= high, promise, wrong, "of", trials, "at", rate, (low, high))

    def not_more_wrong(self, trials: int, wrong: int, rate: float, promise: str) -> None:
        """False positives are at most what `rate` brings."""
        if trials:
            high = interval(trials, min(max(rate, 1e-300), 0.999999), ALPHA)[1]
            self.holds(wrong <= high, promise, wrong, "of", trials, "at", rate, high)

    # --- batches

    def form(self, keys: list[Key]) -> Any:
        """The same keys as a list, an iterator, a NumPy array or Arrow data."""
        numbers = bool(keys) and all(isinstance(key, int) for key in keys)
        texts = bool(keys) and all(isinstance(key, str) for key in keys)
        choice = int(self.draw.integers(8))
        if choice == 0:
            return iter(keys)
        if choice == 1:
            return tuple(keys)
        if choice == 2 and numbers:
            return np.array(keys)
        if choice == 3 and texts:
            return pa.array(keys).dictionary_encode()
        if choice in (4, 5) and (texts or numbers):
            return pa.chunked_array(
                [
                    pa.array(keys[: len(keys) // 2], pa.array(keys).type),
                    pa.array(keys[len(keys) // 2 :], pa.array(keys).type),
                ]
            )
        if choice == 6 and all(isinstance(key, bytes) for key in keys):
            return pa.array(keys, pa.binary())
        return list(keys)

    def weights(self, size: int) -> tuple[list[int], Any]:
        """Counts for a batch, as whole numbers and in the form that goes in."""
        hot = self.draw.random(size) < 0.02
        counts = np.where(hot, self.draw.integers(1, 5000, size), self.draw.integers(1, 4, size))
        whole: list[int] = counts.tolist()
        forms: list[Any] = [whole, counts, counts.astype(np.uint32), pa.array(whole)]
        return whole, forms[int(self.draw.integers(4))]

    def threads(self) -> int:
        """How many share a batch."""
        return int(self.draw.choice([1, 1, 2, 4]))

    # --- copies and files

    def reopened(self, data: bytes) -> Any:
        """What the bytes hold."""
        return type(sound(self.made)).from_bytes(data)

    def loaded(self, path: Path) -> Any:
        """What the file holds."""
        return type(sound(self.made)).load(path)

    def restore(self) -> None:
        """The structure goes on as a copy of itself, or as what a file brought back."""
        self.done += 1
        before, path = self.made, self.folder / "restored"
        how = str(self.draw.choice(self.ways()))
        if how == "copy":
            after = before.copy()
        elif how == "deep copy":
            after = copy.deepcopy(sound(before))
        elif how == "pickle":
            after = pickle.loads(pickle.dumps(sound(before)))
        elif how == "bytes":
            after = self.reopened(before.to_bytes())
        else:
            before.save(path)
            after = self.loaded(path)
        after = sound(after)
        self.holds(self.equal(after, sound(before)), f"by {how} the same content comes back")
        self.made = self.plant(self.kept(after, sound(before)))

    def ways(self) -> list[str]:
        """How a structure can come back."""
        return ["copy", "deep copy", "pickle", "bytes", "file"]

    def equal(self, one: Any, other: Any) -> bool:
        """Same kind, parameters and cells."""
        return bool(one == other)

    def kept(self, after: Any, before: Any) -> Any:
        """What goes on: that which came back, once it is known to be independent."""
        data = after.to_bytes()
        before.add(self.absent(1)[0])
        self.holds(after.to_bytes() == data, "a copy is independent of what it was made from")
        return after

    # --- wrong use

    def refused(self, call: Callable[[], Any], *kinds: type[Exception]) -> Exception:
        """The call is refused by an error of the tree, and nothing changed."""
        before = sound(self.made).to_bytes()
        error = self.refusal(call, *kinds)
        after = sound(self.made).to_bytes()
        self.holds(before == after, "after an error the filter is as it was before the call", error)
        return error

    def refusal(self, call: Callable[[], Any], *kinds: type[Exception]) -> Exception:
        """The error that a call is refused by."""
        named = kinds or (BloomtideError, TypeError)
        try:
            answer = call()
        except named as error:
            self.holds(True, "bad input is refused by name")
            return error
        except Exception as error:  # any other error is the finding
            self.holds(False, "bad input is refused by name", repr(error))
            raise
        self.holds(False, "bad input is refused by name", "answered", answer)
        raise AssertionError

    def bad_keys(self) -> Iterator[Any]:
        """What no key may be."""
        yield from (3.5, True, None, ("a",), 2**64, -(2**63) - 1, "\ud800", object())
