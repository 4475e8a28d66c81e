"""A Prometheus collector of guards.

    from prometheus_client import REGISTRY
    REGISTRY.register(GuardMetrics({"basket": guard}))

Each guard is a label. The figures are those of `stats()`, taken when Prometheus asks for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from bloomtide import extras
from bloomtide.guard.stats import GuardStats, State

with extras.require("metrics", "`GuardMetrics`"):
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
    from prometheus_client.registry import Collector

_COUNTERS = {
    "asked": "Questions.",
    "avoided": "Questions answered without the database.",
    "passed": "Questions that went on to the database.",
    "false_true": "Passed questions for a key that the database did not know.",
    "wrong_false": "Keys called absent though they are there; must be 0. Shadow mode only.",
    "unseen": "Times that keys were written which the guard could not see.",
    "rebuilds": "Builds that were put to use.",
}
_GAUGES = {
    "items": "Estimated keys inside.",
    "saturation": "Share of cells that are not zero.",
    "predicted_error": "Share of absent keys that pass, from the measured cells.",
    "bytes": "Memory of the cells.",
    "stale": "Deleted rows whose keys are still inside.",
    "rebuild_seconds": "How long the last build took.",
    "bypassed": "1 if the guard has found itself useless for now.",
}


class Guard(Protocol):
    """Whatever has the statistics of a guard."""

    def stats(self) -> GuardStats: ...


class GuardMetrics(Collector):
    """Collects the figures of guards, by their names."""

    def __init__(self, guards: Mapping[str, Guard]) -> None:
        self._guards = dict(guards)

    def collect(self) -> Iterable[Metric]:
        stats = {name: guard.stats() for name, guard in self._guards.items()}
        for field, text in _COUNTERS.items():
            counter = CounterMetricFamily(f"bloomtide_guard_{field}", text, labels=["guard"])
            for name, each in stats.items():
                counter.add_metric([name], getattr(each, field))
            yield counter
        for field, text in _GAUGES.items():
            gauge = GaugeMetricFamily(f"bloomtide_guard_{field}", text, labels=["guard"])
            for name, each in stats.items():
                gauge.add_metric([name], float(getattr(each, field)))
            yield gauge
        state = GaugeMetricFamily(
            "bloomtide_guard_state", "1 for the state that the guard is in.",
            labels=["guard", "state"],
        )  # fmt: skip
        for name, each in stats.items():
            for value in State:
                state.add_metric([name, value.value], float(each.state is value))
        yield state
