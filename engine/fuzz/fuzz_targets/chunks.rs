//! The oracle reads the body of a request in chunks as the engine wrote it, and other bytes alike however they are cut. What it
//! accepts, the engine accepts as the body of an answer.
#![no_main]

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use redline_oracle::body::{Framing, Part, Rest};
use redline_wire::{Body, Heads, Names, Parser, ReadOptions, Spec, Template, TraceContext, Values};

#[derive(Arbitrary, Debug)]
struct Input {
    body: Vec<u8>,
    chunks: NonZeroUsize,
    piece: u8,
    /// What another client sends as a body.
    bytes: Vec<u8>,
}

/// A request that does not vary draws nothing.
struct Nothing;

impl Values for Nothing {
    fn seq(&mut self) -> u64 {
        unreachable!()
    }
    fn between(&mut self, _: i64, _: i64) -> i64 {
        unreachable!()
    }
    fn pick(&mut self, _: usize) -> usize {
        unreachable!()
    }
    fn trace_context(&mut self) -> TraceContext {
        unreachable!()
    }
}

/// The body at the start of `bytes` and the length of all of it, if pieces of this length arrive; `None` if it is wrong or not whole.
fn read(bytes: &[u8], piece: usize) -> Option<(Vec<u8>, usize)> {
    let (mut rest, mut body, mut taken, mut received) = (Rest::of(Framing::Chunked), Vec::new(), 0, 0);
    loop {
        match rest.read(&bytes[taken..received]) {
            Part::Data(length) => {
                body.extend_from_slice(&bytes[taken..taken + length]);
                taken += length;
            }
            Part::Framing(length) => taken += length,
            Part::End(length) => return Some((body, taken + length)),
            Part::Partial if received < bytes.len() => received = bytes.len().min(received + piece),
            Part::Partial | Part::Wrong => return None,
        }
    }
}

/// The request's bytes after its head.
fn written(input: &Input) -> Vec<u8> {
    let spec = Spec {
        method: "POST",
        path: "/",
        host: "localhost",
        port: 80,
        headers: &[],
        body: Body::Bytes(input.body.clone()),
        chunks: Some(input.chunks),
        tls: false,
        http2: false,
        cookies: false,
    };
    let template = Template::compile(spec, &Names::picks(&BTreeMap::new())).expect("a right request");
    let mut out = Vec::new();
    template.render(&mut out, &mut Nothing).expect("nothing in it varies");
    out.extend_from_slice(template.fixed_body().map_or(&[], |body| body));
    let head = out.windows(4).position(|bytes| bytes == b"\r\n\r\n").expect("a head");
    out.split_off(head + 4)
}

fuzz_target!(|input: Input| {
    let piece = usize::from(input.piece) + 1;
    let request = written(&input);
    assert_eq!(read(&request, piece), Some((input.body.clone(), request.len())));
    let whole = read(&input.bytes, usize::MAX);
    assert_eq!(read(&input.bytes, piece), whole);
    if let Some((body, length)) = whole {
        let answer = [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", &input.bytes[..length]].concat();
        let parsed = Parser::new().feed(&answer, ReadOptions::default(), &mut Heads::new());
        let parsed = parsed.expect("right chunks").expect("all of them");
        assert_eq!((parsed.answer.body_length, parsed.used), (body.len() as u64, answer.len()));
    }
});
