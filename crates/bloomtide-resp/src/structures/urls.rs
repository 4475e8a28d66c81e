//! URLs and their prefixes, for the URL commands: the URL filter, with the number of URLs that were new.

use super::{HASHER, expected, loaded};
use crate::fields::{put, take};
use crate::structure::{Structure, Summary};
use bloomtide_core::filters::{UrlFilter, UrlPlan};
use bloomtide_core::history::varint::Reader;
use bloomtide_core::snapshot::{Kind, Loaded, write_to};
use bloomtide_core::{Error, Result};
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
    /// The filter.
    pub filter: Box<UrlFilter>,
    /// URLs that were certainly new.
    pub items: u64,
    /// Memory with all layers, which come with the depth of URLs.
    most: u64,
}

impl Urls {
    /// No URLs yet.
    pub fn new(plan: UrlPlan) -> Result<Self> {
        let most = bytes_at_most(&plan)?;
        Ok(Urls { filter: Box::new(UrlFilter::new(plan, HASHER)?), items: 0, most })
    }

    /// Adds the URL and its prefixes; true iff it was certainly absent before.
    pub fn add(&mut self, url: &[u8]) -> Result<bool> {
        let new = self.filter.add(url)?;
        self.items += u64::from(new);
        Ok(new)
    }
}

impl Structure for Urls {
    fn kind(&self) -> &'static str {
        "url"
    }

    fn bytes(&self) -> u64 {
        self.filter.bytes()
    }

    fn admitted(&self) -> u64 {
        self.most
    }

    fn summary(&self) -> Summary {
        let plan = self.filter.whole().plan();
        expected(self.items, plan.bits, plan.hashes, |items| plan.error_at(items))
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        put(out, &[self.items])?;
        write_to(&*self.filter, out)
    }

    fn read(bytes: &[u8]) -> Result<Self> {
        let mut from = Reader::new(bytes, "urls");
        let [items] = take(&mut from)?;
        let filter = loaded!(Url, from.rest());
        HASHER.require_same(filter.hasher())?;
        let most = bytes_at_most(filter.plan())?;
        Ok(Urls { filter, items, most })
    }
}
