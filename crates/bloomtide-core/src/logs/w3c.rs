//! W3C extended logs (IIS) and CloudFront's: a line `#Fields:` names the columns that follow.
//!
//! Columns are separated by tabs (CloudFront) or blanks (IIS), whichever the line has; a column in
//! double quotes may hold blanks. Dates and times are UTC.

use super::{Record, is_status, present, time};
use memchr::memchr;

/// What the directives have said so far.
#[derive(Debug, Default)]
pub struct Columns {
    roles: Vec<Option<Role>>,
    /// Of `#Date:`, for logs that only have a column `time`.
    day: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Date,
    Time,
    Stamp,
    Host,
    ViewerHost,
    Ip,
    Stem,
    Query,
    Status,
    Referer,
}

/// The marks of a directive and of its name.
const FIELDS: &[u8] = b"#Fields:";
const DATE: &[u8] = b"#Date:";

/// Whether the line says which columns follow.
pub fn names_fields(line: &[u8]) -> bool {
    line.starts_with(FIELDS)
}

impl Columns {
    /// Takes a line `#…` along: the columns, the day, or a remark.
    pub fn direct(&mut self, line: &[u8]) {
        if let Some(names) = line.strip_prefix(FIELDS) {
            let names = names.split(|byte| matches!(byte, b' ' | b'\t'));
            self.roles = names.filter(|name| !name.is_empty()).map(role).collect();
        } else if let Some(date) = line.strip_prefix(DATE) {
            self.day = date.trim_ascii().get(..10).and_then(time::day);
        }
    }

    /// A line of data; it must have as many columns as were named.
    pub fn parse<'a>(&self, line: &'a [u8], scratch: &'a mut Vec<u8>) -> Option<Record<'a>> {
        let mut record = Record::default();
        let (mut day, mut clock, mut stamp) = (self.day, None, None);
        let (mut stem, mut query, mut viewer_host) = (None, None, None);
        let mut columns = Split::new(line);
        for role in &self.roles {
            let value = columns.next()?;
            let (Some(role), Some(value)) = (role, present(value)) else { continue };
            match role {
                Role::Date => day = Some(time::day(value)?),
                Role::Time => {
                    clock = Some(time::time_of_day(value).filter(|(_, rest)| rest.is_empty())?.0)
                }
                Role::Stamp => stamp = Some(time::any(value)?),
                Role::Host => record.host = Some(value),
                Role::ViewerHost => viewer_host = Some(value),
                Role::Ip => record.ip = Some(value),
                Role::Stem => stem = Some(value),
                Role::Query => query = Some(value),
                Role::Status => record.status = Some(value).filter(|value| is_status(value)),
                Role::Referer => record.referer = Some(value),
            }
        }
        if self.roles.is_empty() || columns.next().is_some() {
            return None;
        }
        // CloudFront's own name for the distribution says less than the name the viewer asked for.
        record.host = viewer_host.or(record.host);
        record.time = stamp.or_else(|| Some(day? as f64 * 86_400.0 + clock?));
        record.path = match (stem, query) {
            (Some(stem), Some(query)) => {
                scratch.clear();
                scratch.extend_from_slice(stem);
                scratch.push(b'?');
                scratch.extend_from_slice(query);
                Some(scratch)
            }
            (stem, _) => stem,
        };
        Some(record)
    }
}

/// Names are compared without case: `cs(referer)` and `cs(Referer)` both exist.
fn role(name: &[u8]) -> Option<Role> {
    Some(match name.to_ascii_lowercase().as_slice() {
        b"date" => Role::Date,
        b"time" => Role::Time,
        b"timestamp" | b"timestamp(ms)" => Role::Stamp,
        b"cs-host" | b"cs(host)" => Role::Host,
        b"x-host-header" => Role::ViewerHost,
        b"c-ip" => Role::Ip,
        b"cs-uri-stem" | b"cs-uri" => Role::Stem,
        b"cs-uri-query" => Role::Query,
        b"sc-status" => Role::Status,
        b"cs(referer)" | b"cs-referer" | b"cs-referrer" => Role::Referer,
        _ => return None,
    })
}

/// The columns of a line.
struct Split<'a> {
    rest: Option<&'a [u8]>,
    mark: u8,
}

impl<'a> Split<'a> {
    fn new(line: &'a [u8]) -> Self {
        let mark = if memchr(b'\t', line).is_some() { b'\t' } else { b' ' };
        Split { rest: Some(line), mark }
    }
}

impl<'a> Iterator for Split<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest?;
        if let Some(inner) = rest.strip_prefix(b"\"")
            && let Some(close) = memchr(b'"', inner)
            && inner.get(close + 1).is_none_or(|next| *next == self.mark)
        {
            self.rest = inner.get(close + 2..);
            return Some(&inner[..close]);
        }
        let end = memchr(self.mark, rest);
        self.rest = end.map(|end| &rest[end + 1..]);
        Some(&rest[..end.unwrap_or(rest.len())])
    }
}
