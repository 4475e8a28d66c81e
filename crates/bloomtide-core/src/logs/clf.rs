//! COMMON and COMBINED, the formats of Apache and nginx, alone or after the site's name:
//!
//! ```text
//! [host:port ]ip ident user [17/Apr/2018:06:25:06 +0000] "GET /a HTTP/1.1" 200 2890[ "referer" "agent"]
//! ```
//!
//! A server escapes quotes inside a quoted part, but old ones do not. So a part ends at the first
//! quote that is not escaped and that is followed by what must come next.

use super::target::{host_of_authority, host_of_url};
use super::time::ClfClock;
use super::{Record, present};
use memchr::{memchr, memchr_iter, memmem};

/// Which parts a line must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    /// The site's name comes first.
    pub host: bool,
    /// Referer and agent come last.
    pub referer: bool,
}

/// One line with those parts; what follows them is not looked at.
pub fn parse<'a>(line: &'a [u8], parts: Parts, clock: &mut ClfClock) -> Option<Record<'a>> {
    let (host, line) = if parts.host { site(line)? } else { (None, line) };
    let blank = memchr(b' ', line)?;
    let ip = &line[..blank];
    let (time, rest) = time(&line[blank..], clock)?;
    let (request, rest) = quoted(rest.strip_prefix(b" \"")?, starts_status)?;
    let status = &rest[1..4];
    let rest = size(&rest[4..])?;
    let referer = if parts.referer {
        // The agent is not asked for, but without it the line was cut.
        let (referer, rest) = quoted(rest.strip_prefix(b" \"")?, |rest| rest.starts_with(b" \""))?;
        memchr(b'"', &rest[2..])?;
        present(referer)
    } else {
        None
    };
    let path = target(request);
    Some(Record {
        time: Some(time),
        host: host.or_else(|| path.and_then(host_of_url)),
        ip: present(ip),
        path,
        status: Some(status),
        referer,
    })
}

/// The site's name and the rest. Its second column must be an address: without the site it is the
/// ident, which nobody uses.
fn site(line: &[u8]) -> Option<(Option<&[u8]>, &[u8])> {
    let blank = memchr(b' ', line)?;
    let rest = &line[blank + 1..];
    let address = &rest[..memchr(b' ', rest)?];
    if address.iter().any(|byte| matches!(byte, b'.' | b':')) {
        Some((host_of_authority(&line[..blank]), rest))
    } else {
        None
    }
}

/// The first bracket that holds a time, and what follows it: a user's name may have brackets too.
fn time<'a>(line: &'a [u8], clock: &mut ClfClock) -> Option<(f64, &'a [u8])> {
    for open in memchr_iter(b'[', line) {
        let (text, rest) = line[open + 1..].split_first_chunk::<26>()?;
        if rest.first() == Some(&b']')
            && let Some(time) = clock.read(text)
        {
            return Some((time, &rest[1..]));
        }
    }
    None
}

/// Up to the closing quote, and what follows that quote.
fn quoted(text: &[u8], follows: impl Fn(&[u8]) -> bool) -> Option<(&[u8], &[u8])> {
    memchr_iter(b'"', text)
        .find(|at| follows(&text[at + 1..]) && !is_escaped(&text[..*at]))
        .map(|at| (&text[..at], &text[at + 1..]))
}

/// Whether the text before a quote ends in an odd number of backslashes.
pub(super) fn is_escaped(before: &[u8]) -> bool {
    before.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1
}

/// A blank, three digits and a blank.
fn starts_status(rest: &[u8]) -> bool {
    matches!(rest, [b' ', a, b, c, b' ', ..]
        if a.is_ascii_digit() && b.is_ascii_digit() && c.is_ascii_digit())
}

/// Skips a blank and the size, digits or `-`.
fn size(rest: &[u8]) -> Option<&[u8]> {
    let rest = rest.strip_prefix(b" ")?;
    let length = memchr(b' ', rest).unwrap_or(rest.len());
    let size = &rest[..length];
    let good = size == b"-" || (length > 0 && size.iter().all(u8::is_ascii_digit));
    good.then_some(&rest[length..])
}

/// The target of `GET /a HTTP/1.1`; `None` when the request is no request, as scanners send.
pub(super) fn target(request: &[u8]) -> Option<&[u8]> {
    let blank = memchr(b' ', request)?;
    let rest = &request[blank + 1..];
    // Almost always the last nine bytes; else a blank inside the target, or no version at all.
    let end = match rest.len().checked_sub(9) {
        Some(at) if rest[at..].starts_with(b" HTTP/") => at,
        _ => memmem::rfind(rest, b" HTTP/").unwrap_or(rest.len()),
    };
    present(&rest[..end])
}
