//! The laws of the canonical form.

use super::*;

fn form(url: &str) -> String {
    form_of(url.as_bytes(), &Canon::default())
}

fn form_of(url: &[u8], options: &Canon) -> String {
    let mut buffer = Vec::new();
    assert!(check(url, &mut buffer).is_ok());
    let canonical = canonical(url, options, &mut buffer).unwrap();
    String::from_utf8(canonical.to_vec()).unwrap()
}

fn refused(url: &[u8]) -> String {
    assert!(check(url, &mut Vec::new()).is_err());
    canonical(url, &Canon::default(), &mut Vec::new()).unwrap_err().to_string()
}

#[test]
fn each_address_has_one_spelling() {
    for (written, expected) in [
        ("HTTP://Example.ORG", "http://example.org/"),
        ("http://example.org:80/", "http://example.org/"),
        ("https://example.org:443/a", "https://example.org/a"),
        ("http://example.org:443/a", "http://example.org:443/a"),
        ("http://example.org:08080/", "http://example.org:8080/"),
        ("http://h/a/./b/../c/%2e%2E/d", "http://h/a/d"),
        ("http://h/../../a", "http://h/a"),
        ("http://h/%7Euser/%c3%a9?q=%7e", "http://h/~user/%C3%A9?q=~"),
        ("http://h/a b|c?d e'", "http://h/a%20b%7Cc?d%20e%27"),
        ("http://h/100%", "http://h/100%25"),
        ("http://h/a#b", "http://h/a"),
        ("http://h/a?#", "http://h/a"),
        ("http://h?a", "http://h/?a"),
        ("http://h/a?b=1&b=1&&c=+", "http://h/a?b=1&b=1&&c=+"),
        ("https://example.org", "https://example.org/"),
        ("http://example.org:8080", "http://example.org:8080/"),
        ("http://h\\a\\b", "http://h/a/b"),
        ("http:h/a", "http://h/a"),
        ("  http://h/a\r\n", "http://h/a"),
        ("http://ex%61mple.org/", "http://example.org/"),
        ("http://bücher.example/é", "http://xn--bcher-kva.example/%C3%A9"),
        ("http://０Ｘ7f.1/", "http://127.0.0.1/"),
        ("http://[2001:DB8:0::1]:80/", "http://[2001:db8::1]/"),
        ("http://Me:p%77@h/", "http://Me:pw@h/"),
        ("http://me:@h/", "http://me@h/"),
        ("ftp://H:21/a", "ftp://h/a"),
        ("GIT+ssh://git@GitHub.com:22/a/../b", "git+ssh://git@github.com:22/b"),
        ("git://GitHub.com", "git://github.com/"),
        ("File://Host/%43:/../a", "file://host/a"),
        ("file://host/%43|//", "file://host/C%7C//"),
    ] {
        assert_eq!(form(written), expected, "{written}");
        assert_eq!(form(expected), expected, "{written}, once more");
    }
}

#[test]
fn plain_urls_are_borrowed_from_the_input() {
    for (url, kept) in [
        ("https://example.org/", 20),
        ("http://h/", 9),
        ("http://h/%2F?a#b", 14),
        ("http://example.org/a/b.html?c=d&e=%2F#f", 37),
        ("http://a_b.example.org:8080/a..b/.c/...", 39),
    ] {
        let mut buffer = Vec::new();
        let canonical = canonical(url.as_bytes(), &Canon::default(), &mut buffer).unwrap();
        assert_eq!((canonical.as_ptr(), canonical.len()), (url.as_ptr(), kept), "{url}");
    }
}

#[test]
fn bytes_that_are_no_text_are_encoded_where_they_may_be() {
    let options = Canon::default();
    assert_eq!(form_of(b"http://h/caf\xe9?\xff", &options), "http://h/caf%E9?%FF");
    assert!(refused(b"http://caf\xe9.example/").contains("UTF-8 in its host"));
}

#[test]
fn what_is_no_url_is_refused_with_the_reason() {
    let long = [&b"http://h/"[..], &[b'a'; MAX_LENGTH]].concat();
    let grows = [&b"http://h/"[..], &[b' '; MAX_LENGTH / 2], b"a"].concat();
    for (url, reason) in [
        (&b""[..], "a URL, got: nothing"),
        (b" \n", "a URL, got: nothing"),
        (b"example.org/a", "an absolute URL"),
        (b"/a/b", "an absolute URL"),
        (b"//h/a", "an absolute URL"),
        (b"localhost:8080/a", "a URL with a host"),
        (b"data:text/plain,a", "a URL with a host"),
        (b"mailto:me@example.org", "a URL with a host"),
        (b"file:///etc/passwd", "a URL with a host"),
        (b"http://", "a URL with a host"),
        (b"http://h:99999/", "whose port"),
        (b"git+ssh://git@h:me/repo", "whose port"),
        (b"http://1.2.3.400/", "IPv4"),
        (b"http://[::g]/", "IPv6"),
        (b"http://a b/", "host is a valid name"),
        (b"http://xn--a/", "host is a valid name"),
        (b"http://h/a\tb", "free of control characters, got: http://h/a\\tb"),
        (b"http://h/#\x1b[1m", "free of control characters, got: http://h/#\\u{1b}[1m"),
        (b"http://h/\0", "free of control characters"),
        ("é".repeat(40).as_bytes(), "éé... and 20 bytes more"),
        (&long, "at most 1 MiB long"),
        (&grows, "at most 1 MiB long"),
    ] {
        let message = refused(url);
        assert!(message.contains(reason), "{message} should tell: {reason}");
        assert!(message.len() < 200, "{message}");
    }
}

#[test]
fn each_option_does_what_its_name_says() {
    let none = Canon::default;
    let sorted = Canon { sort_query: true, ..none() };
    let slash = Canon { trailing_slash: Slash::Drop, ..none() };
    let tracking = Canon { drop_tracking: Names::tracking(), ..none() };
    let sessions = Canon { drop_sessions: true, ..none() };
    let fragment = Canon { keep_fragment: true, ..none() };
    let all = Canon {
        sort_query: true,
        trailing_slash: Slash::Drop,
        drop_tracking: Names::new(["x*"]).unwrap(),
        drop_sessions: true,
        keep_fragment: true,
    };
    for (options, written, expected) in [
        (&sorted, "http://h/?b=2&a=2&a=1&&c&d=%20%2B'/", "http://h/?a=1&a=2&b=2&c=&d=+%2B%27%2F"),
        (&sorted, "http://h/?&", "http://h/"),
        (&slash, "http://h/a/", "http://h/a"),
        (&slash, "http://h/a//?b", "http://h/a?b"),
        (&slash, "http://h//", "http://h/"),
        (&slash, "ftp://h/", "ftp://h/"),
        (&tracking, "http://h/?utm_source=a&b&UTM_x&fbclid=1&c", "http://h/?b&c"),
        (&tracking, "http://h/?gclid=1#f", "http://h/"),
        (&tracking, "http://h/utm_x?a=utm_x&&b", "http://h/utm_x?a=utm_x&&b"),
        (&sessions, "http://h/a;jsessionid=1;b/c;JSESSIONID=2?d", "http://h/a;b/c?d"),
        (&sessions, "http://h/(S(1))/a.aspx?sid=1&PHPSESSID=2", "http://h/a.aspx"),
        (&sessions, "http://h/(S(1))", "http://h/"),
        (&sessions, "http://h/a/..;sid=1/b", "http://h/a/..;sid=1/b"),
        (&sessions, "http://me;sid=1@h/", "http://me%3Bsid%3D1@h/"),
        (&fragment, "http://h/a?b#c d/?", "http://h/a?b#c%20d/?"),
        (&fragment, "http://h/a#", "http://h/a"),
        (&all, "http://h/a/;sid=1/?z&xy=1&a#f", "http://h/a?a=&z=#f"),
    ] {
        assert_eq!(form_of(written.as_bytes(), options), expected, "{written}");
        assert_eq!(form_of(expected.as_bytes(), options), expected, "{written}, once more");
    }
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
    const HOSTS: [&str; 24] = [
        "a",
        "example.org",
        "a-b.c_d.e",
        "h.",
        "h..i",
        ".h",
        "-h-",
        "a--b.c",
        "xn--bcher-kva.de",
        "xn--a",
        "1.2.3.4",
        "1.2",
        "0x7f.1",
        "a.1",
        "a.0x",
        "h.1a",
        "EX.org",
        "h%61",
        "bücher.de",
        "[::1]",
        "",
        "averyveryverylonglabelindeed.example.org",
        "a.b.c.d.e.f.g.h",
        "h ",
    ];
    const AFTER: [&str; 10] =
        [":80", ":443", ":8080", ":", ":0", ":08", ":65536", ":65535", ":8a", "@h"];
    const PARTS: [&str; 40] = [
        "/",
        "/",
        "/",
        "a",
        "b.html",
        ".",
        "..",
        "...",
        "/.",
        "/./",
        "/../",
        "%2e",
        "%2E",
        "%2F",
        "%2f",
        "%41",
        "%",
        "%4",
        "%zz",
        "?",
        "?",
        "#",
        "&",
        "=",
        "+",
        "'",
        "~",
        "!",
        "$",
        "*",
        "(",
        ")",
        ";",
        ":",
        "@",
        ",",
        "[",
        "|",
        "é",
        "a-much-longer-part-of-a-path",
    ];
    let mut url = ["http://", "https://", "http://", "https://", "HTTP://", "ftp://", "git://"]
        [dice.below(7)]
    .to_owned();
    url += HOSTS[if dice.below(2) == 0 { dice.below(3) } else { dice.below(HOSTS.len()) }];
    if dice.below(4) == 0 {
        url += AFTER[dice.below(AFTER.len())];
    }
    if dice.below(8) > 0 {
        url.push('/');
    }
    for _ in 0..dice.below(8) {
        url += PARTS[dice.below(PARTS.len())];
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
        assert_eq!(form(&shown), String::from_utf8_lossy(&slow), "{shown}");
        for options in &options {
            let once = form_of(&url, options);
            assert_eq!(form_of(once.as_bytes(), options), once, "{shown}");
        }
    }
    assert!(plains > 5_000 && refusals > 5_000, "{plains} plain, {refusals} refused");
}
