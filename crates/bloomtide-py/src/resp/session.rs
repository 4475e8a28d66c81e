//! One client of a keyspace.

use super::encode::encode;
use super::locked;
use crate::errors::parameter;
use bloomtide_resp::wire::reply::Reply;
use bloomtide_resp::{Keyspace as Core, Session as CoreSession};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use std::sync::{Arc, Mutex};

/// From this many bytes on the interpreter is let go meanwhile: shorter work is over before another thread wakes.
const LONG: usize = 16 << 10;

/// One client: bytes in, answers out.
#[pyclass(module = "bloomtide._core", frozen)]
pub(crate) struct Session {
    keyspace: Arc<Mutex<Core>>,
    core: Mutex<CoreSession>,
}

impl Session {
    pub(super) fn new(keyspace: Arc<Mutex<Core>>, client: i64) -> Self {
        let core = locked(&keyspace).session(client);
        Session { keyspace, core: Mutex::new(core) }
    }

    /// Takes the answers out.
    fn answers<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let mut core = locked(&self.core);
        let answers = PyBytes::new(py, core.reply.bytes());
        core.reply.clear();
        answers
    }
}

#[pymethods]
impl Session {
    /// Does everything that is whole in what the client sent, now and before; the answers.
    fn execute<'py>(&self, py: Python<'py>, data: &[u8], now: f64) -> Bound<'py, PyBytes> {
        let work = || {
            let mut core = locked(&self.core);
            locked(&self.keyspace).execute(&mut core, data, now);
        };
        if data.len() < LONG {
            work()
        } else {
            py.detach(work)
        }
        self.answers(py)
    }

    /// Answers the command that waits in `foreign`, and goes on.
    fn resume<'py>(
        &self,
        py: Python<'py>,
        reply: &Bound<'py, PyAny>,
        now: f64,
    ) -> PyResult<Bound<'py, PyBytes>> {
        if locked(&self.core).foreign().is_none() {
            let (got, allowed) = ("a reply to nothing", "the reply to the command in `foreign`");
            return Err(parameter(
                py,
                "reply",
                got,
                allowed,
                "look whether `foreign` is None first",
            ));
        }
        let mut encoded = Reply::default();
        encoded.set_protocol(locked(&self.core).reply.protocol());
        encode(&mut encoded, reply, 0)?;
        let long = locked(&self.core).buffered() >= LONG;
        let work = || {
            let mut core = locked(&self.core);
            core.reply.append(&encoded);
            locked(&self.keyspace).resume(&mut core, now);
        };
        if long {
            py.detach(work)
        } else {
            work()
        }
        Ok(self.answers(py))
    }

    /// Whether nothing waits: no foreign command, no more answers, no part of a request, no end.
    #[getter]
    fn settled(&self) -> bool {
        let core = locked(&self.core);
        core.foreign().is_none() && !core.more() && !core.state.closing && core.buffered() == 0
    }

    /// A command that the host must answer with `resume`; nothing else is done before.
    #[getter]
    fn foreign<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyList>>> {
        let core = locked(&self.core);
        let Some(args) = core.foreign() else { return Ok(None) };
        PyList::new(py, args.iter().map(|arg| PyBytes::new(py, arg))).map(Some)
    }

    /// Whether there is more to do once these answers were sent: call `execute(b"", now)` then.
    #[getter]
    fn more(&self) -> bool {
        locked(&self.core).more()
    }

    /// Send what was answered, then close.
    #[getter]
    fn closing(&self) -> bool {
        locked(&self.core).state.closing
    }

    /// Bytes of requests that are not done.
    #[getter]
    fn buffered(&self) -> usize {
        locked(&self.core).buffered()
    }

    /// Whether the client has shown who it is, or need not.
    #[getter]
    fn authenticated(&self) -> bool {
        locked(&self.core).state.user.is_some()
    }

    /// The user, or an empty text.
    #[getter]
    fn user(&self) -> String {
        locked(&self.core).state.user.clone().unwrap_or_default()
    }

    /// The name that the client gave itself.
    #[getter]
    fn name(&self) -> String {
        locked(&self.core).state.name.clone()
    }

    #[setter]
    fn set_name(&self, name: String) {
        locked(&self.core).state.name = name;
    }

    /// Name and version of the client's library.
    #[getter]
    fn library(&self) -> (String, String) {
        locked(&self.core).state.library.clone()
    }

    #[setter]
    fn set_library(&self, library: (String, String)) {
        locked(&self.core).state.library = library;
    }

    /// The protocol that it speaks, 2 or 3.
    #[getter]
    fn protocol(&self) -> u8 {
        locked(&self.core).reply.protocol()
    }

    /// The client's number.
    #[getter]
    fn client(&self) -> i64 {
        locked(&self.core).state.client
    }

    /// Forgets what the client sent.
    fn discard(&self) {
        locked(&self.core).discard();
    }
}
