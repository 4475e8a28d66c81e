"""A client without a socket: words into a `Session`, its answer as Python values."""

from __future__ import annotations

from typing import Any

from bloomtide._core import Keyspace

START = 1_700_000_000.0


class Talk:
    """A keyspace and one client of it. Texts come back as `str`, errors are raised."""

    def __init__(self, *, protocol: int = 2, keyspace: Keyspace | None = None) -> None:
        self.keyspace = keyspace or Keyspace()
        self.session = self.keyspace.session(client=1)
        self.now = START
        self("HELLO", protocol)

    def __call__(self, *words: str | bytes | int | float) -> Any:
        parts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        request = b"*%d\r\n" % len(parts)
        request += b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)
        answer, rest = read(self.session.execute(request, self.now))
        assert not rest
        if isinstance(answer, RuntimeError):
            raise answer
        return answer

    def pairs(self, *words: str | bytes | int | float) -> dict[str, Any]:
        """An answer that is a map, also where it is a flat array."""
        answer = self(*words)
        if isinstance(answer, dict):
            return answer
        return dict(zip(answer[::2], answer[1::2], strict=True))


def read(data: bytes) -> tuple[Any, bytes]:
    """The first answer of some bytes, and what follows it."""
    line, _, rest = data.partition(b"\r\n")
    mark, text = line[:1], line[1:].decode()
    match mark:
        case b"+":
            return text, rest
        case b"-":
            return RuntimeError(text), rest
        case b":":
            return int(text), rest
        case b",":
            return float(text), rest
        case b"#":
            return text == "t", rest
        case b"_":
            return None, rest
        case b"$" | b"=":
            length = int(text)
            return (None, rest) if length < 0 else (rest[:length].decode(), rest[length + 2 :])
        case b"*" | b"~" | b"%":
            count = int(text) * (2 if mark == b"%" else 1)
            values = []
            for _ in range(count):
                value, rest = read(rest)
                values.append(value)
            is_map = mark == b"%"
            return (dict(zip(values[::2], values[1::2], strict=True)) if is_map else values), rest
    raise AssertionError(f"no answer: {line!r}")
