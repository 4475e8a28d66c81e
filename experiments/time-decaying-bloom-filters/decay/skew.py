"""E1, figure 1: how few pages get how many of the visits."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from decay.traffic import Traffic, generated, logs
from trials.outcome import Claim, Outcome, Row

REAL = ("web server 2018", "NASA 1995", "web cache 2007", "news links 2022")


def e1(data: Path | None, limit: int, pages: int, visits: int, skew: float) -> Outcome:
    """Visits by rank, for the logs that are there and for generated traffic."""
    streams = [*logs(data, REAL, limit), generated(pages, visits, 1, skew=skew)]
    rows: list[Row] = []
    claims = []
    for stream in streams:
        hits = stream.hits()
        rows += _by_rank(stream, hits)
        cold = float(hits[int(0.15 * len(hits)) :].sum() / hits.sum())
        hot = float(hits[: int(0.1 * len(hits))].sum() / hits.sum())
        text = f"{stream.name}: visits of 85 % of the pages"
        claims.append(Claim(text, "under 10 %", f"{cold:.1%}", cold < 0.1))
        text = f"{stream.name}: visits of the hottest 10 %"
        claims.append(Claim(text, "up to 90 %", f"{hot:.1%}", hot >= 0.8))
    return Outcome(rows, claims)


def _by_rank(stream: Traffic, hits: np.ndarray[tuple[int], np.dtype[np.int64]]) -> list[Row]:
    ranks = np.unique(np.geomspace(1, len(hits), 60).astype(np.int64))
    shares = np.cumsum(hits) / hits.sum()
    return [
        {
            "stream": stream.name,
            "pages": len(hits),
            "visits": int(hits.sum()),
            "rank": int(rank),
            "hits": int(hits[rank - 1]),
            "page_share": float(rank / len(hits)),
            "visit_share": float(shares[rank - 1]),
        }
        for rank in ranks
    ]
