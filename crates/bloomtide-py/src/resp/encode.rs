//! Python values as replies.

use crate::python::*;
use bloomtide_resp::wire::reply::Reply;
use pyo3::exceptions::{PyBaseException, PyRecursionError, PyTypeError};
use pyo3::types::{
    PyBool, PyBytes, PyDict, PyFloat, PyFrozenSet, PyInt, PyList, PySet, PyString, PyTuple,
};

/// Lists in lists at most.
const DEPTH: usize = 32;

/// Writes a value: `bytes` as a byte string, `str` as a line or as text of several, an exception as an error.
pub(super) fn encode(reply: &mut Reply, value: &Object<'_>, depth: usize) -> PyResult<()> {
    if depth > DEPTH {
        return Err(PyRecursionError::new_err("a reply with too many lists in lists"));
    }
    let each =
        |reply: &mut Reply| value.try_iter()?.try_for_each(|item| encode(reply, &item?, depth + 1));
    if value.is_none() {
        reply.null();
    } else if let Ok(value) = value.cast::<PyBytes>() {
        reply.bulk(value.as_bytes());
    } else if let Ok(value) = value.cast::<PyString>() {
        let text = value.to_str()?;
        if text.contains(char::is_control) {
            reply.text(text.as_bytes());
        } else {
            reply.simple(text);
        }
    } else if let Ok(value) = value.cast::<PyBool>() {
        reply.bool(value.is_true());
    } else if let Ok(value) = value.cast::<PyInt>() {
        reply.int(value.extract()?);
    } else if let Ok(value) = value.cast::<PyFloat>() {
        reply.double(value.value());
    } else if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        reply.array(value.len()?);
        each(reply)?;
    } else if let Ok(value) = value.cast::<PyDict>() {
        reply.map(value.len());
        for (key, item) in value.iter() {
            encode(reply, &key, depth + 1)?;
            encode(reply, &item, depth + 1)?;
        }
    } else if value.is_instance_of::<PySet>() || value.is_instance_of::<PyFrozenSet>() {
        reply.set(value.len()?);
        each(reply)?;
    } else if value.is_instance_of::<PyBaseException>() {
        let text = value.str()?.to_string();
        reply.error(&with_code(&text));
    } else {
        let name = value.get_type().qualname()?;
        return Err(PyTypeError::new_err(format!("no reply can be made of: `{name}`")));
    }
    Ok(())
}

/// The first line, with a code in front if it has none.
fn with_code(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let code = line.split(' ').next().unwrap_or_default();
    let coded = code.len() > 1 && code.bytes().all(|byte| byte.is_ascii_uppercase());
    if coded { line.to_owned() } else { format!("ERR {line}") }
}
