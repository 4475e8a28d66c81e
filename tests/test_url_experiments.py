"""The experiments on multi-layer filters run at their smoke size, and what must hold there holds.

Times are not among it. The filters for any m and the absent URLs, which the experiments make, are
compared with the reference model and with what was added.
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

from bloomtide.reference import ReferenceBloomFilter, ReferenceMultiLayerBloomFilter
from layered.arrays import Flat, Layered, Numbered, paper_size, positions
from layered.classes import absent_urls
from layered.main import experiments, main
from layered.times import Binary, Hashed, Linear
from layered.urls import cut, distinct, generated, joined, lists

Table = list[dict[str, str]]
NAMES = list(experiments("smoke", None))
WORDS = ("list", "setting", "filter", "class", "way")


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
            else:
                assert math.isfinite(float(text)), column
                assert float(text) >= 0, column


def test_layers_of_m_bits_each_err_less_than_a_filter_of_m_bits(tables: dict[str, Table]) -> None:
    for row in tables["e4"]:
        assert int(row["mlbf_both"]) < int(row["bf_both"])
        assert int(row["mlbf_wrong"]) < int(row["bf_wrong"]) / 2


def test_a_flat_filter_with_the_memory_of_the_layers_errs_least(tables: dict[str, Table]) -> None:
    for row in tables["e4"]:
        assert int(row["equal_wrong"]) <= int(row["mlbf_wrong"])
        assert float(row["equal_formula"]) < 1e-6


def test_repaired_bindings_keep_the_error_rate_in_every_class(tables: dict[str, Table]) -> None:
    for bind in ("salted_xor", "ordered"):
        for row in rows_of(tables["classes"], filter=bind):
            sigma = math.sqrt(0.05 / int(row["asked"]))
            assert float(row["rate"]) <= 0.05 + 4 * sigma, row


def test_the_papers_binding_accepts_exchanged_segments_and_pairs(tables: dict[str, Table]) -> None:
    for kind in ("swapped known", "x/a/a"):
        for row in rows_of(tables["classes"], filter="xor", **{"class": kind}):
            assert int(row["asked"]) > 100
            assert row["accepted"] == row["asked"]


def test_rates_are_those_of_the_corrected_formula(tables: dict[str, Table]) -> None:
    for row in tables["classes"]:
        expected = float(row["formula"]) * int(row["asked"])
        assert abs(int(row["accepted"]) - expected) <= 4 * math.sqrt(expected + 1), row


def test_prefixes_are_fewer_near_the_root(tables: dict[str, Table]) -> None:
    for row in rows_of(tables["shares"], depth="1"):
        assert float(row["share"]) < 0.2


@pytest.mark.parametrize("kind", ["unique leaves", "shared words"])
def test_the_filters_over_arrays_are_those_of_the_reference(kind: str) -> None:
    urls = generated(kind, 300)
    bits, hashes = 256, 4
    numbered = Numbered.of(urls)
    added, asked = (numbered.take(np.arange(*ends)) for ends in ((0, 150), (150, 300)))
    by_segment = dict(
        zip(
            dict.fromkeys(part for url in urls for part in cut(url)),
            positions(numbered.digests, bits, hashes).tolist(),
            strict=True,
        )
    )
    whole = positions(numbered.whole, bits, hashes).tolist()
    by_url = dict(zip(urls, whole, strict=True))
    layered, flat = Layered(bits, hashes), Flat(bits, hashes)
    model = ReferenceMultiLayerBloomFilter(by_segment.__getitem__, bits, hashes)
    plain = ReferenceBloomFilter(by_url.__getitem__, bits, hashes)
    for filter in (layered, flat):
        filter.add(added)
    for url in added.keys:
        model.add(url)
        plain.add(url)
    assert [layer.tolist() for layer in layered.layers] == model.layers
    assert layered.x.tolist() == model.x
    assert flat.cells.tolist() == plain.cells
    answers = layered.contains(asked).tolist()
    assert answers == [url in model for url in asked.keys]
    assert any(answers)
    assert flat.contains(asked).tolist() == plain.contains_many(asked.keys)


def test_the_papers_size_is_that_of_the_authors() -> None:
    assert paper_size(781_489) == (4_872_759, 4)


def test_absent_urls_are_of_their_class() -> None:
    urls = generated("shared words", 2000)
    added, others = urls[:1000], urls[1000:]
    asked = absent_urls(added, others, 300)
    seen: list[set[bytes]] = [set() for _ in range(8)]
    for url in added:
        for depth, part in enumerate(cut(url)):
            seen[depth].add(part)
    for kind, found in asked.items():
        assert 200 <= len(found) <= 300
        assert not set(found) & set(added)
        for url in found:
            parts = cut(url)
            new = [part for depth, part in enumerate(parts) if part not in seen[depth]]
            match kind:
                case "all new":
                    assert new == parts
                case "new leaf":
                    assert new == parts[-1:]
                case "directory" | "recombined" | "swapped known":
                    assert not new
                case "x/a/a":
                    assert not new
                    assert parts[-1] == parts[-2]
                    assert joined(parts[:-2]) in added
        if kind.startswith("swapped"):
            back = [[part[0], part[2], part[1], *part[3:]] for part in map(cut, found)]
            assert {joined(parts) for parts in back} <= set(added)


def test_a_url_is_its_segments_joined() -> None:
    for url in (b"https://h/", b"https://h/a/b?c=/d", b"ftp://h/a", b"https://h/1/2/3/4/5/6/7/8/9"):
        assert joined(cut(url)) == url


@pytest.mark.parametrize("make", [Hashed, Linear, Binary])
def test_what_the_filters_are_timed_against_finds_what_was_added(make: type) -> None:
    urls = generated("unique leaves", 40)
    one, many = make(), make()
    for url in urls[:20]:
        one.add(url)
    many.add_many(urls[:20])
    assert many.contains_many(urls) == [True] * 20 + [False] * 20
    assert [url in one for url in urls] == [True] * 20 + [False] * 20


def test_generated_urls_are_distinct_and_the_same_each_time() -> None:
    for kind in ("unique leaves", "shared words"):
        urls = generated(kind, 5000)
        assert len(set(urls)) == 5000
        assert urls == generated(kind, 5000)


def test_a_real_list_is_in_canonical_form_and_https(tmp_path: Path) -> None:
    text = b"1\thttp://Example.org:80/a#b\n2\thttps://example.org/a\n3\tno url\n4\tftp://h/x\n"
    (tmp_path / "news_links_2022_2023.tsv.zst").write_bytes(zstandard.compress(text))
    name, urls = next(lists(tmp_path, 10, ("news",), generate=1))
    assert (name, urls) == ("news", [b"https://example.org/a", b"ftp://h/x"])


def test_distinct_urls_keep_their_order() -> None:
    assert distinct([b"b", b"a", b"b", b"c"]) == [b"b", b"a", b"c"]


def test_lists_that_are_absent_are_skipped_with_a_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["shares", "--data", str(tmp_path)]) == 0
    assert "npm_repo_urls.txt.zst" in capsys.readouterr().out
