//! Raw frames with the verdict of RFC 9113, cut into pieces in many ways: the cuts change nothing.

mod peer;

use std::fmt::Write;

use peer::{GOAWAY, RST_STREAM, answer, met, open, plain, written};
use redline_http2::{BodyOptions, Event};

const VECTORS: &str = include_str!("vectors/answers.txt");
const PROTOCOL_ERROR: u32 = 1;

struct Vector {
    line: usize,
    verdict: &'static str,
    bytes: Vec<u8>,
}

fn vectors() -> Vec<Vector> {
    let mut vectors: Vec<Vector> = Vec::new();
    for (text, line) in VECTORS.lines().zip(1..) {
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        match (text.split_once(" | "), vectors.last_mut()) {
            (Some((_, verdict)), _) if !text.contains('"') => {
                vectors.push(Vector { line, verdict, bytes: Vec::new() });
            }
            (_, Some(vector)) => vector.bytes.extend(bytes(text)),
            _ => panic!("line {line}: section | verdict"),
        }
    }
    vectors
}

/// The bytes of hexadecimal digits and quoted text.
fn bytes(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.chars().filter(|char| *char != '\n').peekable();
    let hex = |digits: [Option<char>; 2]| {
        let digits: String = digits.into_iter().map(|digit| digit.expect("two digits")).collect();
        u8::from_str_radix(&digits, 16).expect("hexadecimal digits")
    };
    while let Some(char) = rest.next() {
        match char {
            ' ' => {}
            '"' => loop {
                bytes.push(match rest.next().expect("a closing quote") {
                    '"' => break,
                    '\\' => match rest.next().expect("an escaped character") {
                        'r' => b'\r',
                        'n' => b'\n',
                        't' => b'\t',
                        'x' => hex([rest.next(), rest.next()]),
                        other => other as u8,
                    },
                    char => char as u8,
                });
            },
            digit => bytes.push(hex([Some(digit), rest.next()])),
        }
    }
    bytes
}

/// The session's verdict on these pieces, and whether it behaved accordingly.
fn verdict<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut session = met(&[]);
    open(&mut session, 2, BodyOptions::default());
    written(&mut session);
    let mut events = Vec::new();
    if pieces.into_iter().any(|piece| session.feed(piece, &mut events).is_err()) {
        // The error is final, and GOAWAY reports it to the peer.
        assert!(session.is_finished() && session.feed(b"", &mut events).is_err());
        let sent = written(&mut session);
        let last = sent.last().expect("GOAWAY is sent");
        assert_eq!(last.kind, GOAWAY, "{sent:?}");
        return format!("connection {}", u32::from_be_bytes(last.payload[4..8].try_into().expect("a code")));
    }
    // Whether a head is seen before the end depends on the cuts.
    events.retain(|event| !matches!(event, Event::Begun { .. }));
    let mut verdict = match &events[..] {
        [] => "none".to_owned(),
        [Event::Answer { token: 0, status, body_length, .. }] => format!("{status} {body_length}"),
        [Event::Malformed { token: 0, .. }] => "malformed".to_owned(),
        [Event::Refused { token: 0, code }] => format!("refused {code}"),
        [Event::Unprocessed { token: 0 }] => "unprocessed".to_owned(),
        other => panic!("{other:?}"),
    };
    let resets = written(&mut session).into_iter().filter(|sent| sent.kind == RST_STREAM && sent.stream == 1);
    let codes: Vec<u32> = resets.map(|sent| u32::from_be_bytes(sent.payload.try_into().expect("a code"))).collect();
    let expected: &[u32] = if verdict == "malformed" { &[PROTOCOL_ERROR] } else { &[] };
    if codes != expected {
        write!(verdict, ", reset with {codes:?}").expect("a string takes all");
    }
    events.clear();
    session.feed(&answer(3, b"ok"), &mut events).expect("the connection stays open");
    assert_eq!(events, [plain(1, 200, 2)]);
    verdict
}

#[test]
fn each_vector_has_its_verdict_however_it_is_cut() {
    let vectors = vectors();
    assert!(vectors.len() > 130, "{} vectors", vectors.len());
    let mut wrong = Vec::new();
    for Vector { line, verdict: expected, bytes } in &vectors {
        let whole = verdict([&bytes[..]]);
        if whole != *expected {
            wrong.push(format!("line {line}: {whole}, expected {expected}"));
        }
        for length in [1, 2, 3, 5, 7, 9, 16] {
            assert_eq!(verdict(bytes.chunks(length)), whole, "line {line} in pieces of {length}");
        }
        for cut in 1..bytes.len() {
            let (before, after) = bytes.split_at(cut);
            assert_eq!(verdict([before, after]), whole, "line {line} cut at {cut}");
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
