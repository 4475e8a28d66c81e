//! The Redis protocol for a server in Python: bytes of a socket in, bytes for the socket out.
//!
//! Nobody asks for the interpreter while holding a lock, so waiting for one cannot deadlock; making a dict may run
//! the garbage collector, and with it anything. The session's lock comes before the keyspace's.

mod encode;
mod session;

pub(crate) use session::Session;

use crate::errors::{OrRaise, parameter, to_python, with_path};
use crate::params;
use crate::python::*;
use crate::records::fields;
use crate::structure::getters;
use bloomtide_resp::structure::{Kind, Summary};
use bloomtide_resp::{Keyspace as Core, file};
use pyo3::sync::MutexExt;
use pyo3::types::{PyBytes, PyDict, PyList};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The lock for who may have to wait for long, while all is read or written: others use the interpreter meanwhile.
fn waited_for<'a, T>(py: Python<'_>, mutex: &'a Mutex<T>) -> MutexGuard<'a, T> {
    mutex.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
}

/// Structures that are looked at before others may use the keyspace again.
const FEW: usize = 16;

/// What is told of a structure: its slot, its name, the words of its kind and of TYPE, its memory, its state.
type Row = (usize, Box<[u8]>, &'static str, &'static str, u64, Summary);

/// Named structures, the commands on them, and what must be journaled.
#[pyclass(module = "bloomtide._core", frozen)]
pub(crate) struct Keyspace(Arc<Mutex<Core>>);

impl Keyspace {
    /// The next structures from a slot on.
    fn some_rows(&self, slot: usize, most: usize) -> Vec<Row> {
        let core = locked(&self.0);
        let rows = core.store.iter_from(slot).take(most).map(|(slot, name, held)| {
            let type_name = Kind::of(held).type_name;
            (slot, name.into(), held.kind(), type_name, held.bytes(), held.summary())
        });
        rows.collect()
    }
}

#[pymethods]
impl Keyspace {
    #[new]
    #[pyo3(
        signature = (*, max_memory=None, max_keys=None, max_bulk=512 << 20, foreign=None, journal=true),
        text_signature = "(*, max_memory=None, max_keys=None, max_bulk=536870912, foreign=None, journal=True)"
    )]
    fn new(
        py: Python<'_>,
        max_memory: Option<u64>,
        max_keys: Option<u64>,
        max_bulk: usize,
        foreign: Option<Vec<String>>,
        journal: bool,
    ) -> PyResult<Self> {
        if !(1024..=1 << 40).contains(&max_bulk) {
            let hint = "Redis's own limit is 512 << 20";
            return Err(parameter(py, "max_bulk", max_bulk, "between 1024 and 2**40", hint));
        }
        // Unknown to whoever chooses names, and different in each process.
        let seed = RandomState::new().hash_one(0u8);
        let mut core = Core::new(seed, max_memory, max_bulk, &foreign.unwrap_or_default());
        core.store.most = max_keys;
        core.changes.silent = !journal;
        Ok(Keyspace(Arc::new(Mutex::new(core))))
    }

    /// A new client.
    #[pyo3(signature = (*, client=0))]
    fn session(&self, client: i64) -> Session {
        Session::new(self.0.clone(), client)
    }

    /// Changes users as lines of a Redis access list say; all of them or none.
    fn set_users(&self, py: Python<'_>, lines: Vec<String>) -> PyResult<()> {
        locked(&self.0).set_users(lines.iter().map(String::as_str)).or_raise(py)
    }

    /// The users, as lines of an access list.
    fn users(&self) -> Vec<String> {
        let core = locked(&self.0);
        core.users.iter().map(|user| user.line(&core.table)).collect()
    }

    /// What was changed since the last call.
    fn take_changes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let mut core = locked(&self.0);
        let changes = PyBytes::new(py, core.changes.bytes());
        core.changes.clear();
        changes
    }

    /// Forgets at most so many names that have expired; how many it were.
    #[pyo3(signature = (now, most=1000))]
    fn expire(&self, py: Python<'_>, now: f64, most: usize) -> usize {
        waited_for(py, &self.0).expire(most, now)
    }

    /// Does again what was changed.
    fn replay(&self, py: Python<'_>, payload: &[u8]) -> PyResult<()> {
        py.detach(|| locked(&self.0).replay(payload)).or_raise(py)
    }

    /// Writes everything into one file; the bytes it has.
    fn save(&self, path: &Object<'_>) -> PyResult<u64> {
        let py = path.py();
        let path = params::path(path)?;
        py.detach(|| file::save(&locked(&self.0).store, &path)).or_raise(py)
    }

    /// Reads a file that `save` wrote, into an empty keyspace.
    fn load(&self, path: &Object<'_>) -> PyResult<()> {
        let py = path.py();
        let path = params::path(path)?;
        py.detach(|| file::load(&mut locked(&self.0).store, &path))
            .map_err(|error| with_path(py, to_python(py, error), &path))
    }

    /// A digest of all names and contents.
    fn digest(&self, py: Python<'_>) -> PyResult<String> {
        let digest = py.detach(|| file::digest(&locked(&self.0).store))?;
        Ok(format!("{digest:032x}"))
    }

    /// Numbers about the whole.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (told, calls, unknown) = {
            let core = waited_for(py, &self.0);
            let (hits, misses) = core.store.asked;
            let (expires, deadline) = core.store.expiring();
            let told = [
                ("keys", Some(core.store.len() as u64)),
                ("expires", Some(expires)),
                ("mean_deadline", Some(deadline)),
                ("expired", Some(core.store.expired)),
                ("bytes", Some(core.store.used())),
                ("unknown", Some(core.unknown)),
                ("hits", Some(hits)),
                ("misses", Some(misses)),
                ("journal_bytes", Some(core.changes.bytes().len() as u64)),
                ("max_memory", core.store.limit),
                ("max_keys", core.store.most),
            ];
            let calls: Vec<_> =
                core.calls().map(|(command, calls)| (command.name, calls)).collect();
            (told, calls, core.unknown)
        };
        let (stats, commands) = (PyDict::new(py), PyDict::new(py));
        let (mut all, mut errors) = (unknown, unknown);
        for (name, count) in calls {
            if count.calls > 0 {
                commands.set_item(name, (count.calls, count.errors))?;
            }
            all += count.calls;
            errors += count.errors;
        }
        for (name, value) in told {
            stats.set_item(name, value)?;
        }
        fields!(&stats => calls: all, errors, commands)?;
        Ok(stats)
    }

    /// Each name with what it stands for.
    #[pyo3(signature = (limit=1000))]
    fn structures<'py>(&self, py: Python<'py>, limit: usize) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        let mut next = 0;
        while list.len() < limit {
            let most = FEW.min(limit - list.len());
            let rows = py.detach(|| self.some_rows(next, most));
            let Some(last) = rows.last() else { break };
            next = last.0 + 1;
            for (_, name, kind, type_name, bytes, summary) in rows {
                let (row, Summary { items, fill, error, .. }) = (PyDict::new(py), summary);
                fields!(&row =>
                    name: PyBytes::new(py, &name), kind, type: type_name, items, bytes, fill,
                    predicted_error: error)?;
                list.append(row)?;
            }
        }
        Ok(list)
    }

    /// Why nothing may be changed, if so.
    #[getter]
    fn read_only(&self, py: Python<'_>) -> Option<String> {
        waited_for(py, &self.0).read_only().map(str::to_owned)
    }

    #[setter]
    fn set_read_only(&self, reason: Option<String>) {
        locked(&self.0).set_read_only(reason);
    }

    /// Whether data is being loaded.
    #[getter]
    fn loading(&self, py: Python<'_>) -> bool {
        waited_for(py, &self.0).loading
    }

    #[setter]
    fn set_loading(&self, loading: bool) {
        locked(&self.0).loading = loading;
    }

    #[setter]
    fn set_max_memory(&self, limit: Option<u64>) {
        locked(&self.0).store.limit = limit;
    }

    #[setter]
    fn set_max_keys(&self, most: Option<u64>) {
        locked(&self.0).store.most = most;
    }

    #[setter]
    fn set_journal(&self, journal: bool) {
        locked(&self.0).changes.silent = !journal;
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        waited_for(py, &self.0).store.len()
    }
}

getters!(Keyspace, this =>
    /// Memory there may be, in bytes.
    max_memory: Option<u64> = locked(&this.0).store.limit;
    /// Names there may be.
    max_keys: Option<u64> = locked(&this.0).store.most;
    /// Whether changes are kept for `take_changes`.
    journal: bool = !locked(&this.0).changes.silent;
);
