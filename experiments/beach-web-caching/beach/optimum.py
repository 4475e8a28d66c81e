"""E15, second part: "optimum performance occurs when saturation of the bit array is 50%".

phase   For m bits and n keys the phase is varied: the fewest false positives are where half of the
        bits are set.
bits    For n keys and one phase the bits are varied: saturation falls, and so do false positives.
        50 % is no target, then, but what a filter without a bit too many comes to.
memory  For n keys and an error of 1 % the phase is varied, and m with it: the least memory is
        where half of the bits are set.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from beach.chance import near
from beach.saturation import FIRST_ABSENT, made
from trials.outcome import Claim, Outcome, Row

ERROR_RATE = 0.01
ONE_PHASE = 7


def optimum(
    keys: int, per_key: tuple[int, ...], phases: range, wider: tuple[int, ...], asked: int
) -> Outcome:
    """`per_key` bits of a key for the first question, `wider` for the second."""
    rows = [_row("phase", keys, keys * each, phase, asked) for each in per_key for phase in phases]
    rows += [_row("bits", keys, keys * each, ONE_PHASE, asked) for each in wider]
    rows += [_row("memory", keys, _needed(keys, phase), phase, asked) for phase in phases]
    return Outcome(rows, list(_claims(rows, per_key)))


def _needed(keys: int, phase: int) -> int:
    """Bits at which phase bits a key make `ERROR_RATE`: (1 - e^(-k n / m))^k = P."""
    return math.ceil(-phase * keys / math.log(1 - ERROR_RATE ** (1 / phase)))


def _row(question: str, keys: int, bits: int, phase: int, asked: int) -> Row:
    filter = made("enhanced", bits, phase)
    filter.add_many(np.arange(keys))
    accepted = int(filter.contains_many(np.arange(FIRST_ABSENT, FIRST_ABSENT + asked)).sum())
    told = filter.stats()
    return {
        "question": question,
        "bits_per_key": told.cells / keys,
        "phase": phase,
        "saturation": told.fill,
        "asked": asked,
        "accepted": accepted,
        "rate": accepted / asked,
        "formula": told.fill**phase,
    }


def _claims(rows: list[Row], per_key: tuple[int, ...]) -> Iterator[Claim]:
    for each in per_key:
        of = [
            row for row in rows if row["question"] == "phase" and round(row["bits_per_key"]) == each
        ]
        best = min(of, key=lambda row: row["rate"])
        half = min(of, key=lambda row: abs(row["saturation"] - 0.5))
        # Next to the optimum the curve is flat: a neighbour may win by luck.
        lucky = near(half["accepted"], best["rate"], half["asked"])
        yield Claim(
            f"{each} bits a key: the best phase sets half of the bits",
            "50 %",
            f"phase {best['phase']}, {best['saturation']:.1%} set, error {best['rate']:.2g};"
            f" nearest to half: phase {half['phase']}, error {half['rate']:.2g}",
            best is half or lucky,
        )
    wider = [row["rate"] for row in rows if row["question"] == "bits"]
    fills = [row["saturation"] for row in rows if row["question"] == "bits"]
    yield Claim(
        f"phase {ONE_PHASE}: more bits than for 50 % bring nothing",
        "50 % is the optimum",
        f"errors {wider[0]:.2g} at {fills[0]:.0%}, {wider[-1]:.2g} at {fills[-1]:.0%}",
        wider[-1] >= wider[0],
    )
    memory = [row for row in rows if row["question"] == "memory"]
    least = min(memory, key=lambda row: row["bits_per_key"])
    yield Claim(
        f"error {ERROR_RATE:.0%}: the phase with the least memory sets half of the bits",
        "50 %",
        f"phase {least['phase']}, {least['saturation']:.1%} set, {least['bits_per_key']:.2f} bits",
        abs(least["saturation"] - 0.5) < 0.05,
    )
