"""A segment's file read by its specification alone (docs/formats/history-segment.md)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

WORD = 2**64
GATE = 0x8EBC6AF09C88C6E3
MATRIX = 0xA0761D6478BD642F


def mix(x: int) -> int:
    """The bijection of 64 bits."""
    for _ in range(2):
        x = (x ^ x >> 32) * 0xD6E8FEB86659FD93 % WORD
    return x ^ x >> 32


def positions(mark: int, part: int, hashes: int, cells: int) -> list[int]:
    """Where a mark's cells are."""
    start = mix(mark ^ part)
    values = (mix((start + i * 0x9E3779B97F4A7C15) % WORD) for i in range(hashes))
    return [value * cells >> 64 for value in values]


def varints(data: bytes) -> Iterator[int]:
    """Numbers of seven bits a byte."""
    value = shift = 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            yield value
            value = shift = 0


@dataclass
class PlainSegment:
    """All of a segment, taken apart."""

    data: bytes

    def __post_init__(self) -> None:
        """Finds the parts and reads every cell."""
        word = self.word
        self.rows, row_bytes = word(72), word(80)
        self.gate_bits, self.columns = word(88), word(96)
        self.order, self.gate_hashes, self.hashes = self.data[26:29]
        self.row_numbers = list(varints(self.data[184 : 184 + row_bytes]))
        self.filled = self.rows_with_events()
        filled = len(self.filled)
        body = int.from_bytes(self.data[12:16], "little")
        bits = int.from_bytes(self.data[body:], "little")
        self.gate = bits
        at = 8 * -(-self.gate_bits // 8)
        self.maps = bits >> at
        group = 1
        while group < max(1, 512 // max(1, filled)):
            group *= 2
        at += 8 * -(-self.columns * (filled + 1) // 8)
        self.index = [bits >> at + 40 * i & 2**40 - 1 for i in range(-(-self.columns // group))]
        at += 40 * len(self.index)
        self.codes, self.at = bits >> at & (1 << word(144)) - 1, 0
        self.cells: list[list[int]] = []
        for column in range(self.columns):
            if column % group == 0:
                assert self.index[column // group] == self.at
            self.cells.append(self.column(column))
        assert self.at == word(144)

    def word(self, offset: int) -> int:
        """A number of the header."""
        return int.from_bytes(self.data[offset : offset + 8], "little")

    def rows_with_events(self) -> list[int]:
        """Their numbers."""
        numbers = iter(self.row_numbers)
        filled = []
        for row in range(self.rows):
            _begin, _length, events, _windows = (next(numbers) for _ in range(4))
            if events:
                filled.append(row)
                next(numbers), next(numbers)
        return filled

    def column(self, column: int) -> list[int]:
        """The cells of the next column."""
        bits = self.maps >> column * (len(self.filled) + 1)
        cells = [0] * self.rows
        for place, row in enumerate(self.filled):
            if bits >> place + 1 & 1:
                cells[row] = self.code() if bits & 1 else 1
        return cells

    def code(self) -> int:
        """The next count."""
        zeros = 0
        while not self.codes >> self.at & 1:
            zeros, self.at = zeros + 1, self.at + 1
        n = zeros + self.order
        x = 1 << n | self.codes >> self.at + 1 & (1 << n) - 1
        self.at += 1 + n
        return x + 1 - (1 << self.order)

    def rows_of(self, mark: int) -> list[int]:
        """The answer for each row."""
        gate = positions(mark, GATE, self.gate_hashes, self.gate_bits)
        if not all(self.gate >> bit & 1 for bit in gate):
            return [0] * self.rows
        columns = positions(mark, MATRIX, self.hashes, self.columns)
        return [min(self.cells[column][row] for column in columns) for row in range(self.rows)]
