//! The slow path: WHATWG parsing by the `url` crate, then percent-encoding in its one form.

use super::percent::{FRAGMENT, NAME, PATH, QUERY, encode, normalise};
use super::{refusal, refuse};
use crate::Result;
use std::borrow::Cow;
use url::{ParseError, Url};

/// Writes the canonical form of the URL.
#[cold]
pub fn parse(url: &[u8], keep_fragment: bool, out: &mut Vec<u8>) -> Result<()> {
    if url.iter().any(u8::is_ascii_control) {
        return refuse(url, "free of control characters", "write them encoded, such as %09");
    }
    let mut text = text(url)?;
    // Drive letters and slashes have rules of their own in `file:`, after which a form may have another
    // form. Under a name that WHATWG does not know it is a scheme like others.
    let file = text.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("file:"));
    if file {
        text.to_mut().insert(0, 'x');
    }
    let parsed = Url::parse(&text).map_err(|reason| {
        let (allowed, hint) = explained(reason);
        refusal(url, allowed, hint)
    })?;
    let host = parsed.host_str().unwrap_or_default();
    if host.is_empty() {
        return refuse(
            url,
            "a URL with a host",
            "`data:`, `mailto:` and `file:` have none; write the scheme too, as in https://example.org/",
        );
    }
    out.clear();
    out.extend_from_slice(&parsed.scheme().as_bytes()[usize::from(file)..]);
    out.extend_from_slice(b"://");
    if parsed.has_authority() && !(parsed.username().is_empty() && parsed.password().is_none()) {
        normalise(parsed.username().as_bytes(), NAME, out);
        if let Some(password) = parsed.password() {
            out.push(b':');
            normalise(password.as_bytes(), NAME, out);
        }
        out.push(b'@');
    }
    if parsed.is_special() || host.starts_with('[') {
        out.extend_from_slice(host.as_bytes());
    } else {
        opaque_host(host.as_bytes(), out);
    }
    if let Some(port) = parsed.port() {
        out.extend_from_slice(format!(":{port}").as_bytes());
    }
    let path = if parsed.path().is_empty() { "/" } else { parsed.path() };
    normalise(path.as_bytes(), PATH, out);
    for (mark, part, class) in [
        (b'?', parsed.query(), QUERY),
        (b'#', parsed.fragment().filter(|_| keep_fragment), FRAGMENT),
    ] {
        if let Some(part) = part.filter(|part| !part.is_empty()) {
            out.push(mark);
            normalise(part.as_bytes(), class, out);
        }
    }
    Ok(())
}

/// The URL as text. Bytes that are no UTF-8 are addresses all the same, of servers that think in
/// another encoding: they are percent-encoded, which only a host cannot be.
fn text(url: &[u8]) -> Result<Cow<'_, str>> {
    let error = match std::str::from_utf8(url) {
        Ok(text) => return Ok(Cow::Borrowed(text)),
        Err(error) => error,
    };
    let past_scheme = memchr::memmem::find(url, b"//").map_or(0, |slashes| slashes + 2);
    let authority = url[past_scheme..].iter().position(|byte| b"/\\?#".contains(byte));
    let end = authority.map_or(url.len(), |length| past_scheme + length);
    if error.valid_up_to() < end {
        return refuse(url, "UTF-8 in its host", "write the host in punycode (xn--...)");
    }
    let mut ascii = Vec::with_capacity(url.len() * 2);
    for &byte in url {
        if byte.is_ascii() {
            ascii.push(byte);
        } else {
            encode(byte, &mut ascii);
        }
    }
    Ok(Cow::Owned(String::from_utf8_lossy(&ascii).into_owned()))
}

/// The host of a scheme that WHATWG does not know, which it leaves as it is; RFC 3986 (section 6.2.2)
/// says that case does not matter there either.
fn opaque_host(host: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    normalise(host, NAME, out);
    let mut at = start;
    while let Some(byte) = out.get_mut(at) {
        if *byte == b'%' {
            at += 3;
        } else {
            byte.make_ascii_lowercase();
            at += 1;
        }
    }
}

/// What a URL must be, and a way out.
fn explained(reason: ParseError) -> (&'static str, &'static str) {
    match reason {
        ParseError::RelativeUrlWithoutBase => (
            "an absolute URL, with its scheme",
            "write https://example.org/path; urllib.parse.urljoin(base, url) completes a link",
        ),
        ParseError::EmptyHost => ("a URL with a host", "write it as https://example.org/path"),
        ParseError::InvalidPort => (
            "a URL whose port is a number up to 65535",
            "write host:8080/path, or host/path without a colon (as in ssh://git@host/path)",
        ),
        ParseError::InvalidIpv4Address => (
            "a URL whose host is a name or a valid IPv4 address",
            "a host that ends in a number must be an address such as 192.0.2.1",
        ),
        ParseError::InvalidIpv6Address => (
            "a URL whose IPv6 address is valid and in brackets",
            "write it as http://[2001:db8::1]/",
        ),
        ParseError::IdnaError | ParseError::InvalidDomainCharacter => (
            "a URL whose host is a valid name",
            "a host has no blanks and none of # % / : < > ? @ [ \\ ] ^ |, and its punycode is valid",
        ),
        _ => ("a valid URL", "write it as https://example.org/path"),
    }
}
