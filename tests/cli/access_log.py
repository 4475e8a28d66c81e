"""Small access logs for the tests of `bloomtide top`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from bloomtide.stream import MONTHS

START = datetime(2024, 5, 1, 12, 0, 0, tzinfo=UTC)


def hit(
    path: str,
    minutes: float = 0,
    *,
    ip: str = "192.0.2.1",
    status: int = 200,
    referer: str = "-",
    host: str = "",
) -> bytes:
    """One line of COMBINED, so many minutes after the start; with a host one of VCOMBINED."""
    at = START + timedelta(minutes=minutes)
    site = f"{host}:443 " if host else ""
    return (
        f"{site}{ip} - - [{at:%d}/{MONTHS[at.month - 1]}/{at:%Y:%H:%M:%S} +0000]"
        f' "GET {path} HTTP/1.1" {status} 123 "{referer}" "a browser"\n'
    ).encode()
