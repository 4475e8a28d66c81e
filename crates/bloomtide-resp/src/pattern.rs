//! Patterns of names: `*` any bytes, `?` one byte, `[a-c]` or `[^x]` one of some, `\` takes a mark as itself.
//! Time grows with the product of the two lengths at most.

/// Whether the name is of that pattern.
pub fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    // Where the last star stood and how much of the name it took: only the last one ever has to take more.
    let mut star: Option<(usize, usize)> = None;
    loop {
        if pattern.get(p) == Some(&b'*') {
            star = Some((p + 1, n));
            p += 1;
            continue;
        }
        match (name.get(n), one(&pattern[p..], name.get(n).copied())) {
            (None, _) if p == pattern.len() => return true,
            (Some(_), Some(len)) => (p, n) = (p + len, n + 1),
            _ => match star {
                Some((after, taken)) if taken < name.len() => {
                    star = Some((after, taken + 1));
                    (p, n) = (after, taken + 1);
                }
                _ => return false,
            },
        }
    }
}

/// The length of the pattern's first element, if the byte is of it.
fn one(pattern: &[u8], byte: Option<u8>) -> Option<usize> {
    let byte = byte?;
    match *pattern.first()? {
        b'?' => Some(1),
        b'[' => set(pattern, byte),
        b'\\' if pattern.len() > 1 => (pattern[1] == byte).then_some(2),
        literal => (literal == byte).then_some(1),
    }
}

fn set(pattern: &[u8], byte: u8) -> Option<usize> {
    let not = pattern.get(1) == Some(&b'^');
    let mut at = 1 + usize::from(not);
    let mut found = false;
    loop {
        match pattern.get(at) {
            // A set without an end goes to the end of the pattern.
            None | Some(b']') => {
                let end = (at + 1).min(pattern.len());
                return (found != not).then_some(end);
            }
            Some(b'\\') if at + 1 < pattern.len() => {
                found |= pattern[at + 1] == byte;
                at += 2;
            }
            Some(low) => match pattern.get(at + 1..at + 3) {
                Some([b'-', high]) if *high != b']' => {
                    let (low, high) = (*low.min(high), *low.max(high));
                    found |= (low..=high).contains(&byte);
                    at += 3;
                }
                _ => {
                    found |= *low == byte;
                    at += 1;
                }
            },
        }
    }
}
