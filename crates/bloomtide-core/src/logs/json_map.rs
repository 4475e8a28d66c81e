//! Logs of one JSON object a line: a map says under which names the fields are.
//!
//! `path=request.uri|uri, time=ts` reads the path from `{"request": {"uri": …}}`, or else from
//! `{"uri": …}`, and the time from `{"ts": …}`. A dotted name also means a member whose own name
//! has the dots. CADDY is such a log with a map that is known.

use super::json::{self, MOST, Scanner, Value, unescape};
use super::{Field, Record, is_status, present, target, time};
use crate::{Error, Result};

const HINT: &str = "for example `path=request_uri,time=time_iso8601,ip=remote_addr`";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Time,
    Field(Field),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Name {
    role: Role,
    /// As the user wrote it, with dots.
    text: Vec<u8>,
}

/// Where a JSON log keeps its fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldMap {
    /// The best name of a field first.
    names: Vec<Name>,
    /// A line without time and path is no access line.
    strict: bool,
}

impl FieldMap {
    /// Reads `field=name|name,field=name`. The fields are those of a record; `url` is another word
    /// for `path`, `ts` for `time`.
    pub fn parse(text: &str) -> Result<Self> {
        let refuse = |got: &str| Err(Error::parameter("json_map", got, "`field=name` pairs", HINT));
        let mut names: Vec<Name> = Vec::new();
        for pair in text.split(',') {
            let Some((field, alternatives)) = pair.split_once('=') else { return refuse(pair) };
            let role = match field.trim() {
                "time" | "ts" => Role::Time,
                "url" => Role::Field(Field::Path),
                name => match Field::parse(name) {
                    Ok(field) => Role::Field(field),
                    Err(_) => return refuse(pair),
                },
            };
            if names.iter().any(|name| name.role == role) {
                return refuse(pair);
            }
            for name in alternatives.split('|').map(str::trim) {
                if name.is_empty() || names.len() == MOST {
                    return refuse(pair);
                }
                names.push(Name { role, text: name.as_bytes().to_vec() });
            }
        }
        Ok(FieldMap { names, strict: false })
    }

    /// The access log of Caddy 2.
    pub fn caddy() -> Self {
        const MAP: &str = "time=ts, host=request.host, ip=request.client_ip|request.remote_ip, \
            path=request.uri, status=status, referer=request.headers.Referer";
        // Its map is a good one.
        let names = FieldMap::parse(MAP).map_or_else(|_| Vec::new(), |map| map.names);
        FieldMap { names, strict: true }
    }

    /// One line. It must be an object and hold a field of the map; a time must be one.
    pub fn read<'a>(&self, line: &'a [u8], scratch: &'a mut Vec<u8>) -> Option<Record<'a>> {
        let (mut names, mut found) = ([None; MOST], [None; MOST]);
        names.iter_mut().zip(&self.names).for_each(|(to, name)| *to = Some(name.text.as_slice()));
        json::find(line, &names[..self.names.len()], &mut found)?;
        scratch.clear();
        let mut spans = [None; MOST];
        for (span, value) in spans.iter_mut().zip(&found) {
            let value = value.and_then(|text| Scanner::new(text).value(0));
            *span = value.and_then(|value| Span::of(value, scratch));
        }
        let scratch: &'a [u8] = scratch;
        let mut record = Record::default();
        let mut any = false;
        for (name, span) in self.names.iter().zip(spans) {
            let Some(text) = span.and_then(|span| present(span.text(scratch))) else { continue };
            any = true;
            match name.role {
                Role::Time => record.time = record.time.or(Some(time::any(text)?)),
                Role::Field(field) => put(&mut record, field, text),
            }
        }
        record.host = record.host.or_else(|| record.path.and_then(target::host_of_url));
        let whole = !self.strict || (record.time.is_some() && record.path.is_some());
        (any && whole).then_some(record)
    }
}

/// The first name that has a value wins.
fn put<'a>(record: &mut Record<'a>, field: Field, text: &'a [u8]) {
    let place = match field {
        Field::Host => &mut record.host,
        Field::Ip => &mut record.ip,
        Field::Path => &mut record.path,
        Field::Status if !is_status(text) => return,
        Field::Status => &mut record.status,
        Field::Referer => &mut record.referer,
    };
    *place = place.or(Some(text));
}

/// A value in the line, or where it was written to once its escapes were read.
#[derive(Clone, Copy)]
enum Span<'a> {
    Line(&'a [u8]),
    Scratch(usize, usize),
}

impl<'a> Span<'a> {
    fn of(value: Value<'a>, scratch: &mut Vec<u8>) -> Option<Self> {
        match value {
            Value::Plain(text) | Value::Number(text) => Some(Span::Line(text)),
            Value::Escaped(inner) => {
                let start = scratch.len();
                unescape(inner, scratch);
                Some(Span::Scratch(start, scratch.len()))
            }
            Value::Other => None,
        }
    }

    fn text(self, scratch: &'a [u8]) -> &'a [u8] {
        match self {
            Span::Line(text) => text,
            Span::Scratch(start, end) => &scratch[start..end],
        }
    }
}
