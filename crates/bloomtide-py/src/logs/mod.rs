//! Logs: bytes in, records out, or counts into hot lists.

mod counter;

pub(crate) use counter::LogCounter;

use crate::buffer::View;
use crate::errors::{OrRaise, parameter};
use crate::python::*;
use crate::records::new_record;
use bloomtide_core::logs::{self, FieldMap, Format, Reason, Record, Tally};
use pyo3::ffi;
use pyo3::types::{PyBytes, PyList, PyTuple};
use std::sync::Mutex;

/// Reads one log: bytes in chunks of any size, a record for each line.
#[pyclass(module = "bloomtide", frozen)]
pub(crate) struct LogReader(Mutex<logs::LogReader>);

#[pymethods]
impl LogReader {
    #[new]
    #[pyo3(signature = (*, format=None, json_map=None))]
    fn new(py: Python<'_>, format: Option<&str>, json_map: Option<&str>) -> PyResult<Self> {
        Ok(LogReader(Mutex::new(logs::LogReader::new(format_of(py, format, json_map)?))))
    }

    /// The records of the lines that end in these bytes.
    fn feed<'py>(&self, data: &Object<'py>) -> PyResult<Bound<'py, PyList>> {
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
    fn report<'py>(&self, py: Python<'py>) -> Answer<'py> {
        let said = py.detach(|| Said::of(&locked(&self.0), Tally::default()));
        said.record(py)
    }
}

/// How many lines end in these bytes.
#[pyfunction]
#[pyo3(signature = (data, /))]
pub(crate) fn count_lines(data: &Object<'_>) -> PyResult<usize> {
    Ok(logs::count_lines(Chunk::of(data)?.bytes()))
}

/// A record that outlives the lock: its time, and its fields in order.
type Row = (Option<f64>, [Option<Vec<u8>>; 5]);

impl LogReader {
    /// Nobody asks for the interpreter while holding the lock, so waiting for it cannot deadlock.
    fn collect<'py>(
        &self,
        py: Python<'py>,
        read: impl FnOnce(&mut logs::LogReader, &mut dyn FnMut(&Record<'_>)) + Send,
    ) -> PyResult<Bound<'py, PyList>> {
        let rows = py.detach(|| {
            let mut rows: Vec<Row> = Vec::new();
            read(&mut locked(&self.0), &mut |line| {
                let fields = [line.host, line.ip, line.path, line.status, line.referer];
                rows.push((line.time, fields.map(|field| field.map(<[u8]>::to_vec))));
            });
            rows
        });
        let class = py.import("bloomtide.records")?.getattr("LogRecord")?;
        let made = rows.into_iter().map(|(time, fields)| {
            let [host, ip, path, status, referer] =
                fields.map(|field| field.map(|field| PyBytes::new(py, &field)));
            class.call1((time, host, ip, path, status, referer))
        });
        PyList::new(py, made.collect::<PyResult<Vec<_>>>()?)
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

/// What a reader has read, and what was counted of it, copied out of the lock.
pub(crate) struct Said {
    format: Option<&'static str>,
    latest: Option<f64>,
    report: logs::Report,
    tally: Tally,
}

impl Said {
    pub(crate) fn of(reader: &logs::LogReader, tally: Tally) -> Self {
        Said {
            format: reader.format().map(Format::name),
            latest: reader.latest(),
            report: reader.report().clone(),
            tally,
        }
    }

    pub(crate) fn record<'py>(&self, py: Python<'py>) -> Answer<'py> {
        let bad = self.report.bad.iter().map(|line| {
            let (reason, tried): (_, &[&str]) = match &line.reason {
                Reason::Format(tried) => ("format", tried),
                Reason::TooLong => ("length", &[]),
                Reason::Time => ("time", &[]),
            };
            let (text, tried) = (PyBytes::new(py, &line.text), PyTuple::new(py, tried)?);
            new_record!(py, "BadLine" => number: line.number, text, reason, tried)
        });
        let bad = PyTuple::new(py, bad.collect::<PyResult<Vec<_>>>()?)?;
        let logs::Report { lines, parsed, skipped, .. } = self.report;
        let Tally { first, counted, without, later, .. } = self.tally;
        new_record!(py, "LogReport" =>
            format: self.format, lines, parsed, skipped, bad, latest: self.latest, first, counted,
            without, later)
    }
}

/// Bytes of a Python object, held in place. Writing to a bytearray meanwhile is the caller's to avoid.
pub(crate) struct Chunk(View);

impl Chunk {
    pub(crate) fn of(data: &Object<'_>) -> PyResult<Self> {
        View::of(data, ffi::PyBUF_SIMPLE).map(Chunk).ok_or_else(|| {
            let got = class_name(&data.get_type());
            parameter(data.py(), "data", got, "bytes", "open the file with mode \"rb\"")
        })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.0.slice()
    }
}
