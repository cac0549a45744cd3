//! Servers that are broken, or hostile: the engine ends in time, has counted everything, and its memory stays small.

use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use crate::support::server::{HELLO, Peer, Server};
use crate::support::{Engine, Outcome, job, with};
use serde_json::{Value, json};

/// The most memory that an engine may need in any of these tests.
const MOST_KIB: u64 = 200 * 1024;

/// A job that gives up after 150 ms, with two users of one or eight requests each.
fn impatient(port: u16, depth: u32) -> Value {
    let job = with(job(port), "/load", json!({"closed": {"users": 2, "depth": depth}}));
    let job = with(with(job, "/timeout_ns", json!(150_000_000)), "/warmup_ns", json!(0));
    with(with(job, "/drain_ns", json!(300_000_000)), "/deadline_ns", json!(20_000_000_000_u64))
}

/// Run a job to its end, in time and with little memory.
fn survives(job: &Value) -> Outcome {
    let engine = Engine::start(&job.to_string());
    let status = format!("/proc/{}/status", engine.pid());
    let peak_kib = Arc::new(AtomicU64::new(0));
    let peak = Arc::clone(&peak_kib);
    // Until the process has no memory any more.
    let watch = thread::spawn(move || {
        while let Some(kib) = peak_of(&status) {
            peak.fetch_max(kib, SeqCst);
            thread::sleep(Duration::from_millis(5));
        }
    });
    let output = engine.finish();
    watch.join().unwrap();
    assert_eq!(output.code, Some(0), "{:#?}\n{}", output.events.last(), output.log);
    let peak_kib = peak_kib.load(SeqCst);
    assert!(peak_kib > 0 && peak_kib < MOST_KIB, "{peak_kib} KiB");
    output.result()
}

fn peak_of(status: &str) -> Option<u64> {
    let status = fs::read_to_string(status).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

/// Every request ended with one of these outcomes, at least one with the first. Requests that wait for a connection whose
/// opening is delayed more and more may wait in vain.
fn only(result: &Outcome, names: &[&str]) {
    let mut known = vec!["timeout", "in_flight", "unsent"];
    known.retain(|name| !names.contains(name));
    let sum: u64 = names.iter().chain(&known).map(|name| result.outcome(name)).sum();
    assert!(result.outcome(names[0]) > 0, "{}", result.event["counts"]);
    assert_eq!(sum, result.total(), "{}", result.event["counts"]);
}

/// A server that sends `first` to a request, and then `then` for as long as anybody reads.
fn endless(first: &'static str, then: &'static str, times: usize) -> Server {
    let more = then.repeat(times);
    Server::start(move |mut peer, _| {
        peer.request()?;
        peer.say(first)?;
        loop {
            peer.say(&more)?;
        }
    })
}

#[test]
fn endless_heads_and_trailers_are_malformed() {
    let ok = "HTTP/1.1 200 OK\r\n";
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let cases: [(&str, String); 4] = [
        // A field without an end; endless fields; a status line without an end; trailers.
        (ok, "a".to_owned()),
        (ok, "X-A: b\r\n".to_owned()),
        ("HTTP/1.1 200 ", "O".to_owned()),
        (chunked, "X-A: b\r\n".to_owned()),
    ];
    for (number, (first, then)) in cases.into_iter().enumerate() {
        let first = if number == 3 { format!("{first}0\r\n") } else { first.to_owned() };
        let server = endless(Box::leak(first.into_boxed_str()), Box::leak(then.into_boxed_str()), 1000);
        for depth in [1, 8] {
            only(&survives(&impatient(server.port, depth)), &["malformed"]);
        }
    }
}

#[test]
fn endless_chunk_extensions_and_sizes_are_malformed() {
    for (first, then) in
        [("5;a=", "b"), ("", "0"), ("ffffffffffffffffff\r\n", "x"), ("-1\r\n", "x"), ("5\r\nhelloXX", "x")]
    {
        let first = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{first}");
        let server = endless(Box::leak(first.into_boxed_str()), then, 4096);
        only(&survives(&impatient(server.port, 1)), &["malformed"]);
    }
}

#[test]
fn a_body_without_length_or_end_is_a_timeout() {
    let server = endless("HTTP/1.1 200 OK\r\n\r\n", "hello", 50_000);
    only(&survives(&impatient(server.port, 1)), &["timeout"]);
    only(&survives(&impatient(server.port, 8)), &["timeout"]);
    // The same if the body is wanted: then only a part of it is read.
    let json = with(impatient(server.port, 1), "/requests/0/expect/json", json!([{"pointer": "", "equals": 1}]));
    only(&survives(&json), &["malformed"]);
}

#[test]
fn a_gigabyte_of_interim_answers_is_no_memory() {
    let server = endless("", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", 10_000);
    only(&survives(&impatient(server.port, 1)), &["timeout", "malformed"]);
}

#[test]
fn a_length_that_lies_is_found_out() {
    // Fewer bytes arrive than declared, and then nothing; or more.
    let less = Server::answering("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello");
    only(&survives(&impatient(less.port, 1)), &["timeout"]);
    let more = Server::answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhello");
    for depth in [1, 8] {
        let result = survives(&impatient(more.port, depth));
        only(&result, &["ok", "malformed"]);
        assert!(result.event["counts"]["surplus"].as_u64().unwrap() > 0);
    }
    // Invalid lengths; two different lengths; a length and chunks.
    for head in [
        "Content-Length: 18446744073709551616",
        "Content-Length: -1",
        "Content-Length: 5\r\nContent-Length: 6",
        "Content-Length: +5",
    ] {
        let answer = format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\nhello");
        let server = Server::answering(Box::leak(answer.into_boxed_str()));
        only(&survives(&impatient(server.port, 1)), &["malformed"]);
    }
    // The longest length that can be declared.
    let huge = endless("HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\n", "x", 100_000);
    only(&survives(&impatient(huge.port, 1)), &["timeout"]);
}

#[test]
fn a_server_that_never_reads_is_a_timeout() {
    let server = Server::start(|_peer, _| {
        thread::sleep(Duration::from_secs(30));
        Ok(())
    });
    let request =
        json!({"method": "POST", "path": "/", "body_base64": "QUFB".repeat(1_666_666), "expect": {"status": 200}});
    for depth in [1, 4] {
        let job = with(impatient(server.port, depth), "/requests", json!([request]));
        only(&survives(&job), &["timeout"]);
    }
}

/// The server answers a request that it has not read, and continues.
#[test]
fn an_answer_before_the_request_was_read_is_one() {
    let server = Server::start(|mut peer, _| {
        peer.begin_of_request()?;
        peer.say("HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")?;
        peer.stall();
        Ok(())
    });
    let request =
        json!({"method": "POST", "path": "/", "body_base64": "QUFB".repeat(1_666_666), "expect": {"status": 413}});
    only(&survives(&with(impatient(server.port, 1), "/requests", json!([request]))), &["ok"]);
}

#[test]
fn a_server_that_accepts_and_says_nothing_is_a_timeout() {
    let server = Server::start(|mut peer, _| {
        peer.stall();
        Ok(())
    });
    for depth in [1, 8] {
        only(&survives(&impatient(server.port, depth)), &["timeout"]);
    }
    let open =
        json!({"rate_per_s": 500, "arrivals": "poisson", "connections": 4, "connections_at_start": 1, "depth": 2});
    only(&survives(&with(impatient(server.port, 1), "/load", json!({"open": open}))), &["timeout"]);
}

#[test]
fn answers_that_come_byte_by_byte_are_right() {
    let server = Server::start(|mut peer, _| {
        while peer.request()?.is_some() {
            for byte in
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x\r\nhello\r\n0\r\nA: b\r\n\r\n".as_bytes()
            {
                peer.say_bytes(&[*byte])?;
            }
        }
        Ok(())
    });
    for depth in [1, 8] {
        let job = with(impatient(server.port, depth), "/timeout_ns", json!(10_000_000_000_u64));
        let result = survives(&with(job, "/requests/0/expect/body_length", json!(5)));
        only(&result, &["ok"]);
    }
}

/// Reset a connection, whatever is in flight.
fn reset(peer: &Peer) -> io::Result<()> {
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    let length = size_of::<libc::linger>() as libc::socklen_t;
    let socket = peer.socket().as_raw_fd();
    // SAFETY: the option's value is valid for reads of its length, and the descriptor is open.
    let set =
        unsafe { libc::setsockopt(socket, libc::SOL_SOCKET, libc::SO_LINGER, (&raw const linger).cast(), length) };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[test]
fn resets_at_any_time_are_counted() {
    let turns = AtomicU64::new(1);
    let server = Server::start(move |mut peer, _| {
        reset(&peer)?;
        loop {
            let draw = turns.fetch_add(1, SeqCst).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60;
            match draw {
                0 => return Ok(()),
                1 => return peer.begin_of_request(),
                2 => {
                    peer.request()?;
                    return peer.say(&HELLO[..30]);
                }
                3 => {
                    peer.request()?;
                    return peer.say(HELLO);
                }
                _ => {
                    if peer.request()?.is_none() {
                        return Ok(());
                    }
                    peer.say(HELLO)?;
                }
            }
        }
    });
    for (depth, workers) in [(1, 1), (8, 2)] {
        let job = with(with(impatient(server.port, depth), "/load/closed/users", json!(8)), "/workers", json!(workers));
        let output = Engine::start(&job.to_string()).finish();
        assert_eq!(output.code, Some(0), "{:#?}\n{}", output.events.last(), output.log);
        only(&output.result(), &["ok", "reset", "closed", "connect"]);
        assert!(output.result().outcome("reset") + output.result().outcome("closed") > 0);
    }
}
