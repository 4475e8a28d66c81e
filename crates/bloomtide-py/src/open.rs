//! `BloomFilter.open`: what was asked for, compared with what the file holds.

use crate::bloom::plan_of;
use crate::errors::{OrRaise, parameter, to_python, with_path};
use crate::params;
use crate::python::*;
use crate::words::Words;
use bloomtide_core::snapshot::{Access, SharedFile};
use bloomtide_core::{BloomFilter as Core, Derivation, Error, Hasher, Layout, Result};
use pyo3::types::PyType;

/// The hash function that the words name; None if they leave it to the file.
fn hasher_of(words: &Words<'_>) -> PyResult<Option<Hasher>> {
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
pub(crate) fn open_shared(cls: &Bound<'_, PyType>, words: &Words<'_>) -> PyResult<Core> {
    let py = words.py;
    let path = &params::path(&words.must("path")?)?;
    let mode = words.text("mode", "r")?;
    let access = match mode.as_str() {
        "r" => Access::Read,
        "r+" | "c" => Access::Write,
        _ => {
            let hint = "\"r\" asks only, \"r+\" adds, \"c\" also creates";
            return Err(parameter(py, "mode", mode, "\"r\", \"r+\" or \"c\"", hint));
        }
    };
    let hasher = hasher_of(words)?;
    if mode == "c" && !path.exists() {
        let plan = plan_of(cls, words)?;
        let hasher = hasher.map_or_else(|| words.hasher(), Ok)?;
        py.detach(|| SharedFile::create(path, plan, hasher)).or_raise(py)?;
    }
    let core = py
        .detach(|| SharedFile::open(path, access))
        .map_err(|error| with_path(py, to_python(py, error), path))?;
    require_same(words, hasher, &core).map(|()| core)
}

/// Refuses words that are not those of the file: two processes that disagree must not share it.
fn require_same(words: &Words<'_>, hasher: Option<Hasher>, core: &Core) -> PyResult<()> {
    let (plan, derivation) = (core.plan(), words.paper("derivation")?);
    let derivation = derivation.map(|name| Derivation::parse(&name)).transpose();
    let derivation = derivation.or_raise(words.py)?.map(Derivation::name);
    let hash = words.get::<Option<String>>("hash", None)?;
    let compared = [
        same("capacity", plan.capacity, words.whole("capacity")?),
        same("error_rate", plan.error_rate, words.error_rate()?),
        same("layout", Some(plan.layout.name()), words.layout()?.map(Layout::name)),
        same("bits", Some(plan.bits), words.whole("bits")?),
        same("hashes", Some(plan.hashes), words.small("hashes")?),
        same("derivation", Some(plan.derivation.name()), derivation),
        same("hash", Some(core.hasher().name()), hash.as_deref()),
        hasher.map_or(Ok(()), |hasher| core.hasher().require_same(&hasher)),
    ];
    compared.into_iter().collect::<Result<()>>().or_raise(words.py)
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
