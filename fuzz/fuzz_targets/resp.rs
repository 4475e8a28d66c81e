//! Any bytes from a client: nothing breaks, the answers do not depend on how the bytes were cut, and what was
//! changed, done again or saved and loaded, gives the same contents.

#![no_main]

use arbitrary::Arbitrary;
use bloomtide_resp::store::Store;
use bloomtide_resp::{Keyspace, Session, file};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
enum Part {
    /// A command of the table with words that mean something to many of them.
    Known(u8, Vec<u8>),
    /// The same, with one word of any bytes.
    Odd(u8, Vec<u8>, Vec<u8>),
    /// Anything.
    Raw(Vec<u8>),
}

/// One structure of each kind, as small as it can be: the dialogue picks those that it wants to work on, since
/// making and writing all of them takes far longer than most dialogues.
const BEFORE: [&str; 8] = [
    "BF.RESERVE s 0.1 8\n",
    "BF.RESERVE f 0.1 5 NONSCALING\n",
    "CF.RESERVE c 8\n",
    "CMS.INITBYDIM m 9 3\n",
    "TOPK.RESERVE t 3 8 3 0.9\n",
    "COUNT.RESERVE n 8 0.1\n",
    "DECAY.RESERVE d 8 0.1 HALFLIFE 10m TOP 4\n",
    "URL.RESERVE u 8 0.1\n",
];

const WORDS: &[&str] = &[
    "s",
    "f",
    "c",
    "m",
    "t",
    "n",
    "d",
    "u",
    "a",
    "0",
    "1",
    "2",
    "3",
    "10",
    "0.01",
    "-1",
    "ITEMS",
    "CAPACITY",
    "ERROR",
    "EXPANSION",
    "NONSCALING",
    "NOCREATE",
    "WEIGHTS",
    "WITHCOUNT",
    "COUNT",
    "*",
    "http://a/b",
    "http://a/b/c",
    "1h",
    "AT",
    "",
];

fn request(name: &str, words: &[u8], odd: Option<&[u8]>) -> Vec<u8> {
    let words = words.iter().map(|word| WORDS[usize::from(*word) % WORDS.len()].as_bytes());
    let all: Vec<&[u8]> = std::iter::once(name.as_bytes()).chain(words).chain(odd).collect();
    let mut bytes = format!("*{}\r\n", all.len()).into_bytes();
    for word in all {
        bytes.extend(format!("${}\r\n", word.len()).bytes());
        bytes.extend(word);
        bytes.extend(b"\r\n");
    }
    bytes
}

fn keyspace() -> (Keyspace, Session) {
    let keyspace = Keyspace::new(1, Some(1 << 20), 1 << 20, &["INFO".to_owned()]);
    let session = keyspace.session(1);
    (keyspace, session)
}

/// Everything that is answered, with the host's commands answered by a plain OK.
fn feed(keyspace: &mut Keyspace, session: &mut Session, bytes: &[u8]) -> Vec<u8> {
    keyspace.execute(session, bytes, 1000.0);
    let mut answers = Vec::new();
    loop {
        if session.state.foreign.is_some() {
            session.reply.ok();
            keyspace.resume(session, 1000.0, &mut || true);
        } else if session.more {
            keyspace.execute(session, b"", 1000.0);
        } else {
            answers.extend_from_slice(session.reply.bytes());
            session.reply.clear();
            return answers;
        }
        answers.extend_from_slice(session.reply.bytes());
        session.reply.clear();
    }
}

fn digest(store: &Store) -> u128 {
    file::digest(store).expect("small")
}

fuzz_target!(|input: (bool, u8, Vec<Part>, Vec<u8>)| {
    let (resp3, before, parts, cuts) = input;
    let (mut whole, mut session) = keyspace();
    let names: Vec<&str> = whole.table.commands().iter().map(|command| command.name).collect();
    let name = |number: u8| names[usize::from(number) % names.len()];
    let picked = (0..BEFORE.len()).filter(|place| before >> place & 1 == 1);
    let mut bytes: Vec<u8> = picked.flat_map(|place| BEFORE[place].bytes()).collect();
    bytes.extend(if resp3 { "HELLO 3\n" } else { "" }.bytes());
    for part in &parts {
        match part {
            Part::Known(number, words) => bytes.extend(request(name(*number), words, None)),
            Part::Odd(number, words, odd) => {
                bytes.extend(request(name(*number), words, Some(odd)));
            }
            Part::Raw(raw) => bytes.extend(raw),
        }
    }
    let expected = feed(&mut whole, &mut session, &bytes);

    let (mut pieces, mut piecewise) = keyspace();
    let mut answers = Vec::new();
    let mut rest = &bytes[..];
    for cut in cuts {
        let (piece, after) = rest.split_at(usize::from(cut).min(rest.len()));
        answers.extend(feed(&mut pieces, &mut piecewise, piece));
        rest = after;
    }
    answers.extend(feed(&mut pieces, &mut piecewise, rest));
    assert_eq!(answers, expected);
    assert_eq!(piecewise.state.closing, session.state.closing);
    let contents = digest(&whole.store);
    assert_eq!(digest(&pieces.store), contents);

    let (mut again, _) = keyspace();
    again.replay(whole.changes.bytes()).expect("our own");
    assert_eq!(digest(&again.store), contents);

    let mut saved = Vec::new();
    file::write(&whole.store, &mut saved).expect("memory");
    let mut loaded = Store::new(2, None);
    file::read(&mut loaded, &saved).expect("our own");
    assert_eq!(digest(&loaded), contents);
    assert_eq!(loaded.len(), whole.store.len());
});
