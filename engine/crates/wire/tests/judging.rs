//! Whether an answer is right, and the time that it states.

use proptest::prelude::*;
use redline_wire::{
    Answer, EventKind, Expect, Field, KeptBody, MessageCounts, Pointer, ReadOptions, Stands, StreamExpect, Timestamp,
    Unit, Verdict,
};
use serde_json::{Value, json};

const ANSWER: Answer = Answer {
    status: 200,
    grpc_status: None,
    body_length: 5,
    body_sha256: Some([1; 32]),
    events: None,
    keep_alive: true,
};

fn pointer(text: &str) -> Pointer {
    Pointer::parse(text).unwrap()
}

fn right() -> Expect {
    Expect {
        status: 200,
        also: Vec::new(),
        body_length: Some(5),
        body_sha256: Some([1; 32]),
        json: Vec::new(),
        no_errors: false,
        watch_errors: false,
        stream: None,
    }
}

#[test]
fn status_length_and_hash_are_compared() {
    assert_eq!(right().judge(&ANSWER, b""), Verdict::Right);
    assert_eq!(Expect { status: 200, ..Expect::default() }.judge(&ANSWER, b""), Verdict::Right);
    assert_eq!(Expect { status: 201, body_length: Some(4), ..right() }.judge(&ANSWER, b""), Verdict::WrongStatus);
    assert_eq!(Expect { body_length: Some(4), ..right() }.judge(&ANSWER, b""), Verdict::WrongBody);
    let several = Expect { status: 304, also: vec![201, 200], ..right() };
    assert_eq!(several.judge(&ANSWER, b""), Verdict::Right);
    let none = Expect { also: vec![201], status: 304, ..right() };
    assert_eq!(none.judge(&ANSWER, b""), Verdict::WrongStatus);
    assert_eq!(none.difference(&ANSWER, b"").unwrap(), "status 200 in place of 304 or 201");
    assert_eq!(Expect { body_sha256: Some([2; 32]), ..right() }.judge(&ANSWER, b""), Verdict::WrongBody);
    assert_eq!(right().judge(&Answer { grpc_status: Some(0), ..ANSWER }, b""), Verdict::Right);
    assert_eq!(right().judge(&Answer { grpc_status: Some(13), ..ANSWER }, b""), Verdict::WrongStatus);
    assert_eq!(right().judge(&Answer { body_sha256: None, ..ANSWER }, b""), Verdict::WrongBody);
}

#[test]
fn only_what_is_needed_is_requested() {
    let plain = Expect { status: 200, ..Expect::default() };
    assert_eq!(plain.read_options(true), ReadOptions { head: true, ..ReadOptions::default() });
    let json = vec![Field { pointer: pointer(""), stands: Stands::Equal(json!(1)) }];
    assert_eq!(
        Expect { json, ..right() }.read_options(false),
        ReadOptions { hash: true, keep: KeptBody::Whole, ..ReadOptions::default() }
    );
}

fn is_in(at: &str, equals: Value, body: &str) -> bool {
    stands(at, Stands::Equal(equals), body)
}

fn stands(at: &str, stands: Stands, body: &str) -> bool {
    let expect = Expect { status: 200, json: vec![Field { pointer: pointer(at), stands }], ..Expect::default() };
    let is_right = expect.judge(&ANSWER, body.as_bytes()) == Verdict::Right;
    assert_eq!(expect.difference(&ANSWER, body.as_bytes()).is_none(), is_right, "{at} {body}");
    is_right
}

#[test]
fn what_stands_there_or_not_is_told_apart() {
    for (value, [present, absent, empty]) in [
        ("{}", [false, true, true]),
        (r#"{"e": null}"#, [true, false, true]),
        (r#"{"e": [ ]}"#, [true, false, true]),
        (r#"{"e": {}}"#, [true, false, true]),
        (r#"{"e": ""}"#, [true, false, true]),
        (r#"{"e": 0}"#, [true, false, false]),
        (r#"{"e": false}"#, [true, false, false]),
        (r#"{"e": [{}]}"#, [true, false, false]),
        (r#"{"e": "absent"}"#, [true, false, false]),
        ("[]", [false, true, true]),
        ("e", [false, false, false]),
        ("", [false, false, false]),
    ] {
        for (what, right) in [(Stands::Present, present), (Stands::Absent, absent), (Stands::Empty, empty)] {
            assert_eq!(stands("/e", what.clone(), value), right, "{what:?} {value}");
        }
    }
}

#[test]
fn errors_at_the_top_are_seen() {
    let expect = Expect { status: 200, no_errors: true, ..Expect::default() };
    assert_eq!(expect.read_options(false), ReadOptions { keep: KeptBody::Beginning, ..ReadOptions::default() });
    for (body, is_right) in [
        (r#"{"data": {"a": 1}}"#, true),
        (r#"{"errors": [{"message": "no"}], "data": null}"#, false),
        (r#" [{"data": 1}, {"errors": [1]}]"#, false),
        (r#"[{"data": 1}, {"data": {"errors": [1]}}]"#, true),
        (r#"{"data": {"errors": [1]}}"#, true),
        (r#"{"errors": []}"#, true),
        (r#"{"errors": null, "data": 1}"#, true),
        (r#"{"data": "\"errors\""}"#, true),
        (r#"{"errors": [1]"#, true),
        (r#"["errors"]"#, true),
        (r#""errors""#, true),
        ("<h1>\"errors\"</h1>", true),
        ("", true),
    ] {
        let wrong = if is_right { Verdict::Right } else { Verdict::WrongBody };
        assert_eq!(expect.judge(&ANSWER, body.as_bytes()), wrong, "{body}");
        assert_eq!(expect.difference(&ANSWER, body.as_bytes()).is_none(), is_right, "{body}");
    }
    let said = expect.difference(&ANSWER, br#"{"errors": [{"message": "no"}]}"#);
    assert_eq!(said.unwrap(), r#"`errors` in the body: [{"message": "no"}]"#);
}

#[test]
fn values_are_found_by_pointer() {
    let body = r#" {"total": 3.0, "a/b": [null, {"~m": "x", "": true}], "esc\u0061ped": 1, "twice": 1, "twice": 2} "#;
    for (at, equals) in [
        ("/total", json!(3)),
        ("/a~1b/0", json!(null)),
        ("/a~1b/1/~0m", json!("x")),
        ("/a~1b/1/", json!(true)),
        ("/a~1b", json!([null, {"": true, "~m": "x"}])),
        ("/escaped", json!(1)),
        ("/twice", json!(2)),
    ] {
        assert!(is_in(at, equals.clone(), body), "{at}");
        assert!(!is_in(at, json!("another"), body), "{at}");
    }
    for at in ["/other", "/total/0", "/a~1b/2", "/a~1b/00", "/a~1b/-", "/a~1b/+1", "/a~1b/01", "/a~1b/1/~0m/x"] {
        assert!(!is_in(at, json!(null), body), "{at}");
    }
    for text in ["a", "/~2", "/a~"] {
        assert_eq!(Pointer::parse(text), None);
    }
}

#[test]
fn numbers_are_equal_when_their_values_are() {
    for (a, b, equal) in [
        ("3", "3.0", true),
        ("3", "3e0", true),
        ("0", "-0.0", true),
        ("0.1", "0.10", true),
        ("-1", "1", false),
        ("9007199254740993", "9007199254740992.0", false),
        ("18446744073709551615", "18446744073709551614", false),
        ("1e300", "10e299", true),
        ("1", "\"1\"", false),
    ] {
        assert_eq!(is_in("", serde_json::from_str(a).unwrap(), b), equal, "{a} {b}");
    }
}

#[test]
fn what_is_not_json_has_no_values() {
    for body in ["", "{\"a\":1", "{\"a\":1}}", "{\"a\":1,}", "[1", "\u{feff}{\"a\":1}"] {
        assert!(!is_in("/a", json!(1), body), "{body}");
    }
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(!is_in("/0", json!(1), &deep));
}

fn read(at: Option<&str>, unit: Unit, body: &str) -> Option<u64> {
    Timestamp { pointer: at.map(pointer), unit }.read(body.as_bytes())
}

#[test]
fn times_are_read_to_the_nanosecond() {
    for (unit, body, ns) in [
        (Unit::Ns, "1790000000123456789", Some(1_790_000_000_123_456_789)),
        (Unit::S, " 1790000000.123456789\r\n", Some(1_790_000_000_123_456_789)),
        (Unit::S, "1790000000.1234567899", Some(1_790_000_000_123_456_789)),
        (Unit::Ms, "\"1790000000123\"", Some(1_790_000_000_123_000_000)),
        (Unit::Us, "1790000000123456.5", Some(1_790_000_000_123_456_500)),
        (Unit::S, "1.79E+9", Some(1_790_000_000_000_000_000)),
        (Unit::S, "17900000001e-1", Some(1_790_000_000_100_000_000)),
        (Unit::Ns, "0.9", Some(0)),
        (Unit::S, "0e999999999", Some(0)),
        (Unit::S, "1e-999999999", Some(0)),
        (Unit::Ns, "18446744073709551615", Some(u64::MAX)),
        (Unit::Ns, "18446744073709551616", None),
        (Unit::S, "1790000000123456789", None),
        (Unit::S, "1e2147483647", None),
        (Unit::S, "-1", None),
        (Unit::S, "+1", None),
        (Unit::S, "1.", None),
        (Unit::S, ".5", None),
        (Unit::S, "1e", None),
        (Unit::S, "1 2", None),
        (Unit::S, "", None),
        (Unit::S, "\"", None),
        (Unit::S, "now", None),
    ] {
        assert_eq!(read(None, unit, body), ns, "{body} {unit:?}");
    }
}

#[test]
fn times_are_found_by_pointer() {
    let body = r#"{"a": {"t": 1790000000123.456789, "s": " 5 ", "n": null}, "t": [1]}"#;
    assert_eq!(read(Some("/a/t"), Unit::Ms, body), Some(1_790_000_000_123_456_789));
    assert_eq!(read(Some("/a/s"), Unit::Ns, body), Some(5));
    for at in ["", "/a/n", "/t", "/t/1", "/other"] {
        assert_eq!(read(Some(at), Unit::Ms, body), None, "{at}");
    }
}

proptest! {
    #[test]
    fn every_time_is_read_as_it_was_written(ns: u64, places in 0_usize..10) {
        let unit = [Unit::Ns, Unit::Us, Unit::Ms, Unit::S][places / 3];
        let digits = [0, 3, 6, 9][places / 3];
        let scale = 10_u64.pow(digits);
        let width = digits as usize;
        let text = if width == 0 { ns.to_string() } else { format!("{}.{:0width$}", ns / scale, ns % scale) };
        prop_assert_eq!(read(None, unit, &text), Some(ns));
        let json = format!("{{\"x\":[{text}]}}");
        prop_assert_eq!(read(Some("/x/0"), unit, &json), Some(ns));
    }

    #[test]
    fn arbitrary_bodies_never_panic(body in prop::collection::vec(any::<u8>(), 0..100), text in "[-0-9.eE\" {}\\[\\],:a]{0,40}") {
        for bytes in [body.as_slice(), text.as_bytes()] {
            for at in [None, Some(""), Some("/a"), Some("/0")] {
                let at = at.map(pointer);
                let _ = Timestamp { pointer: at.clone(), unit: Unit::S }.read(bytes);
                if let Some(pointer) = at {
                    let json = vec![Field { pointer, stands: Stands::Equal(json!(1)) }];
                    let _ = Expect { status: 200, json, ..Expect::default() }.judge(&ANSWER, bytes);
                }
            }
        }
    }
}

fn counted(counted: u64) -> MessageCounts {
    MessageCounts { counted, ..MessageCounts::default() }
}

#[test]
fn a_stream_has_its_kind_and_at_least_so_many_events() {
    let stream = Some(StreamExpect { kind: EventKind::Sse, messages: None, events: 3 });
    let expect = Expect { status: 200, stream, ..Expect::default() };
    assert_eq!(expect.read_options(false), ReadOptions { events: Some(EventKind::Sse), ..ReadOptions::default() });
    assert_eq!(expect.judge(&Answer { events: Some(counted(3)), ..ANSWER }, b""), Verdict::Right);
    for (events, words) in [(Some(counted(2)), "after 2 of 3 events"), (None, "not text/event-stream")] {
        let answer = Answer { events, ..ANSWER };
        assert_eq!(expect.judge(&answer, b""), Verdict::WrongBody);
        let difference = expect.difference(&answer, b"").unwrap();
        assert!(difference.contains(words), "{difference}");
    }
}

#[test]
fn errors_are_found_in_right_answers_where_they_are_looked_for() {
    let expect = Expect { status: 200, watch_errors: true, ..Expect::default() };
    let body = br#"{"data": 1, "errors": ["no"]}"#;
    assert_eq!(
        (expect.judge(&ANSWER, body), expect.watched_errors(body).as_deref()),
        (Verdict::Right, Some(r#"["no"]"#))
    );
    for body in [&br#"{"errors": []}"#[..], br#"{"errors": null}"#, br#"{"a": {"errors": [1]}}"#, b"\"errors\"", b""] {
        assert_eq!(expect.watched_errors(body), None);
    }
    assert_eq!(Expect { status: 200, ..Expect::default() }.watched_errors(body), None);
    assert_eq!(expect.read_options(false).keep, KeptBody::Beginning);
}
