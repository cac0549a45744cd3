//! Cookies, by the examples and rules of RFC 6265.

use proptest::prelude::*;
use redline_visitor::{Jar, Site};

const NOW: i64 = 1_000_000;

/// A shop far away, over TLS or not.
fn shop(tls: bool) -> Site {
    Site::new("www.shop.example", tls)
}

/// The cookies of a jar after these `Set-Cookie`, each with the target of its request.
fn jar(set: &[(&str, &str)]) -> Jar {
    let mut jar = Jar::new();
    for (text, target) in set {
        jar.set(text.as_bytes(), target.as_bytes(), &shop(false), NOW);
    }
    jar
}

fn sent(jar: &mut Jar, target: &str) -> String {
    String::from_utf8(jar.header(target.as_bytes(), &shop(false), NOW).to_vec()).unwrap()
}

#[test]
fn cookies_are_sent_back_in_order() {
    let mut jar =
        jar(&[("SID=31d4", "/"), ("lang = en-US ; Path=/; HttpOnly", "/a"), ("SID=96; Path=/", "/login?x=/y")]);
    assert_eq!(sent(&mut jar, "/"), "SID=96; lang=en-US");
    jar.set(b"lang=; Max-Age=0", b"/", &shop(false), NOW);
    assert_eq!(sent(&mut jar, "/"), "SID=96");
    assert_eq!(jar.value(b"SID", NOW), Some(&b"96"[..]));
    jar.clear();
    assert!(sent(&mut jar, "/").is_empty());
}

#[test]
fn paths_match_by_whole_segments() {
    let mut jar =
        jar(&[("a=1; Path=/docs", "/"), ("b=2", "/docs/web/index"), ("c=3; Path=docs", "/x/y"), ("d=4", "nopath")]);
    assert_eq!(sent(&mut jar, "/docs"), "a=1; d=4");
    assert_eq!(sent(&mut jar, "/docs/web?q"), "b=2; a=1; d=4");
    assert_eq!(sent(&mut jar, "/docsets"), "d=4");
    assert_eq!(sent(&mut jar, "/x/"), "c=3; d=4");
}

#[test]
fn cookies_expire() {
    let mut jar = jar(&[
        ("a=1; Max-Age=10; Expires=Thu, 01 Jan 1970 00:00:00 GMT", "/"),
        ("b=2; Expires=Thu, 01 Jan 1970 00:00:00 GMT", "/"),
        ("c=3; Expires=Wed, 21 Oct 2035 07:28:00 GMT", "/"),
        ("d=4; Max-Age=x; Expires=never", "/"),
        ("e=5; Max-Age=99999999999999999999", "/"),
        ("f=6; Max-Age=-1", "/"),
    ]);
    assert_eq!(sent(&mut jar, "/"), "a=1; c=3; d=4; e=5");
    let later = String::from_utf8(jar.header(b"/", &shop(false), NOW + 10).to_vec()).unwrap();
    assert_eq!(later, "c=3; d=4; e=5");
}

#[test]
fn secure_cookies_need_tls() {
    let mut jar = Jar::new();
    jar.set(b"a=1; secure", b"/", &shop(false), NOW);
    jar.set(b"__Host-b=1; Path=/", b"/", &shop(true), NOW);
    assert_eq!(jar.header(b"/", &shop(true), NOW), b"");
    jar.set(b"a=1; SECURE", b"/", &shop(true), NOW);
    assert_eq!(jar.header(b"/", &shop(false), NOW), b"");
    assert_eq!(jar.header(b"/", &shop(true), NOW), b"a=1");
}

#[test]
fn what_is_no_cookie_is_ignored() {
    let long = format!("a={}", "x".repeat(5000));
    let mut jar = jar(&[
        ("", "/"),
        (" ; Path=/", "/"),
        ("=", "/"),
        ("a=b\r\nX: 1", "/"),
        (&long, "/"),
        ("=v", "/"),
        ("only", "/p"),
    ]);
    assert_eq!(sent(&mut jar, "/"), "only");
}

#[test]
fn a_jar_is_bounded() {
    let mut jar = Jar::new();
    for i in 0..1000 {
        jar.set(format!("c{i}=1").as_bytes(), b"/", &shop(false), NOW);
    }
    assert_eq!(sent(&mut jar, "/").matches('=').count(), 50);
}

proptest! {
    /// Whatever servers send, what is sent back is a header value, and of its name the last cookie counts.
    #[test]
    fn what_is_sent_back_can_be_sent(texts in prop::collection::vec(any::<Vec<u8>>(), 0..20), value in "[a-z0-9]{0,8}") {
        let mut jar = Jar::new();
        for text in &texts {
            jar.set(text, b"/a/b", &shop(true), NOW);
        }
        jar.set(format!("last={value}; Path=/").as_bytes(), b"/a/b", &shop(true), NOW);
        let header = jar.header(b"/a/b", &shop(true), NOW).to_vec();
        prop_assert!(header.iter().all(|byte| *byte == b'\t' || !byte.is_ascii_control()));
        prop_assert_eq!(jar.value(b"last", NOW), Some(value.as_bytes()));
    }
}

proptest! {
    /// A cookie that is set by the same text again is what it is when another attribute, which means nothing, makes the text new.
    /// Nor does it matter whether another cookie, which is not sent, makes the header vary.
    #[test]
    fn the_same_text_sets_the_same_cookie(
        sets in prop::collection::vec((0_usize..8, 0_usize..3, any::<bool>(), 0_i64..30), 0..40),
    ) {
        const TEXTS: [&str; 8] = [
            "a=1", "a=2", "a=1; Path=/x", "b=1; Secure", "b=1; Max-Age=10", "b=1; Max-Age=0",
            "c=1; Expires=Mon, 12 Jan 1970 13:46:50 GMT", "c=1; Max-Age=5; Path=y",
        ];
        let (mut jar, mut other, mut now_s) = (Jar::new(), Jar::new(), NOW);
        other.set(b"z=1; Path=/never", b"/", &shop(false), NOW);
        for (turn, (text, target, tls, later_s)) in sets.into_iter().enumerate() {
            now_s += later_s;
            let target = ["/", "/x/1", "/x/y/2?z"][target].as_bytes();
            jar.set(TEXTS[text].as_bytes(), target, &shop(tls), now_s);
            other.set(format!("{}; turn={turn}", TEXTS[text]).as_bytes(), target, &shop(tls), now_s);
            for target in [&b"/"[..], b"/x/1", b"/x/y/2"] {
                for (tls, now_s) in [(false, now_s), (true, now_s + 4), (true, now_s + 9)] {
                    prop_assert_eq!(jar.header(target, &shop(tls), now_s), other.header(target, &shop(tls), now_s));
                }
            }
        }
    }
}

/// What is kept of a cookie of a host, or why it is dropped.
fn kept(host: &str, tls: bool, text: &str) -> Result<String, String> {
    let (mut jar, site) = (Jar::new(), Site::new(host, tls));
    let dropped = jar.set(text.as_bytes(), b"/a/b", &site, NOW);
    let header = String::from_utf8(jar.header(b"/a/b", &site, NOW).to_vec()).unwrap();
    match dropped {
        None => Ok(header),
        Some(dropped) => {
            assert_eq!(header, "");
            Err(dropped.of_step(1))
        }
    }
}

#[test]
fn a_cookie_of_another_host_is_dropped_by_name() {
    for (host, domain) in [
        ("shop.example", "shop.example"),
        ("www.shop.example", "shop.example"),
        ("www.shop.example", ".Shop.Example"),
        ("www.shop.example", ""),
        ("a.b.co.uk", "b.co.uk"),
        ("localhost", "localhost"),
        ("github.io", "github.io"), // a public suffix itself: of this host alone
        ("127.0.0.1", "127.0.0.1"),
        ("[::1]", "::1"),
    ] {
        assert_eq!(kept(host, true, &format!("sid=1; Domain={domain}")), Ok("sid=1".to_owned()), "{host} {domain}");
    }
    for (host, domain, why) in [
        ("shop.example", "id.example", "its Domain is id.example, and the host is shop.example"),
        ("shop.example", "www.shop.example", "its Domain is www.shop.example, and the host is shop.example"),
        ("myshop.example", "shop.example", "its Domain is shop.example, and the host is myshop.example"),
        ("shop.example", "shop.example.", "its Domain is shop.example., and the host is shop.example"),
        ("127.0.0.1", "0.0.1", "its Domain is 0.0.1, and the host is 127.0.0.1"),
        ("127.0.0.1", "shop.example", "its Domain is shop.example, and the host is 127.0.0.1"),
        ("shop.co.uk", "co.uk", "its Domain co.uk is a public suffix, under which others have sites"),
        ("me.github.io", "GitHub.io", "its Domain github.io is a public suffix, under which others have sites"),
        ("shop.test", "test", "its Domain test is a public suffix, under which others have sites"),
        ("shop.example", "shop.example; Domain=com", "its Domain is com, and the host is shop.example"),
    ] {
        let dropped = format!("the cookie `sid` of step 1 was dropped, as browsers do: {why}");
        assert_eq!(kept(host, true, &format!("sid=1; Domain={domain}")), Err(dropped), "{host} {domain}");
    }
}

#[test]
fn secure_cookies_are_sent_to_this_machine_without_tls() {
    for host in ["127.0.0.1", "127.8.0.1", "[::1]", "localhost", "LOCALHOST", "shop.localhost", "localhost."] {
        assert_eq!(kept(host, false, "sid=1; Secure"), Ok("sid=1".to_owned()), "{host}");
    }
    for host in ["10.0.0.1", "[::2]", "shop.example", "mylocalhost", "localhost.example"] {
        let why = kept(host, false, "sid=1; Secure").unwrap_err();
        assert!(why.contains("`sid` of step 1 was dropped") && why.contains("it is Secure"), "{host}: {why}");
        assert_eq!(kept(host, true, "sid=1; Secure"), Ok("sid=1".to_owned()));
    }
}

#[test]
fn names_with_a_prefix_keep_its_promise() {
    for text in ["__Secure-a=1; Secure", "__Host-a=1; Secure; Path=/", "__host-a=1; path=/; SECURE", "__Hos=1"] {
        assert!(kept("shop.example", true, text).is_ok_and(|sent| !sent.is_empty()), "{text}");
    }
    for text in [
        "__Secure-a=1",
        "__SECURE-a=1",
        "__Host-a=1; Path=/",
        "__Host-a=1; Secure",
        "__Host-a=1; Secure; Path=/a",
        "__Host-a=1; Secure; Path=/; Domain=shop.example",
        "=__Host-a=1; Secure; Path=/",
        "=__Secure-a=1; Secure",
    ] {
        assert!(kept("shop.example", true, text).is_err_and(|why| why.contains("needs Secure")), "{text}");
    }
}

#[test]
fn the_size_of_a_cookie_is_that_of_its_name_and_value() {
    let value = "x".repeat(4093);
    assert_eq!(kept("h.example", true, &format!("sid={value}; Path=/; HttpOnly")), Ok(format!("sid={value}")));
    let why = kept("h.example", true, &format!("sid={value}y")).unwrap_err();
    assert!(why.contains("more than 4,096 bytes"), "{why}");
    // An attribute that is too long does not count.
    let text = format!("sid=1; Path=/{}", "y".repeat(1024));
    assert_eq!(kept("h.example", true, &text), Ok("sid=1".to_owned()));
}

#[test]
fn cookies_of_a_host_and_of_its_domain_are_two() {
    let (mut jar, site) = (Jar::new(), shop(true));
    for text in ["a=1; Path=/", "a=2; Path=/; Domain=shop.example", "a=3; Path=/; Domain=www.shop.example"] {
        jar.set(text.as_bytes(), b"/", &site, NOW);
    }
    assert_eq!(jar.header(b"/", &site, NOW), b"a=1; a=2; a=3");
}

#[test]
fn what_has_expired_when_it_comes_is_dropped_and_what_is_deleted_is_not() {
    for text in ["sid=1; Max-Age=0", "sid=1; Max-Age=-5", "sid=1; Expires=Thu, 01 Jan 1970 00:00:00 GMT"] {
        let why = kept("h.example", true, text).unwrap_err();
        assert!(why.ends_with("it had expired when it came"), "{text}: {why}");
    }
    assert_eq!(kept("h.example", true, "sid=; Max-Age=0"), Ok(String::new()));
    let (mut jar, site) = (Jar::new(), shop(true));
    assert_eq!(jar.set(b"sid=1", b"/", &site, NOW), None);
    assert_eq!(jar.set(b"sid=deleted; Max-Age=0", b"/", &site, NOW), None);
    assert_eq!(jar.header(b"/", &site, NOW), b"");
}

#[test]
fn what_is_kept_and_not_sent_has_its_reason() {
    let unsent = |jar: &Jar, target: &str, tls: bool, now_s| -> Vec<String> {
        jar.unsent(target.as_bytes(), &shop(tls), now_s).map(|unsent| unsent.to_string()).collect()
    };
    let mut jar = Jar::new();
    for text in ["sid=1", "s=1; Secure; Path=/", "old=1; Max-Age=5; Path=/", "both=1; Path=/x", "both=1; Path=/"] {
        assert_eq!(jar.set(text.as_bytes(), b"/auth/login", &shop(true), NOW), None);
    }
    assert_eq!(unsent(&jar, "/auth/me?x", true, NOW), Vec::<String>::new());
    let not_sent = |name: &str, why: &str| format!("the cookie `{name}` was not sent, as browsers do: {why}");
    let elsewhere = not_sent("sid", "its path is /auth");
    assert_eq!(unsent(&jar, "/profile", true, NOW), [elsewhere.as_str()]);
    let (expired, secure) = (not_sent("old", "it has expired"), unsent(&jar, "/auth/", false, NOW));
    assert_eq!(unsent(&jar, "/profile", true, NOW + 5), [elsewhere, expired]);
    assert!(
        matches!(&secure[..], [only] if only.contains("`s` was not sent, as browsers do: it is Secure")),
        "{secure:?}"
    );
}
