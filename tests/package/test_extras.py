"""A missing extra is named with its install line, whatever is wrong with it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from bloomtide import extras
from bloomtide.errors import BloomtideError, MissingExtraError
from tests.package import trees


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder as the whole path, but for bloomtide's metadata."""
    folder = trees.declare(tmp_path / "site")
    monkeypatch.setattr(sys, "path", [str(folder)])
    monkeypatch.setattr(extras, "_can_find", lambda module: False)
    return folder


def refuse(extra: str) -> MissingExtraError:
    with pytest.raises(MissingExtraError) as refused:
        extras.require(extra, "`Thing`")
    return refused.value


def test_a_package_that_is_not_installed_is_named_with_its_bounds(site: Path) -> None:
    error = refuse("guard")
    assert error.message == "`Thing` needs sqlalchemy >=2.0,<2.2 (not installed)"
    assert error.hint == "pip install 'bloomtide[guard]'"
    assert (error.code, error.extra, error.packages) == ("missing-extra", "guard", ["sqlalchemy"])
    assert isinstance(error, ImportError)
    assert isinstance(error, BloomtideError)


@pytest.mark.parametrize("version", ["1.4.54", "2.2.0", "2.2.0b1", "3"])
def test_a_wrong_version_is_named(site: Path, version: str) -> None:
    trees.install(site, "SQLAlchemy", version)
    assert f"sqlalchemy >=2.0,<2.2 ({version} is installed)" in refuse("guard").message


@pytest.mark.parametrize("version", ["2.0", "2.0.57", "2.1.8", "2.1.99"])
def test_every_version_within_the_bounds_will_do(site: Path, version: str) -> None:
    trees.install(site, "SQLAlchemy", version)
    extras.require("guard", "`Thing`")


def test_the_first_on_the_path_counts(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trees.install(site, "sqlalchemy", "1.4.54")
    trees.install(site / "before", "sqlalchemy", "2.0.1")
    monkeypatch.setattr(sys, "path", [str(site / "before"), str(site / "no such"), str(site)])
    extras.require("guard", "`Thing`")


def test_extras_within_an_extra_are_followed(site: Path) -> None:
    assert {"click", "starlette", "sqlalchemy", "redis"} <= set(refuse("redis").packages)
    every = {each.package for each in extras.requirements("all")}
    assert every >= {"click", "prometheus-client", "fsspec", "pyarrow", "redis"}
    assert not every & {"pyspark", "dask", "ray", "scrapy", "django", "bloomtide"}


@pytest.mark.parametrize(("platform", "wanted"), [("linux", True), ("win32", False)])
def test_a_package_for_other_platforms_is_not_asked_for(
    site: Path, monkeypatch: pytest.MonkeyPatch, platform: str, wanted: bool
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    assert ("uvloop" in refuse("serve").packages) is wanted


def test_a_package_without_metadata_will_do_if_it_can_be_found(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extras, "_can_find", lambda module: module == "prometheus_client")
    extras.require("metrics", "`Thing`")


def test_a_package_that_cannot_be_imported_is_named_with_the_reason(site: Path) -> None:
    trees.install(site, "sqlalchemy", "2.1.8")
    with (
        pytest.raises(MissingExtraError, match=r"cannot be imported: .*libfoo") as refused,
        extras.require("guard", "`Thing`"),
    ):
        raise ImportError("libfoo.so: no such file", name="sqlalchemy.cyextension")
    assert refused.value.hint == "pip install --force-reinstall 'bloomtide[guard]'"
    assert isinstance(refused.value.__cause__, ImportError)
    assert refused.value.packages == ["sqlalchemy"]


def test_a_way_to_do_without_stands_behind_the_install_line(site: Path) -> None:
    with pytest.raises(MissingExtraError) as refused:
        extras.require("arrow", "Arrow", instead="take --csv")
    assert refused.value.hint == "pip install 'bloomtide[arrow]', or take --csv"


def test_a_mistake_of_ours_stays_one(site: Path) -> None:
    trees.install(site, "sqlalchemy", "2.1.8")
    with pytest.raises(ImportError) as refused, extras.require("guard", "`Thing`"):
        raise ImportError("cannot import name 'x'", name="bloomtide.guard.columns")
    assert not isinstance(refused.value, MissingExtraError)
    with pytest.raises(KeyError), extras.require("guard", "`Thing`"):
        raise KeyError("x")


def test_without_metadata_the_failed_import_says_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    with pytest.raises(MissingExtraError) as refused, extras.require("guard", "`Thing`"):
        raise ModuleNotFoundError("No module named 'sqlalchemy'", name="sqlalchemy")
    assert refused.value.hint == "pip install 'bloomtide[guard]'"


def test_the_project_declares_only_what_is_understood() -> None:
    bounds = re.compile(r"(>=|<)[\d.]+(,(>=|<)[\d.]+)*")
    names = set()
    for declared in trees.EXTRAS.values():
        for line in declared:
            text, _, marker = line.partition(";")
            match = re.fullmatch(r"([a-z-]+)(?:\[([a-z,]+)\])?(.*)", text.strip())
            assert match, line
            if match[1] == "bloomtide":
                assert set(match[2].split(",")) <= trees.EXTRAS.keys(), line
                assert not match[3] + marker, line
                continue
            names.add(match[1])
            assert bounds.fullmatch(match[3]), line
            assert re.fullmatch(r"(\s*sys_platform [!=]= '\w+')?", marker), line
    assert "sqlalchemy" in names


def test_numpy_is_all_that_the_library_needs() -> None:
    assert [re.split(r"\W", each)[0] for each in trees.PROJECT["dependencies"]] == ["numpy"]


@pytest.mark.parametrize("extra", trees.NEEDS)
def test_what_needs_an_extra_says_so(extra: str, tmp_path: Path) -> None:
    use, package, what = trees.NEEDS[extra]
    code = f"import os; os.chdir({str(tmp_path)!r})\n" + trees.ask(use)
    told = trees.run(code, hidden=(package,))
    assert told.startswith(f"MissingExtraError {what} needs "), told
    assert f"\nhint: pip install 'bloomtide[{extra}]'" in told
    assert package.replace("_", "-") in told


def test_a_package_left_half_uninstalled_is_told_as_such(tmp_path: Path) -> None:
    site = trees.declare(tmp_path)
    trees.install(site, "sqlalchemy", "2.1.8", source="from sqlalchemy.lost import everything")
    code = (
        "import bloomtide\n"
        "try:\n    bloomtide.DatabaseGuard(None, None)\n"
        "except ImportError as error:\n    print(error); print(type(error.__cause__).__mro__)"
    )
    told = trees.run(code, site)
    assert "`DatabaseGuard` needs the extra `guard`, which cannot be imported" in told
    assert "hint: pip install --force-reinstall 'bloomtide[guard]'" in told
    assert "ImportError" in told


@pytest.mark.parametrize("source", ["def (", ""])
def test_a_package_whose_files_are_damaged_is_told_as_such(tmp_path: Path, source: str) -> None:
    site = trees.declare(tmp_path)
    trees.install(site, "sqlalchemy", "2.1.8")
    for name in ("__init__.py", "exc.py"):  # what is left can still be imported
        (site / "sqlalchemy").mkdir(exist_ok=True)
        (site / "sqlalchemy" / name).write_text(source)
    code = (
        "import bloomtide\nfrom bloomtide import *\n"
        "try:\n    bloomtide.History.open('x', catalogue='postgresql://h/d')\n"
        "except ImportError as error:\n    print(error)"
    )
    told = trees.run(code, site)
    assert "`catalogue` needs the extra `history`, which cannot be imported" in told
    assert "hint: pip install --force-reinstall 'bloomtide[history]'" in told
