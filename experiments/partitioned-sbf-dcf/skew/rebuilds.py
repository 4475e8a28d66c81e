"""How long rebuilds take: E6 (by partitions), E8 (by keys), E11 (by frequency of requests)."""

from __future__ import annotations

import numpy as np

from bloomtide.partitions import EvenModel, LevelModel
from skew.setting import (
    ELEMENT_BYTES,
    SEED,
    Counts,
    Filter,
    even_partitions,
    extra_bits,
    level_counts,
    make,
    rebuild_figures,
)
from trials.outcome import Claim, Outcome, Row, ratio
from trials.streams import Keys, zipf
from trials.timing import timed

TABLE_3_ENTRY = 6  # Table 3 has pointers of 4 bytes and counters of 2


def e6(n: int, mean: int, partitions: tuple[int, ...]) -> Outcome:
    """Rebuild time and peak memory with its buffer, by the number of partitions."""
    rows: list[Row] = []
    for theta in (0.0, 2.0):
        keys = zipf(np.random.default_rng(SEED), n, theta, mean * n)
        for c in partitions:
            counts = make("PDCF", n, mean * n, partitions=c)
            seconds = timed(counts.add_many, keys)
            figures = rebuild_figures(counts)
            rate = len(keys) / (seconds - figures["rebuild_seconds"])
            buffer = figures["mean_rebuild_us"] * 1e-6 * rate * ELEMENT_BYTES
            rows.append({"theta": theta, **figures, "buffer_bytes": buffer})
            rows[-1]["peak_bytes"] = figures["bytes"] + buffer
    claims = []
    for theta, theirs in ((0.0, "175"), (2.0, "975")):
        of = [row for row in rows if row["theta"] == theta]
        one = of[0]["peak_bytes"]
        worse = [row["partitions"] for row in of[1:] if row["peak_bytes"] > one]
        until = f"from {worse[0]} on" if worse else f"not up to {of[-1]['partitions']}"
        text = f"theta {theta:g}: partitions from which memory is above that of one"
        claims.append(Claim(text, theirs, until, not worse or worse[0] >= int(theirs)))
        least = min(row["mean_rebuild_us"] for row in of)
        gain = of[0]["mean_rebuild_us"] / least
        text = f"theta {theta:g}: rebuild time falls up to 100x"
        claims.append(Claim(text, "100x", f"{gain:.0f}x", gain >= 100))
    return Outcome(rows, claims)


def e8(sizes: tuple[int, ...], mean: int) -> Outcome:
    """Insert all, query all, delete all, in random order: access and rebuild time by n.

    "literal" is a spectral filter whose array is the paper's text to the letter. The core has none:
    how many counters its rebuilds would move while it is filled follows from the final counters.
    """
    rows: list[Row] = []
    for n in sizes:
        random = np.random.default_rng(SEED)
        keys = np.repeat(np.arange(n), mean)
        random.shuffle(keys)
        gone = random.permutation(keys)
        whole, hot = _static("DCF", n, keys, gone)
        cells = whole.pop("cells")
        rate = 1e9 / whole["access_ns"]
        c = even_partitions(cells, whole["mean_rebuild_us"] * 1e-6, rate)
        rows.append({"filter": "DCF", "chosen": "one", **whole})
        rows.append({"filter": "SBF", "chosen": "one", **_static("SBF", n, keys, gone)[0]})
        filled = make("SBF", n, len(keys))
        filled.add_many(keys)
        values = filled.cells()
        for name in ("PDCF", "PSBF"):
            row = _static(name, n, keys, gone, partitions=c)[0]
            rows.append({"filter": name, "chosen": "Eq. 3", **row})
        busy = LevelModel(
            rebuild_seconds=whole["mean_rebuild_us"] * 1e-6,
            requests_per_second=rate,
            element_bytes=ELEMENT_BYTES,
            counters_with=hot,
        )
        row = _static("PDCF", n, keys, gone, partitions=busy.choose(cells))[0]
        rows.append({"filter": "PDCF", "chosen": "levels", **row})
        for name, parts in (("SBF", 1), ("PSBF", c)):
            row = {"n": n, "partitions": parts, "counters_moved": literal_moves(values, parts)}
            rows.append({"filter": name, "chosen": "literal", **row})
    for row in rows:
        row.pop("cells", None)
    return Outcome(rows, _static_claims(rows, sizes))


def _static(
    name: str, n: int, keys: Keys, gone: Keys, **options: int
) -> tuple[Row, tuple[float, ...]]:
    counts: Filter = make(name, n, len(keys), **options)
    seconds = timed(counts.add_many, keys) + timed(counts.count_many, keys)
    full = counts.stats()
    levels: tuple[float, ...] = ()
    if name == "DCF":
        levels = level_counts(extra_bits(counts.cells(), (len(keys) // n).bit_length()))
    seconds += timed(counts.remove_many, gone)
    figures = rebuild_figures(counts)
    access = (seconds - figures["rebuild_seconds"]) / (3 * len(keys)) * 1e9
    row = {"n": n, "cells": full.cells, "access_ns": access, **figures, "bytes": full.bytes}
    return row, levels


def literal_moves(values: Counts, partitions: int) -> float:
    """Counters that a rebuild moves, in the mean, if all spare bits lie behind the last counter.

    A counter begins with one bit. Each bit more moves all counters behind it, up to the end of its
    partition. How often that happened follows from its value, since nothing was removed.
    """
    each = -(-len(values) // partitions)
    place = np.arange(len(values))
    behind = np.minimum((place // each + 1) * each, len(values)) - place - 1
    grown = np.maximum(np.frexp(values.astype(np.float64))[1] - 1, 0)
    return float(np.sum(behind * grown) / max(np.sum(grown), 1))


def _static_claims(rows: list[Row], sizes: tuple[int, ...]) -> list[Claim]:
    def of(name: str, n: int, chosen: str | None = None) -> Row:
        return next(
            row
            for row in rows
            if (row["filter"], row["n"]) == (name, n) and chosen in (None, row["chosen"])
        )

    first, last = sizes[0], sizes[-1]
    claims = []
    for one, parts in (("DCF", "PDCF"), ("SBF", "PSBF")):
        for chosen in ("Eq. 3", *(["levels"] if parts == "PDCF" else [])):
            gain = of(one, last)["mean_rebuild_us"] / of(parts, last, chosen)["mean_rebuild_us"]
            c = of(parts, last, chosen)["partitions"]
            text = f"a rebuild of {parts} (c = {c}, {chosen}) is 100x shorter than one of {one}"
            claims.append(Claim(text, "over 100x", f"{gain:.1f}x", gain >= 100))
    moved = [of(name, last, "literal")["counters_moved"] for name in ("SBF", "PSBF")]
    c = of("PSBF", last, "literal")["partitions"]
    text = f"literal array: a rebuild of PSBF (c = {c}) moves 100x fewer counters than one of SBF"
    fewer = moved[0] / moved[1]
    claims.append(Claim(text, "over 100x", f"{fewer:.1f}x", fewer >= 100))
    for figure, what, array, filters in (
        ("mean_rebuild_us", "rebuild time of {}", None, ("DCF", "SBF", "PDCF", "PSBF")),
        ("counters_moved", "literal array: counters that {} moves", "literal", ("SBF", "PSBF")),
    ):
        for name in filters:
            theirs = 0.5 if name.startswith("P") else 1.0
            growth = of(name, last, array)[figure] / of(name, first, array)[figure]
            power = float(np.log(growth) / np.log(last / first))
            text = f"{what.format(name)} grows as n to the power"
            claims.append(Claim(text, f"{theirs:g}", f"{power:.2f}", abs(power - theirs) <= 0.25))
    access = {name: of(name, last)["access_ns"] for name in ("DCF", "PDCF", "PSBF", "SBF")}
    seen = ", ".join(f"{name} {ns:.0f} ns" for name, ns in access.items())
    holds = max(access["DCF"], access["PDCF"]) < min(access["PSBF"], access["SBF"])
    claims.append(Claim("access: DCF and PDCF below PSBF and SBF", "yes", seen, holds))
    return claims


def e11(n: int, mean: int, frequencies: tuple[float, ...]) -> Outcome:
    """Table 3: partitions by Eq. 3 for more and more requests in a second."""
    keys = zipf(np.random.default_rng(SEED), n, 0.0, mean * n)
    one = make("DCF", n, mean * n)
    one.add_many(keys)
    rebuild = rebuild_figures(one)["mean_rebuild_us"] * 1e-6
    rows: list[Row] = []
    for frequency in frequencies:
        model = EvenModel(
            rebuild_seconds=rebuild,
            requests_per_second=frequency,
            element_bytes=ELEMENT_BYTES,
            entry_bytes=TABLE_3_ENTRY,
        )
        c = model.choose(one.stats().cells)
        counts = make("PDCF", n, mean * n, partitions=c)
        counts.add_many(keys)
        figures = rebuild_figures(counts)
        waiting = figures["mean_rebuild_us"] * 1e-6 * frequency * ELEMENT_BYTES
        rows.append({"frequency": frequency, **figures, "buffer_bytes": waiting})
        rows[-1]["buffer_bytes_in_one"] = model.buffer_bytes
    low, high = rows[0], rows[-1]
    more = high["partitions"] / low["partitions"]
    root = (high["frequency"] / low["frequency"]) ** 0.5
    shorter = low["counters_moved"] / high["counters_moved"]
    less = low["mean_rebuild_us"] / high["mean_rebuild_us"]
    return Outcome(
        rows,
        [
            Claim("partitions ~ sqrt(frequency)", f"{root:.0f}x", f"{more:.0f}x", more > root / 2),
            Claim(
                "counters moved in a rebuild ~ 1/c",
                f"{more:.0f}x",
                f"{shorter:.0f}x",
                0.5 < shorter / more < 2,
            ),
            Claim("rebuild time ~ 1/c", f"{more:.0f}x", ratio(less, 1), 0.5 < less / more < 2),
        ],
    )
