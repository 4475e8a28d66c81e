//! Laws of a connection: its turns, who it is, transactions, scans and long answers.

use crate::Keyspace;
use crate::testing::Talk;
#[test]
fn the_host_answers_its_commands_in_their_turn() {
    let mut talk = Talk::new(2);
    assert_eq!(talk.send(b"PING\r\nINFO server\r\nPING\r\nINFO\r\nECHO x\r\n"), "+PONG");
    assert_eq!(talk.session.state.foreign.as_ref().map(Vec::len), Some(2));
    assert_eq!(talk.send(b"PING\r\n"), "", "nothing is done out of turn");
    for expected in ["+OK +PONG", "+OK $1 x +PONG"] {
        talk.session.reply.ok();
        talk.keyspace.resume(&mut talk.session, 1.0);
        assert_eq!(talk.answers(), expected);
    }
    assert!(talk.session.state.foreign.is_none() && talk.session.buffered() == 0);
}

#[test]
fn who_has_not_shown_who_he_is_can_do_little() {
    let mut talk = Talk::new(2);
    let lines = [
        "user default on >secret >other ~* +@all",
        "user ann on >pw ~crawl:* +@bloom -bf.reserve +@connection +del",
    ];
    talk.keyspace.set_users(lines.into_iter()).expect("good lines");
    talk.session = talk.keyspace.session(8);
    talk.hold(
        "
        PING -> -NOAUTH ...
        HELLO 3 -> -NOAUTH ...
        AUTH wrong -> -WRONGPASS ...
        AUTH ann wrong -> -WRONGPASS ...
        AUTH bob pw -> -WRONGPASS ...
        AUTH ann pw -> +OK
        BF.ADD crawl:1 x -> :1
        BF.ADD other x -> -NOPERM No permissions to access a key
        DEL crawl:2 crawl:3 other -> -NOPERM No permissions to access a key
        DEL crawl:2 crawl:3 -> :0
        BF.RESERVE crawl:2 0.1 9 -> -NOPERM User ann has no permissions to run the 'bf.reserve' command
        FLUSHALL -> -NOPERM User ann has no permissions to run the 'flushall' command
        RESET -> +RESET
        PING -> -NOAUTH ...
        AUTH other -> +OK
        AUTH secret -> +OK
        FLUSHALL -> +OK
        ",
    );
    talk.keyspace.set_users(std::iter::once("user default off")).expect("a good line");
    assert!(talk.say("PING").starts_with("-NOAUTH "), "a user that was switched off is out");
    let long = format!("*1\r\n${}\r\n", (16 << 10) + 1);
    for (bytes, length) in [(long.as_bytes(), "bulk"), (b"*11\r\n", "multibulk")] {
        talk.session = talk.keyspace.session(9);
        let refused = format!("-ERR Protocol error: unauthenticated {length} length");
        assert_eq!(talk.send(bytes), refused);
    }
}

#[test]
fn nothing_is_changed_while_it_may_not_be() {
    let mut talk = Talk::new(2);
    talk.keyspace.read_only = Some("the journal failed".to_owned());
    talk.hold("BF.ADD a x -> -MISCONF the journal failed\nBF.EXISTS a x -> :0");
    talk.keyspace.read_only = None;
    talk.keyspace.loading = true;
    talk.hold("BF.EXISTS a x -> -LOADING ...\nPING -> +PONG");
    talk.keyspace.loading = false;
    talk.hold("BF.ADD a x -> :1");
}

#[test]
fn a_transaction_is_done_whole_or_not_at_all() {
    let mut talk = Talk::new(2);
    talk.hold(
        "
        MULTI -> +OK
        SET a 1 -> +QUEUED
        BF.ADD a x -> +QUEUED
        MULTI -> -ERR MULTI calls can not be nested
        GET a -> +QUEUED
        EXEC -> *3 +OK -WRONGTYPE Operation against a key holding the wrong kind of value $1 1
        MULTI -> +OK
        SET a 2 -> +QUEUED
        INFO -> -ERR Command not allowed inside a transaction
        EXEC -> -EXECABORT Transaction discarded because of previous errors.
        MULTI -> +OK
        SET a 3 -> +QUEUED
        DISCARD -> +OK
        EXEC -> -ERR EXEC without MULTI
        DISCARD -> -ERR DISCARD without MULTI
        GET a -> $1 1
        MULTI -> +OK
        ",
    );
    // What is kept is no more than two byte strings may have.
    let value = vec![b'x'; 1 << 20];
    let answers: Vec<_> = (0..3).map(|_| talk.ask(&[b"SET", b"a", &value])).collect();
    assert_eq!(answers[0], "+QUEUED");
    assert!(answers[2].starts_with("-ERR"));
    talk.hold("EXEC -> -EXECABORT ...");
}

#[test]
fn a_scan_sees_all_that_was_there_all_along() {
    let mut talk = Talk::new(2);
    for key in 0..100 {
        talk.say(&format!("SET stay{key} x"));
        talk.say(&format!("SET go{key} x"));
    }
    let (mut seen, mut cursor) = (Vec::new(), "0".to_owned());
    for round in 0.. {
        let answer = talk.say(&format!("SCAN {cursor} COUNT 7 MATCH stay*"));
        let words: Vec<_> = answer.split(' ').collect();
        cursor = words[2].to_owned();
        seen.extend(words.iter().filter(|it| it.starts_with("stay")).map(|it| it.to_string()));
        talk.say(&format!("DEL go{round}"));
        talk.say(&format!("SET new{round} x"));
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
    let mut talk = Talk::new(2);
    let value = vec![b'x'; 1 << 20];
    talk.ask(&[b"SET", b"t", &value]);
    talk.keyspace.execute(&mut talk.session, "GET t\r\n".repeat(200).as_bytes(), 1.0);
    let mut answered = talk.session.reply.len();
    while talk.session.more {
        assert!(talk.session.reply.len() < 80 << 20);
        talk.session.reply.clear();
        talk.keyspace.execute(&mut talk.session, b"", 1.0);
        answered += talk.session.reply.len();
    }
    assert_eq!(answered, 200 * ((1 << 20) + "$1048576\r\n\r\n".len()));
}

#[test]
fn what_the_table_promises_is_there() {
    let mut talk = Talk::new(2);
    talk.hold(
        "
        COMMAND INFO bf.add -> *1 *10 $6 bf.add :3 ...
        COMMAND INFO nothing -> *1 $-1
        COMMAND DOCS bf.add -> *2 $6 bf.add *2 $5 group $5 bloom
        COMMAND WHAT -> -ERR unknown subcommand 'WHAT'. Try COMMAND HELP.
        ACL CAT cms -> *6 $13 cms.initbydim ...
        ACL CAT nothing -> -ERR Unknown category 'nothing'
        ACL WHOAMI -> $7 default
        ",
    );
    assert_eq!(Keyspace::new(1, None, 1, &[]).table.find(b"INFO"), None);
}
