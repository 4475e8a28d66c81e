//! The fast path: recognises a URL that is in canonical form already, by one look at each byte.
//!
//! It may only say yes when `parse.rs` would give back the same bytes (but for the fragment, which is
//! cut off); whenever it is in doubt it says no. Most URLs of a crawl pass here, at no allocation.
//!
//! Bytes are looked at by blocks of 64: each question about a byte becomes a mask with one bit for each, and the
//! rest is arithmetic on masks.

use super::percent::{PATH, QUERY, UNRESERVED, decoded, is};

/// The canonical form of the URL, if it is the URL itself up to its fragment. `slash` gets the place of each
/// slash of the path, in order, also when the answer is no.
#[inline(always)]
pub fn plain(url: &[u8], slash: impl FnMut(usize)) -> Option<&[u8]> {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi1") {
        // SAFETY: the processor has the instructions.
        return unsafe { plain_avx2(url, slash) };
    }
    scan::<Portable>(url, slash)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1")]
unsafe fn plain_avx2(url: &[u8], slash: impl FnMut(usize)) -> Option<&[u8]> {
    scan::<avx2::Avx2>(url, slash)
}

/// Whether it certainly is a URL, in canonical form or not: its host needs no second look, and nothing behind
/// it is a control character, the one thing there that is refused.
#[inline(always)]
pub fn certain(url: &[u8]) -> bool {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi1") {
        #[target_feature(enable = "avx2,bmi1")]
        unsafe fn certain_avx2(url: &[u8]) -> bool {
            has_usual_host::<avx2::Avx2>(url)
        }
        // SAFETY: the processor has the instructions.
        return unsafe { certain_avx2(url) };
    }
    has_usual_host::<Portable>(url)
}

#[inline(always)]
fn has_usual_host<W: Windows>(url: &[u8]) -> bool {
    let host = scheme(url).and_then(|(host, _)| host_end(url, &Block::at::<W>(url, 0), host));
    let Some(path) = host.filter(|end| url.get(*end) == Some(&b'/')) else { return false };
    // Windows of one size, the last over a part of the one before: a compiler needs no loop for a rest.
    match url.last_chunk::<LANES>() {
        Some(last) => !any_control(last) && !url.chunks_exact(LANES).any(any_control),
        None => !any_control(&url[path..]),
    }
}

/// Not `any`: without a way out of the loop, many bytes are looked at together.
#[inline(always)]
fn any_control(bytes: &[u8]) -> bool {
    bytes.iter().fold(false, |any, byte| any | byte.is_ascii_control())
}

#[inline(always)]
fn scan<W: Windows>(url: &[u8], slash: impl FnMut(usize)) -> Option<&[u8]> {
    let (host, default_port) = scheme(url)?;
    let first = Block::at::<W>(url, 0);
    let mut path = host_end(url, &first, host)?;
    if url.get(path) == Some(&b':') {
        path = port(url, path + 1, default_port)?;
    }
    if path >= BLOCK || url.get(path) != Some(&b'/') {
        return None;
    }
    let (end, dotted) = path_and_query::<W>(url, first, path, slash)?;
    // An empty query goes, with its question mark.
    if url[end - 1] == b'?' && !url[..end - 1].contains(&b'?') {
        return None;
    }
    if dotted && has_dot_segments(&url[path..end]) {
        return None;
    }
    (!any_control(&url[end..])).then(|| &url[..end])
}

/// Where the host starts, and the port that its scheme implies.
#[inline(always)]
fn scheme(url: &[u8]) -> Option<(usize, u32)> {
    match url.first_chunk()? {
        b"https://" => Some((8, 443)),
        [b'h', b't', b't', b'p', b':', b'/', b'/', _] => Some((7, 80)),
        _ => None,
    }
}

/// The end of a host name that needs no second look: not an IP address, which has more spellings than
/// one, and no label that might be punycode (`xn--`).
#[inline(always)]
fn host_end(url: &[u8], block: &Block, start: usize) -> Option<usize> {
    let length = (!block.host >> start).trailing_zeros() as usize;
    let end = start + length;
    if end >= BLOCK {
        return None;
    }
    let within = (1 << end) - (1 << start);
    // Two hyphens may be punycode, two dots an empty label.
    let doubled = block.dot & block.dot << 1 | block.hyphen & block.hyphen << 1;
    // A host whose last label is a number is an IP address; a number starts with a digit.
    let label = (block.dot & within).checked_ilog2().map_or(start, |dot| dot as usize + 1);
    let named = label < end && url[label].is_ascii_lowercase();
    (doubled & within == 0 && named).then_some(end)
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

/// The end of path and query, and whether a segment may start with a dot; None if a byte is not as it
/// must be. The path starts in the first block.
#[inline(always)]
fn path_and_query<W: Windows>(
    url: &[u8],
    mut block: Block,
    path: usize,
    mut slash: impl FnMut(usize),
) -> Option<(usize, bool)> {
    let (mut at, mut start) = (path, 0);
    let (mut dotted, mut in_query) = (false, false);
    loop {
        // What of this block is still to be looked at, up to the first byte that is not simple.
        let ahead = !0 << (at - start);
        let other = !block.simple & ahead;
        let simple = ahead & (other & other.wrapping_neg()).wrapping_sub(1);
        dotted |= block.dot & block.slash << 1 & simple != 0;
        if !in_query {
            let question = block.question & simple;
            let in_path = simple & (question & question.wrapping_neg()).wrapping_sub(1);
            let mut slashes = block.slash & in_path;
            while slashes != 0 {
                slash(start + slashes.trailing_zeros() as usize);
                slashes &= slashes - 1;
            }
            in_query = question != 0;
        }
        if other == 0 {
            at = start + BLOCK;
            // A dot that starts the next block.
            dotted |= block.slash >> (BLOCK - 1) != 0;
        } else {
            at = start + other.trailing_zeros() as usize;
            if at == url.len() {
                return Some((at, dotted));
            }
            match url[at] {
                b'#' => return Some((at, dotted)),
                // Encoded in its one form?
                b'%' => {
                    let hidden = decoded(&url[at..])?;
                    let lower =
                        url[at + 1].is_ascii_lowercase() || url[at + 2].is_ascii_lowercase();
                    if lower || is(hidden, UNRESERVED) {
                        return None;
                    }
                    at += 3;
                }
                // Bare in a path, encoded in a query.
                b'\'' if !in_query => at += 1,
                // The few others that are as good.
                byte if is(byte, PATH) && is(byte, QUERY) => at += 1,
                _ => return None,
            }
        }
        if at >= start + BLOCK {
            start += BLOCK;
            if start >= url.len() {
                return Some((at, dotted));
            }
            block = Block::at::<W>(url, start);
        }
    }
}

/// Bytes whose masks are made together: two windows.
const BLOCK: usize = 64;
const LANES: usize = 32;

/// For some bytes of a URL, one bit each: what the byte is. No bit is set beyond the end.
#[derive(Clone, Copy, Default)]
struct Block {
    host: u64,
    simple: u64,
    slash: u64,
    dot: u64,
    hyphen: u64,
    question: u64,
}

/// A way to make the masks of 32 bytes.
trait Windows {
    fn masks(window: &[u8; LANES]) -> Block;
}

impl Block {
    /// The block that starts there, inside the URL. Close to the end it is read from earlier on, so that it
    /// needs no bytes that are not there.
    #[inline(always)]
    fn at<W: Windows>(url: &[u8], start: usize) -> Self {
        let ahead = &url[start..];
        let apart = BLOCK.min(ahead.len()).wrapping_sub(LANES);
        if let (Some(low), Some(high)) =
            (ahead.first_chunk(), ahead.get(apart..).and_then(|high| high.first_chunk()))
        {
            return W::masks(low).map(W::masks(high), |low, high| low | high << apart);
        }
        if let Some(last) = url.last_chunk() {
            return W::masks(last).map(Block::default(), |bits, _| bits >> (LANES - ahead.len()));
        }
        let mut padded = [0; LANES];
        padded[..ahead.len()].copy_from_slice(ahead);
        W::masks(&padded)
    }

    #[inline(always)]
    fn map(self, other: Block, with: impl Fn(u64, u64) -> u64) -> Self {
        Block {
            host: with(self.host, other.host),
            simple: with(self.simple, other.simple),
            slash: with(self.slash, other.slash),
            dot: with(self.dot, other.dot),
            hyphen: with(self.hyphen, other.hyphen),
            question: with(self.question, other.question),
        }
    }
}

/// Comparisons of single bytes, which a compiler makes a few instructions for many bytes together.
struct Portable;

impl Windows for Portable {
    // A call of its own: inside `plain` it would be there eight times, 58 KB for each caller.
    #[inline(never)]
    fn masks(window: &[u8; LANES]) -> Block {
        let mask = |test: fn(u8) -> bool| {
            let mut flags = [0; LANES];
            for (flag, byte) in flags.iter_mut().zip(window) {
                *flag = u8::from(test(*byte));
            }
            flags.iter().rev().fold(0, |bits, flag| bits << 1 | u64::from(*flag))
        };
        Block {
            host: mask(is_host),
            simple: mask(is_simple),
            slash: mask(|byte| byte == b'/'),
            dot: mask(|byte| byte == b'.'),
            hyphen: mask(|byte| byte == b'-'),
            question: mask(|byte| byte == b'?'),
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::{Block, LANES, Windows, is_host, is_simple};
    use std::arch::x86_64::*;

    /// Looks 32 bytes up at once, in a table that has a row of eight bits for each low half of a byte: bit h - 2
    /// tells whether the byte with the high half h belongs to the class. Bytes below 0x20 and above 0x7F do not.
    pub(super) struct Avx2;

    const fn table(host: bool) -> [u8; 16] {
        let mut table = [0; 16];
        let mut byte = 0x20u8;
        while byte < 0x80 {
            if if host { is_host(byte) } else { is_simple(byte) } {
                table[(byte & 15) as usize] |= 1 << ((byte >> 4) - 2);
            }
            byte += 1;
        }
        table
    }

    const HOST: [u8; 16] = table(true);
    const SIMPLE: [u8; 16] = table(false);
    const ROWS: [u8; 16] = [0, 0, 1, 2, 4, 8, 16, 32, 0, 0, 0, 0, 0, 0, 0, 0];

    impl Windows for Avx2 {
        #[inline(always)]
        fn masks(window: &[u8; LANES]) -> Block {
            // SAFETY: only `plain_avx2` uses this, which needs the instructions.
            unsafe { masks(window) }
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn masks(window: &[u8; LANES]) -> Block {
        // SAFETY: the arrays have 32 and 16 bytes.
        let (bytes, twice) = unsafe {
            let twice = |table: &[u8; 16]| {
                _mm256_broadcastsi128_si256(_mm_loadu_si128(table.as_ptr().cast()))
            };
            (
                _mm256_loadu_si256(window.as_ptr().cast()),
                [twice(&HOST), twice(&SIMPLE), twice(&ROWS)],
            )
        };
        let [host, simple, rows] = twice;
        let high = _mm256_and_si256(_mm256_srli_epi16::<4>(bytes), _mm256_set1_epi8(15));
        let row = _mm256_shuffle_epi8(rows, high);
        let bits = |flags| u64::from(_mm256_movemask_epi8(flags) as u32);
        let class = |table| {
            let found = _mm256_and_si256(_mm256_shuffle_epi8(table, bytes), row);
            bits(_mm256_cmpeq_epi8(found, _mm256_setzero_si256())) ^ 0xFFFF_FFFF
        };
        let is = |byte: u8| bits(_mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(byte as i8)));
        Block {
            host: class(host),
            simple: class(simple),
            slash: is(b'/'),
            dot: is(b'.'),
            hyphen: is(b'-'),
            question: is(b'?'),
        }
    }
}

#[inline(always)]
const fn is_host(byte: u8) -> bool {
    (byte.wrapping_sub(b'a') < 26)
        | (byte.wrapping_sub(b'0') < 10)
        | (byte.wrapping_sub(b'-') < 2)
        | (byte == b'_')
}

/// By comparisons instead of a table, which many bytes at a time cannot look into.
#[inline(always)]
const fn is_simple(byte: u8) -> bool {
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
    #[cfg(target_arch = "x86_64")]
    fn both_ways_make_the_same_masks() {
        if !is_x86_feature_detected!("avx2") {
            return;
        }
        for first in 0..=255u8 {
            let window: [u8; LANES] =
                std::array::from_fn(|i| first.wrapping_add((i * i) as u8 ^ 0x51));
            let (one, other) = (Portable::masks(&window), avx2::Avx2::masks(&window));
            let all = |b: Block| [b.host, b.simple, b.slash, b.dot, b.hyphen, b.question];
            assert_eq!(all(one), all(other), "{window:?}");
        }
    }

    #[test]
    fn simple_bytes_may_stand_in_a_path_and_in_a_query() {
        for byte in 0..=255 {
            let both = is(byte, PATH) && is(byte, QUERY);
            assert!(!is_simple(byte) || both || byte == b'?', "{byte:#x}");
            assert!(!is_host(byte) || is(byte, UNRESERVED) && !byte.is_ascii_uppercase());
        }
    }
}
