//! Members of a JSON object by their names; dots lead into objects.

use crate::logs::json::{Scanner, Value, unescape};
use memchr::memchr;

/// Objects within objects that are looked into.
const DEEPEST: usize = 24;

type Names<'a> = [Option<&'a [u8]>; 2];

/// The members of those names as they are written; None if the line is no JSON object. A name
/// that comes twice counts as the last one, and `null` as not there.
pub(super) fn find<'a>(line: &'a [u8], names: Names<'_>) -> Option<[Option<&'a [u8]>; 2]> {
    let mut scanner = Scanner::new(line);
    let mut found = [None; 2];
    object(&mut scanner, names, &mut found, 0)?;
    scanner.ends()?;
    Some(found)
}

fn object<'a>(
    scanner: &mut Scanner<'a>,
    names: Names<'_>,
    found: &mut [Option<&'a [u8]>; 2],
    depth: usize,
) -> Option<()> {
    let mut unescaped = Vec::new();
    scanner.object(|scanner, member| {
        let member = match member {
            Value::Escaped(inner) => {
                unescaped.clear();
                unescape(inner, &mut unescaped);
                unescaped.as_slice()
            }
            Value::Plain(inner) => inner,
            Value::Number(_) | Value::Other => return None,
        };
        let rests = names.map(|name| name.and_then(|name| name.strip_prefix(member)));
        let inner = rests.map(|rest| rest.and_then(|rest| rest.strip_prefix(b".")));
        if depth < DEEPEST && inner.iter().any(Option::is_some) && scanner.at_object() {
            return object(scanner, inner, found, depth + 1);
        }
        let text = scanner.text(depth + 1)?;
        for (slot, rest) in found.iter_mut().zip(rests) {
            if rest.is_some_and(<[u8]>::is_empty) {
                *slot = (text != b"null").then_some(text);
            }
        }
        Some(())
    })
}

/// What a value says: a string without its quotes and escapes, anything else as it is written.
pub(super) fn text<'a>(value: &'a [u8], buffer: &'a mut Vec<u8>) -> &'a [u8] {
    let Some(inner) = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\"")) else {
        return value;
    };
    if memchr(b'\\', inner).is_none() {
        return inner;
    }
    buffer.clear();
    unescape(inner, buffer);
    buffer
}
