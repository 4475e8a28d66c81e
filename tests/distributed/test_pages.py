"""Pages of Parquet, read by the core: the keys that Arrow reads, or an error."""

from __future__ import annotations

import io
import random
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from bloomtide import BloomFilter, HotList, UrlFilter
from bloomtide._core import ParquetPages
from bloomtide.errors import BloomtideError, ParameterError

ROWS = 5000
COLUMNS = {
    "long": pa.array([n * n * 7919 - 9**9 for n in range(ROWS)], pa.int64()),
    "int": pa.array([n % 701 - 350 for n in range(ROWS)], pa.int32()),
    "few": pa.array([n % 3 for n in range(ROWS)], pa.int64()),
    "url": pa.array([f"https://example.org/{n % 4000}/é" for n in range(ROWS)], pa.string()),
    "bytes": pa.array([b"x" * (n % 90) for n in range(ROWS)], pa.binary()),
}


def chunk(column: pa.Array, *, required: bool = False, **options: Any) -> dict[str, Any]:
    """The first chunk of a file with that column, and what its footer says of it."""
    sink = io.BytesIO()
    schema = pa.schema([pa.field("key", column.type, nullable=not required)])
    table = pa.table([column], schema=schema)
    parquet.write_table(table, sink, data_page_size=4096, write_batch_size=256, **options)
    file = parquet.ParquetFile(sink)
    about = file.metadata.row_group(0).column(0)
    start = about.dictionary_page_offset or about.data_page_offset
    return {
        "data": sink.getvalue()[start : start + about.total_compressed_size],
        "physical": about.physical_type,
        "codec": about.compression,
        "values": about.num_values,
        "optional": not required,
        "text": pa.types.is_string(column.type),
    }


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("required", [False, True])
@pytest.mark.parametrize("codec", ["none", "snappy"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("dictionary", [False, True])
def test_pages_hold_the_keys_that_arrow_reads(
    name: str, required: bool, codec: str, version: str, dictionary: bool
) -> None:
    column = COLUMNS[name]
    options = {"compression": codec, "data_page_version": version, "use_dictionary": dictionary}
    parts = list(ParquetPages(**chunk(column, required=required, **options)))
    assert sum(map(len, parts)) == ROWS
    made, expected = BloomFilter(ROWS, 0.01), BloomFilter(ROWS, 0.01)
    fresh = [bool(flag) for part in parts for flag in made.add_many(part)]
    assert fresh == expected.add_many(column).tolist()
    assert made == expected


def test_a_structure_that_keeps_keys_gets_the_keys() -> None:
    for name in ("url", "few"):
        hot = HotList(10, clock=lambda: 1.7e9)
        for part in ParquetPages(**chunk(COLUMNS[name])):
            hot.add_many(part)
        expected = HotList(10, clock=lambda: 1.7e9)
        expected.add_many(COLUMNS[name])
        assert hot.to_bytes() == expected.to_bytes()


def test_whole_numbers_are_no_urls() -> None:
    with pytest.raises(ParameterError, match="integers"):
        UrlFilter(10).add_many(next(ParquetPages(**chunk(COLUMNS["long"]))))


def test_a_page_stays_as_it_is_while_others_are_read() -> None:
    parts = ParquetPages(**chunk(COLUMNS["url"], use_dictionary=False))
    first = next(parts)
    before = BloomFilter(ROWS, 0.01)
    before.add_many(first)
    assert len(list(parts)) > 3
    after = BloomFilter(ROWS, 0.01)
    after.add_many(first)
    assert before == after


@pytest.mark.parametrize("name", ["long", "few", "url"])
@pytest.mark.parametrize("codec", ["none", "snappy"])
def test_damaged_bytes_are_refused_or_other_keys_and_never_more(name: str, codec: str) -> None:
    words = chunk(COLUMNS[name].slice(0, 500), compression=codec)
    whole, chance = words.pop("data"), random.Random(10)
    refused = 0
    for _ in range(2000):
        data = bytearray(whole)
        for _ in range(chance.randint(1, 3)):
            data[chance.randrange(min(len(data), 4000))] = chance.randrange(256)
        cut = data[: chance.choice([len(data), chance.randrange(len(data))])]
        try:
            parts = list(ParquetPages(bytes(cut), **words))
            assert sum(map(len, parts)) == 500
            for part in parts:
                BloomFilter(500, 0.1).add_many(part)
        except BloomtideError:
            refused += 1
    assert refused > 500


def test_what_is_not_of_this_sort_is_refused_by_name() -> None:
    words = chunk(COLUMNS["long"])
    for change, name in (({"physical": "DOUBLE"}, "physical"), ({"codec": "ZSTD"}, "codec")):
        with pytest.raises(ParameterError, match=name):
            ParquetPages(**(words | change))
    nulls = chunk(pa.array([1, None, 3] * 500, pa.int64()), use_dictionary=False)
    with pytest.raises(ParameterError, match="damaged"):
        list(ParquetPages(**nulls))
