"""The run as Markdown: ratios first, then the nanoseconds they come from, then what must be."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks import bare_loop, hot, paced
from benchmarks.answers import OURS, Quality
from benchmarks.engines.abloom import SERIALIZABLE as ABLOOM
from benchmarks.engines.count_min import EQUAL
from benchmarks.floors import COUNTING, GROWING, Floor, floors, short
from benchmarks.markdown import NOTHING, table
from benchmarks.measure import Op, Timings, ratio
from benchmarks.run import Run

_HOW_TO_READ = (
    "An Arrow batch is compared with a peer's list batch. Where a peer has no batch at all for "
    "the work, its single calls are taken (marked *)."
)

_LOGS = """### An access log

Whole commands on one core, from start to end; the log is in the COMBINED format."""


_DEDUP = """### Lines seen for the first time

Whole commands with all cores in the C locale, from start to end, output to a file. bloomtide has
`--error 0.0001` and the shorter file's number of lines as `--items`. Its output was held against
awk's: the same lines in the same order, but for no more lost ones than that error allows."""


_GUARD = """### A guard in front of a database

Microseconds: the best round of questions, the median INSERT. A row goes in and is committed by
itself, through SQLAlchemy's Core, with a guard on one of its columns and without, in turns."""


_HISTORY = """### Counts by key and minute

A skewed stream of URLs from Arrow into a history's open segments, its journal into a file, each
hour sealed at 1 % error; one core, no sync."""


_SERVER = """### A server beside Redis

redis-benchmark with 50 connections on the same machine, everything in memory, the best round. A row
with -P 64 sends 64 commands before it waits for a reply."""


_LATENCY = """### A server at half of its rate

BF.ADD. Requests leave at set times, whether or not earlier ones were answered; each is charged from
its own time on to its last reply. The rate is half of what redis-benchmark makes of that server."""


def full_report(run: Run) -> str:
    """Everything, for docs/benchmarks.md and the terminal."""
    capacities = (run.sizes.small.capacity, run.sizes.large.capacity)
    distinct = run.counted[0].capacity
    stream = f"**Counting, {run.sizes.events:,} events, {distinct:,} distinct keys**"
    parts = [machine_line(run), "### How many times faster bloomtide is", _HOW_TO_READ]
    for capacity in capacities:
        parts += [_heading(capacity), ratios(run.membership, capacity, OURS)]
    parts += [stream, ratios(run.counting, distinct, COUNTING, _as_planned)]
    skew = "**The same for PDCF; the others have as much memory as it, or more**"
    parts += [skew, ratios(run.counting, distinct, GROWING, _equal_memory)]
    lists = f"**The {hot.K:,} hottest keys, {run.sizes.events:,} events**"
    parts += [lists, ratios(run.hot, hot.K, OURS)]
    parts += ["### Nanoseconds per key", "The best round of each."]
    for capacity in capacities:
        parts += [_heading(capacity), nanoseconds(run.membership, capacity)]
    parts += [stream, nanoseconds(run.counting, distinct)]
    parts += [lists, nanoseconds(run.hot, hot.K)]
    layered = f"**URLs by depth, capacity {short(run.sizes.small.keys)}, 1 % error**"
    parts += [layered, nanoseconds(run.urls, run.sizes.small.keys)]
    parts += ["### Memory and measured error", quality(run.quality), quality(run.counted)]
    parts += [_LOGS, log_speeds(run), _DEDUP, dedup_speeds(run)]
    parts += [_GUARD, guard_costs(run)]
    parts += [_HISTORY, history_speed(run)]
    parts += [_SERVER, server_speeds(run)]
    parts += [_LATENCY, paced.shown(run.latency)] if run.latency else []
    parts += ["### Must be", must_be(floors(run)), *_notes(run)]
    return "\n\n".join(parts)


def readme_report(run: Run) -> str:
    """The short tables that the README shows: one thread, no query twice."""
    ops = [
        op
        for op in run.membership.ops()
        if op.threads == 1 and (op.form == "per call" or op.verb != "query present")
    ]
    peers = _peers(run.membership, run.sizes.small.capacity)
    rows = [
        [f"{op.label}, capacity {short(op.capacity)}", *_speedups(run.membership, op, OURS, peers)]
        for op in ops
    ]
    parts = [
        machine_line(run),
        "How many times faster bloomtide is (above 1 it is faster):",
        table(rows, ["work", *peers]),
        ratios(run.counting, run.counted[0].capacity, COUNTING, _as_planned),
        _HOW_TO_READ + " Made by `make bench`; more in docs/benchmarks.md.",
    ]
    return "\n\n".join(parts)


def machine_line(run: Run) -> str:
    """Where and when, in one sentence."""
    cores, cpu = run.machine["cores"], run.machine["cpu"]
    versions = ", ".join(f"{name} {version}" for name, version in run.versions.items())
    size = " **Tiny sizes: these numbers mean nothing.**" if run.quick else ""
    return (
        f"Measured on {run.date}: {cpu}, {cores} cores, Python {run.machine['python']}; "
        f"{versions}.{size}"
    )


def _equal_memory(peer: str) -> bool:
    return peer.endswith(EQUAL)


def _as_planned(peer: str) -> bool:
    return not _equal_memory(peer)


def ratios(
    timings: Timings, capacity: int, ours: str, takes: Callable[[str], bool] = _as_planned
) -> str:
    """The time of each peer that takes part, divided by ours, for all measured at a capacity."""
    peers = [peer for peer in _peers(timings, capacity) if takes(peer)]
    ops = [op for op in timings.ops() if op.capacity == capacity]
    rows = [[op.label, *_speedups(timings, op, ours, peers)] for op in ops]
    return table(rows, ["work", *peers])


def nanoseconds(timings: Timings, capacity: int) -> str:
    """The times themselves."""
    ops = [op for op in timings.ops() if op.capacity == capacity]
    names = list(dict.fromkeys(name for op, name in timings.rounds if op.capacity == capacity))
    names.sort(key=lambda name: (not name.startswith(OURS), name == bare_loop.NAME))
    rows = [[op.label, *(_number(timings.best(op, name), 1) for name in names)] for op in ops]
    return table(rows, ["work", *names])


def quality(rows: list[Quality]) -> str:
    """Bits a key and measured error of every filter that was timed."""
    header = ["library", "capacity", "bits per key", "measured error"]
    counted = any(row.overcounted is not None for row in rows)
    shares = [
        [share for share in (row.error, row.overcounted, row.inexact) if share is not None]
        for row in rows
    ]
    return table(
        [
            [
                row.engine,
                f"{row.capacity:,}",
                f"{row.bits_per_key:.2f}",
                *(f"{share:.3%}" for share in own),
            ]
            for row, own in zip(rows, shares, strict=True)
        ],
        [*header, *(["keys counted too high", "counted wrongly"] if counted else [])],
    )


def log_speeds(run: Run) -> str:
    """Every command that read the log."""
    rows = [
        [
            row.engine,
            f"{row.lines:,}",
            f"{row.seconds:.2f}",
            f"{row.lines_per_second:,.0f}",
            f"{row.peak_bytes / 1e6:.0f}",
        ]
        for row in run.logs
    ]
    return table(rows, ["command", "lines", "seconds", "lines a second", "peak memory, MB"])


def history_speed(run: Run) -> str:
    """What one event costs a history, step by step."""
    if run.history is None:
        return NOTHING
    took = run.history
    row = [
        f"{took.events:,}",
        f"{took.items:,}",
        f"{took.add_seconds * 1e9 / took.events:.0f}",
        f"{took.seal_seconds * 1e9 / took.events:.0f}",
        f"{took.per_second / 1e6:.1f}",
        f"{took.journal_bytes / took.events:.1f}",
        f"{8 * took.segment_bytes / took.items:.1f}",
    ]
    names = ["events", "pairs of key and minute", "ns to add", "ns to seal", "M events a second"]
    return table([row], [*names, "journal bytes an event", "segment bits a pair"])


def dedup_speeds(run: Run) -> str:
    """Every command that made the lines distinct."""
    rows = [
        [
            f"{row.engine} ({row.program})",
            f"{row.lines:,}",
            f"{row.file_bytes / 1e6:.0f}",
            f"{row.kept:,}",
            f"{row.seconds:.2f}",
            f"{row.peak_bytes / 1e6:.0f}",
        ]
        for row in run.dedup
    ]
    header = ["command", "lines", "file, MB", "lines kept", "seconds", "peak memory, MB"]
    return table(rows, header)


def guard_costs(run: Run) -> str:
    """A question, and INSERTs on both sides."""
    rows = [
        [row.work, NOTHING if row.plain is None else f"{row.plain / 1e3:.1f}",
         f"{row.guarded / 1e3:.2f}"]
        for row in run.guard
    ]  # fmt: skip
    return table(rows, ["work", "without a guard", "with it"])


def server_speeds(run: Run) -> str:
    """Every command on every server."""
    rows = [
        [row.engine, row.command, f"{row.pipeline}", f"{row.per_second:,.0f}", f"{row.p99_ms:.2f}"]
        for row in run.server
    ]
    return table(rows, ["server", "command", "-P", "commands a second", "p99, ms"])


def must_be(rows: list[Floor]) -> str:
    """Each promise, what was measured, and whether it holds."""
    shown = [
        [row.work, f"{row.side} {row.bound:.2f}", _number(row.ratio, 2), f"**{row.verdict}**"]
        for row in rows
    ]
    missed = sum(row.verdict == "short" for row in rows)
    unknown = sum(row.verdict == "not measured" for row in rows)
    said = f"{len(rows) - missed - unknown} of {len(rows)} hold, {missed} are short"
    said += f", {unknown} could not be measured here." if unknown else "."
    return table(shown, ["work", "must be", "measured", "verdict"]) + "\n\n" + said


def _speedups(timings: Timings, op: Op, ours: str, peers: list[str]) -> list[str]:
    mine = timings.best(op, ours)
    shown = []
    for peer in peers:
        theirs, mark = _nearest(timings, op, peer)
        speedup = ratio(theirs, mine)
        shown.append(NOTHING if speedup is None else f"{speedup:.2f}{mark}")
    return shown


def _nearest(timings: Timings, op: Op, peer: str) -> tuple[float | None, str]:
    """The peer's time for an op, or for what its user would do instead."""
    offers = [op]
    if op.form == "Arrow" and peer != bare_loop.NAME:
        offers.append(op._replace(form="list"))
    for offer in offers:
        taken = timings.best(offer, peer)
        if taken is not None:
            return taken, ""
    if peer == bare_loop.NAME or op.form == "per call":
        return None, ""
    return timings.best(op._replace(form="per call", threads=1), peer), "*"


def _peers(timings: Timings, capacity: int) -> list[str]:
    names = dict.fromkeys(name for op, name in timings.rounds if op.capacity == capacity)
    others = [name for name in names if not name.startswith(OURS)]
    return sorted(others, key=lambda name: (name != ABLOOM, name == bare_loop.NAME))


def _heading(capacity: int) -> str:
    return f"**Capacity {short(capacity)}, 1 % error**"


def _notes(run: Run) -> list[str]:
    lines = [f"- {name}: {text}." for name, text in run.lacks.items()]
    lines += [f"- {lost.name} was not measured: {lost.reason}." for lost in run.missing]
    return ["### What the peers lack", "\n".join(lines)] if lines else []


def _number(value: float | None, digits: int) -> str:
    return NOTHING if value is None else f"{value:.{digits}f}"
