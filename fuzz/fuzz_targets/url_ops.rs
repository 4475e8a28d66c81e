//! Any sequence of verbs on a URL filter: no URL and no prefix is ever lost, batches are single adds, and
//! whatever is no URL is refused and changes nothing.

#![no_main]

use arbitrary::Arbitrary;
use bloomtide_core::filters::{Bind, LayerSizes};
use bloomtide_core::snapshot::{Loaded, read, to_bytes};
use bloomtide_core::url::Cutter;
use bloomtide_core::{Crew, Hasher, Key, UrlFilter, UrlPlan};
use libfuzzer_sys::fuzz_target;
use std::collections::BTreeSet;

#[derive(Arbitrary, Debug)]
enum Op {
    /// Segments from a small alphabet, so that prefixes are shared.
    Add(Vec<u8>),
    AddRaw(Vec<u8>),
    AddMany(Vec<Vec<u8>>),
    Merge(Vec<Vec<u8>>),
    Reload,
    Clear,
}

fn url(parts: &[u8]) -> Vec<u8> {
    let mut url = b"http://h".to_vec();
    for (depth, part) in parts.iter().take(9).enumerate() {
        url.push(b'a' + part % 3);
        if depth < 8 {
            url.push(b'/');
        }
    }
    url
}

fuzz_target!(|input: (u8, u8, u8, Vec<Op>)| {
    let (bind, layers, sizes, ops) = input;
    let bind = [Bind::SaltedXor, Bind::Ordered, Bind::Xor][usize::from(bind % 3)];
    let sizes = if sizes % 2 == 0 {
        LayerSizes::Uniform
    } else {
        LayerSizes::Expected(vec![u64::from(sizes), 7])
    };
    let plan = UrlPlan {
        capacity: 20,
        error_rate: 0.05,
        max_layers: u32::from(layers % 8),
        bind,
        layer_sizes: sizes,
    };
    let hasher = Hasher::Xxh3 { seed: 5 };
    let Ok(mut filter) = UrlFilter::new(plan.clone(), hasher) else { return };
    let mut crew = Crew::new(1);
    let mut seen: BTreeSet<Vec<u8>> = BTreeSet::new();
    for op in ops {
        match op {
            Op::Add(parts) => {
                let url = url(&parts);
                let before = filter.contains(&url).expect("a URL");
                assert_eq!(filter.add(&url).expect("a URL"), !before);
                seen.insert(url);
            }
            Op::AddRaw(bytes) => {
                let bytes_before = to_bytes(&filter).expect("small");
                match filter.add(&bytes) {
                    Ok(_) => assert!(filter.contains(&bytes).expect("a URL")),
                    Err(_) => assert_eq!(to_bytes(&filter).expect("small"), bytes_before),
                }
            }
            Op::AddMany(many) => {
                let urls: Vec<Vec<u8>> = many.iter().map(|parts| url(parts)).collect();
                let keys: Vec<Key<'_>> = urls.iter().map(|url| Key::Bytes(url)).collect();
                let mut twin = filter.copy().expect("small");
                let mut out = vec![false; keys.len()];
                filter.add_many(&keys.as_slice(), &mut out, &mut crew).expect("URLs");
                for (url, new) in urls.iter().zip(out) {
                    assert_eq!(twin.add(url).expect("a URL"), new);
                }
                assert!(twin.same_as(&filter));
                seen.extend(urls);
            }
            Op::Merge(many) => {
                let mut other = UrlFilter::new(plan.clone(), hasher).expect("made before");
                for parts in many {
                    other.add(&url(&parts)).expect("a URL");
                    seen.insert(url(&parts));
                }
                filter.merge(&other).expect("made alike");
            }
            Op::Reload => {
                let bytes = to_bytes(&filter).expect("small");
                let Ok(Loaded::Url(back)) = read(&bytes, None) else { panic!("lost") };
                assert!(back.same_as(&filter));
                filter = *back;
            }
            Op::Clear => {
                filter.clear();
                seen.clear();
            }
        }
        filter.validate().expect("sound");
        for url in &seen {
            assert!(filter.contains(url).expect("a URL"));
            let mut cutter = Cutter::default();
            let cut = cutter.cut(url, plan.max_layers as usize).expect("a URL");
            let depth = cut.ends.len() as u32;
            for depth in 1..=depth.min(plan.max_layers - 1) {
                assert!(filter.seen_prefix(url, depth).expect("that deep"));
            }
        }
    }
});
