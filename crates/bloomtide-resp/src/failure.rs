//! Why a command was refused: the text of its error reply.

use bloomtide_core::Error;
use std::borrow::Cow;

/// An error reply: a code in capitals, then words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure(pub Cow<'static, str>);

/// What a command answers: it has written its reply, or says why not.
pub type Answer = Result<(), Failure>;

impl Failure {
    /// The key holds something else.
    pub const WRONG_TYPE: Failure =
        Failure::new("WRONGTYPE Operation against a key holding the wrong kind of value");
    /// Neither this user nor this password, or not together.
    pub const WRONG_PASSWORD: Failure =
        Failure::new("WRONGPASS invalid username-password pair or user is disabled.");
    /// An option that is none, or lacks its value.
    pub const SYNTAX: Failure = Failure::new("ERR syntax error");
    /// Something else where an integer must be.
    pub const NOT_AN_INTEGER: Failure = Failure::new("ERR value is not an integer or out of range");
    /// The key's chunks have not all arrived.
    pub const ARRIVING: Failure = Failure::new("ERR the key is still being loaded by chunks");

    /// There are as many keys as there may be.
    #[cold]
    pub fn too_many_keys(most: u64) -> Self {
        let way_out = "DEL one, or raise it by CONFIG SET maxkeys";
        Failure::said(format!("ERR max number of keys reached: 'maxkeys' is {most}; {way_out}"))
    }

    /// What is asked for does not fit. Redis's words first, by which clients know it.
    #[cold]
    pub fn out_of_memory(needed: u64, left: u64) -> Self {
        Failure::said(format!(
            "OOM command not allowed when used memory > 'maxmemory'. This takes {needed} bytes and {left} are left; \
             DEL what is not needed, or raise it by CONFIG SET maxmemory"
        ))
    }

    /// A failure of that text.
    pub const fn new(text: &'static str) -> Self {
        Failure(Cow::Borrowed(text))
    }

    /// A failure of a text made for the occasion.
    pub fn said(text: String) -> Self {
        Failure(Cow::Owned(text))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Capacity { .. } | Error::Cells { .. } => Failure::said(format!("OOM {error}")),
            _ => Failure::said(format!("ERR {error}")),
        }
    }
}
