//! Messages on a WebSocket: against the oracle, against a server of another maker, and against servers that break the rules.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use redline_websocket::accept_value;
use rustls::version::TLS13;
use serde_json::{Value, json};
use tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tungstenite::protocol::CloseFrame;
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::protocol::frame::{Frame, coding::Data, coding::OpCode};
use tungstenite::{Message, WebSocket, accept_hdr};

use crate::checks::{Checks, check_of};
use crate::support::server::{Peer, Server};
use crate::support::tls::{TlsServer, certificates};
use crate::support::{complete, job, open_job, run, with};

/// The oracle, as a process.
pub struct Oracle {
    child: Child,
    out: BufReader<ChildStdout>,
    pub port: u16,
}

impl Oracle {
    pub fn start(arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_redline-oracle"));
        let mut child = command.args(arguments).stdout(Stdio::piped()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        let port = line.trim().rsplit_once(':').unwrap().1.parse().unwrap();
        Self { child, out, port }
    }

    /// End it, and return its report.
    pub fn report(mut self) -> Value {
        assert!(Command::new("kill").arg(self.child.id().to_string()).status().unwrap().success());
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).unwrap();
        self.child.wait().unwrap();
        serde_json::from_str(&rest).unwrap()
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The job, with messages in place of requests, and `more` in its `websocket`.
pub fn messages(job: Value, text: &str, more: &Value) -> Value {
    let mut websocket = json!({"message": "text", "answer": "echo"});
    websocket.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let request = json!({
        "method": "GET", "path": "/chat", "body_text": text, "expect": {"status": 200}, "websocket": websocket,
    });
    with(job, "/requests", json!([request]))
}

pub fn echoes(job: Value) -> Value {
    messages(job, "message {seq} {rand:1..1000000}", &json!({}))
}

/// A server of another maker, which does this with each message. It counts messages that came.
fn server(
    serve: impl Fn(&mut WebSocket<TcpStream>, Message) -> tungstenite::Result<()> + Send + Sync + 'static,
) -> (Server, Arc<AtomicU64>) {
    let came = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&came);
    let server = Server::start(move |peer, _| {
        let _ = attend(peer.into_stream(), &counter, &serve);
        Ok(())
    });
    (server, came)
}

fn attend<S: Read + Write>(
    stream: S,
    came: &AtomicU64,
    serve: &impl Fn(&mut WebSocket<S>, Message) -> tungstenite::Result<()>,
) -> Result<(), Box<dyn std::error::Error>> {
    #[allow(clippy::result_large_err, reason = "tungstenite's own type")]
    let choose = |request: &Request, mut response: Response| -> Result<Response, ErrorResponse> {
        if let Some(offered) = request.headers().get("sec-websocket-protocol") {
            let last = offered.to_str().unwrap().rsplit(", ").next().unwrap();
            response.headers_mut().insert("sec-websocket-protocol", last.parse().unwrap());
        }
        Ok(response)
    };
    let mut socket = accept_hdr(stream, choose).map_err(|error| error.to_string())?;
    loop {
        let message = socket.read()?;
        if message.is_text() || message.is_binary() {
            came.fetch_add(1, SeqCst);
            serve(&mut socket, message)?;
        }
    }
}

/// Open a WebSocket by hand.
pub fn open(peer: &mut Peer) -> std::io::Result<()> {
    let request = peer.whole_request()?.unwrap();
    let accept = accept_value(request.header("Sec-WebSocket-Key").unwrap().as_bytes());
    peer.say(&format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
    ))
}

/// A server that answers the first bytes on each WebSocket with these.
fn answering(bytes: &'static [u8]) -> Server {
    Server::start(move |mut peer, _| {
        open(&mut peer)?;
        peer.begin_of_request()?;
        peer.say_bytes(bytes)?;
        peer.stall();
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
    ];
    for job in jobs {
        let oracle = Oracle::start(&["null", "--report"]);
        let result = complete(&with(job, "/target/port", json!(oracle.port)));
        result.are_all("ok");
        assert_eq!(result.count("completed") + result.count("late"), result.count("due"));
        assert!(result.event["counts"]["status"].as_object().unwrap().is_empty());
        let report = oracle.report();
        assert_eq!(report["messages"], result.count("due"));
        assert_eq!(report["closes"], json!({"1000": report["connections"]}));
    }
}

#[test]
fn every_websocket_is_closed_by_a_close_frame() {
    let stages = json!({"users": 6, "stages": [{"to": 2, "over_ns": 100_000_000}]});
    let few = with(job(0), "/load/closed/requests_per_connection", json!(7));
    let leaving = with(job(0), "/load/closed", stages);
    for job in [few, leaving, with(job(0), "/backend", json!("epoll"))] {
        let oracle = Oracle::start(&["null", "--report"]);
        let result = complete(&echoes(with(job, "/target/port", json!(oracle.port))));
        result.are_all("ok");
        let report = oracle.report();
        are_closed(&report, "101", 6);
    }
}

/// Each WebSocket that a server opened, with this status, ended with a close frame of code 1000. As a load ends a further one may
/// be on its way to each user.
pub fn are_closed(report: &Value, status: &str, users: u64) {
    let by_code = report["closes"].as_object().unwrap();
    assert!(by_code.keys().eq(["1000"]), "{by_code:?}");
    let (opened, ended) = (report["statuses"][status].as_u64().unwrap(), by_code["1000"].as_u64().unwrap());
    assert!((opened.saturating_sub(users)..=opened).contains(&ended), "{ended} of {opened}");
}

/// A load ends without the close frames of a server that sends none, and of one that does not read.
#[test]
fn close_frames_are_awaited_for_a_short_time() {
    let server = Server::start(|mut peer, _| {
        open(&mut peer)?;
        peer.stall();
        Ok(())
    });
    let result = complete(&with(echoes(with(job(server.port), "/warmup_ns", json!(0))), "/drain_ns", json!(0)));
    result.are_all("in_flight");
}

#[test]
fn times_are_those_of_the_oracle() {
    let oracle = Oracle::start(&["fixed", "--delay", "5ms"]);
    let result = complete(&echoes(open_job(oracle.port, 500, 64)));
    result.are_all("ok");
    for name in ["response", "service"] {
        assert!(result.histogram(name).min_ns() >= 4_990_000, "{name}");
    }
}

#[test]
fn a_server_of_another_maker_is_understood() {
    // Pings before, between and after the fragments of each echo.
    let (server, came) = server(|socket, message| {
        let text = message.into_data();
        let (begin, end) = text.split_at(text.len() / 2);
        socket.send(Message::Ping(b"before".to_vec().into()))?;
        let begin = Frame::message(begin.to_vec(), OpCode::Data(Data::Text), false);
        let end = Frame::message(end.to_vec(), OpCode::Data(Data::Continue), true);
        socket.send(Message::Frame(begin))?;
        socket.send(Message::Ping(b"within".to_vec().into()))?;
        socket.send(Message::Frame(end))
    });
    let result = complete(&echoes(with(job(server.port), "/warmup_ns", json!(0))));
    result.are_all("ok");
    assert_eq!(came.load(SeqCst), result.count("due"));
}

#[test]
fn it_is_spoken_over_tls_too() {
    let certificates = certificates("127.0.0.1");
    let came = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&came);
    let server = TlsServer::start(certificates.config(&[&TLS13], &[]), move |peer, _| {
        let _ = attend(peer.into_stream(), &counter, &WebSocket::send);
        Ok(())
    });
    let job = echoes(with(job(server.port), "/warmup_ns", json!(0)));
    let result = complete(&with(job, "/target/tls", json!({"ca_pem": certificates.ca_pem})));
    result.are_all("ok");
    assert_eq!(came.load(SeqCst), result.count("due"));
}

#[test]
fn long_messages_and_bytes_come_back() {
    let (server, _) = server(WebSocket::send);
    let body: Vec<u8> = (0..200_000_u32).map(|at| (at * 7 / 3) as u8).collect();
    let job = messages(job(server.port), "", &json!({"message": "binary"}));
    let job =
        with(with(job, "/requests/0/body_text", Value::Null), "/requests/0/body_base64", json!(STANDARD.encode(&body)));
    let result = complete(&job);
    result.are_all("ok");
    assert!(result.count("bytes_received") > result.count("completed") * body.len() as u64);
}

#[test]
fn a_refused_handshake_says_what_the_server_said() {
    let refusing = |answer: &'static str, more: &Value| {
        let server = Server::answering(answer);
        let output = run(&messages(job(server.port), "x", more));
        assert_eq!(output.code, Some(1));
        output.error()["message"].as_str().unwrap().to_owned()
    };
    let forbidden = refusing("HTTP/1.1 403 Forbidden\r\nContent-Length: 9\r\n\r\nno origin", &json!({}));
    assert!(
        forbidden.ends_with("the WebSocket handshake failed: status 403 Forbidden in place of 101: no origin"),
        "{forbidden}"
    );
    assert!(refusing("SSH-2.0-OpenSSH\r\n\r\n", &json!({})).contains("does not answer in HTTP"));
    let server = Server::start(|mut peer, _| {
        open(&mut peer)?;
        peer.stall();
        Ok(())
    });
    let output = run(&messages(job(server.port), "x", &json!({"subprotocols": ["chat"]})));
    let message = output.error()["message"].as_str().unwrap();
    assert!(message.ends_with("the server chose no subprotocol of chat"), "{message}");
}

/// Connections that are refused during the load fail messages by the status, as answers do.
#[test]
fn handshakes_that_are_refused_later_fail_messages() {
    let server = Server::start(|mut peer, number| {
        if number >= 2 {
            peer.whole_request()?;
            return peer.say_the_last("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nbusy");
        }
        let _ = attend(peer.into_stream(), &AtomicU64::new(0), &|socket, message| {
            socket.send(message)?;
            socket.close(Some(CloseFrame { code: CloseCode::Away, reason: "".into() }))
        });
        Ok(())
    });
    let result = complete(&echoes(job(server.port)));
    assert!(result.outcome("unexpected_status") > 0, "{:#}", result.event["counts"]);
    let reason = result.reason("unexpected_status");
    assert!(reason.ends_with("status 503 Service Unavailable in place of 101: busy"), "{reason}");
}

#[test]
fn a_close_fails_the_message_in_flight_with_its_code() {
    let (server, _) = server(|socket, _| {
        socket.close(Some(CloseFrame { code: CloseCode::Error, reason: "no more".into() }))?;
        socket.flush()
    });
    let result = complete(&echoes(job(server.port)));
    result.are_all("closed");
    assert_eq!(result.reason("closed"), "the server closed the WebSocket with 1011 (internal error): no more");
}

#[test]
fn a_server_that_closes_between_messages_fails_none() {
    let oracle = Oracle::start(&["null", "--close-after", "3"]);
    let result = complete(&echoes(job(oracle.port)));
    result.are_all("ok");
    assert!(result.count("reconnects") > 0);
}

#[test]
fn a_wrong_echo_is_seen() {
    let (server, _) = server(|socket, message| {
        let text = message.into_text()?.to_string();
        socket.send(if text.ends_with('7') { Message::text("something else") } else { Message::text(text) })
    });
    let result = complete(&messages(job(server.port), "{seq}", &json!({})));
    assert!(result.outcome("ok") > 0 && result.outcome("unexpected_body") > 0);
    let reason = result.reason("unexpected_body");
    assert_eq!(reason, "the message \"something else\" (14 bytes in place of 1) in place of the echo of \"7\"");
    let next = complete(&messages(job(server.port), "{seq}", &json!({"answer": "next"})));
    next.are_all("ok");
}

#[test]
fn servers_that_break_the_rules_are_named() {
    let cases: [(&[u8], &str, &str); 6] = [
        (b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58", "malformed", "the server masks a frame (RFC 6455, 5.1)"),
        (b"\xc1\x05hello", "malformed", "a reserved bit of a frame is set"),
        (b"\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff", "malformed", "the highest bit of a frame's length is set"),
        (b"\x82\x7f\x00\x00\x00\x01\x00\x00\x00\x00", "malformed", "a message is longer than 16 MiB"),
        (b"\x81\x02\xc3\x28", "malformed", "a text is not UTF-8 (RFC 6455, 8.1)"),
        (b"\x88\x01x", "malformed", "a close frame has one byte"),
    ];
    for (bytes, outcome, reason) in cases {
        let server = answering(bytes);
        let result = complete(&echoes(job(server.port)));
        result.are_all(outcome);
        assert!(result.reason(outcome).starts_with(reason), "{}", result.reason(outcome));
    }
}

#[test]
fn messages_without_end_time_out() {
    let server = answering(b"\x01\x01a\x00\x01b");
    let result = complete(&with(echoes(job(server.port)), "/timeout_ns", json!(100_000_000)));
    result.are_all("timeout");
    let (server, came) = server_that_says_nothing();
    let result = complete(&with(echoes(job(server.port)), "/timeout_ns", json!(100_000_000)));
    result.are_all("timeout");
    assert!(came.load(SeqCst) > 0);
}

fn server_that_says_nothing() -> (Server, Arc<AtomicU64>) {
    server(|_, _| Ok(()))
}

#[test]
fn a_message_that_answers_none_is_surplus() {
    let server = Server::start(|peer, _| {
        let _ = attend(peer.into_stream(), &AtomicU64::new(0), &|socket, message| {
            socket.send(message)?;
            std::thread::sleep(Duration::from_millis(5));
            socket.send(Message::text("by the way"))
        });
        Ok(())
    });
    let job = with(echoes(job(server.port)), "/load/closed/think/fixed_ns", json!(50_000_000));
    let result = complete(&job);
    // It is counted, and its connection goes on.
    result.are_all("ok");
    assert!(result.event["counts"]["surplus"].as_u64().unwrap() > 0, "{:#}", result.event["counts"]);
    assert_eq!(result.count("reconnects"), 0);
}

/// Greetings come with the answer to the handshake, or after it, whole or in pieces.
#[test]
fn a_greeting_is_no_answer() {
    let greets = |pieces: &'static [&'static [u8]]| {
        Server::start(move |mut peer, _| {
            open(&mut peer)?;
            for piece in pieces {
                peer.say_bytes(piece)?;
                std::thread::sleep(Duration::from_millis(2));
            }
            let stream = peer.into_stream();
            let mut socket = WebSocket::from_raw_socket(stream, tungstenite::protocol::Role::Server, None);
            while let Ok(message) = socket.read() {
                if message.is_text() && socket.send(message).is_err() {
                    break;
                }
            }
            Ok(())
        })
    };
    let two = json!({"greeting": 2});
    let cases: [&[&[u8]]; 2] = [&[b"\x81\x02hi\x89\x00\x81\x02ho"], &[b"\x81\x02h", b"i\x81\x02", b"ho"]];
    for pieces in cases {
        let server = greets(pieces);
        complete(&messages(job(server.port), "{seq}", &two)).are_all("ok");
    }
    let failing = |bytes: &'static [&'static [u8]], more: &Value| {
        let server = greets(bytes);
        run(&messages(job(server.port), "x", more)).error()["message"].as_str().unwrap().to_owned()
    };
    assert!(failing(&[b"\x88\x00"], &two).ends_with("the server closed the WebSocket before its greeting"));
    assert!(failing(&[b"\xc1\x00"], &two).contains("a reserved bit of a frame is set"));
    let many = failing(&[b"\x81\x01a\x81\x01b\x81\x01c"], &two);
    assert!(many.ends_with("the server sent a message before it was asked: `greeting` is how many it sends"), "{many}");
}

#[test]
fn a_check_shows_the_message() {
    let oracle = Oracle::start(&["null"]);
    let request = messages(job(oracle.port), "hello {seq}", &json!({}))["requests"][0].clone();
    let seen = Checks::start().check(&with(check_of(oracle.port), "/request", request.clone()));
    assert_eq!((&seen["outcome"], &seen["status"]), (&json!("ok"), &json!(101)), "{seen:#}");
    assert_eq!(STANDARD.decode(seen["body_base64"].as_str().unwrap()).unwrap(), b"hello 0");
    assert!(seen["headers"].as_array().unwrap().contains(&json!(["upgrade", "websocket"])));
    let server = Server::answering("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    let seen = Checks::start().check(&with(check_of(server.port), "/request", request));
    assert_eq!(seen["outcome"], "unexpected_status");
    assert_eq!(seen["failure"]["reason"], "the WebSocket handshake failed: status 404 Not Found in place of 101");
}

#[test]
fn what_does_not_go_together_is_refused() {
    let valid = || echoes(job(1));
    let refused = |job: &Value| {
        let output = run(job);
        assert_eq!(output.code, Some(2), "{:#?}", output.events);
        output.error()["message"].as_str().unwrap().to_owned()
    };
    let posted = with(valid(), "/requests/0/method", json!("POST"));
    assert!(refused(&posted).ends_with("it cannot be combined with a method other than GET"));
    let varying = with(valid(), "/requests/0/path", json!("/{seq}"));
    assert!(refused(&varying).contains("have no placeholders"));
    let own = with(valid(), "/requests/0/headers", json!([["Upgrade", "x"]]));
    assert!(refused(&own).ends_with("the handshake sets the header Upgrade"));
    let several = with(
        valid(),
        "/requests",
        json!([valid()["requests"][0], {"method": "GET", "path": "/", "expect": {"status": 200}}]),
    );
    assert!(refused(&several).contains("a single kind of message"));
}

#[test]
fn messages_are_compressed_as_the_server_agrees() {
    let parameters = [
        "",
        "server_no_context_takeover; client_no_context_takeover; server_max_window_bits=9",
        "client_max_window_bits=10",
    ];
    for parameters in parameters {
        let oracle = Oracle::start(&["null", "--report", "--deflate", parameters]);
        let text = "message {seq} ".to_owned() + &"of words that repeat ".repeat(40);
        let result = complete(&with(
            messages(
                with(with(job(oracle.port), "/warmup_ns", json!(0)), "/measure_ns", json!(20_000_000_000_u64)),
                &text,
                &json!({"compression": true}),
            ),
            "/count",
            json!(100),
        ));
        result.are_all("ok");
        assert_eq!(oracle.report()["answer"]["count"], 100);
        let (plain, packed) = (result.count("plain_bytes"), result.count("packed_bytes"));
        // Both ways; what comes last comes after the measurement.
        assert!(plain > 80 * 850 && packed * 4 < plain, "{parameters}: {packed} of {plain}");
        assert!(result.count("bytes_received") < packed, "{parameters}");
        assert!(result.histogram("upgrade").count() > 0);
    }
}

#[test]
fn pushes_are_compressed_too() {
    let oracle = Oracle::start(&["null", "--pushes", "20", "--push-every", "1ms", "--deflate", ""]);
    let request = json!({
        "method": "GET", "path": "/ticks", "expect": {"status": 200},
        "websocket": {"answer": "listen", "compression": true},
        "stream": {"events": "messages", "until": 20}, "timestamp": {"unit": "ns"},
    });
    let job = with(with(job(oracle.port), "/requests", json!([request])), "/load", json!({"closed": {"users": 3}}));
    let result = complete(&with(
        with(with(job, "/count", json!(9)), "/warmup_ns", json!(0)),
        "/measure_ns",
        json!(20_000_000_000_u64),
    ));
    result.are_all("ok");
    assert_eq!(result.event["streams"]["counted"], 180);
    assert_eq!(result.histogram("upgrade").count(), 9);
    assert!(result.count("plain_bytes") >= 19);
}

#[test]
fn compression_that_is_not_agreed_on_is_named() {
    let oracle = Oracle::start(&["null"]);
    let output = run(&messages(job(oracle.port), "hi", &json!({"compression": true})));
    let message = output.error()["message"].as_str().unwrap();
    let why = "the server agreed on no compression: its answer has no Sec-WebSocket-Extensions";
    assert!(message.ends_with(why), "{message}");
}
