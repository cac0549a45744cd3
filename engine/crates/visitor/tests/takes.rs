//! Values taken from answers.

use redline_visitor::{Jar, Take};

const HEAD: &[u8] = b"HTTP/1.1 302 x-other: no\r\nLocation:  /next?id=1 \r\nX-CSRF:\r\nx-csrf: second\r\n\r\n";

fn taken(take: &Take, body: &[u8]) -> Option<String> {
    let mut jar = Jar::new();
    jar.set(b"sid=abc", b"/", &redline_visitor::Site::new("shop.example", false), 0);
    let mut value = b"before".to_vec();
    let has = take.take(HEAD, body, &jar, 0, &mut value);
    has.then(|| String::from_utf8(value).unwrap())
}

#[test]
fn values_are_taken_from_wherever_they_stand() {
    let body = br#"{"token": "a\"\u00e9", "n": [1.50, null], "plain": "x"}"#;
    let json = |pointer| taken(&Take::json(pointer).unwrap(), body);
    assert_eq!(json("/token").unwrap(), "a\"é");
    assert_eq!(json("/plain").unwrap(), "x");
    assert_eq!(json("/n/0").unwrap(), "1.50");
    assert_eq!(json("/n/1").unwrap(), "null");
    assert_eq!(json("/other"), None);
    assert_eq!(taken(&Take::json("").unwrap(), b"not JSON"), None);
    assert_eq!(taken(&Take::header("LOCATION"), b"").unwrap(), "/next?id=1");
    assert_eq!(taken(&Take::header("x-csrf"), b"").unwrap(), "");
    assert_eq!(taken(&Take::header("x-other"), b""), None);
    assert_eq!(taken(&Take::cookie("sid"), b"").unwrap(), "abc");
    assert_eq!(taken(&Take::cookie("SID"), b""), None);
    let regex = |expression| taken(&Take::regex(expression).unwrap(), b"<i name=\"t\" value=\"v1\"> t=2");
    assert_eq!(regex("name=\"t\" value=\"([^\"]+)\"").unwrap(), "v1");
    assert_eq!(regex(r"t=\d").unwrap(), "t=2");
    assert_eq!(regex("(no)|t=").as_deref(), None, "the group has no part in the match");
    assert_eq!(regex("nothing"), None);
}

#[test]
fn wrong_places_are_named() {
    assert_eq!(Take::json("token").unwrap_err().to_string(), "\"token\" is not a JSON Pointer");
    assert_eq!(Take::regex("a(").unwrap_err().to_string(), "unclosed group");
}
