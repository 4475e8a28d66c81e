//! The segments of a canonical URL, as the multi-layer filter of the paper sees it: the host, then the
//! path cut at each slash.

use super::{Canon, MAX_LENGTH, plain, rewritten, trimmed};
use crate::Result;
use memchr::{memchr_iter, memchr2, memmem};

/// More segments than this are never told apart.
pub const MAX_SEGMENTS: usize = 64;

/// Brings URLs into canonical form and cuts them; what it needs in between is used again.
#[derive(Debug)]
pub struct Cutter {
    buffer: Vec<u8>,
    ends: [u32; MAX_SEGMENTS],
}

impl Default for Cutter {
    fn default() -> Self {
        Cutter { buffer: Vec::new(), ends: [0; MAX_SEGMENTS] }
    }
}

/// A URL in canonical form, and where it is cut.
#[derive(Clone, Copy, Debug)]
pub struct Cut<'a> {
    /// The canonical form.
    pub form: &'a [u8],
    /// Whether that is a part of the URL as it was given.
    pub plain: bool,
    /// Where the first segment starts.
    pub start: usize,
    /// Where each segment ends; a slash follows each but the last.
    pub ends: &'a [u32],
}

impl<'a> Cut<'a> {
    /// The segments after the first `skipped`, fewer than all.
    #[inline(always)]
    pub fn segments(self, skipped: usize) -> impl Iterator<Item = &'a [u8]> {
        let mut start = match skipped.checked_sub(1) {
            Some(last) => self.ends[last] as usize + 1,
            None => self.start,
        };
        self.ends[skipped..].iter().map(move |end| {
            let segment = &self.form[start..*end as usize];
            start = *end as usize + 1;
            segment
        })
    }
}

impl Cutter {
    /// Cuts the canonical form of a URL into at most `max_layers` segments, or refuses what is no URL.
    ///
    /// `http://` and `https://` are dropped, so that both are one address; any other scheme stays with the
    /// host. The query belongs to the last segment. What lies deeper than `max_layers` is not dropped:
    /// the last segment holds all of it, slashes included.
    ///
    /// A URL that is canonical already is read once: the look at its bytes that proves it finds its slashes too.
    #[inline(always)]
    pub fn cut<'a>(&'a mut self, url: &'a [u8], max_layers: usize) -> Result<Cut<'a>> {
        let url = trimmed(url);
        let (mut count, most) = (0, max_layers.clamp(1, MAX_SEGMENTS) - 1);
        let note = |at: usize| {
            if count < most {
                self.ends[count] = at as u32;
                count += 1;
            }
        };
        let plain = if url.len() <= MAX_LENGTH { plain::plain(url, note) } else { None };
        let (form, start) = match plain {
            Some(form) => (form, if form[4] == b's' { 8 } else { 7 }),
            None => {
                let form = rewritten(url, &Canon::default(), &mut self.buffer)?;
                let host = host(form);
                let path = memchr2(b'?', b'#', &form[host..]).map_or(form.len(), |at| host + at);
                count = 0;
                for slash in memchr_iter(b'/', &form[host..path]).take(most) {
                    self.ends[count] = (host + slash) as u32;
                    count += 1;
                }
                let web = form.starts_with(b"http://") || form.starts_with(b"https://");
                (form, if web { host } else { 0 })
            }
        };
        self.ends[count] = form.len() as u32;
        Ok(Cut { form, plain: plain.is_some(), start, ends: &self.ends[..=count] })
    }
}

/// Where the host of a canonical URL starts.
#[cold]
fn host(form: &[u8]) -> usize {
    memmem::find(form, b"://").map_or(0, |mark| mark + 3)
}
