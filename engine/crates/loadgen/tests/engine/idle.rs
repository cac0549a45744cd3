//! Connections that the server closes while they are idle (RFC 9112, section 9.5): no connection is opened that no request
//! needs, and no request is lost to a close that it crossed.

use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use crate::support::http2::{HEADERS, frame, go_away, greet, next_stream, ok, read_frame};
use crate::support::server::{HELLO, Peer, Server};
use crate::support::tls::{TlsServer, certificates};
use crate::support::{complete, job, open_job, with};
use rustls::version::TLS13;
use serde_json::{Value, json};

const TIMED_OUT: &str = "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

/// 15 requests in 3 s on 16 connections, most of which have nothing to do.
fn rare(port: u16) -> Value {
    with(with(open_job(port, 5, 16), "/measure_ns", json!(3_000_000_000_u64)), "/warmup_ns", json!(0))
}

/// More connections than the requests need on any machine, and half of those that would be opened if 16 connections were opened
/// again every 300 ms.
const MOST_OPENED: usize = 80;

/// Wait for a request until the idle time is over. Returns whether a request came.
fn waits(peer: &mut Peer) -> bool {
    peer.more_comes_within(Duration::from_millis(300))
}

#[test]
fn a_connection_that_was_closed_while_idle_is_opened_when_a_request_needs_it() {
    for last in ["", TIMED_OUT] {
        let server = Server::start(move |mut peer, _| {
            while waits(&mut peer) && peer.request()?.is_some() {
                peer.say(HELLO)?;
            }
            peer.say(last)
        });
        let result = complete(&rare(server.port));
        result.are_all("ok");
        assert!(result.event["counts"]["surplus"].is_null(), "{}", result.event["counts"]);
        assert!(server.accepted.load(SeqCst) < MOST_OPENED, "{:?}", server.accepted);
    }
}

#[test]
fn streams_need_no_connection_that_went_away_while_idle() {
    let server = Server::start(|mut peer, _| {
        greet(&mut peer)?;
        let mut last = 0;
        while waits(&mut peer) {
            let received = read_frame(&mut peer)?;
            if received.kind == HEADERS {
                last = received.stream;
                peer.say_bytes(&ok(last))?;
            }
        }
        peer.say_bytes(&go_away(last, 0))
    });
    let result = complete(&with(rare(server.port), "/target/http", json!("2")));
    result.are_all("ok");
    assert!(server.accepted.load(SeqCst) < MOST_OPENED, "{:?}", server.accepted);
}

/// How the first connection of a pair ends when its second request arrives, as if the server had just closed it.
fn crossing(end: impl Fn(&mut Peer) -> io::Result<()> + Send + Sync + 'static) -> Server {
    Server::start(move |mut peer, number| {
        while peer.request()?.is_some() {
            peer.say(HELLO)?;
            if number == 0 {
                peer.begin_of_request()?;
                return end(&mut peer);
            }
        }
        Ok(())
    })
}

fn reset(peer: &mut Peer) -> io::Result<()> {
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    let length = size_of::<libc::linger>() as libc::socklen_t;
    // SAFETY: the option's value is valid for reads of its length, and the descriptor is open.
    let set = unsafe {
        libc::setsockopt(
            peer.socket().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_LINGER,
            (&raw const linger).cast(),
            length,
        )
    };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// A request every 300 ms on a single connection.
fn slow(port: u16) -> Value {
    let job = with(job(port), "/load/closed", json!({"users": 1, "think": {"fixed_ns": 300_000_000}}));
    with(with(job, "/warmup_ns", json!(0)), "/measure_ns", json!(1_000_000_000))
}

#[test]
fn a_request_that_crosses_the_close_of_an_idle_connection_is_written_again() {
    let ends: [fn(&mut Peer) -> io::Result<()>; 3] = [
        |_| Ok(()),
        reset,
        // The server has not seen the request when it says that none came.
        |peer| peer.say_the_last(TIMED_OUT),
    ];
    for (number, end) in ends.into_iter().enumerate() {
        for method in ["GET", "POST"] {
            let server = crossing(end);
            let result = complete(&with(slow(server.port), "/requests/0/method", json!(method)));
            result.are_all("ok");
            assert_eq!((result.count("retried"), result.count("reconnects")), (1, 1), "end {number}, {method}");
        }
    }
}

/// The handshake of a WebSocket is such a request, on a connection that a step before it used.
#[test]
fn a_handshake_that_crosses_the_close_of_an_idle_connection_is_written_again() {
    let server = crossing(|_| Ok(()));
    let steps = json!([
        {"request": 0},
        {"request": 1, "think": {"fixed_ns": 300_000_000}},
    ]);
    let listens = json!({
        "method": "GET", "path": "/ticks", "expect": {"status": 200}, "websocket": {"answer": "listen"},
        "stream": {"events": "messages", "until": 1},
    });
    let job = slow(server.port);
    let plain = job["requests"][0].clone();
    let job = with(with(job, "/requests", json!([plain, listens])), "/load", json!({"closed": {"users": 1}}));
    let job = with(job, "/journey", json!({"steps": steps}));
    let result = complete(&job);
    assert!(result.count("retried") > 0, "{}", result.event["counts"]);
}

#[test]
fn a_request_over_tls_that_crosses_the_close_is_written_again() {
    let certificates = certificates("127.0.0.1");
    let server = TlsServer::start(certificates.config(&[&TLS13], &[]), |mut peer, number| {
        while peer.request()?.is_some() {
            peer.say(HELLO)?;
            if number == 0 {
                peer.first_byte()?;
                return Ok(());
            }
        }
        Ok(())
    });
    let result = complete(&with(slow(server.port), "/target/tls", json!({"ca_pem": certificates.ca_pem})));
    result.are_all("ok");
    assert_eq!((result.count("retried"), result.count("reconnects")), (1, 1));
}

/// Without any of the answer, or with its beginning: `:status 200`, and a body that does not arrive.
#[test]
fn a_stream_that_crosses_the_close_is_opened_again_unless_its_answer_has_begun() {
    for begins in [false, true] {
        let server = Server::start(move |mut peer, number| {
            greet(&mut peer)?;
            for turn in 0.. {
                let stream = next_stream(&mut peer)?;
                if number == 0 && turn == 1 {
                    let begin = if begins { frame(HEADERS, 4, stream, &[0x88]) } else { Vec::new() };
                    peer.say_bytes(&begin)?;
                    return peer.say_the_last("");
                }
                peer.say_bytes(&ok(stream))?;
            }
            Ok(())
        });
        let result = complete(&with(slow(server.port), "/target/http", json!("2")));
        assert_eq!(result.count("retried"), u64::from(!begins), "{}", result.event["counts"]);
        assert_eq!(result.outcome("closed") + result.outcome("reset"), u64::from(begins));
        assert_eq!(result.outcome("ok"), result.total() - u64::from(begins));
    }
}

/// A connection with answers all the time was not closed for being idle: the request has failed.
#[test]
fn a_busy_connection_that_ends_loses_its_request() {
    let server = Server::start(|mut peer, _| {
        peer.request()?;
        peer.request()?;
        peer.say_the_last(HELLO)
    });
    // The second request is in flight when the answer to the first arrives, so the connection is not quiet, however slow the
    // machine is.
    let job = with(job(server.port), "/load/closed", json!({"users": 1, "depth": 2}));
    let result = complete(&with(with(job, "/warmup_ns", json!(0)), "/count", json!(2)));
    assert_eq!((result.outcome("reset") + result.outcome("closed"), result.count("retried")), (1, 0));
    assert_eq!(result.outcome("ok"), result.total() - 1);
}

/// This is no race, so a request is not written for ever.
#[test]
fn a_server_that_never_answers_a_second_request_is_not_asked_for_ever() {
    let server = Server::start(|mut peer, _| {
        // The server is slow to accept, so that even a new connection has been quiet when its request arrives.
        peer.more_comes_within(Duration::from_secs(5));
        Ok(())
    });
    let result = complete(&with(slow(server.port), "/count", json!(2)));
    assert_eq!(result.outcome("reset") + result.outcome("closed"), result.total(), "{}", result.event["counts"]);
    assert!(result.count("retried") <= 2 * result.total());
}

/// A 408 answer on a connection that was not idle is the answer to the request.
#[test]
fn a_408_to_a_request_at_once_is_its_answer() {
    let server = Server::answering(TIMED_OUT);
    let result = complete(&job(server.port));
    result.are_all("unexpected_status");
    assert_eq!(result.count("retried"), 0);
}

/// It answers every stream with GOAWAY: no request succeeds, and every connection is reported.
#[test]
fn a_server_that_goes_away_at_every_stream_does_not_look_right() {
    let server = Server::start(|mut peer, _| {
        greet(&mut peer)?;
        let stream = next_stream(&mut peer)?;
        peer.say_bytes(&[ok(stream), go_away(stream, 0)].concat())?;
        peer.stall();
        Ok(())
    });
    let job = with(with(job(server.port), "/target/http", json!("2")), "/load/closed/depth", json!(4));
    let result = complete(&job);
    assert!(result.outcome("ok") > 0);
    assert!(2 * result.count("reconnects") >= result.outcome("ok"), "{}", result.event["counts"]);
}

/// Users who think for longer than the server waits have a connection when they need it.
#[test]
fn users_who_think_for_longer_than_the_server_waits_lose_nothing() {
    let server = Server::start(|mut peer, _| {
        while waits(&mut peer) && peer.request()?.is_some() {
            peer.say(HELLO)?;
        }
        Ok(())
    });
    let users = json!({"users": 8, "think": {"fixed_ns": 600_000_000}});
    let job = with(with(job(server.port), "/load/closed", users), "/measure_ns", json!(1_500_000_000));
    complete(&job).are_all("ok");
}
