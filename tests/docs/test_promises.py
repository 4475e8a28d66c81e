"""Every sentence that promises something is in the register, with a test that tries to break it."""

from __future__ import annotations

from tests.docs.promising import (
    NOTHING,
    REGISTER,
    Promise,
    Said,
    exists,
    outdated,
    pages,
    promising,
    registered,
    unregistered,
)

PROMISES, SAID = registered(REGISTER.read_text())


def test_every_promise_of_the_pages_is_registered() -> None:
    missing = unregistered(pages(), SAID)
    assert not missing, "not in docs/promises.md:\n" + "\n".join(missing)


def test_every_line_of_the_register_is_still_said() -> None:
    assert not outdated(pages(), SAID)


def test_every_promise_has_tests_that_exist() -> None:
    untested = [promise.name for promise in PROMISES if not promise.tests]
    assert not untested
    missing = [test for promise in PROMISES for test in promise.tests if not exists(test)]
    assert not missing


def test_names_are_told_apart_and_known() -> None:
    names = [promise.name for promise in PROMISES]
    assert len(names) == len(set(names))
    assert {name for one in SAID for name in one.names} <= {*names, NOTHING}
    assert not [one for one in SAID if NOTHING in one.names and len(one.names) > 1]


def test_a_sentence_is_found_wherever_it_stands() -> None:
    page = """# It is never lost

Some words. A count is **never** too\nlow, see [always](x.md). No promise.

| a | b |
|---|---|
| `upper` | a bound |

- At most one.

```python
# never mind
```
"""
    assert promising(page) == [
        "It is never lost",
        "A count is never too low, see always.",
        "upper | a bound",
        "At most one.",
    ]


def test_a_promise_that_nobody_registered_is_caught() -> None:
    page = {"a.md": "A key is never lost. It survives a kill."}
    said = [Said("a.md", "key is never lost", ("found",))]
    assert unregistered(page, said) == ["a.md: It survives a kill."]
    assert unregistered({"b.md": page["a.md"]}, said)
    assert not outdated(page, said)
    assert outdated({"a.md": "A key is never gone."}, said)


def test_the_tables_of_the_register_are_read() -> None:
    text = """| name | promise | holds when | tried by |
|---|---|---|---|
| `found` | it is there | not removed | `a/b.py::c`, `d.py::e` |

### `a.md`

| words | promise |
|---|---|
| a \\| never | `found`, `rate` |
"""
    assert registered(text) == (
        [Promise("found", "it is there", "not removed", ("a/b.py::c", "d.py::e"))],
        [Said("a.md", "a | never", ("found", "rate"))],
    )
    assert exists("docs/test_promises.py::test_the_tables_of_the_register_are_read")
    assert not exists("docs/test_promises.py::test_that_is_not_there")
    assert not exists("docs/nowhere.py::test")
