"""Lines of every log format for the property tests: good ones, and good ones with a blemish."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

ips = st.sampled_from([b"192.0.2.1", b"2001:db8::1", b"host.example", b"-"])
paths = st.sampled_from(
    [b"/", b"/a?b=1", b"/a b", b"http://example.org:80/x", b'/q\\"uote', b'/q"uote', b"*", b"/\xff"]
) | st.binary(max_size=12).map(lambda text: b"/" + text.replace(b"\n", b""))
sizes = st.sampled_from([b"0", b"123", b"-"])
statuses = st.sampled_from([b"200", b"404", b"000", b"304"])
referers = st.sampled_from([b"-", b"", b"http://example.org/", b'x\\"y', b"a b"])
clf_times = st.sampled_from(
    [
        b"17/Apr/2018:06:25:06 +0000",
        b"29/Feb/2024:23:59:60 -0930",
        b"29/Feb/2023:00:00:00 +0000",
        b"01/Jan/2218:00:00:00 +0000",
        b"1/Jan/2018:00:00:00 +0000",
    ]
)
requests = st.one_of(
    st.sampled_from([b"-", b"", b"\\x16\\x03", b"GET /", b"GET  HTTP/1.1"]),
    st.builds(lambda path: b"GET " + path + b" HTTP/1.1", paths),
)

common = st.builds(
    lambda ip, user, time, request, status, size: (
        ip + b" - " + user + b" [" + time + b'] "' + request + b'" ' + status + b" " + size
    ),
    ips,
    st.sampled_from([b"-", b"ann", b"a [b] c"]),
    clf_times,
    requests,
    statuses,
    sizes,
)
combined = st.builds(
    lambda line, referer: line + b' "' + referer + b'" "agent (x; y)"', common, referers
)
with_site = st.builds(
    lambda site, line: site + b" " + line,
    st.sampled_from([b"example.org", b"example.org:443", b"[::1]:80"]),
    common | combined,
)
squid = st.builds(
    lambda time, gap, ip, status, size, call: (
        time
        + gap
        + b"5 "
        + ip
        + b" TCP_MISS/"
        + status
        + b" "
        + size
        + b" "
        + call
        + b" - NONE/- -"
    ),
    st.sampled_from([b"1066036250.129", b"1066036250", b".5", b"1.2.3", b"99999999999999"]),
    st.sampled_from([b" ", b"    ", b" -"]),
    ips,
    statuses,
    sizes,
    st.sampled_from([b"GET http://example.org/a", b"CONNECT example.org:443", b"GET /", b"GET"]),
)
w3c = st.sampled_from(
    [
        b"#Version: 1.0",
        b"#Date: 2018-04-17 00:00:00",
        b"#Fields: date time c-ip cs-uri-stem cs-uri-query sc-status",
        b"#Fields: time cs-uri cs(User-Agent)",
        b"#Fields: date time c-ip cs(Host) cs-uri-stem cs(Referer) x-host-header",
        b"2018-04-17 06:25:06 192.0.2.1 /a.aspx b=1 200",
        b"2018-04-17 06:25:06.125 192.0.2.1 /a.aspx - 200",
        b"2018-04-31 06:25:06 192.0.2.1 /a.aspx - 200",
        b'06:25:06 /a "two words"',
        b"06:25:06 /a word",
        b"2018-04-17\t06:25:06\t::1\td1.example\t/a%20b\t-\texample.org",
    ]
)
json_texts = st.text(max_size=6) | st.sampled_from(
    ["/a", "-", "", "http://example.org/é", "2018-04-17T06:25:06Z", "17/Apr/2018:06:25:06 +0000"]
)
json_values: st.SearchStrategy[Any] = st.one_of(
    json_texts,
    st.sampled_from([1523946306, 1523946306.25, 1523946306250, 200, 0, -1, None, True]),
    st.lists(json_texts, max_size=2),
)
json_lines = st.builds(
    lambda value, ascii_only: json.dumps(value, ensure_ascii=ascii_only).encode(
        "utf-8", "surrogatepass"
    ),
    st.one_of(
        st.fixed_dictionaries(
            {
                "ts": json_values,
                "request": st.fixed_dictionaries(
                    {"uri": json_values},
                    optional={
                        "host": json_values,
                        "remote_ip": json_values,
                        "client_ip": json_values,
                        "headers": st.fixed_dictionaries({"Referer": json_values}),
                    },
                ),
            },
            optional={"status": json_values, "a": json_values},
        ),
        st.dictionaries(st.sampled_from(["ts", "a", "a.b", "c", "status"]), json_values),
        st.fixed_dictionaries({"a": st.dictionaries(st.sampled_from(["b", "c"]), json_values)}),
        json_values,
    ),
    st.booleans(),
)
bare = st.sampled_from([b"http://example.org/", b"/page", b"a b", b"-", b"word"])

good = st.one_of(combined, common, with_site, squid, w3c, json_lines, bare)


@st.composite
def blemished(draw: st.DrawFn) -> bytes:
    """A good line with one place cut out, doubled or overwritten."""
    line: bytes = draw(good)
    at = draw(st.integers(0, len(line)))
    more = draw(st.sampled_from([b"", b" ", b'"', b"\\", b"[", b"]", b"\t", b"\xff", b"9"]))
    return line[:at] + more + line[at + draw(st.integers(0, 2)) :]


lines = (good | blemished() | st.just(b"")).map(lambda line: line.replace(b"\n", b""))
logs = st.builds(
    lambda rows, end, last: end.join(rows) + last,
    st.one_of(
        st.lists(combined | blemished(), max_size=20),
        st.lists(lines, max_size=20),
        st.lists(w3c, max_size=20),
        st.lists(json_lines, max_size=6),
    ),
    st.sampled_from([b"\n", b"\r\n"]),
    st.sampled_from([b"", b"\n"]),
)
