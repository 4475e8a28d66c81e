//! Laws of the whole: bytes in, bytes out.

use crate::{Keyspace, Session};

/// A keyspace and a client of it.
struct Bench {
    keyspace: Keyspace,
    session: Session,
}

impl Bench {
    fn new() -> Self {
        let keyspace = Keyspace::new(1, None, 512 << 20, &["INFO".to_owned()]);
        let session = keyspace.session(7);
        Bench { keyspace, session }
    }

    /// What these bytes are answered by, now and here.
    fn send(&mut self, bytes: &[u8]) -> String {
        self.keyspace.execute(&mut self.session, bytes, 1000.0);
        let answer = self.session.reply.bytes().escape_ascii().to_string();
        self.session.reply.clear();
        answer.replace("\\r\\n", "|")
    }

    /// What a line of words is answered by.
    fn say(&mut self, line: &str) -> String {
        self.send(format!("{line}\r\n").as_bytes())
    }
}

#[test]
fn ping_add_and_exists_are_answered() {
    let mut bench = Bench::new();
    assert_eq!(bench.say("ping"), "+PONG|");
    assert_eq!(bench.say("bf.exists seen a"), ":0|");
    assert_eq!(bench.say("BF.ADD seen a"), ":1|");
    assert_eq!(bench.say("BF.ADD seen a"), ":0|");
    assert_eq!(bench.say("BF.EXISTS seen a"), ":1|");
    assert_eq!(
        bench.say("NO.SUCH x y"),
        "-ERR unknown command \\'NO.SUCH\\', with args beginning with: \\'x\\' \\'y\\' |"
    );
    assert_eq!(
        bench.say("BF.ADD seen"),
        "-ERR wrong number of arguments for \\'bf.add\\' command|"
    );
}
