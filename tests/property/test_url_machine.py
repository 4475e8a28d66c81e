"""Any sequence of verbs on `UrlFilter` leaves the cells that its URLs have, and loses no URL."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from bloomtide import UrlFilter
from bloomtide.errors import ParameterError
from tests.property.keys import threads

PARAMETERS: list[dict[str, Any]] = [
    {"capacity": 30, "error_rate": 0.1},
    {"capacity": 10, "error_rate": 0.3, "paper": {"bind": "ordered"}, "layer_sizes": "uniform"},
    {"capacity": 40, "error_rate": 1e-6, "max_layers": 3, "layer_sizes": [2, 9]},
    {"capacity": 20, "error_rate": 0.05, "paper": {"bind": "xor"}},
    {"capacity": 20, "error_rate": 0.2, "paper": {"bind": "xor"}, "max_layers": 2},
    {"capacity": 1, "error_rate": 0.5, "max_layers": 1},
    {"capacity": 30, "error_rate": 0.05, "max_layers": 64, "hash": "keyed", "secret": bytes(16)},
]

# Few names, so that URLs share prefixes, repeat segments and are permutations of each other.
paths = st.lists(st.sampled_from(["a", "b", "c", ""]), max_size=10)
urls = st.tuples(st.sampled_from("xyz"), paths).map(lambda parts: "/".join([parts[0], *parts[1]]))
batches = st.lists(urls, max_size=40)


def spelled(url: str) -> str:
    """The URL of a host and a path; the root has its slash."""
    return f"http://{url}" if "/" in url else f"http://{url}/"


class UrlMachine(RuleBasedStateMachine):
    """Beside the core: the cells of each layer, from `positions`, and the URLs themselves."""

    @initialize(parameters=st.sampled_from(PARAMETERS))
    def start(self, parameters: dict[str, Any]) -> None:
        self.parameters = parameters
        self.core = UrlFilter(**parameters)
        self.forget()

    def forget(self) -> None:
        self.layers: list[set[int]] = []
        self.whole: set[int] = set()
        self.seen: set[str] = set()

    def cells_have(self, url: str) -> bool:
        *layers, whole = self.core.positions(url)
        return len(layers) <= len(self.layers) and all(
            mine >= set(cells)
            for mine, cells in zip(
                [*self.layers[: len(layers)], self.whole], [*layers, whole], strict=True
            )
        )

    def remember(self, url: str) -> bool:
        new = not self.cells_have(url)
        *layers, whole = self.core.positions(url)
        self.layers += [set() for _ in layers[len(self.layers) :]]
        for mine, cells in zip(self.layers, layers, strict=False):
            mine.update(cells)
        self.whole.update(whole)
        self.seen.add(url)
        return new

    @rule(url=urls.map(spelled))
    def add(self, url: str) -> None:
        assert self.core.add(url) == self.remember(url)

    @rule(batch=batches, threads=threads)
    def add_many(self, batch: list[str], threads: int) -> None:
        keys = [spelled(url) for url in batch]
        added = self.core.add_many(keys, threads=threads).tolist()
        assert added == [self.remember(url) for url in keys]

    @rule(batch=batches, threads=threads)
    def contains_many(self, batch: list[str], threads: int) -> None:
        keys = [spelled(url) for url in batch]
        found = self.core.contains_many(keys, threads=threads).tolist()
        assert found == [self.cells_have(url) for url in keys] == [url in self.core for url in keys]

    @precondition(lambda self: self.core.max_layers > 1)
    @rule(url=urls.map(spelled), depth=st.integers(1, 12))
    def seen_prefix(self, url: str, depth: int) -> None:
        cells = self.core.positions(url)[:-1]
        depth = min(depth, len(cells), self.core.max_layers - 1)
        mine = self.layers[:depth]
        expected = len(mine) == depth and all(
            layer >= set(own) for layer, own in zip(mine, cells, strict=False)
        )
        assert self.core.seen_prefix(url, depth) == expected
        begin = url.removeprefix("http://").split("/")[:depth]
        begun = any(seen.removeprefix("http://").split("/")[:depth] == begin for seen in self.seen)
        assert expected or not begun
        host = begin[0]
        assert self.core.seen_host(host) == self.core.seen_prefix(url, 1)

    @rule(batch=batches)
    def merge(self, batch: list[str]) -> None:
        other = UrlFilter(**self.parameters)
        other.add_many([spelled(url) for url in batch])
        self.core.merge(other)
        for url in batch:
            self.remember(spelled(url))

    @rule(
        url=urls.map(spelled), bad=st.sampled_from(["", "a", "mailto:a@b", "http://", "http:///"])
    )
    def refuse(self, url: str, bad: str) -> None:
        for keys in ([url, bad], [bad, url]):
            with pytest.raises(ParameterError) as caught:
                self.core.add_many(keys)
            assert caught.value.fields["index"] == keys.index(bad)

    @rule()
    def clear(self) -> None:
        self.core.clear()
        self.forget()

    @rule(how=st.sampled_from(["copy", "deepcopy", "bytes", "pickle", "or"]))
    def replace_by_a_copy(self, how: str) -> None:
        match how:
            case "copy":
                self.core = self.core.copy()
            case "deepcopy":
                self.core = copy.deepcopy(self.core)
            case "bytes":
                self.core = UrlFilter.from_bytes(self.core.to_bytes())
            case "or":
                self.core = self.core | UrlFilter(**self.parameters)
            case _:
                self.core = pickle.loads(pickle.dumps(self.core))

    @invariant()
    def no_url_is_lost(self) -> None:
        self.core.validate()
        assert all(url in self.core for url in self.seen)

    @invariant()
    def the_fill_is_that_of_the_cells(self) -> None:
        stats = self.core.stats()
        assert len(stats.layers) == len(self.layers)
        for depth, (layer, mine) in enumerate(zip(stats.layers, self.layers, strict=True), 1):
            assert layer.depth == depth
            assert round(layer.fill * layer.cells) == len(mine)
        assert round(stats.fill * stats.cells) == len(self.whole) + sum(map(len, self.layers))


TestUrlMachine = UrlMachine.TestCase
TestUrlMachine.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)
