//! The events that a session reports for what a server may do.

mod peer;

use peer::{
    ACK, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, RST_STREAM, SETTINGS, Sent, answer, block, feed, frame,
    frames, go_away, headers, met, open, plain, request, reset, written,
};
use redline_http2::{BodyOptions, Error, Event, Rule, Session, code_name};
use redline_wire::{EventKind, KeptBody, KeptFields, MessageCounts};

/// An error code (RFC 9113, section 7).
const STREAM_CLOSED: u32 = 5;

const HASH: BodyOptions =
    BodyOptions { hash: true, keep: KeptBody::None, fields: KeptFields::None, events: None, messages: None };
const KEEP: BodyOptions =
    BodyOptions { hash: false, keep: KeptBody::Whole, fields: KeptFields::None, events: None, messages: None };
const COUNT: BodyOptions =
    BodyOptions { hash: false, keep: KeptBody::None, fields: KeptFields::None, events: None, messages: None };

#[test]
fn the_preface_comes_first_and_settings_are_answered() {
    let mut session = Session::new().unwrap();
    assert!(session.wants_write());
    let mut bytes = Vec::new();
    session.output(&mut bytes, usize::MAX);
    assert!(bytes.starts_with(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
    assert_eq!(frames(&bytes)[0].kind, SETTINGS);
    assert!(!session.wants_write());
    feed(&mut session, &peer::settings(&[(3, 7)])).unwrap();
    assert_eq!(written(&mut session), [Sent { kind: SETTINGS, flags: ACK, stream: 0, payload: vec![] }]);
    assert_eq!(session.room(), 7);
}

#[test]
fn answers_are_reported_with_what_was_requested() {
    let mut session = met(&[]);
    for (token, options) in [(7, COUNT), (8, HASH), (9, KEEP)] {
        session.open(&request("GET"), None, options, token).unwrap();
    }
    assert_eq!(written(&mut session).iter().filter(|sent| sent.kind == HEADERS).count(), 3);
    let bytes = [answer(5, b"abc"), answer(3, b"abc"), answer(1, b"abc")].concat();
    let events = feed(&mut session, &bytes).unwrap();
    let sha = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    let kept = Some(Box::from(*b"abc"));
    assert_eq!(
        events[0],
        Event::Answer {
            token: 9,
            status: 200,
            grpc_status: None,
            body_length: 3,
            body_sha256: None,
            body: kept,
            events: None,
            fields: None
        }
    );
    let Event::Answer { token: 8, body_sha256: Some(hash), .. } = &events[1] else { panic!("{events:?}") };
    assert_eq!(hash.map(|byte| format!("{byte:02x}")).concat(), sha);
    assert_eq!(events[2], plain(7, 200, 3));
    assert_eq!(session.room(), met(&[]).room());
}

#[test]
fn interim_answers_are_passed_over_and_trailers_taken() {
    let mut session = met(&[]);
    open(&mut session, 1, KEEP);
    written(&mut session);
    let bytes = [
        headers(1, &[(":status", "103"), ("link", "</style.css>")], 0),
        headers(1, &[(":status", "100")], 0),
        headers(1, &[(":status", "404")], 0),
        frame(DATA, 0, 1, b"no"),
        headers(1, &[("checksum", "1")], END_STREAM),
    ]
    .concat();
    let body = Some(Box::from(*b"no"));
    let expected = Event::Answer {
        token: 0,
        status: 404,
        grpc_status: None,
        body_length: 2,
        body_sha256: None,
        body,
        events: None,
        fields: None,
    };
    assert_eq!(feed(&mut session, &bytes), Ok(vec![expected]));
}

#[test]
fn an_answer_in_pieces_is_reported_when_its_head_comes() {
    let mut session = met(&[]);
    open(&mut session, 1, COUNT);
    written(&mut session);
    assert_eq!(feed(&mut session, &headers(1, &[(":status", "103")], 0)), Ok(vec![]));
    let head = [headers(1, &[(":status", "200")], 0), frame(DATA, 0, 1, b"a")].concat();
    assert_eq!(feed(&mut session, &head), Ok(vec![Event::Begun { token: 0 }]));
    assert_eq!(feed(&mut session, &frame(DATA, 0, 1, b"b")), Ok(vec![]));
    assert_eq!(feed(&mut session, &frame(DATA, END_STREAM, 1, b"c")), Ok(vec![plain(0, 200, 3)]));
}

#[test]
fn some_answers_have_a_length_and_no_body() {
    let mut session = met(&[]);
    session.open(&request("HEAD"), None, KEEP, 1).unwrap();
    session.open(&request("GET"), None, COUNT, 2).unwrap();
    session.open(&request("GET"), None, COUNT, 3).unwrap();
    written(&mut session);
    let bytes = [
        headers(1, &[(":status", "200"), ("content-length", "5000")], END_STREAM),
        headers(3, &[(":status", "204")], END_STREAM),
        headers(5, &[(":status", "304"), ("content-length", "12")], END_STREAM),
    ]
    .concat();
    let head = Event::Answer {
        token: 1,
        status: 200,
        grpc_status: None,
        body_length: 0,
        body_sha256: None,
        events: None,
        body: Some(Box::default()),
        fields: None,
    };
    assert_eq!(feed(&mut session, &bytes), Ok(vec![head, plain(2, 204, 0), plain(3, 304, 0)]));
}

#[test]
fn what_is_not_http_is_malformed_and_the_connection_continue_after_end() {
    let head = |fields: &[(&str, &str)], flags| headers(1, fields, flags);
    let ok = (":status", "200");
    let cases: [(Vec<u8>, Rule, Option<&str>); 21] = [
        (head(&[(":status", "099")], END_STREAM), Rule::StatusDigits, Some(":status")),
        (head(&[(":status", "2000")], END_STREAM), Rule::StatusDigits, Some(":status")),
        (head(&[(":status", "abc")], END_STREAM), Rule::StatusDigits, Some(":status")),
        (head(&[(":status", "101")], 0), Rule::Status101, None),
        (head(&[(":status", "103")], END_STREAM), Rule::InterimEnd, None),
        (head(&[("server", "x")], END_STREAM), Rule::StatusMissing, None),
        (head(&[ok, ok], END_STREAM), Rule::StatusTwice, Some(":status")),
        (head(&[("server", "x"), ok], END_STREAM), Rule::PseudoLate, Some(":status")),
        (head(&[(":path", "/"), ok], END_STREAM), Rule::PseudoField, Some(":path")),
        (head(&[ok, ("Server", "x")], END_STREAM), Rule::NameUpperCase, Some("Server")),
        (head(&[ok, ("a b\n", "x")], END_STREAM), Rule::NameByte, Some("a b\\n")),
        (head(&[ok, ("", "x")], END_STREAM), Rule::NameEmpty, Some("")),
        (head(&[ok, ("a", "x\0")], END_STREAM), Rule::ValueByte, Some("a")),
        (head(&[ok, ("a", " x")], END_STREAM), Rule::ValueSpace, Some("a")),
        (head(&[ok, ("connection", "close")], END_STREAM), Rule::ConnectionField, Some("connection")),
        (head(&[ok, ("content-length", "+2")], END_STREAM), Rule::LengthNumber, Some("content-length")),
        (
            head(&[ok, ("content-length", "2"), ("content-length", "3")], END_STREAM),
            Rule::LengthsDiffer,
            Some("content-length"),
        ),
        (
            [head(&[ok, ("content-length", "3")], 0), frame(DATA, END_STREAM, 1, b"ab")].concat(),
            Rule::DataTooShort,
            None,
        ),
        ([head(&[ok, ("content-length", "1")], 0), frame(DATA, 0, 1, b"ab")].concat(), Rule::DataTooLong, None),
        (head(&[ok, ("content-length", "1")], END_STREAM), Rule::DataTooShort, None),
        ([head(&[ok], 0), head(&[("sum", "1")], 0)].concat(), Rule::TrailersOpen, None),
    ];
    for (bytes, rule, field) in cases {
        let what = format!("{rule} {field:?}");
        let mut session = met(&[]);
        open(&mut session, 2, COUNT);
        written(&mut session);
        let expected = Event::Malformed { token: 0, rule, field: field.map(Box::from) };
        assert_eq!(feed(&mut session, &bytes), Ok(vec![expected]), "{what}");
        assert!(written(&mut session).iter().any(|sent| sent.kind == RST_STREAM && sent.stream == 1), "{what}");
        assert_eq!(feed(&mut session, &answer(3, b"ok")), Ok(vec![plain(1, 200, 2)]), "{what}");
    }
}

#[test]
fn a_reset_is_reported_by_its_code() {
    let mut session = met(&[]);
    open(&mut session, 2, COUNT);
    written(&mut session);
    let events = feed(&mut session, &[reset(1, 11), reset(3, 7)].concat());
    assert_eq!(events, Ok(vec![Event::Refused { token: 0, code: 11 }, Event::Unprocessed { token: 1 }]));
    assert_eq!(feed(&mut session, &reset(1, 11)), Ok(vec![]));
}

#[test]
fn past_the_last_stream_of_a_goaway_nothing_was_processed() {
    let mut session = met(&[]);
    open(&mut session, 3, COUNT);
    written(&mut session);
    session.open(&request("GET"), None, COUNT, 3).unwrap(); // Not written when the GOAWAY comes.
    let mut events = feed(&mut session, &go_away(3, 0)).unwrap();
    assert_eq!(events.remove(0), Event::GoAway { last: 3, code: 0 });
    events.sort_by_key(|event| format!("{event:?}"));
    assert_eq!(events, [Event::Unprocessed { token: 2 }, Event::Unprocessed { token: 3 }]);
    assert_eq!(session.room(), 0);
    assert_eq!(session.open(&request("GET"), None, COUNT, 4), Err(Error::NoRoom));
    assert!(!session.is_finished());
    assert_eq!(feed(&mut session, &[answer(1, b"a"), answer(3, b"b")].concat()).unwrap().len(), 2);
    assert!(session.is_finished());
}

#[test]
fn a_graceful_goaway_leaves_what_was_sent() {
    let mut session = met(&[]);
    open(&mut session, 1, COUNT);
    written(&mut session);
    session.open(&request("GET"), None, COUNT, 1).unwrap();
    let events = feed(&mut session, &go_away(0x7fff_ffff, 0)).unwrap();
    assert_eq!(events, [Event::GoAway { last: 0x7fff_ffff, code: 0 }, Event::Unprocessed { token: 1 }]);
    assert_eq!(feed(&mut session, &answer(1, b"a")), Ok(vec![plain(0, 200, 1)]));
    assert!(session.is_finished());
}

#[test]
fn a_cancelled_token_is_never_reported() {
    let mut session = met(&[]);
    open(&mut session, 2, COUNT);
    written(&mut session);
    session.cancel(0);
    session.cancel(77);
    assert_eq!(feed(&mut session, &[answer(1, b"late"), answer(3, b"ok")].concat()), Ok(vec![plain(1, 200, 2)]));
    assert!(written(&mut session).iter().any(|sent| sent.kind == RST_STREAM && sent.stream == 1));
    // A request that was not written leaves no trace.
    session.open(&request("GET"), None, COUNT, 2).unwrap();
    session.cancel(2);
    assert_eq!(written(&mut session), []);
    assert_eq!(feed(&mut session, b""), Ok(vec![]));
    let room = session.room();
    session.open(&request("GET"), None, COUNT, 3).unwrap();
    assert_eq!(session.room(), room - 1);
}

#[test]
fn room_follows_the_peers_settings() {
    let mut session = met(&[(3, 2)]);
    open(&mut session, 2, COUNT);
    assert_eq!(session.room(), 0);
    assert_eq!(session.open(&request("GET"), None, COUNT, 9), Err(Error::NoRoom));
    written(&mut session);
    feed(&mut session, &peer::settings(&[(3, 5)])).unwrap();
    assert_eq!(session.room(), 3);
    feed(&mut session, &answer(1, b"")).unwrap();
    assert_eq!(session.room(), 4);
    feed(&mut session, &peer::settings(&[(3, 0)])).unwrap();
    assert_eq!(session.room(), 0);
}

#[test]
fn who_breaks_the_connection_is_malformed_once_and_for_all() {
    let cases: [(&str, Vec<u8>); 7] = [
        ("data before a head", frame(DATA, 0, 1, b"ab")),
        ("HTTP/1.1", b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()),
        (
            "a push",
            frame(peer::PUSH_PROMISE, END_HEADERS, 1, &[&[0, 0, 0, 2][..], &block(&[(":method", "GET")])].concat()),
        ),
        ("data on no stream", frame(DATA, 0, 9, b"x")),
        ("a frame that is too large", frame(DATA, 0, 1, &vec![0; 16_385])),
        ("a block that is not HPACK", frame(HEADERS, END_HEADERS, 1, &[0xff; 40])),
        ("after a GOAWAY", [go_away(1, 0), frame(DATA, 0, 9, b"x")].concat()),
    ];
    for (what, bytes) in cases {
        let mut session = if what == "HTTP/1.1" { Session::new().unwrap() } else { met(&[]) };
        open(&mut session, 1, COUNT);
        if what != "HTTP/1.1" {
            written(&mut session);
        }
        let error = feed(&mut session, &bytes).expect_err(what);
        assert!(matches!(error, Error::Malformed { .. }), "{what}");
        assert_eq!(error.to_string().contains("HTTP/1,"), what == "HTTP/1.1", "{error}");
        assert_eq!(feed(&mut session, &answer(1, b"")), Err(error), "{what}");
        assert_eq!((session.room(), session.is_finished()), (0, true), "{what}");
    }
}

#[test]
fn an_answer_that_goes_on_after_its_end_is_right_and_ends_the_connection() {
    let mut session = met(&[]);
    open(&mut session, 2, COUNT);
    written(&mut session);
    let mut events = Vec::new();
    let bytes = [answer(3, b"right"), answer(1, b"once"), frame(DATA, END_STREAM, 1, b"!"), answer(1, b"")].concat();
    let error = session.feed(&bytes, &mut events).expect_err("frames after the end");
    assert_eq!((error, error.is_surplus()), (Error::Malformed { code: STREAM_CLOSED }, true));
    assert_eq!(events, [plain(1, 200, 5), plain(0, 200, 4)]);
    assert_eq!((code_name(STREAM_CLOSED), code_name(99)), ("STREAM_CLOSED", "unknown error"));
}

#[test]
fn streams_are_watched_until_many_more_were_opened() {
    let mut session = met(&[]);
    for number in 0..5000 {
        session.open(&request("GET"), None, COUNT, number).unwrap();
        written(&mut session);
        assert_eq!(feed(&mut session, &answer(2 * number + 1, b"")), Ok(vec![plain(number, 200, 0)]));
        if number == 4990 {
            // The stream is so old that how it ended is no longer known.
            assert_eq!(feed(&mut session, &answer(1, b"")), Ok(vec![]));
        }
    }
    assert_eq!(feed(&mut session, &answer(9001, b"")), Err(Error::Malformed { code: STREAM_CLOSED }));
}

#[test]
fn the_output_ends_with_a_goaway_when_the_peer_is_wrong() {
    let mut session = met(&[]);
    feed(&mut session, &frame(DATA, 0, 9, b"x")).unwrap_err();
    assert_eq!(written(&mut session).last().map(|sent| sent.kind), Some(GOAWAY));
    assert!(!session.wants_write());
}

/// The events that this stream reports for these frames, each fed alone: how many events of its body there were so far, and
/// whether its outcome follows.
fn so_far(kind: EventKind, fields: &[(&str, &str)], pieces: &[(&[u8], u8)]) -> (Vec<(u64, bool)>, Event) {
    let mut session = met(&[]);
    session.open(&request("GET"), None, BodyOptions { events: Some(kind), ..COUNT }, 4).unwrap();
    written(&mut session);
    let head = headers(1, &[&[(":status", "200")], fields].concat(), 0);
    let frames = pieces.iter().map(|(data, flags)| frame(DATA, *flags, 1, data));
    let mut news = Vec::new();
    for bytes in std::iter::once(head).chain(frames) {
        for event in feed(&mut session, &bytes).unwrap() {
            match event {
                Event::Begun { token: 4 } => {}
                Event::Stream { token: 4, so_far, is_last, .. } => news.push((so_far.messages.counted, is_last)),
                outcome => return (news, outcome),
            }
        }
    }
    panic!("no outcome: {news:?}")
}

#[test]
fn the_events_of_a_stream_are_counted_as_they_arrive() {
    let sse = [("content-type", "text/event-stream; charset=utf-8")];
    let pieces: [(&[u8], u8); 3] = [(b"data: 1\n", 0), (b"\ndata: 2\n\n:\n\n", 0), (b"data: 3\n\n", END_STREAM)];
    let (news, outcome) = so_far(EventKind::Sse, &sse, &pieces);
    assert_eq!(news, [(0, false), (0, false), (2, false), (3, true)]);
    assert!(
        matches!(outcome, Event::Answer { events: Some(MessageCounts { counted: 3, .. }), body_length: 30, .. }),
        "{outcome:?}"
    );
    let (news, outcome) = so_far(EventKind::Chunks, &[], &[(b"a", 0), (b"", 0), (b"bc", END_STREAM)]);
    assert_eq!(news.last(), Some(&(2, true)));
    assert!(matches!(outcome, Event::Answer { events: Some(MessageCounts { counted: 2, .. }), .. }), "{outcome:?}");
    // The end of the stream ends a last line.
    let ndjson = [("content-type", "application/x-ndjson")];
    let (news, outcome) = so_far(EventKind::Ndjson, &ndjson, &[(b"{}\n{}", 0), (b"", END_STREAM)]);
    assert_eq!(news, [(0, false), (1, false), (2, true)]);
    assert!(matches!(outcome, Event::Answer { events: Some(MessageCounts { counted: 2, .. }), .. }), "{outcome:?}");
}

#[test]
fn other_answers_are_no_streams() {
    let gzip = [("content-type", "application/x-ndjson"), ("content-encoding", "gzip")];
    for fields in [&[("content-type", "application/json")][..], &gzip, &[]] {
        let (news, outcome) = so_far(EventKind::Ndjson, fields, &[(b"{}\n", END_STREAM)]);
        assert!(news.is_empty() && matches!(outcome, Event::Answer { events: None, .. }), "{outcome:?}");
    }
}

#[test]
fn the_fields_that_were_requested_are_reported() {
    let mut session = met(&[]);
    for (token, kept) in [(1, KeptFields::All), (2, KeptFields::SetCookie), (3, KeptFields::SetCookie)] {
        session.open(&request("GET"), None, BodyOptions { fields: kept, ..COUNT }, token).unwrap();
    }
    written(&mut session);
    let early = |stream| headers(stream, &[(":status", "103"), ("set-cookie", "x=y")], 0);
    let last = |stream, fields: &[(&str, &str)]| {
        headers(stream, &[&[(":status", "200")], fields, &[("b", "c")]].concat(), END_STREAM)
    };
    let cookies = [("set-cookie", "a=b"), ("set-cookie", "c=d")];
    let bytes = [early(1), last(1, &cookies), early(3), last(3, &cookies), early(5), last(5, &[])].concat();
    let events = feed(&mut session, &bytes).unwrap();
    let fields = events.iter().filter_map(|event| match event {
        Event::Answer { fields, .. } => Some(fields.as_deref().map(|fields| std::str::from_utf8(fields).unwrap())),
        _ => None,
    });
    let both = "set-cookie: a=b\nset-cookie: c=d\n";
    assert_eq!(fields.collect::<Vec<_>>(), [Some(&*format!("{both}b: c\n")), Some(both), None]);
}
