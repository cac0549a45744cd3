//! Messages on a WebSocket over HTTP/2 (RFC 8441): against the oracle, over TLS, and against servers that do anything.

use std::io::{self, Read, Write};
use std::thread::sleep;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use redline_websocket::{Event, Kind, Role, Session};
use rustls::version::TLS13;
use serde_json::{Value, json};

use crate::checks::{Checks, check_of};
use crate::support::http2::{GOAWAY, HEADERS, PREFACE_BYTES, RST_STREAM, SETTINGS, frame, go_away, settings};
use crate::support::output::{Outcome, histogram};
use crate::support::server::Server;
use crate::support::tls::{TlsServer, certificates};
use crate::support::{complete, job, open_job, run, with};
use crate::websockets::{Oracle, are_closed, echoes, messages};

const DATA: u8 = 0;
const WINDOW_UPDATE: u8 = 8;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const INITIAL_WINDOW_SIZE: u16 = 4;
const ENABLE_CONNECT_PROTOCOL: u16 = 8;
const ENABLES: &[(u16, u32)] = &[(ENABLE_CONNECT_PROTOCOL, 1)];
/// `:status: 200` and `:status: 404` of HPACK's static table.
const OK: &[u8] = &[0x88];
const NOT_FOUND: &[u8] = &[0x8d];

fn over_http2(job: Value) -> Value {
    with(job, "/target/http", json!("2"))
}

/// The server's end of a WebSocket on the first stream of a connection, by hand.
struct ByHand<S>(S);

impl<S: Read + Write> ByHand<S> {
    fn greet(mut stream: S, entries: &[(u16, u32)]) -> io::Result<Self> {
        stream.read_exact(&mut [0; PREFACE_BYTES])?;
        let mut peer = Self(stream);
        peer.say(&settings(entries))?;
        Ok(peer)
    }

    fn say(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)?;
        self.0.flush()
    }

    fn frame(&mut self) -> io::Result<(u8, u8, Vec<u8>)> {
        let mut head = [0; 9];
        self.0.read_exact(&mut head)?;
        let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
        self.0.read_exact(&mut payload)?;
        if head[3] == SETTINGS && head[4] & 1 == 0 {
            self.say(&frame(SETTINGS, 1, 0, &[]))?;
        }
        Ok((head[3], head[4], payload))
    }

    /// Reads up to the next frame of this kind.
    fn next(&mut self, kind: u8) -> io::Result<(u8, Vec<u8>)> {
        loop {
            let (came, flags, payload) = self.frame()?;
            if came == kind {
                return Ok((flags, payload));
            }
        }
    }

    /// Reads the CONNECT, and answers it with this.
    fn answer(&mut self, fields: &[u8], flags: u8) -> io::Result<()> {
        self.next(HEADERS)?;
        self.say(&frame(HEADERS, END_HEADERS | flags, 1, fields))
    }

    /// Echoes messages until the client closes the WebSocket, which ends its side of the stream.
    fn echo(&mut self) -> io::Result<()> {
        let mut session = Session::new(Role::Server, 0);
        loop {
            let (flags, payload) = self.next(DATA)?;
            let mut rest = &payload[..];
            let mut out = Vec::new();
            let mut message = Vec::new();
            let mut closes = false;
            loop {
                let kind = match session.next(&mut rest).expect("the client keeps the rules") {
                    Some(Event::Message(kind, text)) => {
                        message.extend_from_slice(text);
                        kind
                    }
                    Some(Event::Close(_)) => {
                        closes = true;
                        continue;
                    }
                    Some(_) => continue,
                    None => break,
                };
                session.write(kind, &std::mem::take(&mut message), &mut out);
            }
            if closes {
                assert_eq!(flags & END_STREAM, END_STREAM, "the close frame ends the stream");
                session.write_close(Some(1000), &mut out);
            }
            self.say(&frame(DATA, if closes { END_STREAM } else { 0 }, 1, &out))?;
        }
    }
}

/// A server that does this after it opened a WebSocket and read the first bytes on it.
fn after_a_message(act: impl Fn(&mut ByHand<std::net::TcpStream>) -> io::Result<()> + Send + Sync + 'static) -> Server {
    Server::start(move |peer, _| {
        let mut peer = ByHand::greet(peer.into_stream(), ENABLES)?;
        peer.answer(OK, 0)?;
        peer.next(DATA)?;
        act(&mut peer)?;
        sleep(Duration::from_millis(200));
        Ok(())
    })
}

#[test]
fn messages_are_counted_alike_on_both_sides() {
    let jobs = [
        echoes(with(job(0), "/warmup_ns", json!(0))),
        echoes(with(open_job(0, 2000, 8), "/warmup_ns", json!(0))),
        with(echoes(with(job(0), "/warmup_ns", json!(0))), "/load/closed/depth", json!(5)),
        messages(with(job(0), "/warmup_ns", json!(0)), "the same", &json!({"subprotocols": ["chat", "other"]})),
        echoes(with(with(job(0), "/warmup_ns", json!(0)), "/backend", json!("epoll"))),
        with(echoes(job(0)), "/load/closed/requests_per_connection", json!(7)),
    ];
    for (number, job) in jobs.into_iter().enumerate() {
        let oracle = Oracle::start(&["null", "--report"]);
        let result = complete(&over_http2(with(job, "/target/port", json!(oracle.port))));
        result.are_all("ok");
        assert!(result.event["counts"]["status"].as_object().unwrap().is_empty());
        let report = oracle.report();
        if number < 5 {
            assert_eq!(report["messages"], result.count("due"));
            assert_eq!(report["statuses"], json!({"200": report["connections"]}));
        }
        are_closed(&report, "200", if number < 5 { 0 } else { 2 });
    }
}

#[test]
fn times_are_those_of_the_oracle() {
    let oracle = Oracle::start(&["fixed", "--delay", "5ms"]);
    let result = complete(&over_http2(echoes(open_job(oracle.port, 500, 64))));
    result.are_all("ok");
    for name in ["response", "service"] {
        assert!(result.histogram(name).min_ns() >= 4_990_000, "{name}");
    }
}

#[test]
fn a_server_that_closes_between_messages_fails_none() {
    let oracle = Oracle::start(&["null", "--close-after", "3"]);
    let result = complete(&over_http2(echoes(job(oracle.port))));
    result.are_all("ok");
    assert!(result.count("reconnects") > 0);
}

#[test]
fn messages_are_compressed_as_the_server_agrees() {
    for parameters in ["", "server_no_context_takeover; client_max_window_bits=10"] {
        let oracle = Oracle::start(&["null", "--report", "--deflate", parameters]);
        let job = messages(job(oracle.port), "message {seq} message", &json!({"compression": true}));
        let result = complete(&over_http2(with(job, "/warmup_ns", json!(0))));
        result.are_all("ok");
        assert!(result.count("plain_bytes") > 0, "{:#}", result.event["counts"]);
        assert_eq!(oracle.report()["messages"], result.count("due"));
    }
}

/// Users who listen open a connection for each conversation.
#[test]
fn both_sides_count_the_same_pushes_and_each_says_its_delay() {
    let oracle = Oracle::start(&["null", "--pushes", "20", "--push-every", "5ms", "--push-delay", "100ms", "--report"]);
    let request = json!({
        "method": "GET", "path": "/ticks", "expect": {"status": 200}, "websocket": {"answer": "listen"},
        "stream": {"events": "messages", "until": 20}, "timestamp": {"unit": "ns"},
    });
    let job = with(with(job(oracle.port), "/requests", json!([request])), "/load", json!({"closed": {"users": 5}}));
    let job = with(with(job, "/warmup_ns", json!(0)), "/count", json!(30));
    let result = complete(&over_http2(with(job, "/measure_ns", json!(30_000_000_000_u64))));
    result.are_all("ok");
    let of_streams = |name| histogram(&result.event["streams"], name);
    assert_eq!((result.count("due"), &result.event["streams"]["counted"]), (30, &json!(600)));
    assert_eq!((of_streams("first_event").count(), of_streams("gaps").count()), (30, 570));
    assert!(of_streams("push").min_ns() >= 99_000_000 && of_streams("first_event").min_ns() >= 4_900_000);
    let report = oracle.report();
    assert_eq!(report["answer"]["count"], 600);
    assert_eq!((&report["targets"], &report["closes"]), (&json!({"ticks": 30}), &json!({"1000": 30})));
}

#[test]
fn it_is_spoken_over_tls_too() {
    let certificates = certificates("127.0.0.1");
    let config = certificates.config(&[&TLS13], &["h2"]);
    let server = TlsServer::start(config, move |peer, _| {
        let mut peer = ByHand::greet(peer.into_stream(), ENABLES)?;
        peer.answer(OK, 0)?;
        peer.echo()
    });
    let job = over_http2(echoes(with(job(server.port), "/warmup_ns", json!(0))));
    let result = complete(&with(job, "/target/tls", json!({"ca_pem": certificates.ca_pem})));
    result.are_all("ok");
    assert!(result.count("completed") > 10);
}

#[test]
fn a_check_shows_the_message() {
    let oracle = Oracle::start(&["null"]);
    let request = messages(job(oracle.port), "hello {seq}", &json!({}))["requests"][0].clone();
    let check = |port| with(over_http2(check_of(port)), "/request", request.clone());
    let seen = Checks::start().check(&check(oracle.port));
    assert_eq!((&seen["outcome"], &seen["status"]), (&json!("ok"), &json!(200)), "{seen:#}");
    assert_eq!(STANDARD.decode(seen["body_base64"].as_str().unwrap()).unwrap(), b"hello 0");
    let server = Server::answering("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    let seen = Checks::start().check(&check(server.port));
    assert!(seen["failure"]["reason"].as_str().unwrap().contains("answers in HTTP/1, not in HTTP/2"), "{seen:#}");
}

/// A load of one user who listens to three pushes, 20 times, thinks in between, and is served like this by the connection's number.
fn listened(
    think_ms: u64,
    serve: impl Fn(ByHand<std::net::TcpStream>, usize) -> io::Result<()> + Send + Sync + 'static,
) -> Outcome {
    let server = Server::start(move |peer, number| serve(ByHand::greet(peer.into_stream(), ENABLES)?, number));
    let request = json!({
        "method": "GET", "path": "/ticks", "expect": {"status": 200}, "websocket": {"answer": "listen"},
        "stream": {"events": "messages", "until": 3},
    });
    let closed = json!({"users": 1, "think": {"fixed_ns": think_ms * 1_000_000}});
    let job = with(with(job(server.port), "/requests", json!([request])), "/load/closed", closed);
    let job = with(with(job, "/warmup_ns", json!(0)), "/count", json!(20));
    complete(&over_http2(with(job, "/measure_ns", json!(5_000_000_000_u64))))
}

/// What a server pushes, and a close frame with this code.
fn pushed(messages: usize, code: u16) -> Vec<u8> {
    let (mut session, mut out) = (Session::new(Role::Server, 0), Vec::new());
    for _ in 0..messages {
        session.write(Kind::Text, b"tick", &mut out);
    }
    session.write_close(Some(code), &mut out);
    out
}

/// All of it comes in one piece with the answer that opens the WebSocket.
#[test]
fn what_comes_with_the_answer_counts_though_the_stream_ends_with_it() {
    for (messages, outcome) in [(3, "ok"), (1, "closed")] {
        let result = listened(0, move |mut peer, _| {
            peer.next(HEADERS)?;
            let answer = frame(HEADERS, END_HEADERS, 1, OK);
            peer.say(&[answer, frame(DATA, END_STREAM, 1, &pushed(messages, 1013))].concat())?;
            peer.next(GOAWAY).map(|_| ())
        });
        result.are_all(outcome);
        assert_eq!(result.event["streams"]["counted"], json!(20 * messages));
        if outcome == "closed" {
            assert!(result.reason(outcome).contains("1013"), "{}", result.reason(outcome));
        }
    }
}

/// Every other connection is given up while nobody uses it, and stays open.
#[test]
fn a_listener_opens_another_connection_where_the_server_has_gone_away() {
    let result = listened(60, |mut peer, number| {
        if number % 2 == 1 {
            sleep(Duration::from_millis(20));
            peer.say(&go_away(0, 0))?;
            return peer.next(HEADERS).map(|_| ());
        }
        peer.answer(OK, 0)?;
        peer.say(&frame(DATA, 0, 1, &pushed(3, 1000)))?;
        peer.next(GOAWAY).map(|_| ())
    });
    result.are_all("ok");
    assert!(result.count("reconnects") > 0);
}

/// Why no WebSocket is opened by a server that does this with each connection.
fn refusal(
    serve: impl Fn(ByHand<std::net::TcpStream>) -> io::Result<()> + Send + Sync + 'static,
    entries: &'static [(u16, u32)],
) -> String {
    let server = Server::start(move |peer, _| serve(ByHand::greet(peer.into_stream(), entries)?));
    let job = with(over_http2(echoes(job(server.port))), "/timeout_ns", json!(300_000_000));
    let output = run(&job);
    assert_eq!(output.code, Some(1), "{:#?}", output.events);
    output.error()["message"].as_str().unwrap().to_owned()
}

#[test]
fn a_refused_handshake_says_what_the_server_said() {
    let not_enabled = refusal(|mut peer| peer.next(HEADERS).map(|_| ()), &[]);
    assert!(
        not_enabled.ends_with(
            "the WebSocket handshake failed: the server's SETTINGS do not enable it over HTTP/2 \
             (SETTINGS_ENABLE_CONNECT_PROTOCOL, RFC 8441, 3)"
        ),
        "{not_enabled}"
    );
    let missing = refusal(
        |mut peer| {
            peer.answer(NOT_FOUND, 0)?;
            peer.say(&frame(DATA, END_STREAM, 1, b"no such chat"))?;
            peer.next(GOAWAY).map(|_| ())
        },
        ENABLES,
    );
    assert!(missing.ends_with("status 404 in place of 200: no such chat"), "{missing}");
    let bare =
        refusal(|mut peer| peer.answer(NOT_FOUND, END_STREAM).and_then(|()| peer.next(GOAWAY).map(|_| ())), ENABLES);
    assert!(bare.ends_with("status 404 in place of 200"), "{bare}");
    let endless = refusal(|mut peer| peer.answer(NOT_FOUND, 0).and_then(|()| peer.next(GOAWAY).map(|_| ())), ENABLES);
    assert!(endless.ends_with("status 404 in place of 200"), "{endless}");
    let cut = refusal(
        |mut peer| {
            peer.answer(NOT_FOUND, 0)?;
            sleep(Duration::from_millis(20));
            peer.say(&frame(RST_STREAM, 0, 1, &0_u32.to_be_bytes()))?;
            peer.next(GOAWAY).map(|_| ())
        },
        ENABLES,
    );
    assert!(cut.ends_with("status 404 in place of 200"), "{cut}");
    let reset = refusal(
        |mut peer| {
            peer.next(HEADERS)?;
            peer.say(&frame(RST_STREAM, 0, 1, &7_u32.to_be_bytes()))?;
            peer.next(GOAWAY).map(|_| ())
        },
        ENABLES,
    );
    assert!(reset.ends_with("the server reset the stream with REFUSED_STREAM"), "{reset}");
    let silent = refusal(|mut peer| peer.next(GOAWAY).map(|_| ()), ENABLES);
    assert!(silent.ends_with("the server did not answer it in time"), "{silent}");
}

#[test]
fn ends_without_a_close_frame_are_named() {
    type Act = fn(&mut ByHand<std::net::TcpStream>) -> io::Result<()>;
    let cases: [(Act, &str, &str); 6] = [
        (
            |peer| peer.say(&frame(RST_STREAM, 0, 1, &2_u32.to_be_bytes())),
            "refused",
            "the server reset the stream with INTERNAL_ERROR",
        ),
        (
            |peer| peer.say(&frame(DATA, END_STREAM, 1, b"")),
            "closed",
            "the stream ended without a close frame, before the answer",
        ),
        (|peer| peer.say(&go_away(0, 11)), "refused", "the server sent GOAWAY with ENHANCE_YOUR_CALM"),
        (
            |peer| {
                peer.say(&go_away(1, 2))?;
                Err(io::ErrorKind::Other.into())
            },
            "closed",
            "the server ended the connection after GOAWAY with INTERNAL_ERROR",
        ),
        (
            |peer| peer.say(&frame(HEADERS, END_HEADERS | END_STREAM, 1, OK)),
            "malformed",
            "the field :status: a pseudo-field stands in the trailers",
        ),
        (|peer| peer.say(&frame(DATA, 0, 1, b"\xc1\x05hello")), "malformed", "a reserved bit of a frame is set"),
    ];
    for (act, outcome, reason) in cases {
        let server = after_a_message(act);
        let result = complete(&over_http2(echoes(job(server.port))));
        result.are_all(outcome);
        assert!(result.reason(outcome).starts_with(reason), "{}", result.reason(outcome));
    }
}

/// A message of 200,000 bytes goes and comes through windows of 5,000.
#[test]
fn long_messages_pass_small_windows() {
    let server = Server::start(move |peer, _| {
        let small = &[(ENABLE_CONNECT_PROTOCOL, 1), (INITIAL_WINDOW_SIZE, 5000)];
        let mut peer = ByHand::greet(peer.into_stream(), small)?;
        peer.answer(OK, 0)?;
        let (mut session, mut left, mut message) = (Session::new(Role::Server, 0), 5000, Vec::new());
        loop {
            let (_, payload) = peer.next(DATA)?;
            left -= payload.len();
            assert!(left < 5000, "the client sends more than the window allows");
            let (mut rest, mut out) = (&payload[..], Vec::new());
            let mut kind = None;
            while let Some(event) = session.next(&mut rest).expect("the client keeps the rules") {
                if let Event::Message(of, text) = event {
                    message.extend_from_slice(text);
                    kind = Some(of);
                }
            }
            if let Some(kind) = kind {
                session.write(kind, &std::mem::take(&mut message), &mut out);
                for piece in out.chunks(16_384) {
                    peer.say(&frame(DATA, 0, 1, piece))?;
                }
            }
            let by = (5000 - left) as u32;
            left = 5000;
            peer.say(
                &[frame(WINDOW_UPDATE, 0, 0, &by.to_be_bytes()), frame(WINDOW_UPDATE, 0, 1, &by.to_be_bytes())]
                    .concat(),
            )?;
        }
    });
    let body: Vec<u8> = (0..200_000_u32).map(|at| (at * 7 / 3) as u8).collect();
    let job = messages(job(server.port), "", &json!({"message": "binary"}));
    let job =
        with(with(job, "/requests/0/body_text", Value::Null), "/requests/0/body_base64", json!(STANDARD.encode(&body)));
    let result = complete(&over_http2(job));
    result.are_all("ok");
    assert!(result.count("bytes_received") > result.count("completed") * body.len() as u64);
}

#[test]
fn a_user_who_listens_has_the_connection_alone() {
    let request = json!({
        "method": "GET", "path": "/ticks", "expect": {"status": 200}, "websocket": {"answer": "listen"},
        "stream": {"events": "messages", "until": 20},
    });
    let job = with(with(over_http2(job(1)), "/requests", json!([request])), "/load/closed/depth", json!(2));
    let output = run(&job);
    let message = output.error()["message"].as_str().unwrap();
    assert!(message.ends_with("requests behind it on its connection would wait for its end"), "{message}");
}

/// A server that announces its end and keeps the stream serves it on.
#[test]
fn a_polite_goaway_ends_nothing() {
    let server = Server::start(|peer, _| {
        let mut peer = ByHand::greet(peer.into_stream(), ENABLES)?;
        peer.answer(OK, 0)?;
        peer.say(&go_away(1, 0))?;
        peer.echo()
    });
    let result = complete(&over_http2(echoes(job(server.port))));
    result.are_all("ok");
    assert_eq!(result.count("reconnects"), 0);
}
