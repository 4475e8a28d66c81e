"""The layers of a URL filter and X, with three URLs in them. Cells are those of the model."""

# ruff: noqa: T201

from __future__ import annotations

from matplotlib.patches import Rectangle

import bloomtide
from bloomtide.reference import positions as model
from bloomtide.reference.url import WHOLE, ReferenceUrlFilter
from docs.plots.style import BLUE, GREEN, GREY, ORANGE, one_plot, save

BITS, HASHES = 24, 2
URLS = {
    "https://example.org/news/17": ORANGE,
    "https://example.org/news/18": BLUE,
    "https://example.org/shop/tea": GREEN,
}
HELD = ("example.org", "example.org/news\nexample.org/shop", "…/news/17, …/news/18\n…/shop/tea")


def digest(data: bytes, seed: int = 0) -> int:
    """XXH3-128."""
    return bloomtide.digest(data, seed=seed)


def places(address: int) -> list[int]:
    """Cells of an address."""
    return model.enhanced(address, BITS, HASHES)


urls = ReferenceUrlFilter(
    digest, lambda address, depth: places(address), lambda depth: (BITS, HASHES)
)
figure, axes = one_plot()
figure.set_size_inches(9.6, 2.7)
axes.set(xlim=(-3.4, BITS + 8.4), ylim=(-0.2, 9.4), aspect="equal")
axes.axis("off")

rows = {1: 6.3, 2: 4.4, 3: 2.5, 0: 0.2}
colours: dict[tuple[int, int], list[str]] = {}
for url, colour in URLS.items():
    urls.add(url.encode())
    addresses = urls.addresses(url.encode())
    for depth, address in [*enumerate(addresses, 1), (0, urls.mixed(addresses[-1], WHOLE))]:
        for place in places(address):
            there = colours.setdefault((depth, place), [])
            there += [colour] if colour not in there else []

for depth, height in rows.items():
    name = f"layer {depth}" if depth else "X"
    axes.text(-0.5, height + 0.45, name, ha="right", va="center", fontsize=11)
    holds = HELD[depth - 1] if depth else "the whole URLs,\nand nothing shorter"
    axes.text(BITS + 0.6, height + 0.45, holds, ha="left", va="center", fontsize=9)
    for place in range(BITS):
        frame = {"facecolor": "none", "edgecolor": GREY, "linewidth": 0.6}
        axes.add_patch(Rectangle((place, height), 0.9, 0.9, **frame))
        shades = colours.get((depth, place), [])
        for number, colour in enumerate(shades):
            part = 0.9 / len(shades)
            box = Rectangle((place + number * part, height), part, 0.9, color=colour, lw=0)
            axes.add_patch(box)
        cell = (urls.layers[depth - 1] if depth else urls.x).cells[place]
        assert cell == bool(shades)

for number, (url, colour) in enumerate(URLS.items()):
    axes.text(-3.2 + 12 * number, 8.7, url, color=colour, fontsize=10, va="center")

print({depth: sum(layer.cells) for depth, layer in enumerate([urls.x, *urls.layers])})
save(figure, "url-layers")
