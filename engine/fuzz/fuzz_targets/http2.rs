//! Whatever bytes an HTTP/2 server sends, however they are cut: nothing breaks, memory is bounded, and each request is
//! reported at most once.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use redline_http2::{BodyOptions, Event, Session};
use redline_wire::{EventKind, KeptBody, KeptFields};

/// Requests open at first; another is opened after each piece, while there is room.
const OPEN: u32 = 4;
const BODY: usize = 70_000;
const MOST_OUT: usize = 4096;
/// A frame, and its head.
const FRAME: usize = 16_384 + 9;

/// SETTINGS and their acknowledgement, so that inputs need not contain them.
const MEET: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 4, 1, 0, 0, 0, 0];

fn open(session: &mut Session, token: u32) {
    let method: &[u8] = if token % 4 == 1 { b"HEAD" } else { b"POST" };
    let fields: [(&[u8], &[u8]); 4] =
        [(b":method", method), (b":scheme", b"http"), (b":authority", b"a"), (b":path", b"/")];
    let body = (token % 4 == 2).then(|| Arc::from(vec![7; BODY]));
    let events = [None, Some(EventKind::Sse), Some(EventKind::Chunks)][token as usize % 3];
    let options = BodyOptions {
        hash: token % 2 == 0,
        keep: [KeptBody::Whole, KeptBody::None, KeptBody::Beginning][token as usize % 3],
        fields: KeptFields::None,
        events,
        messages: None,
    };
    session.open(&fields, body, options, token).expect("there is room");
}

fn token_of(event: &Event) -> Option<u32> {
    match event {
        Event::Answer { token, .. }
        | Event::Refused { token, .. }
        | Event::Unprocessed { token }
        | Event::Malformed { token, .. } => Some(*token),
        Event::Begun { .. } | Event::Stream { .. } | Event::GoAway { .. } => None,
    }
}

// The input: a byte for what is done between pieces, a byte for their length, and then what the server sends.
fuzz_target!(|data: &[u8]| {
    let Some((&[habits, length], mut rest)) = data.split_first_chunk() else { return };
    let mut session = Session::new().expect("a session");
    let mut events = Vec::new();
    if habits & 1 == 0 {
        session.feed(MEET, &mut events).expect("SETTINGS are in order");
    }
    for token in 0..OPEN {
        open(&mut session, token);
    }
    let mut reported = vec![false; OPEN as usize];
    let mut out = Vec::new();
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.len().min(1 + usize::from(length)));
        rest = after;
        if habits & 2 == 0 {
            out.clear();
            session.output(&mut out, MOST_OUT);
            assert!(out.len() <= MOST_OUT + FRAME, "{} bytes pile up", out.len());
        }
        let fed = session.feed(piece, &mut events);
        for token in events.drain(..).filter_map(|event| token_of(&event)) {
            assert!(!std::mem::replace(&mut reported[token as usize], true), "{token} is reported again");
        }
        if fed.is_err() {
            assert!(session.room() == 0 && session.is_finished());
            break;
        }
        if habits & 4 != 0 && !reported[0] {
            session.cancel(0);
            reported[0] = true;
        }
        if session.room() > 0 && reported.len() < 64 {
            open(&mut session, reported.len() as u32);
            reported.push(false);
        }
    }
});
