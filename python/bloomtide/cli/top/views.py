"""How `bloomtide top` shows what is hot: live on a terminal, as a table, or as JSON."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

from bloomtide.cli import console
from bloomtide.cli.quantities import show_count, show_rate
from bloomtide.cli.top.hotness import Hot, HotRow

if TYPE_CHECKING:
    from rich.console import Group, RenderableType

ARROWS = {"up": ("▲", "^", "green"), "down": ("▼", "v", "red"), "flat": ("•", "-", "dim")}
"""For each trend the arrow, its form where only ASCII can be written, and its colour."""

NUMBERS = 49
"""Room for everything but the key, lines between the columns included."""


class View(Protocol):
    """Where the state goes."""

    def show(self, hot: Hot) -> None: ...

    def close(self) -> None: ...


class Live:
    """On a terminal: one table that is drawn again in its place."""

    def __init__(self, by: str, waiting: Callable[[], str]) -> None:
        from rich.live import Live as RichLive

        self.by = by
        self.waiting = waiting
        self.console = console.stdout_console()
        self.live = RichLive(console=self.console, auto_refresh=False, vertical_overflow="crop")
        self.live.start()

    def show(self, hot: Hot) -> None:
        """Draw it."""
        self.live.update(table(hot, self.by, self.console.width, self.waiting()), refresh=True)

    def close(self) -> None:
        """Leave the last table on the screen, and the cursor below it."""
        self.live.stop()


class Table:
    """Elsewhere: a table each time."""

    def __init__(self, by: str) -> None:
        self.by = by

    def show(self, hot: Hot) -> None:
        """Write it."""
        console.show(table(hot, self.by, console.stdout_console().width))

    def close(self) -> None:
        """Nothing is left open."""


class Json:
    """For pipes: one object a line."""

    def __init__(self, by: str) -> None:
        self.by = by

    def show(self, hot: Hot) -> None:
        """Write it."""
        console.write_lines([console.to_json(as_json(hot, self.by))])

    def close(self) -> None:
        """Nothing is left open."""


def as_json(hot: Hot, by: str) -> dict[str, Any]:
    """Plain values."""
    return {
        "at": hot.at,
        "by": by,
        "half_life": hot.half_life,
        "format": hot.formats() or None,
        "lines": hot.sum("lines"),
        "counted": hot.sum("counted"),
        "skipped": hot.sum("skipped"),
        "without_field": hot.sum("without"),
        "later": hot.sum("later"),
        "ahead": hot.ahead,
        "aside": hot.aside,
        "total": hot.total,
        "hot": [
            console.key_json(row.key)
            | {
                "count": row.count,
                "lower": row.lower,
                "share": row.share,
                "per_minute": row.per_minute,
                "trend": row.trend,
            }
            for row in hot.rows
        ],
    }


def table(hot: Hot, by: str, width: int, waiting: str = "") -> Group:
    """The hot keys, and below them what was read."""
    from rich.console import Group
    from rich.table import Table as RichTable
    from rich.text import Text

    shown = RichTable(expand=False)
    shown.add_column("", width=1)
    # Rich would take the room of a long key from the numbers.
    shown.add_column(by, no_wrap=True, overflow="ellipsis", max_width=max(10, width - NUMBERS))
    for heading in ("hits", "share", "per minute"):
        shown.add_column(heading, justify="right", no_wrap=True)
    encoding = console.stdout_console().encoding
    for row in hot.rows:
        arrow, colour = _arrow(row, encoding)
        key = Text(_text(row.key, encoding))
        hits = _hits(row, encoding)
        shown.add_row(Text(arrow, style=colour), key, hits, show_rate(row.share), _rate(row))
    parts: list[RenderableType] = [Text(_headline(hot)), shown]
    if waiting:
        parts.append(Text(waiting, style="yellow"))
    return Group(*parts)


def _headline(hot: Hot) -> str:
    moment = datetime.fromtimestamp(hot.at, UTC)
    fading = f"halved every {_duration(hot.half_life)}" if hot.half_life else "not fading"
    parts = [f"{moment:%Y-%m-%d %H:%M:%S} UTC", fading, f"{show_count(hot.sum('lines'))} lines"]
    if skipped := hot.sum("skipped"):
        parts.append(f"{show_count(skipped)} skipped")
    if hot.ahead:
        parts.append(f"{show_count(hot.ahead)} dated after tomorrow")
    if hot.aside:
        aside = ", set aside" if hot.half_life else ""
        parts.append(f"{show_count(hot.aside)} dated far after the others{aside}")
    if not all(row.exact for row in hot.rows):
        parts.append("more different ones than --places")
    if hot.formats():
        parts.append(hot.formats())
    return ", ".join(parts)


def _arrow(row: HotRow, encoding: str) -> tuple[str, str]:
    arrow, plain, colour = ARROWS[row.trend]
    return (arrow if encoding.startswith("utf") else plain), colour


def _text(key: bytes, encoding: str) -> str:
    """One line that the terminal does not obey and that its encoding has."""
    text = console.printable(key.decode("utf-8", "backslashreplace"))
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _hits(row: HotRow, encoding: str) -> str:
    """A count whose bounds lie apart is an upper bound."""
    parts = 10 if row.count < 100 else 1
    # A bound is rounded up, or it would be none.
    count = row.count if row.exact else math.ceil(row.count * parts) / parts
    shown = f"{count:,.1f}" if parts == 10 else show_count(count)
    if row.exact:
        return shown
    return f"≤ {shown}" if encoding.startswith("utf") else f"<= {shown}"


def _rate(row: HotRow) -> str:
    return f"{row.per_minute:,.3g}" if row.per_minute < 1000 else f"{row.per_minute:,.0f}"


def _duration(seconds: float) -> str:
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:g}{unit}"
    return f"{seconds:g}s"
