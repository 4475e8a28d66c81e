"""Every kind of damage to every kind of file of a store, and what must be true of it afterwards.

A store is kept here as its files' bytes. A trial writes it out, damages one file, and asks for
everything that is known of it: an answer is right, or `missing` has the time that it lacks, or an
error of this library says what is wrong.
"""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle, product
from pathlib import Path
from typing import Any

from bloomtide._core import HistoryBuffer
from bloomtide.errors import BloomtideError
from bloomtide.history import History, exponential
from tests.durable.faults import abandon
from tests.history_store.exact import DAY, HOUR, START

Files = dict[str, bytes]
Event = tuple[str, float]
NOW = START + 9 * DAY
HOURS = (0, 3, 4, 20, 25, 27, 49)
"""Of the events: the first day is rolled up, the second is not complete, the last hour is open."""

KINDS = ("segment", "items", "journal", "catalogue", "settings", "note", "lock", "temporary")
DAMAGES = ("flip", "cut", "zero", "extend", "swap", "delete", "sibling", "other", "older", "empty")
USERS = ("reader", "writer", "reader that is open", "reader that has asked", "writer that is open")
HARMLESS = {
    ("lock", None), ("temporary", None), ("note", None),
    ("catalogue", None),  # bytes that SQLite does not use
    ("journal", "extend"),  # a torn tail, as a kill leaves it
}  # fmt: skip
"""What `verify` need not find, since no answer is another one then."""


def kind_of(name: str) -> str:
    if name.endswith((".tmp", "-journal")):
        return "temporary"
    for suffix in ("segment", "items"):
        if name.endswith(f".{suffix}"):
            return suffix
    known = {"catalogue.sqlite": "catalogue", "store.json": "settings", "revision": "note"}
    return known.get(name, "journal" if name.startswith("journal-") else name)


def read_files(path: Path) -> Files:
    return {str(f.relative_to(path)): f.read_bytes() for f in path.rglob("*") if f.is_file()}


def write_files(path: Path, files: Files) -> None:
    shutil.rmtree(path, ignore_errors=True)
    (path / "segments").mkdir(parents=True)
    for name, data in files.items():
        (path / name).write_bytes(data)


def open_store(path: Path, mode: str) -> History:
    return History.open(
        path, "1m" if mode == "w" else None, error_rate=1e-6, sync="no", mode=mode,
        background=False, clock=lambda: NOW,
    )  # fmt: skip


@dataclass
class Stores:
    """A store, itself some events ago, and another one that was made in the same way."""

    files: Files
    older: Files
    other: Files
    events: list[Event]
    needed: dict[str, list[slice]]
    """What the catalogue names of each file of segments or items; other bytes are left over."""
    loose: int = 0
    """How many bytes at the end of the journal nothing knows of but the journal itself."""

    @classmethod
    def make(cls, folder: Path, *, killed: bool) -> Stores:
        events: list[Event] = []

        def add(store: History, key: str, at: float) -> None:
            store.add(key, at=at)
            events.append((key, at))

        older: Files = {}
        made, loose = [], 0
        for which in ("other", "store"):
            path = folder / which
            events.clear()
            with open_store(path, "w") as store:
                for hour in HOURS:
                    for number in range(3):
                        add(store, "often", START + hour * HOUR + 600 * number)
                        add(store, f"{which} {hour} {number}", START + hour * HOUR + 700 * number)
                store.seal()
                store.compact(now=START + 40 * HOUR)
                add(store, "late", START + 25 * HOUR + 1)
                add(store, "open", START + 49 * HOUR + 60)
            older = read_files(path)
            # A batch changes the catalogue and leaves the journal as it is.
            last = open_store(path, "w")
            batch = f"{which} batch"
            last.add_batch("stream", 1, partial(add_one, batch))
            events.append((batch, START + 26 * HOUR))
            if killed:
                journal = next(path.glob("journal-*"))
                size = journal.stat().st_size
                add(last, "open", START + 50 * HOUR)
                loose = journal.stat().st_size - size
                abandon(last)
            last.close()
            (path / "segments" / "left.segment.tmp").write_bytes(b"left by a crash")
            made.append(read_files(path))
        needed: dict[str, list[slice]] = {}
        with open_store(folder / "store", "r") as store:
            for entry in store._state.forest.entries.values():
                for name, at, length in (
                    (entry.file, entry.at, entry.bytes),
                    (entry.items, entry.items_at, entry.items_bytes),
                ):
                    needed.setdefault(f"segments/{name}", []).append(slice(at, at + length))
        return cls(made[1], older, made[0], list(events), needed, loose)

    def is_left_over(self, changed: Files) -> bool:
        """Whether all that changes is what nothing names."""
        return all(
            name in self.needed
            and all(self.files[name][part] == data[part] for part in self.needed[name])
            for name, data in changed.items()
        )


def add_one(key: str, buffer: HistoryBuffer) -> None:
    buffer.add(key, 1, (START + 26 * HOUR) * 1_000_000)


@dataclass(frozen=True)
class Trial:
    """One damage to one file, and whom it meets."""

    number: int
    kind: str
    damage: str
    user: str

    def bytes_for(self, stores: Stores, name: str, draw: random.Random) -> Files:
        """What the damaged files hold; an empty dictionary if this changes nothing."""
        data = stores.files[name]
        alike = [one for one in stores.files if kind_of(one) == self.kind and one != name]
        length = len(data) - (stores.loose if self.kind == "journal" else 0)
        if self.damage in {"flip", "cut", "zero"} and length < 1:
            return {}
        at = draw.randrange(length) if length else 0
        if self.damage == "flip":
            changed = data[:at] + bytes([data[at] ^ (1 << draw.randrange(8))]) + data[at + 1 :]
        elif self.damage == "cut":
            changed = data[:at]
        elif self.damage == "zero":
            end = min(at + draw.choice([1, 16, 512, 4096]), length)
            changed = data[:at] + bytes(end - at) + data[end:]
        elif self.damage == "extend":
            changed = data + draw.choice([bytes(100), draw.randbytes(100), data])
        elif self.damage == "empty":
            changed = b""
        elif self.damage == "sibling" and alike:
            changed = stores.files[draw.choice(alike)]
        elif self.damage == "swap":
            partner = draw.choice(alike or [one for one in stores.files if one != name])
            return {name: stores.files[partner], partner: data}
        elif self.damage in {"other", "older"}:
            source = stores.other if self.damage == "other" else stores.older
            found = sorted(one for one in source if kind_of(one) == self.kind)
            same = [name] if name in found else []
            if not (found if self.damage == "other" else same):
                return {}
            changed = source[draw.choice(same or found)]
        else:
            return {}
        return {} if changed == data else {name: changed}

    def run(self, stores: Stores, path: Path) -> str:
        """How it ended: "right", "missing", or "refused". Raises if anything was hidden."""
        draw = random.Random(self.number)
        names = sorted(name for name in stores.files if kind_of(name) == self.kind)
        name = draw.choice(names)
        changed = {} if self.damage == "delete" else self.bytes_for(stores, name, draw)
        if not changed and self.damage != "delete":
            return "nothing"
        # A power cut takes the end of a journal that nobody closed, or all of its last record.
        if (
            stores.loose
            and self.kind == "journal"
            and self.damage in {"cut", "zero", "older", "extend"}
        ):
            return "nothing"
        write_files(path, stores.files)

        def do_damage() -> None:
            if self.damage == "delete":
                (path / name).unlink(missing_ok=True)
            for one, data in changed.items():
                if self.user == "reader that has asked":
                    (path / "new").write_bytes(data)
                    (path / "new").replace(path / one)
                else:
                    (path / one).write_bytes(data)

        asked = Asked(stores.events)
        if self.user in {"reader", "writer"}:
            do_damage()
            with named(asked):
                with open_store(path, self.user[0]) as store:
                    asked.ask(store, verify=True)
                    if self.user == "writer":
                        use(store, asked)
                with open_store(path, "r") as store:
                    asked.ask(store)
        else:
            with open_store(path, self.user[0]) as store:
                if self.user == "reader that has asked":
                    asked.ask(store)
                do_damage()
                with named(asked):
                    if self.user.startswith("writer"):
                        use(store, asked)
                    asked.ask(store)
                    store.refresh()
                    asked.ask(store)
                with named(asked):
                    store.close()
            with named(asked), open_store(path, "r") as store:
                asked.ask(store)
        if (
            asked.sound
            and (self.kind, None) not in HARMLESS
            and (self.kind, self.damage) not in HARMLESS
            and not (changed and stores.is_left_over(changed))
        ):
            raise AssertionError("verify found nothing")
        return asked.outcome


def use(store: History, asked: Asked) -> None:
    """What a writer does."""
    with named(asked):
        store.add("new", at=START + 51 * HOUR)
        asked.events.append(("new", START + 51 * HOUR))
        store.seal()
        store.compact(now=START + 60 * HOUR)
    asked.ask(store)


@contextmanager
def named(asked: Asked) -> Iterator[None]:
    try:
        yield
    except BloomtideError:
        asked.refused, asked.sound = True, False


class Asked:
    """Asks everything, and compares it with the events."""

    def __init__(self, events: list[Event]) -> None:
        self.events = list(events)
        self.refused = self.missing = False
        self.sound = False
        """`verify` found nothing."""

    @property
    def outcome(self) -> str:
        return "refused" if self.refused else "missing" if self.missing else "right"

    def truth(self, key: str | None, start: float, end: float, missing: Any) -> int:
        """Events of the key, or of all, outside of the missing times."""
        self.missing = self.missing or bool(missing)
        return sum(
            1
            for name, at in self.events
            if key in (None, name) and start <= at < end
            and not any(begin <= at < stop for begin, stop in missing)
        )  # fmt: skip

    def ask(self, store: History, *, verify: bool = False) -> None:
        keys = sorted({key for key, _ in self.events})
        if verify:
            self.sound = not store.verify().problems
        for start, end in ((START, NOW), (START + 2 * HOUR, START + 27 * HOUR + 900)):
            total = store.total(start, end)
            check(total.upper >= self.truth(None, start, end, total.missing), "total")
            many = dict(zip(keys, store.count_many(keys, start, end).tolist(), strict=True))
            total = store.total(start, end)  # names what `count_many` found to be damaged
            for key in keys:
                truth = self.truth(key, start, end, total.missing)
                check(many[key] >= truth, f"count_many {key}")
                for rollups in (True, False):
                    found = store.count(key, start, end, rollups=rollups)
                    wanted = self.truth(key, start, end, found.missing)
                    check(found.upper >= wanted, f"count {key}")
            for key in ("often", "late", keys[0]):
                check(store.contains(key, start, end) or not self.truth(key, start, end, ()), "no")
                steps = store.series(key, start, end, "5h")
                for number, upper in enumerate(steps.upper.tolist()):
                    begin = start + number * 5 * HOUR
                    wanted = self.truth(key, begin, min(begin + 5 * HOUR, end), steps.missing)
                    check(upper >= wanted, f"series {key}")
            top = store.top(start, end, 5)
            counts = {item.key: item.count for item in top.items}
            for key in keys:
                wanted = self.truth(key, start, end, top.missing)
                check(counts.get(key, top.unlisted) >= wanted, f"top {key}")
        weighed = store.decayed("often", exponential("1d"), now=NOW)
        wanted = sum(
            0.5 ** ((NOW - at) / DAY)
            for name, at in self.events
            if name == "often" and not any(b <= at < e for b, e in weighed.missing)
        )
        check(weighed.upper >= wanted * 0.999, "decayed")


def check(right: bool, what: str) -> None:
    if not right:
        raise AssertionError(f"{what} is too small, without a word")


def trials(first: int, *, only: Callable[[Trial], bool] = lambda _: True) -> Iterator[Trial]:
    """All combinations in turn and again, each with a number of its own as its seed."""
    found = [Trial(0, *words) for words in product(KINDS, DAMAGES, USERS)]
    chosen = [trial for trial in found if only(trial)]
    random.Random(1).shuffle(chosen)
    for number, trial in enumerate(cycle(chosen), start=first):
        yield replace(trial, number=number)


def run_all(
    stores: Stores, path: Path, chosen: Iterator[Trial], number: int, *, hidden: int = 5
) -> tuple[Counter[tuple[str, str]], list[str]]:
    """So many outcomes by kind of file, and what was hidden, at most so often."""
    outcomes: Counter[tuple[str, str]] = Counter()
    found: list[str] = []
    for trial in chosen:
        if outcomes.total() >= number or len(found) >= hidden:
            break
        try:
            outcome = trial.run(stores, path)
        except Exception as error:  # noqa: BLE001 - an error without a name of ours
            found.append(f"{trial}: {type(error).__name__}: {error}")
        except BaseException as panic:
            if isinstance(panic, KeyboardInterrupt):
                raise
            found.append(f"{trial}: a panic: {panic}")
        else:
            if outcome != "nothing":
                outcomes[trial.kind, outcome] += 1
    return outcomes, found
