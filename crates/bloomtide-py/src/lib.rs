//! `bloomtide._core`: the core's filters as Python classes.
//!
//! This crate turns Python keys and arrays into rows the core can hash, lets the interpreter go while
//! the core works, and turns core errors into `bloomtide.errors`. It holds no algorithm and no formula.

mod bloom;
mod buffer;
mod canonical;
mod count;
mod counting;
mod decaying;
mod durable;
mod errors;
mod events;
mod files;
mod fork;
mod format;
mod history;
mod hot;
mod instants;
mod key;
mod keys;
mod lines;
mod logs;
mod open;
mod pages;
mod params;
mod python;
mod records;
mod resp;
mod scalable;
mod short_calls;
mod stream_time;
mod structure;
mod url;
mod watch;
mod weights;
mod words;
mod writers;

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;

/// The compiled part of bloomtide.
#[pymodule(gil_used = false)]
mod _core {
    #[pymodule_export]
    use super::bloom::BloomFilter;
    #[pymodule_export]
    use super::canonical::canonical_url;
    #[pymodule_export]
    use super::count::{
        CountFilter, DynamicCountFilter, PartitionedDynamicCountFilter,
        PartitionedSpectralBloomFilter, SpectralBloomFilter,
    };
    #[pymodule_export]
    use super::counting::CountingBloomFilter;
    #[pymodule_export]
    use super::decaying::TimeDecayingBloomFilter;
    #[pymodule_export]
    use super::durable::{RecordScan, pack_records};
    #[pymodule_export]
    use super::events::{Events, Intake};
    #[pymodule_export]
    use super::files::Replacing;
    #[pymodule_export]
    use super::format::{crc32c, format_kinds, pack_header, read_header, read_sealed};
    #[pymodule_export]
    use super::history::{
        Digests, HistoryBuffer, HistoryForest, HistoryPlan, HistorySegment, history_roll_up,
    };
    #[pymodule_export]
    use super::hot::HotList;
    #[pymodule_export]
    use super::lines::{Dedup, HashedLines};
    #[pymodule_export]
    use super::logs::{LogCounter, LogReader, count_lines};
    #[pymodule_export]
    use super::pages::{ParquetPage, ParquetPages};
    #[pymodule_export]
    use super::resp::{Keyspace, Session};
    #[pymodule_export]
    use super::scalable::ScalableBloomFilter;
    #[pymodule_export]
    use super::stream_time::StreamTime;
    #[pymodule_export]
    use super::url::UrlFilter;
    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        fork::install(module.py())?;
        short_calls::install(module.py())
    }

    /// The 128-bit digest of a key, as every filter of that hash and seed sees it.
    #[pyfunction]
    #[pyo3(signature = (key, *, hash="xxh3", seed=0, secret=None))]
    fn digest(
        key: &Bound<'_, PyAny>,
        hash: &str,
        seed: i128,
        secret: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<u128> {
        let hasher = params::hasher(key.py(), hash, seed, secret)?;
        Ok(key::hash_key(&hasher, key, None)?.as_u128())
    }

    /// A count as the filters read it: a whole number from 1 to 2**64 - 1. One that stands `alone`, without the
    /// instant that could stand beside it, may not be as large as a time.
    #[pyfunction]
    #[pyo3(signature = (value, *, alone=false))]
    fn parse_count(value: &Bound<'_, PyAny>, alone: bool) -> PyResult<u64> {
        let count: params::Times<'_> = value.extract()?;
        if alone { count.beside(None) } else { Ok(count.number()) }
    }

    /// Bytes of one more partition of a filter whose counters grow, beside its counters; of the storage "dynamic" or
    /// "spectral".
    #[pyfunction]
    #[pyo3(signature = (storage="dynamic"))]
    fn partition_entry_bytes(py: Python<'_>, storage: &str) -> PyResult<u64> {
        count::partition_entry_bytes(py, storage)
    }

    /// A length of time, in whatever form, as seconds.
    #[pyfunction]
    #[pyo3(signature = (value, name="duration"))]
    fn parse_duration(value: &Bound<'_, PyAny>, name: &str) -> PyResult<f64> {
        instants::duration(value, name)
    }

    /// A moment, in whatever form, as seconds since 1970; a column becomes a NumPy array of them.
    #[pyfunction]
    #[pyo3(signature = (value, name="at"))]
    fn parse_instant(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Py<PyAny>> {
        let py = value.py();
        match instants::instants(value, name)? {
            instants::Instants::One(seconds) => seconds.into_py_any(py),
            instants::Instants::Each(all) => Ok(keys::to_numpy(py, &all)?.unbind()),
        }
    }

    /// Puts bytes in a file's place, atomically and durably.
    #[pyfunction]
    fn replace_file(path: &Bound<'_, PyAny>, data: &[u8]) -> PyResult<()> {
        files::replace(path, data)
    }

    /// Reads a snapshot file of whatever kind.
    #[pyfunction]
    fn load(path: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        files::looked_at(path.py(), files::to_object(path.py(), files::load(path, None)?, None)?)
    }

    /// Reads a snapshot of whatever kind from bytes.
    #[pyfunction]
    fn from_bytes(data: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        files::to_object(data.py(), files::from_bytes(data, None)?, None)
    }
}
