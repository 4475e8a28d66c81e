//! The formats by name, and the parser of one of them.

use super::clf::Parts;
use super::time::ClfClock;
use super::w3c::Columns;
use super::{FieldMap, Pattern, Record, bare, clf, squid};
use crate::{Error, Result};

/// How the lines of a log are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Format {
    /// Apache's default log.
    Common,
    /// COMMON with referer and agent: the default of nginx, and of most Apaches.
    Combined,
    /// COMMON after the site's name.
    VCommon,
    /// COMBINED after the site's name.
    VCombined,
    /// Squid's native log.
    Squid,
    /// The JSON log of Caddy.
    Caddy,
    /// Columns as `#Fields:` names them: IIS, CloudFront.
    W3c,
    /// One JSON object a line.
    Json(FieldMap),
    /// As the user wrote it down.
    Pattern(Pattern),
    /// One URL, or anything else to be counted, a line.
    Bare,
}

impl Format {
    /// What a log is tried as, the most telling first: the earlier wins where both read as many
    /// lines.
    pub const GUESSES: [Format; 8] = [
        Format::W3c,
        Format::Caddy,
        Format::VCombined,
        Format::Combined,
        Format::VCommon,
        Format::Common,
        Format::Squid,
        Format::Bare,
    ];

    /// The format of that name, as GoAccess spells them, or written as nginx or GoAccess do; JSON
    /// needs its map.
    pub fn parse(name: &str, map: Option<FieldMap>) -> Result<Self> {
        let is = |known: &str| known.eq_ignore_ascii_case(name);
        if is("json") {
            let hint = "for example `path=request_uri,time=time_iso8601`";
            let missing = || Error::parameter("json_map", "none", "given with format `json`", hint);
            return map.map(Format::Json).ok_or_else(missing);
        }
        let pattern = Pattern::parse(name)?.map(Format::Pattern);
        let known = Format::GUESSES.into_iter().find(|format| is(format.name()));
        let known = known.or(is("cloudfront").then_some(Format::W3c)).or(pattern);
        let format = known.ok_or_else(|| {
            let allowed =
                "combined, common, vcombined, vcommon, squid, caddy, w3c, cloudfront, json or bare; \
                 or as nginx or GoAccess write one, with $ or %";
            let hint = "without it the format is found from the first lines";
            Error::parameter("format", name, allowed, hint)
        })?;
        if map.is_some() {
            let hint = "leave the format out, or make it `json`";
            return Err(Error::parameter("json_map", name, "given with format `json` only", hint));
        }
        Ok(format)
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            Format::Common => "COMMON",
            Format::Combined => "COMBINED",
            Format::VCommon => "VCOMMON",
            Format::VCombined => "VCOMBINED",
            Format::Squid => "SQUID",
            Format::Caddy => "CADDY",
            Format::W3c => "W3C",
            Format::Json(_) => "JSON",
            Format::Pattern(_) => "CUSTOM",
            Format::Bare => "BARE",
        }
    }
}

/// What a line turned out to be.
pub enum Parsed<'a> {
    /// A request.
    Record(Record<'a>),
    /// A directive or a remark of the format.
    Remark,
    /// Not a line of this format.
    Unknown,
}

/// Reads the lines of one format.
#[derive(Debug)]
pub struct Parser {
    format: Format,
    map: FieldMap,
    columns: Columns,
    clock: ClfClock,
    scratch: Vec<u8>,
}

impl Parser {
    /// At the start of a log.
    pub fn new(format: Format) -> Self {
        let map = match &format {
            Format::Json(map) => map.clone(),
            _ => FieldMap::caddy(),
        };
        Parser {
            format,
            map,
            columns: Columns::default(),
            clock: ClfClock::default(),
            scratch: Vec::new(),
        }
    }

    /// The format.
    pub fn format(&self) -> &Format {
        &self.format
    }

    /// One line, which is not empty.
    pub fn parse<'a>(&'a mut self, line: &'a [u8]) -> Parsed<'a> {
        let record = match &self.format {
            Format::Combined => self.clf(line, false, true),
            Format::Common => self.clf(line, false, false),
            Format::VCombined => self.clf(line, true, true),
            Format::VCommon => self.clf(line, true, false),
            Format::Squid => squid::parse(line),
            Format::Caddy | Format::Json(_) => self.map.read(line, &mut self.scratch),
            Format::W3c if line.starts_with(b"#") => {
                self.columns.direct(line);
                return Parsed::Remark;
            }
            Format::W3c => self.columns.parse(line, &mut self.scratch),
            Format::Pattern(pattern) => pattern.read(line, &mut self.clock, &mut self.scratch),
            Format::Bare => bare::parse(line),
        };
        record.map_or(Parsed::Unknown, Parsed::Record)
    }

    fn clf<'a>(&mut self, line: &'a [u8], host: bool, referer: bool) -> Option<Record<'a>> {
        clf::parse(line, Parts { host, referer }, &mut self.clock)
    }
}
