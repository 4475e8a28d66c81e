//! What a command costs without a socket: buffers of 64 pipelined requests through `Keyspace::execute`, answers and
//! journal included. The best of many short runs, so that a busy machine shows less.
//!
//! ```console
//! $ cargo run --release -p bloomtide-resp --example pipeline [family]
//! ```

#![allow(clippy::print_stdout, reason = "it is what this program is for")]

use bloomtide_resp::Keyspace;
use std::time::{Duration, Instant};

const NOW: f64 = 1.7e9;
const REQUESTS: u32 = 64;
const BUFFERS: u32 = 100;
const RUNS: u32 = 60;

/// A request, in which KEY is another key each time, and what must be said before.
const CASES: [(&str, &str); 16] = [
    ("PING", "PING"),
    ("BF.ADD f KEY", "BF.RESERVE f 0.01 1000000"),
    ("BF.EXISTS f KEY", "BF.RESERVE f 0.01 1000000"),
    ("CF.ADD f KEY", "CF.RESERVE f 1000000"),
    ("CMS.INCRBY c KEY 1", "CMS.INITBYPROB c 0.001 0.01"),
    ("CMS.QUERY c KEY", "CMS.INITBYPROB c 0.001 0.01"),
    ("TOPK.ADD t KEY", "TOPK.RESERVE t 100 2000 7 0.9"),
    ("TOPK.QUERY t KEY", "TOPK.RESERVE t 100 2000 7 0.9"),
    ("COUNT.ADD n KEY", "COUNT.RESERVE n 1000000 0.01"),
    ("COUNT.COUNT n KEY", "COUNT.RESERVE n 1000000 0.01"),
    ("COUNT.INCRBY n KEY 3", "COUNT.RESERVE n 1000000 0.01"),
    ("DECAY.ADD d KEY", "DECAY.RESERVE d 1000000 0.01 HALFLIFE 10m"),
    ("DECAY.ADD d KEY", "DECAY.RESERVE d 1000000 0.01 HALFLIFE 10m TOP 1000"),
    ("DECAY.COUNT d KEY", "DECAY.RESERVE d 1000000 0.01 HALFLIFE 10m"),
    ("URL.ADD u http://example.org/docs/KEY", "URL.RESERVE u 1000000 0.01"),
    ("URL.EXISTS u http://example.org/docs/KEY", "URL.RESERVE u 1000000 0.01"),
];

fn request(line: &str, number: u32) -> Vec<u8> {
    let key = format!("key:{:012}", number.wrapping_mul(2_654_435_769));
    let words: Vec<_> = line.split(' ').map(|word| word.replace("KEY", &key)).collect();
    let mut out = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        out.extend(format!("${}\r\n{word}\r\n", word.len()).bytes());
    }
    out
}

/// Time of one request.
fn measure(line: &str, before: &str) -> Duration {
    let mut keyspace = Keyspace::new(1, None, 1 << 20, &[]);
    let mut session = keyspace.session(1);
    keyspace.execute(&mut session, format!("{before}\r\n").as_bytes(), NOW);
    let buffer = |start: u32| (start..start + REQUESTS).flat_map(|i| request(line, i)).collect();
    let buffers: Vec<Vec<u8>> = (0..BUFFERS).map(|i| buffer(i * REQUESTS)).collect();
    let run = || {
        let start = Instant::now();
        for buffer in &buffers {
            keyspace.execute(&mut session, buffer, NOW);
            session.reply.clear();
            keyspace.changes.clear();
        }
        start.elapsed() / (REQUESTS * BUFFERS)
    };
    std::iter::repeat_with(run).take(RUNS as usize).min().unwrap_or_default()
}

fn main() {
    let wanted = std::env::args().nth(1).unwrap_or_default().to_ascii_uppercase();
    for (line, before) in CASES.iter().filter(|(line, _)| line.starts_with(&wanted)) {
        println!("{:>4} ns  {line}   ({before})", measure(line, before).as_nanos());
    }
}
