//! The keywords that make a structure, from Python's words to the core's.

use crate::errors::{OrRaise, parameter};
use crate::params::{self, field};
use bloomtide_core::{Derivation, Hasher, Layout, Placement};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping};

/// The error rate when none is given.
pub(crate) const DEFAULT_ERROR_RATE: f64 = 0.01;
/// The keywords that only a structure has, and its plan has not.
pub(crate) const HASHING: &[&str] = &["hash", "seed", "secret"];

/// What a user wants: exactly one of the two.
pub(crate) enum Goal {
    Keys { capacity: u64, error_rate: f64 },
    Sizes { cells: u64, hashes: u32 },
}

/// The keywords of a call, each as given or left out. None counts as left out.
pub(crate) struct Words<'a, 'py> {
    pub(crate) py: Python<'py>,
    given: Option<&'a Bound<'py, PyDict>>,
}

impl<'a, 'py> Words<'a, 'py> {
    /// Refuses words that the call does not know.
    pub(crate) fn new(
        py: Python<'py>,
        given: Option<&'a Bound<'py, PyDict>>,
        known: &[&[&str]],
    ) -> PyResult<Self> {
        for name in given.iter().flat_map(|given| given.keys()) {
            let name: String = name.extract()?;
            if !known.iter().any(|known| known.contains(&name.as_str())) {
                let message = format!("unexpected keyword argument: {name:?}");
                return Err(PyTypeError::new_err(message));
            }
        }
        Ok(Words { py, given })
    }

    pub(crate) fn word(&self, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(given) = self.given else { return Ok(None) };
        Ok(given.get_item(name)?.filter(|value| !value.is_none()))
    }

    /// A word of that type, or what stands for it when it is left out.
    pub(crate) fn get<T>(&self, name: &str, otherwise: T) -> PyResult<T>
    where
        T: for<'b> FromPyObject<'b, 'py>,
    {
        let Some(value) = self.word(name)? else { return Ok(otherwise) };
        value.extract().map_err(|error: <T as FromPyObject<'_, 'py>>::Error| {
            let error: PyErr = error.into();
            match error.is_instance_of::<PyTypeError>(self.py) {
                true => {
                    PyTypeError::new_err(format!("argument '{name}': {}", error.value(self.py)))
                }
                false => error,
            }
        })
    }

    pub(crate) fn text(&self, name: &str, otherwise: &str) -> PyResult<String> {
        self.get(name, otherwise.to_owned())
    }

    pub(crate) fn whole(&self, name: &str) -> PyResult<Option<u64>> {
        self.word(name)?.map(|value| params::whole(name, &value)).transpose()
    }

    pub(crate) fn small(&self, name: &str) -> PyResult<Option<u32>> {
        self.word(name)?.map(|value| params::small(name, &value)).transpose()
    }

    /// The hash function of `hash`, `seed` and `secret`.
    pub(crate) fn hasher(&self) -> PyResult<Hasher> {
        let (hash, seed) = (self.text("hash", "xxh3")?, self.get("seed", 0i128)?);
        params::hasher(self.py, &hash, seed, self.word("secret")?.as_ref())
    }

    pub(crate) fn layout(&self) -> PyResult<Option<Layout>> {
        let name = self.get::<Option<String>>("layout", None)?;
        name.map(|name| Layout::parse(&name)).transpose().or_raise(self.py)
    }

    /// What only experiments of papers choose: the entry `name` of `paper`, which may have no other one.
    pub(crate) fn paper(&self, name: &str) -> PyResult<Option<String>> {
        let Some(paper) = self.word("paper")? else { return Ok(None) };
        let refuse = |got: String| {
            let allowed = format!("a mapping with the entry {name:?} alone");
            let hint = "leave it out unless you repeat an experiment: bloomtide.papers";
            parameter(self.py, "paper", got, &allowed, hint)
        };
        let Ok(paper) = paper.cast::<PyMapping>() else {
            return Err(refuse(paper.get_type().to_string()));
        };
        let mut found = None;
        for key in paper.keys()? {
            if !key.eq(name)? {
                return Err(refuse(key.repr()?.to_string()));
            }
            let value = paper.get_item(key)?;
            found = Some(value.extract().map_err(|_| refuse(value.get_type().to_string()))?);
        }
        Ok(found)
    }

    /// How positions are derived.
    pub(crate) fn derivation(&self) -> PyResult<Derivation> {
        let name = self.paper("derivation")?;
        Derivation::parse(name.as_deref().unwrap_or("enhanced")).or_raise(self.py)
    }

    /// `capacity` and `error_rate`, or sizes, of which the first has that name and the other is `hashes`.
    pub(crate) fn goal(
        &self,
        capacity: Option<&Bound<'py, PyAny>>,
        error_rate: Option<&Bound<'py, PyAny>>,
        cells: &str,
    ) -> PyResult<Goal> {
        let refuse = |name: &str, got: &str, allowed: String, hint: String| {
            Err(parameter(self.py, name, got, &allowed, &hint))
        };
        match (capacity, self.whole(cells)?, self.small("hashes")?) {
            (Some(capacity), None, None) => Ok(Goal::Keys {
                capacity: params::whole("capacity", capacity)?,
                error_rate: params::error_rate(error_rate)?,
            }),
            (None, Some(cells), Some(hashes)) if error_rate.is_none() => {
                Ok(Goal::Sizes { cells, hashes })
            }
            (None, None, None) => refuse(
                "capacity",
                "nothing",
                format!("given, or else `{cells}` and `hashes`"),
                "capacity=1_000_000, error_rate=0.01 is a good start".to_owned(),
            ),
            (None, Some(_), None) => refuse(
                "hashes",
                "nothing",
                format!("given together with `{cells}`"),
                format!("about 0.7 times the {cells} per key is best"),
            ),
            (None, None, Some(_)) => refuse(
                cells,
                "nothing",
                "given together with `hashes`".to_owned(),
                "or give `capacity` and `error_rate` instead of both".to_owned(),
            ),
            _ => refuse(
                cells,
                "goals and sizes at once",
                "left out when `capacity` or `error_rate` is given".to_owned(),
                format!("give either `capacity` and `error_rate`, or `{cells}` and `hashes`"),
            ),
        }
    }

    /// Where the counters of a key lie, with the goal that it was made for.
    pub(crate) fn placed(
        &self,
        capacity: Option<&Bound<'py, PyAny>>,
        error_rate: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Placement, Option<u64>, Option<f64>)> {
        let (layout, derivation) = (self.layout()?, self.derivation()?);
        match self.goal(capacity, error_rate, "cells")? {
            Goal::Keys { capacity, error_rate } => {
                let placed = Placement::for_goal(capacity, error_rate, layout, derivation);
                Ok((placed.or_raise(self.py)?, Some(capacity), Some(error_rate)))
            }
            Goal::Sizes { cells, hashes } => {
                Ok((Placement::for_sizes(cells, hashes, layout, derivation), None, None))
            }
        }
    }
}

/// Where the counters of a key lie, from a `Plan` record.
pub(crate) fn placement_of(plan: &Bound<'_, PyAny>) -> PyResult<Placement> {
    let py = plan.py();
    Ok(Placement {
        layout: Layout::parse(&field::<String>(plan, "layout")?).or_raise(py)?,
        derivation: Derivation::parse(&field::<String>(plan, "derivation")?).or_raise(py)?,
        cells: field(plan, "cells")?,
        hashes: field(plan, "hashes")?,
    })
}
