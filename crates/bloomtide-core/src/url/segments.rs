//! The segments of a canonical URL, as the multi-layer filter of the paper sees it: the host, then the
//! path cut at each slash.

use memchr::{memchr, memchr2, memmem};

/// Cuts a canonical URL into at most `max_layers` segments.
///
/// `http://` and `https://` are dropped, so that both are one address; any other scheme stays with the
/// host. The query belongs to the last segment. What lies deeper than `max_layers` is not dropped:
/// the last segment holds all of it, slashes included.
pub fn segments(canonical: &[u8], max_layers: usize) -> impl Iterator<Item = &[u8]> {
    let web = [&b"https://"[..], b"http://"].into_iter();
    let url = web.filter_map(|scheme| canonical.strip_prefix(scheme)).next();
    let (url, host) = match url {
        Some(url) => (url, 0),
        None => (canonical, memmem::find(canonical, b"://").map_or(0, |mark| mark + 3)),
    };
    Segments {
        rest: Some(url),
        search: host,
        path: memchr2(b'?', b'#', url).unwrap_or(url.len()),
        left: max_layers.max(1),
    }
}

struct Segments<'a> {
    rest: Option<&'a [u8]>,
    /// Where the next slash may be: past the scheme, in the first segment.
    search: usize,
    /// Bytes of the rest before its query.
    path: usize,
    left: usize,
}

impl<'a> Iterator for Segments<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest.take()?;
        self.left -= 1;
        let search = self.search.min(self.path);
        let slash = if self.left == 0 { None } else { memchr(b'/', &rest[search..self.path]) };
        let Some(slash) = slash else { return Some(rest) };
        let slash = search + slash;
        self.rest = Some(&rest[slash + 1..]);
        self.path -= slash + 1;
        self.search = 0;
        Some(&rest[..slash])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(url: &str, max_layers: usize) -> Vec<String> {
        let own = |segment| String::from_utf8_lossy(segment).into_owned();
        segments(url.as_bytes(), max_layers).map(own).collect()
    }

    #[test]
    fn a_url_is_its_host_and_the_parts_of_its_path() {
        for (url, expected) in [
            ("http://h/", &["h", ""][..]),
            ("https://h:8080/a/b", &["h:8080", "a", "b"]),
            ("https://h/a/", &["h", "a", ""]),
            ("https://h/a//b", &["h", "a", "", "b"]),
            ("https://h/a?to=/x/y", &["h", "a?to=/x/y"]),
            ("https://h/?a/b", &["h", "?a/b"]),
            ("ftp://h/a", &["ftp://h", "a"]),
            ("https://me:pw@h/a#b/c", &["me:pw@h", "a#b/c"]),
            ("h", &["h"]),
            ("x://?a/b", &["x://?a/b"]),
            ("", &[""]),
        ] {
            assert_eq!(of(url, 64), expected, "{url}");
        }
    }

    #[test]
    fn what_lies_too_deep_is_joined_into_the_last_segment() {
        assert_eq!(of("http://h/a/b/c?d/e", 3), ["h", "a", "b/c?d/e"]);
        assert_eq!(of("http://h/a/b/c?d/e", 4), ["h", "a", "b", "c?d/e"]);
        assert_eq!(of("ftp://h/a", 1), ["ftp://h/a"]);
        assert_eq!(of("http://h/a", 0), ["h/a"], "as one layer: something must hold the URL");
    }
}
