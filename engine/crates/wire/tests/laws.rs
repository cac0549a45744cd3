//! However a response is cut into pieces it gives the same answer; whatever bytes come, nothing breaks.

use proptest::prelude::*;
use redline_wire::{Answer, Asked, Malformed, Parser};
use sha2::{Digest, Sha256};

/// What a connection gave: whole answers, then perhaps one that its end made whole, or an error.
#[derive(Debug, PartialEq)]
struct Seen {
    answers: Vec<Answer>,
    error: Option<Malformed>,
}

fn see(asked: Asked, pieces: &[&[u8]]) -> Seen {
    let mut parser = Parser::new(asked);
    let mut seen = Seen { answers: Vec::new(), error: None };
    for piece in pieces {
        let mut rest = *piece;
        while !rest.is_empty() {
            match parser.feed(rest) {
                Ok(Some(whole)) => {
                    assert!(whole.used <= rest.len());
                    seen.answers.push(whole.answer);
                    rest = &rest[whole.used..];
                }
                Ok(None) => break,
                Err(error) => {
                    seen.error = Some(error);
                    return seen;
                }
            }
        }
    }
    seen.answers.extend(parser.end());
    seen
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
    fn has_body(&self) -> bool {
        self.status != 204 && self.status != 304
    }

    fn until_close(&self) -> bool {
        self.has_body() && matches!(self.coding, Coding::UntilClose)
    }

    fn bytes(&self) -> Vec<u8> {
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
        if self.has_body() {
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

    fn answer(&self, hash: bool) -> Answer {
        let body: &[u8] = if self.has_body() { &self.body } else { &[] };
        Answer {
            status: self.status,
            body_length: body.len() as u64,
            body_sha256: hash.then(|| Sha256::digest(body).into()),
            keep_alive: !self.close && !self.until_close(),
        }
    }
}

fn in_single_bytes(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.chunks(1).collect()
}

proptest! {
    #[test]
    fn a_response_cut_anywhere_gives_the_same_answer(response in response(), hash: bool) {
        let asked = Asked { head: false, hash };
        let bytes = response.bytes();
        let expected = Seen { answers: vec![response.answer(hash)], error: None };
        prop_assert_eq!(see(asked, &[&bytes]), expected);
        for cut in 0..=bytes.len() {
            let (before, after) = bytes.split_at(cut);
            let seen = see(asked, &[before, after]);
            prop_assert_eq!(&seen.answers, &[response.answer(hash)], "cut at {}", cut);
        }
        prop_assert_eq!(see(asked, &in_single_bytes(&bytes)).answers, [response.answer(hash)]);
    }

    #[test]
    fn answers_follow_each_other(responses in prop::collection::vec(response(), 1..5), piece in 1_usize..50) {
        let mut bytes = Vec::new();
        let mut expected = Vec::new();
        for response in responses {
            bytes.extend(response.bytes());
            expected.push(response.answer(false));
            if response.until_close() {
                break;
            }
        }
        let pieces: Vec<&[u8]> = bytes.chunks(piece).collect();
        prop_assert_eq!(see(Asked::default(), &pieces), Seen { answers: expected, error: None });
    }

    /// A part of a response is never taken for a whole one.
    #[test]
    fn what_is_cut_off_is_not_an_answer(response in response()) {
        let bytes = response.bytes();
        for end in 0..bytes.len() {
            let seen = see(Asked::default(), &[&bytes[..end]]);
            if !response.until_close() {
                prop_assert_eq!(seen, Seen { answers: Vec::new(), error: None }, "{}", end);
            }
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400), piece in 1_usize..60, head: bool) {
        let pieces: Vec<&[u8]> = bytes.chunks(piece).collect();
        see(Asked { head, hash: true }, &pieces);
    }

    #[test]
    fn damaged_responses_never_panic(
        response in response(), hits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8), piece in 1_usize..60,
    ) {
        let mut bytes = response.bytes();
        for (index, byte) in hits {
            let index = index.index(bytes.len());
            bytes[index] = byte;
        }
        let pieces: Vec<&[u8]> = bytes.chunks(piece).collect();
        see(Asked { head: false, hash: true }, &pieces);
    }
}
