"""Lines of logs, format by format: what is read of each, and what is refused."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from bloomtide import HotList, LogCounter, LogReader
from bloomtide.errors import ParameterError
from bloomtide.records import LogRecord

COMBINED = b'::1 - - [17/Apr/2018:06:25:06 +0000] "GET /a HTTP/1.1" 200 30 "-" "x"\n'
UTC_TIME = 1_523_946_306.0
CADDY = (
    b'{"level":"info","ts":1646861401.5,"msg":"handled request","request":{"remote_ip":'
    b'"192.0.2.1","host":"example.org","uri":"/a\\u002fb","headers":{"User-Agent":["x"],'
    b'"Referer":["http://example.org/"]}},"size":1,"status":200}'
)


def records(data: bytes, name: str | None = None, json_map: str | None = None) -> list[LogRecord]:
    reader = LogReader(format=name, json_map=json_map)
    return [*reader.feed(data), *reader.finish()]


def only(line: bytes, name: str) -> LogRecord | None:
    found = records(line + b"\n", name)
    return found[0] if found else None


@pytest.mark.parametrize(
    ("request_line", "path"),
    [
        (rb"-", None),
        (rb"", None),
        (rb"\x16\x03\x01", None),
        (rb"GET /", b"/"),
        (rb"GET /a b HTTP/1.1", b"/a b"),
        (rb"GET /a\"b HTTP/1.1", rb"/a\"b"),
        (rb'GET /a"b HTTP/1.1', b'/a"b'),
        (rb"GET /\" 404 x HTTP/1.1", rb"/\" 404 x"),
        (rb"GET /\\", rb"/\\"),
        (rb"GET http://example.org/a HTTP/2.0", b"http://example.org/a"),
        (rb"GET  HTTP/1.1", None),
    ],
)
def test_odd_requests_still_make_a_line(request_line: bytes, path: bytes | None) -> None:
    record = only(b'::1 - - [17/Apr/2018:06:25:06 +0000] "%s" 404 -' % request_line, "common")
    assert record is not None
    assert record.path == path


@pytest.mark.parametrize(("line", "name"), [(COMBINED[:-1], "combined"), (CADDY, "caddy")])
def test_a_line_that_was_cut_anywhere_is_refused(line: bytes, name: str) -> None:
    assert only(line, name) is not None
    assert all(only(line[:end], name) is None for end in range(len(line)))


def test_a_line_of_caddy_that_is_no_access_is_refused() -> None:
    record = only(CADDY, "caddy")
    assert record == LogRecord(
        1646861401.5, b"example.org", b"192.0.2.1", b"/a/b", b"200", b"http://example.org/"
    )
    assert only(b'{"ts":1646861401.5,"msg":"started"}', "caddy") is None


TIMES = {
    "2018-04-17T06:25:06Z": UTC_TIME,
    "17/Apr/2018:06:25:06 +0000": UTC_TIME,
    "17/Apr/2018:02:25:06 -0400": UTC_TIME,
    "2018-04-17 11:55:06+05:30": UTC_TIME,
    "2018-04-17T06:25:06": UTC_TIME,
    "2018/04/17 06:25:06": UTC_TIME,
    "[17/Apr/2018:06:25:06 +0000]": UTC_TIME,
    "2018-04-17T06:25:06.250Z": UTC_TIME + 0.25,
    "1523946306.25": UTC_TIME + 0.25,
    "1523946306250": UTC_TIME + 0.25,
    "1523946306250000": UTC_TIME + 0.25,
    "1523946306000000000": UTC_TIME,
    **dict.fromkeys(["1e300", "-5", "", "nan", "inf", "2023-01-01", "2023-01-01T00:00:00."]),
    **dict.fromkeys(["2023-01-01T00:00:00+99:00", "2023-01/01T00:00:00", "2023-02-29T00:00:00"]),
    **dict.fromkeys(["29/Feb/2023:00:00:00 +0000", "31/Apr/2023:00:00:00 +0000"]),
    **dict.fromkeys(["01/Abc/2023:00:00:00 +0000", "01/Jan/2023:24:00:00 +0000"]),
    **dict.fromkeys(["01/Jan/2023:00:00:61 +0000", "01/Jan/2023:00:00:00 0000 "]),
    **dict.fromkeys(["01/Jan/1969:00:00:00 +0000", "10000-01-01T00:00:00"]),
}


@pytest.mark.parametrize("text", TIMES)
def test_a_time_is_read_as_it_is_written_or_not_at_all(text: str) -> None:
    line = json.dumps({"ts": text, "a": "/"}).encode() + b"\n"
    found = records(line, json_map="time=ts,path=a")
    if TIMES[text] is None and text:
        assert not found
    else:
        assert [record.time for record in found] == [TIMES[text]]


def test_days_count_on_without_a_gap() -> None:
    day, end = datetime(1970, 1, 1, tzinfo=UTC), datetime(2371, 1, 1, tzinfo=UTC)
    expected = []
    while day < end:
        expected.append(day)
        day += timedelta(days=1)
    lines = (b"%s x\n" % day.strftime("%Y-%m-%d").encode() for day in expected)
    log = b"#Fields: date time cs-uri\n" + b"".join(
        line.replace(b" ", b" 00:00:00 /") for line in lines
    )
    # Ninety years at a time: what is a century away is no line of the log.
    for start in range(0, len(expected), 30_000):
        part = log.split(b"\n")[1 + start : 1 + start + 30_000]
        found = records(b"#Fields: date time cs-uri\n" + b"\n".join(part))
        times = [day.timestamp() for day in expected[start : start + 30_000]]
        assert [record.time for record in found] == times
    for wrong in (b"2100-02-29", b"2023-02-29", b"2023-04-31", b"2023-13-01", b"2023-00-10"):
        assert only(wrong + b"T00:00:00Z", "bare") is not None
        assert not records(b'{"ts":"%sT00:00:00Z","a":"/"}' % wrong, json_map="time=ts,path=a")


@pytest.mark.parametrize("text", ["{}", "[1]", '"a"', "-0.5e+3", "0", "true", "null", '"\\u00e9"'])
def test_json_is_read(text: str) -> None:
    assert records(b'{"x":%s,"a":"/"}' % text.encode(), json_map="path=a")[0].path == b"/"


NO_JSON = ["", "{", '{"a"}', '{"a":1,}', "[1,]", "01", "1.", "-", '"\\x"', '"a', "{}x", "nul"]


@pytest.mark.parametrize(
    "text", [*NO_JSON, '"\\u12g4"', "[" * 70 + "]" * 70, "[" * 100_000], ids=lambda text: text[:9]
)
def test_what_is_no_json_is_refused(text: str) -> None:
    assert not records(b'{"x":%s,"a":"/"}' % text.encode(), json_map="path=a")


def test_nesting_and_escapes_are_read() -> None:
    deep = b'{"x":' + b"[" * 60 + b"]" * 60 + rb',"a":"a\/\u00e9\ud83d\ude00\ud800\n\\"}'
    assert records(deep, json_map="path=a")[0].path == "a/é😀\ufffd\n\\".encode()


@pytest.mark.parametrize("text", ["", "path", "page=x", "path=", "path=a,path=b", "path=a||b"])
def test_a_map_that_is_none_is_refused_by_name(text: str) -> None:
    for wrong in (text, "path=" + "|".join("a" * 25)):
        with pytest.raises(ParameterError, match="`json_map`"):
            LogReader(json_map=wrong)


SQUID = (
    b"1066036250.129    543 192.0.2.1 TCP_MISS/200 4210 GET http://example.org/a - x/y text/html"
)


def test_a_line_of_squid_has_time_client_status_and_url() -> None:
    assert only(SQUID, "squid") == LogRecord(
        1_066_036_250.129, b"example.org", b"192.0.2.1", b"http://example.org/a", b"200", None
    )
    tunnel = only(b"1.5 -3 ::1 TCP_TUNNEL/000 0 CONNECT example.org:443 - x/- -", "squid")
    assert tunnel is not None
    assert tunnel.host == b"example.org"
    for wrong in (b"1.5 3 ::1 A/200 0 GET", b"1.5 x ::1 A/200 0 GET /", b"1.5 3 ::1 A 0 GET /"):
        assert only(wrong, "squid") is None
    assert only(b"soon 3 ::1 TCP_MISS/200 0 GET /", "squid") is None


@pytest.mark.parametrize(
    ("url", "host"),
    [
        (b"http://example.org/a", b"example.org"),
        (b"https://me:pw@example.org:8443?q", b"example.org"),
        (b"http://[2001:db8::1]:80/", b"[2001:db8::1]"),
        (b"http://[2001", b"[2001"),
        (b"/search?u=http://example.org/", None),
        (b"*", None),
        (b"http:///x", None),
    ],
)
def test_the_host_stands_between_scheme_user_port_and_path(url: bytes, host: bytes | None) -> None:
    record = only(url, "bare")
    assert record is not None
    assert record.host == host


def test_iis_and_cloudfront_are_read_by_their_own_fields() -> None:
    fields = b"#Software: x\n#Fields: date time c-ip cs-uri-stem cs-uri-query sc-status\n"
    [iis] = records(fields + b"2018-04-17 06:25:06 192.0.2.1 /a.aspx b=1 200\n", "w3c")
    assert iis == LogRecord(UTC_TIME, None, b"192.0.2.1", b"/a.aspx?b=1", b"200", None)
    fields = b"#Fields: date time c-ip cs(Host) cs-uri-stem cs(Referer) x-host-header\n"
    line = b"2018-04-17\t06:25:06\t::1\td1.cloudfront.example\t/a%20b\t-\texample.org\n"
    assert records(fields + line) == [
        LogRecord(UTC_TIME, b"example.org", b"::1", b"/a%20b", None, None)
    ]
    dated = b"#Date: 2018-04-17 00:00:00\n#Fields: time cs-uri cs(User-Agent)\n"
    [quoted] = records(dated + b'06:25:06 /a "two words"\n')
    assert (quoted.time, quoted.path) == (UTC_TIME, b"/a")
    for wrong in (b"2018-04-17 06:25:06", b"2018-04-17 06:25:06 /a b", b"2018-04-31 06:25:06 /a"):
        assert not records(b"#Fields: date time cs-uri\n" + wrong, "w3c")
    assert not records(b"2018-04-17 06:25:06 /a", "w3c"), "no columns were named"


def test_the_format_stays_known_when_the_log_goes_on_after_its_end() -> None:
    reader = LogReader()
    assert len([*reader.feed(COMBINED[:-1]), *reader.finish()]) == 1
    assert len([*reader.feed(b"/odd\n" + COMBINED), *reader.finish()]) == 1
    assert (reader.report().format, reader.report().skipped) == ("COMBINED", 1)


def test_a_log_of_no_known_format_says_which_lines_and_what_was_tried() -> None:
    reader = LogReader()
    assert not reader.feed(b"what is this\n" * 40)
    assert not reader.finish()
    report = reader.report()
    assert (report.skipped, len(report.bad), len(report.bad[0].tried)) == (40, 5, 8)


def test_a_line_that_is_too_long_or_centuries_away_is_skipped() -> None:
    long = COMBINED.replace(b"/a", b"/" * 2**16)
    far = COMBINED.replace(b"2018", b"2218")
    for name in (None, "combined"):
        reader = LogReader(format=name)
        found = [*reader.feed(COMBINED + long + far + COMBINED), *reader.finish()]
        assert [record.path for record in found] == [b"/a", b"/a"]
        assert [bad.reason for bad in reader.report().bad] == ["length", "time"]


def test_queries_can_be_left_out_and_later_lines_too() -> None:
    def line(path: bytes, hour: int) -> bytes:
        return COMBINED.replace(b"/a", path).replace(b"06:25:06", b"%02d:00:00" % hour)

    hot = HotList(10, half_life="1h")
    counter = LogCounter(hot, query=False, until="2018-04-17T01:00:00Z")
    counter.feed(line(b"/a?x", 1) + line(b"/a?y", 1) + line(b"/late", 2))
    counter.finish()
    assert [(item.key, item.count) for item in hot.top(at=hot.time)] == [(b"/a", 2)]
    report = counter.report()
    assert (report.counted, report.without, report.later) == (2, 0, 1)


# --- formats that the user writes down


@pytest.mark.parametrize(
    ("written", "line", "expected"),
    [
        (
            '%h %^[%d:%t %^] "%r" %s %b "%R" "%u"', COMBINED[:-1],
            LogRecord(UTC_TIME, None, b"::1", b"/a", b"200", None),
        ),
        (
            r'%h %^[%d:%t %^] \"%r\" %s',
            b'::1 - - [17/Apr/2018:02:25:06 -0400] "GET /a HTTP/1.1" 200',
            LogRecord(UTC_TIME, None, b"::1", b"/a", b"200", None),
        ),
        (
            '$remote_addr - $remote_user [$time_local] "$request" $status "$http_referer" $host',
            rb'::1 - - [17/Apr/2018:06:25:06 +0000] "GET /\" 1 HTTP/1.1" 200 "http://r/" e.org:80',
            LogRecord(UTC_TIME, b"e.org", b"::1", rb"/\" 1", b"200", b"http://r/"),
        ),
        (
            "${msec}|$request_uri|$args|$status",
            b"1523946306.250|/a|x=1|404",
            LogRecord(UTC_TIME + 0.25, None, None, b"/a?x=1", b"404", None),
        ),
        (
            "%d %t %~%v %U %q %s",
            b"2018-04-17 06:25:06.25    e.org /a ?x 200",
            LogRecord(UTC_TIME + 0.25, b"e.org", None, b"/a?x", b"200", None),
        ),
        (
            "100%% %x\\t%U", b"100% 2018-04-17T06:25:06Z\t/a",
            LogRecord(UTC_TIME, None, None, b"/a", None, None),
        ),
        ("%x %U %^", b"yesterday /a -", None),
        ("%s %U", b"OK /a", None),
        ("%U end", b"/a without it", None),
    ],
)  # fmt: skip
def test_a_format_that_was_written_down_is_read(
    written: str, line: bytes, expected: LogRecord | None
) -> None:
    assert only(line, written) == expected


def test_a_cut_line_of_a_written_format_is_refused() -> None:
    written = '%h %^[%d:%t %^] "%r" %s %b "%R" "%u"'
    assert all(only(COMBINED[:end], written) is None for end in range(len(COMBINED) - 1))


@pytest.mark.parametrize(
    ("written", "hint"),
    [
        ("%h%U", "text must stand between two values"),
        ("$remote_addr$request", "text must stand between two values"),
        ("%h %", "`%` needs a letter"),
        ("%h %{Referer}i", "GoAccess's letters are"),
        ("%>s %U", "GoAccess's letters are"),
        ("$ $request", "`$` needs the name of a variable"),
        ("%d %t %^", "name the request, its path, the host, the address or the status"),
    ],
)
def test_a_format_that_cannot_be_read_is_refused(written: str, hint: str) -> None:
    with pytest.raises(ParameterError, match="`format` must be") as caught:
        LogReader(format=written)
    assert hint in caught.value.hint
    assert caught.value.got == written


def test_the_name_of_a_written_format_is_custom() -> None:
    reader = LogReader(format="%U %s")
    reader.feed(b"/a 200\n/b\n")
    report = reader.report()
    assert (report.format, report.parsed, report.skipped) == ("CUSTOM", 1, 1)
