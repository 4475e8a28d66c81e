//! Bare lines: each is a page of its own, a URL or whatever the user counts. No time.

use super::target::host_of_url;
use super::{Record, present};
use memchr::memmem;

/// The line is the path; a URL also has a host.
pub fn parse(line: &[u8]) -> Option<Record<'_>> {
    let path = present(line)?;
    Some(Record { path: Some(path), host: host_of_url(path), ..Record::default() })
}

/// Whether an unknown line is a URL or a path: anything at all would be a bare line, so a guess must
/// ask for more.
pub fn looks_like_a_page(line: &[u8]) -> bool {
    let plain = line.iter().all(|byte| *byte > b' ' && *byte != 0x7f);
    plain && (line.first() == Some(&b'/') || memmem::find(line, b"://").is_some())
}
