"""The experiments on time-decaying filters run at their smoke size, and what must hold there holds.

Times are not among it. What the experiments compare with, the exact sum and the eager filter, is
itself compared with the reference model.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("bloomtide._core", reason="bloomtide is not built")

import numpy as np
import zstandard

from bloomtide.reference.decaying import (
    DecayedSum,
    ReferenceTimeDecayingBloomFilter,
    Rounding,
    power,
)
from bloomtide.reference.decaying import up as reference_up
from decay.claims import down_at_last, up
from decay.lazy import DECAY, eager_pass
from decay.main import experiments, main
from decay.memory import paper_bytes
from decay.setting import LAYOUTS
from decay.traffic import Traffic, generated, logs
from decay.truth import DecayedSums, EagerFilter, fade_up, undercounts

Table = list[dict[str, str]]
NAMES = list(experiments("smoke", None))
WORDS = ("stream", "setting", "storage", "rounding", "policy", "layout", "cells", "way")


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Table]:
    out = tmp_path_factory.mktemp("experiments")
    assert main(["all", "--out", str(out), "--data", str(out / "none")]) == 0
    return {
        name: list(csv.DictReader((out / f"{name}.csv").read_text().splitlines())) for name in NAMES
    }


def rows_of(table: Table, **wanted: str) -> Iterator[dict[str, str]]:
    found = [row for row in table if all(row[key] == value for key, value in wanted.items())]
    assert found
    yield from found


@pytest.mark.parametrize("name", NAMES)
def test_an_experiment_writes_rows_that_make_sense(name: str, tables: dict[str, Table]) -> None:
    assert len(tables[name]) >= 2
    for row in tables[name]:
        for column, text in row.items():
            if column in WORDS:
                assert text
            elif column != "mean_excess":  # below 0 where a way to round undercounts
                assert math.isfinite(float(text)), column
                assert float(text) >= 0, column


def test_both_layouts_give_the_same_answers(tables: dict[str, Table]) -> None:
    for row in tables["e2"]:
        assert int(row["compared"]) > 0
        assert int(row["different"]) == 0


def test_the_optimized_layout_saves_memory_and_never_wastes_much(tables: dict[str, Table]) -> None:
    for row in tables["e2"]:
        ratio = float(row["optimized_bytes"]) / float(row["basic_bytes"])
        assert ratio <= (0.55 if float(row["decay"]) <= 0.5 else 1.1), row


def test_the_papers_layout_needs_more_digits_the_slower_counts_fade(
    tables: dict[str, Table],
) -> None:
    for setting in ("paper", "ours"):
        rows = list(rows_of(tables["e2"], setting=setting))
        linked = [float(row["paper_linked_bytes"]) for row in rows]
        assert linked == sorted(linked)
        assert linked[0] < linked[-1]
        assert all(float(row["paper_bytes"]) < float(row["paper_linked_bytes"]) for row in rows)


def test_strict_counts_lie_between_the_truth_and_the_eager_pass(tables: dict[str, Table]) -> None:
    for row in rows_of(tables["e3"], rounding="strict"):
        assert int(row["compared"]) > 0
        assert int(row["undercounted"]) == 0
        assert int(row["above_eager"]) == 0


def test_expiring_counts_are_too_small_only_within_their_bound(tables: dict[str, Table]) -> None:
    for row in rows_of(tables["e3"], rounding="expiring"):
        assert float(row["worst_deficit"]) <= float(row["bound"])


def test_the_error_rate_is_that_of_the_pages_that_are_left(tables: dict[str, Table]) -> None:
    for row in rows_of(tables["e3"], storage="basic", policy="plain", layout="classic"):
        assert float(row["error_rate"]) == pytest.approx(float(row["equation_5"]), rel=0.3)


def test_memory_does_not_depend_on_the_length_of_the_stream(tables: dict[str, Table]) -> None:
    assert len({row["bytes"] for row in rows_of(tables["space"], storage="basic")}) == 1
    for layout in LAYOUTS:
        sizes = [int(row["bytes"]) for row in rows_of(tables["space"], storage=layout)]
        assert max(sizes[len(sizes) // 2 :]) <= 1.1 * max(sizes[: len(sizes) // 2])


def test_rounding_up_never_undercounts_but_sticks_and_other_ways_undercount(
    tables: dict[str, Table],
) -> None:
    for row in tables["rounding"]:
        low, left = float(row["undercounted"]) > 0, float(row["left"]) > 0
        match row["cells"]:
            case "up" | "up, 8 fraction bits":
                assert not low
                assert left
            case "float64" | "ours, strict":
                assert not low
            case "down" | "nearest" | "random":
                assert low
            case "ours, expiring":
                assert float(row["worst_deficit"]) <= float(row["bound"])
                assert not left


def test_the_exact_sum_is_that_of_the_reference() -> None:
    random = np.random.default_rng(1)
    sums, reference = DecayedSums(20, 0.9), DecayedSum(0.9)
    for epoch in (0, 1, 2, 5, 6, 40):
        pages = random.integers(20, size=30)
        sums.add_many(epoch, pages)
        for page in pages.tolist():
            reference.add(page, epoch)
    exact = [float(reference.at(page, 40)) for page in range(20)]
    assert sums.sums.tolist() == pytest.approx(exact, rel=1e-12)


def test_a_pass_rounds_up_the_exact_product() -> None:
    values = [0, 1, 2, 255, 256, 257, 12_345_678, 2**32 - 1]
    for decay in (0.1, 0.5, 0.9, 0.99, 2**-30):
        faded = fade_up(np.array(values, dtype=np.uint64), decay).tolist()
        assert faded == [reference_up(value, power(decay, 1)) for value in values]


def test_the_pass_that_is_timed_decays_every_cell() -> None:
    cells = np.arange(100_000, dtype=np.uint32)
    before = cells.astype(np.float64)
    eager_pass(cells)
    assert np.all(cells >= before * DECAY)
    assert np.all(cells < before * DECAY + 1)


@pytest.mark.parametrize("rounding", ["strict", "expiring"])
def test_the_eager_filter_is_that_of_the_reference(rounding: Rounding) -> None:
    rows = np.random.default_rng(2).integers(60, size=(40, 3))
    rows[7] = 5  # a key whose positions coincide
    reference = ReferenceTimeDecayingBloomFilter(
        lambda page: rows[page].tolist(), 60, 3, decay=0.7, rounding=rounding, eager=True
    )
    filter = EagerFilter(rows, 60, 8, (up if rounding == "strict" else down_at_last)(0.7))
    random = np.random.default_rng(3)
    for epoch in (0, 1, 4, 5, 9, 24, 25, 42):
        pages = random.integers(40, size=25)
        filter.add_many(epoch, pages)
        reference.add_many(pages.tolist(), epochs=[epoch] * 25)
        assert filter.counts().tolist() == [reference.count(page) for page in range(40)]


def test_an_undercount_is_more_than_what_float64_loses() -> None:
    deficit = undercounts(np.array([1.0, 2.0, 3.0]), np.array([1.0 + 1e-12, 1.5, 3.5]))
    assert deficit.tolist() == [0, 0, 0.5]


def test_the_papers_layout_pays_for_the_links_of_extended_cells() -> None:
    none = np.zeros(1024, dtype=np.int64)
    assert paper_bytes(none) == (1024 * 7 / 8, 1024 * 7 / 8)
    some = none.copy()
    some[:3] = (15, 16, 288)  # 288 is the paper's own example, with two extra digits
    assert paper_bytes(some) == (1024 * 7 / 8, 1024 * 7 / 8 + 3 * (10 + 9) / 8)


def test_epochs_of_a_stream_are_all_of_its_visits_in_order() -> None:
    stream = Traffic("some", np.array([4, 1, 1, 0, 2]), np.array([7, 7, 8, 10, 10]))
    parts = [(epoch, pages.tolist()) for epoch, pages in stream.by_epoch()]
    assert parts == [(0, [4, 1]), (1, [1]), (3, [0, 2])]


def test_generated_traffic_has_as_many_visits_in_each_epoch() -> None:
    stream = generated(50, 200, 4)
    assert [len(pages) for _, pages in stream.by_epoch()] == [200] * 4
    assert stream.hits()[0] > 5 * stream.hits()[-1]


LINE = '1.2.3.4 - - [17/Apr/2018:0{}:{}:00 +0200] "GET /{} HTTP/1.1" 200 30 "-" "-"\n'


def test_the_visits_of_a_log_are_sorted_into_epochs(tmp_path: Path) -> None:
    text = "".join(
        LINE.format(hour, minute, page)
        for hour, minute, page in [(6, 58, "a"), (7, 1, "b"), (6, 59, "a"), (9, 10, "c")]
    )
    path = tmp_path / "nginx_stickerapp_2018-04.log.zst"
    path.write_bytes(zstandard.compress(f"garbage\n{text}".encode()))
    (stream,) = logs(tmp_path, ("web server 2018",), 100)
    assert stream.pages.tolist() == [0, 0, 1, 2]
    assert (stream.epochs - stream.epochs[0]).tolist() == [0, 0, 1, 3]
    first = 1_523_941_080  # 17 April 2018, 04:58 UTC
    assert stream.epochs[0] == first // 3600


def test_logs_that_are_absent_are_skipped_with_a_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["e1", "--data", str(tmp_path)]) == 0
    assert "nginx_stickerapp_2018-04.log.zst" in capsys.readouterr().out


def test_the_hottest_pages_of_figure_1_come_first(tables: dict[str, Table]) -> None:
    hits = [int(row["hits"]) for row in tables["e1"]]
    shares = [float(row["visit_share"]) for row in tables["e1"]]
    assert hits == sorted(hits, reverse=True)
    assert shares == sorted(shares)
    assert shares[-1] == 1
