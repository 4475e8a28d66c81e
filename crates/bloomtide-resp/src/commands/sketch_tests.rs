//! Laws of CMS.* and TOPK.*.

use crate::testing::Talk;

#[test]
fn count_min_sketches_answer_as_redisbloom_does() {
    for protocol in [2, 3] {
        let mut talk = Talk::new(protocol);
        let dialogue = "
            CMS.INITBYDIM dim 1000 5 -> +OK
            CMS.INITBYPROB prob 0.001 0.01 -> +OK
            CMS.INITBYDIM dim 10 2 -> -CMS: key already exists
            CMS.INCRBY dim foo 5 -> *1 :5
            CMS.QUERY dim notexist -> *1 :0
            CMS.INCRBY dim foo 5 bar 15 -> *2 :10 :15
            cms.query dim foo bar -> *2 :10 :15
            CMS.QUERY none foo -> -CMS: key does not exist
            CMS.INCRBY none foo 1 -> -CMS: key does not exist
            CMS.INFO none -> -CMS: key does not exist
            CMS.INCRBY dim foo -> -ERR wrong number of arguments for 'cms.incrby' command
            CMS.INCRBY dim foo 1 bar -> -ERR wrong number of arguments for 'cms.incrby' command
            CMS.INCRBY dim bar 1 foo x -> -CMS: Cannot parse number
            CMS.INCRBY dim bar 1 foo -1 -> -CMS: Number cannot be negative
            CMS.QUERY dim bar -> *1 :15
            CMS.INITBYDIM a 0 5 -> -CMS: invalid width
            CMS.INITBYDIM a 5 x -> -CMS: invalid depth
            CMS.INITBYDIM a 1000000000000 1000000000000 -> -CMS: invalid init arguments
            CMS.INITBYPROB a 1 0.5 -> -CMS: invalid overestimation value
            CMS.INITBYPROB a 0.5 nan -> -CMS: invalid prob value
            CMS.INITBYPROB small 0.5 0.5 -> +OK
            CMS.INFO dim -> MAP +width :1000 +depth :5 +count :25
            CMS.INFO prob -> MAP +width :2000 +depth :7 +count :0
            CMS.INFO small -> MAP +width :4 +depth :1 +count :0
        ";
        talk.hold(&dialogue.replace("MAP", if protocol == 3 { "%3" } else { "*6" }));
        talk.replays();
    }
}

#[test]
fn a_merge_of_sketches_overwrites_with_the_weighted_sum() {
    let mut talk = Talk::new(3);
    talk.hold(
        "
        CMS.INITBYDIM A 1000 5 -> +OK
        CMS.INITBYDIM B 1000 5 -> +OK
        CMS.INITBYDIM C 1000 5 -> +OK
        CMS.INITBYDIM other 1000 4 -> +OK
        CMS.INCRBY A foo 5 bar 3 baz 9 -> *3 :5 :3 :9
        CMS.INCRBY B foo 2 bar 3 baz 1 -> *3 :2 :3 :1
        CMS.MERGE C 2 A B -> +OK
        CMS.QUERY C foo bar baz -> *3 :7 :6 :10
        CMS.MERGE C 2 A B WEIGHTS 2 3 -> +OK
        CMS.QUERY C foo bar baz -> *3 :16 :15 :21
        CMS.MERGE C 2 C B weights 1 -3 -> +OK
        CMS.QUERY C foo bar baz -> *3 :10 :6 :18
        CMS.MERGE C 2 A B WEIGHTS 2 -> -CMS: wrong number of keys/weights
        CMS.MERGE C 3 A B -> -CMS: wrong number of keys/weights
        CMS.MERGE C 1 A B -> -CMS: wrong number of keys/weights
        CMS.MERGE C 2 A B HEIGHTS 2 3 -> -CMS: wrong number of keys/weights
        CMS.MERGE C 9223372036854775807 A B -> -CMS: wrong number of keys/weights
        CMS.MERGE C 0 A -> -CMS: Number of keys must be positive
        CMS.MERGE C x A -> -CMS: invalid numkeys
        CMS.MERGE C 2 A B WEIGHTS 1 x -> -CMS: invalid weight value
        CMS.MERGE C 2 A none -> -CMS: key does not exist
        CMS.MERGE none 1 A -> -CMS: key does not exist
        CMS.MERGE C 2 A other -> -CMS: width/depth is not equal
        CMS.MERGE C 1 A WEIGHTS 9223372036854775807 -> -CMS: MERGE overflow
        CMS.MERGE C 1 A WEIGHTS -1 -> -CMS: MERGE overflow
        CMS.QUERY C foo bar baz -> *3 :10 :6 :18
        CMS.INCRBY A full 4294967295 foo 1 -> *2 -CMS: INCRBY overflow :6
        CMS.MERGE C 1 A -> -CMS: MERGE overflow
        ",
    );
    talk.replays();
}

#[test]
fn lists_of_the_most_frequent_keys_answer_as_redisbloom_does() {
    for protocol in [2, 3] {
        let mut talk = Talk::new(protocol);
        let (nil, yes, no) = if protocol == 3 { ("_", "#t", "#f") } else { ("$-1", ":1", ":0") };
        talk.hold("TOPK.RESERVE topk 3 50 4 0.9 -> +OK");
        let said = talk.say("TOPK.ADD topk A B C D E A A B C G D B D A E E 1");
        let expelled = "- - - A C D - - E - B C - - - D -".split(' ');
        let expected: Vec<_> = expelled
            .map(|item| if item == "-" { nil.to_owned() } else { format!("$1 {item}") })
            .collect();
        assert_eq!(said, format!("*17 {}", expected.join(" ")));
        let said = talk.say("TOPK.QUERY topk A B C D E F G");
        assert_eq!(said, format!("*7 {yes} {yes} {no} {no} {yes} {no} {no}"));
        let dialogue = "
            TOPK.COUNT topk A B C D E F G -> *7 :4 :3 :2 :3 :3 :0 :1
            TOPK.LIST topk -> *3 $1 A $1 B $1 E
            TOPK.LIST topk WITHCOUNT -> *6 $1 A :4 $1 B :3 $1 E :3
            TOPK.LIST topk WITH -> -WITHCOUNT keyword expected
            TOPK.LIST topk WITHCOUNT x -> -ERR wrong number of arguments for 'topk.list' command
            TOPK.RESERVE topk 3 -> -TopK: key already exists
            TOPK.RESERVE a 3 50 -> -ERR wrong number of arguments for 'topk.reserve' command
            TOPK.RESERVE a 0 -> -TopK: invalid k
            TOPK.RESERVE a 16777217 -> -ERR `k` must be between 1 and 2**24, got: 16777217
            TOPK.INCRBY topk A 0 -> *1 NIL
            TOPK.RESERVE a 3 0 4 0.9 -> -TopK: invalid width
            TOPK.RESERVE a 3 5 -4 0.9 -> -TopK: invalid depth
            TOPK.RESERVE a 3 5 4 1.1 -> -TopK: invalid decay value. must be '<= 1' & '> 0'
            TOPK.ADD none a -> -TopK: key does not exist
            TOPK.LIST none -> -TopK: key does not exist
        ";
        talk.hold(&dialogue.replace("NIL", nil));
        let info = talk.say("TOPK.INFO topk");
        let (map, decay) = if protocol == 3 { ("%4", ",0.9") } else { ("*8", "$3 0.9") };
        assert_eq!(info, format!("{map} +k :3 +width :50 +depth :4 +decay {decay}"));
        talk.hold("TOPK.RESERVE inc 3 10 3 1 -> +OK");
        let said = talk.say("TOPK.INCRBY inc bar 3 baz 6 42 2");
        assert_eq!(said, format!("*3 {nil} {nil} {nil}"));
        assert_eq!(talk.say("TOPK.INCRBY inc 42 8 xyzzy 4"), format!("*2 {nil} $3 bar"));
        let refused = "-TopK: increment must be an integer greater or equal to 0 and smaller or equal to 100,000";
        for wrong in ["-1", "100001", "x"] {
            assert_eq!(talk.say(&format!("TOPK.INCRBY inc baz 1 bar {wrong}")), refused);
        }
        talk.hold(
            "
            TOPK.COUNT inc bar baz 42 xyzzy 4 -> *5 :3 :6 :10 :4 :0
            TOPK.RESERVE usual 2 -> +OK
            ",
        );
        let info = talk.say("TOPK.INFO usual");
        assert!(info.contains("+k :2 +width :8 +depth :7 +decay"), "{info}");
        talk.replays();
    }
}

#[test]
fn the_memory_of_a_list_is_that_of_its_keys_too() {
    let mut talk = Talk::new(2);
    talk.hold("TOPK.RESERVE t 2 -> +OK");
    let before = talk.keyspace.store.used();
    for (item, bytes) in [("x".repeat(1000), 1000), ("yy".to_owned(), 1002), ("zzz".to_owned(), 5)]
    {
        talk.say(&format!("TOPK.INCRBY t {item} {}", 9 - item.len().min(8)));
        assert_eq!(talk.keyspace.store.used(), before + bytes);
    }
}

#[test]
fn a_source_that_the_user_may_not_use_is_not_merged() {
    let mut talk = Talk::new(2);
    talk.hold(
        "
        CMS.INITBYDIM own:a 10 2 -> +OK
        CMS.INITBYDIM other 10 2 -> +OK
        CMS.MERGE own:a 1 other -> +OK
        ",
    );
    let rules = ["user default on nopass resetkeys ~own:* +@all"];
    talk.keyspace.set_users(rules.into_iter()).expect("rules");
    talk.hold(
        "
        CMS.MERGE own:a 1 other -> -NOPERM No permissions to access a key
        CMS.MERGE own:a 1 own:a -> +OK
        ",
    );
}
