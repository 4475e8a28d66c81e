//! `BloomFilter.open`: what was asked for, compared with what the file holds.

use crate::bloom::plan_of;
use crate::errors::{OrRaise, parameter, to_python, with_path};
use crate::params;
use crate::words::Words;
use bloomtide_core::snapshot::{Access, SharedFile};
use bloomtide_core::{BloomFilter as Core, Derivation, Error, Hasher, Layout, Result};
use pyo3::prelude::*;
use std::path::Path;

/// The keyword that only `open` has.
pub(crate) const OPENING: &[&str] = &["mode"];

/// The hash function that the words name; None if they leave it to the file.
fn hasher_of(words: &Words<'_, '_>) -> PyResult<Option<Hasher>> {
    let (seed, secret) = (words.word("seed")?, words.word("secret")?);
    if seed.is_none() && secret.is_none() {
        return Ok(None);
    }
    // A secret or a seed alone already says which function it belongs to.
    let implied = if secret.is_some() { "keyed" } else { "xxh3" };
    let hash = words.text("hash", implied)?;
    params::hasher(words.py, &hash, words.get("seed", 0)?, secret.as_ref()).map(Some)
}

/// Maps the file, after making it if the mode says so.
pub(crate) fn open_shared<'py>(
    words: &Words<'_, 'py>,
    path: &Path,
    capacity: Option<&Bound<'py, PyAny>>,
    error_rate: Option<&Bound<'py, PyAny>>,
) -> PyResult<Core> {
    let py = words.py;
    let mode = words.text("mode", "r")?;
    let access = match mode.as_str() {
        "r" => Access::Read,
        "r+" | "c" => Access::Write,
        _ => {
            let hint = "\"r\" asks only, \"r+\" adds, \"c\" also creates";
            return Err(parameter(py, "mode", mode, "\"r\", \"r+\" or \"c\"", hint));
        }
    };
    let given = Given {
        capacity: params::maybe_whole("capacity", capacity)?,
        error_rate: error_rate.map(|value| params::rate("error_rate", value)).transpose()?,
        layout: words.layout()?.map(Layout::name),
        bits: words.whole("bits")?,
        hashes: words.small("hashes")?,
        derivation: match words.paper("derivation")? {
            Some(name) => Some(Derivation::parse(&name).or_raise(py)?.name()),
            None => None,
        },
        hash: words.get("hash", None)?,
        hasher: hasher_of(words)?,
    };
    if mode == "c" && !path.exists() {
        let plan = plan_of(words, capacity, error_rate)?;
        let hasher = given.hasher.map_or_else(|| words.hasher(), Ok)?;
        py.detach(|| SharedFile::create(path, plan, hasher)).or_raise(py)?;
    }
    let core = py
        .detach(|| SharedFile::open(path, access))
        .map_err(|error| with_path(py, to_python(py, error), path))?;
    given.require_same(&core).or_raise(py)?;
    Ok(core)
}

/// What was asked for, checked. Two processes that disagree must not share a file.
struct Given {
    capacity: Option<u64>,
    error_rate: Option<f64>,
    layout: Option<&'static str>,
    bits: Option<u64>,
    hashes: Option<u32>,
    derivation: Option<&'static str>,
    hash: Option<String>,
    hasher: Option<Hasher>,
}

impl Given {
    fn require_same(&self, core: &Core) -> Result<()> {
        let plan = core.plan();
        same("capacity", plan.capacity, self.capacity)?;
        same("error_rate", plan.error_rate, self.error_rate)?;
        same("layout", Some(plan.layout.name()), self.layout)?;
        same("bits", Some(plan.bits), self.bits)?;
        same("hashes", Some(plan.hashes), self.hashes)?;
        same("derivation", Some(plan.derivation.name()), self.derivation)?;
        same("hash", Some(core.hasher().name()), self.hash.as_deref())?;
        self.hasher.map_or(Ok(()), |hasher| core.hasher().require_same(&hasher))
    }
}

fn same<T: PartialEq + std::fmt::Debug>(
    field: &'static str,
    file: Option<T>,
    given: Option<T>,
) -> Result<()> {
    match given {
        Some(given) if file.as_ref() != Some(&given) => {
            let file = file.map_or_else(|| "not given".to_owned(), |value| format!("{value:?}"));
            Err(Error::incompatible(field, file, format!("{given:?}")))
        }
        _ => Ok(()),
    }
}
