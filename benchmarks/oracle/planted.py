"""The planted faults: what is wrong, in which trial."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from benchmarks.oracle import counts, decaying, growing, history, hot, monitor, recent, sets, urls
from benchmarks.oracle.faults import (
    Changes,
    Fault,
    added_is_off,
    aside_lost,
    asks_and_adds,
    asks_later,
    believes_all,
    clear_keeps_one,
    counts_one_less,
    cuts_and_adds,
    drops,
    drops_calls,
    drops_rows,
    feed_loses_a_line,
    field,
    first,
    goes_on_after_a_bad_key,
    half_done,
    late_counts_whole,
    late_dropped,
    lies,
    list_is_not_told,
    merge_loses_one,
    never_forgets,
    nothing,
    older,
    refusals_swallowed,
    shared_copy,
    swapped,
    threads_lose_the_last,
    times_shifted,
    twice,
    weights_swapped,
)
from benchmarks.oracle.trial import Trial


def down(value: Any) -> Any:
    return value - 1


def up(value: Any) -> Any:
    return value + 1


PLANTED: dict[type[Trial], dict[str, Callable[[], Changes]]] = {
    sets.BloomTrial: {
        "drops every 1000th key of batches": lambda: drops(1000),
        "drops every 7th key": lambda: drops_calls(7),
        "calls a known key new": lambda: lies("add", 20, lambda new: True),
        "calls an added key absent": lambda: lies("__contains__", 100, lambda found: False),
        "a batch denies one key": lambda: lies("contains_many", 5, first(lambda f: False)),
        "a batch calls an absent key seen": lambda: lies("contains_many", 4, first(lambda f: True)),
        "swaps two answers of a batch": lambda: lies("add_many", 5, swapped),
        "merge does nothing": lambda: nothing("merge"),
        "intersection does nothing": lambda: {"__iand__": lambda inner: None},
        "a copy is no copy": shared_copy,
        "bytes of an older state": lambda: older("to_bytes"),
        "saves an older state": lambda: older("save"),
        "goes on after a bad key": goes_on_after_a_bad_key,
        "`added` is one too few": added_is_off,
        "a skipped row answers True": lambda: {
            "add_many": lambda inner, keys, **w: inner.add_many(keys, **w) | ("nulls" in w)
        },
        "clear leaves a key": clear_keeps_one,
        "a question adds": asks_and_adds,
        "`fill` is off by a thousandth": lambda: lies(
            "stats", 2, field("fill", lambda f: f * 1.001)
        ),
        "threads lose the last key": threads_lose_the_last,
    },
    sets.MappedTrial: {
        "a shared file misses keys": lambda: drops(500),
        "a shared file loses single keys": lambda: drops_calls(20),
        "merging into a shared file does nothing": lambda: nothing("merge"),
    },
    sets.ScalableTrial: {
        "a growing filter drops keys": lambda: drops(500),
        "estimated_items() is one too few": lambda: lies("estimated_items", 1, down),
        "a growing filter's batch swaps answers": lambda: lies("add_many", 3, swapped),
        "the error of a layer is left out": lambda: lies(
            "stats", 2, field("predicted_error", lambda p: p * 0.9)
        ),
    },
    urls.UrlTrial: {
        "a URL is dropped": lambda: drops(500),
        "a prefix is denied": lambda: lies("seen_prefix", 50, lambda found: False),
        "a host is denied": lambda: lies("seen_host", 50, lambda found: False),
        "merging URLs does nothing": lambda: nothing("merge"),
        "a bad URL's batch is half done": half_done,
    },
    counts.CountingTrial: {
        "counts one less": lambda: counts_one_less(4),
        "count_many is one less": lambda: lies(
            "count_many", 3, first(lambda count: count - 1 if count else count)
        ),
        "weights go to each other's keys": weights_swapped,
        "remove removes twice": lambda: twice("remove"),
        "remove_many removes twice": lambda: twice("remove_many"),
        "removal of absent keys is not refused": refusals_swallowed,
        "`upper` is one too low": lambda: lies("estimate", 3, field("upper", down)),
        "`lower` is the count": lambda: lies(
            "estimate", 1, lambda e: dataclasses.replace(e, lower=e.value + 1)
        ),
        "a full counter is not told": lambda: lies(
            "estimate", 1, lambda e: dataclasses.replace(e, saturated=False)
        ),
        "merge loses one cell": merge_loses_one,
        "merge adds twice": lambda: twice("merge"),
        "stuck counters are not counted": lambda: lies("stats", 1, field("saturated", up)),
    },
    growing.DynamicTrial: {
        "a growing counter loses one": lambda: counts_one_less(4),
        "a growing merge loses one cell": merge_loses_one,
        "change_many answers one less": lambda: lies(
            "change_many", 2, first(lambda count: count - 1 if count else count)
        ),
        "remove_many tells one too few": lambda: added_is_off("remove_many"),
    },
    growing.PartitionedDynamicTrial: {
        "cutting anew changes a count": cuts_and_adds,
        "a partition loses a batch's last key": threads_lose_the_last,
    },
    growing.SpectralTrial: {
        "a spectral counter loses one": lambda: counts_one_less(4),
    },
    growing.PartitionedSpectralTrial: {
        "a spectral file is older": lambda: older("save"),
    },
    decaying.DecayTrial: {
        "late events are lost": late_dropped,
        "late events count whole": late_counts_whole,
        "counts are 1 % too low": lambda: lies("count_many", 1, lambda counts: counts * 0.99),
        "a question is an epoch off": lambda: asks_later("count_many", 7200.0),
        "times of a batch are one row off": times_shifted,
        "a decaying merge does nothing": lambda: nothing("merge"),
        "`upper` of a decayed count is too low": lambda: lies(
            "estimate", 1, field("upper", lambda upper: upper * 0.9)
        ),
        "`lower` of a decayed count forgets rounding": lambda: lies(
            "estimate", 1, lambda e: dataclasses.replace(e, lower=e.value)
        ),
        "a rate is of another time": lambda: lies("rate_many", 1, lambda rates: rates * 1.01),
        "a fading batch misses its last row": lambda: drops_rows(100),
        "a decaying batch goes half in": half_done,
    },
    decaying.WrongClockTrial: {
        "one wrong clock moves the time": believes_all,
        "what is set aside is lost": aside_lost,
    },
    hot.HotTrial: {
        "a list drops events": lambda: drops_calls(50, None),
        "a list's `lower` is too high": lambda: lies(
            "top", 1, first(field("lower", lambda lower: lower * 1.01 + 1e-12))
        ),
        "a list's `upper` is one too low": lambda: lies("estimate", 1, field("upper", down)),
        "the hottest key is not listed": lambda: lies("top", 2, lambda items: items[1:]),
        "a list's total is too low": lambda: lies("total", 3, lambda total: total * 0.999),
        "merging lists does nothing": lambda: nothing("merge"),
        "late events weigh whole": late_counts_whole,
        "a list is saved as it was before": lambda: older("save"),
    },
    hot.WrongClockHotTrial: {
        "a list loses what is set aside": aside_lost,
    },
    hot.HotFilterTrial: {
        "the list beside a filter is not told": list_is_not_told,
    },
    recent.RecentTrial: {
        "late events are not remembered": late_dropped,
        "forgets early": lambda: asks_later("contains_many", 3600.0),
        "never forgets": never_forgets,
        "a list of recent keys is older": lambda: older("to_bytes"),
        "a bad row is found too late": half_done,
    },
    history.HistoryTrial: {
        "a history drops events": lambda: drops_calls(20, None),
        "a history's batch misses its last row": lambda: drops_rows(20),
        "a history's total is one off": lambda: lies("total", 5, field("upper", up)),
        "`upper` of a range is one too low": lambda: lies(
            "count", 7, field("upper", lambda upper: max(upper - 1, 0))
        ),
        "a partial row counts as covered": lambda: lies(
            "count", 1, lambda found: dataclasses.replace(found, inner=found.upper + 1)
        ),
        "a history's batch goes half in": half_done,
    },
    monitor.MonitorTrial: {
        "a monitor drops events": lambda: drops_calls(50),
        "a monitor denies a key": lambda: lies("seen", 100, lambda found: False),
        "a monitor's heat is too low": lambda: lies(
            "heat", 5, field("upper", lambda upper: upper * 0.5)
        ),
        "a monitor's batch goes half in": half_done,
    },
    monitor.LogTrial: {
        "a line of a log is lost": feed_loses_a_line,
        "a log is counted twice": lambda: twice("feed"),
    },
}
FAULTS = [
    Fault(name, trial, changes)
    for trial, faults in PLANTED.items()
    for name, changes in faults.items()
]
