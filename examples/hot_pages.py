"""Page hits when a few pages get most of them: log lines summed up by Arrow, counted with weights.

python examples/hot_pages.py            needs pyarrow
"""

from __future__ import annotations

import sys

import pyarrow as pa

from bloomtide import PartitionedDynamicCountFilter
from bloomtide.stream import web_stream

# One hour of a site: what a log gives, a column of pages and a column of hits.
hour = pa.table({"page": [url for part in web_stream(200_000, skew=1.2) for url in part]})
hits = hour.group_by("page").aggregate([([], "count_all")]).sort_by([("count_all", "descending")])

# A day will have about 2,000,000 hits on 50,000 pages. How hot the hottest gets need not be known.
counts = PartitionedDynamicCountFilter(50_000, 0.01, total=2_000_000)
for _ in range(10):
    counts.add_many(hits["page"], hits["count_all"])  # columns are read in place, 10 hours alike

out = sys.stdout.write
for page, once in zip(hits["page"][:3].to_pylist(), hits["count_all"][:3].to_pylist(), strict=True):
    out(f"{counts.count(page):>9,} hits, {10 * once:,} in truth: {page}\n")

stats = counts.stats()
out(f"{hits.num_rows:,} pages in {stats.bytes / 1e3:,.0f} kB, {stats.partitions} partitions\n")
out(f"with counters of 32 bits: {stats.cells * 4 / 1e3:,.0f} kB\n")
out(f"{stats.rebuilds:,} rebuilds, none longer than {stats.longest_pause * 1e3:.1f} ms\n")

# The first hour leaves the window: take it out again, all pages at once.
counts.remove_many(hits["page"], hits["count_all"])
out(f"{counts.count(hits['page'][0].as_py()):,} left of the hottest\n")
