//! Raw responses with the verdict of the RFCs, cut into pieces in many ways: the cuts change nothing.

use redline_wire::{Answer, Heads, KeptBody, Malformed, Parser, ReadOptions};

const VECTORS: &str = include_str!("vectors/responses.txt");

struct Vector {
    line: usize,
    verdict: &'static str,
    bytes: Vec<u8>,
}

fn vectors() -> Vec<Vector> {
    let lines = VECTORS.lines().zip(1..).filter(|(text, _)| !text.is_empty() && !text.starts_with('#'));
    lines
        .map(|(text, line)| {
            let mut parts = text.splitn(3, '|').skip(1);
            let mut next = || parts.next().unwrap_or_else(|| panic!("line {line}: section | verdict | bytes"));
            let (verdict, bytes) = (next().trim(), unescaped(&next()[1..]));
            Vector { line, verdict, bytes }
        })
        .collect()
}

fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'\\' => match rest.next() {
                Some(b'r') => b'\r',
                Some(b'n') => b'\n',
                Some(b't') => b'\t',
                Some(b'\\') => b'\\',
                Some(b'x') => {
                    let digits = [rest.next(), rest.next()].map(|digit| char::from(digit.expect("two digits")));
                    u8::from_str_radix(&String::from_iter(digits), 16).expect("hexadecimal digits")
                }
                other => panic!("{other:?} cannot be escaped: {text}"),
            },
            byte => byte,
        });
    }
    bytes
}

/// The result of a connection that ends after these pieces: a single answer with all bytes used, or an error.
fn verdict<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<Option<Answer>, Malformed> {
    let options = ReadOptions { keep: KeptBody::Whole, ..ReadOptions::default() };
    let (mut parser, mut heads) = (Parser::new(), Heads::new());
    let mut answer = None;
    for piece in pieces {
        assert_eq!(answer, None, "bytes follow the answer");
        if let Some(whole) = parser.feed(piece, options, &mut heads)? {
            assert_eq!(whole.used, piece.len(), "bytes follow the answer");
            answer = Some(whole.answer);
        }
    }
    let answer = answer.or_else(|| parser.end(options));
    if let Some(answer) = answer {
        let body = parser.body();
        assert!(body.is_empty() || body == b"hello" || body == b"0123456789", "{body:?}");
        assert_eq!(body.len() as u64, answer.body_length);
    }
    Ok(answer)
}

fn shown(verdict: &Result<Option<Answer>, Malformed>) -> String {
    match verdict {
        Ok(Some(answer)) => {
            let life = if answer.keep_alive { "keep" } else { "close" };
            format!("{} {} {life}", answer.status, answer.body_length)
        }
        Ok(None) => "cut".to_owned(),
        Err(_) => "malformed".to_owned(),
    }
}

#[test]
fn each_vector_has_its_verdict_however_it_is_cut() {
    let vectors = vectors();
    assert!(vectors.len() > 150, "{} vectors", vectors.len());
    let mut wrong = Vec::new();
    for Vector { line, verdict: expected, bytes } in &vectors {
        let whole = verdict([&bytes[..]]);
        if shown(&whole) != *expected {
            wrong.push(format!("line {line}: {} ({whole:?}), expected {expected}", shown(&whole)));
        }
        for length in [1, 2, 3, 5, 7, 16, 64] {
            assert_eq!(verdict(bytes.chunks(length)), whole, "line {line} in pieces of {length}");
        }
        for cut in 1..bytes.len() {
            let (before, after) = bytes.split_at(cut);
            assert_eq!(verdict([before, after]), whole, "line {line} cut at {cut}");
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
