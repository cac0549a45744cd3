//! What servers do, right and wrong, and the outcome that it must have.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use crate::support::http2::{Act, Http2Server};
use crate::support::server::{HELLO, HELLO_SHA256, Server};
use crate::support::{complete, job, open_job, run, with};
use serde_json::json;

#[test]
fn right_answers_are_ok_and_their_bytes_are_counted() {
    let server = Server::answering(HELLO);
    let job = with(
        job(server.port),
        "/requests/0/expect",
        json!({"status": 200, "body_length": 5, "body_sha256": HELLO_SHA256}),
    );
    let result = complete(&job);
    result.are_all("ok");
    assert_eq!(result.event["counts"]["status"], json!({"2xx": result.count("due")}));
    assert_eq!(result.count("bytes_received"), result.count("completed") * HELLO.len() as u64);
    assert_eq!((result.count("reconnects"), result.count("waited"), result.count("saturated")), (0, 0, 0));
    assert_eq!(
        (&result.event["measure_start_ns"], &result.event["measure_end_ns"]),
        (&json!(50_000_000), &json!(350_000_000))
    );
    assert_eq!(server.accepted.load(Ordering::SeqCst), 2);
}

/// The head and a part of the body come at once, the rest 20 ms later.
#[test]
fn the_first_byte_comes_before_the_last() {
    const LATE: Duration = Duration::from_millis(20);
    let (head, rest) = HELLO.split_at(HELLO.len() - 2);
    let http1 = Server::start(move |mut peer, _| {
        while peer.request()?.is_some() {
            peer.say("HTTP/1.1 103 Early Hints\r\n\r\n")?;
            peer.say(head)?;
            thread::sleep(LATE);
            peer.say(rest)?;
        }
        Ok(())
    });
    let http2 = Http2Server::start(h2::server::Builder::new(), |_| Act::Pieces(LATE));
    for job in [job(http1.port), with(job(http2.port), "/target/http", json!("2"))] {
        let result = complete(&job);
        result.are_all("ok");
        let (first, response) = (result.histogram("first_byte"), result.histogram("response"));
        assert_eq!(first.count(), response.count());
        let least = LATE.as_nanos() as u64 * 9 / 10;
        assert!(response.quantile_ns(0.5) >= least && first.quantile_ns(0.5) < least, "{first:?} {response:?}");
    }
    // What comes in one piece has both at the same time.
    let result = complete(&job(Server::answering(HELLO).port));
    assert_eq!(result.histogram("first_byte"), result.histogram("response"));
}

/// RFC 9110, section 15: a client treats these statuses as server errors.
#[test]
fn a_status_from_600_to_999_is_unexpected_and_counted_in_its_class() {
    let cases = [("HTTP/1.1 600 X", "6xx"), ("HTTP/1.1 999 X", "9xx")];
    for (head, class) in cases {
        let answer = format!("{head}\r\nContent-Length: 5\r\n\r\nhello");
        let server = Server::answering(Box::leak(answer.into_boxed_str()));
        let result = complete(&job(server.port));
        result.are_all("unexpected_status");
        assert_eq!(result.event["counts"]["status"], json!({class: result.count("due")}));
        assert_eq!(result.count("reconnects"), 0);
    }
}

/// Another protocol follows, which no request asked for, so the connection cannot be used any more.
#[test]
fn a_switch_of_protocols_is_an_unexpected_status() {
    let server =
        Server::answering("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nother words");
    let result = complete(&job(server.port));
    result.are_all("unexpected_status");
    assert_eq!(result.event["counts"]["status"], json!({"1xx": result.count("due")}));
}

#[test]
fn a_wrong_status_a_wrong_length_and_a_wrong_hash_are_told_apart() {
    let server = Server::answering("HTTP/1.1 503 Busy\r\nContent-Length: 5\r\n\r\nhello");
    let result = complete(&job(server.port));
    result.are_all("unexpected_status");
    assert_eq!(result.event["counts"]["status"], json!({"5xx": result.count("due")}));
    assert_eq!(result.count("completed"), 0);

    let server = Server::answering("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhellO");
    complete(&with(job(server.port), "/requests/0/expect/body_length", json!(6))).are_all("unexpected_body");
    complete(&with(job(server.port), "/requests/0/expect/body_sha256", json!(HELLO_SHA256))).are_all("unexpected_body");
    complete(&with(job(server.port), "/requests/0/expect/body_length", json!(5))).are_all("ok");
}

#[test]
fn chunked_answers_and_interim_answers_are_read_through() {
    let server = Server::start(|mut peer, _| {
        while peer.request()?.is_some() {
            peer.say("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe")?;
            thread::sleep(Duration::from_millis(2));
            peer.say("\r\n3;a=b\r\nllo\r\n0\r\nX-Trailer: 1\r\n\r\n")?;
        }
        Ok(())
    });
    let job = with(job(server.port), "/requests/0/expect/body_sha256", json!(HELLO_SHA256));
    let result = complete(&job);
    result.are_all("ok");
    assert_eq!(result.event["counts"]["status"], json!({"2xx": result.count("due")}));
}

/// The connection stays open, and the answers are complete.
#[test]
fn answers_without_a_body_are_complete_with_their_heads() {
    let cases = [
        ("GET", 204, "HTTP/1.1 204 No Content\r\n\r\n"),
        ("GET", 204, "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n"),
        ("GET", 304, "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n"),
        ("HEAD", 200, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"),
        ("HEAD", 200, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
        ("HEAD", 200, "HTTP/1.1 200 OK\r\n\r\n"),
        ("GET", 204, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n"),
    ];
    for (method, status, answer) in cases {
        let server = Server::answering(answer);
        let job = with(job(server.port), "/requests/0/method", json!(method));
        let result = complete(&with(job, "/requests/0/expect", json!({"status": status, "body_length": 0})));
        result.are_all("ok");
        assert_eq!((result.count("reconnects"), server.accepted.load(Ordering::SeqCst)), (0, 2), "{answer:?}");
    }
}

/// The zone says on which network an address is: it is used to connect, but not sent. Zone 1 is the loopback interface.
#[test]
fn an_address_with_a_zone_is_connected_to_and_named_without_it() {
    let server = Server::start_on("[::1]:0", |mut peer, _| {
        while let Some(request) = peer.whole_request()? {
            let named = request.header("Host").unwrap_or_default();
            peer.say(&format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{named}", named.len()))?;
        }
        Ok(())
    });
    for host in ["::1%1", "[::1%1]"] {
        let job = with(job(server.port), "/target/host", json!(host));
        let length = format!("[::1]:{}", server.port).len();
        complete(&with(job, "/requests/0/expect/body_length", json!(length))).are_all("ok");
    }
}

#[test]
fn a_large_request_is_written_in_parts() {
    let server = Server::start(|mut peer, _| {
        while let Some((_, length)) = peer.request()? {
            let body = length.to_string();
            peer.say(&format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()))?;
        }
        Ok(())
    });
    let expect = json!({"status": 200, "body_length": 7});
    let request = json!({"method": "POST", "path": "/", "body_base64": "QUFB".repeat(2_000_000), "expect": expect});
    let job = with(job(server.port), "/requests", json!([request]));
    let result = complete(&with(job, "/timeout_ns", json!(30_000_000_000_u64)));
    assert!(result.outcome("ok") > 0);
    assert_eq!(result.outcome("ok") + result.outcome("in_flight"), result.total(), "{}", result.event["counts"]);
}

#[test]
fn a_slow_answer_is_ok_and_as_slow_as_it_was() {
    let server = Server::start(|mut peer, _| {
        while peer.request()?.is_some() {
            thread::sleep(Duration::from_millis(20));
            peer.say(HELLO)?;
        }
        Ok(())
    });
    let result = complete(&job(server.port));
    result.are_all("ok");
    assert!(result.histogram("service").min_ns() >= 20_000_000 - 20_000);
    // Two users with a request each at least every 20 ms: a closed load cannot ask more often.
    assert!(result.total() <= 2 * (300 / 20 + 1));
}

#[test]
fn a_stall_is_a_timeout_recorded_at_least_at_its_age() {
    let server = Server::start(|mut peer, _| {
        peer.stall();
        Ok(())
    });
    let result = complete(&with(job(server.port), "/timeout_ns", json!(60_000_000)));
    result.are_all("timeout");
    assert!(result.histogram("response").min_ns() >= 60_000_000 - 60_000);
    assert!(result.count("reconnects") > 0);
}

#[test]
fn what_is_unanswered_after_the_drain_is_in_flight_at_its_age() {
    let server = Server::start(|mut peer, _| {
        peer.stall();
        Ok(())
    });
    let job = with(with(job(server.port), "/warmup_ns", json!(0)), "/drain_ns", json!(50_000_000));
    let result = complete(&job);
    result.are_all("in_flight");
    assert_eq!(result.total(), 2);
    assert!(result.histogram("response").min_ns() >= 350_000_000 - 350_000);
    assert_eq!(result.count("late"), 0);
}

#[test]
fn an_answer_after_the_window_is_late() {
    let server = Server::start(|mut peer, _| {
        while peer.request()?.is_some() {
            thread::sleep(Duration::from_millis(400));
            peer.say(HELLO)?;
        }
        Ok(())
    });
    let result = complete(&with(job(server.port), "/warmup_ns", json!(0)));
    result.are_all("ok");
    assert_eq!((result.total(), result.count("late"), result.count("completed")), (2, 2, 0));
}

#[test]
fn a_connection_that_ends_early_is_closed_or_reset() {
    let server = Server::start(|mut peer, _| {
        peer.request()?;
        peer.say("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nhello")
    });
    let result = complete(&job(server.port));
    result.are_all("closed");
    assert!(result.count("reconnects") > 0);

    let server = Server::start(|mut peer, _| {
        peer.begin_of_request()?;
        peer.say("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nhello")
    });
    complete(&job(server.port)).are_all("reset");
}

#[test]
fn garbage_and_endless_heads_are_malformed_by_a_rule() {
    let answers = [
        ("\x16\x03\x01 is not HTTP\r\n\r\n", "the answer does not begin with HTTP/1. (RFC 9112, 2.3)"),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: banana\r\n\r\n",
            "Content-Length is not a number in digits (RFC 9110, 8.6)",
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
            "the size of a chunk does not fit into 64 bits",
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5 \r\nhello\r\n0\r\n\r\n",
            "a space follows the size of a chunk (RFC 9112, 7.1)",
        ),
    ];
    for (answer, why) in answers {
        let server = Server::answering(answer);
        let output = run(&job(server.port));
        output.result().are_all("malformed");
        assert!(output.result().count("reconnects") > 0, "{answer:?}");
        assert_eq!(output.result().reason("malformed"), why);
    }
    let endless = Server::start(|mut peer, _| {
        peer.request()?;
        peer.say("HTTP/1.1 200 OK\r\n")?;
        loop {
            peer.say(&format!("X-More: {}\r\n", "a".repeat(1000)))?;
        }
    });
    let result = complete(&job(endless.port));
    assert!(result.outcome("malformed") > 0);
    assert_eq!(result.outcome("malformed") + result.outcome("in_flight"), result.total());
}

#[test]
fn an_answer_that_closes_its_connection_is_ok_and_the_next_takes_a_new_one() {
    let server = Server::start(|mut peer, _| {
        peer.request()?;
        peer.say("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello")
    });
    let result = complete(&job(server.port));
    result.are_all("ok");
    assert!(result.count("reconnects") > 0);

    let until_close = Server::start(|mut peer, _| {
        peer.request()?;
        peer.say("HTTP/1.0 200 OK\r\n\r\nhello")
    });
    let job = with(job(until_close.port), "/requests/0/expect/body_sha256", json!(HELLO_SHA256));
    complete(&job).are_all("ok");
}

#[test]
fn a_server_that_speaks_first_or_hangs_up_at_once_makes_no_storm() {
    let rude = Server::start(|mut peer, _| peer.say("220 mail.example.org ESMTP\r\n"));
    let job = with(open_job(rude.port, 100, 4), "/timeout_ns", json!(100_000_000));
    let output = run(&job);
    if output.code == Some(0) {
        assert_eq!(output.result().outcome("ok"), 0);
    } else {
        assert_eq!(output.error()["kind"], "connect");
    }
    // 350 ms with an attempt after 1, 2, 4 … 100 ms each, and the first four; and another for each request that could be sent.
    assert!(rude.accepted.load(Ordering::SeqCst) < 100);
}

/// A proxy without its server closes what it accepts, so users who ask again immediately would connect for ever.
#[test]
fn a_proxy_that_closes_what_it_accepts_makes_no_storm() {
    let proxy = Server::start(|_, _| Ok(()));
    let job = with(job(proxy.port), "/load/closed", json!({"users": 64}));
    let output = run(&job);
    if output.code == Some(0) {
        assert_eq!(output.result().outcome("ok"), 0);
    } else {
        assert_eq!(output.error()["kind"], "connect");
    }
    // The first 64, and those that were opened again before the first of these ended; then an attempt after 1, 2, 4 … 100 ms
    // each, in a window of 350 ms and a drain of a second.
    assert!(proxy.accepted.load(Ordering::SeqCst) < 300);
}

/// The body arrives faster than it can be read, and for ever: it must hold up neither the other connection nor the end.
#[test]
fn an_endless_body_is_a_timeout_and_holds_up_nobody() {
    let server = Server::start(|mut peer, number| {
        while peer.request()?.is_some() {
            if number == 0 {
                peer.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")?;
                let chunk = format!("{:x}\r\n{}\r\n", 1 << 20, "a".repeat(1 << 20));
                while peer.say(&chunk).is_ok() {}
            }
            peer.say(HELLO)?;
        }
        Ok(())
    });
    let job = with(with(job(server.port), "/timeout_ns", json!(250_000_000)), "/warmup_ns", json!(0));
    let result = complete(&job);
    assert_eq!(result.outcome("timeout"), 1);
    assert_eq!(result.outcome("ok"), result.total() - 1);
    assert!(result.total() > 1);
}
