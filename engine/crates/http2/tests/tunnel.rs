//! Another protocol on a stream (RFC 8441), with a server that may do anything.

mod peer;

use peer::{
    ACK, DATA, END_STREAM, HEADERS, PING, RST_STREAM, SETTINGS, Sent, WINDOW_UPDATE, Windows, answer, frame, frames,
    go_away, headers, reset, settings,
};
use redline_http2::{End, Error, Rule, Tunnel};

/// SETTINGS of a server (RFC 9113, section 6.5.2; RFC 8441, section 3).
const INITIAL_WINDOW_SIZE: u16 = 4;
const ENABLE_CONNECT_PROTOCOL: u16 = 8;
const ENABLES: &[(u16, u32)] = &[(ENABLE_CONNECT_PROTOCOL, 1)];

/// An error code (RFC 9113, section 7).
const PROTOCOL_ERROR: u32 = 1;
const INTERNAL_ERROR: u32 = 2;
const FLOW_CONTROL_ERROR: u32 = 3;
const STREAM_CLOSED: u32 = 5;
const REFUSED_STREAM: u32 = 7;

const ASKED: [(&str, &str); 6] = [
    (":method", "CONNECT"),
    (":protocol", "websocket"),
    (":scheme", "http"),
    (":authority", "127.0.0.1"),
    (":path", "/chat"),
    ("sec-websocket-version", "13"),
];

fn connect(tunnel: &mut Tunnel) {
    assert_eq!(tunnel.may_connect(), Ok(true));
    tunnel.connect(&ASKED.map(|(name, value)| (name.as_bytes(), value.as_bytes()))).unwrap();
}

fn written(tunnel: &mut Tunnel) -> Vec<Sent> {
    let mut bytes = Vec::new();
    tunnel.output(&mut bytes, usize::MAX);
    frames(&bytes)
}

/// What the tunnel sent on its stream, and whether it has ended it.
fn carried(sent: &[Sent]) -> (Vec<u8>, bool) {
    let data = || sent.iter().filter(|sent| sent.kind == DATA && sent.stream == 1);
    (data().flat_map(|sent| sent.payload.clone()).collect(), data().any(|sent| sent.flags & END_STREAM != 0))
}

fn feed(tunnel: &mut Tunnel, bytes: &[u8]) -> (Vec<u8>, Result<(), End>) {
    let mut received = Vec::new();
    let fed = tunnel.feed(bytes, &mut received);
    (received, fed)
}

/// A tunnel whose server has sent these SETTINGS, and then this.
fn asked(entries: &[(u16, u32)]) -> Tunnel {
    let mut tunnel = Tunnel::new().unwrap();
    assert_eq!(feed(&mut tunnel, &settings(entries)), (vec![], Ok(())));
    connect(&mut tunnel);
    assert!(written(&mut tunnel).iter().any(|sent| sent.kind == HEADERS));
    tunnel
}

fn connected(entries: &[(u16, u32)]) -> Tunnel {
    let mut tunnel = asked(entries);
    assert_eq!(feed(&mut tunnel, &headers(1, &[(":status", "200"), ("x", "y")], 0)), (vec![], Ok(())));
    tunnel
}

#[test]
fn nothing_is_asked_before_the_settings_allow_it() {
    let mut tunnel = Tunnel::new().unwrap();
    assert_eq!(tunnel.may_connect(), Ok(false));
    assert_eq!(written(&mut tunnel).len(), 2, "SETTINGS and the window of the connection");
    // SETTINGS may come late and in pieces.
    let (begin, rest) = (settings(ENABLES)[..11].to_vec(), settings(ENABLES)[11..].to_vec());
    assert_eq!(feed(&mut tunnel, &begin), (vec![], Ok(())));
    assert_eq!(tunnel.may_connect(), Ok(false));
    assert_eq!(feed(&mut tunnel, &rest), (vec![], Ok(())));
    connect(&mut tunnel);
    let sent = written(&mut tunnel);
    let head = sent.iter().find(|sent| sent.kind == HEADERS).unwrap();
    assert_eq!((head.stream, head.flags & END_STREAM), (1, 0));
    assert!(sent.contains(&Sent { kind: SETTINGS, flags: ACK, stream: 0, payload: vec![] }));
    assert_eq!(tunnel.answer(), None);
}

#[test]
fn a_server_that_does_not_allow_it_is_named() {
    for entries in [&[][..], &[(ENABLE_CONNECT_PROTOCOL, 0)]] {
        let mut tunnel = Tunnel::new().unwrap();
        assert_eq!(feed(&mut tunnel, &settings(entries)), (vec![], Ok(())));
        assert_eq!(tunnel.may_connect(), Err(End::NotAllowed));
    }
    assert!(End::NotAllowed.to_string().contains("SETTINGS_ENABLE_CONNECT_PROTOCOL"));
}

#[test]
fn bytes_go_both_ways_and_the_stream_ends() {
    let mut tunnel = asked(ENABLES);
    let bytes = [
        headers(1, &[(":status", "103")], 0),
        headers(1, &[(":status", "200"), ("sec-websocket-protocol", "chat")], 0),
        frame(DATA, 0, 1, b"hel"),
        frame(DATA, 0, 1, b"lo"),
    ];
    assert_eq!(feed(&mut tunnel, &bytes.concat()), (b"hello".to_vec(), Ok(())));
    let answer = tunnel.answer().unwrap();
    assert_eq!((answer.status, &answer.fields[..]), (200, &b"sec-websocket-protocol: chat\n"[..]));
    for text in ["how are", " you"] {
        tunnel.send(text.as_bytes(), false);
        assert_eq!(carried(&written(&mut tunnel)), (text.as_bytes().to_vec(), false));
    }
    tunnel.send(b"good", false);
    tunnel.send(b"bye", true);
    tunnel.send(b"never sent", true);
    assert_eq!(carried(&written(&mut tunnel)), (b"goodbye".to_vec(), true));
    assert_eq!(feed(&mut tunnel, &frame(DATA, END_STREAM, 1, b"bye")), (b"bye".to_vec(), Err(End::Ended)));
}

#[test]
fn an_end_without_bytes_is_sent() {
    let mut tunnel = connected(ENABLES);
    assert_eq!(carried(&written(&mut tunnel)), (vec![], false));
    tunnel.send(b"", true);
    assert_eq!(carried(&written(&mut tunnel)), (vec![], true));
}

#[test]
fn a_refusal_says_its_status_and_how_its_body_begins() {
    let mut tunnel = asked(ENABLES);
    assert_eq!(feed(&mut tunnel, &headers(1, &[(":status", "404")], 0)), (vec![], Ok(())));
    assert!(!tunnel.answer().unwrap().is_complete);
    assert_eq!(feed(&mut tunnel, &frame(DATA, END_STREAM, 1, &[b'n'; 300])), (vec![], Ok(())));
    let refusal = tunnel.answer().unwrap();
    assert_eq!((refusal.status, refusal.connects(), refusal.is_complete), (404, false, true));
    assert_eq!(refusal.body, [b'n'; 200]);
    // As if it were a GET.
    assert_eq!(feed(&mut asked(ENABLES), &answer(1, b"")), (vec![], Err(End::Ended)));
}

#[test]
fn a_reset_is_named_after_what_came_before_it() {
    let mut tunnel = connected(ENABLES);
    let bytes = [frame(DATA, 0, 1, b"last words"), reset(1, INTERNAL_ERROR)].concat();
    assert_eq!(feed(&mut tunnel, &bytes), (b"last words".to_vec(), Err(End::Reset(INTERNAL_ERROR))));
    tunnel.send(b"into the void", true);
    assert_eq!(carried(&written(&mut tunnel)), (vec![], false));
    assert_eq!(End::Reset(INTERNAL_ERROR).to_string(), "the server reset the stream with INTERNAL_ERROR");
    let mut tunnel = asked(ENABLES);
    assert_eq!(feed(&mut tunnel, &reset(1, REFUSED_STREAM)), (vec![], Err(End::Reset(REFUSED_STREAM))));
}

#[test]
fn a_goaway_that_spares_the_stream_lets_it_go_on() {
    let mut tunnel = connected(ENABLES);
    let bytes = [go_away(1, 0), frame(DATA, 0, 1, b"still here")].concat();
    assert_eq!(feed(&mut tunnel, &bytes), (b"still here".to_vec(), Ok(())));
    assert_eq!(tunnel.gone(), Some(0));
    tunnel.send(b"so am I", false);
    assert_eq!(carried(&written(&mut tunnel)), (b"so am I".to_vec(), false));
}

#[test]
fn a_goaway_that_leaves_the_stream_out_is_its_end() {
    for mut tunnel in [asked(ENABLES), connected(ENABLES)] {
        let bytes = go_away(0, INTERNAL_ERROR);
        assert_eq!(feed(&mut tunnel, &bytes), (vec![], Err(End::GoneAway(INTERNAL_ERROR))));
    }
    let mut tunnel = Tunnel::new().unwrap();
    let bytes = [settings(ENABLES), go_away(0, INTERNAL_ERROR)].concat();
    assert_eq!(feed(&mut tunnel, &bytes), (vec![], Ok(())));
    assert_eq!(tunnel.may_connect(), Err(End::GoneAway(INTERNAL_ERROR)));
}

#[test]
fn it_never_sends_more_than_the_windows_allow() {
    let initial = 100;
    let mut tunnel = connected(&[(ENABLE_CONNECT_PROTOCOL, 1), (INITIAL_WINDOW_SIZE, initial)]);
    let bytes: Vec<u8> = (0..200_000_u32).map(|at| (at % 251) as u8).collect();
    let mut windows = Windows::new(initial);
    tunnel.send(&bytes, true);
    let (mut came, mut ended) = (Vec::new(), false);
    for round in 0..100_000 {
        let sent = written(&mut tunnel);
        for sent in sent.iter().filter(|sent| sent.kind == DATA) {
            windows.spend(sent);
            ended |= sent.flags & END_STREAM != 0;
        }
        came.extend(carried(&sent).0);
        assert_eq!(tunnel.unsent(), bytes.len() - came.len());
        if ended {
            break;
        }
        let grants = [windows.grant(round % 2, 1009), windows.grant(1, 1)];
        feed(&mut tunnel, &grants.concat()).1.unwrap();
    }
    assert!(ended && came == bytes);
}

#[test]
fn what_was_read_opens_the_window_again() {
    let mut tunnel = connected(ENABLES);
    let piece = frame(DATA, 0, 1, &[7; 16_384]);
    let mut left = 16_i64 << 20;
    for _ in 0..3000 {
        left -= 16_384;
        assert!(left >= 0, "the client forgot to open its window");
        let (received, fed) = feed(&mut tunnel, &piece);
        assert_eq!((received.len(), fed), (16_384, Ok(())));
        for sent in written(&mut tunnel).iter().filter(|sent| sent.kind == WINDOW_UPDATE && sent.stream == 1) {
            left += i64::from(u32::from_be_bytes(sent.payload[..].try_into().unwrap()));
        }
    }
}

#[test]
fn data_beyond_the_window_end_the_stream() {
    let mut tunnel = connected(ENABLES);
    // More than the window and what it is opened by before the client writes.
    let flood = frame(DATA, 0, 1, &[7; 16_384]).repeat(2000);
    let (_, fed) = feed(&mut tunnel, &flood);
    assert!(fed.is_err(), "{fed:?}");
    let sent = written(&mut tunnel);
    let says = |sent: &Sent| sent.payload.ends_with(&FLOW_CONTROL_ERROR.to_be_bytes());
    assert!(sent.iter().any(says), "{sent:?}");
}

#[test]
fn fields_and_data_where_none_may_be_are_named() {
    let mut tunnel = connected(ENABLES);
    let (_, fed) = feed(&mut tunnel, &headers(1, &[("late", "1")], END_STREAM));
    assert_eq!(fed, Err(End::Malformed(Rule::HeadersConnected.to_string())));
    assert!(written(&mut tunnel).iter().any(|sent| sent.kind == RST_STREAM));
    let mut tunnel = asked(ENABLES);
    let broken = Err(End::Broken(Error::Malformed { code: PROTOCOL_ERROR }));
    assert_eq!(feed(&mut tunnel, &frame(DATA, 0, 1, b"x")).1, broken);
    let mut tunnel = asked(ENABLES);
    assert_eq!(
        feed(&mut tunnel, &headers(1, &[(":status", "101")], 0)).1,
        Err(End::Malformed(Rule::Status101.to_string()))
    );
    let mut tunnel = connected(ENABLES);
    let bytes = [frame(DATA, END_STREAM, 1, b"bye"), frame(DATA, 0, 1, b"again")].concat();
    let (received, fed) = feed(&mut tunnel, &bytes);
    assert_eq!((&received[..], fed), (&b"bye"[..], Err(End::Ended)));
    assert_eq!(feed(&mut tunnel, b"").1, Err(End::Broken(Error::Malformed { code: STREAM_CLOSED })));
}

#[test]
fn a_content_length_of_a_tunnel_means_nothing() {
    let mut tunnel = asked(ENABLES);
    let bytes =
        [headers(1, &[(":status", "200"), ("content-length", "1")], 0), frame(DATA, 0, 1, b"more than one")].concat();
    assert_eq!(feed(&mut tunnel, &bytes), (b"more than one".to_vec(), Ok(())));
}

#[test]
fn however_it_is_cut_the_same_comes() {
    let bytes = [
        headers(1, &[(":status", "200"), ("a", "b")], 0),
        frame(DATA, 0, 1, b"one"),
        frame(PING, 0, 0, &[1; 8]),
        frame(DATA, END_STREAM, 1, b"two"),
    ]
    .concat();
    for size in 1..bytes.len() {
        let mut tunnel = asked(ENABLES);
        let (mut received, mut last) = (Vec::new(), Ok(()));
        for piece in bytes.chunks(size) {
            assert_eq!(last, Ok(()));
            last = tunnel.feed(piece, &mut received);
        }
        assert_eq!((&received[..], last), (&b"onetwo"[..], Err(End::Ended)));
        assert_eq!(&tunnel.answer().unwrap().fields[..], b"a: b\n");
    }
}
