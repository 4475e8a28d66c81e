//! Both paths of the canonical form agree. What the form is like is tested from Python, in `tests/urls`.

use super::*;

fn form_of(url: &[u8], options: &Canon) -> String {
    let mut buffer = Vec::new();
    assert!(check(url, &mut buffer).is_ok());
    let canonical = canonical(url, options, &mut buffer).unwrap();
    String::from_utf8(canonical.to_vec()).unwrap()
}

/// Numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % n
    }
}

/// A URL of pieces that are plain, nearly plain, or the reason why some are not.
fn near_plain(dice: &mut Dice) -> Vec<u8> {
    const HOSTS: &str = "a|example.org|a-b.c_d.e|h.|h..i|.h|-h-|a--b.c|xn--bcher-kva.de|xn--a|1.2.3.4|1.2|\
         0x7f.1|a.1|a.0x|h.1a|EX.org|h%61|bücher.de|[::1]||\
         averyveryverylonglabelindeed.example.org|a.b.c.d.e.f.g.h|h ";
    const AFTER: &str = ":80 :443 :8080 : :0 :08 :65536 :65535 :8a @h";
    const PARTS: &str = "/ / / a b.html . .. ... /. /./ /../ %2e %2E %2F %2f %41 % %4 %zz ? ? # & = + ' ~ ! \
         $ * ( ) ; : @ , [ | é a-much-longer-part-of-a-path";
    let [hosts, after, parts] = [(HOSTS, '|'), (AFTER, ' '), (PARTS, ' ')]
        .map(|(all, mark)| all.split(mark).collect::<Vec<_>>());
    let mut url = ["http://", "https://", "http://", "https://", "HTTP://", "ftp://", "git://"]
        [dice.below(7)]
    .to_owned();
    url += hosts[if dice.below(2) == 0 { dice.below(3) } else { dice.below(hosts.len()) }];
    if dice.below(4) == 0 {
        url += after[dice.below(after.len())];
    }
    if dice.below(8) > 0 {
        url.push('/');
    }
    for _ in 0..dice.below(8) {
        url += parts[dice.below(parts.len())];
        // Any part may lie on the border of two blocks.
        if dice.below(12) == 0 {
            url += &"x".repeat(dice.below(140));
        }
    }
    url.into_bytes()
}

#[test]
fn both_paths_agree_and_the_form_of_the_form_is_the_form() {
    let options = [
        Canon::default(),
        Canon {
            sort_query: true,
            trailing_slash: Slash::Drop,
            drop_tracking: Names::new(["a*"]).unwrap(),
            drop_sessions: true,
            keep_fragment: true,
        },
    ];
    let mut dice = Dice(1);
    let (mut plains, mut refusals) = (0, 0);
    let mut cutter = Cutter::default();
    for _ in 0..60_000 {
        let url = near_plain(&mut dice);
        let shown = String::from_utf8_lossy(&url).into_owned();
        let mut slow = Vec::new();
        let parsed = parse::parse(&url, false, &mut slow);
        if let Some(plain) = plain::plain(&url, |_| ()) {
            plains += 1;
            parsed.unwrap();
            assert_eq!(String::from_utf8_lossy(plain), String::from_utf8_lossy(&slow), "{shown}");
        } else if parsed.is_err() {
            refusals += 1;
            continue;
        }
        // Every URL is cut as the one that its slow path made, whichever path it took itself.
        for max_layers in [1, 3, 64] {
            let mut cut = |url| {
                let cut = cutter.cut(url, max_layers).unwrap();
                cut.segments(0).map(<[u8]>::to_vec).collect::<Vec<_>>()
            };
            if slow.starts_with(b"http") {
                let odd = [&b"ftp"[..], &slow[4 + usize::from(slow[4] == b's')..]].concat();
                let mut expected = cut(&odd);
                expected[0] = expected[0].split_off(b"ftp://".len());
                assert_eq!(cut(&url), expected, "{shown}");
            }
        }
        assert_eq!(form_of(&url, &options[0]), String::from_utf8_lossy(&slow), "{shown}");
        for options in &options {
            let once = form_of(&url, options);
            assert_eq!(form_of(once.as_bytes(), options), once, "{shown}");
        }
    }
    assert!(plains > 5_000 && refusals > 5_000, "{plains} plain, {refusals} refused");
}
