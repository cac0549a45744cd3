//! Frames as bytes, and what a session makes of them.
#![allow(dead_code, reason = "each file of tests uses a part of it")]

use redline_websocket::{Close, Event, Kind, Role, Rule, Session};

pub const TEXT: u8 = 1;
pub const BINARY: u8 = 2;
pub const CLOSE: u8 = 8;
pub const PING: u8 = 9;
pub const PONG: u8 = 10;

/// What a session reports, owned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    Text(String),
    Binary(Vec<u8>),
    Ping(Vec<u8>),
    Pong,
    Close(Option<u16>, String),
    Broken(Rule),
}

pub fn text(text: &str) -> Seen {
    Seen::Text(text.to_owned())
}

/// A frame of a server: flags and opcode, and the payload, with the shortest length.
pub fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![first];
    match payload.len() {
        length @ ..126 => bytes.push(length as u8),
        length @ 126..0x1_0000 => {
            bytes.push(126);
            bytes.extend_from_slice(&(length as u16).to_be_bytes());
        }
        length => {
            bytes.push(127);
            bytes.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    bytes.extend_from_slice(payload);
    bytes
}

/// The last frame of a message, or its only one.
pub fn last(opcode: u8, payload: &[u8]) -> Vec<u8> {
    frame(0x80 | opcode, payload)
}

/// A frame that others follow.
pub fn part(opcode: u8, payload: &[u8]) -> Vec<u8> {
    frame(opcode, payload)
}

/// A close frame.
pub fn close(code: u16, reason: &[u8]) -> Vec<u8> {
    last(CLOSE, &[&code.to_be_bytes(), reason].concat())
}

/// The same frames as a client sends them. All have to be complete.
pub fn masked(frames: &[u8], key: [u8; 4]) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::new(), frames);
    while let [first, second, after @ ..] = rest {
        let (extended, length) = match second {
            126 => (2, usize::from(u16::from_be_bytes([after[0], after[1]]))),
            127 => (8, u64::from_be_bytes(after[..8].try_into().expect("eight bytes")) as usize),
            short => (0, usize::from(*short)),
        };
        out.extend_from_slice(&[*first, second | 0x80]);
        out.extend_from_slice(&after[..extended]);
        out.extend_from_slice(&key);
        let payload = &after[extended..extended + length];
        out.extend(payload.iter().enumerate().map(|(at, byte)| byte ^ key[at % 4]));
        rest = &after[extended + length..];
    }
    out
}

/// What a session of this role reports if the bytes arrive in pieces of these lengths, which are repeated.
pub fn read(role: Role, bytes: &[u8], pieces: &[usize]) -> Vec<Seen> {
    let mut session = Session::new(role, 1);
    let (mut seen, mut rest, mut lengths) = (Vec::new(), bytes, pieces.iter().cycle());
    while !rest.is_empty() {
        let length = lengths.next().map_or(rest.len(), |length| (*length).clamp(1, rest.len()));
        let (mut piece, after) = rest.split_at(length);
        rest = after;
        loop {
            let event = match session.next(&mut piece) {
                Ok(None) => break,
                Ok(Some(event)) => event,
                Err(broken) => {
                    seen.push(Seen::Broken(broken));
                    return seen;
                }
            };
            let now = match event {
                Event::Message(Kind::Text, bytes) => Seen::Text(String::from_utf8(bytes.to_vec()).expect("UTF-8")),
                Event::Message(Kind::Binary, bytes) => Seen::Binary(bytes.to_vec()),
                Event::Ping => Seen::Ping(Vec::new()),
                Event::Pong => Seen::Pong,
                Event::Close(Close { code, reason }) => Seen::Close(code, reason.to_owned()),
            };
            seen.push(match now {
                Seen::Ping(_) => {
                    let mut pong = Vec::new();
                    assert!(session.write_pong(&mut pong));
                    Seen::Ping(payload(&pong, role))
                }
                other => other,
            });
        }
    }
    seen
}

/// The payload of a short frame that a session of this role wrote.
pub fn payload(frame: &[u8], role: Role) -> Vec<u8> {
    match role {
        Role::Server => frame[2..].to_vec(),
        Role::Client => frame[6..].iter().enumerate().map(|(at, byte)| byte ^ frame[2 + at % 4]).collect(),
    }
}
