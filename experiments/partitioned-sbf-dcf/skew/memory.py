"""How much memory skew costs: E7 (the models) and E12 (the filters, on drawn and on real data)."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bloomtide.memory_models import (
    dynamic_count_bits,
    expected_base_bits,
    mean_counter_bits,
    partitioned_dynamic_count_bits,
    partitioned_spectral_bits,
    skewed_counter_bits,
)
from bloomtide.partitions import LevelModel, SkewModel
from skew.real import read_streams
from skew.setting import (
    ELEMENT_BYTES,
    ENTRY_BYTES,
    HASHES,
    SEED,
    Filter,
    even_partitions,
    extra_bits,
    level_counts,
    make,
    rebuild_figures,
)
from trials.outcome import Claim, Outcome, Row
from trials.streams import Keys, zipf
from trials.timing import timed

SKEW = 1.0
"""The paper's alpha: the largest counter is twice as long as the mean one."""


def e7(n: int, means: tuple[int, ...], shares: tuple[float, ...], partitions: int) -> Outcome:
    """Fig. 9: memory of DCF and of PSBF over that of PDCF, by the models alone."""
    cells = make("DCF", n, n).stats().cells
    rows: list[Row] = []
    for share in shares:
        for mean in means:
            x = mean_counter_bits(n, mean * n)
            y = skewed_counter_bits(x, SKEW)
            pdcf = partitioned_dynamic_count_bits(
                cells, x, y, partitions, oversized_share=share, entry_bytes=ENTRY_BYTES
            )
            even = partitioned_dynamic_count_bits(
                cells, x, 0, partitions, oversized_share=0, entry_bytes=ENTRY_BYTES
            )
            base = expected_base_bits(cells, HASHES, n, mean * n)
            psbf = partitioned_spectral_bits(
                cells, base, partitions, slack=0.1, entry_bytes=ENTRY_BYTES
            )
            rows.append({"occ": share, "mean": mean, "partitions": partitions})
            rows[-1]["dcf_over_pdcf"] = dynamic_count_bits(cells, x, y) / pdcf
            rows[-1]["psbf_over_pdcf"] = psbf / pdcf
            rows[-1]["psbf_over_even_pdcf"] = psbf / even
    less = [row for row in rows if row["occ"] < 1]
    worst = min(row["dcf_over_pdcf"] for row in less)
    full = [row["dcf_over_pdcf"] for row in rows if row["occ"] == 1]
    by_share = [np.mean([r["dcf_over_pdcf"] for r in rows if r["occ"] == s]) for s in shares]
    grows = all(a > b for a, b in pairwise(by_share))
    losing = [row for row in rows if row["psbf_over_pdcf"] < 1]
    where = ", ".join(f"occ {row['occ']:g} M/n {row['mean']}" for row in losing) or "nowhere"
    least = min(row["mean"] for row in losing) if losing else max(means)
    return Outcome(
        rows,
        [
            Claim("DCF needs more than PDCF, occ < 1", "always", f"{worst:.2f}x", worst > 1),
            Claim("the same at occ = 1", "always", f"{min(full):.4f}x", min(full) > 1),
            Claim("the gain grows as occ falls", "yes", "yes" if grows else "no", grows),
            Claim("PSBF needs less than PDCF only for very large M/n", "yes", where, least > 100),
        ],
    )


def e12(n: int, mean: int, thetas: tuple[float, ...], data: Path | None, limit: int) -> Outcome:
    """Fig. 12: peak memory and time for an operation by skew; then the same on real streams."""
    rows: list[Row] = []
    for theta in thetas:
        keys = zipf(np.random.default_rng(SEED), n, theta, mean * n)
        rows += _by_filter({"stream": "zipf", "theta": theta}, n, keys)
    for name, keys in read_streams(data, limit):
        distinct = int(keys.max()) + 1
        rows += _by_filter({"stream": name, "theta": None}, distinct, keys)
    return Outcome(rows, _skew_claims(rows))


def _by_filter(label: Row, n: int, keys: Keys) -> list[Row]:
    total = max(len(keys), n)
    whole = make("DCF", n, total)
    first = _fill(whole, keys)
    cells = whole.cells()
    x = mean_counter_bits(n, total)
    levels = extra_bits(cells, x)
    rebuild = first["mean_rebuild_us"] * 1e-6
    # The rate is the stream's without its rebuilds, as everywhere.
    rate = len(keys) / (first.pop("seconds") - first["rebuild_seconds"])
    even = even_partitions(len(cells), rebuild, rate)
    requests = {
        "rebuild_seconds": rebuild,
        "requests_per_second": rate,
        "element_bytes": ELEMENT_BYTES,
    }
    oversized = _oversized(cells, levels, x, even)
    printed = SkewModel(**requests, entry_bytes=ENTRY_BYTES, **oversized).choose(len(cells))
    hot = LevelModel(**requests, counters_with=level_counts(levels)).choose(len(cells))
    rows = [{**label, "n": n, "total": total, "filter": "DCF", "chosen": "one", **first}]
    for name, chosen, options in (
        ("SBF", "one", {}),
        ("PSBF", "Eq. 3", {"partitions": even}),
        ("PDCF", "Eq. 3", {"partitions": even}),
        ("PDCF", "Eq. 4", {"partitions": printed}),
        ("PDCF", "levels", {"partitions": hot}),
        ("PDCF", "auto", {"partitions": "auto"}),
    ):
        figures = _fill(make(name, n, total, **options), keys)
        figures.pop("seconds")
        rows.append({**label, "n": n, "total": total, "filter": name, "chosen": chosen, **figures})
    return rows


def _fill(counts: Filter, keys: Keys) -> Row:
    seconds = timed(counts.add_many, keys)
    figures = rebuild_figures(counts)
    cells = counts.stats().cells
    figures["bits_per_counter"] = figures["bytes"] * 8 / cells
    return {"seconds": seconds, "operation_ns": seconds / len(keys) * 1e9, **figures}


def _oversized(
    cells: npt.NDArray[np.uint64], levels: npt.NDArray[np.int64], x: int, partitions: int
) -> dict[str, Any]:
    """occ, csize and inn_occ of Eq. 4, from the counters of an earlier run."""
    size = -(-len(cells) // partitions)
    padded = np.zeros(partitions * size, dtype=np.int64)
    padded[: len(levels)] = levels
    widest = padded.reshape(partitions, size).max(axis=1)
    wide = widest > 0
    if not wide.any():
        return {"oversized_share": 0.0, "counter_bits": x, "used_share": 1.0}
    used = np.zeros(partitions * size)
    used[: len(cells)] = np.maximum(1, np.frexp(cells.astype(np.float64))[1])
    used_bits = used.reshape(partitions, size)[wide].mean()
    counter_bits = float((x + widest[wide]).mean())
    return {
        "oversized_share": float(wide.mean()),
        "counter_bits": counter_bits,
        "used_share": float(used_bits / counter_bits),
    }


def _skew_claims(rows: list[Row]) -> list[Claim]:
    drawn = [row for row in rows if row["stream"] == "zipf"]

    def bits(name: str, chosen: str) -> list[float]:
        wanted = (name, chosen)
        return [
            row["bits_per_counter"]
            for row in drawn
            if (row["filter"], row["chosen"]) == wanted and row["theta"] >= 1
        ]

    claims = []
    dcf = bits("DCF", "one")
    seen = f"{dcf[0]:.1f} to {dcf[-1]:.1f} bits a counter"
    claims.append(Claim("DCF's memory grows for theta 1 to 2", "yes", seen, dcf[-1] > dcf[0]))
    for chosen in ("Eq. 3", "Eq. 4", "levels", "auto"):
        pdcf = bits("PDCF", chosen)
        seen = f"{pdcf[0]:.1f} to {pdcf[-1]:.1f} bits a counter"
        text = f"PDCF's memory ({chosen}) is flat or falls for theta 1 to 2"
        claims.append(Claim(text, "yes", seen, pdcf[-1] <= pdcf[0]))
    for name, chosen in (("SBF", "one"), ("PSBF", "Eq. 3")):
        flat = bits(name, chosen)
        seen = f"{min(flat):.1f} to {max(flat):.1f} bits a counter"
        text = f"memory of {name} does not depend on theta"
        claims.append(Claim(text, "flat", seen, max(flat) <= 1.05 * min(flat)))
    for stream in {row["stream"]: None for row in rows if row["stream"] != "zipf"}:
        real = {(r["filter"], r["chosen"]): r for r in rows if r["stream"] == stream}
        one, cut = real["DCF", "one"]["bytes"], real["PDCF", "levels"]["bytes"]
        saved = f"{one / cut:.2f}x less ({one} and {cut} bytes)"
        usual = real["PDCF", "auto"]["bytes"]
        claims.append(Claim(f"{stream}: PDCF (levels) needs less than DCF", "", saved, cut < one))
        saved = f"{one / usual:.2f}x less ({one} and {usual} bytes)"
        text = f"{stream}: PDCF (auto) needs less than DCF"
        claims.append(Claim(text, "", saved, usual < one))
    return claims
