//! `canonical_url`: the core's canonical form of one URL.

use crate::errors::{OrRaise, parameter};
use crate::key::with_key;
use crate::python::*;
use bloomtide_core::url::{Names, Slash};
use bloomtide_core::{Canon, Error, Key, canonical};
use pyo3::types::PyString;

/// The one spelling of a URL's address.
#[pyfunction]
#[pyo3(
    signature = (url, *, sort_query=false, drop_tracking=None, trailing_slash="keep", drop_sessions=false, keep_fragment=false),
    text_signature = "(url, *, sort_query=False, drop_tracking=False, trailing_slash='keep', drop_sessions=False, keep_fragment=False)"
)]
pub(crate) fn canonical_url<'py>(
    url: &Object<'py>,
    sort_query: bool,
    drop_tracking: Option<&Object<'py>>,
    trailing_slash: &str,
    drop_sessions: bool,
    keep_fragment: bool,
) -> PyResult<Bound<'py, PyString>> {
    let py = url.py();
    let options = Canon {
        sort_query,
        trailing_slash: Slash::parse(trailing_slash).or_raise(py)?,
        drop_tracking: drop_tracking.map_or_else(|| Ok(Names::default()), names)?,
        drop_sessions,
        keep_fragment,
    };
    let mut buffer = Vec::new();
    let form = with_key(url, None, |key| {
        let (Key::Text(bytes) | Key::Bytes(bytes)) = key else {
            let hint = "convert it to str";
            return Err(Error::parameter("url", "a number", "text or bytes", hint));
        };
        let form = canonical(bytes, &options, &mut buffer)?;
        // The same text is the same object: no copy for URLs that are canonical already.
        let same = form.len() == bytes.len() && form.as_ptr() == bytes.as_ptr();
        Ok(match url.cast::<PyString>() {
            Ok(text) if same => text.clone(),
            // The form is ASCII.
            _ => PyString::new(py, &String::from_utf8_lossy(form)),
        })
    })?;
    form.or_raise(py)
}

/// True for the list that comes with the package, False for none, or a list.
fn names(value: &Object<'_>) -> PyResult<Names> {
    let py = value.py();
    // NumPy's truths, too.
    if let Ok(known) = value.extract::<bool>() {
        return Ok(if known { Names::tracking() } else { Names::default() });
    }
    let refuse = |got: String| {
        let hint = "drop_tracking=[\"utm_*\", \"ref\"], or True for the list in the documentation";
        parameter(py, "drop_tracking", got, "a bool or a list of names", hint)
    };
    // A str is a sequence of letters, which nobody means.
    if value.is_instance_of::<PyString>() {
        return Err(refuse("a single `str`".to_owned()));
    }
    let mut names = Vec::new();
    for name in
        value.try_iter().map_err(|_| refuse(format!("`{}`", class_name(&value.get_type()))))?
    {
        let name = name?;
        names.push(name.extract::<String>().map_err(|_| refuse(format!("a list with {name:?}")))?);
    }
    Names::new(names.iter().map(String::as_str)).or_raise(py)
}
