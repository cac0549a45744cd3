//! Answers that are streams of events, over HTTP/1.1, HTTP/2 and TLS.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;
use std::thread::sleep;
use std::time::Duration;

use crate::support::http2::{Act, Http2Server};
use crate::support::output::histogram;
use crate::support::server::Server;
use crate::support::tls::{TlsServer, certificates};
use crate::support::{Engine, Outcome, complete, job, run, with};
use h2::server::Builder;
use rustls::version::TLS13;
use serde_json::{Value, json};

const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
const EVENT: &str = "9\r\ndata: x\n\n\r\n";
const GAP: Duration = Duration::from_millis(10);

/// A server of this many events, this far apart; `ends`: the stream ends after them, else it stays open. Returns also how many
/// events it has sent.
fn streaming(events: u64, ends: bool) -> (Server, Arc<AtomicU64>) {
    let sent = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&sent);
    let server = Server::start(move |mut peer, _| {
        while peer.request()?.is_some() {
            peer.say(HEAD)?;
            for _ in 0..events {
                sleep(GAP);
                peer.say(EVENT)?;
                counter.fetch_add(1, SeqCst);
            }
            if !ends {
                peer.stall();
                return Ok(());
            }
            peer.say("0\r\n\r\n")?;
        }
        Ok(())
    });
    (server, sent)
}

/// Two users, each of whom follows a stream, without a warm-up.
fn following(port: u16, stream: Value) -> Value {
    let job = with(with(job(port), "/load", json!({"closed": {"users": 2}})), "/warmup_ns", json!(0));
    with(job, "/requests/0/stream", stream)
}

fn streams(result: &Outcome, count: &str) -> u64 {
    result.event["streams"][count].as_u64().unwrap()
}

/// The quantile of a stream's histogram, in milliseconds.
fn ms(result: &Outcome, name: &str, q: f64) -> f64 {
    histogram(&result.event["streams"], name).quantile_ns(q) as f64 / 1e6
}

fn count(result: &Outcome, name: &str) -> u64 {
    histogram(&result.event["streams"], name).count()
}

#[test]
fn a_stream_is_followed_to_its_end() {
    let (server, sent) = streaming(5, true);
    let result = complete(&with(following(server.port, json!({"events": "sse"})), "/count", json!(6)));
    result.are_all("ok");
    assert_eq!((result.total(), sent.load(SeqCst), result.count("reconnects")), (6, 30, 0));
    assert_eq!((streams(&result, "begun"), streams(&result, "stalls")), (6, 0));
    assert_eq!((count(&result, "first_event"), count(&result, "gaps")), (6, 24));
    assert!(ms(&result, "gaps", 0.5) > 5.0);
    assert!(ms(&result, "first_event", 0.5) > 9.0);
}

#[test]
fn after_so_many_events_a_request_is_complete_and_its_connection_closed() {
    let (server, _) = streaming(1000, false);
    let result = complete(&with(following(server.port, json!({"events": "sse", "until": 3})), "/count", json!(4)));
    result.are_all("ok");
    assert_eq!((result.total(), server.accepted.load(SeqCst)), (4, 4));
    assert_eq!((streams(&result, "begun"), count(&result, "gaps")), (4, 8));
}

#[test]
fn a_stream_that_ends_before_its_events_is_wrong() {
    let (server, _) = streaming(2, true);
    let result = complete(&with(following(server.port, json!({"events": "sse", "until": 3})), "/count", json!(2)));
    result.are_all("unexpected_body");
    let reason = result.event["failures"][0]["reason"].as_str().unwrap().to_owned();
    assert_eq!(reason, "a stream that ended after 2 of 3 events");
}

#[test]
fn a_stream_without_an_event_is_wrong() {
    let (server, _) = streaming(0, true);
    for events in ["sse", "chunks"] {
        let result = complete(&with(following(server.port, json!({"events": events})), "/count", json!(2)));
        result.are_all("unexpected_body");
        assert_eq!(result.event["failures"][0]["reason"], "a stream without a message");
    }
}

/// The request timeout does not end it.
#[test]
fn a_stream_lasts_as_long_as_it_should() {
    let (server, _) = streaming(3, false);
    let stream = json!({"events": "chunks", "for_ns": 120_000_000, "stall_ns": 50_000_000});
    let job = with(with(following(server.port, stream), "/count", json!(2)), "/timeout_ns", json!(60_000_000));
    let result = complete(&job);
    result.are_all("ok");
    // Its last event came long before its end, until which nothing came.
    assert_eq!((streams(&result, "stalls"), count(&result, "gaps")), (2, 6));
    let response_ms = histogram(&result.event, "response").min_ns() as f64 / 1e6;
    assert!((119.0..200.0).contains(&response_ms), "{response_ms}");
}

#[test]
fn a_stall_fails_if_it_is_to() {
    let (server, _) = streaming(3, false);
    let stream = json!({"events": "sse", "stall_ns": 50_000_000, "stall_fails": true});
    let result = complete(&with(following(server.port, stream), "/count", json!(2)));
    result.are_all("timeout");
    assert_eq!(result.event["failures"][0]["reason"], "no event within 50 ms, after 3 events");
    assert_eq!(streams(&result, "stalls"), 2);
}

#[test]
fn a_stream_that_does_not_end_is_in_flight_at_the_end_and_its_events_count() {
    let (server, sent) = streaming(4, false);
    let job = with(following(server.port, json!({"events": "sse"})), "/drain_ns", json!(0));
    let result = complete(&with(job, "/timeout_ns", json!(50_000_000)));
    result.are_all("in_flight");
    assert_eq!((streams(&result, "events"), sent.load(SeqCst)), (8, 8));
    assert_eq!(result.event["failures"][0]["reason"], "the stream did not end by the end of the load, after 4 events");
}

#[test]
fn what_is_no_such_stream_is_wrong_by_name() {
    let server =
        Server::answering("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 3\r\n\r\n{}\n");
    for (kind, word) in [("ndjson", "Content-Type"), ("sse", "text/event-stream"), ("chunks", "in chunks")] {
        let result = complete(&with(following(server.port, json!({"events": kind})), "/count", json!(2)));
        result.are_all("unexpected_body");
        let reason = result.event["failures"][0]["reason"].as_str().unwrap();
        assert!(reason.contains(word), "{reason}");
    }
}

#[test]
fn events_are_counted_by_request_and_in_both_backends() {
    let (server, sent) = streaming(3, true);
    let stream = json!({"method": "GET", "path": "/s", "expect": {"status": 200}, "stream": {"events": "sse"}});
    let requests = json!([stream, {"method": "GET", "path": "/", "weight": 0, "expect": {"status": 200}}]);
    for backend in ["epoll", "io_uring"] {
        sent.store(0, SeqCst);
        let job = with(with(following(server.port, Value::Null), "/requests", requests.clone()), "/count", json!(4));
        let result = complete(&with(job, "/backend", json!(backend)));
        result.are_all("ok");
        let of_requests = result.event["requests"].as_array().unwrap();
        assert_eq!(of_requests[0]["streams"]["events"], result.event["streams"]["events"]);
        assert_eq!(sent.load(SeqCst), 12);
        assert!(of_requests[1]["streams"].is_null());
    }
}

#[test]
fn http2_streams_are_followed_and_reset() {
    for (stream, events, ends) in
        [(json!({"events": "sse"}), 3, true), (json!({"events": "sse", "until": 3}), 9, false)]
    {
        let server = Http2Server::start(Builder::new(), move |_| Act::Events(events, GAP, ends));
        let job = with(with(following(server.port, stream), "/target/http", json!("2")), "/count", json!(6));
        let result = complete(&with(job, "/load/closed/depth", json!(2)));
        result.are_all("ok");
        assert_eq!((server.accepted.load(SeqCst), result.count("reconnects")), (2, 0));
        assert_eq!((streams(&result, "begun"), count(&result, "gaps")), (6, 12));
        assert!(ms(&result, "gaps", 0.5) > 5.0);
    }
}

#[test]
fn http2_streams_last_as_long_as_they_should() {
    let server = Http2Server::start(Builder::new(), |_| Act::Events(1, GAP, false));
    let stream = json!({"events": "chunks", "for_ns": 60_000_000});
    let job = with(with(following(server.port, stream), "/target/http", json!("2")), "/count", json!(4));
    let result = complete(&job);
    result.are_all("ok");
    assert_eq!((server.accepted.load(SeqCst), streams(&result, "begun")), (2, 4));
}

#[test]
fn events_come_over_tls() {
    let certificates = certificates("127.0.0.1");
    let text = "HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nContent-Length: 9\r\n\r\n{}\n\n{}\n{}";
    let server = TlsServer::answering(certificates.config(&[&TLS13], &[]), text);
    let job = with(following(server.port, json!({"events": "ndjson"})), "/count", json!(4));
    let result = complete(&with(job, "/target/tls", json!({"ca_pem": certificates.ca_pem})));
    result.are_all("ok");
    assert_eq!((streams(&result, "begun"), count(&result, "first_event"), count(&result, "gaps")), (4, 4, 8));
}

#[test]
fn a_check_ends_with_the_first_event() {
    let (server, _) = streaming(1, false);
    let check = json!({
        "format": "redline.check/1", "target": {"host": "127.0.0.1", "port": server.port},
        "request": {"method": "GET", "path": "/", "expect": {"status": 200}, "stream": {"events": "sse", "until": 500}},
        "timeout_ns": 5_000_000_000_u64, "keep_bytes": 100,
    });
    let output = Engine::start_with(&check.to_string(), |command| {
        command.arg("check");
    });
    let output = output.finish();
    let checked = &output.events[0];
    assert_eq!((&checked["outcome"], &checked["status"]), (&json!("ok"), &json!(200)), "{checked}");
    assert_eq!(checked["body_length"], 9);
}

#[test]
fn wrong_streams_are_refused_by_name() {
    let refused = |stream: Value, field: &str| {
        let output = run(&following(1, stream));
        let message = output.error()["message"].as_str().unwrap().to_owned();
        assert!(message.contains(field), "{message}");
    };
    refused(json!({"events": "xml"}), "requests[0].stream.events");
    refused(json!({"events": "sse", "until": 0}), "requests[0].stream.until");
    refused(json!({"events": "sse", "for_ns": 0}), "requests[0].stream.for_ns");
    refused(json!({"events": "sse", "stall_fails": true}), "requests[0].stream.stall_fails");
    let job = with(following(1, json!({"events": "sse"})), "/load/closed/depth", json!(2));
    assert!(run(&job).error()["message"].as_str().unwrap().contains("requests[0].stream"));
    let job = with(following(1, json!({"events": "sse"})), "/requests/0/expect/body_length", json!(2));
    assert!(run(&job).error()["message"].as_str().unwrap().contains("requests[0].stream"));
}
