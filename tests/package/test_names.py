"""The names of `bloomtide`: all there, with every extra and with none."""

from __future__ import annotations

import inspect
import re

import pytest

import bloomtide
from tests.package import trees

OPTIONAL = ("sqlalchemy", "fsspec", "rich", "click", "zstandard", "starlette", "uvicorn", "pyarrow")


def test_dir_shows_the_public_names_and_nothing_else() -> None:
    assert dir(bloomtide) == sorted(bloomtide.__all__)


def test_no_class_of_the_package_is_left_out() -> None:
    found = {
        name
        for name, value in vars(bloomtide).items()
        if inspect.isclass(value) and value.__module__.startswith("bloomtide")
        if not name.startswith("_")
    }
    assert found - set(bloomtide.__all__) == set()


def test_every_name_is_documented() -> None:
    pages = trees.ROOT / "docs" / "reference"
    page = "".join((pages / name).read_text() for name in ("api.md", "errors.md"))
    names = set(bloomtide.__all__) - {"__version__"}
    assert {name for name in names if not re.search(rf"(`|## |: ){name}\b", page)} == set()


@pytest.mark.parametrize("hidden", [(), OPTIONAL])
def test_a_star_import_brings_every_name(hidden: tuple[str, ...]) -> None:
    told = trees.run(
        "from bloomtide import *\nimport bloomtide\n"
        "print(set(bloomtide.__all__) <= set(globals()), dir(bloomtide) == bloomtide.__all__)\n"
        "print(History.__name__, DatabaseGuard.__module__, Monitor.open())",
        hidden=hidden,
    )
    place = "bloomtide" if hidden else "bloomtide.guard.guard"
    assert told == f"True True\nHistory {place} <Monitor in memory: 0 events>\n"


def test_importing_loads_nothing_but_the_library() -> None:
    told = trees.run("import bloomtide, sys; print(*sys.modules)")
    loaded = {name.partition(".")[0] for name in told.split()}
    assert "bloomtide" in loaded
    assert not loaded & {*OPTIONAL, "numpy", "asyncio", "dataclasses"}


STAND_INS = {
    "called": "DatabaseGuard(None, None)",
    "asked": "DatabaseGuard.open('x')",
    "subclassed": "type(DatabaseGuard)('Mine', (DatabaseGuard,), {})",
}


@pytest.mark.parametrize("use", STAND_INS.values(), ids=STAND_INS)
def test_a_class_whose_extra_is_missing_names_it_when_used(use: str) -> None:
    told = trees.run(
        "from bloomtide import DatabaseGuard\n"
        f"try:\n    {use}\nexcept ImportError as error:\n    print(error.code, error.hint)",
        hidden=("sqlalchemy",),
    )
    assert told == "missing-extra pip install 'bloomtide[guard]'\n"


def test_a_class_whose_extra_is_missing_can_be_looked_at() -> None:
    told = trees.run(
        "import bloomtide, inspect, pydoc\n"
        "print(isinstance(3, bloomtide.DatabaseGuard))\n"
        "print(hasattr(bloomtide.DatabaseGuard, '__wrapped__'))\n"
        "print(inspect.getdoc(bloomtide.DatabaseGuard)); pydoc.render_doc(bloomtide)",
        hidden=("sqlalchemy",),
    )
    assert told == "False\nFalse\nNeeds the extra `guard`: pip install 'bloomtide[guard]'.\n"


def test_a_stand_in_is_one_class_that_can_be_pickled() -> None:
    told = trees.run(
        "import bloomtide, pickle\n"
        "from bloomtide import DatabaseGuard\n"
        "print(DatabaseGuard is bloomtide.DatabaseGuard)\n"
        "print(pickle.loads(pickle.dumps(DatabaseGuard)) is DatabaseGuard)",
        hidden=("sqlalchemy",),
    )
    assert told == "True\nTrue\n"
