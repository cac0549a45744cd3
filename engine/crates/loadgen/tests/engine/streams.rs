//! HTTP/2: several streams on a connection, against a server of another maker.

use std::io::{self, ErrorKind, Read, Write};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::support::http2::{
    Act, GOAWAY, HEADERS, Http2Server, MAX_CONCURRENT_STREAMS, PREFACE_BYTES, RST_STREAM, Received, SETTINGS, frame,
    go_away, greet, next_stream, ok, read_frame, settings,
};
use crate::support::server::{HELLO, HELLO_SHA256, Peer, Server};
use crate::support::tls::certificates;
use crate::support::{Engine, Outcome, complete, job, run, with};
use h2::Reason;
use h2::server::Builder;
use rustls::version::TLS13;
use rustls::{ServerConfig, ServerConnection};
use serde_json::{Value, json};

/// One user with this many streams, who compares whole answers.
fn streams(port: u16, depth: u32) -> Value {
    let job = with(job(port), "/load", json!({"closed": {"users": 1, "depth": depth}}));
    let job = with(with(job, "/target/http", json!("2")), "/warmup_ns", json!(0));
    with(job, "/requests/0/expect/body_sha256", json!(HELLO_SHA256))
}

/// The same with this many requests in all, whose bodies are not compared.
fn counted(port: u16, depth: u32, count: u64) -> Value {
    let job = with(streams(port, depth), "/requests/0/expect", json!({"status": 200}));
    with(with(job, "/count", json!(count)), "/measure_ns", json!(20_000_000_000_u64))
}

fn of_outcomes(result: &Outcome, names: &[&str]) -> u64 {
    names.iter().map(|name| result.outcome(name)).sum()
}

#[test]
fn sixteen_streams_share_a_connection() {
    let server = Http2Server::start(Builder::new(), |received: &Received| {
        // Answers overtake each other.
        if received.turn.is_multiple_of(3) { Act::Late(Duration::from_millis(3)) } else { Act::Answer("hello") }
    });
    let result = complete(&streams(server.port, 16));
    result.are_all("ok");
    assert_eq!((server.accepted.load(SeqCst), result.count("reconnects"), result.count("retried")), (1, 0, 0));
    let most = server.most_open.load(SeqCst);
    assert!((2..=16).contains(&most), "{most}");
    assert!(result.total() > 32);
}

/// A record has a price on both sides, whatever is in it: it is sealed, written, read and opened by itself.
#[test]
fn requests_that_are_ready_together_go_out_in_one_record() {
    const STREAMS: usize = 16;
    let certificates = certificates("127.0.0.1");
    let config = Arc::new(certificates.config(&[&TLS13], &["h2"]));
    let records = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&records);
    let server = Server::start(move |peer, _| answer_together(peer, STREAMS, &config, &seen));
    let job = counted(server.port, STREAMS as u32, 10 * STREAMS as u64);
    complete(&with(job, "/target/tls", json!({"ca_pem": certificates.ca_pem}))).are_all("ok");
    let records = records.lock().unwrap();
    // The handshake and SETTINGS end in records of their own.
    assert_eq!((records.len(), &records[2..]), (10, &[1; 8][..]));
}

/// Answer requests over TLS as soon as there are so many, in one write. Notes in how many records they came.
fn answer_together(
    mut peer: Peer,
    streams: usize,
    config: &Arc<ServerConfig>,
    records: &Mutex<Vec<usize>>,
) -> io::Result<()> {
    let mut tls = ServerConnection::new(Arc::clone(config)).unwrap();
    let (mut plain, mut answers, mut waiting, mut came, mut greeted) = (Vec::new(), Vec::new(), 0, 0, false);
    loop {
        let head = peer.bytes(5)?;
        let body = peer.bytes(u16::from_be_bytes([head[3], head[4]]).into())?;
        tls.read_tls(&mut &[head, body].concat()[..])?;
        tls.process_new_packets().map_err(io::Error::other)?;
        came += 1;
        match tls.reader().read_to_end(&mut plain) {
            Err(why) if why.kind() != ErrorKind::WouldBlock => return Err(why),
            _ => {}
        }
        if !greeted && plain.len() >= PREFACE_BYTES {
            plain.drain(..PREFACE_BYTES);
            answers.extend(frame(SETTINGS, 0, 0, &[]));
            greeted = true;
        }
        while let Some(&[a, b, c, kind, _, stream @ ..]) = plain.first_chunk::<9>() {
            let end = 9 + u32::from_be_bytes([0, a, b, c]) as usize;
            if !greeted || plain.len() < end {
                break;
            }
            plain.drain(..end);
            if kind == HEADERS {
                waiting += 1;
                answers.extend(ok(u32::from_be_bytes(stream)));
            }
        }
        if waiting == streams {
            tls.writer().write_all(&std::mem::take(&mut answers))?;
            records.lock().unwrap().push(std::mem::take(&mut came));
            waiting = 0;
        }
        let mut out = Vec::new();
        while tls.wants_write() {
            tls.write_tls(&mut out)?;
        }
        peer.say_bytes(&out)?;
    }
}

/// A server's SETTINGS arrive as soon as a connection is open, while others are still being opened.
#[test]
fn connections_that_are_greeted_early_are_kept() {
    let server = Http2Server::hello();
    let job = with(streams(server.port, 2), "/load/closed/users", json!(300));
    let output = run(&job);
    assert_eq!(output.code, Some(0), "{:#?}", output.events.last());
    output.result().are_all("ok");
    assert_eq!(output.events[0]["connections"], 300, "{}", output.log);
    assert_eq!((output.result().count("reconnects"), server.accepted.load(SeqCst)), (0, 300), "{}", output.log);
}

#[test]
fn an_open_load_spreads_over_connections_and_streams() {
    let server = Http2Server::hello();
    let open = json!({"rate_per_s": 1000, "arrivals": "poisson", "connections": 4, "depth": 8});
    let result = complete(&with(with(streams(server.port, 1), "/load", json!({"open": open})), "/workers", json!(2)));
    result.are_all("ok");
    assert_eq!(server.accepted.load(SeqCst), 4);
}

#[test]
fn a_wrong_status_a_wrong_body_and_json_are_told_apart() {
    let server = Http2Server::start(Builder::new(), |received: &Received| match received.request.uri().path() {
        "/wrong" => Act::Answer("hellO"),
        "/json" => Act::Answer(r#"{"a": [1, {"b": "x"}]}"#),
        "/busy" => Act::Status(503),
        _ => Act::Answer("hello"),
    });
    let outcome = |path: &str, expect: Value, outcome: &str| {
        let job = with(counted(server.port, 4, 40), "/requests/0/path", json!(path));
        complete(&with(job, "/requests/0/expect", expect)).are_all(outcome);
    };
    outcome("/right", json!({"status": 200, "body_sha256": HELLO_SHA256, "body_length": 5}), "ok");
    outcome("/wrong", json!({"status": 200, "body_sha256": HELLO_SHA256}), "unexpected_body");
    outcome("/right", json!({"status": 200, "body_length": 6}), "unexpected_body");
    outcome("/json", json!({"status": 200, "json": [{"pointer": "/a/1/b", "equals": "x"}]}), "ok");
    outcome("/json", json!({"status": 200, "json": [{"pointer": "/a/0", "equals": 2}]}), "unexpected_body");
    outcome("/busy", json!({"status": 200}), "unexpected_status");
    outcome("/busy", json!({"status": 503}), "ok");
}

#[test]
fn a_server_that_goes_politely_loses_nothing() {
    let server = Http2Server::start(Builder::new(), |received: &Received| match received.turn {
        20 => Act::AnswerAndGo,
        _ => Act::Answer("hello"),
    });
    let result = complete(&streams(server.port, 16));
    result.are_all("ok");
    assert!(result.count("reconnects") > 0 && server.accepted.load(SeqCst) > 1);
}

#[test]
fn what_goaway_leaves_goes_out_again() {
    // Of 16 streams it answers the first four, and announces that it saw no other.
    let server = Server::start(|mut peer, number| {
        greet(&mut peer)?;
        if number > 0 {
            loop {
                let stream = next_stream(&mut peer)?;
                peer.say_bytes(&ok(stream))?;
            }
        }
        let mut streams = Vec::new();
        while streams.len() < 16 {
            streams.push(next_stream(&mut peer)?);
        }
        let mut said: Vec<u8> = streams[..4].iter().flat_map(|stream| ok(*stream)).collect();
        said.extend(go_away(streams[3], 0));
        peer.say_bytes(&said)?;
        peer.stall();
        Ok(())
    });
    let result = complete(&counted(server.port, 16, 16));
    result.are_all("ok");
    assert_eq!((result.total(), result.count("sent"), result.count("resent")), (16, 16, 12));
    assert_eq!(result.count("retried"), 0);
    assert_eq!((result.count("reconnects"), server.accepted.load(SeqCst)), (1, 2));
}

#[test]
fn what_goaways_leave_goes_out_again_however_often() {
    // A connection accepts three streams of 16, as the server announces before it answers them.
    let server = Server::start(|mut peer, _| {
        greet(&mut peer)?;
        let mut streams = Vec::new();
        while streams.len() < 3 {
            streams.push(next_stream(&mut peer)?);
        }
        peer.say_bytes(&go_away(0x7fff_ffff, 0))?;
        peer.say_bytes(&go_away(streams[2], 0))?;
        for stream in streams {
            peer.say_bytes(&ok(stream))?;
        }
        peer.stall();
        Ok(())
    });
    let result = complete(&counted(server.port, 16, 300));
    result.are_all("ok");
    assert!(result.count("resent") > 1000, "{}", result.event["counts"]);
    assert_eq!(result.count("retried"), 0, "{}", result.event["counts"]);
}

/// A server that accepts no stream of a connection may do so for ever, so this counts against the requests.
#[test]
fn who_is_left_for_the_third_time_is_refused() {
    let server = Server::start(|mut peer, _| {
        greet(&mut peer)?;
        let stream = next_stream(&mut peer)?;
        peer.say_bytes(&go_away(stream - 1, 0))?;
        peer.stall();
        Ok(())
    });
    let result = complete(&counted(server.port, 1, 3));
    result.are_all("refused");
    assert_eq!(result.count("retried"), 2 * result.total());
}

#[test]
fn a_server_that_goes_at_once_leaves_no_request_uncounted() {
    let server = Http2Server::start(Builder::new(), |received: &Received| match received.turn {
        30 => Act::GoAtOnce,
        _ => Act::Late(Duration::from_millis(1)),
    });
    let result = complete(&streams(server.port, 16));
    assert!(result.outcome("ok") > 0);
    let known = ["ok", "closed", "reset", "refused", "malformed"];
    assert_eq!(of_outcomes(&result, &known), result.total(), "{}", result.event["counts"]);
    assert_eq!(result.outcome("malformed"), 0, "{}", result.event["counts"]);
}

#[test]
fn a_reset_stream_is_refused_and_others_go_on() {
    let server = Http2Server::start(Builder::new(), |received: &Received| match received.turn % 4 {
        3 => Act::Reset(Reason::INTERNAL_ERROR),
        _ => Act::Answer("hello"),
    });
    let output = run(&counted(server.port, 1, 40));
    let result = output.result();
    assert_eq!((result.outcome("refused"), result.outcome("ok"), result.total()), (10, 30, 40));
    assert_eq!((result.count("retried"), server.accepted.load(SeqCst)), (0, 1));
    assert_eq!(result.reason("refused"), "the server reset the stream with INTERNAL_ERROR");
    let result = complete(&streams(server.port, 16));
    assert_eq!(of_outcomes(&result, &["ok", "refused"]), result.total());
    assert!(result.outcome("refused") > 0);
}

#[test]
fn a_stream_that_was_not_processed_goes_out_again() {
    let server = Http2Server::start(Builder::new(), |received: &Received| match received.turn % 4 {
        3 => Act::Reset(Reason::REFUSED_STREAM),
        _ => Act::Answer("hello"),
    });
    let result = complete(&counted(server.port, 1, 30));
    result.are_all("ok");
    assert_eq!((result.total(), result.count("retried"), server.accepted.load(SeqCst)), (30, 9, 1));
    let never = Http2Server::start(Builder::new(), |_: &Received| Act::Reset(Reason::REFUSED_STREAM));
    let result = complete(&counted(never.port, 1, 5));
    result.are_all("refused");
    assert_eq!(result.count("retried"), 2 * result.total());
}

#[test]
fn a_server_that_allows_four_streams_gets_four() {
    let mut builder = Builder::new();
    builder.max_concurrent_streams(4);
    let server = Http2Server::start(builder, |_| Act::Late(Duration::from_millis(2)));
    // Before its SETTINGS are known, more streams may be opened, which are refused and sent again.
    let result = complete(&streams(server.port, 16));
    result.are_all("ok");
    assert!((1..=4).contains(&server.most_open.load(SeqCst)));
    assert_eq!((server.accepted.load(SeqCst), result.count("reconnects")), (1, 0));
}

/// Send SETTINGS that allow no stream, and refuse what was sent before they arrived.
fn allow_none(peer: &mut Peer) -> std::io::Result<()> {
    peer.bytes(24)?;
    // SETTINGS before the first request would hold it back. They are the first frame all the same.
    let stream = loop {
        let frame = read_frame(peer)?;
        if frame.kind == HEADERS {
            break frame.stream;
        }
    };
    peer.say_bytes(&settings(&[(MAX_CONCURRENT_STREAMS, 0)]))?;
    peer.say_bytes(&frame(SETTINGS, 1, 0, &[]))?;
    peer.say_bytes(&frame(RST_STREAM, 0, stream, &7_u32.to_be_bytes()))
}

#[test]
fn a_server_that_allows_no_stream_is_waited_for() {
    let server = Server::start(|mut peer, _| {
        allow_none(&mut peer)?;
        thread::sleep(Duration::from_millis(100));
        peer.say_bytes(&settings(&[(MAX_CONCURRENT_STREAMS, 2)]))?;
        loop {
            let stream = next_stream(&mut peer)?;
            peer.say_bytes(&ok(stream))?;
        }
    });
    let result = complete(&counted(server.port, 1, 50));
    result.are_all("ok");
    assert_eq!((server.accepted.load(SeqCst), result.count("reconnects"), result.count("retried")), (1, 0, 1));
    assert!(result.histogram("response").max_ns() >= 100_000_000 - 100_000);
}

#[test]
fn a_server_that_never_allows_a_stream_is_not_connected_to_again_and_again() {
    // It refuses what was sent before its SETTINGS arrived, or answers that and waits.
    let server = Server::start(|mut peer, number| {
        if number % 2 == 0 {
            allow_none(&mut peer)?;
        } else {
            peer.bytes(24)?;
            peer.say_bytes(&settings(&[(MAX_CONCURRENT_STREAMS, 0)]))?;
            let stream = next_stream(&mut peer)?;
            peer.say_bytes(&ok(stream))?;
        }
        peer.stall();
        Ok(())
    });
    let open =
        json!({"rate_per_s": 200, "arrivals": "uniform", "connections": 4, "connections_at_start": 2, "depth": 4});
    for load in [json!({"closed": {"users": 4, "depth": 1}}), json!({"open": open})] {
        let before = server.accepted.load(SeqCst);
        let job = with(with(streams(server.port, 1), "/load", load), "/timeout_ns", json!(100_000_000));
        let job = with(job, "/requests/0/expect", json!({"status": 200}));
        let result = complete(&job);
        assert!(result.outcome("timeout") > 0, "{}", result.event["counts"]);
        assert_eq!(of_outcomes(&result, &["ok", "refused", "timeout", "unsent", "in_flight"]), result.total());
        assert_eq!((server.accepted.load(SeqCst) - before, result.count("reconnects")), (4, 0));
    }
}

#[test]
fn a_large_body_goes_through_small_windows() {
    let mut builder = Builder::new();
    builder.initial_window_size(1024).initial_connection_window_size(65_535);
    let server = Http2Server::start(builder, |_| Act::Length);
    let request = json!({"method": "POST", "path": "/", "body_base64": "QUFB".repeat(100_000),
        "expect": {"status": 200, "json": [{"pointer": "", "equals": 300_000}]}});
    let job = with(counted(server.port, 4, 8), "/requests", json!([request]));
    complete(&with(job, "/timeout_ns", json!(20_000_000_000_u64))).are_all("ok");
}

#[test]
fn placeholders_are_filled_in_streams() {
    let server = Http2Server::start(Builder::new(), |received: &Received| {
        let number = received.request.uri().path().trim_start_matches('/');
        let output = received.request.headers().get("x-seq").unwrap().to_str().unwrap();
        if number == output { Act::Length } else { Act::Status(400) }
    });
    let request = json!({"method": "POST", "path": "/{seq}", "headers": [["X-Seq", "{seq}"]],
        "body_text": "{rand:10..99}", "expect": {"status": 200, "json": [{"pointer": "", "equals": 2}]}});
    complete(&with(counted(server.port, 8, 100), "/requests", json!([request]))).are_all("ok");
}

#[test]
fn a_slow_stream_times_out_alone() {
    let server = Http2Server::start(Builder::new(), |received: &Received| match received.turn {
        5 => Act::Stall,
        _ => Act::Answer("hello"),
    });
    let result = complete(&with(streams(server.port, 4), "/timeout_ns", json!(100_000_000)));
    assert_eq!((result.outcome("timeout"), result.outcome("ok")), (1, result.total() - 1));
    assert_eq!((server.accepted.load(SeqCst), result.count("reconnects")), (1, 0));
    assert!(result.histogram("response").max_ns() >= 100_000_000 - 100_000);
}

#[test]
fn a_connection_is_replaced_after_its_streams() {
    let server = Http2Server::hello();
    let job = with(streams(server.port, 4), "/load/closed/requests_per_connection", json!(10));
    let result = complete(&job);
    result.are_all("ok");
    let (requests, accepted) = (result.total(), server.accepted.load(SeqCst) as u64);
    assert!(requests.div_ceil(10) <= accepted && accepted <= requests.div_ceil(10) + 1, "{requests} on {accepted}");
}

#[test]
fn a_connection_that_ends_in_the_middle_is_closed_or_reset() {
    let server = Http2Server::start(Builder::new(), |received: &Received| match received.turn {
        9 => Act::Hangup,
        _ => Act::Answer("hello"),
    });
    let result = complete(&streams(server.port, 4));
    assert!(result.outcome("ok") > 0 && result.count("reconnects") > 0);
    assert_eq!(of_outcomes(&result, &["ok", "closed", "reset"]), result.total(), "{}", result.event["counts"]);
}

#[test]
fn what_breaks_the_rules_of_a_connection_is_malformed() {
    // DATA on stream 0; HEADERS on a stream that nobody opened; a frame that is too long.
    for wrong in [frame(0, 0, 0, b"x"), frame(1, 5, 3001, &[0x88]), frame(0, 0, 1, &vec![0; 20_000])] {
        let server = Server::start(move |mut peer, _| {
            greet(&mut peer)?;
            next_stream(&mut peer)?;
            peer.say_bytes(&wrong)?;
            peer.stall();
            Ok(())
        });
        let result = complete(&counted(server.port, 2, 4));
        result.are_all("malformed");
    }
}

#[test]
fn who_continues_a_stream_after_its_end_is_sent_a_goaway() {
    for backend in ["epoll", "io_uring"] {
        let goaways = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&goaways);
        let server = Server::start(move |mut peer, _| {
            greet(&mut peer)?;
            let stream = next_stream(&mut peer)?;
            peer.say_bytes(&ok(stream))?;
            let stream = next_stream(&mut peer)?;
            // The answer, and the same answer again after its end.
            peer.say_bytes(&[ok(stream), ok(stream)].concat())?;
            while let Ok(frame) = read_frame(&mut peer) {
                seen.fetch_add(usize::from(frame.kind == GOAWAY), SeqCst);
            }
            Ok(())
        });
        let result = complete(&with(counted(server.port, 1, 40), "/backend", json!(backend)));
        result.are_all("ok");
        assert_eq!((result.total(), &result.event["counts"]["surplus"]), (40, &json!(20)));
        // A GOAWAY is not sent while the kernel is writing other bytes, and the last may be in flight when the engine has
        // ended.
        assert!((15..=20).contains(&goaways.load(SeqCst)), "{backend}: {goaways:?}");
    }
}

#[test]
fn a_server_of_another_protocol_is_no_hang() {
    // As HTTP/1.1 servers do: they answer the method PRI with 400 and close, or with nothing.
    let server = Server::start(|mut peer, _| {
        peer.bytes(24)?;
        peer.say_the_last("HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
    });
    let silent = Server::answering(HELLO);
    for port in [server.port, silent.port] {
        let output = run(&with(streams(port, 4), "/timeout_ns", json!(150_000_000)));
        if output.code == Some(0) {
            let result = output.result();
            let known = ["malformed", "connect", "closed", "reset", "timeout", "in_flight"];
            assert_eq!(of_outcomes(&result, &known), result.total(), "{}", result.event["counts"]);
        } else {
            assert_eq!(output.error()["kind"], "connect");
        }
    }
}

#[test]
fn a_server_that_dies_leaves_no_request_uncounted() {
    let server = Server::start(|mut peer, _| {
        greet(&mut peer)?;
        loop {
            let stream = next_stream(&mut peer)?;
            peer.say_bytes(&ok(stream))?;
        }
    });
    let load = json!({"users": 3, "depth": 16, "think": {"fixed_ns": 1_000_000}});
    let job = with(counted(server.port, 16, 1_000_000_000), "/load/closed", load);
    let mut engine = Engine::start(&job.to_string());
    engine.wait_for_measured("/outcomes/ok");
    server.kill();
    engine.wait_for_measured("/outcomes/connect");
    engine.signal(libc::SIGINT);
    let output = engine.finish();
    assert_eq!(output.code, Some(130));
    let result = output.result();
    let known = ["ok", "closed", "reset", "connect", "in_flight", "unsent"];
    assert_eq!(of_outcomes(&result, &known), result.total(), "{}", result.event["counts"]);
}

/// The HTTP status does not tell how a gRPC call went: it is 200 for all calls.
#[test]
fn a_call_that_failed_is_a_wrong_answer_with_its_status() {
    let fails = [(Act::Grpc("13"), "13"), (Act::Grpc(""), "2"), (Act::Grpc("99"), "2"), (Act::Grpc("no"), "2")];
    for (act, status) in fails.into_iter().chain([(Act::GrpcHead("14"), "14"), (Act::GrpcHead(""), "2")]) {
        let server = Http2Server::start(Builder::new(), move |_| act);
        let result = complete(&counted(server.port, 4, 40));
        result.are_all("unexpected_status");
        assert_eq!(result.event["counts"]["grpc_status"], json!({status: 40}), "{act:?}");
        assert_eq!((result.count("completed"), &result.event["counts"]["status"]), (0, &json!({"2xx": 40})));
    }
    for act in [Act::Grpc("0"), Act::GrpcHead("0"), Act::Answer("hello")] {
        let server = Http2Server::start(Builder::new(), move |_| act);
        let result = complete(&counted(server.port, 4, 40));
        result.are_all("ok");
        assert!(result.event["counts"]["grpc_status"].is_null());
    }
}
