//! The fast path: recognises a URL that is in canonical form already, by one look at each byte.
//!
//! It may only say yes when `parse.rs` would give back the same bytes (but for the fragment, which is
//! cut off); whenever it is in doubt it says no. Most URLs of a crawl pass here, at no allocation.

use super::percent::{HOST, PATH, QUERY, UNRESERVED, decoded, is};

/// The canonical form of the URL, if it is the URL itself up to its fragment.
#[inline]
pub fn plain(url: &[u8]) -> Option<&[u8]> {
    let (after_scheme, default_port) = if url.starts_with(b"https://") {
        (8, 443)
    } else if url.starts_with(b"http://") {
        (7, 80)
    } else {
        return None;
    };
    let mut at = host(url, after_scheme)?;
    if url.get(at) == Some(&b':') {
        at = port(url, at + 1, default_port)?;
    }
    if url.get(at) != Some(&b'/') {
        return None;
    }
    at = path(url, at)?;
    if url.get(at) == Some(&b'?') {
        let end = bare(url, at + 1, QUERY)?;
        // An empty query goes, with its question mark.
        if end == at + 1 {
            return None;
        }
        at = end;
    }
    match url.get(at) {
        None => Some(url),
        Some(b'#') if url[at..].iter().all(|byte| !byte.is_ascii_control()) => Some(&url[..at]),
        Some(_) => None,
    }
}

/// The end of a host name that needs no second look: not an IP address, which has more spellings than
/// one, and no label that might be punycode (`xn--`).
#[inline(always)]
fn host(url: &[u8], start: usize) -> Option<usize> {
    let (mut at, mut label, mut previous, mut doubled) = (start, start, b'.', false);
    while let Some(&byte) = url.get(at)
        && is(byte, HOST)
    {
        doubled |= byte == previous && (byte == b'-' || byte == b'.');
        previous = byte;
        at += 1;
        if byte == b'.' {
            label = at;
        }
    }
    // A host whose last label is a number is an IP address; a number starts with a digit.
    let named = url.get(label).is_some_and(u8::is_ascii_lowercase);
    (named && !doubled).then_some(at)
}

/// The end of a port that is written as it must be.
#[inline(always)]
fn port(url: &[u8], start: usize, default: u32) -> Option<usize> {
    let digits = url[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    if !(1..=5).contains(&digits) || url[start] == b'0' {
        return None;
    }
    let digits = &url[start..start + digits];
    let number = digits.iter().fold(0, |number, digit| number * 10 + u32::from(digit - b'0'));
    (number != default && number <= 65535).then_some(start + digits.len())
}

/// The end of a path without a `.` or `..` segment.
#[inline(always)]
fn path(url: &[u8], start: usize) -> Option<usize> {
    let end = bare(url, start, PATH)?;
    let path = &url[start..end];
    let hidden = path.windows(2).any(|pair| pair == b"/.");
    (!hidden || !path.split(|&byte| byte == b'/').any(|s| s == b"." || s == b"..")).then_some(end)
}

/// The end of the bytes that need no encoding, or have theirs in its one form.
#[inline(always)]
fn bare(url: &[u8], start: usize, class: u8) -> Option<usize> {
    let mut at = start;
    loop {
        while let Some(&byte) = url.get(at)
            && is(byte, class)
        {
            at += 1;
        }
        if url.get(at) != Some(&b'%') {
            return Some(at);
        }
        let hidden = decoded(&url[at..])?;
        let upper = |digit: u8| !digit.is_ascii_lowercase();
        if is(hidden, UNRESERVED) || !upper(url[at + 1]) || !upper(url[at + 2]) {
            return None;
        }
        at += 3;
    }
}
