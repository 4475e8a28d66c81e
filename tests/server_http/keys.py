"""A keyspace of three structures, as much of it as HTTP asks for."""

from __future__ import annotations

from typing import Any


class Keys:
    """Names need not be text."""

    def __init__(self) -> None:
        self.loading = False
        self.read_only: str | None = None

    def stats(self) -> dict[str, Any]:
        return {
            "keys": 3, "bytes": 192, "calls": 12, "errors": 3,
            "commands": {"BF.ADD": (10, 1), "GET": (2, 0)},
        }  # fmt: skip

    def structures(self, limit: int = 1000) -> list[dict[str, Any]]:
        return [
            {
                "name": f'filter "{i}"\n'.encode(), "kind": "bloom", "items": 5.0, "fill": 0.5,
                "predicted_error": float("inf"), "bytes": 64,
            }
            for i in range(min(3, limit))
        ]  # fmt: skip
