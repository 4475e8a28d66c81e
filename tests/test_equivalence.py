"""`make equal` in small: it finds nothing where nothing is, and something where something is."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks import equivalence
from bloomtide import CountingBloomFilter


def test_a_quick_run_finds_all_equal(capsys: pytest.CaptureFixture[str]) -> None:
    assert equivalence.main(["--operations", "20000"]) == 0
    assert "equal: 20,000 operations" in capsys.readouterr().out


def test_a_structure_that_differs_is_found(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Counters of four bits are soon full."""
    honest = equivalence.family

    def with_an_odd_one(layout: Any, policy: Any) -> dict[str, Any]:
        narrow = CountingBloomFilter(
            cells=equivalence.CELLS, hashes=equivalence.HASHES, layout=layout
        )
        return honest(layout, policy) | {"counting": narrow}

    monkeypatch.setattr(equivalence, "family", with_an_odd_one)
    assert equivalence.main(["--operations", "20000"]) == 1
    assert "different (blocked, plain): operation" in capsys.readouterr().out
