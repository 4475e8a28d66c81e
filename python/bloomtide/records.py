"""The frozen records that questions answer with: `Plan`, `Stats`, `Estimate`, `HotItem`.

One vocabulary for the library, the command line and every later surface. The compiled core fills
them; nothing here computes.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Sizes for a goal: what a filter will be, before anything is allocated."""

    kind: str
    """`"bloom"`, `"scalable"`, `"counting"`, `"sbf"`, `"dcf"`, `"psbf"`, `"pdcf"`, `"tbf"` or
    `"url"`."""
    capacity: int | None
    """Distinct keys the filter is made for; None when the sizes were given instead."""
    error_rate: float | None
    """Target false-positive rate at capacity; None when the sizes were given instead."""
    layout: str
    """`"blocked"` (all cells of a key in one block) or `"classic"` (independent positions)."""
    derivation: str
    """How positions come from the digest: `"enhanced"`, `"double"` or `"slices"`."""
    cells: int
    """Number of cells (m): bits, or counters."""
    hashes: int
    """Cells per key (k); the white paper's phase."""
    counter_bits: int
    """Bits per cell: 1 for membership."""
    bytes: int
    """Memory in bytes when `capacity` keys are in: what `stats().bytes` says then. Where it depends
    on how often keys come, that of the stream which the plan describes."""
    bytes_at_most: int
    """What no stream of `capacity` keys, and of `total` occurrences, exceeds by being added. It is
    `bytes` where the stream does not matter."""
    predicted_error: float | None
    """False-positive rate at capacity, by the layout's own formula."""
    predicted_error_overfull: float | None
    """The same when twice the capacity went in."""
    policy: str | None = None
    """Counting only: `"plain"` or `"conservative"`."""
    growth: float | None = None
    """Scalable only: how much larger each new layer is."""
    tightening: float | None = None
    """Scalable only: how much smaller each new layer's error is."""
    total: int | None = None
    """Growing counters only: occurrences of all keys together, the paper's M."""
    partitions: int | None = None
    """Growing counters only: how many pieces the counters are cut into; 1 if not partitioned."""
    shrink: float | None = None
    """Dynamic count filters only: the hysteresis of giving memory back."""
    skew: float | None = None
    """Dynamic count filters only: `bytes` is for a stream whose key of rank r comes in proportion
    to 1/r^skew, and once at the least."""
    slack: float | None = None
    """Spectral filters only: spare bits a counter, the paper's epsilon."""
    design_bits: float | None = None
    """Spectral filters only: mean bits of a counter at the expected load."""
    storage: str | None = None
    """What holds the counters: `"dynamic"` or `"spectral"`; time-decaying: `"basic"` or
    `"optimized"`."""
    half_life: float | None = None
    """Time-decaying only: seconds in which a count halves, if that was given."""
    decay: float | None = None
    """Time-decaying only: what remains of a count after one epoch, the paper's lambda."""
    epoch: float | None = None
    """Time-decaying only: seconds of an epoch, the paper's T."""
    origin: float | None = None
    """Time-decaying only: when epoch zero begins, in seconds since 1970."""
    max_jump: float | None = None
    """Time-decaying only: seconds that one event may move the time on, if that was given."""
    rounding: str | None = None
    """Time-decaying only: `"strict"` or `"expiring"`."""
    fraction_bits: int | None = None
    """Time-decaying only: bits of a cell behind the point."""
    max_layers: int | None = None
    """URL filters only: how many layers there may be."""
    bind: str | None = None
    """URL filters only: `"salted_xor"`, `"ordered"` or `"xor"`."""
    layer_sizes: str | list[int] | None = None
    """URL filters only: `"uniform"` or the prefixes expected at each depth."""
    layers: tuple[Plan, ...] = ()
    """URL filters only: each layer there may be; `bytes` counts them all."""

    @property
    def bits_per_key(self) -> float | None:
        """Memory in bits for each key of the capacity."""
        return None if self.capacity is None else self.bytes * 8 / self.capacity

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """What a filter is like now, measured from its cells."""

    kind: str
    items: float
    """Estimated distinct keys inside (from the fill); infinite when every cell is set."""
    capacity: int | None
    error_rate: float | None
    """The target."""
    predicted_error: float
    """Chance that an absent key is called present now, from the measured cells."""
    fill: float
    """Share of cells that are not zero; the white paper's saturation."""
    cells: int
    hashes: int
    counter_bits: int
    bytes: int
    saturated: int = 0
    """Counters stuck at their largest value; time-decaying: blocks with one that ever was full."""
    rebuilds: int = 0
    """How often the filter grew or re-laid its cells."""
    partitions: int | None = None
    """Growing counters only: how many pieces the counters are cut into."""
    moved: int = 0
    """Growing counters only: how many counters the rebuilds moved."""
    longest_pause: float = 0.0
    """Growing counters only: seconds that the longest rebuild took."""
    pauses: float = 0.0
    """Growing counters only: seconds that all rebuilds took together."""
    layers: tuple[Stats, ...] = ()
    depth: int | None = None
    """Layers of URL filters only: how many segments their prefixes have."""
    late: int = 0
    """Structures that decay only: events that came with an instant before the structure's time."""
    clock_jumps: int = 0
    """Structures that decay only: how often the clock was behind the structure's time."""
    ahead: int = 0
    """Structures that decay only: events later than the clock by more than a day, whose times are
    wrong, and events set aside for which there was no room. They count as of the clock's time, or
    the structure's."""
    aside: int = 0
    """Structures that decay only: events far after all others that are set aside until their times
    are believed."""
    warnings: tuple[str, ...] = ()
    """What holds more than it was made for and errs more often: a filter with more than twice its
    capacity, a part of a URL filter with more than its own."""

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A count with its bounds."""

    value: float
    """The smallest of the key's counters: never below the true count unless `saturated`. A whole
    number unless counts decay."""
    lower: float
    """The true count is at least this with `confidence`."""
    upper: float | None
    """The true count is certainly at most this; None when `saturated`."""
    confidence: float
    saturated: bool
    """The counters that hold the value are full: the true count may be larger."""


@dataclass(frozen=True, slots=True)
class HotItem:
    """A key of a hot list, with the bounds of its decayed count."""

    key: str | bytes | int
    """The key as it was first spelled."""
    count: float
    """The true count is certainly at most this."""
    lower: float
    """The true count is certainly at least this."""
    share: float
    """`count` as a share of all events, at most 1."""

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class LogRecord:
    """What one line of a log says. A field that was not logged, or logged as `-`, is None."""

    time: float | None
    """Unix seconds."""
    host: bytes | None
    """The site asked for."""
    ip: bytes | None
    """The client's address, or its name if the server looked that up."""
    path: bytes | None
    """What was asked for: a path with its query, or a whole URL in a proxy's log."""
    status: bytes | None
    """One to three digits."""
    referer: bytes | None
    """The page that linked here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineReport:
    """What became of the lines of a `Dedup` so far."""

    lines: int
    """All of them but headers."""
    new: int
    repeats: int
    """Lines whose key was there, or seemed to be."""
    without_key: int
    """Neither new nor repeats: they always pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BadLine:
    """A line of a log, or an entry of a Redis Stream, that was not understood."""

    number: int
    """From 1."""
    text: bytes
    """How it starts."""
    reason: str
    """`"format"`, `"length"` (more than 65536 bytes) or `"time"` (more than 100 years off); of an
    entry of a Redis Stream the field that is missing or wrong."""
    tried: tuple[str, ...]
    """The formats it was tried as."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogReport:
    """What became of a log's lines, or of a stream's entries, so far."""

    format: str | None
    """None until the first lines have told it."""
    lines: int
    """All of them, empty ones and remarks too."""
    parsed: int
    skipped: int
    """Lines that were not understood."""
    bad: tuple[BadLine, ...]
    """The first five of those."""
    latest: float | None
    """The latest time of a line, in Unix seconds."""
    first: float | None = None
    """`LogCounter` only: the earliest time that was counted."""
    counted: int = 0
    """`LogCounter` only: lines that went into the list."""
    without: int = 0
    """`LogCounter` only: lines that lack the field that is counted by."""
    later: int = 0
    """`LogCounter` only: lines after `until`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What a block of events came to when it was counted."""

    events: int
    """All occurrences."""
    new: int
    """Events whose key was certainly not there before."""
    first: int | None
    """The earliest instant of the block, in microseconds since 1970."""
    newest: int | None
    """The latest instant so far that is believed."""
    late: int
    """Events before one that had come already."""
    ahead: int
    """Events later than the clock by more than a day; they count as of it."""
    aside: int
    """Events far after all others that wait until their times are believed."""
    arrived: int
    """When the block came, in microseconds since 1970."""
    note: bytes
    """What its maker tied to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentInfo:
    """A sealed segment of a history: what it is, how large its parts are, how often it errs."""

    level: int
    """Its place in the ladder of windows; 0 has the finest rows."""
    begin: int
    """Where its time begins, in microseconds since 1970 (UTC)."""
    end: int
    """Where its time ends; not part of it."""
    rows: int
    """Rows of its matrix, the paper's l."""
    events: int
    """All counts together."""
    keys: int
    """Different keys; at most, if it was joined of others."""
    items: int
    """Different pairs of key and row; at most, if it was joined of others."""
    hashes: int
    """Columns of a key, the paper's k2."""
    columns: int
    """Columns of the matrix, the paper's m2."""
    gate_hashes: int
    """Bits of a key in the gate, the paper's k1."""
    gate_bits: int
    """Bits of the gate, the paper's m1."""
    bytes: int
    """The whole file."""
    gate_bytes: int
    """Of the gate."""
    map_bytes: int
    """Of the maps, which say which cells are not zero, and of their index."""
    code_bytes: int
    """Of the counts above one."""
    name_bytes: int
    """Of the list of the most frequent keys."""
    error_rate: float
    """Asked for: the chance that a count is not exact, in any range of the rows."""
    gate_error: float
    """Asked for: the chance that the gate lets a key pass that never came."""
    predicted_error: float
    """The chance that a count is not exact, by how full the rows are."""
    predicted_gate_error: float
    """The chance that the gate lets a key pass that never came, by how full it is."""
    hash: str
    """The hash function, `"xxh3"` or `"keyed"`."""
    seed: int
    """Its seed; 0 for the keyed one."""

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenSegment:
    """A segment of a history that still takes events. Times are microseconds since 1970."""

    index: int
    """Its number; segments of one length are counted from 1970, others from the first event."""
    begin: int
    end: int
    """Not part of it."""
    complete: bool
    """Whether events in their order can no longer reach it."""
    entries: int
    """Pairs of key and row."""
    events: int
    first: int
    """The earliest event."""
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedSegment:
    """The two files of a sealed segment, and what a catalogue says of it."""

    segment: bytes
    """The segment itself, for `HistorySegment`."""
    front: bytes
    """All of it before the body; has the checksums of the rest."""
    items: bytes
    """Its keys and counts, which `history_roll_up` takes."""
    level: int
    begin: int
    end: int
    """Not part of it."""
    rows: int
    events: int
    first: int | None
    """The earliest event."""
    last: int | None
    predicted_error: float
    """Chance that a key's count in some range of its rows is not exact."""
    parameters: dict[str, Any]
    """Sizes, goals, and how many keys and pairs of key and row it has."""
