"""Wrong times in logs, by the commands that read them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.access_log import hit
from tests.cli.command import run

YEARS = 2 * 365 * 24 * 60
"""Minutes of two years."""


def top(log: Path, *options: str) -> dict[str, Any]:
    [line] = run("top", "--json", *options, log).stdout.splitlines()
    answer: dict[str, Any] = json.loads(line)
    return answer


@pytest.mark.parametrize("minutes", [YEARS, 40 * YEARS])
@pytest.mark.parametrize("options", [(), ("--half-life", "never")])
def test_a_line_years_ahead_moves_nothing_and_is_told(
    tmp_path: Path, minutes: float, options: tuple[str, ...]
) -> None:
    lines = [hit(f"/{number % 50}", number / 60) for number in range(3000)]
    log = tmp_path / "access.log"
    log.write_bytes(b"".join(lines))
    before = top(log, *options)
    log.write_bytes(b"".join([*lines[:2000], hit("/wrong", minutes), *lines[2000:]]))
    after = top(log, *options)
    assert after["at"] == before["at"]
    if options:  # what does not fade counts every line
        assert after["total"] == before["total"] + 1
        before["hot"] = [row | {"share": row["count"] / after["total"]} for row in before["hot"]]
    assert after["hot"] == before["hot"]
    assert after["aside"] + after["ahead"] >= 1
    assert "dated" in run("top", *options, log).stdout


def test_the_last_hits_after_a_quiet_night_are_shown(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    day = [hit("/day", number / 60) for number in range(600)]
    log.write_bytes(b"".join([*day, *(hit("/morning", 900 + number) for number in range(3))]))
    answer = top(log)
    assert answer["hot"][0]["key"] == "/morning"


def repeats(rows: list[tuple[float, str]], within: float) -> int:
    """Printed lines that came within the time of one printed before, by their own times."""
    printed: dict[str, list[float]] = {}
    wrong = 0
    for at, key in rows:
        wrong += any(abs(at - other) <= within for other in printed.get(key, []))
        printed.setdefault(key, []).append(at)
    return wrong


def test_dedup_judges_late_lines_by_their_own_time_and_believes_no_single_one(
    tmp_path: Path,
) -> None:
    draw = np.random.default_rng(4)
    times = 1.7e9 + np.arange(20_000) * 2.0
    late = draw.random(20_000) < 0.1
    times = np.where(late, times - draw.random(20_000) * 3000, times).round(1)
    keys = draw.zipf(1.2, 20_000) % 3000
    times[5000] += 400 * 86_400
    times[7000] += 40_000 * 86_400
    log = tmp_path / "events.csv"
    rows = zip(times.tolist(), keys.tolist(), strict=True)
    log.write_text("".join(f"{at},k{key}\n" for at, key in rows))
    options = ("--within", "1h", "--key", "2", "--time", "1", "--format", "csv")
    lines = run("dedup", *options, log).stdout.splitlines()
    kept = [(float(line.split(",")[0]), line.split(",")[1]) for line in lines]
    kept = [row for row in kept if row[0] < 1.7e9 + 100 * 86_400]
    assert repeats(kept, 3600) == 0
    # What came first within more than an hour and a piece is printed.
    longest, missing = 3600 * (1 + 1 / 8) + 1, 0
    seen: dict[str, list[float]] = {}
    printed = set(lines)
    for at, key in zip(times.tolist(), keys.tolist(), strict=True):
        near = [other for other in seen.get(f"k{key}", []) if abs(at - other) <= longest]
        missing += not near and f"{at},k{key}" not in printed
        seen.setdefault(f"k{key}", []).append(at)
    assert missing == 0
