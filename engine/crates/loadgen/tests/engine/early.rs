//! Answers that arrive before their request has been written count, however the connection ends then.

use std::os::fd::AsRawFd;
use std::thread;
use std::time::Duration;

use crate::support::http2::{END_HEADERS_AND_STREAM, RST_STREAM, frame, greet, next_stream};
use crate::support::server::{Peer, Server};
use crate::support::tls::{TlsServer, certificates};
use crate::support::{complete, job, with};
use rustls::version::{TLS12, TLS13};
use serde_json::{Value, json};

const TOO_LARGE: &str = "HTTP/1.1 413 Content Too Large\r\nContent-Length: 5\r\n\r\nlarge";
const TOO_LARGE_CLOSE: &str = "HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 5\r\n\r\nlarge";
const UNTIL_CLOSE: &str = "HTTP/1.0 503 Busy\r\n\r\nlarge";

/// Uploads of 5 MB by one user.
fn uploads(port: u16, status: u16) -> Value {
    let expect = json!({"status": status, "body_length": 5});
    let request = json!({"method": "POST", "path": "/", "body_base64": "QUFB".repeat(1_666_666), "expect": expect});
    let job = with(with(job(port), "/requests", json!([request])), "/load/closed/users", json!(1));
    with(with(job, "/count", json!(10)), "/measure_ns", json!(20_000_000_000_u64))
}

/// Send an answer before the request has arrived, and then do this.
fn early(answer: &'static str, then: fn(&mut Peer)) -> Server {
    Server::start(move |mut peer, _| {
        peer.begin_of_request()?;
        peer.say(answer)?;
        then(&mut peer);
        Ok(())
    })
}

/// Close without a reset, as a server that lingers until its answer is read.
fn linger(peer: &mut Peer) {
    let _ = peer.say_the_last("");
}

/// Close immediately: unread bytes make that a reset, which overtakes nothing that the client's kernel has received.
fn close_at_once(_: &mut Peer) {}

/// Shut the reading side down, so that the client's next write fails, and leave the answer to be read.
fn close_later(peer: &mut Peer) {
    let fd = peer.socket().as_raw_fd();
    // SAFETY: no memory is passed; the descriptor is open.
    unsafe { libc::shutdown(fd, libc::SHUT_RD) };
    thread::sleep(Duration::from_millis(20));
}

#[test]
fn an_early_answer_is_the_answer_however_the_connection_ends() {
    for then in [linger as fn(&mut Peer), close_at_once, close_later] {
        for answer in [TOO_LARGE, TOO_LARGE_CLOSE] {
            let server = early(answer, then);
            for backend in ["epoll", "auto"] {
                let result = complete(&with(uploads(server.port, 413), "/backend", json!(backend)));
                result.are_all("ok");
                assert_eq!(result.event["counts"]["status"], json!({"4xx": 10}));
            }
        }
    }
    let server = early(UNTIL_CLOSE, linger);
    complete(&uploads(server.port, 503)).are_all("ok");
}

/// The reason names what was observed, not a broken pipe.
#[test]
fn a_connection_that_ends_during_an_upload_is_told_by_what_was_seen() {
    let server = early("", close_at_once);
    let result = complete(&uploads(server.port, 413));
    // The kernel reports a reset once, to a read or to a write, and a read may see the end before the write reports it: the
    // verdict is the same.
    result.are_all("reset");
    for failure in result.failures() {
        assert!(!failure["reason"].as_str().unwrap().contains("pipe"), "{failure}");
    }
}

#[test]
fn an_early_answer_over_tls_is_the_answer() {
    let certificates = certificates("127.0.0.1");
    for version in [&TLS12, &TLS13] {
        let server = TlsServer::start(certificates.config(&[version], &[]), |mut peer, _| {
            peer.first_byte()?;
            peer.say(TOO_LARGE)?;
            peer.close()
        });
        let job = with(uploads(server.port, 413), "/target/tls", json!({"ca_pem": certificates.ca_pem}));
        complete(&job).are_all("ok");
    }
}

/// RFC 9113, section 8.1: the peer does not want the rest of the request, but its answer counts.
#[test]
fn a_stream_that_is_reset_without_an_error_after_its_answer_is_answered() {
    let server = Server::start(|mut peer, _| {
        greet(&mut peer)?;
        loop {
            let stream = next_stream(&mut peer)?;
            // `:status 413`, a literal without indexing, with the name of entry 8 of the static table.
            peer.say_bytes(&frame(1, END_HEADERS_AND_STREAM, stream, b"\x08\x03413"))?;
            peer.say_bytes(&frame(RST_STREAM, 0, stream, &[0; 4]))?;
        }
    });
    let job = with(uploads(server.port, 413), "/requests/0/expect", json!({"status": 413}));
    let result = complete(&with(job, "/target/http", json!("2")));
    result.are_all("ok");
    assert_eq!(result.count("reconnects"), 0);
}
