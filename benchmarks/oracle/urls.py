"""`UrlFilter`: URLs and their prefixes as sets, cut at the slashes of the canonical form."""

from __future__ import annotations

import math
from typing import Any

from benchmarks.oracle.streams import Key
from benchmarks.oracle.trial import Trial, Verb, sound
from bloomtide import UrlFilter, canonical_url
from bloomtide.errors import IncompatibleError, KeyTypeError, NullKeyError, ParameterError

NO_LOSS = "a URL that was added is never called new"
PREFIXES = "a prefix of a URL that was added is always seen"
RATE = "absent URLs are called seen for at most `error_rate`, whatever they look like"


def pieces(url: Key) -> list[str] | None:
    """Host and segments of a URL's canonical form; None if it has none."""
    try:
        canonical = canonical_url(url)  # type: ignore[arg-type]
    except ParameterError:
        return None
    scheme, _, rest = canonical.partition("://")
    parts = rest.split("/")
    return parts if scheme in ("http", "https") else [f"{scheme}://{parts[0]}", *parts[1:]]


class UrlTrial(Trial):
    """URLs of real lists, spelled in several ways."""

    structure = "UrlFilter"

    def __init__(self, *arguments: Any) -> None:
        self.words: dict[str, Any] = {}
        self.cut: dict[Key, list[str] | None] = {}
        self.urls: dict[str, Key] = {}
        self.prefixes: set[tuple[str, ...]] = set()
        super().__init__(*arguments)

    def make(self) -> Any:
        if not self.words:
            self.words = {
                "capacity": int(self.draw.choice([500, 20_000])),
                "error_rate": float(self.draw.choice([0.05, 0.01])),
                "max_layers": int(self.draw.choice([1, 4, 8, 12])),
            }
            if self.draw.random() < 0.3:
                self.words["paper"] = {"bind": "ordered"}
            if self.draw.random() < 0.3 and self.words["max_layers"] > 3:
                self.words["layer_sizes"] = [100, 5000, 20_000]
        return UrlFilter(**self.words)

    def parts(self, url: Key) -> list[str] | None:
        if url not in self.cut:
            self.cut[url] = pieces(url)
        return self.cut[url]

    def next_urls(self, most: int) -> list[Key]:
        """Rows that are URLs, some spelled in another way."""
        found = []
        for key in self.next_rows(most)[0]:
            if self.parts(key) is None:
                continue
            url: Key = key
            if isinstance(key, str) and self.draw.random() < 0.1:
                url = self.spelled(key)
            found.append(url)
        return found

    def spelled(self, url: str) -> str:
        """The same address in other words."""
        scheme, mark, rest = url.partition("://")
        if not mark or scheme not in ("http", "https"):
            return url
        host, slash, path = rest.partition("/")
        choice = int(self.draw.integers(4))
        if choice == 0:
            return f"{scheme.upper()}://{host}{slash}{path}"
        if choice == 1 and ":" not in host and "@" not in host:
            return f"{scheme}://{host.upper()}{slash}{path}"
        if choice == 2 and "#" not in path:
            return f"{scheme}://{host}{slash or '/'}{path}#top"
        other = {"http": "https", "https": "http"}[scheme]
        return url if ":" in host else f"{other}://{host}{slash}{path}"

    def put(self, url: Key) -> bool:
        """Whether it was in."""
        parts = self.parts(url)
        assert parts is not None
        whole, depths = "/".join(parts), self.words["max_layers"]
        known = whole in self.urls
        self.urls[whole] = url
        if not known:
            for depth in range(1, min(len(parts) + 1, depths)):
                self.prefixes.add(tuple(parts[:depth]))
        return known

    def expect(self, url: Key, new: Any) -> None:
        self.holds(not (self.put(url) and new), NO_LOSS, url)

    # --- verbs

    def verbs(self) -> dict[Verb, float]:
        return {
            self.add_one: 4, self.add_batch: 4, self.bad_batch: 1, self.use_wrongly: 0.2,
            self.restore: 0.7, self.merge: 0.5, self.clear: 0.03, self.in_order: 0.5,
        }  # fmt: skip

    def add_one(self) -> None:
        for url in self.next_urls(8):
            self.expect(url, self.made.add(url))
            self.holds(url in self.made, NO_LOSS, url)

    def add_batch(self) -> None:
        urls = self.next_urls(int(self.draw.choice([30, 2000])))
        answers = self.made.add_many(self.form(urls), threads=self.threads())
        self.holds(len(answers) == len(urls), "one answer for each key")
        for url, new in zip(urls, answers.tolist(), strict=True):
            self.expect(url, new)

    def in_order(self) -> None:
        """A batch beside single calls on a copy."""
        twin, urls = sound(self.made).copy(), self.next_urls(200)
        must = [twin.add(url) for url in urls]
        answers = self.made.add_many(self.form(urls), threads=self.threads()).tolist()
        self.holds(answers == must, "a batch answers as adding one by one, in order")
        self.holds(twin == sound(self.made), "a batch answers as adding one by one, in order")
        for url in urls:
            self.put(url)

    def bad_batch(self) -> None:
        """What is no URL is refused, and nothing changes; an iterator is taken in parts."""
        urls = self.next_urls(30)
        row = int(self.draw.integers(len(urls) + 1))
        for wrong in ("no url", "http://", "//", b"\xff\xfe", ""):
            if pieces(wrong) is not None:
                continue
            given = [*urls[:row], wrong, *urls[row:]]
            error: Any = self.refused(lambda g=given: self.made.add_many(g), ParameterError)  # type: ignore[misc]
            self.holds(error.index == row, "the error names the row of the URL", row, error.index)
        twin = sound(self.made).copy()
        error = self.refusal(
            lambda: self.made.add_many([*urls[:row], 3.5, *urls[row:]]), KeyTypeError
        )
        self.holds(error.added == row, "`added` says how many went in", row, error.added)
        twin.add_many(urls[:row])
        self.holds(twin == sound(self.made), "the rows before a bad key went in", row)
        for url in urls[:row]:
            self.put(url)
        error = self.refusal(
            lambda: self.made.add_many(iter([*urls[row:], "no url"])), ParameterError
        )
        added = urls[row:][: error.added]
        twin.add_many(added)
        self.holds(
            twin == sound(self.made), "`added` says how many of an iterator went in", error.added
        )
        for url in added:
            self.put(url)

    def use_wrongly(self) -> None:
        self.done += 1
        for key in (*self.bad_keys(), 5, "no url"):
            kinds = (KeyTypeError, NullKeyError, ParameterError)
            self.refused(lambda key=key: self.made.add(key), *kinds)  # type: ignore[misc]
            self.refused(lambda key=key: key in self.made, *kinds)  # type: ignore[misc]
        for depth in (0, -1, self.words["max_layers"], 1.5):
            self.refused(lambda d=depth: self.made.seen_prefix("http://a.org/x", d))  # type: ignore[misc]

    def merge(self) -> None:
        other, both, urls = self.make(), sound(self.made).copy(), self.next_urls(300)
        other.add_many(urls)
        both.add_many(urls)
        if self.draw.random() < 0.5:
            self.made |= other
        else:
            united = sound(self.made) | other
            self.holds(united == both, "merge makes exactly the filter of both sets of URLs")
            self.made.merge(other)
        self.holds(sound(self.made) == both, "merge makes exactly the filter of both sets of URLs")
        for url in urls:
            self.put(url)
        wrong = UrlFilter(**{**self.words, "seed": 5})
        self.refused(lambda: self.made.merge(wrong), IncompatibleError)

    def clear(self) -> None:
        self.done += 1
        self.made.clear()
        self.urls.clear()
        self.prefixes.clear()
        self.holds(sound(self.made) == self.make(), "clear forgets every URL")

    def kept(self, after: Any, before: Any) -> Any:
        data = after.to_bytes()
        before.add("http://independent.example/")
        self.holds(after.to_bytes() == data, "a copy is independent of what it was made from")
        return after

    # --- comparison

    def compare(self) -> None:
        self.made.validate()
        known = self.some(list(self.urls.values()), 1000)
        self.holds(self.made.contains_many(known, threads=self.threads()).all(), NO_LOSS)
        for url in known[:60]:
            self.holds(url in self.made, NO_LOSS, url)
            self.ask_prefixes(url)
        if len(self.urls) > self.words["capacity"]:
            return
        # Of a new host, below a known directory, a directory itself, exchanged segments.
        absent: list[Key] = []
        for number, url in enumerate(known[:400]):
            parts = self.parts(url) or []
            forms = [["absent.example", *parts[1:]], [*parts[:-1], f"absent{self.fresh}-{number}"],
                     parts[:-1], [*parts[:-2], *reversed(parts[-2:])]]  # fmt: skip
            form = "http://" + "/".join(forms[number % 4])
            cut = pieces(form)
            if "?" not in form and "://" not in parts[0] and cut and "/".join(cut) not in self.urls:
                absent.append(form)
        self.fresh += 1
        self.asked_absent += len(absent)
        self.wrong += int(self.made.contains_many(absent).sum()) if absent else 0
        self.not_more_wrong(self.asked_absent, self.wrong, 1.2 * self.words["error_rate"], RATE)
        stats = self.made.stats()
        self.holds(math.isfinite(stats.predicted_error), "stats() tells the error", stats)

    def ask_prefixes(self, url: Key) -> None:
        parts = self.parts(url)
        assert parts is not None
        for depth in range(1, min(len(parts) + 1, self.words["max_layers"])):
            if not any(mark in part for part in parts[:depth] for mark in "?#"):
                self.holds(self.made.seen_prefix(url, depth), PREFIXES, url, depth)
        if self.words["max_layers"] > 1:
            self.holds(self.made.seen_host(parts[0]), PREFIXES, parts[0])
