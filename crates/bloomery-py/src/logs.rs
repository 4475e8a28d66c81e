//! Logs: bytes in, records out.

use crate::buffer::View;
use crate::errors::{OrRaise, parameter};
use crate::records::record;
use bloomery_core::logs::{self, FieldMap, Format, Reason, Record, Tally};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Reads one log: bytes in chunks of any size, a record for each line.
#[pyclass(module = "bloomery", frozen)]
pub(crate) struct LogReader(Mutex<logs::LogReader>);

#[pymethods]
impl LogReader {
    #[new]
    #[pyo3(signature = (*, format=None, json_map=None))]
    fn new(py: Python<'_>, format: Option<&str>, json_map: Option<&str>) -> PyResult<Self> {
        Ok(LogReader(Mutex::new(logs::LogReader::new(format_of(py, format, json_map)?))))
    }

    /// The records of the lines that end in these bytes.
    fn feed<'py>(&self, data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let chunk = Chunk::of(data)?;
        self.collect(data.py(), |reader, each| reader.feed(chunk.bytes(), each))
    }

    /// Finds the format by the lines held back so far, and answers their records.
    fn settle<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.collect(py, |reader, each| reader.settle(each))
    }

    /// The record of a last line without a line end.
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.collect(py, |reader, each| reader.finish(each))
    }

    /// What became of the lines so far.
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        report(py, &locked(&self.0), Tally::default())
    }
}

impl LogReader {
    fn collect<'py>(
        &self,
        py: Python<'py>,
        read: impl FnOnce(&mut logs::LogReader, &mut dyn FnMut(&Record<'_>)),
    ) -> PyResult<Bound<'py, PyList>> {
        let class = py.import("bloomery.records")?.getattr("LogRecord")?;
        let found = PyList::empty(py);
        let mut outcome = Ok(());
        let each = &mut |line: &Record<'_>| {
            let bytes = |field: Option<&[u8]>| field.map(|field| PyBytes::new(py, field));
            let (host, ip, path) = (bytes(line.host), bytes(line.ip), bytes(line.path));
            let fields = (line.time, host, ip, path, bytes(line.status), bytes(line.referer));
            if outcome.is_ok() {
                outcome = class.call1(fields).and_then(|record| found.append(record));
            }
        };
        read(&mut locked(&self.0), each);
        outcome.map(|()| found)
    }
}

/// The format of that name; a map alone means JSON.
pub(crate) fn format_of(
    py: Python<'_>,
    name: Option<&str>,
    map: Option<&str>,
) -> PyResult<Option<Format>> {
    let map = map.map(FieldMap::parse).transpose().or_raise(py)?;
    match (name, map) {
        (None, None) => Ok(None),
        (None, Some(map)) => Ok(Some(Format::Json(map))),
        (Some(name), map) => Format::parse(name, map).map(Some).or_raise(py),
    }
}

/// The lock; who panicked while holding it left whole lines behind.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a reader has read, and what was counted of it.
pub(crate) fn report<'py>(
    py: Python<'py>,
    reader: &logs::LogReader,
    tally: Tally,
) -> PyResult<Bound<'py, PyAny>> {
    let said = reader.report();
    let bad = said.bad.iter().map(|line| {
        let (reason, tried): (_, &[&str]) = match &line.reason {
            Reason::Format(tried) => ("format", tried),
            Reason::TooLong => ("length", &[]),
            Reason::Time => ("time", &[]),
        };
        record(py, "BadLine", |fields| {
            fields.set_item("number", line.number)?;
            fields.set_item("text", PyBytes::new(py, &line.text))?;
            fields.set_item("reason", reason)?;
            fields.set_item("tried", PyTuple::new(py, tried)?)
        })
    });
    let bad = PyTuple::new(py, bad.collect::<PyResult<Vec<_>>>()?)?;
    record(py, "LogReport", |fields| {
        fields.set_item("format", reader.format().map(Format::name))?;
        fields.set_item("lines", said.lines)?;
        fields.set_item("parsed", said.parsed)?;
        fields.set_item("skipped", said.skipped)?;
        fields.set_item("bad", bad)?;
        fields.set_item("latest", reader.latest())?;
        fields.set_item("counted", tally.counted)?;
        fields.set_item("without", tally.without)?;
        fields.set_item("later", tally.later)
    })
}

/// Bytes of a Python object, held in place. Writing to a bytearray meanwhile is the caller's to avoid.
pub(crate) struct Chunk(View);

impl Chunk {
    pub(crate) fn of(data: &Bound<'_, PyAny>) -> PyResult<Self> {
        View::of(data, ffi::PyBUF_SIMPLE).map(Chunk).ok_or_else(|| {
            let got =
                data.get_type().name().map_or_else(|_| "?".to_owned(), |name| name.to_string());
            parameter(data.py(), "data", got, "bytes", "open the file with mode \"rb\"")
        })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the view keeps that many bytes in place as long as it lives.
        unsafe { std::slice::from_raw_parts(self.0.data().cast_const(), self.0.bytes()) }
    }
}
