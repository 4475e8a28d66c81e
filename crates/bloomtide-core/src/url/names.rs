//! Names of query parameters, and the two lists that come with the package.

use super::percent::decoded;
use crate::{Error, Result};

/// What campaigns add to links to tell where a visitor came from. No page depends on them.
pub const TRACKING: [&str; 40] = [
    "utm_*",       // Urchin, now Google Analytics, and everybody since
    "gclid",       // Google Ads, and so the next five
    "gclsrc",      //
    "dclid",       //
    "gbraid",      //
    "wbraid",      //
    "gad_*",       //
    "_ga",         // Google Analytics across domains
    "_gl",         //
    "srsltid",     // Google Merchant Center
    "fbclid",      // Facebook
    "fb_action_*", //
    "fb_source",   //
    "fb_ref",      //
    "igshid",      // Instagram
    "igsh",        //
    "msclkid",     // Microsoft
    "yclid",       // Yandex
    "ysclid",      //
    "_openstat",   //
    "twclid",      // Twitter
    "ttclid",      // TikTok
    "li_fat_id",   // LinkedIn
    "epik",        // Pinterest
    "rdt_cid",     // Reddit
    "sccid",       // Snapchat
    "mc_cid",      // Mailchimp
    "mc_eid",      //
    "mkt_tok",     // Marketo
    "_hsenc",      // HubSpot
    "_hsmi",       //
    "hsctatracking",
    "vero_id",     // Vero
    "vero_conv",   //
    "oly_enc_id",  // Omeda
    "oly_anon_id", //
    "wickedid",    // Wicked Reports
    "mtm_*",       // Matomo, formerly Piwik
    "pk_*",        //
    "piwik_*",     //
];

/// What servers write into links for visitors without cookies. Two links that differ only here lead to
/// the same page of two visits.
pub const SESSIONS: [&str; 13] = [
    "jsessionid", // Java servlets
    "phpsessid",  // PHP
    "aspsessionid*",
    "asp.net_sessionid",
    "cfid", // ColdFusion
    "cftoken",
    "sid", // phpBB and many others
    "sessid",
    "sessionid",
    "session_id",
    "oscsid", // osCommerce and its descendants
    "zenid",
    "xtcsid",
];

/// A list of names of parameters, in which `*` stands for any number of characters. Case does not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    globs: Vec<Vec<u8>>,
}

impl Names {
    /// The parameters of campaigns, [`TRACKING`].
    pub fn tracking() -> Self {
        Names::of(&TRACKING)
    }

    /// Those of [`SESSIONS`].
    pub(super) fn sessions() -> &'static Self {
        static NAMES: std::sync::OnceLock<Names> = std::sync::OnceLock::new();
        NAMES.get_or_init(|| Names::of(&SESSIONS))
    }

    /// A list of one's own. A name is written as it reads, not percent-encoded.
    pub fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Self> {
        let names: Vec<&str> = names.into_iter().collect();
        if names.iter().any(|name| name.is_empty()) {
            return Err(Error::parameter(
                "drop_tracking",
                "an empty name",
                "a list of names that are not empty",
                "`*` stands for any number of characters, as in \"utm_*\"",
            ));
        }
        Ok(Names::of(&names))
    }

    fn of(names: &[&str]) -> Self {
        Names { globs: names.iter().map(|name| name.to_ascii_lowercase().into_bytes()).collect() }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.globs.is_empty()
    }

    /// Whether a field of a query, or a parameter of a path segment, has one of these names.
    pub(super) fn hold(&self, field: &[u8]) -> bool {
        let written = field.split(|&byte| byte == b'=').next().unwrap_or_default();
        let mut name = decode(written);
        name.make_ascii_lowercase();
        self.globs.iter().any(|glob| matches(glob, &name))
    }
}

/// What a part of a form stands for.
pub fn decode(written: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(written.len());
    let mut rest = written;
    while let Some(&byte) = rest.first() {
        let hidden = decoded(rest);
        plain.push(hidden.unwrap_or(if byte == b'+' { b' ' } else { byte }));
        rest = &rest[if hidden.is_some() { 3 } else { 1 }..];
    }
    plain
}

/// Whether the name is what the glob says. The last star seen takes one byte more after each mismatch, so
/// that the time is bounded by the product of both lengths.
fn matches(glob: &[u8], name: &[u8]) -> bool {
    let (mut g, mut n) = (0, 0);
    let mut star = None;
    while n < name.len() {
        match glob.get(g) {
            Some(b'*') => {
                star = Some((g, n));
                g += 1;
            }
            Some(byte) if *byte == name[n] => {
                g += 1;
                n += 1;
            }
            _ => match star {
                Some((at, taken)) => {
                    star = Some((at, taken + 1));
                    g = at + 1;
                    n = taken + 1;
                }
                None => return false,
            },
        }
    }
    glob[g..].iter().all(|&byte| byte == b'*')
}
