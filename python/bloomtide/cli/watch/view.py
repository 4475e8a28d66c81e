"""The terminal's view of a monitor: what is hot with its trend, new against seen, rates, memory."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from bloomtide.cli import console
from bloomtide.cli.quantities import show_bytes, show_count, show_rate
from bloomtide.monitor import HotKey, Monitor, MonitorStats, Pulse

if TYPE_CHECKING:
    from rich.console import Group, RenderableType

ARROWS = {"up": ("▲", "^", "green"), "down": ("▼", "v", "red"), "flat": ("·", ".", "dim")}
"""Of each trend: its sign, the sign without Unicode, its colour."""
BARS = "▁▂▃▄▅▆▇█"
NUMBERS = 45
"""Room for everything but the key, lines between the columns included."""


class Terminal:
    """One table that is drawn again in its place; where there is no terminal, one after another."""

    def __init__(self, monitor: Monitor, rows: int, notes: Callable[[], list[str]]) -> None:
        from rich.live import Live

        self._monitor = monitor
        self._rows = rows
        self._notes = notes
        self._console = console.stdout_console()
        self._live: Live | None = None
        if self._console.is_terminal:
            self._live = Live(console=self._console, auto_refresh=False, vertical_overflow="crop")
            self._live.start()

    def show(self) -> None:
        """Draw it."""
        monitor = self._monitor
        width, encoding = self._console.width, self._console.encoding
        hot = monitor.hot(self._rows) if monitor.settings.hot is not None else []
        drawn = draw(monitor.stats(), monitor.pulse(), hot, self._notes(), width, encoding)
        if self._live is None:
            console.show(drawn)
        else:
            self._live.update(drawn, refresh=True)

    def close(self) -> None:
        """Leave the last table on the screen, and the cursor below it."""
        if self._live is not None:
            self._live.stop()


def draw(
    stats: MonitorStats, pulse: Pulse, hot: list[HotKey], notes: list[str],
    width: int, encoding: str,
) -> Group:  # fmt: skip
    """All of it."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    moment = datetime.fromtimestamp(stats.now, UTC)
    head = f"{moment:%Y-%m-%d %H:%M:%S} UTC, {stats.per_second:,.0f} events/s"
    head += f", {show_count(stats.events)} events, {show_count(stats.new)} keys new"
    head += f", {show_bytes(stats.bytes)}"
    parts: list[RenderableType] = [Text(head)]
    if encoding.startswith("utf"):
        seconds = max(min(width - 12, 120), 10)
        parts.append(Text(f"events  {sparkline(pulse.events[-seconds - 1 : -1])}", style="cyan"))
        parts.append(Text(f"new     {sparkline(pulse.new[-seconds - 1 : -1])}", style="magenta"))
    table = Table(expand=False)
    table.add_column("", width=1)
    table.add_column(
        "hot now", no_wrap=True, overflow="ellipsis", max_width=max(10, width - NUMBERS)
    )
    for heading in ("hits", "share", "per minute"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in hot:
        arrow, plain, colour = ARROWS[row.trend]
        sign = Text(arrow if encoding.startswith("utf") else plain, style=colour)
        count = f"{row.count:,.1f}" if row.count < 100 else show_count(row.count)
        cells = (Text(shown(row.key, encoding)), count, show_rate(row.share))
        table.add_row(sign, *cells, f"{row.per_minute:,.0f}")
    parts.append(table)
    if stats.ahead:
        notes = [*notes, f"{show_count(stats.ahead)} events are dated after tomorrow"]
    if stats.aside:
        notes = [*notes, f"{show_count(stats.aside)} events far after the others are set aside"]
    parts += [Text(note, style="yellow") for note in notes]
    return Group(*parts)


def sparkline(numbers: tuple[int, ...]) -> str:
    """A bar for each number, the highest for the largest."""
    most = max(numbers, default=0) or 1
    return "".join(BARS[min(number * len(BARS) // (most + 1), len(BARS) - 1)] for number in numbers)


def shown(key: str | bytes | int, encoding: str) -> str:
    """One line that the terminal does not obey and that its encoding has."""
    text = key.decode("utf-8", "backslashreplace") if isinstance(key, bytes) else str(key)
    return console.printable(text).encode(encoding, "backslashreplace").decode(encoding)
