//! `BloomFilter.open`: what was asked for, compared with what the file holds.

use crate::bloom::plan_of;
use crate::errors::{OrRaise, parameter, to_python, with_path};
use crate::params;
use bloomtide_core::snapshot::{Access, SharedFile};
use bloomtide_core::{BloomFilter as Core, Derivation, Error, Hasher, Layout, Result};
use pyo3::prelude::*;
use std::path::Path;

/// The keywords of `open`, each as given or left out.
pub(crate) struct Words<'a, 'py> {
    pub(crate) capacity: Option<&'a Bound<'py, PyAny>>,
    pub(crate) error_rate: Option<&'a Bound<'py, PyAny>>,
    pub(crate) layout: Option<&'a str>,
    pub(crate) bits: Option<&'a Bound<'py, PyAny>>,
    pub(crate) hashes: Option<&'a Bound<'py, PyAny>>,
    pub(crate) derivation: Option<&'a str>,
    pub(crate) hash: Option<&'a str>,
    pub(crate) seed: Option<i128>,
    pub(crate) secret: Option<&'a Bound<'py, PyAny>>,
}

impl Words<'_, '_> {
    /// The hash function they name; None if they leave it to the file.
    fn hasher(&self, py: Python<'_>) -> PyResult<Option<Hasher>> {
        if self.seed.is_none() && self.secret.is_none() {
            return Ok(None);
        }
        // A secret or a seed alone already says which function it belongs to.
        let implied = if self.secret.is_some() { "keyed" } else { "xxh3" };
        let hash = self.hash.unwrap_or(implied);
        params::hasher(py, hash, self.seed.unwrap_or(0), self.secret).map(Some)
    }

    /// Makes the file they describe.
    fn create(&self, py: Python<'_>, path: &Path) -> PyResult<()> {
        let goal = params::goal(py, self.capacity, self.error_rate, self.bits, self.hashes)?;
        let plan = plan_of(py, goal, self.layout, self.derivation.unwrap_or("enhanced"))?;
        let hasher = match self.hasher(py)? {
            Some(hasher) => hasher,
            None => params::hasher(py, self.hash.unwrap_or("xxh3"), 0, None)?,
        };
        py.detach(|| SharedFile::create(path, plan, hasher)).or_raise(py)?;
        Ok(())
    }

    fn given(&self, py: Python<'_>) -> PyResult<Given> {
        Ok(Given {
            capacity: params::maybe_whole("capacity", self.capacity)?,
            error_rate: self
                .error_rate
                .map(|value| params::rate("error_rate", value))
                .transpose()?,
            layout: self.layout.map(Layout::parse).transpose().or_raise(py)?.map(Layout::name),
            bits: params::maybe_whole("bits", self.bits)?,
            hashes: self.hashes.map(|value| params::small("hashes", value)).transpose()?,
            derivation: self
                .derivation
                .map(Derivation::parse)
                .transpose()
                .or_raise(py)?
                .map(Derivation::name),
            hash: self.hash.map(str::to_owned),
            hasher: self.hasher(py)?,
        })
    }
}

/// Maps the file, after making it if the mode says so.
pub(crate) fn open_shared(
    py: Python<'_>,
    path: &Path,
    mode: &str,
    words: &Words<'_, '_>,
) -> PyResult<Core> {
    let access = match mode {
        "r" => Access::Read,
        "r+" | "c" => Access::Write,
        _ => {
            let hint = "\"r\" asks only, \"r+\" adds, \"c\" also creates";
            return Err(parameter(py, "mode", mode, "\"r\", \"r+\" or \"c\"", hint));
        }
    };
    let given = words.given(py)?;
    if mode == "c" && !path.exists() {
        words.create(py, path)?;
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
