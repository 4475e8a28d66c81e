//! Parameters that several classes share, from Python's words to the core's.

use crate::errors::parameter;
use crate::python::*;
use bloomtide_core::Hasher;
use pyo3::Borrowed;
use pyo3::types::{PyBool, PyBytes, PyInt, PyTuple};
use std::path::PathBuf;

/// What was given, as an error shows it.
pub(crate) fn shown(value: &Object<'_>) -> String {
    value.repr().map_or_else(|_| "?".to_owned(), |text| text.to_string())
}

/// A whole number of 64 bits, at least 1.
pub(crate) fn whole(name: &str, value: &Object<'_>) -> PyResult<u64> {
    limited(name, value, 64)
}

fn limited<T>(name: &str, value: &Object<'_>, bits: u32) -> PyResult<T>
where
    T: for<'a, 'py> FromPyObject<'a, 'py> + Default + PartialEq,
{
    let number = value.extract::<T>().ok().filter(|number| *number != T::default());
    number.filter(|_| !value.is_instance_of::<PyBool>()).ok_or_else(|| {
        let large = value.cast::<PyInt>().is_ok_and(|number| number.gt(1).unwrap_or(false));
        let end = if large { format!(" below 2**{bits}") } else { ", at least 1".to_owned() };
        let hint = "write it as 1_000_000 or int(1e6)";
        parameter(value.py(), name, shown(value), &format!("a whole number{end}"), hint)
    })
}

/// How many, at least 1; what does not fit 64 bits is as many as there can be.
pub(crate) fn many(name: &str, value: &Object<'_>) -> PyResult<u64> {
    whole(name, value).or_else(|error| match value.cast::<PyInt>() {
        Ok(number) if number.gt(u64::MAX)? => Ok(u64::MAX),
        _ => Err(error),
    })
}

/// The argument `count`: how often, at least 1. None is no number.
pub(crate) struct Times<'py> {
    number: u64,
    given: Option<Object<'py>>,
}

/// From here on a count may be a time in the wrong place: this many seconds after 1970 it was 1973.
const LIKE_A_TIME: u64 = 100_000_000;

impl Times<'_> {
    /// When it is left out.
    pub(crate) const ONCE: Self = Times { number: 1, given: None };

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// What was given, where that is more than the number says.
    pub(crate) fn beyond(&self) -> Option<&Object<'_>> {
        self.given.as_ref().filter(|_| self.number == u64::MAX)
    }

    /// The same in a method that takes an instant, too. A number as large as a time is refused without one: it is
    /// mostly the instant itself.
    pub(crate) fn beside(&self, at: Option<&Object<'_>>) -> PyResult<u64> {
        match &self.given {
            Some(given) if self.number >= LIKE_A_TIME && at.is_none() => {
                let hint = "give an instant as at=...; for a count that large give `at` too, or `counts` to add_many";
                let allowed = "below 100,000,000 where `at` is left out";
                Err(parameter(given.py(), "count", shown(given), allowed, hint))
            }
            _ => Ok(self.number),
        }
    }
}

impl<'py> FromPyObject<'_, 'py> for Times<'py> {
    type Error = PyErr;

    fn extract(count: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(Times { number: many("count", &count)?, given: Some(count.to_owned()) })
    }
}

/// Refuses what stands behind the keys of a structure that neither counts nor has a time.
pub(crate) fn refuse_more(py: Python<'_>, name: &str, more: &Bound<'_, PyTuple>) -> PyResult<()> {
    match more.iter().next() {
        None => Ok(()),
        Some(got) => Err(no_counts(py, name, &shown(&got))),
    }
}

/// The error of a count where nothing is counted.
pub(crate) fn no_counts(py: Python<'_>, name: &str, got: &str) -> PyErr {
    let hint =
        "CountingBloomFilter and its siblings count; TimeDecayingBloomFilter takes an instant, too";
    parameter(py, name, got, "left out: this structure does not count", hint)
}

/// A whole number of 32 bits, at least 1.
pub(crate) fn small(name: &str, value: &Object<'_>) -> PyResult<u32> {
    limited(name, value, 32)
}

/// A rate between 0 and 1; what is no number is refused by name.
pub(crate) fn rate(name: &str, value: &Object<'_>) -> PyResult<f64> {
    value.extract::<f64>().map_err(|_| {
        let got = shown(value);
        parameter(value.py(), name, got, "a number", "0.01 means one in a hundred")
    })
}

/// The hash function of the words `hash`, `seed` and `secret`.
pub(crate) fn hasher(
    py: Python<'_>,
    hash: &str,
    seed: i128,
    secret: Option<&Object<'_>>,
) -> PyResult<Hasher> {
    let refuse = |name: &str, got: &str, allowed: &str, hint: &str| {
        Err(parameter(py, name, got, allowed, hint))
    };
    let Ok(number) = u64::try_from(seed) else {
        let hint = "any fixed number will do";
        return refuse("seed", &seed.to_string(), "between 0 and 2**64 - 1", hint);
    };
    match (hash, secret) {
        ("xxh3", None) => Ok(Hasher::Xxh3 { seed: number }),
        ("xxh3", Some(_)) => {
            let hint = "use hash=\"keyed\" with a secret, or seed= with xxh3";
            refuse("secret", "a secret", "left out with hash=\"xxh3\"", hint)
        }
        ("keyed", _) if number != 0 => {
            let hint = "the secret takes the seed's place";
            refuse("seed", &seed.to_string(), "left out with hash=\"keyed\"", hint)
        }
        ("keyed", Some(secret)) => Ok(Hasher::Keyed { secret: sixteen_bytes(secret)? }),
        ("keyed", None) => {
            let random = py.import("secrets")?.call_method1("token_bytes", (16,))?;
            Ok(Hasher::Keyed { secret: sixteen_bytes(&random)? })
        }
        _ => {
            let hint = "\"keyed\" defends against chosen keys";
            refuse("hash", hash, "\"xxh3\" or \"keyed\"", hint)
        }
    }
}

fn sixteen_bytes(secret: &Object<'_>) -> PyResult<[u8; 16]> {
    let bytes = secret.cast::<PyBytes>().ok().and_then(|bytes| bytes.as_bytes().try_into().ok());
    bytes.ok_or_else(|| {
        // The secret itself is never shown.
        let got = match secret.len() {
            Ok(len) => format!("{len} items"),
            Err(_) => "something without a length".to_owned(),
        };
        let hint = "secrets.token_bytes(16) makes one";
        parameter(secret.py(), "secret", got, "16 bytes", hint)
    })
}

/// Refuses what is no probability.
pub(crate) fn check_confidence(py: Python<'_>, confidence: f64) -> PyResult<()> {
    if confidence > 0.0 && confidence < 1.0 {
        return Ok(());
    }
    let hint = "0.95 is right in 19 of 20 cases";
    Err(parameter(py, "confidence", confidence, "between 0 and 1", hint))
}

/// A path of any kind Python has.
pub(crate) fn path(value: &Object<'_>) -> PyResult<PathBuf> {
    value.extract::<PathBuf>().map_err(|_| {
        let got = value.get_type().to_string();
        parameter(value.py(), "path", got, "a path", "give a str or a pathlib.Path")
    })
}
