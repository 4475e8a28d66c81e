//! Any bytes as a URL under any options: refused in words, or a form that is its own form, that the
//! fast path and the parser agree on, and whose segments hold all of it.

#![no_main]

use arbitrary::Arbitrary;
use bloomtide_core::url::{Cutter, Names, Slash, check};
use bloomtide_core::{Canon, canonical};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    options: u8,
    layers: u8,
    url: &'a [u8],
}

fuzz_target!(|input: Input<'_>| {
    let set = |bit: u8| input.options >> bit & 1 == 1;
    let options = Canon {
        sort_query: set(0),
        trailing_slash: if set(1) { Slash::Drop } else { Slash::Keep },
        drop_tracking: if set(2) { Names::tracking() } else { Names::default() },
        drop_sessions: set(3),
        keep_fragment: set(4),
    };
    // Half of the inputs get past the scheme and the host at once.
    let url = if set(5) { [b"http://h/", input.url].concat() } else { input.url.to_vec() };
    let mut buffer = Vec::new();
    let standard = canonical(&url, &Canon::default(), &mut Vec::new()).is_ok();
    assert_eq!(check(&url, &mut buffer).is_ok(), standard);
    let Ok(once) = canonical(&url, &options, &mut buffer) else { return };
    let mut again = Vec::new();
    match canonical(once, &options, &mut again) {
        Ok(twice) => assert_eq!(once, twice),
        Err(error) => panic!("{error}"),
    }
    assert!(once.iter().all(u8::is_ascii_graphic));

    // An upper-case scheme is for the parser alone.
    if url.starts_with(b"http") {
        let loud = [b"HTTP", &url[4..]].concat();
        let mut parsed = Vec::new();
        assert_eq!(canonical(&loud, &options, &mut parsed).ok(), Some(once));
    }

    let mut cutter = Cutter::default();
    let cut = cutter.cut(once, usize::from(input.layers)).expect("a URL");
    assert!(options.keep_fragment || cut.form == once);
    let parts: Vec<&[u8]> = cut.segments(0).collect();
    assert!(parts.len() <= usize::from(input.layers).max(1));
    assert!(cut.form.ends_with(&parts.join(&b'/')));
});
