"""The pages, as text. All of them have the badge in their head."""

from __future__ import annotations

from html import escape
from pathlib import Path

from webshop.baskets import Badge
from webshop.teas import TEAS, Tea

HERE = Path(__file__).parent
STYLE = (HERE / "style.css").read_text()
LIVE = (HERE / "live.html").read_text()
"""What the guard does, second by second."""


def page(title: str, customer: int, badge: Badge, body: str) -> str:
    """A whole page. Its foot says what the badge took."""
    full = " full" if badge.items else ""
    how = "asked the database" if badge.asked else "known to be empty, nobody asked"
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{escape(title)} · Leaf &amp; Bloom</title>
<meta name="viewport" content="width=device-width"><link rel="stylesheet" href="/style.css"></head>
<body><header><a class="name" href="/">Leaf &amp; Bloom</a>
<nav><a href="/become/full">be someone with a basket</a>
<a href="/become/empty">be someone without</a><a href="/guard">the guard</a></nav>
<span class="who">customer {customer}</span>
<a class="basket" href="/basket">Basket<span class="badge{full}">{badge.items}</span></a></header>
<main>{body}</main>
<footer>Basket: <span id="how">{how}</span>, {badge.milliseconds:.3f} ms.</footer></body></html>"""


def catalogue() -> str:
    """All teas."""
    return f'<h1>Teas</h1><div class="teas">{"".join(map(_card, TEAS.values()))}</div>'


def _card(tea: Tea) -> str:
    return (
        f'<a class="tea" href="/tea/{tea.number}">{_leaf(tea)}'
        f'<strong>{escape(tea.name)}</strong><br><span class="note">{escape(tea.note)}</span>'
        f"<br>{_price(tea.cents)}</a>"
    )


def article(tea: Tea) -> str:
    """One tea, and a button to buy it."""
    return (
        f"{_leaf(tea, 'large')}<h1>{escape(tea.name)}</h1><p>{escape(tea.note)}</p>"
        f"<p><strong>{_price(tea.cents)}</strong> for 100 g</p>"
        f'<form method="post" action="/basket/{tea.number}">'
        "<button>Into the basket</button></form>"
    )


def basket(lines: list[tuple[int, int]]) -> str:
    """What is in the basket."""
    if not lines:
        return '<h1>Your basket</h1><p id="nothing">There is nothing in it.</p>'
    total = sum(TEAS[tea].cents * quantity for tea, quantity in lines)
    rows = "".join(
        f"<tr><td>{escape(TEAS[tea].name)}</td><td class=number>{quantity}</td>"
        f"<td class=number>{_price(TEAS[tea].cents * quantity)}</td>"
        f'<td><form method="post" action="/basket/{tea}/remove">'
        '<button class="quiet">Remove</button></form></td></tr>'
        for tea, quantity in lines
    )
    return (
        "<h1>Your basket</h1><table><tr><th>Tea</th><th class=number>Bags</th>"
        f"<th class=number>Price</th><th></th></tr>{rows}"
        f"<tr><th>Together</th><th></th><th class=number>{_price(total)}</th><th></th></tr></table>"
    )


def _leaf(tea: Tea, size: str = "") -> str:
    return f'<span class="leaf {size}" style="background: {tea.colour}"></span>'


def _price(cents: int) -> str:
    return f"€ {cents // 100}.{cents % 100:02}"
