//! How bytes are cut changes nothing.

mod peer;

use peer::{DATA, END_STREAM, answer, frame, go_away, headers, met, open, request, reset, written};
use proptest::prelude::*;
use redline_http2::{BodyOptions, Event, Session};
use redline_wire::{EventKind, KeptBody, KeptFields};

const ALL: BodyOptions = BodyOptions {
    hash: true,
    keep: KeptBody::Whole,
    fields: KeptFields::None,
    events: Some(EventKind::Chunks),
    messages: None,
};

/// A conversation with every kind of event.
fn conversation() -> Vec<u8> {
    [
        headers(1, &[(":status", "103")], 0),
        answer(3, b"three"),
        headers(1, &[(":status", "200"), ("server", "by hand")], 0),
        frame(DATA, 0, 1, b"one"),
        reset(5, 2),
        reset(7, 7),
        headers(9, &[(":status", "999")], END_STREAM),
        headers(11, &[(":status", "200"), ("content-length", "9")], 0),
        frame(DATA, END_STREAM, 11, b"short"),
        headers(1, &[("sum", "1")], END_STREAM),
        go_away(13, 3),
        answer(13, b""),
    ]
    .concat()
}

fn asking() -> Session {
    let mut session = met(&[]);
    open(&mut session, 8, ALL);
    written(&mut session);
    session
}

/// Feed pieces; with `writing`, write between them. Returns the events but those that say how far an answer came.
fn events<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, writing: bool) -> Vec<Event> {
    let mut session = asking();
    let mut events = Vec::new();
    for piece in pieces {
        session.feed(piece, &mut events).expect("the peer is in order");
        if writing {
            written(&mut session);
        }
    }
    assert!(session.is_finished() || !writing);
    events.retain(|event| !matches!(event, Event::Begun { .. } | Event::Stream { .. }));
    events
}

#[test]
fn cut_once_anywhere() {
    let bytes = conversation();
    let whole = events([&bytes[..]], false);
    assert_eq!(whole.len(), 9, "{whole:?}");
    for cut in 0..=bytes.len() {
        let (left, right) = bytes.split_at(cut);
        assert_eq!(events([left, right], false), whole, "cut at {cut}");
        assert_eq!(events([left, right], true), whole, "cut at {cut}");
    }
}

proptest! {
    #[test]
    fn cut_anyhow(sizes in prop::collection::vec(1_usize..40, 1..200), writing: bool) {
        let bytes = conversation();
        let mut rest = &bytes[..];
        let mut pieces = Vec::new();
        for size in sizes {
            let (piece, after) = rest.split_at(size.min(rest.len()));
            pieces.push(piece);
            rest = after;
        }
        pieces.push(rest);
        prop_assert_eq!(events(pieces, writing), events([&bytes[..]], false));
    }

    /// Whatever arrives, each token is reported at most once and the output ends.
    #[test]
    fn anything(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        let mut session = asking();
        session.open(&request("POST"), Some(vec![0; 100_000].into()), ALL, 8).unwrap();
        let mut events = Vec::new();
        let _ = session.feed(&bytes, &mut events);
        events.retain(|event| !matches!(event, Event::Stream { .. }));
        let mut out = Vec::new();
        session.output(&mut out, usize::MAX);
        prop_assert!(events.len() <= 20 && out.len() < 200_000);
    }
}
