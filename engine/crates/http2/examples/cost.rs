//! Measures what a request costs a session, without sockets: `cargo run --release -p redline-http2 --example cost [STREAMS
//! [REQUESTS]]`.
//!
//! Keeps STREAMS requests (16) in flight until REQUESTS (2,000,000) are answered, with the head and the five bytes of a small
//! answer. Prints the nanoseconds per request of the fastest of ten parts. On a busy machine, count instructions with `valgrind
//! --tool=callgrind`.

use std::time::Instant;

use redline_http2::{BodyOptions, Event, Session};

/// `:status: 200` and `content-length: 5`, as HPACK writes them from its static table, and `server: x` as a literal.
const HEAD: [u8; 14] = [0x88, 0x0f, 0x0d, 0x01, b'5', 0x00, 0x06, b's', b'e', b'r', b'v', b'e', b'r', 0x01];
const VALUE: [u8; 1] = [b'x'];

fn frame(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[&[u8]]) {
    let length: usize = payload.iter().map(|part| part.len()).sum();
    out.extend_from_slice(&(length as u32).to_be_bytes()[1..]);
    out.extend_from_slice(&[kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
    for part in payload {
        out.extend_from_slice(part);
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u32>().expect("a number"));
    let streams = arguments.next().unwrap_or(16);
    let requests = arguments.next().unwrap_or(2_000_000);
    let mut session = Session::new().expect("a session");
    let (mut events, mut out, mut answers) = (Vec::new(), Vec::new(), Vec::new());
    frame(&mut answers, 4, 0, 0, &[&[0, 3, 0, 0, 4, 0]]);
    frame(&mut answers, 4, 1, 0, &[]);
    session.feed(&answers, &mut events).expect("SETTINGS are in order");
    let fields: [(&[u8], &[u8]); 4] =
        [(b":method", b"GET"), (b":scheme", b"http"), (b":authority", b"127.0.0.1:8080"), (b":path", b"/hello")];
    let options = BodyOptions::default();
    let (mut stream, part) = (1, requests / 10 / streams);
    let mut best = f64::INFINITY;
    for _ in 0..10 {
        let begin = Instant::now();
        for _ in 0..part {
            answers.clear();
            for token in 0..streams {
                session.open(&fields, None, options, token).expect("there is room");
                frame(&mut answers, 1, 4, stream, &[&HEAD, &VALUE]);
                frame(&mut answers, 0, 1, stream, &[b"hello"]);
                stream += 2;
            }
            out.clear();
            session.output(&mut out, usize::MAX);
            session.feed(&answers, &mut events).expect("the answers are in order");
            let right = events.drain(..).filter(|event| matches!(event, Event::Answer { status: 200, .. })).count();
            assert_eq!(right, streams as usize);
        }
        best = best.min(begin.elapsed().as_nanos() as f64 / f64::from(part * streams));
    }
    println!("{best:.0} ns per request with {streams} streams");
}
