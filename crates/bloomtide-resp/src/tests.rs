//! Laws of the whole: bytes in, bytes out.

use crate::changes::Records;
use crate::file::digest;
use crate::{Keyspace, Session};

/// A keyspace and a client of it.
struct Bench {
    keyspace: Keyspace,
    session: Session,
}

impl Bench {
    fn new() -> Self {
        Bench::with_memory(None)
    }

    fn with_memory(limit: Option<u64>) -> Self {
        let keyspace = Keyspace::new(1, limit, 512 << 20, &["INFO".to_owned()]);
        let session = keyspace.session(7);
        Bench { keyspace, session }
    }

    /// What these bytes are answered by, now and here.
    fn send(&mut self, bytes: &[u8]) -> String {
        self.keyspace.execute(&mut self.session, bytes, 1000.0);
        self.answers()
    }

    fn answers(&mut self) -> String {
        let answer = self.session.reply.bytes().escape_ascii().to_string();
        self.session.reply.clear();
        answer.replace("\\r\\n", "|").replace("\\'", "'")
    }

    /// What a line of words is answered by.
    fn say(&mut self, line: &str) -> String {
        self.send(format!("{line}\r\n").as_bytes())
    }

    fn digest(&self) -> u128 {
        digest(&self.keyspace.store).expect("memory")
    }

    /// A keyspace that did the same changes again.
    fn again(&self) -> Bench {
        let mut other = Bench::new();
        other.keyspace.replay(self.keyspace.changes.bytes()).expect("our own");
        other
    }
}

/// Words as a request of byte strings.
fn request(words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend(format!("${}\r\n", word.len()).bytes());
        bytes.extend(*word);
        bytes.extend(b"\r\n");
    }
    bytes
}

#[test]
fn ping_add_and_exists_are_answered() {
    let mut bench = Bench::new();
    assert_eq!(bench.say("ping"), "+PONG|");
    assert_eq!(bench.say("bf.exists seen a"), ":0|");
    assert_eq!(bench.say("BF.ADD seen a"), ":1|");
    assert_eq!(bench.say("BF.ADD seen a"), ":0|");
    assert_eq!(bench.say("BF.EXISTS seen a"), ":1|");
    let unknown = "-ERR unknown command 'NO.SUCH', with args beginning with: 'x' 'y' |";
    assert_eq!(bench.say("NO.SUCH x y"), unknown);
    assert_eq!(bench.say("BF.ADD seen"), "-ERR wrong number of arguments for 'bf.add' command|");
}

/// A conversation with everything in it.
fn conversation() -> Vec<u8> {
    let mut bytes = Vec::new();
    let lines = "PING\nHELLO 3\nBF.RESERVE r 0.001 20 EXPANSION 3\nBF.MADD r a b c a\nBF.INFO r\n\
        CF.ADD c x\nCF.ADD c x\nCF.DEL c x\nCF.COUNT c x\nCF.INFO c\nSET t 'a b'\nGET t\nBF.ADD t x\n\
        TYPE r\nDEL t\nSCAN 0 COUNT 1\nMULTI\nBF.ADD r z\nBF.ADD\nEXEC\nMULTI\nBF.ADD r z\nDBSIZE\nEXEC\n\
        BF.SCANDUMP r 0\nHELLO 2\nBF.INFO r ITEMS\nCOMMAND COUNT\nRENAME r q\nBF.CARD q\nWHAT\n";
    bytes.extend(lines.replace('\n', "\r\n").bytes());
    for key in 0..60u8 {
        bytes.extend(request(&[b"BF.ADD", b"q", &[key, 0, b'\r', b'\n']]));
    }
    bytes.extend(b"*0\r\n*1\r\n$4\r\nQUIT\r\nPING\r\n");
    bytes
}

#[test]
fn fed_byte_by_byte_a_conversation_is_answered_as_fed_whole() {
    let bytes = conversation();
    let mut whole = Bench::new();
    let expected = whole.send(&bytes);
    assert!(expected.contains("EXECABORT") && expected.ends_with("+OK|"), "{expected}");
    let mut pieces = Bench::new();
    let answered: String = bytes.iter().map(|byte| pieces.send(&[*byte])).collect();
    assert_eq!(answered, expected);
    assert_eq!(pieces.digest(), whole.digest());
    assert!(pieces.session.state.closing && whole.session.state.closing);
    for cut in (0..bytes.len()).step_by(7) {
        let mut two = Bench::new();
        let answered = two.send(&bytes[..cut]) + &two.send(&bytes[cut..]);
        assert_eq!(answered, expected, "{cut}");
    }
}

#[test]
fn changes_done_again_give_the_same_contents() {
    let mut bench = Bench::new();
    bench.send(&conversation());
    assert_eq!(bench.again().digest(), bench.digest());
    let mut nothing = Bench::new();
    nothing.say("PING");
    nothing.say("BF.EXISTS a b");
    nothing.say("DEL a");
    nothing.say("FLUSHALL");
    assert_eq!(nothing.keyspace.changes.bytes(), b"", "questions and vain commands change nothing");
}

#[test]
fn only_what_had_an_effect_is_noted() {
    let mut bench = Bench::new();
    bench.say("BF.MADD f a b a b a");
    bench.say("BF.ADD f a");
    let mut records = Records::new(bench.keyspace.changes.bytes());
    let mut names = Vec::new();
    while let Some((time, args)) = records.read().expect("sound") {
        assert_eq!(time, 1000.0);
        names.push(String::from_utf8_lossy(args.at(0)).into_owned());
    }
    assert_eq!(names, ["BF.RESERVE", "BF.ADD", "BF.ADD"]);
}

#[test]
fn a_record_that_is_no_change_is_damage() {
    let mut changes = crate::changes::Changes::default();
    changes.note(1.0, &[b"PING"]);
    assert!(Bench::new().keyspace.replay(changes.bytes()).is_err());
    changes.clear();
    changes.note(1.0, &[b"CF.DEL", b"absent", b"x"]);
    assert!(Bench::new().keyspace.replay(changes.bytes()).is_err());
}

#[test]
fn a_malformed_request_is_answered_and_ends_the_session() {
    for bytes in
        ["*9223372036854775808\r\n", "*1\r\n$-1\r\n", "*1\r\n+1\r\n", "*1\r\n$2\r\nabc\r\n"]
    {
        let mut bench = Bench::new();
        let answer = bench.send(format!("PING\r\n{bytes}PING\r\n").as_bytes());
        assert!(answer.starts_with("+PONG|-ERR Protocol error: "), "{answer}");
        assert_eq!(answer.matches('|').count(), 2, "{answer}");
        assert!(bench.session.state.closing && bench.session.buffered() == 0);
        assert_eq!(bench.say("PING"), "");
    }
}

#[test]
fn what_does_not_fit_is_refused_before_it_is_made() {
    let mut bench = Bench::with_memory(Some(1 << 20));
    assert!(bench.say("BF.RESERVE big 0.0001 1000000000").starts_with("-OOM "));
    assert!(bench.say("CF.RESERVE big 1000000000").starts_with("-OOM "));
    assert_eq!(bench.say("BF.RESERVE small 0.01 10000"), "+OK|");
    let mut answers = String::new();
    for key in 0..2_000_000 {
        answers = bench.say(&format!("BF.ADD small {key}"));
        if answers.starts_with('-') {
            break;
        }
    }
    assert!(answers.starts_with("-OOM "), "{answers}");
    assert!(bench.keyspace.store.used() <= 1 << 20);
    assert_eq!(bench.again().digest(), bench.digest());
}

/// The head of a dump of that key, as LOADCHUNK takes it.
fn head_of(bench: &mut Bench, family: &str, key: &str) -> Vec<u8> {
    let ask = format!("{family}.SCANDUMP {key} 0\r\n");
    bench.keyspace.execute(&mut bench.session, ask.as_bytes(), 1000.0);
    let answer = bench.session.reply.bytes().to_vec();
    bench.session.reply.clear();
    parse_chunk(&answer).1
}

#[test]
fn no_command_makes_one_key_more_than_there_may_be() {
    let mut bench = Bench::new();
    bench.say("BF.ADD bloom a");
    bench.say("CF.ADD cuckoo a");
    bench.say("SET text a");
    let heads = [head_of(&mut bench, "BF", "bloom"), head_of(&mut bench, "CF", "cuckoo")];
    bench.keyspace.store.set_most(Some(3));
    let (digest, noted) = (bench.digest(), bench.keyspace.changes.bytes().to_vec());
    let refused = "-ERR max number of keys reached: 'maxkeys' is 3; \
                   DEL one, or raise it by CONFIG SET maxkeys|";
    let makers = [
        "SET new a",
        "BF.RESERVE new 0.01 100",
        "BF.ADD new a",
        "BF.MADD new a b",
        "BF.INSERT new ITEMS a",
        "CF.RESERVE new 100",
        "CF.ADD new a",
        "CF.ADDNX new a",
        "CF.INSERT new ITEMS a",
        "CF.INSERTNX new ITEMS a",
        "CMS.INITBYDIM new 10 2",
        "CMS.INITBYPROB new 0.1 0.1",
        "TOPK.RESERVE new 10",
        "COUNT.RESERVE new 100 0.01",
        "DECAY.RESERVE new 100 0.01 HALFLIFE 1h",
        "URL.RESERVE new 100 0.01",
    ];
    for line in makers {
        assert_eq!(bench.say(line), refused, "{line}");
    }
    for (family, head) in [("BF", &heads[0]), ("CF", &heads[1])] {
        let load = request(&[format!("{family}.LOADCHUNK").as_bytes(), b"new", b"1", head]);
        assert_eq!(bench.send(&load), refused);
    }
    let exec = bench.send(b"MULTI\r\nBF.ADD new a\r\nEXEC\r\n");
    assert_eq!(exec, format!("+OK|+QUEUED|*1|{refused}"));
    assert_eq!(bench.digest(), digest);
    assert_eq!(bench.keyspace.changes.bytes(), noted, "nothing is noted of what was refused");

    // Keys that are there are changed as ever, and one that goes makes room.
    assert_eq!(bench.say("BF.ADD bloom b"), ":1|");
    assert_eq!(bench.say("SET text b"), "+OK|");
    assert_eq!(bench.say("RENAME text other"), "+OK|");
    for line in makers {
        assert_eq!(bench.say("DEL other new"), ":1|");
        assert!(!bench.say(line).starts_with('-'), "{line}");
        assert_eq!(bench.keyspace.store.len(), 3, "{line}");
    }
}

#[test]
fn what_was_kept_under_a_higher_limit_of_keys_is_kept() {
    let mut bench = Bench::new();
    for key in 0..5 {
        bench.say(&format!("BF.ADD f{key} a"));
    }
    let mut other = Bench::new();
    other.keyspace.store.set_most(Some(2));
    other.keyspace.replay(bench.keyspace.changes.bytes()).expect("our own");
    assert_eq!(other.digest(), bench.digest());
    let mut file = Vec::new();
    crate::file::write(&bench.keyspace.store, &mut file).expect("memory");
    let mut loaded = Bench::new();
    loaded.keyspace.store.set_most(Some(2));
    crate::file::read(&mut loaded.keyspace.store, &file).expect("our own");
    assert_eq!(loaded.digest(), bench.digest());
    for mut bench in [other, loaded] {
        assert_eq!(bench.say("BF.ADD f4 b"), ":1|");
        assert!(bench.say("BF.ADD new a").starts_with("-ERR max number of keys"));
        assert_eq!(bench.say("DEL f0 f1 f2"), ":3|");
        assert!(bench.say("BF.ADD new a").starts_with("-ERR max number of keys"));
        assert_eq!(bench.say("DEL f3"), ":1|");
        assert_eq!(bench.say("BF.ADD new a"), ":1|");
    }
}

#[test]
fn another_kind_is_a_wrong_type_but_no_key_of_a_set() {
    let mut bench = Bench::new();
    bench.say("SET t x");
    bench.say("BF.ADD b x");
    for line in ["BF.ADD t x", "BF.CARD t", "BF.INFO t", "CF.ADD b x", "GET b", "CF.DEL b x"] {
        assert!(bench.say(line).starts_with("-WRONGTYPE "), "{line}");
    }
    assert_eq!(bench.say("BF.EXISTS t x"), ":0|");
    assert_eq!(bench.say("BF.RESERVE t 0.1 10"), "-ERR item exists|");
}

#[test]
fn a_filter_of_fixed_size_refuses_what_is_too_much() {
    let mut bench = Bench::new();
    assert_eq!(bench.say("BF.RESERVE f 0.01 2 NONSCALING"), "+OK|");
    let full = "-ERR non scaling filter is full|";
    assert_eq!(bench.say("BF.MADD f a b c d"), format!("*3|:1|:1|{full}"));
    assert_eq!(bench.say("BF.ADD f c"), full);
    assert_eq!(bench.say("BF.ADD f a"), ":0|");
    assert_eq!(bench.say("BF.INFO f EXPANSION"), "*1|$-1|");
    let refused = "-Nonscaling filters cannot expand|";
    assert_eq!(bench.say("BF.RESERVE g 0.01 2 NONSCALING EXPANSION 2"), refused);
}

#[test]
fn chunks_bring_a_filter_to_another_name() {
    let mut bench = Bench::new();
    bench.say("HELLO 2");
    for key in 0..500 {
        bench.say(&format!("BF.ADD from {key}"));
        bench.say(&format!("CF.ADD counts {key}"));
    }
    for (family, from) in [("BF", "from"), ("CF", "counts")] {
        let mut iterator = 0u64;
        loop {
            let words = format!("{family}.SCANDUMP");
            let ask =
                request(&[words.as_bytes(), from.as_bytes(), iterator.to_string().as_bytes()]);
            bench.keyspace.execute(&mut bench.session, &ask, 1.0);
            let answer = bench.session.reply.bytes().to_vec();
            bench.session.reply.clear();
            let (next, chunk) = parse_chunk(&answer);
            if next == 0 {
                break;
            }
            let (words, next) = (format!("{family}.LOADCHUNK"), next.to_string());
            let load = request(&[words.as_bytes(), b"to", next.as_bytes(), &chunk]);
            assert_eq!(bench.send(&load), "+OK|");
            iterator = next.parse().expect("a number");
        }
        let debug = |bench: &mut Bench, key| bench.say(&format!("{family}.INFO {key}"));
        assert_eq!(debug(&mut bench, "to"), debug(&mut bench, from));
        assert_eq!(bench.again().digest(), bench.digest());
        bench.say("DEL to");
    }
    assert_eq!(bench.say("BF.LOADCHUNK to 1 rubbish"), "-ERR received bad data|");
    assert_eq!(bench.say("BF.LOADCHUNK to 2 rubbish"), "-ERR not found|");
}

/// The number and the bytes of `*2 :next $len bytes`.
fn parse_chunk(answer: &[u8]) -> (u64, Vec<u8>) {
    let text = String::from_utf8_lossy(answer);
    let mut lines = text.split("\r\n");
    let next = lines.nth(1).and_then(|line| line[1..].parse().ok()).expect("a number");
    let head = lines.next().expect("a length");
    let len = usize::try_from(head[1..].parse::<i64>().expect("a length")).unwrap_or(0);
    let start = answer.windows(head.len()).position(|it| it == head.as_bytes()).expect("there");
    let start = start + head.len() + 2;
    (next, answer.get(start..start + len).unwrap_or_default().to_vec())
}

#[test]
fn the_host_answers_its_commands_in_their_turn() {
    let mut bench = Bench::new();
    assert_eq!(bench.send(b"PING\r\nINFO server\r\nPING\r\nINFO\r\nECHO x\r\n"), "+PONG|");
    assert_eq!(bench.session.foreign().map(<[_]>::len), Some(2));
    assert_eq!(bench.send(b"PING\r\n"), "", "nothing is done out of turn");
    bench.session.reply.ok();
    bench.keyspace.resume(&mut bench.session, 1.0);
    assert_eq!(bench.answers(), "+OK|+PONG|");
    bench.session.reply.ok();
    bench.keyspace.resume(&mut bench.session, 1.0);
    assert_eq!(bench.answers(), "+OK|$1|x|+PONG|");
    assert!(bench.session.foreign().is_none() && bench.session.buffered() == 0);
}

#[test]
fn who_has_not_shown_who_he_is_can_do_little() {
    let mut bench = Bench::new();
    let lines =
        ["user default on >secret ~* +@all", "user ann on >pw ~crawl:* +@bloom +@connection"];
    bench.keyspace.set_users(lines.into_iter()).expect("good lines");
    bench.session = bench.keyspace.session(8);
    assert!(bench.say("PING").starts_with("-NOAUTH "));
    assert!(bench.say("HELLO 3").starts_with("-NOAUTH "));
    assert!(bench.say("AUTH wrong").starts_with("-WRONGPASS "));
    assert!(bench.say("AUTH ann wrong").starts_with("-WRONGPASS "));
    assert_eq!(bench.say("AUTH ann pw"), "+OK|");
    assert_eq!(bench.say("BF.ADD crawl:1 x"), ":1|");
    assert!(bench.say("BF.ADD other x").starts_with("-NOPERM No permissions to access a key"));
    assert!(bench.say("FLUSHALL").starts_with("-NOPERM User ann has no permissions"));
    assert_eq!(bench.say("RESET"), "+RESET|");
    assert!(bench.say("PING").starts_with("-NOAUTH "));
    assert_eq!(bench.say("AUTH secret"), "+OK|");
    assert_eq!(bench.say("FLUSHALL"), "+OK|");
    bench.keyspace.set_users(std::iter::once("user default off")).expect("a good line");
    assert!(bench.say("PING").starts_with("-NOAUTH "), "a user that was switched off is out");
    let long = format!("*1\r\n${}\r\n", (16 << 10) + 1);
    bench.session = bench.keyspace.session(9);
    assert_eq!(bench.send(long.as_bytes()), "-ERR Protocol error: unauthenticated bulk length|");
    bench.session = bench.keyspace.session(9);
    assert_eq!(bench.send(b"*11\r\n"), "-ERR Protocol error: unauthenticated multibulk length|");
}

#[test]
fn nothing_is_changed_while_it_may_not_be() {
    let mut bench = Bench::new();
    bench.keyspace.set_read_only(Some("the journal failed".to_owned()));
    assert_eq!(bench.say("BF.ADD a x"), "-MISCONF the journal failed|");
    assert_eq!(bench.say("BF.EXISTS a x"), ":0|");
    bench.keyspace.set_read_only(None);
    bench.keyspace.set_loading(true);
    assert!(bench.say("BF.EXISTS a x").starts_with("-LOADING "));
    assert_eq!(bench.say("PING"), "+PONG|");
    bench.keyspace.set_loading(false);
    assert_eq!(bench.say("BF.ADD a x"), ":1|");
}

#[test]
fn a_transaction_is_done_whole_or_not_at_all() {
    let mut bench = Bench::new();
    assert_eq!(
        bench
            .send(b"MULTI\r\nSET a 1\r\nBF.ADD a x\r\nGET a\r\nEXEC\r\n")
            .matches("QUEUED")
            .count(),
        3
    );
    assert_eq!(bench.say("GET a"), "$1|1|");
    assert_eq!(bench.send(b"MULTI\r\nSET a 2\r\nINFO\r\nEXEC\r\n").matches("EXECABORT").count(), 1);
    assert_eq!(bench.send(b"MULTI\r\nSET a 3\r\nDISCARD\r\nEXEC\r\n").matches("-ERR").count(), 1);
    assert_eq!(bench.say("GET a"), "$1|1|");
}

#[test]
fn a_scan_sees_all_that_was_there_all_along() {
    let mut bench = Bench::new();
    for key in 0..100 {
        bench.say(&format!("SET stay{key} x"));
        bench.say(&format!("SET go{key} x"));
    }
    let (mut seen, mut cursor) = (Vec::new(), "0".to_owned());
    for round in 0.. {
        let answer = bench.say(&format!("SCAN {cursor} COUNT 7 MATCH stay*"));
        let words: Vec<_> = answer.split('|').collect();
        cursor = words[2].to_owned();
        seen.extend(
            words.iter().filter(|word| word.starts_with("stay")).map(|word| (*word).to_owned()),
        );
        bench.say(&format!("DEL go{round}"));
        bench.say(&format!("SET new{round} x"));
        if cursor == "0" {
            break;
        }
    }
    seen.sort();
    assert_eq!(seen.len(), 100);
    seen.dedup();
    assert_eq!(seen.len(), 100);
}

#[test]
fn many_answers_are_sent_in_parts() {
    let mut bench = Bench::new();
    let value = vec![b'x'; 1 << 20];
    bench.send(&request(&[b"SET", b"t", &value]));
    bench.keyspace.execute(&mut bench.session, "GET t\r\n".repeat(200).as_bytes(), 1.0);
    let mut answered = bench.session.reply.len();
    while bench.session.more() {
        assert!(bench.session.reply.len() < 80 << 20);
        bench.session.reply.clear();
        bench.keyspace.execute(&mut bench.session, b"", 1.0);
        answered += bench.session.reply.len();
    }
    assert_eq!(answered, 200 * ((1 << 20) + "$1048576\r\n\r\n".len()));
}

#[test]
fn what_the_table_promises_is_there() {
    let mut bench = Bench::new();
    assert!(bench.say("COMMAND INFO bf.add").contains("$6|bf.add|:3|"));
    assert_eq!(bench.say("COMMAND INFO nothing"), "*1|$-1|");
    assert!(bench.say("ACL CAT bloom").contains("bf.add"));
    assert_eq!(bench.say("ACL WHOAMI"), "$7|default|");
    assert!(bench.say("COMMAND DOCS bf.add").contains("bloom"));
}
