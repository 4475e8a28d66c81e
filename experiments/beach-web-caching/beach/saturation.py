"""E15, first part: "False_Positive = Saturation^Phase".

Saturation is the share of bits that are set, phase the number of bits of a key. A filter of each
phase is filled step by step; at each step keys that were never added are asked for.

Ways    `slices` is the white paper to the letter: m a power of two, an index is the next log2(m)
        bits of the digest. `enhanced` derives them by arithmetic from two numbers, our default.
        `blocked` puts all bits of a key into one block of 512: there the formula is too small,
        because blocks differ in how full they are (at most 8 bits a key).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from beach.chance import near
from bloomtide import BloomFilter
from trials.outcome import Claim, Outcome, Row

FIRST_ABSENT = 10**12
"""Keys are numbers from 0 up; numbers from here up are absent."""
MOST_BLOCKED = 8


def saturation(bits: int, phases: range, steps: tuple[int, ...], asked: int) -> Outcome:
    """Every way, phase and saturation (in percent); `asked` absent keys for each."""
    rows: list[Row] = []
    for way in ("slices", "enhanced", "blocked"):
        for phase in phases:
            if way != "blocked" or phase <= MOST_BLOCKED:
                rows += _filled(way, bits, phase, steps, asked)
    return Outcome(rows, list(_claims(rows)))


def made(way: str, bits: int, phase: int) -> BloomFilter:
    """An empty filter of exactly these sizes."""
    if way == "blocked":
        return BloomFilter(bits=bits, hashes=phase, layout="blocked")
    if way == "slices":
        return BloomFilter(
            bits=bits, hashes=phase, layout="classic", paper={"derivation": "slices"}
        )
    return BloomFilter(bits=bits, hashes=phase, layout="classic")


def _filled(way: str, bits: int, phase: int, steps: tuple[int, ...], asked: int) -> Iterator[Row]:
    filter = made(way, bits, phase)
    absent = np.arange(FIRST_ABSENT, FIRST_ABSENT + asked)
    added = 0
    for percent in steps:
        # -(m / k) ln(1 - s) keys set a share s of the bits.
        keys = round(-bits / phase * math.log(1 - percent / 100))
        filter.add_many(np.arange(added, keys))
        added = keys
        told = filter.stats()
        yield {
            "way": way,
            "phase": phase,
            "percent": percent,
            "keys": keys,
            "saturation": told.fill,
            "asked": asked,
            "accepted": int(filter.contains_many(absent).sum()),
            "formula": told.fill**phase,
            "predicted": told.predicted_error,
        }


def _claims(rows: list[Row]) -> Iterator[Claim]:
    for way, text in (
        ("slices", "indexes cut from the digest, as in the paper"),
        ("enhanced", "indexes by arithmetic"),
        ("blocked", "all bits of a key in one block"),
    ):
        of = [row for row in rows if row["way"] == way]
        holds = [row for row in of if near(row["accepted"], row["formula"], row["asked"])]
        ours = f"{len(holds)} of {len(of)} within 4 sigma"
        yield Claim(
            f"{text}: false positives are saturation^phase", "", ours, len(holds) == len(of)
        )
    blocked = [row for row in rows if row["way"] == "blocked"]
    known = [row for row in blocked if near(row["accepted"], row["predicted"], row["asked"])]
    worst = max(blocked, key=lambda row: row["accepted"] / row["asked"] / row["formula"])
    more = worst["accepted"] / worst["asked"] / worst["formula"]
    yield Claim(
        "one block: `stats().predicted_error`, which looks at each block, is right",
        "",
        f"{len(known)} of {len(blocked)} within 4 sigma; the formula is up to {more:.1f}x too small"
        f" (phase {worst['phase']}, {worst['percent']} %)",
        len(known) == len(blocked),
    )
