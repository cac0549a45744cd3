//! Bytes that nobody requested: the answer before them is right, the connection is closed, and both are counted, whenever the
//! bytes arrive.

use std::thread;
use std::time::Duration;

use crate::support::http2::{greet, next_stream, ok};
use crate::support::server::{HELLO, Server};
use crate::support::tls::{TlsServer, certificates};
use crate::support::{Outcome, complete, job, open_job, with};
use rustls::version::TLS13;
use serde_json::{Value, json};

/// An answer, what follows it, and the method of the request.
const CASES: [(&str, &str, &str); 5] = [
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "0\r\n\r\n", "GET"),
    ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "Hello", "HEAD"),
    (HELLO, "\r\n", "GET"),
    (HELLO, "H", "GET"),
    ("HTTP/1.1 204 No Content\r\n\r\n", "{}", "GET"),
];

/// When the bytes arrive after their answer: with it, soon, and when the next request is in flight or none is.
const DELAYS_MS: [u64; 4] = [0, 1, 10, 50];

/// Requests with so much time in between that the bytes arrive first, or without.
fn jobs(port: u16) -> [Value; 2] {
    let at_once = with(job(port), "/load", json!({"closed": {"users": 2}}));
    let job = with(job(port), "/load", json!({"closed": {"users": 2, "think": {"fixed_ns": 70_000_000}}}));
    [job, at_once].map(|job| with(with(job, "/count", json!(12)), "/measure_ns", json!(20_000_000_000_u64)))
}

fn surplus(result: &Outcome) -> u64 {
    result.event["counts"]["surplus"].as_u64().unwrap_or(0)
}

/// All requests are right, and nearly all their connections were closed because of surplus bytes.
fn is_surplus_of_right_answers(result: &Outcome, what: &str) {
    result.are_all("ok");
    // The bytes after the last answers may arrive when the load is over.
    assert!(surplus(result) + 4 >= result.total() / 2 && surplus(result) > 0, "{what}: {}", result.event["counts"]);
    assert!(result.count("reconnects") + 4 >= surplus(result), "{what}: {}", result.event["counts"]);
}

#[test]
fn bytes_after_an_answer_have_one_verdict_at_any_time() {
    for (answer, more, method) in CASES {
        for delay_ms in DELAYS_MS {
            let server = Server::start(move |mut peer, _| {
                while peer.request()?.is_some() {
                    if delay_ms == 0 {
                        peer.say(&format!("{answer}{more}"))?;
                    } else {
                        peer.say(answer)?;
                        thread::sleep(Duration::from_millis(delay_ms));
                        peer.say(more)?;
                    }
                }
                Ok(())
            });
            let status = if answer == HELLO || method == "HEAD" || answer.contains("chunked") { 200 } else { 204 };
            for job in jobs(server.port) {
                let job =
                    with(with(job, "/requests/0/method", json!(method)), "/requests/0/expect/status", json!(status));
                is_surplus_of_right_answers(&complete(&job), &format!("{more:?} after {delay_ms} ms"));
            }
        }
    }
}

#[test]
fn bytes_after_an_answer_have_the_same_verdict_over_tls() {
    let certificates = certificates("127.0.0.1");
    for delay_ms in DELAYS_MS {
        let server = TlsServer::start(certificates.config(&[&TLS13], &[]), move |mut peer, _| {
            while peer.request()?.is_some() {
                if delay_ms == 0 {
                    peer.say(&format!("{HELLO}0\r\n\r\n"))?;
                } else {
                    peer.say(HELLO)?;
                    thread::sleep(Duration::from_millis(delay_ms));
                    peer.say("0\r\n\r\n")?;
                }
            }
            Ok(())
        });
        for job in jobs(server.port) {
            let result = complete(&with(job, "/target/tls", json!({"ca_pem": certificates.ca_pem})));
            is_surplus_of_right_answers(&result, &format!("after {delay_ms} ms"));
        }
    }
}

#[test]
fn frames_after_the_end_of_a_stream_have_the_same_verdict() {
    for delay_ms in DELAYS_MS {
        let server = Server::start(move |mut peer, _| {
            greet(&mut peer)?;
            loop {
                let stream = next_stream(&mut peer)?;
                peer.say_bytes(&ok(stream))?;
                thread::sleep(Duration::from_millis(delay_ms));
                peer.say_bytes(&ok(stream))?;
            }
        });
        for job in jobs(server.port) {
            let result = complete(&with(job, "/target/http", json!("2")));
            is_surplus_of_right_answers(&result, &format!("after {delay_ms} ms"));
        }
    }
}

/// If the next requests are already in flight, these bytes arrive instead of their answers: they are written again.
#[test]
fn requests_behind_surplus_bytes_are_written_again() {
    let server = Server::start(|mut peer, number| {
        let mut turn = 0;
        while peer.request()?.is_some() {
            turn += 1;
            peer.say(HELLO)?;
            if number == 0 && turn == 4 {
                peer.say("0\r\n\r\n")?;
            }
        }
        Ok(())
    });
    let job = with(job(server.port), "/load", json!({"closed": {"users": 1, "depth": 16}}));
    let result = complete(&with(with(job, "/warmup_ns", json!(0)), "/count", json!(16)));
    result.are_all("ok");
    assert_eq!((result.total(), surplus(&result), result.count("resent")), (16, 1, 12));
}

/// A server that sends more after every answer has one right answer per connection, however many requests wait after it.
#[test]
fn a_pipeline_with_surplus_bytes_after_every_answer_has_the_same_verdict() {
    let server = Server::start(|mut peer, _| {
        while peer.request()?.is_some() {
            peer.say(&format!("{HELLO}0\r\n\r\n"))?;
        }
        Ok(())
    });
    let job = with(job(server.port), "/load", json!({"closed": {"users": 1, "depth": 8}}));
    let result = complete(&with(with(job, "/warmup_ns", json!(0)), "/count", json!(8)));
    result.are_all("ok");
    assert!((7..=8).contains(&surplus(&result)), "{}", result.event["counts"]);
}

/// An answer that closes its connection is the last: later bytes are not read, whatever they are and whenever they arrive.
#[test]
fn bytes_after_the_last_answer_of_a_connection_are_not_read() {
    const LAST: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello";
    for delay_ms in [0, 5] {
        let server = Server::start(move |mut peer, _| {
            peer.request()?;
            peer.say(LAST)?;
            thread::sleep(Duration::from_millis(delay_ms));
            peer.say("0\r\n\r\n")
        });
        let result = complete(&open_job(server.port, 100, 4));
        result.are_all("ok");
        assert_eq!(surplus(&result), 0);
    }
}
