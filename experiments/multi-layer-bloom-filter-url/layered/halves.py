"""E4: figure 3 of the paper, false positives of a Bloom filter and of a multi-layer one.

Protocol The authors' (github.com/saptarsi96/Algo-Term-Project, split.py): the list is cut into
         halves, each half has its filters, and what both halves accept of a sample of the list is
         counted as a false positive. That is right if no URL is in both halves.
Truth    The filter of the first half is asked about every URL that is not in that half.
E4b      The same question to a flat filter that has as many bits as all layers together, and the
         k that is best for them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from layered.arrays import ERROR_RATE, Flat, Layered, Numbered, Numbers, best_hashes, paper_size
from layered.core import CoreFlat, CoreLayered
from layered.urls import Urls, authors, distinct, generated, real
from trials.outcome import Claim, Outcome, Row

SEED = 2010
OWN = "the authors', with repeats"
THEIRS = {32_432: (1060, 350), 269_452: (14_200, 10_100), 1_562_978: (50_500, 16_300)}
"""Of a Bloom filter and of MLBF, read from figure 3."""
THEIRS_OWN = (1065, 346)
"""The means of ten runs, in results3.txt of their repository."""


def e4(data: Path | None, sizes: tuple[int, ...], generate: tuple[str, ...]) -> Outcome:
    """Every list at every size that it has."""
    rows: list[Row] = []
    own = authors(data)
    if own:
        rows.append(_row(OWN, own, "authors"))
    for name, urls in real(data, ("npm", "news", "ada", "rustdoc")):
        different = distinct(urls)
        fitting = [size for size in sizes if size <= len(different)] or [len(different)]
        rows += [_row(name, different[:size], "authors") for size in fitting]
        if name == "npm":
            rows.append(_row(name, different[: fitting[-1]], "core"))
            rows.append(_row("npm, with repeats", urls[: fitting[-1]], "authors"))
    for kind in generate:
        urls = generated(kind, sizes[-1])
        rows += [_row(f"generated, {kind}", urls[:size], "authors") for size in sizes]
        rows.append(_row(f"generated, {kind}", urls, "core"))
    claims = [claim for row in rows for claim in _claims(row)]
    return Outcome(rows, [*claims, *map(_without_repeats, THEIRS)])


@dataclass(frozen=True, slots=True)
class Setting:
    """Sizes, and how filters are made."""

    bits: int
    hashes: int
    flat: Callable[[int, int], Any]
    layered: Callable[[], Any]


def _setting(name: str, urls: int) -> Setting:
    """Of the authors, with any m; or of the core, whose m is the next power of two."""
    if name == "authors":
        bits, hashes = paper_size(urls)
        return Setting(bits, hashes, Flat, partial(Layered, bits, hashes))
    empty = CoreLayered(urls, ERROR_RATE)
    return Setting(empty.bits, empty.hashes, CoreFlat, partial(CoreLayered, urls, ERROR_RATE))


def _row(name: str, urls: Urls, setting: str) -> Row:
    numbered = Numbered.of(urls)
    half = math.ceil(len(urls) / 2)
    order: Numbers = np.arange(len(urls))
    first, second = numbered.take(order[:half]), numbered.take(order[half:])
    sample = numbered.take(np.random.default_rng(SEED).choice(len(urls), half, replace=False))
    made = _setting(setting, half)
    known = set(first.keys)
    both = known & set(second.keys)
    absent = numbered.take(
        np.array([number for number in order[half:].tolist() if urls[number] not in known])
    )
    accepted: dict[str, int] = {}
    flat = partial(made.flat, made.bits, made.hashes)
    for way, make in (("bf", flat), ("mlbf", made.layered)):
        one, other = make(), make()
        one.add(first)
        other.add(second)
        accepted[f"{way}_both"] = int(np.sum(one.contains(sample) & other.contains(sample)))
        accepted[f"{way}_wrong"] = int(np.sum(one.contains(absent)))
    bits: int = one.total
    hashes = best_hashes(bits, half)
    equal = made.flat(bits, hashes)
    equal.add(first)
    accepted["equal_wrong"] = int(np.sum(equal.contains(absent)))
    return {
        "list": name,
        "setting": setting,
        "urls": len(urls),
        "bits": made.bits,
        "hashes": made.hashes,
        "layers": bits // made.bits - 1,
        "sample": len(sample),
        "repeats": sum(key in both for key in sample.keys),
        "absent": len(absent),
        **accepted,
        "bits_for_rate": _bits(half, max(1, accepted["mlbf_wrong"]) / len(absent)),
        "equal_hashes": hashes,
        "equal_formula": (1 - math.exp(-hashes * half / bits)) ** hashes,
    }


def _bits(urls: int, rate: float) -> int:
    """Of a flat filter: m = -n ln P / (ln 2)^2."""
    return math.ceil(-urls * math.log(rate) / math.log(2) ** 2)


def _claims(row: Row) -> list[Claim]:
    text = f"{row['list']} ({row['setting']}), {row['urls']:,} URLs"
    bf, mlbf = row["bf_both"], row["mlbf_both"]
    theirs = ""
    told = THEIRS_OWN if row["list"] == OWN else THEIRS.get(row["urls"])
    if told:
        theirs = f"{told[0]:,} and {told[1]:,}, {_part(told[1], told[0])}"
    counts = f"{bf:,} and {mlbf:,}, {_part(mlbf, bf)}; {row['repeats']:,} are in both halves"
    wrong, right = row["bf_wrong"], row["mlbf_wrong"]
    rates = f"{wrong / row['absent']:.3%} and {right / row['absent']:.3%}, {_part(right, wrong)}"
    equal = f"{row['equal_wrong'] / row['absent']:.2g} (formula {row['equal_formula']:.1g})"
    needed, had = row["bits_for_rate"], row["bits"] * (row["layers"] + 1)
    memory = f"{needed / row['sample']:.1f} and {had / row['sample']:.1f} bits a URL"
    return [
        Claim(f"{text}: accepted by both halves, BF and MLBF", theirs, counts, mlbf < bf),
        Claim(
            f"{text}: direct, BF and MLBF of {row['layers']} layers", "", rates, right < wrong / 2
        ),
        Claim(f"{text}: BF with MLBF's memory", "", equal, row["equal_wrong"] <= right),
        Claim(f"{text}: BF with MLBF's rate, and MLBF", "", memory, needed < had),
    ]


def _without_repeats(urls: int) -> Claim:
    """Of theirs, what is wrong: what their Bloom filter has above its own rate must be repeats."""
    bf, mlbf = THEIRS[urls]
    sample = math.ceil(urls / 2)
    bits, hashes = paper_size(sample)
    rate = (1 - math.exp(-hashes * sample / bits)) ** hashes
    repeats = round((bf - rate * sample) / (1 - rate))
    told = f"{bf - repeats:,} and {mlbf - repeats:,}, {_part(mlbf - repeats, bf - repeats)}"
    text = (
        f"theirs, {urls:,} URLs, without the {repeats:,} repeats that a rate of {rate:.1%} implies"
    )
    return Claim(
        text, f"{bf:,} and {mlbf:,}, {_part(mlbf, bf)}", told, mlbf - repeats < bf - repeats
    )


def _part(a: int, b: int) -> str:
    return f"1/{b / a:.1f}" if a else "none"
