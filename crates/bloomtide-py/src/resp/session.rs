//! One client of a keyspace.

use super::encode::encode;
use crate::errors::parameter;
use crate::python::*;
use crate::structure::getters;
use bloomtide_resp::wire::reply::Reply;
use bloomtide_resp::{Keyspace as Core, Session as CoreSession};
use pyo3::types::{PyBytes, PyList};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// From this many bytes on the interpreter is let go meanwhile: shorter work is over before another thread wakes.
const LONG: usize = 16 << 10;
/// After this time a client's other requests wait, so that others get their turn.
const TURN: Duration = Duration::from_millis(1);

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

    /// Does work that changes both, without the interpreter if it may take long; the answers.
    fn work<'py>(
        &self,
        py: Python<'py>,
        bytes: usize,
        work: impl FnOnce(&mut Core, &mut CoreSession, &mut dyn FnMut() -> bool) + Send,
    ) -> Bound<'py, PyBytes> {
        let work = || {
            let mut core = locked(&self.core);
            let mut keyspace = locked(&self.keyspace);
            let start = Instant::now();
            work(&mut keyspace, &mut core, &mut || start.elapsed() < TURN);
        };
        if bytes < LONG {
            work()
        } else {
            py.detach(work)
        }
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
        self.work(py, data.len(), |keyspace, session, go_on| {
            keyspace.execute_while(session, data, now, go_on);
        })
    }

    /// Answers the command that waits in `foreign`, and goes on.
    fn resume<'py>(
        &self,
        py: Python<'py>,
        reply: &Object<'py>,
        now: f64,
    ) -> PyResult<Bound<'py, PyBytes>> {
        if locked(&self.core).state.foreign.is_none() {
            let (got, allowed) = ("a reply to nothing", "the reply to the command in `foreign`");
            let hint = "look whether `foreign` is None first";
            return Err(parameter(py, "reply", got, allowed, hint));
        }
        let mut encoded = Reply::default();
        encoded.set_protocol(locked(&self.core).reply.protocol());
        encode(&mut encoded, reply, 0)?;
        let buffered = locked(&self.core).buffered();
        Ok(self.work(py, buffered, |keyspace, session, go_on| {
            session.reply.append(&encoded);
            keyspace.resume(session, now, go_on);
        }))
    }

    /// Whether the client's user may use a key of that name.
    fn may_use(&self, name: &[u8]) -> bool {
        let (mut core, keyspace) = (locked(&self.core), locked(&self.keyspace));
        keyspace.may_use(&mut core, name)
    }

    /// Whether nothing waits: no foreign command, no more answers, no part of a request, no end.
    #[getter]
    fn settled(&self) -> bool {
        let core = locked(&self.core);
        core.state.foreign.is_none() && !core.more && !core.state.closing && core.buffered() == 0
    }

    /// A command that the host must answer with `resume`; nothing else is done before.
    #[getter]
    fn foreign<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyList>>> {
        let core = locked(&self.core);
        let Some(args) = &core.state.foreign else { return Ok(None) };
        PyList::new(py, args.iter().map(|arg| PyBytes::new(py, arg))).map(Some)
    }

    #[setter]
    fn set_name(&self, name: String) {
        locked(&self.core).state.name = name;
    }

    #[setter]
    fn set_library(&self, library: (String, String)) {
        locked(&self.core).state.library = library;
    }

    /// Forgets what the client sent.
    fn discard(&self) {
        locked(&self.core).discard();
    }
}

getters!(Session, this =>
    /// Whether there is more to do once these answers were sent: call `execute(b"", now)` then.
    more: bool = locked(&this.core).more;
    /// Send what was answered, then close.
    closing: bool = locked(&this.core).state.closing;
    /// Bytes of requests that are not done.
    buffered: usize = locked(&this.core).buffered();
    /// Whether the client has shown who it is, or need not.
    authenticated: bool = locked(&this.core).state.user.is_some();
    /// The user, or an empty text.
    user: String = locked(&this.core).state.user.clone().unwrap_or_default();
    /// The name that the client gave itself.
    name: String = locked(&this.core).state.name.clone();
    /// Name and version of the client's library.
    library: (String, String) = locked(&this.core).state.library.clone();
    /// The protocol that it speaks, 2 or 3.
    protocol: u8 = locked(&this.core).reply.protocol();
    /// The client's number.
    client: i64 = locked(&this.core).state.client;
);
