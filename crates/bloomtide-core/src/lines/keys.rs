//! What of a line is its key: all of it, a column, or a member of a JSON object; if that is a URL and
//! asked for, its canonical form.

use super::csv::{self, Quotes};
use crate::logs::{json, time};
use crate::named::named;
use crate::url::{Canon, canonical};
use crate::{Error, Result};
use memchr::{memchr, memrchr};

/// How a line holds its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// It has none: the line is the key.
    Lines,
    /// Comma-separated values; a record may span lines between quotes.
    Csv,
    /// Values between tabs, without quotes.
    Tsv,
    /// One JSON object a line.
    Json,
}

named! {
    Form: "format", "lines, csv, tsv or json", "`json` is one object a line";
    Lines = "lines", Csv = "csv", Tsv = "tsv", Json = "json"
}

/// A field that was asked for.
#[derive(Clone, Debug)]
struct Name {
    text: Vec<u8>,
    /// The column, from 0, once it is known.
    column: Option<usize>,
    numbered: bool,
}

impl Name {
    fn parse(role: &'static str, text: &str, form: Form) -> Result<Self> {
        let number = if form == Form::Json { None } else { text.parse::<usize>().ok() };
        if text.is_empty() || number == Some(0) {
            let hint = "columns are numbered from 1, or named as in the header";
            return Err(Error::parameter(role, text, "a name or a number from 1", hint));
        }
        let column = number.map(|number| number - 1);
        Ok(Name { text: text.as_bytes().to_vec(), column, numbered: number.is_some() })
    }
}

/// Finds the key of a line, and its time.
#[derive(Clone, Debug)]
pub struct Keys {
    form: Form,
    key: Option<Name>,
    time: Option<Name>,
    url: Option<Canon>,
}

/// Room for values that are not written as they are meant.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    text: Vec<u8>,
    url: Vec<u8>,
}

impl Keys {
    /// The whole line, or the field `key` of it; `time` is the field with its time. With `url` only URLs
    /// are keys, in their canonical form.
    pub fn new(
        form: Form,
        key: Option<&str>,
        time: Option<&str>,
        url: Option<Canon>,
    ) -> Result<Self> {
        if form == Form::Lines && (key.is_some() || time.is_some()) {
            let hint = "say how the fields are written: csv, tsv or json";
            return Err(Error::parameter("format", "lines", "one with fields", hint));
        }
        let name = |role, text: Option<&str>| text.map(|t| Name::parse(role, t, form)).transpose();
        Ok(Keys { form, key: name("key", key)?, time: name("time", time)?, url })
    }

    /// Whether a line is its own key, and nothing else is asked of it.
    pub(super) fn are_lines(&self) -> bool {
        self.key.is_none() && self.time.is_none() && self.url.is_none() && self.divisible()
    }

    /// Whether every line end ends a line, so that lines can be looked for from anywhere.
    pub(super) fn divisible(&self) -> bool {
        self.form != Form::Csv
    }

    pub(super) fn cut(&self) -> Cut {
        if self.divisible() { Cut::Lines } else { Cut::Records(Quotes::default()) }
    }

    fn names(&mut self) -> impl Iterator<Item = (&'static str, &mut Name)> {
        let named = |role, name| (role, name);
        let key = self.key.as_mut().map(|name| named("key", name));
        key.into_iter().chain(self.time.as_mut().map(|name| named("time", name)))
    }

    /// Whether the first line of a file names its columns.
    pub(super) fn wants_header(&self) -> bool {
        let names = self.key.iter().chain(&self.time);
        matches!(self.form, Form::Csv | Form::Tsv) && names.into_iter().any(|name| !name.numbered)
    }

    /// Finds the columns by their names.
    pub(super) fn read_header(&mut self, line: &[u8]) -> Result<()> {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        // Spreadsheets put a mark before the first name.
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        let form = self.form;
        for (role, name) in self.names().filter(|(_, name)| !name.numbered) {
            let mut buffer = Vec::new();
            let found = match form {
                Form::Csv => csv::fields(line).position(|f| csv::text(f, &mut buffer) == name.text),
                _ => line.split(|byte| *byte == b'\t').position(|field| field == name.text),
            };
            if found.is_none() {
                let shown = String::from_utf8_lossy(&line[..line.len().min(200)]).into_owned();
                let got =
                    format!("{} with the header {shown}", String::from_utf8_lossy(&name.text));
                let hint = "check --format, or give the number of the column";
                return Err(Error::parameter(role, got, "the name of a column", hint));
            }
            name.column = found;
        }
        Ok(())
    }

    /// The key of a line, and its time if that was asked for and is there; None without a key.
    pub(super) fn read<'a>(
        &self,
        line: &'a [u8],
        scratch: &'a mut Scratch,
    ) -> Option<(&'a [u8], Option<f64>)> {
        let [key, at] = match self.form {
            Form::Lines => [Some(line), None],
            Form::Csv => self.fields(line, |number| csv::field(line, number)),
            Form::Tsv => self.fields(line, |number| line.split(|byte| *byte == b'\t').nth(number)),
            Form::Json => {
                let names = [&self.key, &self.time].map(|name| name.as_ref().map(|n| &*n.text));
                let mut found = [None; 2];
                json::find(line, &names, &mut found)?;
                let [key, at] = found.map(|value| value.filter(|value| *value != b"null"));
                [if self.key.is_some() { key } else { Some(line) }, at]
            }
        };
        let at = at.and_then(|at| time::any(self.text(at, &mut scratch.text)));
        let key = key?;
        let key = if self.key.is_some() { self.text(key, &mut scratch.text) } else { key };
        match &self.url {
            None => Some((key, at)),
            Some(options) => Some((canonical(key, options, &mut scratch.url).ok()?, at)),
        }
    }

    fn fields<'a>(
        &self,
        line: &'a [u8],
        field: impl Fn(usize) -> Option<&'a [u8]>,
    ) -> [Option<&'a [u8]>; 2] {
        let key = self.key.as_ref().map_or(Some(line), |name| name.column.and_then(&field));
        [key, self.time.as_ref().and_then(|name| name.column).and_then(&field)]
    }

    /// What a field says, of the text it is written as.
    fn text<'a>(&self, field: &'a [u8], buffer: &'a mut Vec<u8>) -> &'a [u8] {
        match self.form {
            Form::Csv => csv::text(field, buffer),
            Form::Json => json::text(field, buffer),
            Form::Lines | Form::Tsv => field,
        }
    }
}

/// Where lines end.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cut {
    Lines,
    Records(Quotes),
}

impl Cut {
    /// Bytes up to the end of the line that goes on or begins here; None if it ends behind them.
    #[inline(always)]
    pub(super) fn end(&mut self, bytes: &[u8]) -> Option<usize> {
        match self {
            Cut::Lines => memchr(b'\n', bytes).map(|at| at + 1),
            Cut::Records(quotes) => quotes.end(bytes),
        }
    }

    /// Bytes up to the last line end.
    pub(super) fn last_end(&mut self, bytes: &[u8]) -> usize {
        match self {
            Cut::Lines => memrchr(b'\n', bytes).map_or(0, |at| at + 1),
            Cut::Records(quotes) => {
                let mut whole = 0;
                while let Some(end) = quotes.end(&bytes[whole..]) {
                    whole += end;
                }
                whole
            }
        }
    }
}
