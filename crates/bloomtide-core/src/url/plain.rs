//! The fast path: recognises a URL that is in canonical form already, by one look at each byte.
//!
//! It may only say yes when `parse.rs` would give back the same bytes (but for the fragment, which is
//! cut off); whenever it is in doubt it says no. Most URLs of a crawl pass here, at no allocation.

use super::percent::{PATH, QUERY, UNRESERVED, decoded, is};
use memchr::memchr;

/// The canonical form of the URL, if it is the URL itself up to its fragment.
#[inline]
pub fn plain(url: &[u8]) -> Option<&[u8]> {
    let end = if url.len() > LANES {
        canonical_end(url, url.len())?
    } else {
        let mut padded = [0; 2 * LANES];
        padded[..url.len()].copy_from_slice(url);
        canonical_end(&padded, url.len())?
    };
    Some(&url[..end])
}

/// Where the canonical form of `text[..len]` ends; zeros may follow it.
#[inline(always)]
fn canonical_end(text: &[u8], len: usize) -> Option<usize> {
    let (after_scheme, default_port) = if text.starts_with(b"https://") {
        (8, 443)
    } else if text.starts_with(b"http://") {
        (7, 80)
    } else {
        return None;
    };
    let mut path = host(text, after_scheme)?;
    if text.get(path) == Some(&b':') {
        path = port(text, path + 1, default_port)?;
    }
    if text.get(path) != Some(&b'/') {
        return None;
    }
    let (end, dotted) = path_and_query(text, path, len)?;
    // An empty query goes, with its question mark.
    if text[end - 1] == b'?' && memchr(b'?', &text[..end]) == Some(end - 1) {
        return None;
    }
    if dotted && has_dot_segments(&text[path..end]) {
        return None;
    }
    // Not `any`: without a way out of the loop, many bytes are looked at together.
    let control = text[end..len].iter().fold(false, |any, byte| any | byte.is_ascii_control());
    (!control).then_some(end)
}

/// The end of a host name that needs no second look: not an IP address, which has more spellings than
/// one, and no label that might be punycode (`xn--`).
#[inline(always)]
fn host(text: &[u8], start: usize) -> Option<usize> {
    let (mut at, mut label) = (start, start);
    loop {
        let window = Window::at(text, at);
        let length = window.length(|byte| !is_host(byte));
        let within = (1u64 << length) - 1;
        // Two hyphens may be punycode, two dots an empty label.
        let doubled =
            window.flags(|byte, before| (byte == before) & ((byte == b'-') | (byte == b'.')));
        if doubled & within != 0 {
            return None;
        }
        let dots = window.flags(|byte, _| byte == b'.') & within;
        if dots != 0 {
            label = at + dots.ilog2() as usize + 1;
        }
        at += length;
        if length < LANES {
            break;
        }
    }
    // A host whose last label is a number is an IP address; a number starts with a digit.
    (label < at && text[label].is_ascii_lowercase()).then_some(at)
}

/// The end of a port that is written as it must be.
#[inline(always)]
fn port(text: &[u8], start: usize, default: u32) -> Option<usize> {
    let digits = text[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    if !(1..=5).contains(&digits) || text[start] == b'0' {
        return None;
    }
    let digits = &text[start..start + digits];
    let number = digits.iter().fold(0, |number, digit| number * 10 + u32::from(digit - b'0'));
    (number != default && number <= 65535).then_some(start + digits.len())
}

/// The end of path and query, and whether a segment starts with a dot; None if a byte is not as it
/// must be.
#[inline(always)]
fn path_and_query(text: &[u8], start: usize, len: usize) -> Option<(usize, bool)> {
    let (mut at, mut dotted) = (start, false);
    loop {
        at = simple(text, at, &mut dotted);
        if at == len {
            return Some((at, dotted));
        }
        match text[at] {
            b'#' => return Some((at, dotted)),
            // Encoded in its one form?
            b'%' => {
                let hidden = decoded(&text[at..])?;
                let lower = text[at + 1].is_ascii_lowercase() || text[at + 2].is_ascii_lowercase();
                if lower || is(hidden, UNRESERVED) {
                    return None;
                }
                at += 3;
            }
            // Bare in a path, encoded in a query.
            b'\'' if memchr(b'?', &text[start..at]).is_none() => at += 1,
            // The few others that are as good.
            byte if is(byte, PATH) && is(byte, QUERY) => at += 1,
            _ => return None,
        }
    }
}

/// The first byte from there on that is not as simple as most: those may stand in a path and in a query,
/// or part the two. Tells whether a dot followed a slash.
#[inline(always)]
fn simple(text: &[u8], start: usize, dotted: &mut bool) -> usize {
    let mut at = start;
    loop {
        let window = Window::at(text, at);
        *dotted |= window.flags(|byte, before| (before == b'/') & (byte == b'.')) != 0;
        let length = window.length(|byte| !is_simple(byte));
        at += length;
        if length < LANES {
            return at;
        }
    }
}

/// Bytes looked at together: more than most hosts have, so that few loops end by surprise.
const LANES: usize = 32;

/// The next bytes of a text, each with the one before it.
///
/// Close to the end it starts earlier, so that it never needs bytes that are not there.
struct Window<'a> {
    before: &'a [u8],
    bytes: &'a [u8],
    /// How many lanes lie before the place that was asked for.
    early: usize,
}

impl<'a> Window<'a> {
    /// The text is longer than a window, and `at` is not its beginning.
    #[inline(always)]
    fn at(text: &'a [u8], at: usize) -> Self {
        let start = at.min(text.len() - LANES);
        let (before, bytes) = (&text[start - 1..start - 1 + LANES], &text[start..start + LANES]);
        Window { before, bytes, early: at - start }
    }

    /// A bit for each lane, set where the test of a byte and its predecessor holds. A compiler makes it a
    /// few instructions for all lanes together if the test does not branch.
    #[inline(always)]
    fn flags(&self, test: impl Fn(u8, u8) -> bool) -> u64 {
        let mut flags = [0; LANES];
        for (flag, (&byte, &before)) in flags.iter_mut().zip(self.bytes.iter().zip(self.before)) {
            *flag = u8::from(test(byte, before)).wrapping_neg();
        }
        bits(flags) >> self.early
    }

    /// How many bytes from the place asked for come before the first that the test holds for.
    #[inline(always)]
    fn length(&self, test: impl Fn(u8) -> bool) -> usize {
        let first = self.flags(|byte, _| test(byte)).trailing_zeros() as usize;
        first.min(LANES - self.early)
    }
}

/// One bit of each lane.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn bits(flags: [u8; LANES]) -> u64 {
    use std::arch::x86_64::{__m128i, _mm_movemask_epi8};
    // SAFETY: both are 32 plain bytes, and every x86-64 has SSE2.
    unsafe {
        let [low, high] = std::mem::transmute::<[u8; LANES], [__m128i; 2]>(flags);
        (_mm_movemask_epi8(low) as u32 | (_mm_movemask_epi8(high) as u32) << 16) as u64
    }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn bits(flags: [u8; LANES]) -> u64 {
    flags.iter().rev().fold(0, |bits, flag| bits << 1 | u64::from(flag & 1))
}

#[inline(always)]
fn is_host(byte: u8) -> bool {
    (byte.wrapping_sub(b'a') < 26)
        | (byte.wrapping_sub(b'0') < 10)
        | (byte.wrapping_sub(b'-') < 2)
        | (byte == b'_')
}

/// By comparisons instead of a table, which many bytes at a time cannot look into.
#[inline(always)]
fn is_simple(byte: u8) -> bool {
    ((byte | 0x20).wrapping_sub(b'a') < 26)
        | (byte.wrapping_sub(b'(') <= b';' - b'(')
        | (byte == b'_')
        | (byte == b'=')
        | (byte == b'&')
        | (byte == b'?')
}

#[cold]
fn has_dot_segments(path_and_query: &[u8]) -> bool {
    let path = path_and_query.split(|&byte| byte == b'?').next().unwrap_or_default();
    path.split(|&byte| byte == b'/').any(|segment| segment == b"." || segment == b"..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simple_bytes_may_stand_in_a_path_and_in_a_query() {
        for byte in 0..=255 {
            let both = is(byte, PATH) && is(byte, QUERY);
            assert!(!is_simple(byte) || both || byte == b'?', "{byte:#x}");
            assert!(!is_host(byte) || is(byte, UNRESERVED) && !byte.is_ascii_uppercase());
        }
    }
}
