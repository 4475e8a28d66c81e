//! What no client can reach: the bytes of structures behind right checksums. What a client sees is tested from
//! Python, in `tests/resp`.

use crate::Keyspace;
use crate::structure::{self, Kind};
use crate::structures::Arriving;

/// The tag and the bytes of one structure of each kind, with a few keys.
fn contents() -> Vec<(u8, Vec<u8>)> {
    let mut keyspace = Keyspace::new(1, None, 1 << 20, &[]);
    let mut session = keyspace.session(1);
    keyspace.execute(
        &mut session,
        b"SET text a\nBF.RESERVE grows 0.01 5\nBF.MADD grows 1 2 3 4 5 6 7 8\n\
        BF.RESERVE fixed 0.01 5 NONSCALING\nBF.MADD fixed 1 2 3\n\
        CF.RESERVE cuckoo 4\nCF.INSERT cuckoo ITEMS 1 2 3 4 5 1 2\nCF.DEL cuckoo 1\n\
        CMS.INITBYDIM sketch 9 3\nCMS.INCRBY sketch a 3 b 4 c 5\n\
        TOPK.RESERVE top 3 4 2 0.9\nTOPK.ADD top a b c d a b a\n\
        COUNT.RESERVE pdcf 5 0.1\nCOUNT.MADD pdcf a b a\n\
        COUNT.RESERVE sbf 5 0.1 KIND SBF\nCOUNT.MADD sbf a b a\n\
        COUNT.RESERVE counting 5 0.1 KIND COUNTING\nCOUNT.MADD counting a b a\n\
        DECAY.RESERVE fading 5 0.1 HALFLIFE 10m TOP 2\nDECAY.MADD fading a b c a\n\
        URL.RESERVE urls 5 0.1\nURL.MADD urls http://a.org/b http://a.org/b/c\n\
        TDIGEST.CREATE digest COMPRESSION 1\nTDIGEST.ADD digest 1 2.5 -3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\n",
        1_700_000_000.0,
    );
    let head = keyspace.store.get_any(b"grows").map(Arriving::head).expect("there");
    let arriving = head.ok().and_then(|head| Arriving::new(&head)).expect("our own");
    keyspace.store.insert(b"arriving", Box::new(arriving));
    assert_eq!(keyspace.store.len(), 13, "a command was refused");
    let written = |structure| structure::write(structure, Vec::new()).expect("a vector takes all");
    let structures = keyspace.store.iter().map(|(_, structure)| structure);
    structures.map(|it| (Kind::of(it).tag, written(it))).collect()
}

#[test]
fn what_a_structure_wrote_is_read_again_and_other_bytes_are_refused_or_taken_as_they_are() {
    for (tag, bytes) in contents() {
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
    let contents = contents();
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
