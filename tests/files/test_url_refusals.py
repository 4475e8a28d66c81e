"""Files of URL filters that no program of ours writes, with checksums that are right."""

from __future__ import annotations

import struct

import pytest

import bloomtide
from bloomtide import UrlFilter, errors
from tests.files.crafted import PRELUDE, sections_of, with_header, with_sections
from tests.golden.make_golden import FOLDER, path_of

URLS = sorted(path.stem for path in FOLDER.glob("url*.bloom"))
ORDERED = path_of("url-ordered-keyed").read_bytes()
"""Has two given sizes, so that X's record stands behind them."""
X = PRELUDE + 48 + 16


def word(number: int) -> bytes:
    return struct.pack("<Q", number)


def real(number: float) -> bytes:
    return struct.pack("<d", number)


PARAMETERS: dict[str, tuple[int, list[bytes]]] = {
    "capacity": (0, [word(0), word(41), word(2**50), word(2**64 - 1)]),
    "error_rate": (8, [real(0), real(0.6), real(-1), real(float("nan")), real(float("inf"))]),
    "max_layers": (16, [word(0), word(65), word(2**32 + 4), word(2**64 - 1)]),
    "bind": (24, [word(0), word(4), word(2**32 + 1), word(2**64 - 1)]),
    "layer_sizes": (32, [word(0), word(3), word(2**64 - 1)]),
    "count": (40, [word(9), word(2**61), word(2**64 - 1)]),
}


def _refused(data: bytes) -> str:
    with pytest.raises(errors.SnapshotError) as caught:
        bloomtide.from_bytes(data)
    assert type(caught.value) is errors.SnapshotError, repr(caught.value)
    assert caught.value.hint
    return str(caught.value)


def test_the_craft_itself_is_right() -> None:
    assert len(URLS) == 4
    for name in URLS:
        data = path_of(name).read_bytes()
        assert with_sections(data, sections_of(data)) == data


@pytest.mark.parametrize("name", URLS)
@pytest.mark.parametrize("field", PARAMETERS)
def test_a_parameter_that_no_version_writes_is_refused(name: str, field: str) -> None:
    data = path_of(name).read_bytes()
    offset, values = PARAMETERS[field]
    for value in values:
        _refused(with_header(data, PRELUDE + offset, value))


def test_given_sizes_that_the_layers_do_not_have_are_refused() -> None:
    assert struct.unpack_from("<QQ", ORDERED, PRELUDE + 48) == (3, 20)
    for sizes in (word(4) + word(20), word(3) + word(21), word(0) + word(20), word(2**49) * 2):
        _refused(with_header(ORDERED, PRELUDE + 48, sizes))
    _refused(with_header(ORDERED, PRELUDE + 40, word(1)))  # then a size is the head of a record


def test_a_layer_of_another_hash_is_refused() -> None:
    """X and the layers each have a record with the secret; one of them is changed."""
    for part in range(3):
        _refused(with_header(ORDERED, X + 64 * part + 48, b"another secret!!"))


def test_parts_of_different_sizes_cannot_be_crossed() -> None:
    data = path_of("url-xor").read_bytes()
    first = PRELUDE + 48 + 64  # the record of the first layer
    bits = struct.unpack_from("<Q", data, first + 16)[0]
    assert bits == 512
    _refused(with_header(data, first + 16, word(511)))  # as many lines, but no power of two
    _refused(with_header(data, first + 8, struct.pack("<I", 3)))  # another number of hashes


def test_more_layers_than_there_may_be_are_refused() -> None:
    data = path_of("url").read_bytes()
    layers = len(UrlFilter.from_bytes(data).stats().layers)
    assert layers > 3
    _refused(with_header(data, PRELUDE + 16, word(3)))


def test_a_state_file_of_another_kind_is_refused_by_its_kind() -> None:
    with pytest.raises(errors.KindError) as caught:
        UrlFilter.load(path_of("bloom-blocked"))
    assert (caught.value.expected, caught.value.got) == ("url", "bloom")
    with pytest.raises(errors.KindError) as caught:
        bloomtide.BloomFilter.load(path_of("url"))
    assert (caught.value.expected, caught.value.got) == ("bloom", "url")
