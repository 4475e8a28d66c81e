//! Squid's native access log:
//!
//! ```text
//! 1066036250.129    543 192.0.2.1 TCP_MISS/200 4210 GET http://example.org/a - DIRECT/198.51.100.7 text/html
//! time.ms       elapsed client    code/status bytes method URL             user peer             type
//! ```

use super::target::{host_of_authority, host_of_url};
use super::{Record, is_status, present, time};
use memchr::memrchr;

/// One line; at least its first seven columns must be there.
pub fn parse(line: &[u8]) -> Option<Record<'_>> {
    let mut columns = line.split(|byte| *byte == b' ').filter(|column| !column.is_empty());
    let time = time::seconds(columns.next()?)?;
    let elapsed = columns.next()?;
    // A clock that was set back makes the time taken negative.
    if !elapsed.strip_prefix(b"-").unwrap_or(elapsed).iter().all(u8::is_ascii_digit) {
        return None;
    }
    let ip = columns.next()?;
    let result = columns.next()?;
    let status = &result[memrchr(b'/', result)? + 1..];
    if !is_status(status) || !columns.next()?.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let method = columns.next()?;
    let url = columns.next()?;
    let host = if method == b"CONNECT" { host_of_authority(url) } else { host_of_url(url) };
    Some(Record {
        time: Some(time),
        host,
        ip: present(ip),
        path: present(url),
        status: Some(status),
        referer: None,
    })
}
