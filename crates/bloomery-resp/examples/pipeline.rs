//! What a command costs without a socket: `cargo run --release -p bloomery-resp --example pipeline`.

use bloomery_resp::Keyspace;
use std::io::Write;
use std::time::Instant;

/// Commands in one read, as `redis-benchmark -P 64` sends them.
const PIPELINE: usize = 64;
const ROUNDS: usize = 20_000;

fn main() -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    let families: [(&str, &[&str]); 10] = [
        ("PING", &["PING"]),
        ("SET", &["SET", "text", "#"]),
        ("BF.ADD", &["BF.ADD", "set", "#"]),
        ("BF.EXISTS", &["BF.EXISTS", "set", "#"]),
        ("BF.ADD of a new filter", &["BF.ADD", "grown", "#"]),
        ("CF.ADD", &["CF.ADD", "cuckoo", "#"]),
        ("CMS.INCRBY", &["CMS.INCRBY", "sketch", "#", "1"]),
        ("COUNT.ADD", &["COUNT.ADD", "counts", "#"]),
        ("DECAY.ADD", &["DECAY.ADD", "hot", "#"]),
        ("URL.ADD", &["URL.ADD", "urls", "http://example.org/#"]),
    ];
    for (label, words) in families {
        let mut keyspace = Keyspace::new(1, None, 512 << 20, &[]);
        keyspace.changes.keep(std::env::args().any(|arg| arg == "--journal"));
        let mut session = keyspace.session(1);
        let before = "BF.RESERVE set 0.01 1000000\nCF.RESERVE cuckoo 1000000\nCMS.INITBYDIM sketch 100000 5\n";
        keyspace.execute(&mut session, before.as_bytes(), 1.0);
        let mut buffers = Vec::new();
        let mut random = 7u64;
        for _ in 0..512 {
            let mut buffer = Vec::new();
            for _ in 0..PIPELINE {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let key = format!("{:012}", (random >> 33) % 1_000_000);
                buffer.extend(format!("*{}\r\n", words.len()).bytes());
                for word in words {
                    let word = word.replace('#', &key);
                    buffer.extend(format!("${}\r\n{word}\r\n", word.len()).bytes());
                }
            }
            buffers.push(buffer);
        }
        session.reply.clear();
        let started = Instant::now();
        for round in 0..ROUNDS {
            keyspace.execute(&mut session, &buffers[round % buffers.len()], 1.0);
            if session.reply.bytes().first() == Some(&b'-') {
                writeln!(out, "{}", session.reply.bytes().escape_ascii())?;
                break;
            }
            session.reply.clear();
            keyspace.changes.clear();
        }
        let each = started.elapsed().as_nanos() as f64 / (ROUNDS * PIPELINE) as f64;
        writeln!(out, "{label:24} {each:6.1} ns")?;
    }
    Ok(())
}
