"""Digests are for ever: saved filters only make sense with the hash that filled them."""

from __future__ import annotations

import json
from typing import Any

import pytest

import bloomtide
from bloomtide.reference.siphash import siphash128
from tests.golden.hash_vectors import PATH, vectors

STORED: dict[str, Any] = json.loads(PATH.read_text())
INPUT = bytes.fromhex(STORED["input"])
TABLES = [
    *(
        pytest.param(table, {"seed": int(seed)}, id=f"xxh3-seed-{seed}")
        for seed, table in STORED["xxh3"].items()
    ),
    *(
        pytest.param(
            table, {"hash": "keyed", "secret": bytes.fromhex(secret)}, id=f"keyed-{secret}"
        )
        for secret, table in STORED["keyed"].items()
    ),
]


@pytest.mark.parametrize(("table", "options"), TABLES)
def test_bytes_of_every_length_have_their_digest(
    table: dict[str, Any], options: dict[str, Any]
) -> None:
    prefixes = table["prefixes"]
    assert len(prefixes) == len(INPUT) + 1
    found = [f"{bloomtide.digest(INPUT[:n], **options):032x}" for n in range(len(prefixes))]
    assert found == prefixes


@pytest.mark.parametrize(("table", "options"), TABLES)
def test_text_has_the_digest_of_its_utf8_bytes(
    table: dict[str, Any], options: dict[str, Any]
) -> None:
    for text, digest in table["texts"].items():
        assert f"{bloomtide.digest(text, **options):032x}" == digest
        assert f"{bloomtide.digest(text.encode(), **options):032x}" == digest


@pytest.mark.parametrize(("table", "options"), TABLES)
def test_numbers_have_digests_of_their_own(table: dict[str, Any], options: dict[str, Any]) -> None:
    for number, digest in table["ints"].items():
        assert f"{bloomtide.digest(int(number), **options):032x}" == digest
    assert len(set(table["ints"].values())) == len(table["ints"])


def test_the_stored_vectors_are_those_of_the_independent_programs() -> None:
    assert vectors() == STORED


def test_the_empty_input_has_the_digest_that_xxhash_publishes() -> None:
    assert bloomtide.digest(b"") == 0x99AA06D3014798D86001C324468D497F


# SipHash's published values: secret 00 01 .. 0f, input 00 01 .. of the given length.
PUBLISHED_SIPHASH_2_4 = {
    0: "a3817f04ba25a8e66df67214c7550293",
    1: "da87c1d86b99af44347659119b22fc45",
    63: "5150d1772f50834a503e069a973fbd7c",
}
PUBLISHED_SIPHASH_1_3 = {
    0: "e77ebcb22788a5befd62db6add303001",
    1: "fc6f370460d3eda85e0573cc2b2ff063",
}


@pytest.mark.parametrize(
    ("c", "d", "published"), [(2, 4, PUBLISHED_SIPHASH_2_4), (1, 3, PUBLISHED_SIPHASH_1_3)]
)
def test_the_siphash_model_gives_the_published_values(
    c: int, d: int, published: dict[int, str]
) -> None:
    for length, digest in published.items():
        found = siphash128(bytes(range(length)), bytes(range(16)), c=c, d=d)
        assert found.to_bytes(16, "little").hex() == digest
