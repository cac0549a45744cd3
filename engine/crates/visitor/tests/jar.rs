//! Cookies, by the examples and rules of RFC 6265.

use proptest::prelude::*;
use redline_visitor::Jar;

const NOW: i64 = 1_000_000;

/// The cookies of a jar after these `Set-Cookie`, each with the target of its request.
fn jar(set: &[(&str, &str)]) -> Jar {
    let mut jar = Jar::new();
    for (text, target) in set {
        jar.set(text.as_bytes(), target.as_bytes(), false, NOW);
    }
    jar
}

fn sent(jar: &mut Jar, target: &str) -> String {
    String::from_utf8(jar.header(target.as_bytes(), false, NOW).to_vec()).unwrap()
}

#[test]
fn cookies_are_sent_back_in_order() {
    let mut jar =
        jar(&[("SID=31d4", "/"), ("lang = en-US ; Path=/; HttpOnly", "/a"), ("SID=96; Path=/", "/login?x=/y")]);
    assert_eq!(sent(&mut jar, "/"), "SID=96; lang=en-US");
    jar.set(b"lang=; Max-Age=0", b"/", false, NOW);
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
    let later = String::from_utf8(jar.header(b"/", false, NOW + 10).to_vec()).unwrap();
    assert_eq!(later, "c=3; d=4; e=5");
}

#[test]
fn secure_cookies_need_tls() {
    let mut jar = Jar::new();
    jar.set(b"a=1; secure", b"/", false, NOW);
    jar.set(b"__Host-b=1; Path=/", b"/", true, NOW);
    assert_eq!(jar.header(b"/", true, NOW), b"");
    jar.set(b"a=1; SECURE", b"/", true, NOW);
    assert_eq!(jar.header(b"/", false, NOW), b"");
    assert_eq!(jar.header(b"/", true, NOW), b"a=1");
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
        jar.set(format!("c{i}=1").as_bytes(), b"/", false, NOW);
    }
    assert_eq!(sent(&mut jar, "/").matches('=').count(), 50);
}

proptest! {
    /// Whatever servers send, what is sent back is a header value, and of its name the last cookie counts.
    #[test]
    fn what_is_sent_back_can_be_sent(texts in prop::collection::vec(any::<Vec<u8>>(), 0..20), value in "[a-z0-9]{0,8}") {
        let mut jar = Jar::new();
        for text in &texts {
            jar.set(text, b"/a/b", true, NOW);
        }
        jar.set(format!("last={value}; Path=/").as_bytes(), b"/a/b", true, NOW);
        let header = jar.header(b"/a/b", true, NOW).to_vec();
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
        other.set(b"z=1; Path=/never", b"/", false, NOW);
        for (turn, (text, target, tls, later_s)) in sets.into_iter().enumerate() {
            now_s += later_s;
            let target = ["/", "/x/1", "/x/y/2?z"][target].as_bytes();
            jar.set(TEXTS[text].as_bytes(), target, tls, now_s);
            other.set(format!("{}; turn={turn}", TEXTS[text]).as_bytes(), target, tls, now_s);
            for target in [&b"/"[..], b"/x/1", b"/x/y/2"] {
                for (tls, now_s) in [(false, now_s), (true, now_s + 4), (true, now_s + 9)] {
                    prop_assert_eq!(jar.header(target, tls, now_s), other.header(target, tls, now_s));
                }
            }
        }
    }
}
