//! Laws of the whole: bytes in, bytes out.

use crate::changes::{Changes, Records};
use crate::store::Store;
use crate::testing::{Talk, request};
use crate::{file, structure};

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
    let answers = |pieces: &[&[u8]]| {
        let mut talk = Talk::new(2);
        for piece in pieces {
            talk.keyspace.execute(&mut talk.session, piece, talk.now);
        }
        assert!(talk.session.state.closing);
        (talk.answers(), talk.digest())
    };
    let expected = answers(&[&bytes]);
    assert!(expected.0.contains("EXECABORT") && expected.0.ends_with("+OK"), "{}", expected.0);
    assert_eq!(answers(&bytes.chunks(1).collect::<Vec<_>>()), expected);
    for cut in (0..bytes.len()).step_by(7) {
        assert_eq!(answers(&[&bytes[..cut], &bytes[cut..]]), expected, "{cut}");
    }
}

#[test]
fn changes_done_again_give_the_same_contents() {
    let mut talk = Talk::new(2);
    talk.send(&conversation());
    talk.replays();
    Talk::with_all_kinds().replays();
    let mut nothing = Talk::new(2);
    nothing.send(b"PING\nBF.EXISTS a b\nDEL a\nFLUSHALL\n");
    assert_eq!(nothing.keyspace.changes.bytes(), b"", "questions and vain commands change nothing");
}

#[test]
fn only_what_had_an_effect_is_noted() {
    let mut talk = Talk::new(2);
    talk.send(b"BF.MADD f a b a b a\nBF.ADD f a\n");
    let mut records = Records::new(talk.keyspace.changes.bytes());
    let mut names = Vec::new();
    while let Some((time, args)) = records.read().expect("sound") {
        assert_eq!(time, talk.now);
        names.push(String::from_utf8_lossy(args.at(0)).into_owned());
    }
    assert_eq!(names, ["BF.RESERVE", "BF.ADD", "BF.ADD"]);
}

#[test]
fn a_record_that_is_no_change_is_damage() {
    for record in [&[&b"PING"[..]][..], &[b"CF.DEL", b"absent", b"x"], &[b"NO.SUCH"]] {
        let mut changes = Changes::default();
        changes.note(1.0, record);
        assert!(Talk::new(2).keyspace.replay(changes.bytes()).is_err(), "{record:?}");
    }
}

#[test]
fn what_a_structure_wrote_is_read_again_and_other_bytes_are_refused_or_taken_as_they_are() {
    for (tag, bytes) in Talk::with_all_kinds().contents() {
        let again = |bytes: &[u8]| {
            let structure = structure::read(tag, bytes).ok()?;
            Some(structure::write(&*structure, Vec::new()).expect("a vector takes all"))
        };
        let is_sound = |bytes: &[u8]| again(bytes).is_none_or(|again| again == bytes);
        assert_eq!(again(&bytes), Some(bytes.clone()), "{tag}");
        assert!(is_sound(&[&bytes[..], &[0]].concat()), "{tag}");
        for at in 0..bytes.len() {
            assert!(is_sound(&bytes[..at]), "{tag} cut at {at}");
            for bit in [1, 0x80] {
                let mut changed = bytes.clone();
                changed[at] ^= bit;
                assert!(is_sound(&changed), "{tag} changed at {at}");
            }
        }
    }
}

#[test]
fn bytes_that_contradict_themselves_are_refused() {
    let contents = Talk::with_all_kinds().contents();
    let of = |tag: u8| contents.iter().find(|it| it.0 == tag).map(|it| it.1.clone()).unwrap();
    let top = of(6);
    // Each place of the list has twelve bytes and its key, of one byte.
    let (places, second) = (top.len() - 3 * 13, top[top.len() - 14]);
    let forgeries: [(u8, usize, u8); 15] = [
        (3, 0, 9),                // another expansion than the filter's
        (4, 0, 5),                // layers of another capacity
        (4, 40, 0),               // no layers
        (5, 0, 0),                // no cells
        (5, 0, 10),               // wider rows
        (5, 7, 255),              // more cells than there can be
        (5, 8, 2),                // fewer rows
        (5, 16, 11),              // another sum than that of the rows
        (6, 0, 4),                // one place more
        (6, 8, 0),                // no cells
        (6, 15, 255),             // more cells than there can be
        (6, places, 99),          // the smallest counts most
        (6, places, 0),           // a key that counts nothing
        (6, places + 4, 200),     // a key beyond the end
        (6, places + 12, second), // the same key twice
    ];
    for (tag, at, value) in forgeries {
        let mut forged = of(tag);
        assert_ne!(std::mem::replace(&mut forged[at], value), value, "{tag} {at}");
        assert!(structure::read(tag, &forged).is_err(), "{tag} {at} {value}");
    }
}

#[test]
fn a_malformed_request_is_answered_and_ends_the_session() {
    for bytes in
        ["*9223372036854775808\r\n", "*1\r\n$-1\r\n", "*1\r\n+1\r\n", "*1\r\n$2\r\nabc\r\n"]
    {
        let mut talk = Talk::new(2);
        let answer = talk.send(format!("PING\r\n{bytes}PING\r\n").as_bytes());
        assert!(answer.starts_with("+PONG -ERR Protocol error: "), "{answer}");
        assert!(!answer.ends_with("PONG"), "{answer}");
        assert!(talk.session.state.closing && talk.session.buffered() == 0);
        assert_eq!(talk.say("PING"), "");
    }
}

/// All commands that reserve memory, each for the name `a`.
const RESERVES: [&str; 16] = [
    "BF.RESERVE a 0.0001 100000",
    "BF.RESERVE a 0.0001 100000 NONSCALING",
    "CF.RESERVE a 100000",
    "CMS.INITBYDIM a 100000 5",
    "CMS.INITBYPROB a 0.00001 0.001",
    "TOPK.RESERVE a 10000",
    "TOPK.RESERVE a 10 10000 10 0.9",
    "COUNT.RESERVE a 100000 0.01",
    "COUNT.RESERVE a 100000 0.01 KIND DCF",
    "COUNT.RESERVE a 100000 0.01 KIND SBF",
    "COUNT.RESERVE a 100000 0.01 KIND PSBF",
    "COUNT.RESERVE a 100000 0.01 KIND COUNTING",
    "DECAY.RESERVE a 100000 0.01 HALFLIFE 1h",
    "DECAY.RESERVE a 100000 0.01 HALFLIFE 1h STORAGE OPTIMIZED",
    "DECAY.RESERVE a 100 0.01 HALFLIFE 1h TOP 10000",
    "URL.RESERVE a 100000 0.01",
];

#[test]
fn what_does_not_fit_is_refused_before_it_is_made() {
    for line in RESERVES {
        let mut talk = Talk::new(2);
        assert_eq!(talk.say(line), "+OK", "{line}");
        talk.say(&format!("URL.ADD a http://a.org{}", "/b".repeat(9)));
        let used = talk.keyspace.store.used();
        let made_within = |limit: u64| Talk::within(2, Some(limit)).say(line);
        let refused = "-OOM command not allowed when used memory > 'maxmemory'.";
        assert_eq!(made_within(used * 6 / 10), refused, "{line}");
        assert!(line.contains("TOP ") || made_within(used * 15 / 10) == "+OK", "{line}");
    }
    let mut talk = Talk::within(2, Some(1 << 16));
    talk.hold("BF.RESERVE small 0.01 1000 -> +OK");
    let mut answer = String::new();
    for key in 0..2_000_000 {
        answer = talk.say(&format!("BF.ADD small {key}"));
        if answer.starts_with('-') {
            break;
        }
    }
    assert!(answer.starts_with("-OOM "), "{answer}");
    assert!(talk.keyspace.store.used() <= 1 << 16);
    talk.replays();
}

#[test]
fn no_command_makes_one_key_more_than_there_may_be() {
    let mut talk = Talk::new(2);
    talk.send(b"BF.ADD bloom a\nCF.ADD cuckoo a\nSET text a\n");
    let heads = [("BF", talk.chunk("BF", "bloom", 0).1), ("CF", talk.chunk("CF", "cuckoo", 0).1)];
    talk.keyspace.store.most = Some(3);
    let (digest, noted) = (talk.digest(), talk.keyspace.changes.bytes().to_vec());
    let refused = "-ERR max number of keys reached: 'maxkeys' is 3; \
                   DEL one, or raise it by CONFIG SET maxkeys";
    let makers = [
        "SET a b",
        "BF.ADD a b",
        "BF.MADD a b c",
        "BF.INSERT a ITEMS b",
        "CF.ADD a b",
        "CF.ADDNX a b",
        "CF.INSERT a ITEMS b",
        "CF.INSERTNX a ITEMS b",
    ];
    let makers = || makers.into_iter().chain(RESERVES);
    for line in makers() {
        assert_eq!(talk.say(line), refused, "{line}");
    }
    for (family, head) in heads {
        let name = format!("{family}.LOADCHUNK");
        assert_eq!(talk.ask(&[name.as_bytes(), b"a", b"1", &head]), refused);
    }
    let exec = talk.send(b"MULTI\r\nBF.ADD a b\r\nEXEC\r\n");
    assert_eq!(exec, format!("+OK +QUEUED *1 {refused}"));
    assert_eq!(talk.digest(), digest);
    assert_eq!(talk.keyspace.changes.bytes(), noted, "nothing is noted of what was refused");

    // Keys that are there are changed as ever, and one that goes makes room.
    talk.hold("BF.ADD bloom b -> :1\nSET text b -> +OK\nRENAME text other -> +OK");
    for line in makers() {
        talk.hold("DEL other a -> :1");
        assert!(!talk.say(line).starts_with('-'), "{line}");
        assert_eq!(talk.keyspace.store.len(), 3, "{line}");
    }
    talk.hold("FLUSHALL -> +OK");
    assert_eq!(talk.keyspace.store.most, Some(3));
}

#[test]
fn what_was_kept_under_a_higher_limit_of_keys_is_kept() {
    let mut talk = Talk::new(2);
    for key in 0..5 {
        talk.say(&format!("BF.ADD f{key} a"));
    }
    let mut saved = Vec::new();
    file::write(&talk.keyspace.store, &mut saved).expect("memory");
    let (mut other, mut loaded) = (Talk::new(2), Talk::new(2));
    (other.keyspace.store.most, loaded.keyspace.store.most) = (Some(2), Some(2));
    other.keyspace.replay(talk.keyspace.changes.bytes()).expect("our own");
    file::read(&mut loaded.keyspace.store, &saved).expect("our own");
    for mut kept in [other, loaded] {
        assert_eq!(kept.digest(), talk.digest());
        kept.hold(
            "
            BF.ADD f4 b -> :1
            BF.ADD new a -> -ERR max number of keys...
            DEL f0 f1 f2 -> :3
            BF.ADD new a -> -ERR max number of keys...
            DEL f3 -> :1
            BF.ADD new a -> :1
            ",
        );
    }
}

#[test]
fn every_cut_and_every_changed_byte_of_a_file_is_seen() {
    let talk = Talk::with_all_kinds();
    let mut bytes = Vec::new();
    let len = file::write(&talk.keyspace.store, &mut bytes).expect("memory");
    assert_eq!(len, bytes.len() as u64);
    let mut back = Store::new(99, None);
    file::read(&mut back, &bytes).expect("our own");
    assert_eq!(file::digest(&back).expect("memory"), talk.digest());
    back.remove(b"text");
    assert_ne!(file::digest(&back).expect("memory"), talk.digest());
    for place in (0..bytes.len()).step_by(13) {
        assert!(file::read(&mut Store::new(0, None), &bytes[..place]).is_err(), "{place}");
        let mut bytes = bytes.clone();
        bytes[place] ^= 1;
        assert!(file::read(&mut Store::new(0, None), &bytes).is_err(), "{place}");
    }
}

#[test]
fn sets_answer_as_redisbloom_does() {
    let mut talk = Talk::new(2);
    talk.hold(
        "
        ping -> +PONG
        bf.exists seen a -> :0
        BF.ADD seen a -> :1
        BF.ADD seen a -> :0
        BF.EXISTS seen a -> :1
        BF.ADD seen -> -ERR wrong number of arguments for 'bf.add' command
        NO.SUCH x y -> -ERR unknown command 'NO.SUCH', with args beginning with: 'x' 'y'
        BF.RESERVE f 0.01 2 NONSCALING -> +OK
        BF.MADD f a b c d -> *3 :1 :1 -ERR non scaling filter is full
        BF.ADD f c -> -ERR non scaling filter is full
        BF.ADD f a -> :0
        BF.INFO f EXPANSION -> *1 $-1
        BF.INFO f CAPACITY -> *1 :2
        BF.RESERVE g 0.01 2 NONSCALING EXPANSION 2 -> -Nonscaling filters cannot expand
        BF.RESERVE f 0.01 2 -> -ERR item exists
        BF.RESERVE g 1 2 -> -ERR error rate must be in the range (0.000000, 1.000000)
        BF.RESERVE g 0.1 0 -> -ERR capacity must be in the range [1, 1073741824]
        BF.RESERVE g 0.1 9 EXPANSION -> -ERR bad expansion
        BF.RESERVE g 0.1 9 EXPANSION 32769 -> -ERR expansion must be in the range [0, 32768]
        BF.RESERVE g 0.1 9 GROWTH 2 -> -ERR syntax error
        BF.INSERT g NOCREATE ITEMS a -> -ERR not found
        BF.INSERT g CAPACITY x ITEMS a -> -ERR bad capacity
        BF.INSERT g ERROR ITEMS a -> -ERR bad error rate
        BF.INSERT g GROWTH 2 ITEMS a -> -ERR Unknown argument received
        BF.INSERT g CAPACITY 5 ITEMS -> -ERR wrong number of arguments for 'bf.insert' command
        BF.INSERT g CAPACITY 5 ERROR 0.1 EXPANSION 4 ITEMS a a -> *2 :1 :0
        BF.INFO g EXPANSION -> *1 :4
        CF.RESERVE c 1 -> -Capacity must be at least (BucketSize * 2)
        CF.RESERVE c 8 BUCKETSIZE 0 -> -Bad bucket size
        CF.RESERVE c 8 EXPANSION -> -Bad expansion
        CF.RESERVE c 8 GROWTH 2 -> -ERR syntax error
        CF.RESERVE c 4 EXPANSION 0 -> +OK
        CF.INSERT c ITEMS a a b b c -> *5 :1 :1 :1 :1 :-1
        CF.INSERTNX c ITEMS a -> *1 :0
        CF.ADDNX c b -> :0
        CF.ADD c d -> -Filter is full
        CF.DEL c a -> :1
        CF.COUNT c a -> :1
        CF.DEL none a -> -Not found
        CF.INSERT none CAPACITY x ITEMS a -> -Bad capacity
        CF.INSERT none NOCREATE ITEMS a -> -ERR not found
        CF.INSERTNX none CAPACITY 9 -> -ERR wrong number of arguments for 'cf.insertnx' command
        CF.COMPACT c -> +OK
        SET t x -> +OK
        BF.ADD t x -> -WRONGTYPE ...
        BF.CARD t -> -WRONGTYPE ...
        BF.INFO t -> -WRONGTYPE ...
        CF.ADD f x -> -WRONGTYPE ...
        CF.DEL f x -> -WRONGTYPE ...
        GET f -> -WRONGTYPE ...
        BF.EXISTS t x -> :0
        BF.RESERVE t 0.1 10 -> -ERR item exists
        BF.LOADCHUNK to 1 rubbish -> -ERR received bad data
        BF.LOADCHUNK to 2 rubbish -> -ERR not found
        ",
    );
    talk.replays();
}

#[test]
fn chunks_bring_a_filter_to_another_name() {
    let mut talk = Talk::new(2);
    for key in 0..500 {
        talk.say(&format!("BF.ADD BF {key}"));
        talk.say(&format!("CF.ADD CF {key}"));
    }
    for family in ["BF", "CF"] {
        let name = format!("{family}.LOADCHUNK");
        let (mut next, mut chunk) = talk.chunk(family, family, 0);
        while next > 0 {
            let number = next.to_string();
            assert_eq!(talk.ask(&[name.as_bytes(), b"to", number.as_bytes(), &chunk]), "+OK");
            talk.replays();
            (next, chunk) = talk.chunk(family, family, next);
        }
        let info = talk.say(&format!("{family}.INFO to"));
        assert_eq!(info, talk.say(&format!("{family}.INFO {family}")));
        talk.say("DEL to");
    }
    let head = talk.chunk("BF", "BF", 0).1;
    assert_eq!(talk.ask(&[b"CF.LOADCHUNK", b"to", b"1", &head]), "-ERR received bad data");
    assert_eq!(talk.ask(&[b"BF.LOADCHUNK", b"to", b"1", &head]), "+OK");
    talk.hold("BF.ADD to a -> -ERR the key is still being loaded by chunks");
}
