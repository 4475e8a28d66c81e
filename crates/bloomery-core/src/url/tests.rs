//! The laws of the canonical form.

use super::*;

fn form(url: &str) -> String {
    form_of(url.as_bytes(), &Canon::default())
}

fn form_of(url: &[u8], options: &Canon) -> String {
    let mut buffer = Vec::new();
    let canonical = canonical(url, options, &mut buffer).unwrap();
    String::from_utf8(canonical.to_vec()).unwrap()
}

fn refused(url: &[u8]) -> String {
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
    ] {
        assert_eq!(form(written), expected, "{written}");
        assert_eq!(form(expected), expected, "{written}, once more");
    }
}

#[test]
fn plain_urls_are_borrowed_from_the_input() {
    for (url, kept) in [
        ("https://example.org/", 20),
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
        (&long, "at most 1 MiB long"),
        (&grows, "at most 1 MiB long"),
    ] {
        let message = refused(url);
        assert!(message.contains(reason), "{message} should tell: {reason}");
        assert!(message.len() < 200, "{message}");
    }
}
