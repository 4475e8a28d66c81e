"""`Tokens`: a statement in pieces, as far as `Reader` has to look at them."""

from __future__ import annotations

import re
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""(?P<space>\s+|--[^\n]*|/\*.*?\*/)
    |(?P<string>'(?:[^']|'')*')
    |(?P<quoted>"(?:[^"]|"")*"|`[^`]*`)
    |(?P<percent>%%)
    |(?P<parameter>%\([^)]*\)[sbt]|%[sbt]\b|\?\d*|\$\d+|(?<!:):[A-Za-z_]\w*)
    |(?P<word>[^\W\d][\w$]*)
    |(?P<number>\d[\w.]*)
    |(?P<sign>::|.)""",
    re.VERBOSE | re.DOTALL,
)
_PLACEHOLDER = re.compile(r"%[sbt(]")
_LONGEST = 63
"""Bytes of a name in PostgreSQL."""
_CLOSING = {"(": 1, "[": 1, ")": -1, "]": -1}


class Unclear(Exception):
    """The text has something in it that is not read here."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A value that the program gives."""

    place: int | str
    cast: str = ""
    """The type in `%s::NUMERIC(10, 2)`, in lower case."""
    is_list: bool = False
    """It is a list with the values of many rows."""


Token = str | Parameter
"""A word or a number in lower case, a sign, a quoted name after a `"`, or a literal: `'`, and for
SQLite, which takes literals for names, its text in lower case after that. Names are as the database
compares them."""


def cut(name: str) -> str:
    """A name as PostgreSQL keeps it."""
    return name.encode()[:_LONGEST].decode(errors="ignore") if len(name) * 4 > _LONGEST else name


def tokens_of(text: str, *, exact: bool) -> list[Token]:
    """The tokens of a text; `exact`: quoted names are compared letter by letter, as PostgreSQL
    does."""
    found: list[Token] = []
    styles: set[str] = set()
    positional = 0
    for match in _TOKEN.finditer(text):
        kind, piece = match.lastgroup, match[0]
        if kind in ("space", "quoted") and exact and _PLACEHOLDER.search(piece.replace("%%", "")):
            raise Unclear("a parameter in a comment or a name")  # drivers count it
        if kind == "space":
            continue
        if kind == "parameter" and (piece != "?" or not exact):  # an operator of PostgreSQL
            styles.add(piece[0])
            place: int | str = piece[1:]
            if piece[:2] == "%(":
                place = piece[2:-2]
            elif piece[0] == "$":
                place = int(piece[1:]) - 1
            elif piece[0] == "?" and place:
                raise Unclear("a parameter with a number")
            elif piece[0] != ":":
                place, positional = positional, positional + 1
            found.append(Parameter(place))
        elif kind == "quoted":
            found.append('"' + _name(piece[1:-1].replace('""', '"').replace("%%", "%"), exact))
        elif (kind == "string" and ("\\" in piece or "%" in piece)) or piece in ("$", "'", '"'):
            raise Unclear("a literal that is not plain")
        elif not exact and piece in (":", "@"):  # parameters of SQLite, too
            raise Unclear("a parameter with a sign of its own")
        elif kind == "string":
            found.append("'" if exact else "'" + piece[1:-1].replace("''", "'").lower())
        elif kind == "word":
            found.append(_word(piece, exact))
        else:
            found.append(piece.lower())
    # To PostgreSQL, and to who counts for it, `:x` may be a part of something else.
    if len(styles - ({":"} if exact else set())) > 1 or ("$" in styles and not exact):
        raise Unclear("parameters of several kinds")
    return found


def _word(piece: str, exact: bool) -> str:
    if exact and not piece.isascii() and any(c != c.lower() for c in piece if not c.isascii()):
        raise Unclear("a letter whose case depends on the database")
    return _name(piece.lower(), exact)


def _name(name: str, exact: bool) -> str:
    if not exact:
        return name.lower()
    if len(name) > _LONGEST // 4 and not name.isascii() and cut(name) != name:
        raise Unclear("a long name whose end depends on the database")
    return cut(name)


def split(tokens: list[Token], at: str) -> list[list[Token]]:
    """What that word or sign separates, outside of parentheses."""
    pieces: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += _CLOSING.get(token, 0) if isinstance(token, str) else 0
        if not depth and token == at:
            pieces.append([])
        else:
            pieces[-1].append(token)
    return pieces


def name_of(token: Token) -> str:
    """The name that a token is, where there must be a name."""
    if isinstance(token, str) and (
        token[:1] == '"' or token.isidentifier() or "$" in token[1:] or is_literal(token, 1)
    ):
        return token[1:] if token[0] in "\"'" else token
    raise Unclear("no name where one should be")


def is_literal(token: Token, least: int = 0) -> bool:
    """Whether it is one of at least so many letters, as far as they are kept."""
    return isinstance(token, str) and token[:1] == "'" and len(token) > least


def only_name(tokens: list[Token]) -> str:
    if len(tokens) != 1:
        raise Unclear("a column that is not plain")
    return name_of(tokens[0])


class Tokens:
    """Tokens that are taken one after the other."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._at = 0

    @property
    def next(self) -> Token:
        """The one that comes; empty at the end."""
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def take(self) -> Token:
        token = self.next
        self._at += 1
        return token

    def skip(self, *words: str) -> bool:
        """Passes over all of these that come now; whether there was any."""
        before = self._at
        while self.next in words:
            self._at += 1
        return self._at > before

    def expect(self, *words: str) -> None:
        """Passes over these, which must come in this order."""
        for word in words:
            if self.take() != word:
                raise Unclear(f"no {word.upper()} where it should be")

    def name(self) -> tuple[str | None, str]:
        """A schema, or None, and a name."""
        parts = [name_of(self.take())]
        while self.skip("."):
            parts.append(name_of(self.take()))
        self.skip("*")
        return (parts[-2] if len(parts) > 1 else None), parts[-1]

    def alias(self, *ends: str) -> str:
        """The other name that a table has in this statement; empty if it has none."""
        if self.skip("as") or self.next not in ("", "(", ",", ".", *ends):
            return name_of(self.take())
        return ""

    def before(self, *ends: str) -> list[Token]:
        """Takes what comes before one of these words, outside of parentheses."""
        start, depth = self._at, 0
        while self._at < len(self._tokens):
            token = self.next
            depth += _CLOSING.get(token, 0) if isinstance(token, str) else 0
            if not depth and token in ends:
                break
            self._at += 1
        return self._tokens[start : self._at]

    def group(self) -> list[list[Token]]:
        """What commas separate in the parenthesis that opens here."""
        if self.next != "(":
            raise Unclear("no parenthesis where one should be")
        start, depth = self._at + 1, 0
        while self._at < len(self._tokens):
            token = self.take()
            depth += _CLOSING.get(token, 0) if isinstance(token, str) else 0
            if not depth:
                return split(self._tokens[start : self._at - 1], ",")
        raise Unclear("an open parenthesis")

    def assignments(self, *ends: str) -> list[tuple[str, list[Token]]]:
        """Columns and what they are set to."""
        self.expect("set")
        found = []
        for piece in split(self.before(*ends), ","):
            at = piece.index("=") if "=" in piece else 0
            if not at or piece[0] == "(":
                raise Unclear("no plain assignment")
            found.append((Tokens(piece[:at]).name()[1], piece[at + 1 :]))
        if len(dict(found)) < len(found):
            raise Unclear("a column that is named twice")
        return found
