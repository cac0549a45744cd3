//! A hand-written server: frames as RFC 9113 defines them, and an account of what the client may send.
#![allow(dead_code, reason = "every test uses a part of it")]

use std::collections::HashMap;

use redline_http2::{BodyOptions, Error, Event, Session};

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PUSH_PROMISE: u8 = 5;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;

pub const END_STREAM: u8 = 1;
pub const ACK: u8 = 1;
pub const END_HEADERS: u8 = 4;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a frame's length has 24 bits");
    let mut bytes = length.to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// A SETTINGS frame.
pub fn settings(entries: &[(u16, u32)]) -> Vec<u8> {
    let entries = entries.iter().flat_map(|(id, value)| [&id.to_be_bytes()[..], &value.to_be_bytes()[..]].concat());
    frame(SETTINGS, 0, 0, &entries.collect::<Vec<_>>())
}

/// Fields as literals without indexing or compression (RFC 7541, section 6.2.2).
pub fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, value) in fields {
        bytes.push(0);
        for text in [name, value] {
            // A length is a number with a prefix of 7 bits (RFC 7541, section 5.1).
            if text.len() < 127 {
                bytes.push(text.len() as u8);
            } else {
                bytes.push(127);
                let mut rest = text.len() - 127;
                while rest >= 128 {
                    bytes.push((rest % 128) as u8 | 128);
                    rest /= 128;
                }
                bytes.push(rest as u8);
            }
            bytes.extend(text.bytes());
        }
    }
    bytes
}

/// A HEADERS frame.
pub fn headers(stream: u32, fields: &[(&str, &str)], flags: u8) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | flags, stream, &block(fields))
}

/// A complete answer with status 200.
pub fn answer(stream: u32, body: &[u8]) -> Vec<u8> {
    let length = body.len().to_string();
    let mut bytes = headers(stream, &[(":status", "200"), ("content-length", &length)], 0);
    bytes.extend(frame(DATA, END_STREAM, stream, body));
    bytes
}

pub fn reset(stream: u32, code: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &code.to_be_bytes())
}

pub fn go_away(last: u32, code: u32) -> Vec<u8> {
    frame(GOAWAY, 0, 0, &[last.to_be_bytes(), code.to_be_bytes()].concat())
}

pub fn window_update(stream: u32, by: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, &by.to_be_bytes())
}

/// A frame that the client sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

/// The frames that were written, without the preface.
pub fn frames(mut bytes: &[u8]) -> Vec<Sent> {
    let mut frames = Vec::new();
    bytes = bytes.strip_prefix(PREFACE).unwrap_or(bytes);
    while let Some((head, rest)) = bytes.split_first_chunk::<9>() {
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        let payload = rest[..length].to_vec();
        frames.push(Sent { kind: head[3], flags: head[4], stream, payload });
        bytes = &rest[length..];
    }
    assert!(bytes.is_empty(), "the output ends within a frame");
    frames
}

/// All that the session writes now.
pub fn written(session: &mut Session) -> Vec<Sent> {
    let mut bytes = Vec::new();
    // A request that was cancelled before it was written wants to be written, and then yields nothing.
    let mut before = usize::MAX;
    while session.wants_write() && bytes.len() != before {
        before = bytes.len();
        session.output(&mut bytes, 4096);
    }
    assert!(!session.wants_write(), "it wants to write and has nothing");
    frames(&bytes)
}

/// A session that has received the server's SETTINGS and written its own.
pub fn met(entries: &[(u16, u32)]) -> Session {
    let mut session = Session::new().expect("a session");
    assert_eq!(feed(&mut session, &[settings(entries), frame(SETTINGS, ACK, 0, &[])].concat()), Ok(vec![]));
    written(&mut session);
    session
}

pub fn feed(session: &mut Session, bytes: &[u8]) -> Result<Vec<Event>, Error> {
    let mut events = Vec::new();
    session.feed(bytes, &mut events).map(|()| events)
}

/// The fields of a request for `/`.
pub fn request(method: &'static str) -> [(&'static [u8], &'static [u8]); 4] {
    [(b":method", method.as_bytes()), (b":scheme", b"http"), (b":authority", b"127.0.0.1"), (b":path", b"/")]
}

/// Open `count` requests with tokens from 0; their streams are 1, 3, 5, …
pub fn open(session: &mut Session, count: u32, options: BodyOptions) {
    for token in 0..count {
        session.open(&request("GET"), None, options, token).expect("there is room");
    }
}

/// The event for an answer when nothing of its body is requested.
pub fn plain(token: u32, status: u16, body_length: u64) -> Event {
    Event::Answer {
        token,
        status,
        grpc_status: None,
        body_length,
        body_sha256: None,
        events: None,
        body: None,
        fields: None,
    }
}

/// How much the client may send per stream (0 is the connection).
pub struct Windows {
    left: HashMap<u32, i64>,
    initial: i64,
}

impl Windows {
    pub fn new(initial: u32) -> Self {
        Self { left: HashMap::from([(0, 65_535)]), initial: i64::from(initial) }
    }

    /// Count a DATA frame; panics when it exceeds a window.
    pub fn spend(&mut self, sent: &Sent) {
        for stream in [0, sent.stream] {
            let left = self.left.entry(stream).or_insert(self.initial);
            *left -= sent.payload.len() as i64;
            assert!(*left >= 0, "stream {stream} is {left} past its window");
        }
    }

    /// Open a window further, and return the frame for it.
    pub fn grant(&mut self, stream: u32, by: u32) -> Vec<u8> {
        *self.left.entry(stream).or_insert(self.initial) += i64::from(by);
        window_update(stream, by)
    }
}
