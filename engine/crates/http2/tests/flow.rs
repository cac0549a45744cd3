//! Both sides honour flow control, and what a peer can make a session keep or do is bounded.

mod peer;

use std::sync::Arc;

use peer::{
    ACK, CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, PING, RST_STREAM, Sent, Windows, answer, block, feed,
    frame, frames, headers, met, open, plain, request, written,
};
use redline_http2::{BodyOptions, Error, Event, MOST_FIELDS, Rule};
use redline_wire::{KeptBody, KeptFields};

/// An error code (RFC 9113, section 7).
const ENHANCE_YOUR_CALM: u32 = 11;

const KEEP: BodyOptions =
    BodyOptions { hash: false, keep: KeptBody::Whole, fields: KeptFields::None, events: None, messages: None };
const COUNT: BodyOptions =
    BodyOptions { hash: false, keep: KeptBody::None, fields: KeptFields::None, events: None, messages: None };

#[test]
fn a_long_body_keeps_to_small_windows() {
    let body: Arc<[u8]> = (0..5_000_000_u32).map(|at| (at % 251) as u8).collect();
    let initial = 1000;
    let mut session = met(&[(4, initial)]);
    let mut windows = Windows::new(initial);
    let length = body.len().to_string();
    let fields = [&request("POST")[..], &[(b"content-length", length.as_bytes())]].concat();
    session.open(&fields, Some(body.clone()), COUNT, 4).unwrap();
    let mut received = Vec::new();
    let mut ended = false;
    for round in 0..2_000_000 {
        if ended {
            break;
        }
        let mut bytes = Vec::new();
        session.output(&mut bytes, 20_000);
        assert!(bytes.len() <= 20_000 + 16_384 + 9, "{} bytes pile up", bytes.len());
        for sent in frames(&bytes).iter().filter(|sent| sent.kind == DATA) {
            windows.spend(sent);
            received.extend_from_slice(&sent.payload);
            ended |= sent.flags & END_STREAM != 0;
        }
        // The windows open in turn, by sizes that match nothing, and one of them always lags.
        let grants = [windows.grant(round % 2, 7919), windows.grant(1, 1)];
        feed(&mut session, &grants.concat()).unwrap();
    }
    assert!(ended && received == *body);
    assert_eq!(feed(&mut session, &answer(1, b"thanks")), Ok(vec![plain(4, 200, 6)]));
}

#[test]
fn an_answer_before_the_body_is_sent_ends_the_request() {
    let mut session = met(&[]);
    session.open(&request("POST"), Some(vec![0; 1_000_000].into()), COUNT, 1).unwrap();
    written(&mut session); // As much as the windows allow.
    let bytes = headers(1, &[(":status", "413")], END_STREAM);
    assert_eq!(feed(&mut session, &bytes), Ok(vec![plain(1, 413, 0)]));
    let sent = written(&mut session);
    assert!(sent.iter().any(|sent| sent.kind == RST_STREAM) && sent.iter().all(|sent| sent.kind != DATA), "{sent:?}");
    assert_eq!(session.room(), met(&[]).room());
}

#[test]
fn received_bodies_replenish_the_windows() {
    let mut session = met(&[]);
    open(&mut session, 1, COUNT);
    written(&mut session);
    feed(&mut session, &headers(1, &[(":status", "200")], 0)).unwrap();
    let (piece, mut left) = (frame(DATA, 0, 1, &[0; 16_384]), 16_i64 << 20);
    for _ in 0..4096 {
        assert_eq!(feed(&mut session, &piece), Ok(vec![]));
        left -= 16_384;
        assert!(left >= 0, "the client forgot to open its window");
        for sent in written(&mut session).iter().filter(|sent| sent.stream == 1) {
            left += i64::from(u32::from_be_bytes(sent.payload[..].try_into().unwrap()));
        }
    }
    assert_eq!(feed(&mut session, &frame(DATA, END_STREAM, 1, b"")), Ok(vec![plain(0, 200, 4096 * 16_384)]));
}

#[test]
fn a_long_list_of_fields_is_malformed() {
    let mut session = met(&[]);
    open(&mut session, 1, COUNT);
    written(&mut session);
    let value = "v".repeat(1000);
    let fields = [vec![(":status", "200")], vec![("name", value.as_str()); 70]].concat();
    let block = block(&fields);
    let mut pieces = block.chunks(16_384).peekable();
    let mut bytes = frame(HEADERS, END_STREAM, 1, pieces.next().unwrap());
    while let Some(piece) = pieces.next() {
        bytes.extend(frame(CONTINUATION, if pieces.peek().is_none() { END_HEADERS } else { 0 }, 1, piece));
    }
    let expected = Event::Malformed { token: 0, rule: Rule::FieldsTooLong, field: Some("name".into()) };
    assert_eq!(feed(&mut session, &bytes), Ok(vec![expected]));
}

#[test]
fn a_list_of_many_fields_is_malformed() {
    let too_many = Event::Malformed { token: 0, rule: Rule::TooManyFields, field: Some("a".into()) };
    assert!(Rule::TooManyFields.to_string().contains(&MOST_FIELDS.to_string()));
    for (count, expected) in [(MOST_FIELDS, plain(0, 200, 0)), (MOST_FIELDS + 1, too_many)] {
        let mut session = met(&[]);
        open(&mut session, 1, COUNT);
        written(&mut session);
        let fields = [vec![(":status", "200")], vec![("a", "b"); count]].concat();
        assert_eq!(feed(&mut session, &headers(1, &fields, END_STREAM)), Ok(vec![expected]), "{count} fields");
    }
}

#[test]
fn late_frames_of_streams_that_were_given_up_are_no_flood() {
    let mut session = met(&[]);
    open(&mut session, 2, COUNT);
    written(&mut session);
    session.cancel(0);
    written(&mut session);
    feed(&mut session, &headers(1, &[(":status", "200")], 0)).unwrap();
    for _ in 0..5000 {
        feed(&mut session, &frame(DATA, 0, 1, b"late")).unwrap();
        written(&mut session);
    }
    assert_eq!(feed(&mut session, &answer(3, b"ok")), Ok(vec![plain(1, 200, 2)]));
}

#[test]
fn a_body_past_what_is_kept_is_malformed() {
    let mut session = met(&[]);
    open(&mut session, 1, KEEP);
    written(&mut session);
    let mut events = feed(&mut session, &headers(1, &[(":status", "200")], 0)).unwrap();
    for _ in 0..65 {
        events.extend(feed(&mut session, &frame(DATA, 0, 1, &[0; 16_384])).unwrap());
    }
    let too_long = Event::Malformed { token: 0, rule: Rule::BodyTooLong, field: None };
    assert_eq!(events, [Event::Begun { token: 0 }, too_long]);
    assert!(written(&mut session).iter().any(|sent| sent.kind == RST_STREAM));
}

#[test]
fn the_beginning_of_a_long_body_is_kept_where_that_is_enough() {
    let mut session = met(&[]);
    open(&mut session, 1, BodyOptions { keep: KeptBody::Beginning, ..KEEP });
    written(&mut session);
    let mut events = feed(&mut session, &headers(1, &[(":status", "200")], 0)).unwrap();
    for last in (0..65).rev() {
        events.extend(feed(&mut session, &frame(DATA, u8::from(last == 0), 1, &[0; 16_384])).unwrap());
    }
    let Some(Event::Answer { body_length, body, .. }) = events.last() else { panic!("{events:?}") };
    assert_eq!((*body_length, body.as_ref().unwrap().len()), (65 * 16_384, redline_http2::MOST_KEPT_BYTES));
}

#[test]
fn pings_are_answered_and_floods_end_the_connection() {
    let mut session = met(&[]);
    feed(&mut session, &frame(PING, 0, 0, b"12345678")).unwrap();
    assert_eq!(written(&mut session), [Sent { kind: PING, flags: ACK, stream: 0, payload: b"12345678".to_vec() }]);
    for flood in [frame(PING, 0, 0, b"12345678"), peer::settings(&[])] {
        let mut session = met(&[]);
        let fed = (0..20_000).find_map(|_| feed(&mut session, &flood).err());
        assert_eq!(fed, Some(Error::Malformed { code: ENHANCE_YOUR_CALM }), "nobody reads, and the peer keeps sending");
    }
}

#[test]
fn continuations_without_end_end_the_connection() {
    let mut session = met(&[]);
    open(&mut session, 1, COUNT);
    written(&mut session);
    feed(&mut session, &frame(HEADERS, 0, 1, &block(&[(":status", "200")]))).unwrap();
    let piece = frame(CONTINUATION, 0, 1, &block(&[("a", "b")]));
    let fed = (0..1000).find_map(|_| feed(&mut session, &piece).err());
    assert_eq!(fed, Some(Error::Malformed { code: ENHANCE_YOUR_CALM }));
}
