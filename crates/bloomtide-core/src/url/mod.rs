//! The canonical form of a URL: one spelling for each address.
//!
//! Two URLs with the same canonical form are the same address to every server that follows the
//! standards; the options go further and merge what is the same to most. `plain.rs` recognises URLs
//! that need no work, `parse.rs` does the rest with the `url` crate.
//!
//! Laws: `canonical(canonical(u)) == canonical(u)` under the same options, and both paths agree.

mod edit;
mod names;
mod parse;
mod percent;
mod plain;
mod segments;
#[cfg(test)]
mod tests;

pub use names::{Names, SESSIONS, TRACKING};
pub use segments::{Cut, Cutter};

use crate::named::named;
use crate::{Error, Result};

/// The longest URL, before and after: no browser and no server takes one that long.
pub const MAX_LENGTH: usize = 1 << 20;

/// What the canonical form does beyond what the standards say; by default nothing.
#[derive(Clone, Debug, Default)]
pub struct Canon {
    /// Read the query as a form and write its fields in order, by name and then by value.
    pub sort_query: bool,
    /// Whether `/a/` is the same address as `/a`.
    pub trailing_slash: Slash,
    /// Parameters of the query to leave out; [`Names::tracking`] knows those of campaigns.
    pub drop_tracking: Names,
    /// Leave out session ids, in the query and in the path: [`SESSIONS`].
    pub drop_sessions: bool,
    /// Keep what follows `#`, which no server ever sees.
    pub keep_fragment: bool,
}

/// What to do with slashes at the end of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Slash {
    /// They stay: to many servers `/a` and `/a/` are two pages.
    #[default]
    Keep,
    /// They go, all but the one of the root.
    Drop,
}

named! {
    Slash: "trailing_slash", "\"keep\" or \"drop\"", "\"drop\" makes /a/ and /a one address";
    Keep = "keep", Drop = "drop"
}

impl Canon {
    /// Whether any option is set that edits the standard form.
    #[inline(always)]
    fn edits(&self) -> bool {
        self.sort_query
            || self.drop_sessions
            || self.trailing_slash == Slash::Drop
            || !self.drop_tracking.is_empty()
    }
}

/// The canonical form of a URL: the input itself, or a part of it, when that was plain and canonical
/// already; else the buffer, whose content is replaced.
///
/// Blanks and line ends around the URL are ignored. What is no URL with a host is refused.
#[inline]
pub fn canonical<'a>(url: &'a [u8], options: &Canon, buffer: &'a mut Vec<u8>) -> Result<&'a [u8]> {
    let url = trimmed(url);
    if url.len() <= MAX_LENGTH
        && let Some(plain) = plain::plain(url, |_| ())
        && (plain.len() == url.len() || !options.keep_fragment)
    {
        if !options.edits() || !edit::may_change(plain, options) {
            return Ok(plain);
        }
        buffer.clear();
        buffer.extend_from_slice(plain);
        return edited(url, options, buffer);
    }
    rewritten(url, options, buffer)
}

/// Refuses what [`canonical`] would, mostly without making the canonical form.
#[inline]
pub fn check(url: &[u8], buffer: &mut Vec<u8>) -> Result<()> {
    let trimmed = trimmed(url);
    // Encoding makes at most three bytes of one.
    if trimmed.len() <= MAX_LENGTH / 3 && plain::certain(trimmed) {
        return Ok(());
    }
    canonical(url, &Canon::default(), buffer).map(|_| ())
}

/// The URL without blanks around it.
#[inline(always)]
pub(crate) fn trimmed(url: &[u8]) -> &[u8] {
    match url {
        // Most are.
        [b'!'..=b'~', .., b'!'..=b'~'] => url,
        _ => url.trim_ascii(),
    }
}

#[cold]
#[inline(never)]
fn rewritten<'a>(url: &[u8], options: &Canon, buffer: &'a mut Vec<u8>) -> Result<&'a [u8]> {
    if url.is_empty() {
        return refuse(b"nothing", "a URL", "leave empty lines out");
    }
    if url.len() > MAX_LENGTH {
        return too_long(url);
    }
    // A host alone, as home pages are linked: only its slash is missing.
    buffer.clear();
    buffer.extend_from_slice(url);
    buffer.push(b'/');
    if plain::plain(buffer, |_| ()).is_none_or(|form| form.len() <= url.len() || has_path(url)) {
        parse::parse(url, options.keep_fragment, buffer)?;
    }
    edited(url, options, buffer)
}

/// Whether anything follows the host.
fn has_path(url: &[u8]) -> bool {
    url.iter().skip(b"https://".len()).any(|byte| b"/?#".contains(byte))
}

fn edited<'a>(url: &[u8], options: &Canon, buffer: &'a mut Vec<u8>) -> Result<&'a [u8]> {
    if options.edits() {
        edit::edit(buffer, options);
    }
    if buffer.len() > MAX_LENGTH {
        return too_long(url);
    }
    Ok(buffer)
}

#[cold]
fn too_long<T>(url: &[u8]) -> Result<T> {
    let hint = "no server takes it; a filter of plain keys does";
    refuse(url, "at most 1 MiB long, before and after encoding", hint)
}

/// The error for a URL, which it shows the beginning of.
#[cold]
fn refusal(url: &[u8], allowed: &'static str, hint: &'static str) -> Error {
    // Not in the middle of a character.
    let cut = (57..=60).rev().find(|&cut| url.get(cut).is_none_or(|byte| byte & 0xC0 != 0x80));
    let cut = cut.unwrap_or(60).min(url.len());
    let mut got = String::new();
    for chunk in url[..cut].utf8_chunks() {
        for letter in chunk.valid().chars() {
            // A control character must not reach a terminal.
            if letter.is_control() {
                got.extend(letter.escape_default());
            } else {
                got.push(letter);
            }
        }
        chunk.invalid().iter().for_each(|byte| got += &format!("\\x{byte:02x}"));
    }
    if cut < url.len() {
        got += &format!("... and {} bytes more", url.len() - cut);
    }
    Error::parameter("url", got, allowed, hint)
}

fn refuse<T>(url: &[u8], allowed: &'static str, hint: &'static str) -> Result<T> {
    Err(refusal(url, allowed, hint))
}
