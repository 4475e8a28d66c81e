//! URLs and their prefixes, for the URL commands: the URL filter, with the number of URLs that were new.

use super::form::{Fields, Form};
use crate::structure::{Held, Summary};
use bloomtide_core::filters::{UrlFilter, UrlPlan};
use bloomtide_core::snapshot::{Kind, Loaded, encoded_len, read};
use bloomtide_core::{Error, Hasher, Result, sizing};
use std::io::{self, Write};

/// Memory in bytes of a filter that has all its layers.
pub fn bytes_at_most(plan: &UrlPlan) -> Result<u64> {
    let mut bytes = plan.whole()?.bytes();
    for depth in 1..=plan.max_layers {
        bytes = bytes.saturating_add(plan.layer(depth)?.bytes());
    }
    Ok(bytes)
}

/// A filter of URLs.
#[derive(Debug)]
pub struct Urls {
    filter: Box<UrlFilter>,
    items: u64,
}

impl Urls {
    /// No URLs yet.
    pub fn new(plan: UrlPlan, seed: u64) -> Result<Self> {
        let filter = Box::new(UrlFilter::new(plan, Hasher::Xxh3 { seed })?);
        Ok(Urls { filter, items: 0 })
    }

    /// The filter.
    pub fn filter(&self) -> &UrlFilter {
        &self.filter
    }

    /// URLs that were certainly new.
    pub fn items(&self) -> u64 {
        self.items
    }

    /// Adds the URL and its prefixes; true iff it was certainly absent before.
    pub fn add(&mut self, url: &[u8]) -> Result<bool> {
        let new = self.filter.add(url)?;
        self.items += u64::from(new);
        Ok(new)
    }
}

impl Held for Urls {
    const TYPE: &'static str = "urls";

    fn kind(&self) -> &'static str {
        "url"
    }

    fn bytes(&self) -> u64 {
        self.filter.bytes()
    }

    fn summary(&self) -> Summary {
        let (plan, items) = (self.filter.whole().plan(), self.items as f64);
        let fill = sizing::classic_fill(items, plan.bits as f64, plan.hashes);
        Summary { items, fill, error: plan.error_at(items) }
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let len = encoded_len(&*self.filter).map_err(io::Error::other)?;
        let mut form = Form::new(out, Kind::Urls, 8 + len)?;
        form.u64(self.items)?;
        form.snapshot(&*self.filter)?;
        form.seal()
    }

    fn read(bytes: &[u8]) -> Result<Self> {
        let mut fields = Fields::open(bytes, Kind::Urls)?;
        let items = fields.u64()?;
        match read(fields.rest(), Some(Kind::Url))? {
            Loaded::Url(filter) => Ok(Urls { filter, items }),
            other => {
                let got = other.kind().name().to_owned();
                Err(Error::Kind { expected: "url", got })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::form::{is_refused_when_damaged, written};
    use super::*;
    use bloomtide_core::filters::{Bind, LayerSizes};

    fn plan() -> UrlPlan {
        UrlPlan {
            capacity: 100,
            error_rate: 0.01,
            max_layers: 4,
            bind: Bind::default(),
            layer_sizes: LayerSizes::default(),
        }
    }

    #[test]
    fn bytes_give_the_same_filter_and_damage_is_refused() {
        let mut urls = Urls::new(plan(), 0).unwrap();
        assert!(urls.add(b"http://example.org/a/b").unwrap());
        assert!(!urls.add(b"HTTP://example.org:80/a/b").unwrap());
        assert!(urls.add(b"http://example.org/a").unwrap());
        let bytes = written(&urls);
        let read = Urls::read(&bytes).unwrap();
        assert_eq!((read.items(), written(&read)), (2, bytes.clone()));
        is_refused_when_damaged(&bytes, Urls::read);
    }

    #[test]
    fn no_filter_needs_more_than_was_foretold() {
        let mut urls = Urls::new(plan(), 0).unwrap();
        let most = bytes_at_most(&plan()).unwrap();
        assert!(urls.bytes() < most);
        urls.add(b"http://example.org/a/b/c/d/e/f/g").unwrap();
        assert_eq!(urls.bytes(), most);
    }
}
