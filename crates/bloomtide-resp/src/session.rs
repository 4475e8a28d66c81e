//! One client: who it is, which protocol it speaks, what it sent and is not done.

use crate::wire::reply::Reply;
use crate::wire::request::Parser;

/// Commands between MULTI and EXEC.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    /// The elements of all of them.
    pub(crate) bytes: Vec<u8>,
    /// Where each element is.
    pub(crate) spans: Vec<(usize, usize)>,
    /// The number of each command, and how many elements it has.
    pub(crate) commands: Vec<(usize, usize)>,
    /// One was refused, so none may be done.
    pub(crate) broken: bool,
}

/// Who a client is.
#[derive(Clone, Debug)]
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
    /// Commands that wait for EXEC.
    pub(crate) queue: Option<Box<Queue>>,
}

/// One client.
#[derive(Debug)]
pub struct Session {
    /// Who it is.
    pub state: State,
    /// Its answers; taken and cleared by the host.
    pub reply: Reply,
    pub(crate) parser: Parser,
    /// What it sent and is not done, from `from` on.
    pub(crate) held: Vec<u8>,
    pub(crate) from: usize,
    /// A command that the host must answer before anything else is done.
    pub(crate) foreign: Option<Vec<Vec<u8>>>,
    /// Answers became so many that the host should send them first.
    pub(crate) more: bool,
}

impl Session {
    pub(crate) fn new(client: i64, user: Option<String>) -> Self {
        Session {
            state: State {
                client,
                user,
                seat: (u64::MAX, 0),
                name: String::new(),
                library: Default::default(),
                closing: false,
                queue: None,
            },
            reply: Reply::default(),
            parser: Parser::default(),
            held: Vec::new(),
            from: 0,
            foreign: None,
            more: false,
        }
    }

    /// Bytes of requests that are not done.
    pub fn buffered(&self) -> usize {
        self.held.len() - self.from
    }

    /// The command that the host must answer.
    pub fn foreign(&self) -> Option<&[Vec<u8>]> {
        self.foreign.as_deref()
    }

    /// Whether to come back for the rest after the answers were sent.
    pub fn more(&self) -> bool {
        self.more
    }

    /// Forgets what the client sent.
    pub fn discard(&mut self) {
        (self.held, self.from, self.foreign, self.more) = (Vec::new(), 0, None, false);
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
