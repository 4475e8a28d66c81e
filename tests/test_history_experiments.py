"""The experiments on multi-Bloom filters run at their smoke size, and what must hold there holds.

Times are not among it. The MBF with NumPy, which the experiments measure, is compared with the
reference model; the streams and the questions of the comparison with plain counting.
"""

from __future__ import annotations

import csv
import math
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

pytest.importorskip("bloomtide._core", reason="bloomtide is not built")

import numpy as np
import zstandard

from bloomtide.reference.history import ReferenceMultiBloomFilter, Sizes
from spans.arrays import GATE, MATRIX, Segment, positions
from spans.databases import DuckDB, SQLite, Store
from spans.events import Events, generated_pages, generated_urls, logs
from spans.formulas import windows
from spans.main import experiments, main
from spans.peers import pieces, questions, truths

Table = list[dict[str, str]]
NAMES = list(experiments("smoke", None))
WORDS = ("stream", "way", "store", "layout", "what")


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Table]:
    out = tmp_path_factory.mktemp("experiments")
    assert main(["all", "--out", str(out), "--data", str(out / "none")]) == 0
    return {
        name: list(csv.DictReader((out / f"{name}.csv").read_text().splitlines())) for name in NAMES
    }


def numbers(table: Table, column: str, **wanted: str) -> list[float]:
    found = [row for row in table if all(row[key] == value for key, value in wanted.items())]
    assert found
    return [float(row[column]) for row in found]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.slow
def test_an_experiment_writes_rows_that_make_sense(name: str, tables: dict[str, Table]) -> None:
    assert len(tables[name]) >= 2
    for row in tables[name]:
        for column, text in row.items():
            if column in WORDS:
                assert text
            else:
                assert math.isfinite(float(text)), column
                assert float(text) >= 0, column


@pytest.mark.slow
def test_formulas_hold_for_fresh_keys_and_are_bounds_for_recurring_ones(
    tables: dict[str, Table],
) -> None:
    fresh = [row for row in tables["e14"] if row["stream"] == "fresh" and row["rows"] == "4"]
    same = [row for row in tables["e14"] if row["stream"] == "recurring" and row["rows"] == "4"]
    for row in fresh:
        assert 0.8 < float(row["P_CM_measured"]) / float(row["P_CM_formula"]) < 1.25
    for row in same:
        assert float(row["P_CM_measured"]) < 0.5 * float(row["P_CM_formula"])
        assert float(row["P_CM_measured"]) == pytest.approx(float(row["P_CBF_measured"]), rel=1e-4)


@pytest.mark.slow
def test_merging_rows_keeps_the_error_of_recurring_keys_only(tables: dict[str, Table]) -> None:
    same = numbers(tables["compressions"], "P_FF", stream="recurring", way="rows")
    assert len(set(same)) == 1
    fresh = numbers(tables["compressions"], "P_FF", stream="fresh", way="rows")
    assert fresh[1] > 3 * fresh[0]
    bits = numbers(tables["compressions"], "bits", stream="fresh", way="rows")
    assert bits[1] < 0.7 * bits[0]


@pytest.mark.parametrize("kind", ["fresh", "recurring", "Zipf"])
def test_the_mbf_with_numpy_is_the_reference_model(kind: str) -> None:
    sizes = Sizes(n2=40, rows=3, p_cbf=0.2, p_bf=0.2)

    def of(cells: int, hashes: int, seed: int) -> object:
        return lambda key: positions(np.array([key]), cells, hashes, seed)[0].tolist()

    model = ReferenceMultiBloomFilter(
        (of(sizes.m1, sizes.k1, GATE), sizes.m1, sizes.k1),  # type: ignore[arg-type]
        (of(sizes.m2, sizes.k2, MATRIX), sizes.m2, sizes.k2),  # type: ignore[arg-type]
    )
    ours, streams = Segment(sizes), list(windows(kind, sizes, 3))
    for keys in streams:
        ours.add_row(keys)
        model.open_row()
        for key in keys.tolist():
            model.add(key, 0)
    assert ours.gate.tolist() == model.gate.cells
    assert [row.tolist() for row in ours.rows] == [row.cells for row in model.rows]
    asked = np.concatenate([streams[0], np.arange(1000, 1200)])
    sums = [sum(model.in_row(row, key) for row in model.rows) for key in asked.tolist()]
    assert ours.counts(asked).sum(axis=1).tolist() == sums
    ours.merge_rows()
    model.merge_rows()
    assert [row.tolist() for row in ours.rows] == [row.cells for row in model.rows]


def test_a_zipf_row_ends_with_its_last_distinct_key() -> None:
    sizes = Sizes(n2=100, rows=2, p_cbf=0.1, p_bf=0.1)
    for keys in windows("Zipf", sizes, 1):
        assert len(np.unique(keys)) == 100
        assert len(np.unique(keys[:-1])) == 99


@pytest.fixture(scope="module")
def stream() -> Events:
    return generated_urls(3000, 2, 0.3)


def test_most_generated_urls_are_rare_long_and_in_the_order_of_time(stream: Events) -> None:
    counts = Counter(stream.keys.to_pylist())
    assert 0.6 * len(stream) < len(counts) < 0.8 * len(stream)
    assert min(map(len, counts)) > 80
    assert (np.diff(stream.at) >= 0).all()


def test_a_piece_ends_with_a_window(stream: Events, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spans.peers.PIECE", 100)
    cut = [at for _, at in pieces(stream)]
    assert len(cut) > 10
    assert np.array_equal(np.concatenate(cut), stream.at)
    for before, after in pairwise(cut):
        assert before[-1] // stream.width < after[0] // stream.width


@pytest.mark.parametrize(
    ("make", "options"),
    [(DuckDB, {}), (DuckDB, {"order": "key"}), (DuckDB, {"index": True}), (SQLite, {})],
)
def test_exact_stores_answer_exactly(
    stream: Events, tmp_path: Path, make: type, options: dict[str, object]
) -> None:
    store: Store = make(tmp_path, stream.width, **options)
    for keys, at in pieces(stream):
        store.add(keys, at)
    store.finish()
    asked = questions(stream, 60)
    plain = list(zip(stream.keys.to_pylist(), stream.at.tolist(), strict=True))
    true = [sum(k == key and a <= at < b for k, at in plain) for key, a, b in asked]
    assert truths(stream, asked) == true
    assert sum(true) > 20
    assert [store.count(*question) for question in asked] == true
    assert store.bytes() > 1000
    store.close()


def test_real_logs_are_read_where_they_are(tmp_path: Path) -> None:
    lines = {
        "cran_downloads_2014-12-16_28.csv": b'"date","time"\n"2014-12-16","00:01:02",1,"3","x","l",'
        b'"agricolae","1.2-1","US",685\n',
        "nginx_stickerapp_2018-04.log": b'10.0.0.1 - - [17/Apr/2018:06:25:06 +0200] "GET /a HTTP/1"'
        b" 200 3\n",
        "news_links_2022_2023.tsv": b"1643397022\thttps://b.example/\n",
    }
    for name, content in lines.items():
        (tmp_path / f"{name}.zst").write_bytes(zstandard.compress(content))
    found = [(e.keys.to_pylist(), e.at.tolist()) for e in logs(tmp_path, 100)]
    assert found == [
        (["agricolae"], [1418688062_000_000]),
        (["/a"], [1523939106_000_000]),
        (["https://b.example/"], [1643397022_000_000]),
    ]
    assert list(logs(tmp_path / "none", 100)) == []


def test_generated_pages_follow_zipf() -> None:
    counts = Counter(generated_pages(5000, 100, 1).keys.to_pylist()).most_common()
    assert len(counts) == 100
    assert counts[0][1] > 5 * counts[9][1] > 0
