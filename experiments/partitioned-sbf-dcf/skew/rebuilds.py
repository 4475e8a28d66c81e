"""How long rebuilds take: E6 (by partitions), E8 (by keys), E11 (by frequency of requests)."""

from __future__ import annotations

import numpy as np

from bloomtide.partitions import EvenModel, LevelModel
from skew.setting import (
    ELEMENT_BYTES,
    OUR_ENTRY_BYTES,
    SEED,
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


def e8(sizes: tuple[int, ...], mean: int, literal: int) -> Outcome:
    """Insert all, query all, delete all, in random order: access and rebuild time by n.

    "literal" are spectral filters whose array is the paper's text to the letter; they are only
    filled until they have rebuilt so many times, because to fill them takes hours.
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
        for name in ("PDCF", "PSBF"):
            row = _static(name, n, keys, gone, partitions=c)[0]
            rows.append({"filter": name, "chosen": "Eq. 3", **row})
        busy = LevelModel(
            rebuild_seconds=whole["mean_rebuild_us"] * 1e-6,
            requests_per_second=rate,
            element_bytes=ELEMENT_BYTES,
            entry_bytes=OUR_ENTRY_BYTES,
            counters_with=hot,
        )
        row = _static("PDCF", n, keys, gone, partitions=busy.choose(cells))[0]
        rows.append({"filter": "PDCF", "chosen": "levels", **row})
        row = _literal("SBF", n, keys, literal)
        rows.append({"filter": "SBF", "chosen": "literal", **row})
        c = even_partitions(cells, row["mean_rebuild_us"] * 1e-6, rate)
        row = _literal("PSBF", n, keys, literal, partitions=c)
        rows.append({"filter": "PSBF", "chosen": "literal", **row})
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


def _literal(name: str, n: int, keys: Keys, rebuilds: int, **options: int) -> Row:
    """Counters of one bit, all spare bits behind the last: rebuilt for every counter that grows."""
    counts: Filter = make(name, n, len(keys), spare="end", slack=0.0, **options)
    seconds, added, few = 0.0, 0, max(n // 500, 1)
    for start in range(0, len(keys), few):
        seconds += timed(counts.add_many, keys[start : start + few])
        added += few
        if counts.stats().rebuilds >= rebuilds:
            break
    figures = rebuild_figures(counts)
    access = (seconds - figures["rebuild_seconds"]) / added * 1e9
    return {"n": n, "access_ns": max(access, 0.0), **figures}


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
        for chosen in ("Eq. 3", "levels" if parts == "PDCF" else "literal"):
            whole = of(one, last, "literal" if chosen == "literal" else "one")
            gain = whole["mean_rebuild_us"] / of(parts, last, chosen)["mean_rebuild_us"]
            c = of(parts, last, chosen)["partitions"]
            text = f"a rebuild of {parts} (c = {c}, {chosen}) is 100x shorter than one of {one}"
            claims.append(Claim(text, "over 100x", f"{gain:.1f}x", gain >= 100))
    for name, theirs, literal in (
        ("DCF", 1.0, False),
        ("SBF", 1.0, False),
        ("PDCF", 0.5, False),
        ("PSBF", 0.5, False),
        ("SBF", 1.0, True),
        ("PSBF", 0.5, True),
    ):
        pair = [of(name, n, "literal" if literal else None) for n in (last, first)]
        growth = pair[0]["mean_rebuild_us"] / pair[1]["mean_rebuild_us"]
        power = float(np.log(growth) / np.log(last / first))
        text = f"rebuild time of {name}{' (literal)' if literal else ''} grows as n to the power"
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
