"""How `bloomtide history` writes what it found: block charts, SVG, CSV, JSON lines and Arrow."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest

from bloomtide.cli.console import CommandError
from bloomtide.cli.history import charts, tables

COLUMNS: tables.Columns = {
    "key": [b"/a", b"/\xff", b"/c,d"],
    "start": np.array([0, 60_500_000, 120_000_000], dtype="datetime64[us]"),
    "count": np.array([1, 2, 3], dtype=np.uint64),
}
SVG = "{http://www.w3.org/2000/svg}"


def test_the_highest_value_fills_its_column_and_what_is_above_zero_shows() -> None:
    assert charts.blocks([0, 1, 1000], 80, 1, "utf-8") == [" ▁█"]
    assert charts.blocks([0, 1, 1000], 80, 1, "ascii") == [" .@"]
    assert charts.blocks([4, 8], 80, 2, "utf-8") == [" █", "██"]


def test_a_peak_does_not_vanish_where_columns_share_values() -> None:
    values = [0.0] * 1000
    values[777] = 5
    [shown] = charts.blocks(values, 50, 1, "utf-8")
    assert len(shown) == 50
    assert shown.strip() == "█"
    assert shown.index("█") == 777 // 20


def test_nothing_is_drawn_of_nothing() -> None:
    assert charts.blocks([], 80, 2, "utf-8") == ["", ""]
    assert charts.blocks([0, 0], 80, 1, "utf-8") == ["  "]


def test_an_svg_has_a_line_for_each_key_and_escapes_its_name() -> None:
    chart = charts.Chart(1_700_000_040, 60, {"/a": [1, 5, 0], "<&>": [2, 2, 2]})
    root = ElementTree.fromstring(charts.svg(chart, "hits"))
    lines = [path for path in root.iter(f"{SVG}path") if path.get("stroke-width")]
    assert [line.get("stroke") for line in lines] == list(charts.COLOURS[:2])
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert "<&>" in texts
    assert "2023-11-14 22:14" in texts
    # The highest value reaches the top of the axis: 5 of 5.
    assert f"V{charts.TOP}.0H" in (lines[0].get("d") or "")


@pytest.mark.parametrize(
    ("value", "top"), [(1, 1), (3, 4), (4.1, 5), (7, 10), (1000, 1000), (1001, 2000), (0.03, 0.04)]
)
def test_an_axis_ends_at_a_round_number(value: float, top: float) -> None:
    chart = charts.Chart(0, 60, {"a": [value]})
    assert f">{top:,.6g}</text>" in charts.svg(chart, "")


def test_csv_json_and_arrow_hold_the_same_rows() -> None:
    rows = list(csv.DictReader(io.StringIO(b"".join(tables.pieces(COLUMNS, "csv")).decode())))
    assert [row["count"] for row in rows] == ["1", "2", "3"]
    assert [row["key"] for row in rows] == ["/a", "/\\xff", "/c,d"]
    lines = [json.loads(line) for line in b"".join(tables.pieces(COLUMNS, "json")).splitlines()]
    assert rows[1]["start"] == "1970-01-01T00:01:00.500000Z"
    assert lines[1]["start"] == 60.5
    assert lines[0] == {"key": "/a", "start": 0.0, "count": 1}
    assert "key_base64" in lines[1]
    table = pa.ipc.open_stream(b"".join(tables.pieces(COLUMNS, "arrow"))).read_all()
    assert table["key"].to_pylist() == COLUMNS["key"]
    assert table["count"].to_pylist() == [1, 2, 3]
    assert table["start"].type == pa.timestamp("us", "UTC")
    assert table["start"].cast(pa.int64()).to_pylist() == [0, 60_500_000, 120_000_000]


def test_long_tables_are_written_in_pieces() -> None:
    long: tables.Columns = {"n": np.arange(tables.PIECE + 1)}
    assert len(list(tables.pieces(long, "csv"))) == 3
    assert b"".join(tables.pieces(long, "csv")).count(b"\r\n") == tables.PIECE + 2


def test_a_file_is_written_whole_and_its_ending_tells_the_form(tmp_path: Path) -> None:
    file = tmp_path / "out.csv"
    tables.write(COLUMNS, tables.form_of(file), file)
    assert file.read_bytes() == b"".join(tables.pieces(COLUMNS, "csv"))
    assert list(tmp_path.iterdir()) == [file]
    with pytest.raises(CommandError, match="ending"):
        tables.form_of(tmp_path / "out.xlsx")


def test_only_one_form_can_be_asked_for() -> None:
    assert tables.chosen(as_csv=False, as_json=False, as_arrow=False) is None
    assert tables.chosen(as_csv=True, as_json=False, as_arrow=False) == "csv"
    with pytest.raises(CommandError, match="--csv and --arrow"):
        tables.chosen(as_csv=True, as_json=False, as_arrow=True)
