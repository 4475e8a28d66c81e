"""A bad setting is refused by its name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bloomtide.errors import ParameterError
from bloomtide.integrations.scrapy.options import Options, is_durable, read_options


def test_without_settings_there_are_defaults() -> None:
    assert read_options({}) == Options()
    assert read_options({"BLOOMTIDE_VERIFY": None, "BLOOMTIDE_REVISIT": ""}) == Options()


def test_every_setting_is_read_also_as_text() -> None:
    given = {
        "BLOOMTIDE_CAPACITY": "2e6",
        "BLOOMTIDE_ERROR_RATE": "0.001",
        "BLOOMTIDE_VERIFY": "exact",
        "BLOOMTIDE_REVISIT": "7d",
        "BLOOMTIDE_SYNC": "always",
        "JOBDIR": "jobs/one",
    }
    assert read_options(given, given) == Options(
        capacity=2_000_000,
        error_rate=0.001,
        verify=True,
        revisit=7 * 86400,
        sync="always",
        stated=frozenset({"capacity", "error_rate"}),
    )
    assert read_options({"BLOOMTIDE_SHARED": "a/b"}).shared == Path("a/b")


def test_with_a_second_check_an_error_may_be_more_frequent() -> None:
    assert read_options({"BLOOMTIDE_VERIFY": "exact"}).error_rate > read_options({}).error_rate


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("BLOOMTIDE_CAPACITY", 0),
        ("BLOOMTIDE_CAPACITY", "many"),
        ("BLOOMTIDE_CAPACITY", 1.5),
        ("BLOOMTIDE_CAPACITY", "inf"),
        ("BLOOMTIDE_CAPACITY", [1]),
        ("BLOOMTIDE_ERROR_RATE", 2),
        ("BLOOMTIDE_ERROR_RATE", 0),
        ("BLOOMTIDE_ERROR_RATE", "nan"),
        ("BLOOMTIDE_VERIFY", "yes"),
        ("BLOOMTIDE_VERIFY", True),
        ("BLOOMTIDE_REVISIT", "soon"),
        ("BLOOMTIDE_REVISIT", -1),
        ("BLOOMTIDE_SYNC", "sometimes"),
    ],
)
def test_a_bad_value_is_refused_by_its_name(name: str, value: Any) -> None:
    with pytest.raises(ParameterError) as caught:
        read_options({name: value})
    assert caught.value.name == name
    assert f"`{name}`" in str(caught.value)


@pytest.mark.parametrize("beside", ["BLOOMTIDE_VERIFY", "BLOOMTIDE_REVISIT"])
def test_a_shared_filter_goes_without_a_set_and_without_times(beside: str) -> None:
    with pytest.raises(ParameterError, match="BLOOMTIDE_SHARED") as caught:
        read_options({"BLOOMTIDE_SHARED": "f", beside: "exact" if "V" in beside[9:] else "7d"})
    assert caught.value.name in ("BLOOMTIDE_VERIFY", "BLOOMTIDE_REVISIT")


def test_a_misspelled_setting_is_refused_with_the_right_one() -> None:
    with pytest.raises(ParameterError, match="BLOOMTIDE_CAPACITY"):
        read_options({}, ["JOBDIR", "BLOOMTIDE_CAPACTY"])
    with pytest.raises(ParameterError, match="known"):
        read_options({}, ["BLOOMTIDE_XYZZY"])


@pytest.mark.parametrize(
    ("value", "durable"), [(None, True), ("1", True), ("False", False), (0, False), (True, True)]
)
def test_durable_unless_told_not_to_be(value: Any, durable: bool) -> None:
    assert is_durable({"BLOOMTIDE_DURABLE": value}) is durable


def test_durable_is_yes_or_no() -> None:
    with pytest.raises(ParameterError, match="BLOOMTIDE_DURABLE"):
        is_durable({"BLOOMTIDE_DURABLE": "perhaps"})
