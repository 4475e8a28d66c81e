"""Generated web traffic: the same seed gives the same URLs.

`distinct_urls` numbers an endless catalogue of different pages; `web_stream` visits the first
pages of that catalogue the way people do: a few pages get most of the hits (Zipf), and, when asked,
popularity drifts as it does on news sites: a page comes up suddenly and cools slowly. `web_log`
writes the same visits down as a web server does. `Traffic` is a site as it lives: a drifting crowd,
a page that everybody wants for some minutes, crawlers, and visits that are told of late.

Nothing is drawn from a stateful random generator. Page `i` and visit `t` are functions of the
seed and their number alone, so any part of a catalogue or stream can be made without the rest.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from bloomtide.errors import require

HOSTS = (
    "dailyharbour.example", "news.northgate.example", "lindenbaum.example",
    "kitchenpost.example", "openridge.example", "blog.silvertrail.example",
    "paperboat.example", "cityfolio.example", "wiki.greenmoor.example",
    "lanternbay.example", "oldmillstore.example", "highfield.example",
    "quietcoast.example", "bookwright.example", "eastbridge.example",
    "fernhollow.example",
)  # fmt: skip
SECTIONS = ("news", "sport", "item", "thread", "tag", "2024", "guide", "video")
WORDS = (
    "amber", "anchor", "autumn", "basket", "beacon", "bridge", "candle", "canyon",
    "castle", "cedar", "circle", "copper", "coral", "cotton", "desert", "ember",
    "falcon", "forest", "garden", "ginger", "harbour", "island", "ivory", "jasmine",
    "lantern", "lemon", "maple", "marble", "meadow", "mirror", "ocean", "olive",
    "orchard", "pepper", "pillow", "planet", "quartz", "rabbit", "ribbon", "river",
    "saddle", "saffron", "shadow", "silver", "spruce", "summer", "sunset", "thistle",
    "timber", "tunnel", "valley", "velvet", "violet", "walnut", "willow", "window",
    "winter", "wonder", "yellow", "zephyr", "anvil", "bellows", "crucible", "hearth",
)  # fmt: skip
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
AGENTS = (
    "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko)"
    " Chrome/126.0.0.0 Safari/537.36",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15",
    "curl/8.5.0",
)

_ID_BITS = 40
_ID_MASK = (1 << _ID_BITS) - 1
MAX_PAGES = 1 << _ID_BITS
"""Size of the catalogue: past this number pages would repeat."""

_Words64 = npt.NDArray[np.uint64]


def distinct_urls(n: int, seed: int = 0, *, start: int = 0) -> list[str]:
    """Pages `start` to `start + n` of the seed's catalogue: all different, about 57 characters.

    Two ranges that do not overlap have no URL in common, which makes certain-absent probes:
    `distinct_urls(n, seed, start=n)` against a filter of `distinct_urls(n, seed)`.
    """
    require("start", start, "0 or more", start >= 0)
    require("n", n, f"0 to {MAX_PAGES} less start", 0 <= n <= MAX_PAGES - start)
    urls: list[str] = []
    # In parts, so that the temporary arrays stay small beside the strings themselves.
    for first in range(start, start + n, 1 << 18):
        urls += _urls(np.arange(first, min(first + (1 << 18), start + n), dtype=np.uint64), seed)
    return urls


def web_stream(
    n: int,
    *,
    seed: int = 0,
    pages: int = 100_000,
    skew: float = 1.0,
    drift: float = 0.0,
    batch_size: int = 65_536,
) -> Iterator[list[str]]:
    """`n` visits to `pages` pages, in their order, as lists of at most `batch_size` URLs.

    The page at popularity rank r gets a share proportional to `1 / r**skew`. `drift` is the part of
    the catalogue that becomes the most popular page, one after another, during the stream: at 0
    the ranks stand still, at 1 every page had its day.
    """
    require("n", n, "0 or more", n >= 0)
    require("pages", pages, f"1 to {MAX_PAGES}", 1 <= pages <= MAX_PAGES)
    require("skew", skew, "0 or more", skew >= 0)
    require("drift", drift, "0 to 1", 0 <= drift <= 1)
    require("batch_size", batch_size, "1 or more", batch_size >= 1)
    return _visits(n, seed, pages, skew, drift, batch_size)


def _visits(
    n: int, seed: int, pages: int, skew: float, drift: float, batch_size: int
) -> Iterator[list[str]]:
    catalogue = np.array(distinct_urls(pages, seed), dtype=object)
    shares = np.cumsum(np.arange(1, pages + 1, dtype=np.float64) ** -skew)
    # Visits need their own randomness: with the catalogue's, a page would predict its visitors.
    salt = int(_mix(np.ones(1, dtype=np.uint64), seed)[0])
    for first in range(0, n, batch_size):
        visits = np.arange(first, min(first + batch_size, n), dtype=np.uint64)
        uniform = _uniform(_mix(visits, salt))
        ranks = np.searchsorted(shares, uniform * shares[-1], side="right")
        cooled = (visits.astype(np.float64) * (drift * pages / n)).astype(np.int64)
        yield catalogue[(ranks - cooled) % pages].tolist()


def web_log(
    n: int,
    *,
    seed: int = 0,
    pages: int = 100_000,
    skew: float = 1.0,
    drift: float = 0.0,
    start: int = 1_700_000_000,
    per_second: int = 100,
) -> Iterator[bytes]:
    """`n` lines of an access log in the COMBINED format, as pieces of whole lines.

    The visits are those of `web_stream`; the first is at `start`, in Unix seconds.
    """
    require("start", start, "from 0 to 2**32", 0 <= start < 1 << 32)
    require("per_second", per_second, "1 or more", per_second >= 1)
    visits = web_stream(n, seed=seed, pages=pages, skew=skew, drift=drift, batch_size=1 << 14)
    return _log_pieces(visits, seed, start, per_second)


def _log_pieces(
    visits: Iterator[list[str]], seed: int, start: int, per_second: int
) -> Iterator[bytes]:
    first = 0
    for urls in visits:
        numbers = np.arange(first, first + len(urls), dtype=np.uint64)
        bits = _mix(numbers, seed + 1)
        seconds = (start + numbers // np.uint64(per_second)).tolist()
        times = {second: _clf_time(second) for second in set(seconds)}
        lines = []
        for url, second, word in zip(urls, seconds, bits.tolist(), strict=True):
            # One in eight came without a page that linked here, one in 32 asked in vain.
            path = "/" + url.split("/", 3)[3]
            referer = "-" if word & 7 == 0 else url.rpartition("/")[0] + "/"
            status, size = (
                ("404", 162) if word >> 3 & 31 == 0 else ("200", 500 + (word >> 8) % 60_000)
            )
            lines.append(
                f"10.7.{word >> 48 & 255}.{word >> 40 & 255} - -"
                f' [{times[second]}] "GET {path} HTTP/1.1" {status} {size} "{referer}"'
                f' "{AGENTS[word >> 32 & 3]}"\n'
            )
        yield "".join(lines).encode()
        first += len(urls)


class Traffic:
    """The visits of a site, second by second: any second can be asked for, in any order."""

    CROWD_EVERY = 240
    """Seconds between two pages that everybody wants."""

    def __init__(self, *, seed: int = 0, pages: int = 20_000, per_second: int = 1000) -> None:
        require("pages", pages, f"1 to {MAX_PAGES}", 1 <= pages <= MAX_PAGES)
        require("per_second", per_second, "1 to 1000000", 1 <= per_second <= 1_000_000)
        self.seed = seed
        self.per_second = per_second
        self._paths = np.array(
            ["/" + url.split("/", 3)[3] for url in distinct_urls(pages, seed)], dtype=object
        )
        self._shares = np.cumsum(np.arange(1, pages + 1, dtype=np.float64) ** -1.0)

    def second(self, second: int) -> tuple[list[str], npt.NDArray[np.float64]]:
        """The paths that are asked for in this second of Unix time, and when each was."""
        # The crowd breathes; a second does not know its neighbours, so it needs no memory of them.
        crowd = round(self.per_second * (0.8 + 0.2 * np.sin(second / 97)))
        bots = max(self.per_second // 25, 1)
        bits = _mix(np.arange(crowd, dtype=np.uint64), self.seed + 31 * second + 7)
        ranks = np.searchsorted(self._shares, _uniform(bits) * self._shares[-1], side="right")
        # Every ten seconds another page becomes the most popular one.
        paths = self._paths[(ranks - second // 10) % len(self._paths)]
        found: list[str] = paths.tolist()
        found += [self._wanted(second)] * self._sought(second)
        # A crawler goes through an archive that nobody else reads, another one looks for a way in.
        leaves = np.arange(second * bots, (second + 1) * bots, dtype=np.uint64)
        found += [f"/archive/{leaf:x}" for leaf in _page_ids(leaves, self.seed).tolist()]
        if second % 60 < 5:
            found += ["/wp-login.php", "/.env", "/admin/config.php"] * 3
        order = _mix(np.arange(len(found), dtype=np.uint64), self.seed + second)
        found = [found[i] for i in np.argsort(order).tolist()]
        times = second + np.sort(_uniform(order))
        # One in a hundred is told of up to five minutes later than it was.
        late = order % np.uint64(100) == 0
        behind = np.where(late, 30 + _uniform(_mix(order, 1)) * 270, 0.0)
        return found, times - behind

    def _sought(self, second: int) -> int:
        """Visits to the page of the hour: it comes up within seconds and is forgotten slowly."""
        age = second % self.CROWD_EVERY
        return round(self.per_second * 0.5 * min(age / 15, 1.0) * 2 ** (-age / 45))

    def _wanted(self, second: int) -> str:
        number = second // self.CROWD_EVERY
        page = int(_mix(np.full(1, number, dtype=np.uint64), self.seed)[0]) % len(self._paths)
        return str(self._paths[page])


def _uniform(bits: _Words64) -> npt.NDArray[np.float64]:
    """Numbers from 0 up to 1."""
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _clf_time(second: int) -> str:
    moment = datetime.datetime.fromtimestamp(second, datetime.UTC)
    # Not strftime: its month depends on the locale.
    return f"{moment:%d}/{MONTHS[moment.month - 1]}/{moment:%Y:%H:%M:%S} +0000"


def _urls(numbers: _Words64, seed: int) -> list[str]:
    bits = _mix(numbers, seed)
    # Squaring a uniform number prefers the first hosts, as large sites hold most pages.
    host = ((bits >> np.uint64(48)) * 2.0**-16) ** 2 * len(HOSTS)
    return [
        f"https://{HOSTS[h]}/{SECTIONS[s]}/{WORDS[a]}-{WORDS[b]}-{page:x}"
        for h, s, a, b, page in zip(
            host.astype(np.int64).tolist(),
            (bits & np.uint64(7)).tolist(),
            ((bits >> np.uint64(3)) & np.uint64(63)).tolist(),
            ((bits >> np.uint64(9)) & np.uint64(63)).tolist(),
            _page_ids(numbers, seed).tolist(),
            strict=True,
        )
    ]


def _page_ids(numbers: _Words64, seed: int) -> _Words64:
    """A permutation of the 40-bit numbers: distinct pages get distinct ids, in no visible order."""
    mask = np.uint64(_ID_MASK)
    half = np.uint64(_ID_BITS // 2)
    ids = (numbers ^ _mix(np.zeros(1, dtype=np.uint64), seed)) & mask
    # Each step is invertible modulo 2**40: an odd multiplier, then the high half folded down.
    for odd in (0x9E37_79B9_7F4A_7C15, 0xBF58_476D_1CE4_E5B9):
        ids = (ids * np.uint64(odd)) & mask
        ids ^= ids >> half
    return ids


def _mix(numbers: _Words64, seed: int) -> _Words64:
    """Sixty-four well-mixed bits for each (number, seed): the SplitMix64 finaliser."""
    start = (seed * 0xD1B5_4A32_D192_ED03 + 0x2545_F491_4F6C_DD1D) & 0xFFFF_FFFF_FFFF_FFFF
    z = numbers * np.uint64(0x9E37_79B9_7F4A_7C15) + np.uint64(start)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58_476D_1CE4_E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D0_49BB_1331_11EB)
    return z ^ (z >> np.uint64(31))
