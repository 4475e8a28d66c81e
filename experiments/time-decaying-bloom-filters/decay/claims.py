"""E3: the paper's claims. Counts are never too small, and how often and how much they are too big.

Claim 1 of section 4.3, with rounding and layouts as they are here; equation (5) with the number of
pages that the filter still knows of in place of all that it ever saw.
"""

from __future__ import annotations

from math import e, exp
from typing import Any

import numpy as np

from decay.setting import SEED, Fading
from decay.traffic import Traffic, generated
from decay.truth import DecayedSums, EagerFilter, Floats, Pass, fade_up, undercounts
from trials.outcome import Claim, Outcome, Row

FRACTION_BITS = 8
KINDS: tuple[dict[str, Any], ...] = (
    {"storage": "basic", "rounding": "strict", "policy": "plain", "layout": "classic"},
    {"storage": "basic", "rounding": "expiring", "policy": "plain", "layout": "classic"},
    {"storage": "basic", "rounding": "expiring", "policy": "plain", "layout": "blocked"},
    {"storage": "basic", "rounding": "strict", "policy": "conservative", "layout": "classic"},
    {"storage": "optimized", "rounding": "strict", "policy": "plain", "layout": "classic"},
    {"storage": "optimized", "rounding": "expiring", "policy": "plain", "layout": "classic"},
)


def up(decay: float) -> Pass:
    """Strict: rounds up."""
    return lambda values: fade_up(values.astype(np.uint64), decay).astype(np.float64)


def down_at_last(decay: float) -> Pass:
    """Expiring: rounds up, but an epoch takes a unit at least, and the last unit goes at once."""
    strict = up(decay)

    def fade(values: Floats) -> Floats:
        rounded = strict(values)
        return np.where(rounded > 1, np.minimum(rounded, values - 1), 0.0)

    return fade


def e3(shape: tuple[int, int, int], decays: tuple[float, ...], probes: int, every: int) -> Outcome:
    """Every kind of filter on traffic whose pages come up and are forgotten."""
    stream = generated(*shape, drift=1.0)
    rows = [_row(stream, decay, kind, probes, every) for decay in decays for kind in KINDS]
    claims: list[Claim] = []
    for decay in decays:
        of = [row for row in rows if row["decay"] == decay]
        strict = [row for row in of if row["rounding"] == "strict"]
        expiring = [row for row in of if row["rounding"] == "expiring"]
        wrong = sum(row["undercounted"] for row in strict)
        compared = sum(row["compared"] for row in strict)
        text = f"lambda {decay:g}: counts below the exact decayed sum, strict"
        claims.append(Claim(text, "none", f"{wrong} of {compared / 1e6:.1f} M", wrong == 0))
        worst, bound = max(row["worst_deficit"] for row in expiring), of[0]["bound"]
        text = f"lambda {decay:g}: worst deficit of expiring, bound 2^-8 / (1 - lambda)"
        claims.append(Claim(text, "", f"{worst:.4f}, bound {bound:.4f}", worst <= bound))
        above = sum(row["above_eager"] for row in of)
        text = f"lambda {decay:g}: counts above those of the eager pass, strict"
        claims.append(Claim(text, "", str(above), above == 0))
        for row in of[:2]:
            kind = f"{row['storage']}, {row['rounding']}"
            text = f"lambda {decay:g}, {kind}: error rate over Eq. 5 with n_eff"
            share = row["error_rate"] / row["equation_5"]
            told = f"{row['error_rate']:.3%} and {row['equation_5']:.3%}, {share:.2f}x"
            claims.append(Claim(text, "1", told, 0.9 <= share <= 1.1))
        tail = max(row["large_errors"] for row in (of[0], of[1]))
        text = f"lambda {decay:g}: share of counts with an excess of e k A/m"
        limit = exp(-of[0]["hashes"])
        claims.append(Claim(text, "", f"{tail:.3%}, e^-k is {limit:.3%}", tail <= limit))
    return Outcome(rows, claims)


def _row(stream: Traffic, decay: float, kind: dict[str, Any], probes: int, every: int) -> Row:
    """Looks at every page after each `every` epochs, and at the end at keys that never came.

    n_eff is the number of pages that would still be there if each had a cell of its own.
    """
    pages = stream.distinct
    filter = Fading(pages, decay, fraction_bits=FRACTION_BITS, **kind)
    truth = DecayedSums(pages, decay)
    fade = (up if kind["rounding"] == "strict" else down_at_last)(decay)
    alone = EagerFilter(np.arange(pages)[:, None], pages, FRACTION_BITS, fade)
    followed: list[Any] = [filter, truth, alone]
    eager = None
    if kind == KINDS[0]:
        cells = filter.stats().cells
        eager = EagerFilter(filter.positions(), cells, FRACTION_BITS, fade)
        followed.append(eager)
    deficits: list[Floats] = []
    above = 0
    for epoch, visits in stream.by_epoch():
        for each in followed:
            each.add_many(epoch, visits)
        if epoch % every == every - 1:
            counts = filter.counts()
            deficits.append(undercounts(counts, truth.sums))
            if eager:
                above += int(np.sum(counts > eager.counts()))
    stats = filter.stats()
    known = int(np.sum(alone.counts() > 0))
    deficit = np.concatenate(deficits)
    excess = (counts - truth.sums)[truth.sums > 0]
    absent = np.random.default_rng(SEED).integers(10**9, 10**15, probes)
    empty = exp(-stats.hashes * known / stats.cells)
    noise = stats.hashes * float(truth.sums.sum()) / stats.cells
    return {
        "decay": decay,
        **kind,
        "hashes": stats.hashes,
        "compared": deficit.size,
        "undercounted": int(np.sum(deficit > 0)),
        "worst_deficit": float(deficit.max()),
        "bound": 2.0**-FRACTION_BITS / (1 - decay),
        "above_eager": above,
        "mean_excess": float(excess.mean()),
        "large_errors": float(np.mean(excess >= e * noise)),
        "n_eff": known,
        "equation_5": (1 - empty) ** stats.hashes,
        "error_rate": float(np.mean(filter.counts_of(absent) > 0)),
    }
