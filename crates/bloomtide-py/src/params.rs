//! Parameters that several classes share, from Python's words to the core's.

use crate::errors::parameter;
use crate::words::DEFAULT_ERROR_RATE;
use bloomtide_core::Hasher;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt};
use std::path::PathBuf;

/// What was given, as an error shows it.
pub(crate) fn shown(value: &Bound<'_, PyAny>) -> String {
    value.repr().map_or_else(|_| "?".to_owned(), |text| text.to_string())
}

/// A whole number that may be written as 1e9.
pub(crate) fn whole(name: &str, value: &Bound<'_, PyAny>) -> PyResult<u64> {
    let py = value.py();
    let refuse = || {
        let got = shown(value);
        parameter(py, name, got, "a whole number, at least 1", "write it as 1_000_000 or int(1e6)")
    };
    if value.is_instance_of::<pyo3::types::PyBool>() {
        return Err(refuse());
    }
    if let Ok(number) = value.cast::<PyInt>() {
        return match number.extract::<u64>() {
            // Too large for 64 bits is too large for every limit, whose own message is clearer.
            Err(_) if number.gt(0)? => Ok(u64::MAX),
            Ok(0) | Err(_) => Err(refuse()),
            Ok(number) => Ok(number),
        };
    }
    value.call_method0("__index__").and_then(|number| number.extract::<u64>()).map_err(|_| refuse())
}

/// The same when it may be left out.
pub(crate) fn maybe_whole(name: &str, value: Option<&Bound<'_, PyAny>>) -> PyResult<Option<u64>> {
    value.map(|value| whole(name, value)).transpose()
}

/// A small whole number; larger ones come out as a value that every check refuses.
pub(crate) fn small(name: &str, value: &Bound<'_, PyAny>) -> PyResult<u32> {
    Ok(u32::try_from(whole(name, value)?).unwrap_or(u32::MAX))
}

/// A rate between 0 and 1; what is no number is refused by name.
pub(crate) fn rate(name: &str, value: &Bound<'_, PyAny>) -> PyResult<f64> {
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
    secret: Option<&Bound<'_, PyAny>>,
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

fn sixteen_bytes(secret: &Bound<'_, PyAny>) -> PyResult<[u8; 16]> {
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

/// The error rate that is given, or the usual one.
pub(crate) fn error_rate(value: Option<&Bound<'_, PyAny>>) -> PyResult<f64> {
    value.map_or(Ok(DEFAULT_ERROR_RATE), |value| rate("error_rate", value))
}

/// Refuses what is no probability.
pub(crate) fn check_confidence(py: Python<'_>, confidence: f64) -> PyResult<()> {
    if confidence > 0.0 && confidence < 1.0 {
        return Ok(());
    }
    let hint = "0.95 is right in 19 of 20 cases";
    Err(parameter(py, "confidence", confidence, "between 0 and 1", hint))
}

/// A field of a `Plan` record.
pub(crate) fn field<'py, T>(plan: &Bound<'py, PyAny>, name: &str) -> PyResult<T>
where
    T: for<'a> FromPyObject<'a, 'py>,
{
    let wrong = || {
        let hint = "make it with the class's own plan()";
        parameter(plan.py(), "plan", format!("no usable `{name}`"), "a Plan", hint)
    };
    plan.getattr(name).map_err(|_| wrong())?.extract().map_err(|_| wrong())
}

/// Refuses a plan made for another class.
pub(crate) fn require_kind(plan: &Bound<'_, PyAny>, kind: &str) -> PyResult<()> {
    let got: String = field(plan, "kind")?;
    if got == kind {
        return Ok(());
    }
    let hint = "call from_plan on the class whose plan() made it";
    Err(parameter(plan.py(), "plan", format!("kind {got:?}"), "of the class's own kind", hint))
}

/// A path of any kind Python has.
pub(crate) fn path(value: &Bound<'_, PyAny>) -> PyResult<PathBuf> {
    value.extract::<PathBuf>().map_err(|_| {
        let got = value.get_type().to_string();
        parameter(value.py(), "path", got, "a path", "give a str or a pathlib.Path")
    })
}
