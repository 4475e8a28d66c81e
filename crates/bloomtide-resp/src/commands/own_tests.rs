//! Laws of COUNT.*, DECAY.* and URL.*.

use crate::command::{Keys, is};
use crate::testing::Talk;

#[test]
fn counts_go_up_and_down_again() {
    for protocol in [2, 3] {
        let mut talk = Talk::new(protocol);
        let (yes, no) = if protocol == 3 { ("#t", "#f") } else { (":1", ":0") };
        let dialogue = "
            COUNT.RESERVE c 1000 0.001 -> +OK
            COUNT.RESERVE c 1000 0.001 -> -ERR item exists
            COUNT.ADD c a -> YES
            COUNT.ADD c a 4 -> NO
            COUNT.ADD c a 0 -> NO
            COUNT.MADD c b a d -> *3 YES NO YES
            COUNT.COUNT c a -> :6
            COUNT.INCRBY c a 4 e 5000000000 -> *2 :10 :5000000000
            COUNT.MCOUNT c a b e none -> *4 :10 :1 :5000000000 :0
            COUNT.EXISTS c a -> YES
            COUNT.EXISTS c none -> NO
            COUNT.MEXISTS c a none -> *2 YES NO
            COUNT.REMOVE c a -> :9
            COUNT.REMOVE c a 8 -> :1
            COUNT.REMOVE c a 2 -> -ABSENT cannot remove 2: the key's smallest counter is 1
            COUNT.REMOVE c none -> -ABSENT cannot remove 1: the key's smallest counter is 0
            COUNT.COUNT c a -> :1
            COUNT.REMOVE c a 1 -> :0
            COUNT.COUNT none a -> :0
            COUNT.EXISTS none a -> NO
            COUNT.MCOUNT none a b -> *2 :0 :0
            COUNT.ADD none a -> -ERR not found
            COUNT.REMOVE none a -> -ERR not found
            COUNT.INFO none -> -ERR not found
            COUNT.ESTIMATE none a -> -ERR not found
            COUNT.ADD c a -1 -> -ERR `count` must be a whole number, at least 0, got: -1
            COUNT.ADD c a 1 2 -> -ERR wrong number of arguments for 'count.add' command
            COUNT.INCRBY c a 1 b -> -ERR wrong number of arguments for 'count.incrby' command
            COUNT.RESERVE d 0 0.1 -> -ERR `capacity` must be between 1 and 2**48, got: 0
            COUNT.RESERVE d 10 2 -> -ERR `error_rate` must be between 1e-15 and 0.5, got: 2
            COUNT.RESERVE d 10 0.1 KIND x -> -ERR `kind` must be PDCF, DCF, PSBF, SBF or COUNTING, got: x
            COUNT.RESERVE d 10 0.1 SORT x -> -ERR syntax error
        ";
        talk.hold(&dialogue.replace("YES", yes).replace("NO", no));
        talk.replays();
    }
}

#[test]
fn every_kind_of_filter_counts() {
    for kind in ["pdcf", "DCF", "PSBF", "SBF", "COUNTING"] {
        let mut talk = Talk::new(3);
        assert_eq!(talk.say(&format!("COUNT.RESERVE c 100 0.01 KIND {kind}")), "+OK");
        talk.hold("COUNT.INCRBY c a 3 b 5 a 4 -> *3 :3 :5 :7");
        talk.hold("COUNT.REMOVE c b 5 -> :0");
        let info = talk.say("COUNT.INFO c");
        assert!(info.contains("+Number of keys :1 +Count of all keys :7"), "{info}");
        talk.replays();
    }
}

#[test]
fn an_estimate_has_bounds() {
    let mut talk = Talk::new(3);
    talk.say("COUNT.RESERVE c 100 0.01");
    talk.say("COUNT.ADD c a 7");
    talk.hold(
        "
        COUNT.ESTIMATE c a -> %5 +value :7 +lower :7 +upper :7 +confidence ,0.95 +saturated #f
        COUNT.ESTIMATE c b CONFIDENCE 0.5 -> %5 +value :0 +lower :0 +upper :0 +confidence ,0.5 +saturated #f
        COUNT.ESTIMATE c a CONFIDENCE 1 -> -ERR `confidence` must be at least 0 and below 1, got: 1
        COUNT.ESTIMATE c a SURE 1 -> -ERR syntax error
        COUNT.RESERVE n 100 0.01 KIND COUNTING -> +OK
        COUNT.ADD n a 99 -> #t
        COUNT.INCRBY n a 1 -> *1 :15
        COUNT.ESTIMATE n a -> %5 +value :15 +lower :15 +upper _ +confidence ,0.95 +saturated #t
        ",
    );
}

#[test]
fn a_merge_adds_what_was_counted_elsewhere() {
    let mut talk = Talk::new(2);
    talk.hold(
        "
        COUNT.RESERVE a 100 0.001 -> +OK
        COUNT.RESERVE b 100 0.001 -> +OK
        COUNT.RESERVE wider 101 0.001 -> +OK
        COUNT.INCRBY a x 1 y 2 -> *2 :1 :2
        COUNT.INCRBY b y 10 z 70000 -> *2 :10 :70000
        COUNT.MERGE a b b -> +OK
        COUNT.MCOUNT a x y z -> *3 :1 :22 :140000
        COUNT.MERGE a none -> -ERR not found
        COUNT.MERGE none a -> -ERR not found
        COUNT.MCOUNT a x y z -> *3 :1 :22 :140000
        ",
    );
    talk.hold(
        "
        COUNT.MERGE a b wider -> -ERR `...
        COUNT.RESERVE other 100 0.001 KIND COUNTING -> +OK
        COUNT.MERGE a other -> -ERR `...
        COUNT.COUNT a y -> :22
        COUNT.INFO a -> *18 +Kind $19 partitioned_dynamic ...
        ",
    );
    assert!(talk.say("COUNT.INFO a").contains("+Number of keys :3 +Count of all keys :140023"));
    talk.replays();
}

#[test]
fn what_was_counted_fades() {
    let mut talk = Talk::new(3);
    talk.hold(
        "
        DECAY.RESERVE d 1000 0.001 HALFLIFE 10m TOP 2 -> +OK
        DECAY.ADD d a COUNT 8 -> #t
        DECAY.MADD d a b -> *2 #f #t
        DECAY.COUNT d a -> ,9
        DECAY.COUNT d none -> ,0
        DECAY.COUNT none a -> ,0
        DECAY.MCOUNT d a b -> *2 ,9 ,1
        ",
    );
    talk.now += 600.0;
    let said = talk.say("DECAY.COUNT d a");
    let counted: f64 = said[1..].parse().expect("a number");
    assert!((counted - 4.5).abs() < 0.01, "{said}");
    let by_hour: f64 = talk.say("DECAY.RATE d a")[1..].parse().expect("a number");
    let by_minute: f64 = talk.say("DECAY.RATE d a PER 1m")[1..].parse().expect("a number");
    assert!((by_hour / by_minute - 60.0).abs() < 1e-6);
    let top = talk.say("DECAY.TOP d 1");
    assert!(top.starts_with("*1 *4 $1 a ,4.5"), "{top}");
    assert!(talk.say("DECAY.TOP d").starts_with("*2 *4 $1 a"));
    let later = talk.now + 600.0;
    assert!(talk.say(&format!("DECAY.TOP d 1 AT {later}")).starts_with("*1 *4 $1 a ,2.2"));
    let said = talk.say(&format!("DECAY.COUNT d a AT {later}"));
    assert!(said.starts_with(",2.2"), "{said}");
    let info = talk.say("DECAY.INFO d");
    assert!(info.contains("+Half-life ,600 +Epoch ,60 +Storage $5 basic"), "{info}");
    assert!(info.contains("+Number of keys :2") && info.contains("+Length of the list :2"));
    talk.replays();
}

#[test]
fn an_event_may_say_when_it_was() {
    let mut talk = Talk::new(3);
    talk.hold(
        "
        DECAY.RESERVE d 1000 0.001 HALFLIFE 1h EPOCH 1m STORAGE OPTIMIZED -> +OK
        DECAY.ADD d a AT 2023-11-14T22:13:20Z COUNT 2 -> #t
        DECAY.ADD d b AT 1699996400 COUNT 2 -> #t
        DECAY.COUNT d a -> ,2
        DECAY.COUNT d b -> ,1...
        ",
    );
    let before = talk.contents();
    talk.hold(
        "
        DECAY.TOP d -> -ERR no list was reserved: use DECAY.RESERVE ... TOP k
        DECAY.ADD d a AT noon -> -ERR `at` must be an instant, got: noon
        DECAY.ADD d a AT 2023-11-14T22:13:20 -> -ERR `at` must be an instant, got: 2023-11-14T22:13:20
        DECAY.ADD d a COUNT -> -ERR syntax error
        DECAY.ADD d a TWICE 1 -> -ERR syntax error
        DECAY.ADD none a -> -ERR not found
        DECAY.RATE none a -> -ERR not found
        DECAY.RATE d a PER 0 -> -ERR `per` must be a length of time above zero, got: 0
        DECAY.RESERVE e 10 0.1 TOP 5 -> -ERR HALFLIFE must be given, such as HALFLIFE 10m
        DECAY.RESERVE e 10 0.1 HALFLIFE soon -> -ERR `half_life` must be a length of time above zero, got: soon
        DECAY.RESERVE e 10 0.1 HALFLIFE 1h TOP -> -ERR syntax error
        DECAY.COUNT d a AT 1699996400 -> -ERR `at` must be not before the filter's own time...
        DECAY.ADD d a AT 1700000000000 -> -ERR `at` must be...
        ",
    );
    assert!(talk.contents() == before, "a refused command changed something");
    talk.replays();
}

#[test]
fn a_clock_that_jumps_back_is_replayed_as_it_was() {
    let mut talk = Talk::new(2);
    talk.say("DECAY.RESERVE d 100 0.01 HALFLIFE 1m TOP 3");
    for (event, step) in [30.0, 200.0, -500.0, 10.0, 700.0, -1.0, 0.0].into_iter().enumerate() {
        talk.now += step;
        talk.say(&format!("DECAY.MADD d {event} a"));
        talk.say("DECAY.ADD d b COUNT 3");
    }
    talk.replays();
    talk.hold(
        "
        DECAY.RESERVE back 100 0.01 HALFLIFE 1h TOP 3 -> +OK
        DECAY.ADD back a COUNT 4 -> :1
        ",
    );
    talk.now -= 1e6;
    talk.hold(
        "
        DECAY.ADD back a COUNT 4 -> :0
        DECAY.COUNT back a -> $1 8
        DECAY.TOP back -> *1 *4 $1 a ...
        ",
    );
}

#[test]
fn urls_are_seen_with_their_hosts_and_directories() {
    let mut talk = Talk::new(3);
    talk.hold(
        "
        URL.RESERVE u 1000 0.001 -> +OK
        URL.ADD u http://example.org/docs/intro -> #t
        URL.ADD u HTTP://EXAMPLE.org:80/docs/./intro -> #f
        URL.MADD u http://example.org/docs/intro http://other.net/ -> *2 #f #t
        URL.EXISTS u http://example.org/docs/intro -> #t
        URL.EXISTS u http://example.org/docs -> #f
        URL.EXISTS none http://example.org/docs -> #f
        URL.MEXISTS u http://other.net http://nowhere.net -> *2 #t #f
        URL.HOST u example.org -> #t
        URL.HOST u nowhere.net -> #f
        URL.PREFIX u http://example.org/docs/other 2 -> #t
        URL.PREFIX u http://example.org/papers/other 2 -> #f
        URL.CANONICAL HTTP://EXAMPLE.org:80/a/../b -> $20 http://example.org/b
        URL.ADD none http://example.org/ -> -ERR not found
        URL.RESERVE u 10 0.1 -> -ERR item exists
        URL.RESERVE v 10 0.1 LAYERS 0 -> -ERR `max_layers` must be between 1 and 64, got: 0
        URL.RESERVE v 10 0.1 LAYERS -> -ERR syntax error
        URL.RESERVE v 10 0.1 DEPTH 3 -> -ERR syntax error
        URL.ADD u nonsense -> -ERR `url`...
        URL.EXISTS u nonsense -> -ERR `url`...
        URL.CANONICAL nonsense -> -ERR `url`...
        URL.PREFIX u http://example.org/docs/other 9 -> -ERR `depth`...
        URL.RESERVE v 10 0.1 LAYERS 3 -> +OK
        ",
    );
    let info = talk.say("URL.INFO u");
    assert!(info.contains("+Number of URLs :2 +Number of layers :3"), "{info}");
    let said = talk.say("URL.MADD u http://third.net/ nonsense http://fourth.net/");
    assert!(said.starts_with("*3 #t -ERR `url`") && said.ends_with("#t"), "{said}");
    talk.replays();
}

#[test]
fn counters_that_grow_are_weighed_again() {
    let mut talk = Talk::new(2);
    talk.say("COUNT.RESERVE c 1000 0.01");
    let before = talk.keyspace.store.used();
    for item in 0..600 {
        talk.say(&format!("COUNT.ADD c {item} 4000000000"));
    }
    let used = talk.keyspace.store.used();
    assert!(used > before * 2, "{before} {used}");
    // No more is taken than there may be.
    talk.keyspace.store.limit = Some(used - 1);
    let refused = "-OOM command not allowed when used memory > 'maxmemory'.";
    assert_eq!(talk.say("COUNT.ADD c a"), refused);
    talk.hold("COUNT.REMOVE c 1 4000000000 -> :0");
}

#[test]
fn a_key_of_another_kind_is_refused_by_every_command() {
    let mut talk = Talk::new(2);
    // A name that is a number, too, so that it can stand at every place.
    talk.say("BF.ADD 1 a");
    let refused = "-WRONGTYPE Operation against a key holding the wrong kind of value";
    let own = is::CMS | is::TOPK | is::COUNT | is::DECAY | is::URL;
    let makes = |name: &str| name.contains("RESERVE") || name.contains("INIT");
    let commands = talk.keyspace.table.commands().iter();
    let commands = commands.filter(|it| it.has(own) && it.keys != Keys::NONE && !makes(it.name));
    for command in commands.copied().collect::<Vec<_>>() {
        let elements = " 1".repeat(usize::from(command.arity.unsigned_abs()) - 1);
        assert_eq!(talk.say(&format!("{}{elements}", command.name)), refused, "{}", command.name);
    }
}
