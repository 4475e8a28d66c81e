"""One run: everything is measured in it, and everything that is reported comes from it."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import asdict, dataclass, field

from benchmarks import (
    bare_loop,
    counting,
    dedup,
    engines,
    guard,
    history,
    hot,
    logs,
    machine,
    membership,
    paced,
    server,
    urls,
)
from benchmarks.answers import OURS, Quality
from benchmarks.dedup import DedupSpeed
from benchmarks.engines.contract import Missing
from benchmarks.guard import GuardCost
from benchmarks.history import HistorySpeed
from benchmarks.logs import LogSpeed
from benchmarks.measure import Timings, collector_off
from benchmarks.membership import HugePages, Scale
from benchmarks.paced import Latency
from benchmarks.server import ServerSpeed
from benchmarks.workload import KeySet, lengths


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured."""

    small: Scale
    large: Scale
    events: int
    """Events in the stream that is counted."""
    counting_rounds: int
    log_lines: int
    """Lines of the access log."""
    log_rounds: int
    dedup_lines: int
    """Lines that are made distinct."""
    dedup_rounds: int
    inserts: int
    """Rows that go in one by one, with a guard and without, in each round."""
    insert_rounds: int
    requests: int
    """Commands to a server without a pipeline in each round; with one, ten times as many."""
    server_rounds: int
    paced_seconds: float
    """Of each load at half of the server's rate."""
    paced_clients: tuple[int, int]
    """Busy and idle ones, where there are many."""
    build_limit: bool
    """Compile the bare loop first; otherwise it is used only if it is there."""


FULL = Sizes(
    small=Scale(capacity=1_000_000, keys=1_000_000, rounds=7, filled=False),
    large=Scale(capacity=100_000_000, keys=1_000_000, rounds=5, filled=True),
    events=1_000_000,
    counting_rounds=5,
    log_lines=1_500_000,
    log_rounds=5,
    dedup_lines=5_000_000,
    dedup_rounds=3,
    inserts=500,
    insert_rounds=10,
    requests=100_000,
    server_rounds=5,
    paced_seconds=8.0,
    paced_clients=(paced.BUSY, paced.IDLE),
    build_limit=True,
)
QUICK = Sizes(
    small=Scale(capacity=2_000, keys=2_000, rounds=2, filled=False),
    large=Scale(capacity=20_000, keys=1_000, rounds=2, filled=True),
    events=2_000,
    counting_rounds=2,
    log_lines=20_000,
    log_rounds=1,
    dedup_lines=20_000,
    dedup_rounds=1,
    inserts=20,
    insert_rounds=1,
    requests=500,
    server_rounds=1,
    paced_seconds=0.1,
    paced_clients=(20, 50),
    build_limit=False,
)


@dataclass(slots=True, kw_only=True)
class Run:
    """What was measured, where and when."""

    date: str
    quick: bool
    sizes: Sizes
    machine: dict[str, object]
    versions: dict[str, str]
    keys: dict[str, float]
    """Lengths of the keys, in bytes."""
    membership: Timings = field(default_factory=Timings)
    counting: Timings = field(default_factory=Timings)
    hot: Timings = field(default_factory=Timings)
    urls: Timings = field(default_factory=Timings)
    quality: list[Quality] = field(default_factory=list)
    counted: list[Quality] = field(default_factory=list)
    logs: list[LogSpeed] = field(default_factory=list)
    dedup: list[DedupSpeed] = field(default_factory=list)
    guard: list[GuardCost] = field(default_factory=list)
    history: HistorySpeed | None = None
    server: list[ServerSpeed] = field(default_factory=list)
    latency: list[Latency] = field(default_factory=list)
    huge: HugePages | None = None
    missing: list[Missing] = field(default_factory=list)
    lacks: dict[str, str] = field(default_factory=dict)

    def as_dict(self) -> dict[str, object]:
        """Plain values for JSON."""
        return {
            "date": self.date,
            "quick": self.quick,
            "machine": self.machine,
            "versions": self.versions,
            "sizes": asdict(self.sizes),
            "key_lengths": self.keys,
            "membership": self.membership.as_records(),
            "membership_quality": [asdict(row) for row in self.quality],
            "huge_pages": None if self.huge is None else asdict(self.huge),
            "counting": self.counting.as_records(),
            "counting_quality": [asdict(row) for row in self.counted],
            "hot": self.hot.as_records(),
            "urls": self.urls.as_records(),
            "logs": [
                {**asdict(row), "lines_per_second": row.lines_per_second} for row in self.logs
            ],
            "dedup": [asdict(row) for row in self.dedup],
            "guard": [asdict(row) for row in self.guard],
            "history": None if self.history is None else asdict(self.history),
            "server": [asdict(row) for row in self.server],
            "latency": [asdict(row) for row in self.latency],
            "missing": [asdict(row) for row in self.missing],
            "lacks": self.lacks,
        }


def run(sizes: Sizes, say: Callable[[str], None]) -> Run:
    """Measures everything; `say` is told what happens now."""
    result = Run(
        date=datetime.datetime.now(datetime.UTC).date().isoformat(),
        quick=sizes is not FULL,
        sizes=sizes,
        machine=machine.describe(),
        versions=machine.versions(),
        keys=lengths(KeySet.of(0, sizes.small.keys)),
    )
    members, missing_members = engines.load(engines.MEMBERSHIP)
    counters, missing_counters = engines.load(engines.COUNTING)
    lists, missing_lists = engines.load(engines.HOT)
    limit = bare_loop.build() if sizes.build_limit else bare_loop.built()
    bare = None if isinstance(limit, Missing) else limit
    result.missing = [*missing_members, *missing_counters, *missing_lists]
    result.missing += [limit] if isinstance(limit, Missing) else []
    for lost in result.missing:
        if lost.name.startswith(OURS):
            raise SystemExit(f"bloomtide is not built ({lost.reason}): run `make bench`")
        say(f"not measured: {lost.name} ({lost.reason})")
    result.lacks = {engine.name: engine.lacks for engine in members if engine.lacks}
    result.lacks |= {engine.name: engine.lacks for engine in counters if engine.lacks}
    for each in lists:
        if each.lacks:
            result.lacks[f"{each.name}, frequent items"] = each.lacks
    with collector_off():
        for scale in (sizes.small, sizes.large):
            say(f"membership, capacity {scale.capacity:,}, {scale.rounds} rounds")
            quality, huge = membership.measure(members, scale, bare, result.membership)
            result.quality += quality
            result.huge = huge
        say(f"counting, {sizes.events:,} events, {sizes.counting_rounds} rounds")
        result.counted = counting.measure(
            counters, sizes.events, sizes.counting_rounds, result.counting
        )
        say(f"hot lists, {sizes.events:,} events, {sizes.counting_rounds} rounds")
        hot.measure(lists, sizes.events, sizes.counting_rounds, result.hot)
        say(f"URLs, {sizes.small.keys:,}, {sizes.counting_rounds} rounds")
        urls.measure(sizes.small.keys, sizes.counting_rounds, result.urls)
        say(f"guard, {sizes.inserts:,} rows, {sizes.insert_rounds} rounds")
        result.guard, missing_guard = guard.measure(
            sizes.small.keys, sizes.inserts, sizes.insert_rounds
        )
        say(f"history, {sizes.events:,} events, {sizes.counting_rounds} rounds")
        result.history = history.measure(sizes.events, sizes.counting_rounds)
    say(f"logs, {sizes.log_lines:,} lines, {sizes.log_rounds} rounds")
    result.logs, missing_logs = logs.measure(sizes.log_lines, sizes.log_rounds)
    say(f"dedup, {sizes.dedup_lines:,} lines, {sizes.dedup_rounds} rounds")
    result.dedup, missing_dedup = dedup.measure(sizes.dedup_lines, sizes.dedup_rounds)
    say(f"server, {sizes.requests:,} commands, {sizes.server_rounds} rounds")
    result.server, missing_server = server.measure(sizes.requests, sizes.server_rounds)
    say(f"server at half of its rate, {sizes.paced_seconds:g} seconds each")
    busy, idle = sizes.paced_clients
    result.latency = paced.latencies(sizes.requests, sizes.paced_seconds, busy=busy, idle=idle)
    lost_later = [*missing_guard, *missing_logs, *missing_dedup, *missing_server]
    for lost in lost_later:
        say(f"not measured: {lost.name} ({lost.reason})")
    result.missing += lost_later
    return result
