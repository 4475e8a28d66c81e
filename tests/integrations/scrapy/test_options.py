"""A bad setting is refused by its name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bloomery.errors import ParameterError
from bloomery.integrations.scrapy.options import Options, is_durable, read_options


def test_without_settings_there_are_defaults() -> None:
    assert read_options({}) == Options()
    assert read_options({"BLOOMERY_VERIFY": None, "BLOOMERY_REVISIT": ""}) == Options()


def test_every_setting_is_read_also_as_text() -> None:
    given = {
        "BLOOMERY_CAPACITY": "2e6",
        "BLOOMERY_ERROR_RATE": "0.001",
        "BLOOMERY_VERIFY": "exact",
        "BLOOMERY_REVISIT": "7d",
        "BLOOMERY_FSYNC": "always",
        "JOBDIR": "jobs/one",
    }
    assert read_options(given, given) == Options(
        capacity=2_000_000,
        error_rate=0.001,
        verify=True,
        revisit=7 * 86400,
        fsync="always",
        stated=frozenset({"capacity", "error_rate"}),
    )
    assert read_options({"BLOOMERY_SHARED": "a/b"}).shared == Path("a/b")


def test_with_a_second_check_an_error_may_be_more_frequent() -> None:
    assert read_options({"BLOOMERY_VERIFY": "exact"}).error_rate > read_options({}).error_rate


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("BLOOMERY_CAPACITY", 0),
        ("BLOOMERY_CAPACITY", "many"),
        ("BLOOMERY_CAPACITY", 1.5),
        ("BLOOMERY_CAPACITY", "inf"),
        ("BLOOMERY_CAPACITY", [1]),
        ("BLOOMERY_ERROR_RATE", 2),
        ("BLOOMERY_ERROR_RATE", 0),
        ("BLOOMERY_ERROR_RATE", "nan"),
        ("BLOOMERY_VERIFY", "yes"),
        ("BLOOMERY_VERIFY", True),
        ("BLOOMERY_REVISIT", "soon"),
        ("BLOOMERY_REVISIT", -1),
        ("BLOOMERY_FSYNC", "sometimes"),
    ],
)
def test_a_bad_value_is_refused_by_its_name(name: str, value: Any) -> None:
    with pytest.raises(ParameterError) as caught:
        read_options({name: value})
    assert caught.value.name == name
    assert f"`{name}`" in str(caught.value)


@pytest.mark.parametrize("beside", ["BLOOMERY_VERIFY", "BLOOMERY_REVISIT"])
def test_a_shared_filter_goes_without_a_set_and_without_times(beside: str) -> None:
    with pytest.raises(ParameterError, match="BLOOMERY_SHARED") as caught:
        read_options({"BLOOMERY_SHARED": "f", beside: "exact" if "V" in beside[9:] else "7d"})
    assert caught.value.name in ("BLOOMERY_VERIFY", "BLOOMERY_REVISIT")


def test_a_misspelled_setting_is_refused_with_the_right_one() -> None:
    with pytest.raises(ParameterError, match="BLOOMERY_CAPACITY"):
        read_options({}, ["JOBDIR", "BLOOMERY_CAPACTY"])
    with pytest.raises(ParameterError, match="known"):
        read_options({}, ["BLOOMERY_XYZZY"])


@pytest.mark.parametrize(
    ("value", "durable"), [(None, True), ("1", True), ("False", False), (0, False), (True, True)]
)
def test_durable_unless_told_not_to_be(value: Any, durable: bool) -> None:
    assert is_durable({"BLOOMERY_DURABLE": value}) is durable


def test_durable_is_yes_or_no() -> None:
    with pytest.raises(ParameterError, match="BLOOMERY_DURABLE"):
        is_durable({"BLOOMERY_DURABLE": "perhaps"})
