//! The arguments that make a structure, from Python's words to the core's.
//!
//! They come from a call, or from a `Plan` record, whose fields have the same names.

use crate::errors::{OrRaise, parameter};
use crate::params::{self, shown};
use crate::python::*;
use bloomtide_core::{Derivation, Hasher, Layout, Placement, Policy, Result};
use pyo3::exceptions::PyTypeError;
use pyo3::types::{PyDict, PyMapping, PyString, PyTuple};

/// The error rate when none is given.
pub(crate) const DEFAULT_ERROR_RATE: f64 = 0.01;

/// A keyword that a call does not know.
pub(crate) fn unexpected(name: &str) -> PyErr {
    PyTypeError::new_err(format!("unexpected keyword argument: '{name}'"))
}

/// The arguments of a call, each as given or left out. None counts as left out.
pub(crate) struct Words<'py> {
    pub(crate) py: Python<'py>,
    given: Dict<'py>,
    /// The plan that takes the place of goals and sizes.
    plan: Option<Object<'py>>,
}

impl<'py> Words<'py> {
    /// Reads a call by its signature as `inspect` shows it: names before `*` may be given by place, and those without
    /// a default must be given.
    pub(crate) fn new(
        signature: &str,
        places: &Bound<'py, PyTuple>,
        keywords: Option<&Dict<'py>>,
    ) -> PyResult<Self> {
        let refuse = |message: String| Err(PyTypeError::new_err(message));
        let py = places.py();
        let parts = signature.trim_matches(['(', ')']).split(", ");
        let parts = parts.filter(|part| !part.starts_with('$'));
        let named =
            |part| str::split_once(part, '=').map_or((part, true), |(name, _)| (name, false));
        let names: Vec<(&str, bool)> = parts.map(named).collect();
        let most = names.iter().take_while(|(name, _)| *name != "*").count();
        if places.len() > most {
            return refuse(format!("at most {most} positional arguments, got: {}", places.len()));
        }
        let given = PyDict::new(py);
        for ((name, _), value) in names.iter().zip(places) {
            given.set_item(name, value)?;
        }
        for (name, value) in keywords.iter().flat_map(|keywords| keywords.iter()) {
            let word = name.cast::<PyString>()?.to_str()?;
            if !names.iter().any(|(known, _)| *known == word) {
                return Err(unexpected(word));
            }
            if given.contains(&name)? {
                return refuse(format!("multiple values for argument: {}", shown(&name)));
            }
            given.set_item(name, value)?;
        }
        for (name, required) in names {
            if required && name != "*" && !given.contains(name)? {
                return refuse(format!("missing required argument: '{name}'"));
            }
        }
        let plan = given.get_item("plan")?;
        Ok(Words { py, given, plan })
    }

    /// Whether a plan says it all.
    pub(crate) fn planned(&self) -> bool {
        self.plan.is_some()
    }

    /// Refuses a plan that is not of these kinds.
    pub(crate) fn require_kind(&self, kinds: &[&str]) -> PyResult<()> {
        let Some(plan) = &self.plan else { return Ok(()) };
        let got = self.text("kind", "")?;
        if kinds.contains(&got.as_str()) {
            return Ok(());
        }
        let hint = "call from_plan on the class whose plan() made it";
        let got = format!("kind {got:?}");
        Err(parameter(plan.py(), "plan", got, "of the class's own kind", hint))
    }

    /// Refuses words that the signature has for others.
    pub(crate) fn refuse(&self, names: &[&str]) -> PyResult<()> {
        let given = names.iter().find(|name| self.given.contains(name).unwrap_or(true));
        given.map_or(Ok(()), |name| Err(unexpected(name)))
    }

    pub(crate) fn word(&self, name: &str) -> PyResult<Option<Object<'py>>> {
        let value = match &self.plan {
            Some(plan) if !self.given.contains(name)? => plan.getattr_opt(name)?,
            _ => self.given.get_item(name)?,
        };
        Ok(value.filter(|value| !value.is_none()))
    }

    /// A word of that type, or what stands for it when it is left out.
    pub(crate) fn get<T>(&self, name: &str, otherwise: T) -> PyResult<T>
    where
        T: for<'b> FromPyObject<'b, 'py>,
    {
        let Some(value) = self.word(name)? else { return Ok(otherwise) };
        value.extract().map_err(|error: <T as FromPyObject<'_, 'py>>::Error| {
            let error: PyErr = error.into();
            let given = self.given.contains(name).unwrap_or(false);
            match error.is_instance_of::<PyTypeError>(self.py) {
                _ if self.planned() && !given => self.unusable(name),
                true => {
                    PyTypeError::new_err(format!("argument '{name}': {}", error.value(self.py)))
                }
                // A number that its type does not hold.
                false => {
                    let hint = "the class's documentation says which numbers make sense";
                    parameter(self.py, name, shown(&value), "a number in range", hint)
                }
            }
        })
    }

    /// What must be given, be it None.
    pub(crate) fn must(&self, name: &str) -> Answer<'py> {
        Ok(self.word(name)?.unwrap_or_else(|| self.py.None().into_bound(self.py)))
    }

    /// A field that every plan of the kind has.
    pub(crate) fn field<T>(&self, name: &str) -> PyResult<T>
    where
        T: for<'b> FromPyObject<'b, 'py>,
    {
        self.get::<Option<T>>(name, None)?.ok_or_else(|| self.unusable(name))
    }

    fn unusable(&self, name: &str) -> PyErr {
        let hint = "make it with the class's own plan()";
        parameter(self.py, "plan", format!("no usable `{name}`"), "a Plan", hint)
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

    /// `error_rate`, if it is given.
    pub(crate) fn error_rate(&self) -> PyResult<Option<f64>> {
        self.word("error_rate")?.map(|value| params::rate("error_rate", &value)).transpose()
    }

    pub(crate) fn policy(&self) -> PyResult<Policy> {
        Policy::parse(&self.text("policy", "plain")?).or_raise(self.py)
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
        if self.planned() {
            return self.get(name, None);
        }
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

    /// Where the cells of a key lie, by the plan.
    pub(crate) fn placement(&self) -> PyResult<Placement> {
        let layout = Layout::parse(&self.field::<String>("layout")?).or_raise(self.py)?;
        let (cells, hashes) = (self.field("cells")?, self.field("hashes")?);
        Ok(Placement { layout, derivation: self.derivation()?, cells, hashes })
    }

    /// A goal, `capacity` and `error_rate`, or sizes, of which the first has that name and the other is `hashes`.
    /// The cells of a key by either, or by a plan; with the goal.
    pub(crate) fn placed<P>(
        &self,
        cells: &str,
        for_goal: impl FnOnce(u64, f64, Option<Layout>, Derivation) -> Result<P>,
        for_sizes: impl FnOnce(u64, u32, Option<Layout>, Derivation) -> Result<P>,
        planned: impl FnOnce(Placement) -> P,
    ) -> PyResult<(P, Option<u64>, Option<f64>)> {
        let (capacity, error_rate) = (self.whole("capacity")?, self.error_rate()?);
        if self.planned() {
            return Ok((planned(self.placement()?), capacity, error_rate));
        }
        let (layout, derivation) = (self.layout()?, self.derivation()?);
        let refuse = |name: &str, got: &str, allowed: String, hint: String| {
            Err(parameter(self.py, name, got, &allowed, &hint))
        };
        match (capacity, self.whole(cells)?, self.small("hashes")?) {
            (Some(capacity), None, None) => {
                let rate = error_rate.unwrap_or(DEFAULT_ERROR_RATE);
                let placed = for_goal(capacity, rate, layout, derivation).or_raise(self.py)?;
                Ok((placed, Some(capacity), Some(rate)))
            }
            (None, Some(cells), Some(hashes)) if error_rate.is_none() => {
                let placed = for_sizes(cells, hashes, layout, derivation).or_raise(self.py)?;
                Ok((placed, None, None))
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

    /// The same for counters.
    pub(crate) fn counters(&self) -> PyResult<(Placement, Option<u64>, Option<f64>)> {
        let for_sizes = |cells, hashes, layout, derivation| {
            Ok(Placement::for_sizes(cells, hashes, layout, derivation))
        };
        self.placed("cells", Placement::for_goal, for_sizes, |placement| placement)
    }
}
