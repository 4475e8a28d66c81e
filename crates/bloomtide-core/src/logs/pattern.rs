//! Formats that users write down, as nginx (`log_format`) or GoAccess (`--log-format`) spell them:
//!
//! ```text
//! $remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent
//! %h %^[%d:%t %^] "%r" %s %b "%R" "%u"
//! ```
//!
//! A value ends where the text that follows it in the format begins; the last one at the line's end.

use super::target::{host_of_authority, host_of_url};
use super::time::{self, ClfClock};
use super::{Field, Record, clf, is_status, present};
use crate::{Error, Result};
use memchr::memchr_iter;

const ALLOWED: &str = "the name of a format, or one written as nginx or GoAccess do";

/// What a value is taken as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Skip,
    /// Any number of blanks: GoAccess's `%~`.
    Blanks,
    /// A whole time.
    Time,
    Date,
    Clock,
    /// What follows a clock: a zone, if it is one.
    Zone,
    /// `GET /a HTTP/1.1`
    Request,
    /// What follows the `?` of a path.
    Query,
    Field(Field),
}

/// How the lines of one log are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// The text before the first value.
    start: Vec<u8>,
    /// Each value, and the text behind it.
    values: Vec<(Role, Vec<u8>)>,
}

impl Pattern {
    /// Reads a format; `None` for a text that can only be a name.
    pub fn parse(text: &str) -> Result<Option<Self>> {
        let nginx = text.contains('$');
        if !nginx && !text.contains('%') {
            return Ok(None);
        }
        // As Apache's and GoAccess's own files have them.
        let plain = text.replace("\\\"", "\"").replace("\\t", "\t");
        let mut pattern = Pattern { start: Vec::new(), values: Vec::new() };
        let mut rest = plain.as_str();
        while let Some(next) = rest.chars().next() {
            rest = &rest[next.len_utf8()..];
            let role = match next {
                '$' if nginx => {
                    let (name, after) = variable(rest);
                    if name.is_empty() {
                        return refuse(text, "`$` needs the name of a variable");
                    }
                    rest = after;
                    of_variable(name)
                }
                '%' if !nginx => {
                    let Some(letter) = rest.chars().next() else {
                        return refuse(text, "`%` needs a letter");
                    };
                    rest = &rest[letter.len_utf8()..];
                    match of_letter(letter) {
                        Some(role) => role,
                        None if letter == '%' => {
                            pattern.text_behind().push(b'%');
                            continue;
                        }
                        None => {
                            let hint = "GoAccess's letters are %x %d %t %h %v %r %U %q %s %R, %~ for \
                                blanks, and %^ for what does not matter";
                            return refuse(text, hint);
                        }
                    }
                }
                other => {
                    let mut bytes = [0; 4];
                    let text = pattern.text_behind();
                    text.extend(other.encode_utf8(&mut bytes).as_bytes());
                    continue;
                }
            };
            pattern.push(role).or_else(|hint| refuse(text, hint))?;
        }
        let counts = |(role, _): &(Role, _)| matches!(role, Role::Request | Role::Field(_));
        if !pattern.values.iter().any(counts) {
            return refuse(text, "name the request, its path, the host, the address or the status");
        }
        Ok(Some(pattern))
    }

    /// The text at the end so far.
    fn text_behind(&mut self) -> &mut Vec<u8> {
        self.values.last_mut().map_or(&mut self.start, |(_, text)| text)
    }

    fn push(&mut self, role: Role) -> std::result::Result<(), &'static str> {
        let role = match self.values.last() {
            Some((before, text)) if text.is_empty() && *before != Role::Blanks => {
                return Err("text must stand between two values, or nobody knows where one ends");
            }
            Some((Role::Clock, text)) if role == Role::Skip && text == b" " => Role::Zone,
            _ => role,
        };
        self.values.push((role, Vec::new()));
        Ok(())
    }

    /// One line: all texts must be there in order, and times and the status must be such.
    pub fn read<'a>(
        &self,
        line: &'a [u8],
        clock: &mut ClfClock,
        scratch: &'a mut Vec<u8>,
    ) -> Option<Record<'a>> {
        let mut rest = line.strip_prefix(self.start.as_slice())?;
        let mut record = Record::default();
        let (mut date, mut hour, mut east, mut query) = (None, None, 0, None);
        for (role, end) in &self.values {
            if *role == Role::Blanks {
                rest = rest.trim_ascii_start().strip_prefix(end.as_slice())?;
                continue;
            }
            let (value, after) = split(rest, end)?;
            rest = after;
            match role {
                Role::Time => record.time = Some(moment(value, clock)?),
                Role::Date => date = Some(time::day(value).or_else(|| time::clf_day(value))?),
                Role::Clock => hour = Some(time::time_of_day(value)?.0),
                Role::Zone => east = time::zone(value).unwrap_or(0),
                Role::Query => query = present(value),
                Role::Request => record.path = clf::target(value),
                Role::Field(Field::Path) => record.path = present(value),
                Role::Field(Field::Host) => record.host = host_of_authority(value),
                Role::Field(Field::Ip) => record.ip = present(value),
                Role::Field(Field::Referer) => record.referer = present(value),
                Role::Field(Field::Status) if !is_status(value) => return None,
                Role::Field(Field::Status) => record.status = Some(value),
                Role::Skip | Role::Blanks => {}
            }
        }
        if let Some(date) = date {
            let seconds = (date * 86_400 - east) as f64 + hour.unwrap_or(0.0);
            record.time = Some(time::checked(seconds)?);
        }
        if let (Some(path), Some(query)) = (record.path, query) {
            scratch.clear();
            for part in [path, if query.starts_with(b"?") { b"" } else { b"?" }, query] {
                scratch.extend_from_slice(part);
            }
            record.path = Some(scratch);
        }
        record.host = record.host.or_else(|| record.path.and_then(host_of_url));
        Some(record)
    }
}

fn refuse<T>(text: &str, hint: &'static str) -> Result<T> {
    Err(Error::parameter("format", text, ALLOWED, hint))
}

/// `name`, or `{name}`, and what follows.
fn variable(text: &str) -> (&str, &str) {
    let inner = text.strip_prefix('{').unwrap_or(text);
    let length = inner.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let (name, rest) = inner.split_at(length.unwrap_or(inner.len()));
    (name, if inner.len() < text.len() { rest.strip_prefix('}').unwrap_or(rest) } else { rest })
}

/// nginx has hundreds of variables: those that are not known here are skipped.
fn of_variable(name: &str) -> Role {
    match name {
        "time_local" | "time_iso8601" | "msec" => Role::Time,
        "request" => Role::Request,
        "request_uri" | "uri" => Role::Field(Field::Path),
        "args" | "query_string" => Role::Query,
        "remote_addr" => Role::Field(Field::Ip),
        "host" | "http_host" | "server_name" => Role::Field(Field::Host),
        "status" => Role::Field(Field::Status),
        "http_referer" => Role::Field(Field::Referer),
        _ => Role::Skip,
    }
}

fn of_letter(letter: char) -> Option<Role> {
    Some(match letter {
        'x' => Role::Time,
        'd' => Role::Date,
        't' => Role::Clock,
        'h' => Role::Field(Field::Ip),
        'v' => Role::Field(Field::Host),
        'r' => Role::Request,
        'U' => Role::Field(Field::Path),
        'q' => Role::Query,
        's' => Role::Field(Field::Status),
        'R' => Role::Field(Field::Referer),
        '~' => Role::Blanks,
        '^' | 'b' | 'C' | 'D' | 'e' | 'H' | 'k' | 'K' | 'L' | 'm' | 'M' | 'n' | 'T' | 'u' => {
            Role::Skip
        }
        _ => return None,
    })
}

/// A value, and what follows the text that ends it. A quote that is escaped ends nothing.
fn split<'a>(rest: &'a [u8], end: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let Some(first) = end.first() else { return Some((rest, b"")) };
    let at = memchr_iter(*first, rest).find(|at| {
        rest[*at..].starts_with(end) && !(*first == b'"' && clf::is_escaped(&rest[..*at]))
    })?;
    Some((&rest[..at], &rest[at + end.len()..]))
}

/// A whole time; the lines of one second have the same text.
fn moment(text: &[u8], clock: &mut ClfClock) -> Option<f64> {
    match text.first_chunk::<26>() {
        Some(clf) if text.len() == 26 && clf[2] == b'/' => clock.read(clf),
        _ => time::any(text),
    }
}
