//! Whatever bytes a server sends, however they are cut: nothing breaks, what is kept is bounded, and the cuts change nothing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use redline_wire::{
    Answer, EventKind, Expect, Field, Heads, KeptBody, KeptFields, MOST_HEAD_BYTES, MOST_KEPT_BODY, Malformed, Parser,
    Pointer, ReadOptions, Stands, Timestamp, Unit,
};

/// The result of a connection: answers with the heads and the bodies that were kept, how its bytes were used, and perhaps an
/// error.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    answers: Vec<(Answer, Vec<u8>, Vec<u8>, usize)>,
    error: Option<Malformed>,
}

/// With these bits of the options, the server repeats its bytes past every limit except that of bodies.
const ENDLESS: u8 = 0x88;
const PAST_THE_LIMITS: usize = MOST_HEAD_BYTES + 1000;

/// The input: a byte for the options, a byte for the number of cuts, their lengths, and then what the server sends.
struct Input<'a> {
    options: [ReadOptions; 2],
    lengths: &'a [u8],
    bytes: Vec<u8>,
}

impl<'a> Input<'a> {
    fn of(data: &'a [u8]) -> Option<Self> {
        let (&[options, cuts], rest) = data.split_first_chunk()?;
        let (lengths, bytes) = rest.split_at_checked(usize::from(cuts % 16))?;
        let events = [None, Some(EventKind::Sse), Some(EventKind::Ndjson), Some(EventKind::Chunks)];
        let read_options = |bits: u8| ReadOptions {
            head: bits & 1 != 0,
            hash: bits & 2 != 0,
            keep: [KeptBody::None, KeptBody::Whole, KeptBody::None, KeptBody::Beginning][usize::from(bits >> 2) % 4],
            events: events[usize::from(cuts >> 4) % 4],
            messages: None,
            fields: [KeptFields::None, KeptFields::SetCookie, KeptFields::All][usize::from(cuts >> 6) % 3],
        };
        let times = if options & ENDLESS == ENDLESS { PAST_THE_LIMITS / bytes.len().max(1) + 1 } else { 1 };
        let bytes = bytes.repeat(times);
        Some(Self { options: [read_options(options), read_options(options >> 4)], lengths, bytes })
    }

    /// The bytes in pieces of these lengths, over and over; in a single piece when there are none.
    fn pieces(&self) -> Vec<&[u8]> {
        let mut rest = self.bytes.as_slice();
        let mut pieces = Vec::new();
        for length in self.lengths.iter().cycle() {
            let (piece, after) = rest.split_at(rest.len().min(1 + usize::from(*length)));
            pieces.push(piece);
            rest = after;
            if rest.is_empty() {
                return pieces;
            }
        }
        vec![rest]
    }
}

/// Read a connection; without a shared cache of heads, every piece has an empty cache.
fn see(options: [ReadOptions; 2], mut memo: Option<&mut Heads>, pieces: &[&[u8]]) -> Seen {
    let mut parser = Parser::new();
    let mut seen = Seen::default();
    let mut before = 0;
    for piece in pieces {
        let mut at = 0;
        while at < piece.len() {
            let mut none = Heads::new();
            let heads = memo.as_deref_mut().unwrap_or(&mut none);
            match parser.feed(&piece[at..], options[seen.answers.len() % 2], heads) {
                Ok(Some(whole)) => {
                    assert!(whole.used <= piece.len() - at && parser.is_between());
                    at += whole.used;
                    let (head, body) = kept(&parser, &whole.answer);
                    seen.answers.push((whole.answer, head, body, before + at));
                }
                Ok(None) => at = piece.len(),
                Err(error) => {
                    seen.error = Some(error);
                    return seen;
                }
            }
        }
        before += piece.len();
    }
    if let Some(answer) = parser.end(options[seen.answers.len() % 2]) {
        let (head, body) = kept(&parser, &answer);
        seen.answers.push((answer, head, body, before));
    }
    seen
}

fn kept(parser: &Parser, answer: &Answer) -> (Vec<u8>, Vec<u8>) {
    assert!((100..=999).contains(&answer.status));
    assert!(parser.body().len() <= MOST_KEPT_BODY);
    assert!(parser.body().is_empty() || parser.body().len() as u64 == answer.body_length);
    (parser.kept_head().to_vec(), parser.body().to_vec())
}

/// How a body is used, which may be any bytes.
fn look_into(answer: &Answer, body: &[u8]) {
    for text in ["", "/a", "/0/a"] {
        let pointer = Pointer::parse(text).expect("a pointer");
        let json = vec![Field { pointer: pointer.clone(), stands: Stands::Equal(1.into()) }];
        let _ = Expect { status: answer.status, json, ..Expect::default() }.judge(answer, body);
        let _ = Timestamp { pointer: Some(pointer), unit: Unit::Ms }.read(body);
    }
    let _ = Timestamp { pointer: None, unit: Unit::S }.read(body);
}

fuzz_target!(|data: &[u8]| {
    let Some(input) = Input::of(data) else {
        return;
    };
    let whole = see(input.options, None, &[&input.bytes]);
    assert_eq!(see(input.options, None, &input.pieces()), whole);
    // The second time the cache has these heads.
    let mut heads = Heads::new();
    for _ in 0..2 {
        assert_eq!(see(input.options, Some(&mut heads), &[&input.bytes]), whole);
    }
    assert_eq!(see(input.options, Some(&mut heads), &input.pieces()), whole);
    for (answer, _, body, _) in &whole.answers {
        look_into(answer, body);
    }
});
