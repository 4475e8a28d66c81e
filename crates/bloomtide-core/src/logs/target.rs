//! The host inside a request target: `https://host/…`, or `host:443` after CONNECT.

use memchr::{memchr, memmem, memrchr};

/// The host of an absolute URL; `None` for a mere path.
pub fn host_of_url(target: &[u8]) -> Option<&[u8]> {
    if target.first() == Some(&b'/') {
        return None;
    }
    // A scheme is short; a "://" further on belongs to a query.
    let scheme = memmem::find(&target[..target.len().min(16)], b"://")?;
    let rest = &target[scheme + 3..];
    let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?' | b'#'));
    host_of_authority(&rest[..end.unwrap_or(rest.len())])
}

/// The host of `user@host:port`; an IPv6 address keeps its brackets.
pub fn host_of_authority(authority: &[u8]) -> Option<&[u8]> {
    let host = memrchr(b'@', authority).map_or(authority, |at| &authority[at + 1..]);
    let end = if host.first() == Some(&b'[') {
        memchr(b']', host).map_or(host.len(), |close| close + 1)
    } else {
        memchr(b':', host).unwrap_or(host.len())
    };
    super::present(&host[..end])
}
