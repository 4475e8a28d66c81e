"""Prometheus sees what `stats()` says."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, generate_latest
from sqlalchemy import create_engine
from sqlalchemy.orm import Session

from bloomtide import DatabaseGuard
from bloomtide.guard.metrics import GuardMetrics
from tests.guard.shop import ABSENT, Base, Basket


def test_every_figure_has_its_metric_and_the_state_a_label() -> None:
    engine = create_engine("sqlite://")
    Base.metadata.create_all(engine)
    with Session(engine) as session, session.begin():
        session.add(Basket(owner=1))
    registry = CollectorRegistry()
    with DatabaseGuard(engine, Basket.owner, 1e-6) as guard:
        registry.register(GuardMetrics({"basket": guard}))
        guard.build()
        guard.may_exist(1)
        guard.may_exist(ABSENT)
        guard.may_exist(ABSENT)

        def value(name: str, **labels: str) -> float | None:
            return registry.get_sample_value(
                f"bloomtide_guard_{name}", {"guard": "basket", **labels}
            )

        assert value("asked_total") == 3
        assert value("avoided_total") == 2
        assert value("passed_total") == 1
        assert value("false_true_total") == value("wrong_false_total") == 0
        assert value("saturation") == guard.stats().saturation
        assert value("predicted_error") == guard.stats().predicted_error
        assert value("rebuild_seconds") == guard.stats().rebuild_seconds
        assert value("state", state="ready") == 1
        assert value("state", state="degraded") == 0
        guard.distrust()
        assert value("state", state="degraded") == 1
        assert b"bloomtide_guard_asked_total" in generate_latest(registry)
    engine.dispose()
