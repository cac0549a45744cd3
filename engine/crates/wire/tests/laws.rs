//! A response gives the same answer however it is cut into pieces, and no bytes break the parser.

use proptest::prelude::*;
use redline_wire::{
    Amount, Answer, EventKind, EventReader, Heads, KeptBody, KeptFields, Malformed, MessageCounts, MessageRules,
    Parser, ReadOptions,
};
use sha2::{Digest, Sha256};

/// The result of a connection: complete answers, with the bodies that were kept, and perhaps an error.
#[derive(Clone, Debug, Default, PartialEq)]
struct Seen {
    answers: Vec<(Answer, Vec<u8>)>,
    error: Option<Malformed>,
}

/// Read a connection whose answers are read with these options in turn.
fn see_with(heads: &mut Heads, options: &[ReadOptions], pieces: &[&[u8]]) -> Seen {
    let mut parser = Parser::new();
    let mut seen = Seen::default();
    for piece in pieces {
        let mut rest = *piece;
        while !rest.is_empty() {
            let options = options[seen.answers.len() % options.len()];
            match parser.feed(rest, options, heads) {
                Ok(Some(whole)) => {
                    assert!(whole.used <= rest.len() && parser.is_between());
                    seen.answers.push((whole.answer, parser.body().to_vec()));
                    rest = &rest[whole.used..];
                }
                Ok(None) => {
                    assert!(!parser.is_between());
                    break;
                }
                Err(error) => {
                    seen.error = Some(error);
                    return seen;
                }
            }
        }
    }
    if let Some(answer) = parser.end(options[seen.answers.len() % options.len()]) {
        seen.answers.push((answer, parser.body().to_vec()));
    }
    seen
}

fn see(options: &[ReadOptions], pieces: &[&[u8]]) -> Seen {
    see_with(&mut Heads::new(), options, pieces)
}

fn read_options() -> impl Strategy<Value = ReadOptions> {
    let events = prop::option::of(Just(EventKind::Chunks));
    let kept = prop::sample::select(vec![KeptBody::None, KeptBody::Beginning, KeptBody::Whole]);
    (any::<bool>(), any::<bool>(), kept, events).prop_map(|(head, hash, keep, events)| ReadOptions {
        head,
        hash,
        keep,
        fields: KeptFields::None,
        events,
        messages: None,
    })
}

#[derive(Clone, Debug)]
enum Coding {
    Length,
    Chunked { sizes: Vec<usize>, extension: bool, trailers: usize },
    UntilClose,
}

fn coding() -> impl Strategy<Value = Coding> {
    prop_oneof![
        Just(Coding::Length),
        (prop::collection::vec(1_usize..40, 1..5), any::<bool>(), 0_usize..3)
            .prop_map(|(sizes, extension, trailers)| Coding::Chunked { sizes, extension, trailers }),
        Just(Coding::UntilClose),
    ]
}

#[derive(Clone, Debug)]
struct Response {
    interim: usize,
    status: u16,
    headers: Vec<(String, String)>,
    close: bool,
    coding: Coding,
    body: Vec<u8>,
}

fn response() -> impl Strategy<Value = Response> {
    (
        0_usize..3,
        prop_oneof![Just(200_u16), Just(204), Just(304), Just(404), 205_u16..599],
        prop::collection::vec(("X-[A-Za-z]{1,8}", "[ -~]{0,12}"), 0..4),
        any::<bool>(),
        coding(),
        prop::collection::vec(any::<u8>(), 0..120),
    )
        .prop_map(|(interim, status, headers, close, coding, body)| Response {
            interim,
            status,
            headers,
            close,
            coding,
            body,
        })
}

impl Response {
    fn has_body(&self, options: ReadOptions) -> bool {
        !options.head && self.status != 204 && self.status != 304
    }

    fn until_close(&self, options: ReadOptions) -> bool {
        self.has_body(options) && matches!(self.coding, Coding::UntilClose)
    }

    fn bytes(&self, options: ReadOptions) -> Vec<u8> {
        let mut bytes = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n".repeat(self.interim);
        bytes.extend(format!("HTTP/1.1 {} A Reason\r\n", self.status).bytes());
        for (name, value) in &self.headers {
            bytes.extend(format!("{name}: {value}\r\n").bytes());
        }
        if self.close {
            bytes.extend(b"connection: foo, Close\r\n");
        }
        match &self.coding {
            Coding::Length => bytes.extend(format!("Content-LENGTH:  {} \r\n\r\n", self.body.len()).bytes()),
            Coding::Chunked { .. } => bytes.extend(b"Transfer-Encoding: gzip, Chunked\r\n\r\n"),
            Coding::UntilClose => bytes.extend(b"\r\n"),
        }
        if self.has_body(options) {
            bytes.extend(self.coded_body());
        }
        bytes
    }

    fn coded_body(&self) -> Vec<u8> {
        let Coding::Chunked { sizes, extension, trailers } = &self.coding else {
            return self.body.clone();
        };
        let mut bytes = Vec::new();
        let mut rest = self.body.as_slice();
        for size in sizes.iter().cycle() {
            let (chunk, after) = rest.split_at((*size).min(rest.len()));
            let extension = if *extension { " ; name=\"value\"" } else { "" };
            bytes.extend(format!("{:X}{extension}\r\n", chunk.len()).bytes());
            rest = after;
            if chunk.is_empty() {
                break;
            }
            bytes.extend(chunk);
            bytes.extend(b"\r\n");
        }
        bytes.extend(b"X-Trailer: 1\r\n".repeat(*trailers));
        bytes.extend(b"\r\n");
        bytes
    }

    /// How many chunks its body has, if it is sent in chunks.
    fn chunks(&self, options: ReadOptions) -> Option<u64> {
        let Coding::Chunked { sizes, .. } = &self.coding else {
            return None;
        };
        let mut rest = self.body.len();
        let size = |size: &usize| {
            let chunk = rest.min(*size);
            rest -= chunk;
            (chunk > 0).then_some(chunk)
        };
        self.has_body(options).then(|| sizes.iter().cycle().map_while(size).count() as u64)
    }

    fn answer(&self, options: ReadOptions) -> (Answer, Vec<u8>) {
        let body: &[u8] = if self.has_body(options) { &self.body } else { &[] };
        let answer = Answer {
            status: self.status,
            grpc_status: None,
            body_length: body.len() as u64,
            body_sha256: options.hash.then(|| Sha256::digest(body).into()),
            events: options
                .events
                .and_then(|_| self.chunks(options))
                .map(|counted| MessageCounts { counted, ..MessageCounts::default() }),
            keep_alive: !self.close && !self.until_close(options),
        };
        let is_no_stream = options.events.is_some() && answer.events.is_none();
        let kept = if options.keep.any() || is_no_stream { body.to_vec() } else { Vec::new() };
        (answer, kept)
    }
}

/// Some answers on a connection: the options of their requests, the bytes, and the expected result.
fn pipelined() -> impl Strategy<Value = (Vec<ReadOptions>, Vec<u8>, Seen)> {
    prop::collection::vec((response(), read_options()), 1..5).prop_map(|exchanges| {
        let (mut all_options, mut bytes, mut seen) = (Vec::new(), Vec::new(), Seen::default());
        for (response, options) in exchanges {
            all_options.push(options);
            bytes.extend(response.bytes(options));
            seen.answers.push(response.answer(options));
            if response.until_close(options) {
                break;
            }
        }
        (all_options, bytes, seen)
    })
}

fn random_pieces<'a>(mut bytes: &'a [u8], lengths: &[usize]) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    for length in lengths.iter().cycle() {
        let (piece, rest) = bytes.split_at((*length).min(bytes.len()));
        pieces.push(piece);
        bytes = rest;
        if bytes.is_empty() {
            return pieces;
        }
    }
    pieces
}

fn damaged(mut bytes: Vec<u8>, hits: Vec<(prop::sample::Index, u8)>) -> Vec<u8> {
    for (index, byte) in hits {
        let index = index.index(bytes.len());
        bytes[index] = byte;
    }
    bytes
}

fn hits() -> impl Strategy<Value = Vec<(prop::sample::Index, u8)>> {
    prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)
}

proptest! {
    #[test]
    fn responses_cut_anywhere_give_the_same_answers(
        (options, bytes, expected) in pipelined(), lengths in prop::collection::vec(1_usize..60, 1..20),
    ) {
        prop_assert_eq!(&see(&options, &[&bytes]), &expected);
        for cut in 0..=bytes.len() {
            let (before, after) = bytes.split_at(cut);
            prop_assert_eq!(&see(&options, &[before, after]), &expected, "cut at {}", cut);
        }
        prop_assert_eq!(&see(&options, &random_pieces(&bytes, &[1])), &expected);
        prop_assert_eq!(&see(&options, &random_pieces(&bytes, &lengths)), &expected);
    }

    /// A part of a response is never taken for a complete response.
    #[test]
    fn what_is_cut_off_is_not_an_answer(response in response(), options in read_options()) {
        let bytes = response.bytes(options);
        for end in 0..bytes.len() {
            let seen = see(&[options], &[&bytes[..end]]);
            if !response.until_close(options) {
                prop_assert_eq!(seen, Seen::default(), "{}", end);
            }
        }
    }

    /// A cache that has seen other heads, and these, changes nothing, for right or damaged responses.
    #[test]
    fn a_memo_of_heads_changes_nothing(
        others in prop::collection::vec(pipelined(), 0..6), (options, bytes, expected) in pipelined(), hits in hits(),
    ) {
        let mut heads = Heads::new();
        for (options, bytes, expected) in &others {
            prop_assert_eq!(&see_with(&mut heads, options, &[bytes]), expected);
        }
        for _ in 0..2 {
            prop_assert_eq!(&see_with(&mut heads, &options, &[&bytes]), &expected);
        }
        let damaged = damaged(bytes, hits);
        prop_assert_eq!(see_with(&mut heads, &options, &[&damaged]), see(&options, &[&damaged]));
    }

    /// Heads that never repeat do not corrupt it either.
    #[test]
    fn a_memo_outlives_heads_that_are_never_the_same((options, bytes, expected) in pipelined(), new in 60_u32..200) {
        let mut heads = Heads::new();
        for i in 0..new {
            let text = format!("HTTP/1.1 200 OK\r\nX-Id: {i}\r\nContent-Length: 0\r\n\r\n");
            prop_assert_eq!(see_with(&mut heads, &[ReadOptions::default()], &[text.as_bytes()]).answers.len(), 1);
        }
        for _ in 0..20 {
            prop_assert_eq!(&see_with(&mut heads, &options, &[&bytes]), &expected);
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 1..400), length in 1_usize..60, options in read_options()) {
        see(&[options], &random_pieces(&bytes, &[length]));
    }

    /// The error does not depend on the cuts either.
    #[test]
    fn damaged_responses_cut_anywhere_give_the_same((options, bytes, _) in pipelined(), hits in hits(), length in 1_usize..60) {
        let bytes = damaged(bytes, hits);
        prop_assert_eq!(see(&options, &random_pieces(&bytes, &[length])), see(&options, &[&bytes]));
    }
}

/// The data of the server-sent events of a stream, read as the specification says (HTML, section 9.2.6): line by line, as a
/// whole.
fn dispatched(text: &str) -> Vec<String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n").replace('\r', "\n");
    let mut lines: Vec<&str> = text.split('\n').collect();
    lines.pop();
    let (mut events, mut data) = (Vec::new(), Vec::new());
    for line in lines {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        if line.is_empty() && !data.is_empty() {
            events.push(std::mem::take(&mut data).join("\n"));
        } else if name == "data" {
            data.push(value.strip_prefix(' ').unwrap_or(value).to_owned());
        }
    }
    events
}

fn counts_of(kind: EventKind, rules: Option<&'static MessageRules>, pieces: &[&[u8]]) -> MessageCounts {
    let mut reader = EventReader::new(kind, rules);
    for piece in pieces {
        reader.data(piece, false);
        // Frames of HTTP/2 end with no bytes.
        reader.data(&[], false);
    }
    reader.end();
    reader.counts()
}

/// All messages count, and hold their bytes.
fn bytes_of_all() -> &'static MessageRules {
    MessageRules { amount: Amount::Bytes, ..MessageRules::default() }.keep()
}

proptest! {
    #[test]
    fn server_sent_events_are_those_of_the_specification(
        text in "(\u{feff}?((data|dat|datax|d|id|:| data|\u{feff}data)(: ?x)?(\r|\n|\r\n){0,3}|[a:\r\n]){0,12})?",
        lengths in prop::collection::vec(1_usize..6, 1..6),
    ) {
        let bytes = text.as_bytes();
        let (pieces, events) = (random_pieces(bytes, &lengths), dispatched(&text));
        let seen = counts_of(EventKind::Sse, None, &pieces);
        prop_assert_eq!((seen.counted, seen.amount), (events.len() as u64, 0), "{:?}", text);
        let seen = counts_of(EventKind::Sse, Some(bytes_of_all()), &pieces);
        let length = events.iter().map(String::len).sum::<usize>();
        prop_assert_eq!((seen.counted, seen.amount), (events.len() as u64, length as u64), "{:?}", text);
    }

    #[test]
    fn lines_that_are_not_blank_are_events(
        text in "([{}x \t\r]{0,3}\n?){0,12}",
        lengths in prop::collection::vec(1_usize..6, 1..6),
    ) {
        let lines = text.split('\n').filter(|line| !line.trim().is_empty()).count() as u64;
        let pieces = random_pieces(text.as_bytes(), &lengths);
        for rules in [None, Some(bytes_of_all())] {
            prop_assert_eq!(counts_of(EventKind::Ndjson, rules, &pieces).counted, lines);
        }
    }
}
