//! Several requests in flight on an HTTP/1.1 connection: every request has its own times and outcome.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::support::server::{HELLO, HELLO_SHA256, Peer, Server};
use crate::support::{Engine, Outcome, complete, job, open_job, with};
use serde_json::{Value, json};

const CLOSING: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello";

/// One user with 16 requests in flight, who compares whole answers.
fn deep_job(port: u16) -> Value {
    let job = with(job(port), "/load", json!({"closed": {"users": 1, "depth": 16}}));
    with(with(job, "/warmup_ns", json!(0)), "/requests/0/expect/body_sha256", json!(HELLO_SHA256))
}

/// The same, with no request but the first 16.
fn one_batch(port: u16) -> Value {
    with(deep_job(port), "/count", json!(16))
}

/// Read the next request and those that arrived with it. Returns how many.
fn read_batch(peer: &mut Peer) -> std::io::Result<usize> {
    let mut batch = 0;
    while (batch == 0 || peer.has_more()) && peer.request()?.is_some() {
        batch += 1;
    }
    Ok(batch)
}

fn of_outcomes(result: &Outcome, names: &[&str]) -> u64 {
    names.iter().map(|name| result.outcome(name)).sum()
}

#[test]
fn each_request_of_a_batch_has_its_own_time() {
    let server = Server::start(|mut peer, _| {
        while peer.request()?.is_some() {
            thread::sleep(Duration::from_millis(10));
            peer.say(HELLO)?;
        }
        Ok(())
    });
    let result = complete(&one_batch(server.port));
    result.are_all("ok");
    assert_eq!((result.total(), server.accepted.load(SeqCst)), (16, 1));
    for name in ["service", "response"] {
        let times = result.histogram(name);
        for k in 0..16_u32 {
            // The middle of the k-th of 16 equal steps is the k-th smallest.
            let time_ns = times.quantile_ns((f64::from(k) + 0.5) / 16.0);
            let slept_ns = u64::from(k + 1) * 10_000_000;
            assert!(time_ns >= slept_ns - slept_ns / 500, "{name} of request {k}: {time_ns} ns");
        }
        assert!(times.max_ns() - times.min_ns() >= 60_000_000, "{name} is that of the batch");
    }
}

#[test]
fn answers_in_one_segment_and_in_many_are_told_apart() {
    let in_one = Server::start(|mut peer, _| {
        loop {
            match read_batch(&mut peer)? {
                0 => return Ok(()),
                batch => peer.say(&HELLO.repeat(batch))?,
            }
        }
    });
    let result = complete(&deep_job(in_one.port));
    result.are_all("ok");
    assert!(result.total() >= 16);
    assert_eq!(result.count("bytes_received"), result.count("completed") * HELLO.len() as u64);

    let in_many = Server::start(|mut peer, _| {
        loop {
            match read_batch(&mut peer)? {
                0 => return Ok(()),
                // Cuts at 7, 14, … of answers of 43 bytes lie everywhere.
                batch => {
                    let answers = HELLO.repeat(batch);
                    for i in (0..answers.len()).step_by(7) {
                        peer.say(&answers[i..answers.len().min(i + 7)])?;
                        thread::yield_now();
                    }
                }
            }
        }
    });
    let result = complete(&deep_job(in_many.port));
    result.are_all("ok");
    assert_eq!((result.count("reconnects"), in_many.accepted.load(SeqCst)), (0, 1));
}

#[test]
fn what_a_closing_server_left_goes_out_again_with_its_due_time() {
    let server = Server::start(|mut peer, number| {
        for _ in 0..16 {
            if number == 0 {
                peer.request()?;
            }
        }
        if number == 0 {
            thread::sleep(Duration::from_millis(50));
            peer.say(&HELLO.repeat(7))?;
            return peer.say_the_last(CLOSING);
        }
        while peer.request()?.is_some() {
            peer.say(HELLO)?;
        }
        Ok(())
    });
    let result = complete(&one_batch(server.port));
    result.are_all("ok");
    assert_eq!((result.count("due"), result.count("sent"), result.count("resent")), (16, 16, 8));
    assert_eq!(result.count("retried"), 0);
    assert_eq!((result.count("reconnects"), server.accepted.load(SeqCst)), (1, 2));
    assert!(result.histogram("response").min_ns() >= 50_000_000 - 100_000);
}

#[test]
fn a_request_is_left_as_often_as_connections_close_and_does_not_fail() {
    // A connection has 5 answers: of the first 16 requests, 11, 6 and 1 are left.
    let server = Server::start(|mut peer, _| {
        for _ in 0..4 {
            peer.request()?;
            peer.say(HELLO)?;
        }
        peer.request()?;
        peer.say_the_last(CLOSING)
    });
    let result = complete(&one_batch(server.port));
    result.are_all("ok");
    assert_eq!((result.total(), result.count("sent"), result.count("retried")), (16, 16, 0));
    assert_eq!(result.count("resent"), 11 + 6 + 1);

    let result = complete(&deep_job(server.port));
    assert!(result.count("resent") > 0);
    result.are_all("ok");
}

/// An HTTP/1.0 server answers one request per connection, with or without its length.
#[test]
fn servers_of_http_1_0_fail_no_request() {
    for answer in [
        "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nhello",
    ] {
        let server = Server::start(|mut peer, _| {
            peer.request()?;
            peer.say_the_last(answer)
        });
        let result = complete(&one_batch(server.port));
        result.are_all("ok");
        assert_eq!((result.total(), result.count("sent"), result.count("retried")), (16, 16, 0));
        assert_eq!(result.count("resent"), (1..16).sum::<u64>());
    }
}

/// A request that is sent again is the same: it keeps its number.
#[test]
fn a_request_that_is_sent_again_keeps_its_number() {
    let numbers = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&numbers);
    let server = Server::start(move |mut peer, _| {
        let Some((first, _)) = peer.request()? else { return Ok(()) };
        seen.lock().unwrap().push(first);
        peer.say_the_last(CLOSING)
    });
    complete(&with(one_batch(server.port), "/requests/0/path", json!("/{seq}"))).are_all("ok");
    let expected: Vec<_> = (0..16).map(|seq| format!("GET /{seq} HTTP/1.1\r\n")).collect();
    assert_eq!(*numbers.lock().unwrap(), expected);
}

#[test]
fn a_wrong_status_in_the_middle_is_of_its_request_alone() {
    let server = Server::start(|mut peer, _| {
        for number in 1.. {
            if peer.request()?.is_none() {
                break;
            }
            let wrong = "HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\nhello";
            peer.say(if number % 4 == 0 { wrong } else { HELLO })?;
        }
        Ok(())
    });
    let result = complete(&deep_job(server.port));
    let wrong = result.outcome("unexpected_status");
    assert_eq!((wrong, result.outcome("ok")), (result.total() / 4, result.total() - result.total() / 4));
    assert_eq!(result.event["counts"]["status"], json!({"2xx": result.outcome("ok"), "4xx": wrong}));
    assert_eq!((result.count("reconnects"), result.count("retried"), result.count("resent")), (0, 0, 0));
}

#[test]
fn a_malformed_answer_ends_what_was_behind_it() {
    let server = Server::start(|mut peer, number| {
        for turn in 0..16 {
            if peer.request()?.is_none() {
                return Ok(());
            }
            peer.say(if number == 0 && turn == 4 { "HTTP/1.1 2x0 nonsense\r\n\r\n" } else { HELLO })?;
        }
        while peer.request()?.is_some() {
            peer.say(HELLO)?;
        }
        Ok(())
    });
    let result = complete(&one_batch(server.port));
    assert_eq!((result.outcome("ok"), result.outcome("malformed"), result.total()), (4, 12, 16));
    assert_eq!(result.count("retried"), 0);
}

#[test]
fn an_answer_too_many_is_never_taken_for_one_that_was_asked_for() {
    let server = Server::start(|mut peer, _| {
        loop {
            match read_batch(&mut peer)? {
                0 => return Ok(()),
                batch => peer.say(&HELLO.repeat(batch + 1))?,
            }
        }
    });
    // There is a single batch, so nobody can have requested the surplus.
    let result = complete(&one_batch(server.port));
    assert_eq!(of_outcomes(&result, &["ok", "malformed"]), 16, "{}", result.event["counts"]);
    assert!(result.outcome("ok") >= 15 || result.outcome("malformed") > 0);
}

#[test]
fn bytes_on_an_idle_connection_end_it_and_no_request() {
    let server = Server::start(|mut peer, _| {
        while peer.request()?.is_some() {
            peer.say(HELLO)?;
            thread::sleep(Duration::from_millis(10));
            peer.say("?")?;
        }
        Ok(())
    });
    let open = json!({"rate_per_s": 10, "arrivals": "uniform", "connections": 1, "depth": 4});
    let result = complete(&with(job(server.port), "/load", json!({"open": open})));
    // On a machine that stands still the next request may be sent before the byte arrives.
    assert_eq!(of_outcomes(&result, &["ok", "malformed"]), result.total());
    assert!(result.outcome("ok") > 0 && result.count("reconnects") > 0, "{}", result.event["counts"]);
}

#[test]
fn an_open_load_fills_its_connection_to_its_depth_and_no_further() {
    let beyond = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&beyond);
    let server = Server::start(move |mut peer, _| {
        // Without a pipeline the second request would never arrive.
        for _ in 0..8 {
            peer.request()?;
        }
        seen.fetch_add(usize::from(peer.more_comes_within(Duration::from_millis(60))), SeqCst);
        peer.say(&HELLO.repeat(8))?;
        while peer.request()?.is_some() {
            peer.say(HELLO)?;
        }
        Ok(())
    });
    let open = json!({"rate_per_s": 200, "arrivals": "uniform", "connections": 1, "depth": 8});
    let result = complete(&with(with(job(server.port), "/load", json!({"open": open})), "/warmup_ns", json!(0)));
    result.are_all("ok");
    assert_eq!((result.count("due"), beyond.load(SeqCst), server.accepted.load(SeqCst)), (60, 0, 1));
    assert!(result.count("waited") > 0);
}

#[test]
fn an_open_load_prefers_free_connections_to_deep_ones() {
    let server = Server::start(|mut peer, _| {
        peer.request()?;
        // The other requests are sent on other connections, until all are answered.
        let is_deep = peer.more_comes_within(Duration::from_millis(5));
        peer.say(if is_deep { "deep\r\n\r\n" } else { HELLO })?;
        while peer.request()?.is_some() {
            peer.say(HELLO)?;
        }
        Ok(())
    });
    let open = json!({"arrivals": {"replayed_ns": [0, 0, 0, 0]}, "connections": 4, "depth": 8});
    let result = complete(&with(job(server.port), "/load", json!({"open": open})));
    result.are_all("ok");
    assert_eq!(result.count("due"), 4);
}

#[test]
fn a_stalled_pipeline_times_out_together() {
    let server = Server::start(|mut peer, number| {
        if number == 0 {
            peer.request()?;
            peer.say(HELLO)?;
            peer.stall();
        }
        while peer.request()?.is_some() {
            peer.say(HELLO)?;
        }
        Ok(())
    });
    let result = complete(&with(one_batch(server.port), "/timeout_ns", json!(100_000_000)));
    assert_eq!((result.outcome("ok"), result.outcome("timeout"), result.total()), (1, 15, 16));
    assert!(result.histogram("response").quantile_ns(0.5) >= 100_000_000 - 100_000);
}

#[test]
fn a_server_that_dies_in_the_middle_loses_nothing() {
    for load in [
        json!({"closed": {"users": 3, "depth": 16, "think": {"fixed_ns": 1_000_000}}}),
        json!({"open": {"rate_per_s": 2000, "arrivals": "poisson", "connections": 2, "depth": 16}}),
    ] {
        let server = Server::answering(HELLO);
        let job = with(with(open_job(server.port, 1, 1), "/load", load), "/measure_ns", json!(50_000_000_000_u64));
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
}

/// An answer and a part of the next have arrived: there is room for another request, although the bytes end within an answer.
#[test]
fn a_request_goes_out_as_soon_as_one_is_answered() {
    let server = Server::start(|mut peer, _| {
        let (first, rest) = HELLO.split_at(HELLO.len() - 2);
        peer.request()?;
        while peer.request()?.is_some() {
            // Of two requests, one is answered and the other answer has begun; the third request arrives before it is complete.
            peer.say(&format!("{HELLO}{first}"))?;
            peer.request()?;
            peer.say(rest)?;
        }
        Ok(())
    });
    let job = with(job(server.port), "/load/closed", json!({"users": 1, "depth": 2}));
    let result = complete(&with(job, "/warmup_ns", json!(0)));
    assert!(result.outcome("ok") > 2);
    assert_eq!(result.outcome("ok") + result.outcome("in_flight"), result.total(), "{:#}", result.event["counts"]);
}
