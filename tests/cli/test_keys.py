"""Reading keys: lines, chunks, line ends, compressed files."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from bloomtide.cli.console import CommandError
from bloomtide.cli.keys import key_batches, split_lines
from bloomtide.cli.sources import CHUNK, PACKED_CHUNK

TEXT = st.lists(st.sampled_from([b"a", b"bc", b"\n", b"\r\n", b"\r", b"\x00\xff"])).map(b"".join)


def expected_lines(data: bytes) -> list[bytes]:
    """The definition: split at LF, drop a CR before an LF, no key after a final LF."""
    *ended, last = data.split(b"\n")
    return [line.removesuffix(b"\r") for line in ended] + ([last] if last else [])


@given(data=TEXT, cuts=st.lists(st.integers(0, 40)))
def test_lines_do_not_depend_on_where_the_chunks_end(data: bytes, cuts: list[int]) -> None:
    edges = [0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]
    chunks = [data[a:b] for a, b in pairwise(edges)]
    lines = [line for batch in split_lines(iter(chunks)) for line in batch]
    assert lines == expected_lines(data)


def read_all(*sources: Path, given: list[str] | None = None) -> list[bytes]:
    batches = key_batches([str(source) for source in sources], given or [])
    return [key for batch in batches for key in batch]


def write_packed(file: Path, data: bytes) -> Path:
    """Write `data` as the file's suffix says, gzip and zstd in two parts one after the other."""
    parts = data[: len(data) // 2], data[len(data) // 2 :]
    packers: dict[str, Callable[[bytes], bytes]] = {
        ".gz": gzip.compress,
        ".zst": zstandard.compress,
    }
    pack = packers.get(file.suffix, bytes)
    file.write_bytes(b"".join(pack(part) for part in parts))
    return file


@pytest.mark.parametrize("name", ["keys", "keys.gz", "keys.zst", "KEYS.GZ"])
def test_a_file_larger_than_a_chunk_is_read_whole(tmp_path: Path, name: str) -> None:
    keys = [b"key-%d" % number for number in range(CHUNK // 8)]
    file = tmp_path / name
    packed = write_packed(file.with_suffix(file.suffix.lower()), b"\n".join(keys))
    packed.rename(file)
    assert read_all(file) == keys


def test_a_line_longer_than_many_chunks_is_one_key(tmp_path: Path) -> None:
    line = b"x" * (3 * CHUNK)
    (tmp_path / "keys").write_bytes(line + b"\ny\n")
    assert read_all(tmp_path / "keys") == [line, b"y"]


def test_given_keys_come_first_and_keep_bytes_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "keys").write_bytes(b"from-file\n")
    given = ["é", "\udcff\udcfe"]
    assert read_all(tmp_path / "keys", given=given) == ["é".encode(), b"\xff\xfe", b"from-file"]


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
@pytest.mark.parametrize("kept", [0.5, 0.99])
def test_a_cut_compressed_file_is_an_error_and_not_a_short_one(
    tmp_path: Path, suffix: str, kept: float
) -> None:
    # Digits in a scrambled order: data that fills several compressed chunks.
    data = b"".join(b"%d\n" % (number * 2654435761 % 2**32) for number in range(50_000))
    file = write_packed(tmp_path / f"keys{suffix}", data)
    whole = file.read_bytes()
    assert len(whole) > 4 * PACKED_CHUNK
    file.write_bytes(whole[: int(len(whole) * kept)])
    with pytest.raises(CommandError, match="damaged"):
        read_all(file)


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_a_file_that_is_not_what_its_suffix_says_is_refused(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"keys{suffix}"
    file.write_bytes(b"plain text\n" * 10)
    with pytest.raises(CommandError, match="damaged"):
        read_all(file)


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_an_empty_file_has_no_keys(tmp_path: Path, suffix: str) -> None:
    file = write_packed(tmp_path / f"keys{suffix}", b"")
    assert read_all(file) == []


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_a_compressed_file_of_no_bytes_is_cut_and_not_empty(tmp_path: Path, suffix: str) -> None:
    """`gzip -t` and `zstd -t` refuse it too; it was read as no keys."""
    file = tmp_path / f"keys{suffix}"
    file.write_bytes(b"")
    with pytest.raises(CommandError, match=r"damaged .* data: the file is empty"):
        read_all(file)
