//! A client for the tests of commands: a line in, the answer out, on one line.

use crate::{Keyspace, Session};

/// A keyspace and one client of it.
pub(super) struct Talk {
    pub(super) keyspace: Keyspace,
    session: Session,
    pub(super) now: f64,
}

impl Talk {
    /// Speaks RESP2, or RESP3.
    pub(super) fn new(protocol: u8) -> Self {
        Talk::within(protocol, None)
    }

    /// With a limit of memory.
    pub(super) fn within(protocol: u8, limit: Option<u64>) -> Self {
        let keyspace = Keyspace::new(1, limit, 1 << 20, &[]);
        let session = keyspace.session(1);
        let mut talk = Talk { keyspace, session, now: 1_700_000_000.0 };
        talk.say(&format!("HELLO {protocol}"));
        talk
    }

    /// Sends a line of words; the answer, its line breaks as blanks.
    pub(super) fn say(&mut self, line: &str) -> String {
        self.send(format!("{line}\r\n").as_bytes());
        let answer = String::from_utf8_lossy(self.session.reply.bytes()).into_owned();
        self.session.reply.clear();
        answer.replace("\r\n", " ").trim_end().to_owned()
    }

    /// Sends bytes; the answer stays where it is.
    pub(super) fn send(&mut self, bytes: &[u8]) -> &mut Session {
        self.keyspace.execute(&mut self.session, bytes, self.now);
        &mut self.session
    }

    /// Says all lines, and checks the answer of each: `line -> answer`.
    pub(super) fn hold(&mut self, dialogue: &str) {
        for exchange in dialogue.trim().lines() {
            let (line, answer) = exchange.split_once(" -> ").unwrap_or((exchange, ""));
            assert_eq!(self.say(line.trim()), answer.trim(), "{line}");
        }
    }

    /// All contents as bytes.
    pub(super) fn contents(&self) -> Vec<(Vec<u8>, u8, Vec<u8>)> {
        let contents = self.keyspace.store.iter().map(|(name, structure)| {
            let mut bytes = Vec::new();
            structure.write(&mut bytes).expect("a vector takes all");
            (name.to_vec(), structure.tag(), bytes)
        });
        let mut contents: Vec<_> = contents.collect();
        contents.sort();
        contents
    }

    /// What was noted, done again on nothing, gives these contents.
    pub(super) fn replays(&self) {
        let mut other = Talk::new(2);
        other.keyspace.replay(self.keyspace.changes.bytes()).expect("our own changes");
        assert!(other.contents() == self.contents(), "the replay differs");
        assert_eq!(other.keyspace.changes.bytes(), b"");
    }
}
