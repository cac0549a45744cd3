//! However a stream of events is cut, the same events are counted.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use redline_wire::{Amount, Counts, EventKind, EventReader, MessageCounts, MessageRules, Place, Pointer};

/// Rules that look at every message.
static RULES: LazyLock<MessageRules> = LazyLock::new(|| {
    let places = |pointer: &str| vec![Place::new(Pointer::parse(pointer).expect("a JSON Pointer"))];
    MessageRules {
        counts: Counts::Json(places("/choices/0/delta/content")),
        amount: Amount::Each(places("/n")),
        last_data: vec![b"[DONE]".to_vec()],
        last_events: vec![b"stop".to_vec()],
        errors: vec![Counts::Json(places("/error")), Counts::Events(vec![b"error".to_vec()])],
        timestamp: None,
        text: places("/choices/0/delta/content").pop(),
        until: None,
    }
});

/// The messages that these pieces have.
fn count<'a>(
    (kind, rules): (EventKind, Option<&'static MessageRules>),
    pieces: impl Iterator<Item = &'a [u8]>,
) -> MessageCounts {
    let mut reader = EventReader::new(kind, rules);
    let mut before = 0;
    for piece in pieces {
        reader.data(piece, false);
        let now = reader.counts().counted + reader.counts().aside;
        assert!(now >= before && now - before <= piece.len() as u64);
        before = now;
    }
    reader.end();
    reader.counts()
}

// The input: a byte for the kind, a byte for the length of the pieces, and then the body.
fuzz_target!(|data: &[u8]| {
    let Some((&[kind, length], body)) = data.split_first_chunk() else { return };
    let rules = (kind & 2 != 0).then(|| &*RULES);
    let read = (if kind & 1 == 0 { EventKind::Sse } else { EventKind::Ndjson }, rules);
    let whole = count(read, std::iter::once(body));
    assert_eq!(count(read, body.chunks(1 + usize::from(length))), whole);
    assert_eq!(count(read, body.chunks(1)), whole);
});
