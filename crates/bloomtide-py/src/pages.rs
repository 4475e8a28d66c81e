//! Pages of a Parquet column for Python: an iterator of keys that any `add_many` takes.

use crate::buffer::View;
use crate::errors::{OrRaise, parameter};
use crate::python::*;
use bloomtide_core::pages::{Codec, Form, Page, Pages, Physical};
use pyo3::ffi;
use std::sync::{Arc, Mutex};

/// The pages of one chunk of a flat column that has no nulls.
#[pyclass(module = "bloomtide._core", frozen)]
pub(crate) struct ParquetPages {
    view: View,
    core: Mutex<Pages>,
}

#[pymethods]
impl ParquetPages {
    #[new]
    #[pyo3(signature = (data, *, physical, codec, values, optional, text=false))]
    fn new(
        data: &Object<'_>,
        physical: &str,
        codec: &str,
        values: u64,
        optional: bool,
        text: bool,
    ) -> PyResult<Self> {
        let py = data.py();
        let refuse = |name, got: &str, allowed| {
            Err(parameter(py, name, got, allowed, "read such a column by pyarrow"))
        };
        let physical = match physical {
            "INT32" => Physical::Int32,
            "INT64" => Physical::Int64,
            "BYTE_ARRAY" => Physical::Bytes { text },
            other => return refuse("physical", other, "INT32, INT64 or BYTE_ARRAY"),
        };
        let codec = match codec {
            "UNCOMPRESSED" => Codec::Plain,
            "SNAPPY" => Codec::Snappy,
            other => return refuse("codec", other, "UNCOMPRESSED or SNAPPY"),
        };
        let Some(view) = View::of(data, ffi::PyBUF_SIMPLE) else {
            return refuse("data", &data.get_type().to_string(), "bytes, or a buffer of them");
        };
        let form = Form { physical, codec, optional };
        Ok(ParquetPages { view, core: Mutex::new(Pages::new(form, values)) })
    }

    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<ParquetPage>> {
        let page = py.detach(|| locked(&self.core).next(self.view.slice()));
        Ok(page.or_raise(py)?.map(ParquetPage))
    }
}

/// The keys of one page.
#[pyclass(module = "bloomtide._core", frozen)]
pub(crate) struct ParquetPage(pub(crate) Arc<Page>);

#[pymethods]
impl ParquetPage {
    fn __len__(&self) -> usize {
        self.0.len()
    }
}
