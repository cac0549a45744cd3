//! However a stream of events is cut, the same events are counted.
#![no_main]

use libfuzzer_sys::fuzz_target;
use redline_wire::{EventKind, EventReader};

/// How many events these pieces have.
fn count<'a>(kind: EventKind, pieces: impl Iterator<Item = &'a [u8]>) -> u64 {
    let mut reader = EventReader::new(kind);
    let mut before = 0;
    for piece in pieces {
        reader.data(piece, false);
        assert!(reader.events() >= before && reader.events() - before <= piece.len() as u64);
        before = reader.events();
    }
    reader.end();
    reader.events()
}

// The input: a byte for the kind, a byte for the length of the pieces, and then the body.
fuzz_target!(|data: &[u8]| {
    let Some((&[kind, length], body)) = data.split_first_chunk() else { return };
    let kind = if kind % 2 == 0 { EventKind::Sse } else { EventKind::Ndjson };
    let whole = count(kind, std::iter::once(body));
    assert_eq!(count(kind, body.chunks(1 + usize::from(length))), whole);
    assert_eq!(count(kind, body.chunks(1)), whole);
});
