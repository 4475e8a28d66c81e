"""What a statement that is only text may do to a table. Not a parser: it errs on the safe side.

A statement is harmless if its first word says that it writes nothing. If the word says that it
writes, it concerns the tables whose names occur in the text. With any other word nobody knows: a
called procedure, for one, names no table.

A semicolon may be in a string, and a comment may be one or only look like it. So every piece that
could be a statement is looked at, and comments are taken out only where there are no strings; what
makes no sense counts as unknown.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache

_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
_LEADING = re.compile(rf"(?:\s*(?:{_COMMENT.pattern}))*", re.DOTALL)
_STRINGS = re.compile(r"""['"$`\\\[]""")
_WORD = re.compile(r"[\s(]*([A-Za-z]+)")

_HARMLESS = re.compile(
    "SELECT|VALUES|TABLE|SHOW|DESCRIBE|DESC|PRAGMA|SET|RESET|USE|LISTEN|UNLISTEN|NOTIFY|ANALYZE"
    "|VACUUM|REINDEX|CLUSTER|CHECKPOINT|GRANT|REVOKE|COMMENT|LOCK|DECLARE|FETCH|CLOSE|MOVE|DISCARD"
    "|DETACH|DEALLOCATE|SECURITY"
)
_TRANSACTION = re.compile("BEGIN|START|COMMIT|END|ROLLBACK|ABORT|SAVEPOINT|RELEASE")
# WITH and EXPLAIN may have a writing statement inside, which names its table.
_WRITES = re.compile(
    "INSERT|UPDATE|DELETE|REPLACE|MERGE|COPY|TRUNCATE|WITH|CREATE|ALTER|DROP|RENAME|REFRESH|EXPLAIN"
)


class Doing(Enum):
    """What a text does."""

    NOTHING = "nothing"
    TRANSACTION = "transaction"
    """It begins, ends or rolls back behind the back of SQLAlchemy."""
    UNKNOWN = "unknown"
    """It may write to the table."""


@lru_cache(maxsize=1024)
def read_text(text: str, table: str) -> Doing:
    """What the statements of this text may do to the table of that name."""
    found = Doing.NOTHING
    if any("/*" in comment[2:] for comment in _COMMENT.findall(text)):
        return Doing.UNKNOWN  # PostgreSQL has comments in comments, SQLite has not
    if not _STRINGS.search(text):
        text = _COMMENT.sub(" ", text)
    names_it = table.lower() in text.lower()
    for piece in text.split(";"):
        doing = _read_piece(_LEADING.sub("", piece, count=1), names_it)
        if doing is Doing.UNKNOWN:
            return doing
        if doing is Doing.TRANSACTION:
            found = doing
    return found


def _read_piece(text: str, names_it: bool) -> Doing:
    if not text.strip():
        return Doing.NOTHING
    match = _WORD.match(text)
    word = match[1].upper() if match else ""
    if _HARMLESS.fullmatch(word):
        return Doing.NOTHING
    if _TRANSACTION.fullmatch(word) and "PREPARED" not in text.upper():
        return Doing.TRANSACTION
    if _WRITES.fullmatch(word) and not names_it:
        return Doing.NOTHING
    return Doing.UNKNOWN
