"""Figures for Prometheus, in its text format.

Names and units follow its habits: `_total`, `_seconds`, `_bytes`. Labels are names of structures,
commands and guards, never keys, and no more of each than `Limits.labels`: what is left out is
counted in `bloomtide_labels_left_out`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from bloomtide import __version__
from bloomtide.server.http import questions
from bloomtide.server.http.parts import Family, Parts

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_STRUCTURE = {
    "items": ("items", "Estimated distinct keys inside."),
    "fill": ("fill_ratio", "Share of cells that are not zero."),
    "predicted_error": ("estimated_fpr", "Chance that an absent key is called present."),
    "bytes": ("memory_bytes", "Memory, or for a history the size of its files."),
}
_GUARD_TOTALS = {
    "asked": "Questions.",
    "avoided": "Questions answered without the database.",
    "passed": "Questions that went on to the database.",
    "false_true": "Passed questions for a key that the database did not know.",
}
_GUARD_GAUGES = {
    "items": "Estimated keys inside.",
    "predicted_error": "Share of absent keys that pass.",
    "bytes": "Memory of the cells.",
}


def families(parts: Parts) -> Iterator[Family]:
    """Everything there is to tell."""
    most = parts.limits.labels
    yield _one("bloomtide_info", "gauge", "The version.", 1.0, version=__version__)
    yield _one("bloomtide_start_time_seconds", "gauge", "When the server started.", parts.started)
    not_ready = parts.why_not_ready()
    yield _one("bloomtide_loading", "gauge", "1 while data is loaded.", not_ready == "loading")
    yield _one("bloomtide_ready", "gauge", "1 if questions and events are welcome.", not not_ready)
    yield Family(
        "bloomtide_http_requests_total", "counter", "Requests by path and status.",
        [({"path": path, "status": status}, float(n))
         for (path, status), n in sorted(parts.requests.items())],
    )  # fmt: skip
    if parts.monitor is not None:
        yield from _monitor(parts.monitor.stats())
    every = questions.structures(parts, {"n": most + 1})["items"]
    held = every[:most]
    left_out = len(every) - len(held)
    for field, (name, about) in _STRUCTURE.items():
        yield Family(
            f"bloomtide_filter_{name}", "gauge", about,
            [({"name": str(each["name"]), "kind": str(each["kind"])}, float(each[field]))
             for each in held if each.get(field) is not None],
        )  # fmt: skip
    if parts.keyspace is not None:
        yield from _commands(parts.keyspace.stats().get("commands", {}), most)
    guards = questions.guards(parts, {})["items"]
    yield from _guards(guards[:most])
    left_out += max(0, len(guards) - most)
    for more in parts.metrics:
        yield from more()
    yield _one("bloomtide_labels_left_out", "gauge", "1 or more if names were left out.", left_out)


def _monitor(told: Any) -> Iterator[Family]:
    about = {
        "events": "Events.", "new": "Keys never seen before.", "late": "Late events.",
        "ahead": "Events later than the clock by more than a day.",
    }  # fmt: skip
    for name, text in about.items():
        yield _one(f"bloomtide_{name}_total", "counter", text, getattr(told, name))
    waiting = "Events far after the others, set aside."
    yield _one("bloomtide_aside", "gauge", waiting, told.aside)
    newest = told.time
    if newest is not None:
        yield _one("bloomtide_newest_event_seconds", "gauge", "Time of the newest event.", newest)


def _commands(told: Any, most: int) -> Iterator[Family]:
    samples: list[tuple[Mapping[str, str], float]] = []
    if isinstance(told, Mapping):
        for name, (calls, errors) in sorted(told.items())[:most]:
            samples += [
                ({"cmd": name.lower(), "status": "ok"}, float(calls - errors)),
                ({"cmd": name.lower(), "status": "error"}, float(errors)),
            ]
    yield Family("bloomtide_commands_total", "counter", "Commands over RESP.", samples)


def _guards(told: list[dict[str, Any]]) -> Iterator[Family]:
    for table, kind, suffix in ((_GUARD_TOTALS, "counter", "_total"), (_GUARD_GAUGES, "gauge", "")):
        for field, about in table.items():
            yield Family(
                f"bloomtide_guard_{field}{suffix}", kind, about,
                [({"guard": each["name"]}, float(each[field]))
                 for each in told if each.get(field) is not None],
            )  # fmt: skip


def _one(name: str, kind: str, about: str, value: float, **labels: str) -> Family:
    return Family(name, kind, about, [(labels, float(value))])


def render(told: Iterable[Family]) -> str:
    """The text that Prometheus reads."""
    lines = []
    for family in told:
        lines += [f"# HELP {family.name} {family.about}", f"# TYPE {family.name} {family.kind}"]
        for labels, value in family.samples:
            marks = ",".join(f'{name}="{_escape(text)}"' for name, text in labels.items())
            lines.append(f"{family.name}{{{marks}}} {_number(value)}" if marks else
                         f"{family.name} {_number(value)}")  # fmt: skip
    return "\n".join(lines) + "\n"


def _escape(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return repr(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)


async def metrics(request: Request) -> Response:
    """`/metrics`."""
    parts: Parts = request.app.state.parts
    text = await parts.ask(lambda: render(families(parts)))
    return Response(text.encode(errors="replace"), headers={"Content-Type": CONTENT_TYPE})
