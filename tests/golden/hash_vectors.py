"""Makes `hash_vectors.json`: `python -m tests.golden.hash_vectors`.

The digests come from programs that are not the one under test: XXH3-128 from xxHash's own C code
(the `xxhash` package), SipHash-1-3 from the plain-Python model, which `test_hash_vectors.py` holds
against published values. What a digest means is part of every file that was ever saved, so the
vectors may grow but never change.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import xxhash

from bloomtide.reference.siphash import siphash128

PATH = Path(__file__).with_name("hash_vectors.json")
LENGTHS = range(301)
"""XXH3 changes its way at 16, 128 and 240 bytes; SipHash has a tail of every length mod 8."""
INPUT = bytes((i * i * 7 + i * 31 + 11) % 251 for i in range(max(LENGTHS)))
SEEDS = (0, 1, 0x9E3779B97F4A7C15, 2**64 - 1)
SECRETS = (bytes(16), bytes(range(16)), b"\xff" * 16)
INTS = (0, 1, 5, 255, 256, 2**32, 2**63 - 1, 2**63, 2**64 - 1, -1, -5, -(2**32), -(2**63))
TEXTS = ("", "a", "5", "naïve", "日本語", "https://example.org/?q=bloom#filter", "a\0b")

UNSIGNED_DOMAIN = 0x9E3779B97F4A7C15
NEGATIVE_DOMAIN = 0xD1B54A32D192ED03


def xxh3(key: bytes | int, seed: int) -> int:
    """The digest of `hash="xxh3"`: a number's domain changes the seed."""
    if isinstance(key, bytes):
        return xxhash.xxh3_128_intdigest(key, seed)
    domain = NEGATIVE_DOMAIN if key < 0 else UNSIGNED_DOMAIN
    return xxhash.xxh3_128_intdigest(little_endian(key), seed ^ domain)


def keyed(key: bytes | int, secret: bytes) -> int:
    """The digest of `hash="keyed"`: the domain is the first byte hashed."""
    if isinstance(key, bytes):
        return siphash128(b"\0" + key, secret)
    return siphash128((b"\2" if key < 0 else b"\1") + little_endian(key), secret)


def little_endian(key: int) -> bytes:
    """Eight bytes, two's complement for numbers below zero."""
    return (key % 2**64).to_bytes(8, "little")


def vectors() -> dict[str, Any]:
    """Digests as 32 hexadecimal digits, the most significant first."""

    def table(digest: Callable[[bytes | int], int]) -> dict[str, Any]:
        return {
            "prefixes": [f"{digest(INPUT[:length]):032x}" for length in LENGTHS],
            "texts": {text: f"{digest(text.encode()):032x}" for text in TEXTS},
            "ints": {str(key): f"{digest(key):032x}" for key in INTS},
        }

    return {
        "about": "digests of bloomtide.digest; prefixes[n] is the digest of the first n bytes",
        "input": INPUT.hex(),
        "xxh3": {str(seed): table(partial(xxh3, seed=seed)) for seed in SEEDS},
        "keyed": {secret.hex(): table(partial(keyed, secret=secret)) for secret in SECRETS},
    }


if __name__ == "__main__":
    PATH.write_text(json.dumps(vectors(), indent=1, ensure_ascii=True) + "\n")
