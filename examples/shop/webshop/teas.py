"""What the shop sells. It is in memory: all that a page has to ask for is the basket."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tea:
    """One article."""

    number: int
    name: str
    note: str
    cents: int
    colour: str


_LIST = (
    ("Assam", "malty, strong, likes milk", 690, "#8c3b1b"),
    ("Darjeeling", "light, muscatel, first flush", 1290, "#c98b3c"),
    ("Ceylon", "brisk and bright", 640, "#b3541e"),
    ("Keemun", "cocoa and a wisp of smoke", 980, "#6b2d17"),
    ("Lapsang", "pine smoke, for the brave", 870, "#4a2a1d"),
    ("Sencha", "grassy, steamed, from Uji", 1150, "#7d9a3c"),
    ("Matcha", "ground on stone, whisked", 2250, "#5f8f2f"),
    ("Gyokuro", "shaded for three weeks", 2690, "#3f7a3a"),
    ("Oolong", "half way, with a scent of orchid", 1340, "#b08d3e"),
    ("White peony", "quiet, hay and melon", 1420, "#d6c58f"),
    ("Pu-erh", "aged, earthy, from Yunnan", 1780, "#3b241c"),
    ("Chai", "cardamom, ginger, pepper", 790, "#a4622d"),
)

TEAS = {number: Tea(number, *about) for number, about in enumerate(_LIST, start=1)}
