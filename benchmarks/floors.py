"""What must be reached, and whether it was. A miss is printed like everything else.

All are ratios within one run on one machine. A ratio is rounded to two decimals before it is
compared: the third is noise. Where a bound holds for present and absent queries alike, the worse
of the two counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from benchmarks import bare_loop, formula, hot
from benchmarks.answers import OURS, Quality
from benchmarks.dedup import AWK, DEDUP, LONGER, MEMORY, SORT
from benchmarks.engines.abloom import SERIALIZABLE as ABLOOM
from benchmarks.engines.count_min import EQUAL
from benchmarks.logs import GOACCESS, TENTH, TOP, WATCH
from benchmarks.measure import Form, Op, Timings, Verb, ratio
from benchmarks.membership import ERROR_RATE
from benchmarks.paced import LIMIT_MS
from benchmarks.run import Run
from benchmarks.server import DEEP, SERVE, peer_rate, rate
from benchmarks.urls import FLAT, LAYERED

COUNTING = "bloomtide, 32-bit counters"
GROWING = "bloomtide, PDCF"
FADING = "bloomtide, fading, basic"
HUGE_PAGE = 2 << 20

_CALLS: tuple[tuple[Verb, float], ...] = (
    ("add", 1.0),
    ("query present", 1.0),
    ("query absent", 1.3),
)
_COUNTS: tuple[tuple[Verb, Form], ...] = (
    ("add", "per call"),
    ("count", "per call"),
    ("add", "list"),
    ("count", "list"),
)
_FADES: tuple[tuple[Form, float], ...] = (("per call", 1.5), ("list", 2.0), ("Arrow", 2.0))
_BATCHES: tuple[tuple[str, tuple[Verb, ...]], ...] = (
    ("add_many", ("add",)),
    ("contains_many", ("query present", "query absent")),
)
_BATCH_FORMS: tuple[Form, ...] = ("list", "Arrow")


@dataclass(frozen=True, slots=True)
class Floor:
    """One promise: the measured ratio and its bound."""

    work: str
    side: Literal["at least", "at most"]
    bound: float
    ratio: float | None
    """None when one of the two sides could not be measured here."""

    @property
    def verdict(self) -> Literal["ok", "short", "not measured"]:
        if self.ratio is None:
            return "not measured"
        seen = round(self.ratio, 2)
        met = seen >= self.bound if self.side == "at least" else seen <= self.bound
        return "ok" if met else "short"


def floors(run: Run) -> list[Floor]:
    """Every promise of the speed table, in its order."""
    small, large = run.sizes.small.capacity, run.sizes.large.capacity
    times = run.membership
    return [
        *_calls(times, small),
        *_batches(times, "list", ((small, 1.5), (large, 3.5))),
        *_batches(times, "Arrow", ((small, 2.5), (large, 4.0))),
        *_limit(times, (small, large)),
        *_counting(run),
        *_hot(run.hot),
        *_fading(run),
        *_threads(times, (small, large)),
        *_memory(run),
        *_logs(run),
        *_urls(run),
        *_dedup(run),
        *_guard(run),
        *_history(run),
        *_server(run),
    ]


def _calls(times: Timings, capacity: int) -> Iterator[Floor]:
    for verb, bound in _CALLS:
        op = Op(capacity, verb, "per call", 1)
        speedup = ratio(times.best(op, ABLOOM), times.best(op, OURS))
        yield Floor(f"one call, {verb}: times abloom's speed", "at least", bound, speedup)


def _batches(times: Timings, form: Form, bounds: tuple[tuple[int, float], ...]) -> Iterator[Floor]:
    """abloom has no batch query and no Arrow: everything is held against its `update(list)`."""
    for capacity, bound in bounds:
        update = times.best(Op(capacity, "add", "list", 1), ABLOOM)
        for name, verbs in _BATCHES:
            ratios = [ratio(update, times.best(Op(capacity, v, form, 1), OURS)) for v in verbs]
            work = f"{name}, {form}, {short(capacity)}: times the speed of abloom's update(list)"
            yield Floor(work, "at least", bound, _worst(min, ratios))


def _limit(times: Timings, capacities: tuple[int, ...]) -> Iterator[Floor]:
    for capacity in capacities:
        for name, verbs in _BATCHES:
            ops = [Op(capacity, verb, "Arrow", 1) for verb in verbs]
            ratios = [ratio(times.best(op, OURS), times.best(op, bare_loop.NAME)) for op in ops]
            work = f"{name}, Arrow, {short(capacity)}: times the time of the bare Rust loop"
            yield Floor(work, "at most", 1.3, _worst(max, ratios))


def _counting(run: Run) -> Iterator[Floor]:
    """Against the best peer, for PDCF twice: as planned, and with as much memory as it, or more."""
    peers = [row.engine for row in run.counted if not row.engine.startswith(OURS)]
    planned = [peer for peer in peers if not peer.endswith(EQUAL)]
    equal = [peer for peer in peers if peer.endswith(EQUAL)]
    distinct = run.counted[0].capacity
    for verb, form in _COUNTS:
        op = Op(distinct, verb, form, 1)
        best, name = _best(run, op, planned)
        ours = run.counting.best(op, COUNTING)
        work = f"counting, {verb}, {form}: times the best peer's speed ({name})"
        yield Floor(work, "at least", 3.0, ratio(best, ours))
        growing = run.counting.best(op, GROWING)
        for best, name in (_best(run, op, planned), _best(run, op, equal)):
            work = f"counting under skew, {verb}, {form}: times the best peer's speed ({name})"
            yield Floor(work, "at least", 3.0, ratio(best, growing))
        if form != "per call":
            work = f"counting under skew, {verb}, {form}: times the time of CountingBloomFilter"
            yield Floor(work, "at most", 2.0, ratio(growing, ours))
    yield from _equal_memory({row.engine: row for row in run.counted}, equal)


def _best(run: Run, op: Op, peers: list[str]) -> tuple[float | None, str]:
    """The fastest peer; one without a batch is taken at its speed per call."""
    rivals = [
        (nanoseconds, peer)
        for peer in peers
        for offered in {op.form, "per call"}
        if (nanoseconds := run.counting.best(op._replace(form=offered), peer)) is not None
    ]
    return min(rivals, default=(None, "none installed"))


def _equal_memory(rows: dict[str, Quality], peers: list[str]) -> Iterator[Floor]:
    """No peer of PDCF has less memory, and none counts more keys exactly."""
    ours = rows[GROWING]
    memory = max((ours.bits_per_key / rows[peer].bits_per_key for peer in peers), default=None)
    yield Floor("counting under skew, memory: times the smallest peer's", "at most", 1.0, memory)
    errors = [ratio(ours.inexact, rows[peer].inexact or None) for peer in peers]
    work = "counting under skew, keys counted wrongly: times the best peer's"
    yield Floor(work, "at most", 1.0, _worst(max, errors) if errors else None)


_HOT: tuple[tuple[Form, float], ...] = (("per call", 1.0), ("list", 1.5), ("Arrow", 1.5))
"""Seen at first: 1.4, 1.9 and 1.8 with decay here and none there. Both are bound by a key's own
work: half of the events replace a key."""


def _hot(times: Timings) -> Iterator[Floor]:
    """Against the only peer, a sketch without decay and without a batch: its calls, one by one."""
    peer = times.best(Op(hot.K, "add", "per call", 1), "datasketches")
    for form, bound in _HOT:
        speedup = ratio(peer, times.best(Op(hot.K, "add", form, 1), OURS))
        work = f"hot list, add, {form}: times the speed of datasketches' frequent items"
        yield Floor(work, "at least", bound, speedup)


def _fading(run: Run) -> Iterator[Floor]:
    """Counts that fade cost a clock and a stamp more than counts that stay."""
    distinct = run.counted[0].capacity
    for form, bound in _FADES:
        op = Op(distinct, "add", form, 1)
        slower = ratio(run.counting.best(op, FADING), run.counting.best(op, COUNTING))
        work = f"counts that fade, add, {form}: times the time of CountingBloomFilter"
        yield Floor(work, "at most", bound, slower)


def _threads(times: Timings, capacities: tuple[int, ...]) -> Iterator[Floor]:
    for form in _BATCH_FORMS:
        for capacity in capacities:
            for name, verbs in _BATCHES:
                one = [times.best(Op(capacity, verb, form, 1), OURS) for verb in verbs]
                two = [times.best(Op(capacity, verb, form, 2), OURS) for verb in verbs]
                work = f"{name}, {form}, {short(capacity)}: two threads against one"
                yield Floor(work, "at least", 1.7, _worst(min, list(map(ratio, one, two))))


def _memory(run: Run) -> Iterator[Floor]:
    least = formula.blocked_bits_per_key(ERROR_RATE)
    for row in run.quality:
        if row.engine == OURS:
            work = f"memory, {short(row.capacity)}: times the layout's formula"
            yield Floor(work, "at most", 1.02, row.bits_per_key / least)
    share = None
    if run.huge is not None and run.huge.filter_bytes >= HUGE_PAGE:
        share = run.huge.huge_bytes / run.huge.filter_bytes
    yield Floor("share of the large filter that lies in huge pages", "at least", 0.9, share)


def _logs(run: Run) -> Iterator[Floor]:
    lines = run.sizes.log_lines
    rows = {row.engine: row for row in run.logs if row.lines == lines}
    tenths = {row.engine: row for row in run.logs if row.lines == lines // TENTH}
    peer = rows.get(GOACCESS)
    for engine, least, times, most in ((TOP, 1.0, 20.0, 1.05), (WATCH, 0.5, 10.0, 1.5)):
        ours, tenth = rows.get(engine), tenths.get(engine)
        speed = None if ours is None or run.quick else ours.lines_per_second / 1e6
        work = f"{engine}, {lines:,} lines: millions of lines a second on one core"
        yield Floor(work, "at least", least, speed)
        against = None if ours is None or peer is None else peer.seconds / ours.seconds
        yield Floor(
            f"{engine}, {lines:,} lines: times GoAccess's speed", "at least", times, against
        )
        memory = ours.peak_bytes / tenth.peak_bytes if ours and tenth else None
        work = f"{engine}: memory on {lines:,} lines, times that on a tenth of them"
        yield Floor(work, "at most", most, memory)


def _urls(run: Run) -> Iterator[Floor]:
    taken = run.urls.best(Op(run.sizes.small.keys, "add", "Arrow", 1), LAYERED)
    speed = None if taken is None or run.quick else 1e3 / taken
    work = "UrlFilter.add_many, Arrow: millions of URLs a second on one core"
    yield Floor(work, "at least", 2.0, speed)
    for verb in ("add", "query present", "query absent"):
        op = Op(run.sizes.small.keys, verb, "Arrow", 1)
        layered, flat = run.urls.best(op, LAYERED), run.urls.best(op, FLAT)
        times = None if layered is None or flat is None or run.quick else layered / flat
        yield Floor(f"UrlFilter, {op.label}: times BloomFilter's time", "at most", 6.0, times)


def _dedup(run: Run) -> Iterator[Floor]:
    """Start and end of each process included; memory is that of the whole process."""
    lines = run.sizes.dedup_lines
    rows = {row.engine: row for row in run.dedup if row.lines == lines}
    longer = [row for row in run.dedup if row.lines == LONGER * lines]
    ours = rows.get(DEDUP)
    for peer, bound in ((SORT, 3.0), (AWK, 8.0)):
        theirs = rows.get(peer)
        faster = None if ours is None or theirs is None else theirs.seconds / ours.seconds
        work = f"{DEDUP}, {lines:,} lines: times the speed of `{peer}`"
        yield Floor(work, "at least", bound, faster)
    used = None if ours is None or run.quick else ours.peak_bytes / MEMORY
    yield Floor(f"{DEDUP}, {lines:,} lines: times 64 MB of memory in all", "at most", 1.0, used)
    more = longer[0].peak_bytes / ours.peak_bytes if ours and longer else None
    work = f"{DEDUP}: memory on {LONGER * lines:,} lines, times that on {lines:,}"
    yield Floor(work, "at most", 1.05, more)


def _guard(run: Run) -> Iterator[Floor]:
    """A question must be cheap beside any query, and a write must not notice the hooks."""
    for row in run.guard:
        if row.plain is None:
            taken = None if run.quick else row.guarded / 1e3
            yield Floor(f"DatabaseGuard.{row.work}: microseconds", "at most", 1.0, taken)
        else:
            slower = None if run.quick else row.guarded / row.plain
            work = f"{row.work}, with a guard: times the time without"
            yield Floor(work, "at most", 1.05, slower)


def _history(run: Run) -> Iterator[Floor]:
    """From Arrow to sealed segments, with the journal."""
    speed = None if run.history is None or run.quick else run.history.per_second / 1e6
    work = "history, Arrow, journal and seal: millions of events a second on one core"
    yield Floor(work, "at least", 2.0, speed)


_SERVER: tuple[tuple[str, int, float], ...] = (
    ("BF.ADD", DEEP, 1.5),
    ("BF.EXISTS", DEEP, 1.5),
    ("CMS.INCRBY", DEEP, 1.0),
    ("COUNT.ADD", DEEP, 1.0),
    ("BF.ADD", 1, 0.9),
    ("BF.EXISTS", 1, 0.9),
)


def _server(run: Run) -> Iterator[Floor]:
    """Against RedisBloom, or what it is known to make beside the redis-server of the same run."""
    for command, pipeline, bound in _SERVER:
        peer, source = peer_rate(run.server, command, pipeline)
        ours = None if run.quick else rate(run.server, SERVE, command, pipeline)
        work = f"{SERVE}, {command}, -P {pipeline}: times RedisBloom's rate ({source})"
        yield Floor(work, "at least", bound, None if ours is None or not peer else ours / peer)
    for row in run.latency:
        work = f"{SERVE} at half of its rate, -P {row.pipeline}, {row.clients:,} connections, "
        work += f"beside {row.load}: p99, times {LIMIT_MS:g} ms"
        yield Floor(work, "at most", 1.0, None if run.quick else row.p99_ms / LIMIT_MS)


def short(capacity: int) -> str:
    """A capacity as people write it: 100 M."""
    return f"{capacity // 10**6} M" if capacity >= 10**6 else f"{capacity:,}"


def _worst(choose: Callable[[list[float]], float], ratios: list[float | None]) -> float | None:
    known = [each for each in ratios if each is not None]
    return choose(known) if len(known) == len(ratios) else None
