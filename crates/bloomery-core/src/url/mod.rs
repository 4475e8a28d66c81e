//! The canonical form of a URL: one spelling for each address.
//!
//! Two URLs with the same canonical form are the same address to every server that follows the
//! standards; the options go further and merge what is the same to most. `plain.rs` recognises URLs
//! that need no work, `parse.rs` does the rest with the `url` crate.
//!
//! Laws: `canonical(canonical(u)) == canonical(u)` under the same options, and both paths agree.

mod parse;
mod percent;
mod plain;
mod segments;
#[cfg(test)]
mod tests;

pub use segments::segments;

use crate::{Error, Result};

/// The longest URL, before and after: no browser and no server takes one that long.
pub const MAX_LENGTH: usize = 1 << 20;

/// What the canonical form does beyond what the standards say.
#[derive(Clone, Debug, Default)]
pub struct Canon {
    /// Keep what follows `#`, which no server ever sees.
    pub keep_fragment: bool,
}

/// The canonical form of a URL: the input itself, or a part of it, when that was plain and canonical
/// already; else the buffer, whose content is replaced.
///
/// Blanks and line ends around the URL are ignored. What is no URL with a host is refused.
#[inline]
pub fn canonical<'a>(url: &'a [u8], options: &Canon, buffer: &'a mut Vec<u8>) -> Result<&'a [u8]> {
    let url = url.trim_ascii();
    if url.len() <= MAX_LENGTH
        && let Some(plain) = plain::plain(url)
        && (plain.len() == url.len() || !options.keep_fragment)
    {
        return Ok(plain);
    }
    rewritten(url, options, buffer)
}

#[cold]
fn rewritten<'a>(url: &[u8], options: &Canon, buffer: &'a mut Vec<u8>) -> Result<&'a [u8]> {
    const LENGTH: (&str, &str) =
        ("at most 1 MiB long, before and after encoding", "hash such a thing as a plain key");
    if url.is_empty() {
        return refuse(b"nothing", "a URL", "leave empty lines out");
    }
    if url.len() > MAX_LENGTH {
        return refuse(url, LENGTH.0, LENGTH.1);
    }
    parse::parse(url, options.keep_fragment, buffer)?;
    if buffer.len() > MAX_LENGTH {
        return refuse(url, LENGTH.0, LENGTH.1);
    }
    Ok(buffer)
}

/// The error for a URL, which it shows the beginning of.
#[cold]
fn refusal(url: &[u8], allowed: &'static str, hint: &'static str) -> Error {
    const SHOWN: usize = 60;
    let shown = url[..url.len().min(SHOWN)].utf8_chunks().fold(String::new(), |mut text, chunk| {
        text.extend(chunk.valid().chars().flat_map(|c| {
            // A control character must not reach a terminal.
            let escaped = c.is_control().then(|| c.escape_default());
            escaped.is_none().then_some(c).into_iter().chain(escaped.into_iter().flatten())
        }));
        chunk.invalid().iter().for_each(|byte| text += &format!("\\x{byte:02x}"));
        text
    });
    let more = url.len().saturating_sub(SHOWN);
    let got = if more == 0 { shown } else { format!("{shown}... and {more} bytes more") };
    Error::parameter("url", got, allowed, hint)
}

fn refuse<T>(url: &[u8], allowed: &'static str, hint: &'static str) -> Result<T> {
    Err(refusal(url, allowed, hint))
}
