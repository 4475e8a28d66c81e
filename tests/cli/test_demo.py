"""`bloomtide demo`: every chapter's promise, on the quick tour."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bloomtide.cli.demo.chapters import CHAPTERS
from tests.cli.command import run


@pytest.fixture(scope="module")
def measured() -> dict[str, Any]:
    result = run("demo", "--quick", "--json")
    assert result.stderr == ""
    return dict(json.loads(result.stdout))


def test_membership_finds_every_visited_page_in_less_memory(measured: dict[str, Any]) -> None:
    chapter = measured["seen_before"]
    assert chapter["false_negatives"] == 0
    assert chapter["measured_error"] == chapter["false_positives"] / chapter["probes"]
    assert 0 < chapter["predicted_error"] <= 0.01
    assert chapter["bytes"] * 10 < chapter["set_bytes"]


def test_counting_never_counts_too_low_and_forgets(measured: dict[str, Any]) -> None:
    chapter = measured["how_often"]
    assert chapter["counted_too_low"] == 0
    assert chapter["exactly_counted"] > 0.9 * chapter["pages"]
    assert len(chapter["top"]) == 5
    first = chapter["top"][0]
    assert chapter["after_remove"] == first["counted"] - first["true"]


def test_hot_pages_are_counted_right_in_less_memory_the_finer_the_pieces(
    measured: dict[str, Any],
) -> None:
    chapter = measured["hot_pages"]
    assert chapter["agree"]
    assert chapter["counted_too_low"] == 0
    assert chapter["partitions"] > 1
    assert chapter["hottest"] > 100 * chapter["total"] / chapter["pages"]
    sizes = [chapter[f"{name}_bytes"] for name in ("partitioned", "whole", "fixed")]
    assert sizes == sorted(sizes)
    assert sizes[0] < 0.75 * sizes[-1]


def test_a_week_of_the_past_is_counted_and_never_too_low(measured: dict[str, Any]) -> None:
    chapter = measured["how_many_between"]
    assert all(chapter["counted"][page] >= exact for page, exact in chapter["exact"].items())
    assert sorted(chapter["exact"].values(), reverse=True) == list(chapter["exact"].values())
    assert chapter["wrong"] < 0.05 * chapter["pages"]
    assert chapter["visits"] > chapter["pages"] > 100


def test_the_page_of_the_morning_has_faded_and_that_of_the_evening_is_hottest(
    measured: dict[str, Any],
) -> None:
    chapter = measured["how_hot_now"]
    morning, evening = chapter["pages"]["morning"], chapter["pages"]["evening"]
    assert chapter["total"][morning] > 3 * chapter["total"][evening]
    assert chapter["hot"][evening] > 10 * chapter["hot"][morning]
    assert all(chapter["hot"][page] >= exact for page, exact in chapter["exact"].items())
    assert chapter["top"][0] == evening
    assert morning not in chapter["top"]


def test_the_growing_filter_grew(measured: dict[str, Any]) -> None:
    chapter = measured["unknown_size"]
    assert chapter["layers"] > 1
    assert 0 < chapter["predicted_error"] <= chapter["target"]


def test_damage_is_refused_by_name(measured: dict[str, Any]) -> None:
    chapter = measured["damaged_file"]
    assert chapter["equal"]
    assert (chapter["flipped"], chapter["cut"]) == ("checksum", "truncated")


def test_no_key_of_two_processes_is_lost(measured: dict[str, Any]) -> None:
    chapter = measured["many_processes"]
    assert chapter["lost"] == 0
    assert sum(chapter["added"]) <= chapter["pages"]
    assert all(count > 0 for count in chapter["added"])


def test_the_tour_tells_every_chapter_and_where_to_go_next() -> None:
    result = run("demo", "--quick", "--seed", "3")
    for number, (question, _) in enumerate(CHAPTERS, start=1):
        assert f"{number}. {question}" in result.stdout
    assert "Where to go next" in result.stdout
    assert result.stderr == ""
