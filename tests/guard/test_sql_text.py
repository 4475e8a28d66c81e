"""A text that may write to a table is never called harmless."""

from __future__ import annotations

import pytest

from bloomtide.guard.sql_text import Doing, read_text

HARMLESS = [
    "SELECT * FROM basket",
    "  -- about the basket\n/* really */ SELECT 1",
    "INSERT INTO log VALUES (1)",
    "INSERT INTO log VALUES (1) /* route=/basket */",
    "INSERT INTO log VALUES ('a b')  -- it's so",
    "SELECT ';--' FROM basket",
    "/* it's */ SELECT 1",
    "PRAGMA journal_mode = WAL",
    "",
    ";",
]
UNKNOWN = [
    "INSERT INTO basket VALUES (1)",
    'insert into "Basket" values (1)',
    "/* SELECT */ INSERT INTO basket VALUES (1)",
    "/* a /* b */ SELECT */ INSERT INTO basket VALUES (1)",
    "SELECT 1; INSERT INTO basket VALUES (1)",
    "SELECT '--'; INSERT INTO basket VALUES (1)",
    "INSERT INTO log VALUES ('--'); INSERT INTO basket VALUES (1)",
    "SELECT '/*'; INSERT INTO basket VALUES ('*/')",
    "SELECT $$--$$; INSERT INTO basket VALUES (1)",
    "WITH x AS (SELECT '; SELECT') INSERT INTO basket SELECT 1",
    "/* a; b */ INSERT INTO basket VALUES (1)",
    "SELECT E'\\'' ; INSERT INTO basket VALUES ('x')",
    "CALL fill()",
    "DO $$ BEGIN END $$",
    "COMMIT PREPARED 'x'",
    "EXECUTE fill",
]


@pytest.mark.parametrize("text", HARMLESS)
def test_what_does_not_write_to_the_table_is_harmless(text: str) -> None:
    assert read_text(text, "basket") is Doing.NOTHING


@pytest.mark.parametrize("text", UNKNOWN)
def test_what_may_write_to_the_table_is_unknown(text: str) -> None:
    assert read_text(text, "basket") is Doing.UNKNOWN


@pytest.mark.parametrize("text", ["COMMIT", "begin immediate", "/* x */ ROLLBACK TO a", "END;"])
def test_what_begins_or_ends_a_transaction_is_told(text: str) -> None:
    assert read_text(text, "basket") is Doing.TRANSACTION
