"""`bloomtide plan`: what a filter will cost and how often it will err, before it is made."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from bloomtide.cli import cluster, console, skew
from bloomtide.cli.kinds import KINDS, parameters
from bloomtide.cli.options import as_json, goals, option, shape
from bloomtide.cli.quantities import parse_skew, show_bytes, show_count, show_rate, show_span
from bloomtide.errors import BloomtideError

if TYPE_CHECKING:
    from rich.table import Table

    from bloomtide import Plan

URL_LENGTH = 57
"""Characters of the text a set would hold: the mean of `bloomtide.stream.distinct_urls`."""

SIBLINGS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("BloomFilter, blocked", "bloom", {"layout": "blocked"}),
    ("BloomFilter, classic", "bloom", {"layout": "classic"}),
    ("ScalableBloomFilter, first layer", "scalable", {}),
    ("CountingBloomFilter, 4 bits, blocked", "counting", {"counter_bits": 4, "layout": "blocked"}),
    ("CountingBloomFilter, 4 bits, classic", "counting", {"counter_bits": 4, "layout": "classic"}),
    ("CountingBloomFilter, 8 bits", "counting", {"counter_bits": 8}),
    ("CountingBloomFilter, 16 bits", "counting", {"counter_bits": 16}),
    ("CountingBloomFilter, 32 bits", "counting", {"counter_bits": 32}),
)


@click.command()
@goals
@option(
    "--skew",
    "skew_of_keys",
    metavar="THETA",
    type=parse_skew,
    help="Compare for hot keys: the key of rank r comes in proportion to 1/r^THETA.",
)
@shape
@option(
    "--cluster",
    "cores",
    metavar="CORES",
    type=click.IntRange(1, 1_000_000),
    help="What a build on so many cores takes; of 10^9 to 10^12 keys without --items.",
)
@as_json
def plan(
    items: int | None,
    error: float | None,
    kind: str | None,
    total: int | None,
    skew_of_keys: float | None,
    layout: str | None,
    hashes: int | None,
    counter_bits: int | None,
    cores: int | None,
    json: bool,
    **more: Any,
) -> int:
    """Tell the size and the error rate of a filter without making it.

    Compares it with the sibling structures and with a Python set of strings. With --total or
    --skew it compares the structures that count, by the papers' models and as measured. With
    --cluster it tells what a distributed build takes.
    """
    if cores is not None:
        sizing = {"layout": layout, "hashes": hashes, "counter_bits": counter_bits}
        return _show_cluster(items, 0.01 if error is None else error, kind, cores, sizing, json)
    if items is None:
        raise console.CommandError(
            "how many keys? --items is missing", hint="bloomtide plan --items 10M --error 1%"
        )
    error = 0.01 if error is None else error
    counts = total is not None or skew_of_keys is not None
    fades = more["half_life"] is not None or more["decay"] is not None
    kind = kind or ("tbf" if fades else "pdcf" if counts else "bloom")
    more |= {"total": total, "layout": layout, "hashes": hashes, "counter_bits": counter_bits}
    goal = parameters(kind, capacity=items, error_rate=error, **more)
    theta = 1.0 if skew_of_keys is None else skew_of_keys
    chosen = skew.plan_of(kind, goal, theta)
    if counts:
        stream = skew.Stream(items, total or 10 * items, theta)
        return _show_skewed(chosen, stream, skew.compare(stream, chosen, goal), json)
    rows = [_sibling_row(*sibling, items, error) for sibling in SIBLINGS]
    rows.append(_set_row(items))
    if json:
        console.write_json(
            {
                "plan": chosen.as_dict() | {"bits_per_key": chosen.bits_per_key},
                "alternatives": [row | _ratio(row, chosen) for row in rows],
            }
        )
    else:
        console.show(_plan_table(chosen), "", _comparison(rows, chosen), _assumption(rows[-1]))
    return 0


def _show_cluster(
    items: int | None,
    error: float,
    kind: str | None,
    cores: int,
    sizing: dict[str, Any],
    json: bool,
) -> int:
    kind, rates = kind or "bloom", cluster.Rates()
    rows = []
    for keys in cluster.SIZES if items is None else (items,):
        words = parameters(kind, capacity=keys, error_rate=error, **sizing)
        rows.append(cluster.forecast(KINDS[kind].cls.plan(**words), cores, rates))
    if json:
        console.write_json({"cores": cores, "error_rate": error, "kind": kind, "rows": rows})
    else:
        console.show(cluster.table(rows, cores), cluster.assumptions(rates, kind))
    return 0


def _show_skewed(chosen: Plan, stream: skew.Stream, rows: list[dict[str, Any]], json: bool) -> int:
    if json:
        console.write_json(
            {
                "plan": chosen.as_dict() | {"bits_per_key": chosen.bits_per_key},
                "stream": {
                    "items": stream.items,
                    "total": stream.total,
                    "skew": stream.theta,
                    "largest": stream.largest,
                },
                "alternatives": rows,
            }
        )
    else:
        console.show(_plan_table(chosen), "", skew.table(stream, rows), skew.LEGEND)
    return 0


def _sibling_row(
    name: str, kind: str, options: dict[str, Any], items: int, error: float
) -> dict[str, Any]:
    try:
        plan: Plan = KINDS[kind].cls.plan(capacity=items, error_rate=error, **options)
    except BloomtideError as problem:
        # Not every structure reaches every goal: the reason stands where the size would.
        return {"name": name, "bytes": None, "predicted_error": None, "note": problem.message}
    return {"name": name, "bytes": plan.bytes, "predicted_error": plan.predicted_error}


def _set_row(items: int) -> dict[str, Any]:
    """An estimate from two measurements on this Python: a string's size, a set's table."""
    sample = 100_000
    text = sys.getsizeof("x" * URL_LENGTH)
    slots = sys.getsizeof(set(range(sample))) / sample
    return {
        "name": "Python set of str (estimate)",
        "bytes": round(items * (text + slots)),
        "predicted_error": 0.0,
        "note": f"{text} bytes for a str of {URL_LENGTH} characters and {slots:.1f} bytes"
        f" of table for each entry, measured on a set of {sample:,}",
    }


def _ratio(row: dict[str, Any], chosen: Plan) -> dict[str, float | None]:
    return {"ratio": None if row["bytes"] is None else row["bytes"] / chosen.bytes}


def _plan_table(plan: Plan) -> Table:
    from rich.table import Table

    table = Table.grid(padding=(0, 3))
    table.add_column(style="bold")
    table.add_column(justify="right")
    table.add_column(style="dim")
    form = ", ".join(word for word in (plan.layout, plan.storage, plan.policy) if word)
    table.add_row("kind", plan.kind, form)
    table.add_row("keys", show_count(plan.capacity), "distinct, at capacity")
    cell = f"counters of {plan.counter_bits} bits"
    if plan.kind in {"sbf", "psbf"}:
        cell = f"counters of {plan.design_bits:.1f} bits on average"
    elif plan.policy is None:
        cell = "bits"
    table.add_row("cells", show_count(plan.cells), cell)
    if plan.partitions is not None:
        table.add_row("partitions", show_count(plan.partitions))
        table.add_row("occurrences", show_count(plan.total), "of all keys together")
    if plan.decay is not None:
        half_life = show_span(plan.half_life)
        table.add_row("half-life", half_life, f"{plan.decay:.4g} remains after each epoch")
        table.add_row("epoch", show_span(plan.epoch), f"{plan.rounding} rounding")
    if plan.layers:
        beside = sum(layer.bytes for layer in plan.layers)
        table.add_row(
            "layers", str(plan.max_layers), f"at most, {show_bytes(beside)} of the memory"
        )
    table.add_row("hashes", str(plan.hashes), f"cells per key, {plan.derivation} derivation")
    note = f"{plan.bytes:,} bytes"
    if plan.skew is not None:
        note += f" at skew {plan.skew:g}, never more than {show_bytes(plan.bytes_at_most)}"
    elif plan.bytes_at_most > plan.bytes:
        note += f", never more than {show_bytes(plan.bytes_at_most)}"
    table.add_row("memory", show_bytes(plan.bytes), note)
    table.add_row("bits per key", f"{plan.bits_per_key:.2f}")
    table.add_row("error", show_rate(plan.predicted_error), "predicted at capacity")
    table.add_row("error at 2x", show_rate(plan.predicted_error_overfull), "with twice the keys in")
    return table


def _comparison(rows: list[dict[str, Any]], chosen: Plan) -> Table:
    from rich.table import Table

    table = Table(title="the same goal in other structures", title_justify="left")
    table.add_column("structure")
    for heading in ("memory", "bits per key", "error", "x this plan"):
        table.add_column(heading, justify="right")
    for row in rows:
        if row["bytes"] is None:
            table.add_row(row["name"], "-", "-", "-", "-")
            continue
        per_key = row["bytes"] * 8 / (chosen.capacity or 1)
        table.add_row(
            row["name"],
            show_bytes(row["bytes"]),
            f"{per_key:,.1f}",
            show_rate(row["predicted_error"]),
            f"{row['bytes'] / chosen.bytes:.2f}",
        )
    return table


def _assumption(set_row: dict[str, Any]) -> str:
    return f"set: {set_row['note']}"
