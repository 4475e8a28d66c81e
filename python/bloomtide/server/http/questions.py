"""The questions with short answers. Each is asked by a thread, and none changes anything."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from bloomtide import __version__
from bloomtide.errors import require
from bloomtide.server.http.params import key_of, range_of
from bloomtide.server.http.parts import Parts
from bloomtide.server.http.plain import key_fields, plain, seconds_of

Given = Mapping[str, Any]
STEPS = 1000
"""Of a series at most; a chart has fewer pixels than that."""


def stats(parts: Parts, given: Given) -> Any:
    """What there is, in one answer."""
    return {
        "version": __version__,
        "started": parts.started,
        "ready": parts.why_not_ready() is None,
        "monitor": monitor_stats(parts),
        "history": history_stats(parts),
        "keyspace": None if parts.keyspace is None else parts.keyspace.stats(),
    }


def monitor_stats(parts: Parts) -> dict[str, Any] | None:
    """The monitor's figures, without those that have an answer of their own."""
    if parts.monitor is None:
        return None
    told: dict[str, Any] = plain(parts.monitor.stats())
    return {name: told[name] for name in told if name not in ("structures", "guards")}


def history_stats(parts: Parts) -> dict[str, Any] | None:
    """What the time axis has to show, and whether all is well with it."""
    history = parts.monitor.history if parts.monitor is not None else None
    if history is None:
        return None
    told = asdict(history.stats())
    names = ("first", "last", "events", "segments", "bytes", "predicted_error", "failure")
    return {
        "window": history.window,
        **{name: told[name] for name in names},
        "damaged": len(told["damaged"]),
    }


def seen(parts: Parts, given: Given) -> Any:
    """Whether a key came before. False is certain."""
    key = key_of(given)
    return {**key_fields(key), "seen": parts.require_monitor().seen(key)}


def count(parts: Parts, given: Given) -> Any:
    """How often a key came, with bounds."""
    key = key_of(given)
    return {**key_fields(key), **asdict(parts.require_monitor().count(key))}


def heat(parts: Parts, given: Given) -> Any:
    """How hot a key is: its count, faded by the half-life."""
    key = key_of(given)
    return {**key_fields(key), **asdict(parts.require_monitor().heat(key))}


def pulse(parts: Parts, given: Given) -> Any:
    """Events and new keys of each second of the last minutes."""
    return parts.require_monitor().pulse()


def structures(parts: Parts, given: Given) -> dict[str, list[dict[str, Any]]]:
    """Every structure, the monitor's first."""
    told: list[Any] = []
    if parts.monitor is not None:
        told += [{"of": "monitor", **plain(each)} for each in parts.monitor.stats().structures]
    if parts.keyspace is not None:
        room = given["n"] - len(told)
        if room > 0:
            told += [{"of": "keyspace", **plain(each)} for each in parts.keyspace.structures(room)]
    return {"items": told[: given["n"]]}


def guards(parts: Parts, given: Given) -> Any:
    """What each guard spared its database."""
    found = {} if parts.monitor is None else parts.monitor.guards
    return {"items": [{"name": name, **plain(found[name].stats())} for name in sorted(found)]}


def sources(parts: Parts, given: Given) -> Any:
    """What became of the lines of each log, and of the entries of each stream."""
    feeding = parts.feeding
    if feeding is None:
        return {"items": [], "problems": []}
    return {"items": plain(feeding.about_sources()), "problems": list(feeding.about_problems())}


def history_count(parts: Parts, given: Given) -> Any:
    """How often a key came in a range."""
    key = key_of(given)
    told = parts.require_history().count(key, **range_of(given), now=_now(parts))
    return {**key_fields(key), **asdict(told)}


def history_series(parts: Parts, given: Given) -> Any:
    """How often a key came in each step of a range."""
    key, history = key_of(given), parts.require_history()
    span = _span(parts, given)
    told = history.series(key, span["start"], span["end"], span["step"])
    return {
        **key_fields(key),
        "step": span["step"],
        "start": seconds_of(told.start).tolist(),
        "upper": told.upper.tolist(),
        "inner": told.inner.tolist(),
        "estimate": told.estimate.tolist(),
        "missing": told.missing,
    }


def history_total(parts: Parts, given: Given) -> Any:
    """All events of a range; with `step`, of each step of it."""
    history = parts.require_history()
    if given["step"] is None:
        return history.total(**range_of(given), now=_now(parts))
    span = _span(parts, given)
    edges = np.append(np.arange(span["start"], span["end"], span["step"]), span["end"])
    steps = [
        history.total(start, end)
        for start, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
    ]
    return {
        "step": span["step"],
        "start": edges[:-1].tolist(),
        **{
            name: [getattr(each, name) for each in steps] for name in ("upper", "inner", "estimate")
        },
        "missing": [gap for each in steps for gap in each.missing],
    }


def history_top(parts: Parts, given: Given) -> Any:
    """The most frequent keys of a range."""
    return parts.require_history().top(n=given["n"], **range_of(given), now=_now(parts))


def _now(parts: Parts) -> float:
    """The stream's own time: `last` of an old log is its end, not today."""
    return parts.require_monitor().now()


def _span(parts: Parts, given: Given) -> dict[str, float]:
    """Start, end and step in seconds; what is left open is where the events are."""
    history = parts.require_history()
    start, end = given["start"], given["end"]
    step = given["step"] or history.window or 60.0
    if given["last"] is not None:
        require(
            "last", given["last"], "alone", start is None and end is None,
            hint="give `last`, or `start` and `end`",
        )  # fmt: skip
        # Whole steps, which cut no row of the history in two.
        end = math.ceil(_now(parts) / step) * step
        start = (_now(parts) - given["last"]) // step * step
    known = history.stats()
    if start is None:
        start = (known.first or 0.0) // step * step
    if end is None:
        end = ((known.last or 0.0) // step + 1) * step
    end = max(start, end)
    require(
        "step", step, f"long enough for at most {STEPS} steps", (end - start) / step <= STEPS,
        hint="give a longer step or a shorter range",
    )  # fmt: skip
    return {"start": start, "end": end, "step": step}
