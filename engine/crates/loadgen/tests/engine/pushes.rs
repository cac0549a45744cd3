//! Users who only listen: what is pushed on connections, and the server's clock in the messages of streams.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering::SeqCst};
use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls::version::TLS13;
use serde_json::{Value, json};
use tungstenite::protocol::Role;
use tungstenite::{Message, WebSocket};

use crate::checks::{Checks, check_of};
use crate::shards::signal;
use crate::support::engine::is_stopped;
use crate::support::http2::{Act, Http2Server};
use crate::support::output::histogram;
use crate::support::server::Server;
use crate::support::tls::{TlsServer, certificates};
use crate::support::{Engine, Outcome, complete, job, run, with};
use crate::websockets::{Oracle, open};
use h2::server::Builder;

/// Users who listen, each to `stream`, as often as `count` says in all.
fn listening(port: u16, stream: &Value, count: u64) -> Value {
    let mut stream = stream.clone();
    stream["events"] = json!("messages");
    let request = json!({
        "method": "GET", "path": "/ticks", "expect": {"status": 200}, "websocket": {"answer": "listen"},
        "stream": stream, "timestamp": {"unit": "ns"},
    });
    let job = with(with(job(port), "/requests", json!([request])), "/load", json!({"closed": {"users": 5}}));
    let job = with(with(job, "/warmup_ns", json!(0)), "/count", json!(count));
    with(with(job, "/measure_ns", json!(30_000_000_000_u64)), "/drain_ns", json!(10_000_000_000_u64))
}

fn streams(result: &Outcome, count: &str) -> u64 {
    result.event["streams"][count].as_u64().unwrap()
}

fn now_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64
}

#[test]
fn both_sides_count_the_same_pushes_and_each_says_its_delay() {
    let oracle = Oracle::start(&["null", "--pushes", "20", "--push-every", "5ms", "--push-delay", "100ms", "--report"]);
    let result = complete(&listening(oracle.port, &json!({"until": 20}), 30));
    result.are_all("ok");
    assert_eq!((result.count("due"), streams(&result, "begun"), streams(&result, "early")), (30, 30, 0));
    assert_eq!(streams(&result, "counted"), 600);
    let of_streams = |name| histogram(&result.event["streams"], name);
    assert_eq!((of_streams("first_event").count(), of_streams("gaps").count()), (30, 570));
    let push = of_streams("push");
    assert_eq!(push.count(), 600);
    // A message says an earlier time than that at which it is sent, and none comes before it is sent.
    assert!(push.min_ns() >= 99_000_000, "{}", push.min_ns());
    assert!(of_streams("first_event").min_ns() >= 4_900_000);
    assert!(result.event["counts"]["status"].as_object().unwrap().is_empty());
    let report = oracle.report();
    assert_eq!(report["answer"]["count"], 600);
    assert_eq!((&report["targets"], &report["closes"]), (&json!({"ticks": 30}), &json!({"1000": 30})));
}

#[test]
fn a_user_listens_for_as_long_as_it_should() {
    let oracle = Oracle::start(&["null", "--pushes", "20000", "--push-every", "2ms"]);
    let result = complete(&listening(oracle.port, &json!({"for_ns": 60_000_000}), 10));
    result.are_all("ok");
    assert!(streams(&result, "counted") > 10);
    assert!(result.histogram("response").min_ns() >= 60_000_000);
}

/// Whoever listens from the warm-up on is heard in the measurement, though the conversation is not of it.
#[test]
fn pushes_belong_to_the_time_in_which_they_come() {
    let oracle = Oracle::start(&["null", "--pushes", "20000", "--push-every", "2ms"]);
    let job = listening(oracle.port, &json!({"for_ns": 600_000_000}), 1);
    let job = with(with(job, "/count", Value::Null), "/warmup_ns", json!(200_000_000));
    let result = complete(&with(job, "/measure_ns", json!(300_000_000)));
    assert_eq!((result.count("due"), streams(&result, "begun")), (0, 0));
    let push = histogram(&result.event["streams"], "push").count();
    assert!(push > 0 && streams(&result, "events") == push, "{push}");
}

/// A server that does this on each WebSocket.
fn serving(
    serve: impl Fn(&mut WebSocket<std::net::TcpStream>) -> tungstenite::Result<()> + Send + Sync + 'static,
) -> Server {
    Server::start(move |mut peer, _| {
        open(&mut peer)?;
        let mut socket = WebSocket::from_raw_socket(peer.into_stream(), Role::Server, None);
        let _ = serve(&mut socket);
        Ok(())
    })
}

/// What a user hears whose engine stands still whenever the server sends: `at_once` messages in each pause of the engine, and
/// the server's own times of sending.
fn heard_late(backend: &str, at_once: u32, every: Duration) -> (Outcome, Vec<u64>) {
    const PAUSES: u32 = 8;
    let (engine_pid, sent) = (Arc::new(AtomicI32::new(0)), Arc::new(std::sync::Mutex::new(Vec::new())));
    let (pid, times) = (Arc::clone(&engine_pid), Arc::clone(&sent));
    let server = serving(move |socket| {
        while pid.load(SeqCst) == 0 {
            sleep(Duration::from_millis(1));
        }
        for _ in 0..PAUSES {
            signal(pid.load(SeqCst), libc::SIGSTOP);
            while !is_stopped(pid.load(SeqCst)) {
                sleep(Duration::from_millis(1));
            }
            for _ in 0..at_once {
                sleep(every);
                let now_ns = now_ns();
                socket.send(Message::text(now_ns.to_string()))?;
                times.lock().unwrap().push(now_ns);
            }
            sleep(every);
            signal(pid.load(SeqCst), libc::SIGCONT);
            sleep(every);
        }
        socket.read().map(drop)
    });
    let job = listening(server.port, &json!({"until": PAUSES * at_once}), 1);
    let job = with(with(job, "/load/closed/users", json!(1)), "/backend", json!(backend));
    let engine = Engine::start(&job.to_string());
    engine_pid.store(engine.pid(), SeqCst);
    let result = engine.finish().result();
    result.are_all("ok");
    let sent = sent.lock().unwrap().clone();
    (result, sent)
}

#[test]
fn messages_have_the_time_of_their_arrival_however_late_they_are_read() {
    for backend in ["epoll", "io_uring"] {
        let (result, sent) = heard_late(backend, 1, Duration::from_millis(20));
        let of_streams = |name| histogram(&result.event["streams"], name);
        let apart = sent.windows(2).map(|pair| pair[1] - pair[0]);
        let (least, most) = (apart.clone().min().unwrap(), apart.max().unwrap());
        let (gaps, late) = (of_streams("gaps"), of_streams("read_lateness"));
        assert_eq!((late.count(), streams(&result, "blurred")), (8, 0));
        assert!(late.min_ns() >= 19_000_000, "{backend}: {}", late.min_ns());
        assert!(gaps.max_ns().abs_diff(most) < 5_000_000, "{backend}: {} of {most}", gaps.max_ns());
        assert!(gaps.min_ns().abs_diff(least) < 5_000_000, "{backend}: {} of {least}", gaps.min_ns());
        assert!(of_streams("push").max_ns() < 10_000_000, "{backend}: {}", of_streams("push").max_ns());
    }
}

#[test]
fn messages_that_were_read_together_late_may_have_come_one_by_one() {
    for backend in ["epoll", "io_uring"] {
        let (result, _) = heard_late(backend, 3, Duration::from_millis(15));
        // All but perhaps the first pause, in which the WebSocket may not have been open.
        assert!(streams(&result, "blurred") >= 7 * 3, "{backend}: {}", result.event["streams"]);
    }
}

#[test]
fn messages_that_are_sent_together_and_read_at_once_are_sure() {
    let server = serving(|socket| {
        for _ in 0..6 {
            for _ in 0..3 {
                socket.write(Message::text(now_ns().to_string()))?;
            }
            socket.flush()?;
            sleep(Duration::from_millis(300));
        }
        socket.read().map(drop)
    });
    let result = complete(&with(listening(server.port, &json!({"until": 18}), 1), "/load/closed/users", json!(1)));
    // A busy machine reads some late.
    assert!(streams(&result, "blurred") <= 9, "{}", result.event["streams"]);
}

#[test]
fn what_a_user_sends_first_is_sent_once() {
    let server = serving(|socket| {
        let asked = socket.read()?;
        for _ in 0..3 {
            socket.send(Message::text(format!("{} {asked}", now_ns())))?;
        }
        socket.read().map(drop)
    });
    let mut job = listening(server.port, &json!({"until": 3, "message": {"regex": " ticks [0-9]$"}}), 4);
    job["requests"][0]["websocket"]["message"] = json!("text");
    job["requests"][0]["body_text"] = json!("ticks {seq}");
    job["requests"][0]["timestamp"] = Value::Null;
    let result = complete(&job);
    result.are_all("ok");
    assert_eq!(streams(&result, "counted"), 12);
}

#[test]
fn a_greeting_is_no_push_and_messages_that_do_not_count_are_counted_apart() {
    let server = serving(|socket| {
        for text in ["welcome", "{\"at\": 5}", "{}", "{\"at\": 6}"] {
            socket.send(Message::text(text))?;
        }
        socket.read().map(drop)
    });
    let mut job = listening(server.port, &json!({"until": 2, "message": {"json": ["/at"]}}), 4);
    job["requests"][0]["websocket"]["greeting"] = json!(1);
    job["requests"][0]["timestamp"] = json!({"pointer": "/at", "unit": "s"});
    let result = complete(&with(with(job, "/count", Value::Null), "/measure_ns", json!(200_000_000)));
    result.are_all("ok");
    let (begun, aside) = (streams(&result, "begun"), streams(&result, "aside"));
    assert_eq!(streams(&result, "counted"), 2 * begun);
    // What came after the measurement is not counted apart.
    assert!((1..=begun).contains(&aside), "{aside} of {begun}");
}

#[test]
fn what_ends_too_early_is_named() {
    let closing = serving(|socket| {
        socket.send(Message::text(now_ns().to_string()))?;
        socket.close(None)?;
        socket.read().map(drop)
    });
    let result = complete(&listening(closing.port, &json!({"until": 2}), 5));
    result.are_all("closed");
    assert_eq!((streams(&result, "early"), streams(&result, "counted")), (5, 5));
    assert!(result.reason("closed").starts_with("the server closed the WebSocket"), "{}", result.reason("closed"));

    let silent = serving(|socket| socket.read().map(drop));
    let stall = json!({"until": 2, "stall_ns": 50_000_000, "stall_fails": true});
    complete(&listening(silent.port, &stall, 5)).are_all("timeout");

    let untimed = serving(|socket| socket.send(Message::text("soon")).and_then(|()| socket.read().map(drop)));
    let result = complete(&listening(untimed.port, &json!({"until": 2}), 5));
    result.are_all("unexpected_body");
    let reason = result.reason("unexpected_body");
    assert_eq!(reason, "a message does not state the time where the request says; it was soon");

    let forbidden = Server::answering("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno");
    let result = complete(&listening(forbidden.port, &json!({"until": 2}), 5));
    result.are_all("unexpected_status");
    let reason = result.reason("unexpected_status");
    assert_eq!(reason, "the WebSocket handshake failed: status 403 Forbidden in place of 101: no");

    let gone = Server::start(|mut peer, _| peer.whole_request().map(drop));
    complete(&listening(gone.port, &json!({"until": 2}), 5)).are_all("closed");
}

#[test]
fn a_check_of_a_listener_ends_with_the_first_message() {
    let oracle = Oracle::start(&["null", "--pushes", "9", "--push-every", "1ms"]);
    let request = listening(oracle.port, &json!({"until": 9}), 1)["requests"][0].clone();
    let seen = Checks::start().check(&with(check_of(oracle.port), "/request", request));
    assert_eq!(
        (&seen["outcome"], &seen["status"], &seen["body_length"]),
        (&json!("ok"), &json!(101), &json!(19)),
        "{seen:#}"
    );
}

#[test]
fn a_listener_and_its_stream_belong_together() {
    let refused = |place: &str, value: Value| {
        let output = run(&with(listening(1, &json!({"until": 1}), 1), place, value));
        assert_eq!(output.code, Some(2), "{:#?}", output.events);
        output.error()["message"].as_str().unwrap().to_owned()
    };
    assert!(refused("/requests/0/stream", Value::Null).contains("a stream of messages is what a WebSocket answers"));
    assert!(refused("/requests/0/stream/events", json!("sse")).contains("a stream of messages is what"));
    assert!(refused("/requests/0/websocket", Value::Null).contains("a stream of messages is what"));
    assert!(refused("/requests/0/websocket/answer", json!("echo")).contains("a stream of messages is what"));
}

/// A server-sent event that says the time.
fn event() -> String {
    format!("data: {{\"at\": {}}}\n\n", now_ns())
}

fn following(port: u16) -> Value {
    let job = with(with(job(port), "/load", json!({"closed": {"users": 2}})), "/warmup_ns", json!(0));
    let job =
        with(with(job, "/requests/0/expect", json!({"status": 200})), "/requests/0/stream", json!({"events": "sse"}));
    let job = with(job, "/requests/0/timestamp", json!({"pointer": "/at", "unit": "ns"}));
    with(with(job, "/count", json!(8)), "/measure_ns", json!(30_000_000_000_u64))
}

const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

#[test]
fn the_events_of_a_stream_state_the_servers_clock() {
    let server = Server::start(|mut peer, _| {
        while peer.request()?.is_some() {
            peer.say(HEAD)?;
            for _ in 0..5 {
                let event = event();
                sleep(Duration::from_millis(2));
                peer.say(&format!("{:x}\r\n{event}\r\n", event.len()))?;
            }
            peer.say("0\r\n\r\n")?;
        }
        Ok(())
    });
    let certificates = certificates("127.0.0.1");
    let secure = TlsServer::start(certificates.config(&[&TLS13], &[]), |mut peer, _| {
        while peer.request()?.is_some() {
            let event = event();
            let body = format!("{:x}\r\n{event}\r\n0\r\n\r\n", event.len());
            peer.say(&format!("{HEAD}{body}"))?;
        }
        Ok(())
    });
    let result = complete(&following(server.port));
    result.are_all("ok");
    let push = histogram(&result.event["streams"], "push");
    assert_eq!(push.count(), 40);
    assert!(push.min_ns() >= 1_900_000, "{}", push.min_ns());
    let tls = json!({"ca_pem": certificates.ca_pem});
    let result = complete(&with(following(secure.port), "/target/tls", tls));
    assert_eq!(histogram(&result.event["streams"], "push").count(), 8);
}

#[test]
fn an_event_without_the_time_is_wrong_in_every_version() {
    let old =
        Server::answering("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 9\r\n\r\ndata: x\n\n");
    let new = Http2Server::start(Builder::new(), move |_| Act::Events(2, Duration::from_millis(1), true));
    for (port, http) in [(old.port, "1.1"), (new.port, "2")] {
        let result = complete(&with(following(port), "/target/http", json!(http)));
        result.are_all("unexpected_body");
        let reason = result.reason("unexpected_body");
        assert_eq!(reason, "a message does not state the time where the request says; it was x");
    }
}
