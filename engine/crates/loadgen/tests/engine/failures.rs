//! Why requests failed: the first failure of each outcome, over warm-up and drain, workers and processes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::support::engine::limit_open_files;
use crate::support::http2::{MAX_CONCURRENT_STREAMS, settings};
use crate::support::server::{HELLO, Server};
use crate::support::{Engine, complete, crowd_job, job, open_job, with};

/// A server that numbers its answers, which are all wrong.
fn numbered() -> Server {
    let number = Arc::new(AtomicUsize::new(0));
    Server::start(move |mut peer, _| {
        while peer.request()?.is_some() {
            let number = number.fetch_add(1, SeqCst).to_string();
            peer.say(&format!("HTTP/1.1 500 Oops\r\nContent-Length: {}\r\n\r\n{number}", number.len()))?;
        }
        Ok(())
    })
}

/// The only failure is of one of the first requests, one per user.
fn is_of_the_first(failures: &Value, users: usize) {
    let failures = failures.as_array().unwrap();
    assert_eq!(failures.len(), 1, "{failures:?}");
    let Value::Object(failure) = &failures[0] else { panic!("{failures:?}") };
    assert_eq!(
        (&failure["outcome"], &failure["reason"]),
        (&json!("unexpected_status"), &json!("status 500 in place of 200"))
    );
    assert_eq!((&failure["at"], &failure["from"]), (&Value::Null, &json!(0)));
    let shown = String::from_utf8(STANDARD.decode(failure["bytes_base64"].as_str().unwrap()).unwrap()).unwrap();
    let number = shown.rsplit("\r\n\r\n").next().unwrap();
    assert!(shown.starts_with("HTTP/1.1 500 Oops\r\n") && number.parse::<usize>().unwrap() < users, "{shown:?}");
    assert!(failure["time_ns"].is_u64());
}

#[test]
fn the_first_failure_of_all_workers_and_processes_is_named() {
    for workers in [1, 3] {
        let result = complete(&with(crowd_job(numbered().port, 24), "/workers", json!(workers)));
        is_of_the_first(&result.event["failures"], 24);
    }
    let shards = crowd_job(numbered().port, 100).to_string();
    let output = Engine::start_with(&shards, |command| limit_open_files(command, 60)).finish();
    assert_eq!(output.events[0]["engine"]["processes"], 3);
    is_of_the_first(&output.result().event["failures"], 100);
}

/// The requests of the warm-up are not in the counts of the result.
#[test]
fn a_failure_of_the_warm_up_is_named_too() {
    let server = Server::start(|mut peer, number| {
        let mut fails = number == 0;
        while peer.request()?.is_some() {
            let fails = std::mem::replace(&mut fails, false);
            peer.say(if fails { "HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n" } else { HELLO })?;
        }
        Ok(())
    });
    let result = complete(&job(server.port));
    result.are_all("ok");
    assert_eq!((result.failures().len(), result.reason("unexpected_status")), (1, "status 500 in place of 200"));
}

#[test]
fn what_was_not_sent_or_not_answered_has_a_reason() {
    let silent = || {
        Server::start(|mut peer, _| {
            peer.request()?;
            peer.say("HTTP/1.1 200 OK\r\n")?;
            peer.stall();
            Ok(())
        })
    };
    let job = |port| with(with(open_job(port, 100, 1), "/warmup_ns", json!(0)), "/drain_ns", json!(50_000_000));
    let result = complete(&job(silent().port));
    assert_eq!(result.reason("in_flight"), "no whole answer by the end of the load, but 17 bytes of it");
    assert_eq!(result.reason("unsent"), "no connection had room for it by the end of the load");
    assert_eq!(result.failures().len(), 2);
    let closed = with(job(silent().port), "/load", json!({"closed": {"users": 1}}));
    let result = complete(&with(closed, "/timeout_ns", json!(100_000_000)));
    assert_eq!(result.reason("timeout"), "no whole answer within 100 ms, but 17 bytes of it");
    // A server that accepts no stream.
    let server = Server::start(|mut peer, _| {
        peer.say_bytes(&settings(&[(MAX_CONCURRENT_STREAMS, 0)]))?;
        peer.stall();
        Ok(())
    });
    let waiting = with(with(job(server.port), "/timeout_ns", json!(100_000_000)), "/target/http", json!("2"));
    let result = complete(&waiting);
    let reasons = ["no connection had room for it within 100 ms", "no answer within 100 ms"];
    assert!(reasons.contains(&result.reason("timeout")), "{:?}", result.failures());
}

#[test]
fn a_failure_is_shown_around_its_place() {
    let padding = "a".repeat(1000);
    let head = format!("HTTP/1.1 200 OK\r\nX-Padding: {padding}\r\nTransfer-Encoding: chunked\r\n\r\n");
    let whole = format!("{head}g\r\nhello\r\n0\r\n\r\n");
    let at = head.len();
    for cuts in [vec![], vec![head.len()], vec![10, 900, head.len() - 3]] {
        let text = whole.clone();
        let server = Server::start(move |mut peer, _| {
            while peer.request()?.is_some() {
                let mut from = 0;
                for to in cuts.iter().copied().chain([text.len()]) {
                    peer.say(&text[from..to])?;
                    std::thread::sleep(std::time::Duration::from_millis(20));
                    from = to;
                }
            }
            Ok(())
        });
        let result = complete(&job(server.port));
        assert_eq!(
            result.reason("malformed"),
            "the size of a chunk is not a number in hexadecimal digits (RFC 9112, 7.1)"
        );
        let failure = &result.failures()[0];
        assert_eq!((&failure["at"], &failure["from"]), (&json!(at), &json!(at - 96)));
        let shown = STANDARD.decode(failure["bytes_base64"].as_str().unwrap()).unwrap();
        assert_eq!(shown, &whole.as_bytes()[at - 96..]);
    }
}
