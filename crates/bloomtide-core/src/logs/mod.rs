//! Web and proxy logs, read without Python and without regular expressions.
//!
//! Bytes come in chunks of any size, one borrowed [`Record`] goes out for each line:
//!
//! ```text
//! chunk -> lines -> parser of the format -> Record -> the caller's function, or what counts keys
//! ```
//!
//! One file for each family of formats: [`clf`] (COMMON, COMBINED and their forms with a host),
//! [`squid`], [`w3c`] (also CloudFront), [`json_map`] (JSON lines by a map, CADDY), [`pattern`] (as
//! the user wrote it down), [`bare`].
//! Invariants, tested with arbitrary bytes:
//!
//! 1. How the bytes are cut into chunks changes nothing.
//! 2. No bytes can panic, and no line takes more than linear time or more than [`MAX_LINE`] bytes.
//! 3. A line that is not understood is counted, and the first few are kept to be shown.
//!
//! Fields are slices of the line as it was logged: nothing is decoded except JSON's own escapes.

mod bare;
mod clf;
mod counter;
pub(crate) mod json;
mod json_map;
mod lines;
mod parser;
mod pattern;
mod reader;
mod squid;
mod target;
pub(crate) mod time;
mod w3c;

pub use counter::{Choice, LogCounter, Sink, Tally};
pub use json_map::FieldMap;
pub use lines::{MAX_LINE, count_lines};
pub use parser::Format;
pub use pattern::Pattern;
pub use reader::{BadLine, LogReader, Reason, Report};

use crate::named::named;

/// What one line says. A field that the format lacks, or that was logged as `-`, is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Record<'a> {
    /// Unix seconds.
    pub time: Option<f64>,
    /// The site asked for.
    pub host: Option<&'a [u8]>,
    /// The client's address, or its name if the server looked that up.
    pub ip: Option<&'a [u8]>,
    /// What was asked for: a path with its query, or a whole URL in a proxy's log.
    pub path: Option<&'a [u8]>,
    /// The status code: one to three digits.
    pub status: Option<&'a [u8]>,
    /// The page that linked here.
    pub referer: Option<&'a [u8]>,
}

/// The fields by which lines can be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// [`Record::host`].
    Host,
    /// [`Record::ip`].
    Ip,
    /// [`Record::path`].
    Path,
    /// [`Record::status`].
    Status,
    /// [`Record::referer`].
    Referer,
}

named! {
    Field: "by", "path, host, ip, status or referer", "`path` counts pages";
    Host = "host", Ip = "ip", Path = "path", Status = "status", Referer = "referer"
}

impl<'a> Record<'a> {
    /// The value of a field.
    pub fn get(&self, field: Field) -> Option<&'a [u8]> {
        match field {
            Field::Host => self.host,
            Field::Ip => self.ip,
            Field::Path => self.path,
            Field::Status => self.status,
            Field::Referer => self.referer,
        }
    }
}

/// Logs write `-`, or nothing, for what there was not.
fn present(value: &[u8]) -> Option<&[u8]> {
    if matches!(value, b"" | b"-") { None } else { Some(value) }
}

/// Whether it is a status code. Squid and Caddy log `000` and `0` for clients that went away.
fn is_status(value: &[u8]) -> bool {
    (1..=3).contains(&value.len()) && value.iter().all(u8::is_ascii_digit)
}
