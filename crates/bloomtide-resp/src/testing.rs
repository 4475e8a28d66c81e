//! A client for tests: a line in, the answer out, on one line.

use crate::file::digest;
use crate::structure::{Kind, write};
use crate::{Keyspace, Session};

/// A keyspace and one client of it.
pub(crate) struct Talk {
    pub(crate) keyspace: Keyspace,
    pub(crate) session: Session,
    pub(crate) now: f64,
}

impl Talk {
    /// Speaks RESP2, or RESP3.
    pub(crate) fn new(protocol: u8) -> Self {
        Talk::within(protocol, None)
    }

    /// With a limit of memory.
    pub(crate) fn within(protocol: u8, limit: Option<u64>) -> Self {
        let keyspace = Keyspace::new(1, limit, 1 << 20, &["INFO".to_owned()]);
        let mut session = keyspace.session(1);
        session.reply.set_protocol(protocol);
        Talk { keyspace, session, now: 1_700_000_000.0 }
    }

    /// One structure of each kind, with a few keys.
    pub(crate) fn with_all_kinds() -> Self {
        let mut talk = Talk::new(2);
        talk.send(
            b"SET text a\nBF.RESERVE grows 0.01 5\nBF.MADD grows 1 2 3 4 5 6 7 8\n\
            BF.RESERVE fixed 0.01 5 NONSCALING\nBF.MADD fixed 1 2 3\n\
            CF.RESERVE cuckoo 4\nCF.INSERT cuckoo ITEMS 1 2 3 4 5 1 2\nCF.DEL cuckoo 1\n\
            CMS.INITBYDIM sketch 9 3\nCMS.INCRBY sketch a 3 b 4 c 5\n\
            TOPK.RESERVE top 3 4 2 0.9\nTOPK.ADD top a b c d a b a\n\
            COUNT.RESERVE pdcf 5 0.1\nCOUNT.MADD pdcf a b a\n\
            COUNT.RESERVE sbf 5 0.1 KIND SBF\nCOUNT.MADD sbf a b a\n\
            COUNT.RESERVE counting 5 0.1 KIND COUNTING\nCOUNT.MADD counting a b a\n\
            DECAY.RESERVE fading 5 0.1 HALFLIFE 10m TOP 2\nDECAY.MADD fading a b c a\n\
            URL.RESERVE urls 5 0.1\nURL.MADD urls http://a.org/b http://a.org/b/c\n",
        );
        let answers = talk.answers();
        assert!(!answers.contains('-'), "{answers}");
        talk.session.reply.clear();
        let head = talk.chunk("BF", "grows", 0).1;
        assert_eq!(talk.ask(&[b"BF.LOADCHUNK", b"arriving", b"1", &head]), "+OK");
        talk
    }

    /// Sends a line of words; the answer, its line breaks as blanks.
    pub(crate) fn say(&mut self, line: &str) -> String {
        self.send(format!("{line}\r\n").as_bytes())
    }

    /// Sends words as a request of byte strings.
    pub(crate) fn ask(&mut self, words: &[&[u8]]) -> String {
        self.send(&request(words))
    }

    /// Sends bytes; the answers.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> String {
        self.keyspace.execute(&mut self.session, bytes, self.now);
        self.answers()
    }

    /// The answers that are there.
    pub(crate) fn answers(&mut self) -> String {
        let answer = String::from_utf8_lossy(self.session.reply.bytes()).into_owned();
        self.session.reply.clear();
        answer.replace("\r\n", " ").trim_end().to_owned()
    }

    /// Says all lines, and checks the answer of each: `line -> answer`, of which `...` leaves out the end.
    pub(crate) fn hold(&mut self, dialogue: &str) {
        for exchange in dialogue.trim().lines() {
            let (line, expected) = exchange.split_once(" -> ").unwrap_or((exchange, ""));
            let (answer, expected) = (self.say(line.trim()), expected.trim());
            match expected.strip_suffix("...") {
                Some(start) => assert!(answer.starts_with(start), "{line} -> {answer}"),
                None => assert_eq!(answer, expected, "{line}"),
            }
        }
    }

    /// The next number and the chunk that SCANDUMP answers.
    pub(crate) fn chunk(&mut self, family: &str, key: &str, iterator: u64) -> (u64, Vec<u8>) {
        let line = format!("{family}.SCANDUMP {key} {iterator}\n");
        self.keyspace.execute(&mut self.session, line.as_bytes(), self.now);
        let answer = self.session.reply.bytes().to_vec();
        self.session.reply.clear();
        let mut lines = answer.splitn(4, |byte| *byte == b'\n');
        let next = lines.nth(1).map(|line| String::from_utf8_lossy(&line[1..]).trim().to_owned());
        let bytes = lines.nth(1).and_then(|bytes| bytes.strip_suffix(b"\r\n"));
        let next = next.and_then(|next| next.parse().ok()).expect("a number");
        (next, bytes.unwrap_or_default().to_vec())
    }

    /// A digest of all contents.
    pub(crate) fn digest(&self) -> u128 {
        digest(&self.keyspace.store).expect("memory")
    }

    /// Each structure's tag and bytes.
    pub(crate) fn contents(&self) -> Vec<(u8, Vec<u8>)> {
        let written = |structure| write(structure, Vec::new()).expect("a vector takes all");
        let structures = self.keyspace.store.iter().map(|(_, structure)| structure);
        structures.map(|it| (Kind::of(it).tag, written(it))).collect()
    }

    /// What was noted, done again on nothing, gives these contents.
    pub(crate) fn replays(&self) {
        let mut other = Talk::new(2);
        other.keyspace.replay(self.keyspace.changes.bytes()).expect("our own changes");
        assert_eq!(other.digest(), self.digest(), "the replay differs");
        assert_eq!(other.keyspace.changes.bytes(), b"");
    }
}

/// Words as a request of byte strings.
pub(crate) fn request(words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend(format!("${}\r\n", word.len()).bytes());
        bytes.extend(*word);
        bytes.extend(b"\r\n");
    }
    bytes
}
