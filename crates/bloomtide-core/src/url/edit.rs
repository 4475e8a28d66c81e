//! What the options do to a canonical URL: they take parts away, or put the query in order.

use super::names::{Names, decode};
use super::percent::{UNRESERVED, encode, is};
use super::{Canon, Slash};
use memchr::{memchr, memchr2, memmem};

/// Whether the options may change this canonical URL; when in doubt, yes.
pub fn may_change(canonical: &[u8], options: &Canon) -> bool {
    let query = options.sort_query || options.drop_sessions || !options.drop_tracking.is_empty();
    let parts = Parts::of(canonical);
    query && !parts.query.is_empty()
        || options.trailing_slash == Slash::Drop
            && parts.path.len() > 1
            && parts.path.ends_with(b"/")
        || options.drop_sessions && memchr2(b';', b'(', parts.path).is_some()
}

/// Applies the options to a canonical URL.
pub fn edit(canonical: &mut Vec<u8>, options: &Canon) {
    let parts = Parts::of(canonical);
    let mut out = Vec::with_capacity(canonical.len());
    out.extend_from_slice(parts.origin);
    let path = out.len();
    if options.drop_sessions {
        without_sessions(parts.path, &mut out);
    } else {
        out.extend_from_slice(parts.path);
    }
    if options.trailing_slash == Slash::Drop {
        while out.len() > path + 1 && out.ends_with(b"/") {
            out.pop();
        }
    }
    let question = out.len();
    out.push(b'?');
    query(parts.query, options, &mut out);
    if out.len() == question + 1 {
        out.pop();
    }
    out.extend_from_slice(parts.fragment);
    *canonical = out;
}

struct Parts<'a> {
    /// Scheme, user, host and port.
    origin: &'a [u8],
    path: &'a [u8],
    /// Without its question mark.
    query: &'a [u8],
    /// With its hash.
    fragment: &'a [u8],
}

impl<'a> Parts<'a> {
    fn of(canonical: &'a [u8]) -> Self {
        let (front, fragment) =
            canonical.split_at(memchr(b'#', canonical).unwrap_or(canonical.len()));
        let (address, query) = front.split_at(memchr(b'?', front).unwrap_or(front.len()));
        let host = memmem::find(address, b"://").map_or(0, |mark| mark + 3);
        let path = memchr(b'/', &address[host..]).map_or(address.len(), |slash| host + slash);
        let (origin, path) = address.split_at(path);
        Parts { origin, path, query: query.get(1..).unwrap_or_default(), fragment }
    }
}

/// The path without `;jsessionid=...` and its like, and without the segments `(S(...))` of ASP.NET.
fn without_sessions(path: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    for segment in path.get(1..).unwrap_or_default().split(|&byte| byte == b'/') {
        let mut parts = segment.split(|&byte| byte == b';');
        let mut kept = parts.next().unwrap_or_default().to_vec();
        for parameter in parts.filter(|parameter| !Names::sessions().hold(parameter)) {
            kept.push(b';');
            kept.extend_from_slice(parameter);
        }
        if kept.starts_with(b"(S(") && kept.ends_with(b"))") {
            continue;
        }
        out.push(b'/');
        // It must not become what would have been resolved before.
        let dots = kept == b"." || kept == b"..";
        out.extend_from_slice(if dots { segment } else { &kept });
    }
    if out.len() == start {
        out.push(b'/');
    }
}

/// The query without the fields to be dropped, sorted if asked for.
fn query(query: &[u8], options: &Canon, out: &mut Vec<u8>) {
    let start = out.len();
    let dropped = |field: &&[u8]| {
        options.drop_tracking.hold(field) || options.drop_sessions && Names::sessions().hold(field)
    };
    let fields = query.split(|&byte| byte == b'&').filter(|field| !dropped(field));
    if !options.sort_query {
        fields.enumerate().for_each(|(row, field)| {
            if row > 0 {
                out.push(b'&');
            }
            out.extend_from_slice(field);
        });
        return;
    }
    // As a form is read: so `a+b` and `a%20b`, `a` and `a=` are one.
    let mut form: Vec<(Vec<u8>, Vec<u8>)> = fields
        .filter(|field| !field.is_empty())
        .map(|field| {
            let (name, value) = field.split_at(memchr(b'=', field).unwrap_or(field.len()));
            (decode(name), decode(value.get(1..).unwrap_or_default()))
        })
        .collect();
    form.sort_unstable();
    for (name, value) in form {
        if out.len() > start {
            out.push(b'&');
        }
        encode_field(&name, out);
        out.push(b'=');
        encode_field(&value, out);
    }
}

fn encode_field(plain: &[u8], out: &mut Vec<u8>) {
    for &byte in plain {
        match byte {
            b' ' => out.push(b'+'),
            byte if is(byte, UNRESERVED) => out.push(byte),
            byte => encode(byte, out),
        }
    }
}
