"""Web and proxy logs line by line, with regular expressions, `json` and `datetime`.

Idea     Each format is a function from a line to a `LogRecord`, or None when it is no such line.
         `read_log` holds the first lines back and takes the format that reads most of them.
Prefer   `bloomtide.LogReader` for everything but reading about it: it gives the same answers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeAlias

from bloomtide.records import LogRecord

Line: TypeAlias = Callable[[bytes], LogRecord | None]

LOOK = 16
MAX_LINE = 1 << 16
CENTURY = 100 * 365.25 * 86_400
END = 253_402_300_800.0
MONTHS = [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov"]
MONTHS += [b"Dec"]

CLF_TIME = rb"(\d\d)/([A-Z][a-z][a-z])/(\d{4}):(\d\d):(\d\d):(\d\d) ([+-])(\d\d)(\d\d)"
ISO_TIME = (
    rb"(\d{4})([-/])(\d\d)\2(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:[.,](\d+))?"
    rb"(?:| ?(?:Z|z|UTC|([+-])(\d\d)(?::?(\d\d))?)| )"
)
# A quoted part ends at a quote that is not escaped and that is followed by what must come next.
UNESCAPED = rb"(?<!\\)(?:\\\\)*"
SITE = rb"(?P<host>[^ ]*) (?=[^ ]*[.:][^ ]* )"
REQUEST = rb'(?P<ip>[^ ]*) .*?\[(?P<time>%s)\] "(?P<request>.*?%s)" (?P<status>\d{3}) (?:-|\d+)'
REQUEST %= (CLF_TIME, UNESCAPED)
REFERER = rb' "(?P<referer>.*?%s)" ".*?"' % UNESCAPED


def present(value: bytes | None) -> bytes | None:
    """Logs write `-`, or nothing, for what there was not."""
    return None if value in (None, b"", b"-") else value


def host_of_url(target: bytes | None) -> bytes | None:
    """The host of an absolute URL."""
    found = target and re.match(rb"(?!/).{0,13}?://([^/?#]*)", target, re.DOTALL)
    return host_of_authority(found[1]) if found else None


def host_of_authority(authority: bytes) -> bytes | None:
    """`user@host:port`, of which the host."""
    host = authority.rpartition(b"@")[2]
    if host.startswith(b"["):
        return host.partition(b"]")[0] + (b"]" if b"]" in host else b"")
    return present(host.partition(b":")[0])


# --- times


def moment(year: int, month: int, day: int, clock: tuple[int, int, int], east: int) -> float | None:
    """Unix seconds; None for what no calendar has."""
    hour, minute, second = clock
    # Second 60 is a leap second.
    if hour > 23 or minute > 59 or second > 60:
        return None
    try:
        days = (datetime(year, month, day, tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)).days
    except ValueError:
        return None
    return float(days * 86_400 + hour * 3600 + minute * 60 + second - east)


def east_of(sign: bytes | None, hours: bytes | None, minutes: bytes | None) -> int | None:
    """A zone as seconds; None for what is no zone."""
    if not sign:
        return 0
    h, m = int(hours or 0), int(minutes or 0)
    return None if h > 23 or m > 59 else (-1 if sign == b"-" else 1) * (h * 3600 + m * 60)


def clf_time(text: bytes) -> float | None:
    """`17/Apr/2018:06:25:06 +0000`"""
    found = re.fullmatch(CLF_TIME, text)
    if not found or found[2] not in MONTHS:
        return None
    east = east_of(found[7], found[8], found[9])
    if east is None:
        return None
    clock = (int(found[4]), int(found[5]), int(found[6]))
    month = MONTHS.index(found[2]) + 1
    return within(moment(int(found[3]), month, int(found[1]), clock, east))


def iso_time(text: bytes) -> float | None:
    """`2018-04-17T06:25:06.5Z`; without a zone it is UTC."""
    found = re.fullmatch(ISO_TIME, text)
    east = found and east_of(found[9], found[10], found[11])
    if found is None or east is None:
        return None
    clock = (int(found[5]), int(found[6]), int(found[7]))
    whole = moment(int(found[1]), int(found[3]), int(found[4]), clock, 0)
    digits = (found[8] or b"0")[:9]
    # In this order, so that rounding is the same everywhere.
    midnight = None if whole is None else whole - whole % 86_400
    if whole is None or midnight is None:
        return None
    return within((midnight - east) + ((whole - midnight) + int(digits) / 10.0 ** len(digits)))


def any_time(text: bytes) -> float | None:
    """A number of seconds or of parts of them, ISO 8601, or the time of COMMON."""
    if len(text) <= 32 and re.fullmatch(rb"\d+\.?\d*(?:[eE][+-]?\d+)?", text):
        value = float(text)
        for limit, unit in ((1e11, 1.0), (1e14, 1e3), (1e17, 1e6), (float("inf"), 1e9)):
            if value < limit:
                return within(value / unit)
        return None
    inner = text[1:-1] if len(text) >= 2 and text[:1] + text[-1:] == b"[]" else text
    return clf_time(inner) if len(inner) == 26 and inner[2:3] == b"/" else iso_time(inner)


def within(seconds: float | None) -> float | None:
    """Nothing before 1970, nothing after 9999."""
    return seconds if seconds is not None and 0 <= seconds < END else None


# --- formats


def clf(*, site: bool, referer: bool) -> Line:
    """COMMON and its relatives."""
    pattern = (SITE if site else b"") + REQUEST + (REFERER if referer else rb"(?: |\Z)")
    compiled = re.compile(pattern, re.DOTALL)

    def line(text: bytes) -> LogRecord | None:
        start = 0
        while True:
            found = compiled.match(text)
            if not found:
                return None
            time = clf_time(found["time"])
            if time is not None:
                break
            # A bracket that only looks like a time: take its marks away and look again.
            start = found.start("time")
            text = text[: start - 1] + b"(" + text[start:]
        path = target(found["request"])
        named = host_of_authority(found["host"]) if site else None
        return LogRecord(
            time=time,
            host=named or host_of_url(path),
            ip=present(found["ip"]),
            path=path,
            status=found["status"],
            referer=present(found["referer"]) if referer else None,
        )

    return line


def target(request: bytes) -> bytes | None:
    """The target of `GET /a HTTP/1.1`."""
    _, blank, rest = request.partition(b" ")
    if not blank:
        return None
    if rest[-9:-3] == b" HTTP/":
        return present(rest[:-9])
    head, version, _ = rest.rpartition(b" HTTP/")
    return present(head if version else rest)


def squid(text: bytes) -> LogRecord | None:
    """Squid's native format."""
    columns = [column for column in text.split(b" ") if column]
    if len(columns) < 7:
        return None
    stamp, elapsed, ip, result, size, method, url = columns[:7]
    status = result.rpartition(b"/")[2] if b"/" in result else b""
    if (
        not re.fullmatch(rb"\d+\.?\d*|\.\d+", stamp)
        or len(stamp) > 32
        or not re.fullmatch(rb"-?\d*", elapsed)
        or not re.fullmatch(rb"\d{1,3}", status)
        or not re.fullmatch(rb"\d+", size)
        or within(float(stamp)) is None
    ):
        return None
    host = host_of_authority(url) if method == b"CONNECT" else host_of_url(url)
    return LogRecord(
        time=float(stamp), host=host, ip=present(ip), path=present(url), status=status, referer=None
    )


def bare(text: bytes) -> LogRecord | None:
    """The line is the page."""
    if present(text) is None:
        return None
    return LogRecord(
        time=None, host=host_of_url(text), ip=None, path=text, status=None, referer=None
    )


def guessed_bare(text: bytes) -> LogRecord | None:
    """A bare line that looks like a URL or a path."""
    plain = not re.search(rb"[\x00-\x20\x7f]", text)
    return bare(text) if plain and (text[:1] == b"/" or b"://" in text) else None


ROLES = {
    b"date": "date", b"time": "time", b"timestamp": "stamp", b"timestamp(ms)": "stamp",
    b"cs-host": "host", b"cs(host)": "host", b"x-host-header": "viewer", b"c-ip": "ip",
    b"cs-uri-stem": "stem", b"cs-uri": "stem", b"cs-uri-query": "query", b"sc-status": "status",
    b"cs(referer)": "referer", b"cs-referer": "referer", b"cs-referrer": "referer",
}  # fmt: skip


@dataclass
class W3c:
    """Columns as `#Fields:` names them."""

    roles: list[str | None] = field(default_factory=list)
    day: bytes | None = None

    def __call__(self, text: bytes) -> LogRecord | None:
        if text.startswith(b"#"):
            self.direct(text)
            return None
        columns = self.split(text)
        if not self.roles or len(columns) != len(self.roles):
            return None
        pairs = zip(self.roles, columns, strict=True)
        said = {role: value for role, value in pairs if role and present(value)}
        day, clock = said.get("date", self.day), said.get("time")
        if "date" in said and iso_time(said["date"] + b"T00:00:00") is None:
            return None
        if clock is not None and iso_time(b"1970-01-01T" + clock) is None:
            return None
        if clock is not None and not re.fullmatch(rb"[\d:.,]*", clock):
            return None
        stamp = any_time(said["stamp"]) if "stamp" in said else None
        if "stamp" in said and stamp is None:
            return None
        time = stamp if stamp is not None or not (day and clock) else iso_time(day + b"T" + clock)
        status = said.get("status")
        path = said.get("stem")
        if path and "query" in said:
            path += b"?" + said["query"]
        return LogRecord(
            time=time,
            host=said.get("viewer", said.get("host")),
            ip=said.get("ip"),
            path=path,
            status=status if status and re.fullmatch(rb"\d{1,3}", status) else None,
            referer=said.get("referer"),
        )

    def direct(self, text: bytes) -> None:
        if text.startswith(b"#Fields:"):
            names = re.split(rb"[ \t]", text.removeprefix(b"#Fields:"))
            self.roles = [ROLES.get(name.lower()) for name in names if name]
        elif text.startswith(b"#Date:"):
            day = text.removeprefix(b"#Date:").strip(b" \t\n\x0c\r")[:10]
            self.day = day if iso_time(day + b"T00:00:00") is not None else None

    @staticmethod
    def split(text: bytes) -> list[bytes]:
        mark = b"\t" if b"\t" in text else b" "
        quoted = rb'"([^"]*)"(?=%s|\Z)|([^%s]*)' % (mark, mark)
        columns, at = [], 0
        while True:
            found = re.compile(quoted).match(text, at)
            assert found, "an empty column always matches"
            columns.append(found[1] if found[1] is not None else found[2])
            if found.end() == len(text):
                return columns
            at = found.end() + 1


@dataclass
class Json:
    """One object a line; `names` are pairs of a field and a dotted name, the best first."""

    names: list[tuple[str, str]]
    strict: bool = False

    def __call__(self, text: bytes) -> LogRecord | None:
        try:
            # Numbers stay as they are written; NaN and Infinity are Python's own invention.
            value = (
                json.loads(
                    text.decode("utf-8", "surrogateescape"),
                    strict=False,
                    parse_int=Number,
                    parse_float=Number,
                    parse_constant=refuse,
                )
                if depth(text) <= 64
                else None
            )
        except ValueError:
            return None
        if not isinstance(value, dict):
            return None
        found: dict[str, Any] = {}
        any_found = False
        for role, name in self.names:
            words = plain(find(value, name))
            if present(words) is None or words is None:
                continue
            any_found = True
            if role == "time":
                time = any_time(words)
                if time is None:
                    return None
                found.setdefault("time", time)
            elif role != "status" or re.fullmatch(rb"\d{1,3}", words):
                found.setdefault(role, words)
        if not any_found or (self.strict and not {"time", "path"} <= found.keys()):
            return None
        found.setdefault("host", host_of_url(found.get("path")))
        names = ("time", "host", "ip", "path", "status", "referer")
        return LogRecord(**{name: found.get(name) for name in names})


class Number(str):
    """A number as it was written."""

    __slots__ = ()


def refuse(name: str) -> None:
    """Not JSON."""
    raise ValueError(name)


def depth(text: bytes) -> int:
    """How deep brackets nest, strings left out."""
    now = most = 0
    for mark in re.findall(rb'"(?:[^"\\]|\\.)*"|[][{}]', text, re.DOTALL):
        now += {b"[": 1, b"{": 1, b"]": -1, b"}": -1}.get(mark, 0)
        most = max(most, now)
    return most


def find(value: Any, name: str) -> Any:
    """The member of that name: its own with dots, or one inside another."""
    if not isinstance(value, dict):
        return None
    last = None
    for key, inner in value.items():
        if key == name:
            last = inner
        elif name.startswith(key + "."):
            nested = find(inner, name[len(key) + 1 :])
            last = nested if nested is not None else last
    return last


def plain(value: Any) -> bytes | None:
    """A string or number as bytes; of an array its first item."""
    while isinstance(value, list):
        value = value[0] if value else None
    if not isinstance(value, str):
        return None
    # Bytes that are no UTF-8 come back as they were; half a pair of surrogates has no bytes.
    parts = (
        c.encode("utf-8", "surrogateescape" if "\udc80" <= c <= "\udcff" else "replace")
        for c in value
    )
    return b"".join(
        b"\xef\xbf\xbd" if part == b"?" and c != "?" else part
        for part, c in zip(parts, value, strict=True)
    )


CADDY = [
    ("time", "ts"), ("host", "request.host"), ("ip", "request.client_ip"),
    ("ip", "request.remote_ip"), ("path", "request.uri"), ("status", "status"),
    ("referer", "request.headers.Referer"),
]  # fmt: skip


def json_map(text: str) -> Json:
    """`path=a.b|c,time=t` as a format."""
    other = {"url": "path", "ts": "time"}
    names = []
    for pair in text.split(","):
        role, _, alternatives = pair.partition("=")
        role = other.get(role.strip(), role.strip())
        names += [(role, name.strip()) for name in alternatives.split("|")]
    return Json(names)


VARIABLES = {
    "time_local": "time", "time_iso8601": "time", "msec": "time", "request": "request",
    "request_uri": "path", "uri": "path", "args": "query", "query_string": "query",
    "remote_addr": "ip", "host": "host", "http_host": "host", "server_name": "host",
    "status": "status", "http_referer": "referer",
}  # fmt: skip
LETTERS = {
    "x": "time", "d": "date", "t": "clock", "h": "ip", "v": "host", "r": "request", "U": "path",
    "q": "query", "s": "status", "R": "referer", "~": "blanks",
}  # fmt: skip


def pattern(text: str) -> Line:
    """A format as nginx or GoAccess write it, as one regular expression."""
    value = r"\$\{?(\w+)\}?" if "$" in text else r"%(.)"
    names = VARIABLES if "$" in text else LETTERS
    parts = re.split(value, text.replace('\\"', '"').replace("\\t", "\t"))
    roles: list[str] = []
    expression = re.escape(parts[0].encode())
    for name, behind in zip(parts[1::2], parts[2::2], strict=True):
        role = names.get(name, "skip")
        if role == "skip" and roles and roles[-1] == "clock" and expression.endswith(rb")\ "):
            role = "zone"
        quoted = UNESCAPED if behind.startswith('"') else b""
        body = rb"[ \t\n\x0c\r]*" if role == "blanks" else (rb".*?" + quoted if behind else rb".*")
        expression += b"(" + body + b")" + re.escape(behind.encode())
        roles.append(role)
    compiled = re.compile(expression, re.DOTALL | re.ASCII)

    def line(text: bytes) -> LogRecord | None:
        found = compiled.match(text)
        if not found:
            return None
        said = {role: found[at] for at, role in enumerate(roles, 1)}
        time = any_time(said["time"]) if "time" in said else None
        if "date" in said:
            day, clock = said["date"], said.get("clock", b"00:00:00")
            month = re.fullmatch(rb"(\d\d)/([A-Z][a-z][a-z])/(\d{4})", day)
            if month and month[2] in MONTHS:
                day = b"%b-%02d-%b" % (month[3], MONTHS.index(month[2]) + 1, month[1])
            zone = said.get("zone", b"")
            east = re.fullmatch(rb"([+-])(\d\d)(?::?(\d\d))?", zone)
            known = east and east_of(east[1], east[2], east[3]) is not None
            time = iso_time(day + b"T" + clock + (zone if known else b""))
        if ({"time", "date"} & said.keys()) and time is None:
            return None
        if "status" in said and not re.fullmatch(rb"\d{1,3}", said["status"]):
            return None
        path = target(said["request"]) if "request" in said else present(said.get("path"))
        query = present(said.get("query"))
        if path and query:
            path += (b"" if query.startswith(b"?") else b"?") + query
        host = host_of_authority(said["host"]) if "host" in said else None
        return LogRecord(
            time=time, host=host or host_of_url(path), ip=present(said.get("ip")), path=path,
            status=said.get("status"), referer=present(said.get("referer")),
        )  # fmt: skip

    return line


def formats() -> dict[str, Line]:
    """Each format by its name, those that tell most first."""
    return {
        "W3C": W3c(),
        "CADDY": Json(CADDY, strict=True),
        "VCOMBINED": clf(site=True, referer=True),
        "COMBINED": clf(site=False, referer=True),
        "VCOMMON": clf(site=True, referer=False),
        "COMMON": clf(site=False, referer=False),
        "SQUID": squid,
        "BARE": bare,
    }


def read_log(data: bytes, line: Line | None = None) -> tuple[list[LogRecord], int]:
    """The records of a log, and how many lines were skipped."""
    lines = data.split(b"\n")
    lines = lines if lines[-1] else lines[:-1]
    lines = [text.removesuffix(b"\r") for text in lines]
    lines = [text for text in lines if text]
    skipped = 0
    while line is None and lines:
        line = guess([text for text in lines[:LOOK] if len(text) <= MAX_LINE])
        if line is None:
            skipped += len(lines[:LOOK])
            lines = lines[LOOK:]
    records: list[LogRecord] = []
    latest: float | None = None
    for text in lines:
        record = line(text) if line and len(text) <= MAX_LINE else None
        time = record.time if record else None
        far = time is not None and latest is not None and abs(time - latest) > CENTURY
        if record is None or far:
            remark = isinstance(line, W3c) and text.startswith(b"#") and len(text) <= MAX_LINE
            skipped += not remark
            continue
        if time is not None:
            latest = time if latest is None else max(latest, time)
        records.append(record)
    return records, skipped


def guess(first: list[bytes]) -> Line | None:
    """The format that reads most of the lines."""
    if any(text.startswith(b"#Fields:") for text in first):
        return W3c()
    tried = {**formats(), "BARE": guessed_bare}
    scores = {name: sum(line(text) is not None for text in first) for name, line in tried.items()}
    best = max(scores, key=lambda name: scores[name])
    return formats()[best] if scores[best] else None
