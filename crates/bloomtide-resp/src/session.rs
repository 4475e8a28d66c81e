//! One client: who it is, which protocol it speaks, what it sent and is not done.

use crate::wire::reply::Reply;
use crate::wire::request::{Parser, Span};

/// Commands between MULTI and EXEC.
#[derive(Debug, Default)]
pub struct Queue {
    /// The number of each command, and its elements: their bytes, and where each of them is.
    pub(crate) commands: Vec<(usize, Vec<u8>, Vec<Span>)>,
    /// Memory of all of them.
    pub(crate) size: usize,
    /// One was refused, so none may be done.
    pub(crate) broken: bool,
}

/// Who a client is.
#[derive(Debug, Default)]
pub struct State {
    /// The client's number.
    pub client: i64,
    /// Its user, if it has shown who it is.
    pub user: Option<String>,
    /// Place of the user among all, of that edition of the list.
    pub(crate) seat: (u64, usize),
    /// The name that it gave itself.
    pub name: String,
    /// Name and version of its library.
    pub library: (String, String),
    /// Send what was answered, then close.
    pub closing: bool,
    /// A command that the host must answer before anything else is done.
    pub foreign: Option<Vec<Vec<u8>>>,
    /// Commands that wait for EXEC.
    pub(crate) queue: Option<Box<Queue>>,
    /// Names that must not change before EXEC, each with the number of its last change.
    pub(crate) watched: Vec<(Vec<u8>, u64)>,
}

/// One client.
#[derive(Debug, Default)]
pub struct Session {
    /// Who it is.
    pub state: State,
    /// Its answers; taken and cleared by the host.
    pub reply: Reply,
    pub(crate) parser: Parser,
    /// What it sent and is not done, from `from` on.
    pub(crate) held: Vec<u8>,
    pub(crate) from: usize,
    /// Answers became so many that the host should send them first, and come back for the rest.
    pub more: bool,
}

impl Session {
    pub(crate) fn new(client: i64, user: Option<String>) -> Self {
        Session { state: State { client, user, ..State::default() }, ..Session::default() }
    }

    /// Bytes of requests that are not done.
    pub fn buffered(&self) -> usize {
        self.held.len() - self.from
    }

    /// Forgets what the client sent.
    pub fn discard(&mut self) {
        (self.held, self.from, self.more) = (Vec::new(), 0, false);
        self.state.foreign = None;
        self.parser.reset();
    }

    /// Forgets the part of what is held that is done.
    pub(crate) fn settle(&mut self) {
        if self.from == self.held.len() {
            self.held.clear();
            self.from = 0;
            self.held.shrink_to(64 << 10);
        } else if self.from > self.held.len() / 2 {
            self.held.drain(..self.from);
            self.from = 0;
        }
    }
}
