//! Percent-encoding in its one form: upper-case digits, nothing encoded that need not be, everything
//! encoded that must be.
//!
//! RFC 3986 says which bytes mean themselves: the unreserved ones are the same address with and
//! without encoding, so they are decoded. A reserved one (`/`, `&`, `+`, ...) is a delimiter when it is
//! bare and data when it is encoded, so it stays as it was written. All other bytes are encoded.

/// Letters, digits, `-`, `.`, `_` and `~`: RFC 3986, section 2.3.
pub const UNRESERVED: u8 = 1;
/// May stand in a path.
pub const PATH: u8 = 2;
/// May stand in a query. Browsers encode the apostrophe there, so it is left out.
pub const QUERY: u8 = 4;
/// May stand in a fragment.
pub const FRAGMENT: u8 = 8;
/// May stand in a user name, a password or the host of a scheme that the web does not know.
pub const NAME: u8 = 16;

/// The classes of each byte.
pub static CLASS: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut class = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let b = byte as u8;
        if b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b'~') {
            class[byte] = UNRESERVED | PATH | QUERY | FRAGMENT | NAME;
        }
        // The sub-delims of RFC 3986.
        if matches!(b, b'!' | b'$' | b'&' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'=') {
            class[byte] = PATH | QUERY | FRAGMENT | NAME;
        }
        if matches!(b, b':' | b'@' | b'/') {
            class[byte] = PATH | QUERY | FRAGMENT;
        }
        byte += 1;
    }
    class[b'\'' as usize] = PATH | FRAGMENT | NAME;
    class[b'?' as usize] = QUERY | FRAGMENT;
    class
}

/// Whether the byte belongs to any of these classes.
#[inline(always)]
pub fn is(byte: u8, classes: u8) -> bool {
    CLASS[byte as usize] & classes != 0
}

/// The byte that a text starting with `%XX` stands for.
pub fn decoded(text: &[u8]) -> Option<u8> {
    match *text {
        [b'%', high, low, ..] => {
            let high = char::from(high).to_digit(16)?;
            let low = char::from(low).to_digit(16)?;
            Some((high * 16 + low) as u8)
        }
        _ => None,
    }
}

/// Writes `%XX`.
pub fn encode(byte: u8, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    out.extend([b'%', DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
}

/// Writes a component in its one form, in which the bytes of `bare` need no encoding.
///
/// A `%` that starts no encoded byte becomes `%25`: decoding what follows it could otherwise make one.
pub fn normalise(component: &[u8], bare: u8, out: &mut Vec<u8>) {
    let mut rest = component;
    while let Some(&byte) = rest.first() {
        match decoded(rest) {
            Some(hidden) => {
                if is(hidden, UNRESERVED) {
                    out.push(hidden);
                } else {
                    encode(hidden, out);
                }
                rest = &rest[3..];
            }
            None => {
                if is(byte, bare) {
                    out.push(byte);
                } else {
                    encode(byte, out);
                }
                rest = &rest[1..];
            }
        }
    }
}
