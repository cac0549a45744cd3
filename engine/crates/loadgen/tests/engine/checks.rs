//! Single requests, whose answers are shown.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use h2::server::Builder;
use serde_json::{Value, json};

use crate::support::http2::{Act, HEADERS, Http2Server, frame, greet, next_stream, ok};
use crate::support::server::{HELLO, HELLO_SHA256, Server};
use crate::support::{Engine, with};

/// A check of `/`.
pub fn check_of(port: u16) -> Value {
    json!({
        "format": "redline.check/1",
        "target": {"host": "127.0.0.1", "port": port},
        "request": {"method": "GET", "path": "/", "expect": {"status": 200}},
        "picks": {},
        "timeout_ns": 5_000_000_000_u64,
        "keep_bytes": 65536,
    })
}

/// An engine that makes checks.
pub struct Checks(Engine);

impl Checks {
    pub fn start() -> Self {
        Self(Engine::start_heeding("", |command| {
            command.arg("check");
        }))
    }

    pub fn check(&mut self, check: &Value) -> Value {
        self.0.say(&check.to_string());
        let mut seen = Value::Null;
        self.0.wait_until(|event| {
            seen = event.clone();
            true
        });
        assert_eq!(seen["event"], "checked", "{seen:#}");
        assert_eq!(seen["outcome"] == "ok", seen["failure"].is_null(), "{seen:#}");
        seen
    }
}

fn body(checked: &Value) -> Vec<u8> {
    STANDARD.decode(checked["body_base64"].as_str().unwrap()).unwrap()
}

#[test]
fn an_answer_is_shown_whole() {
    let server = Server::answering(
        "HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n\
         HTTP/1.1 200 OK\r\nX-Two: a\r\nx-two: \r\nContent-Length: 5\r\n\r\nhello",
    );
    let mut checks = Checks::start();
    for (keeps, kept) in [(65536, "hello"), (3, "hel"), (0, "")] {
        let seen = checks.check(&with(check_of(server.port), "/keep_bytes", json!(keeps)));
        assert_eq!((&seen["outcome"], &seen["failure"], &seen["status"]), (&json!("ok"), &Value::Null, &json!(200)));
        assert_eq!(seen["headers"], json!([["x-two", "a"], ["x-two", ""], ["content-length", "5"]]));
        assert_eq!((&seen["interim"], &seen["body_length"]), (&json!([103, 100]), &json!(5)));
        assert_eq!(seen["body_sha256"], HELLO_SHA256);
        assert_eq!(body(&seen), kept.as_bytes());
        assert_eq!(seen["address"], format!("127.0.0.1:{}", server.port));
        assert!(seen["grpc_status"].is_null() && seen["tls"].is_null() && seen["elapsed_ns"].as_u64().unwrap() > 0);
    }
    // Each check had a connection of its own.
    assert_eq!(server.accepted.load(std::sync::atomic::Ordering::SeqCst), 3);
}

#[test]
fn checks_end_with_standard_input_and_with_a_line_that_is_none() {
    let server = Server::answering(HELLO);
    let mut checks = Checks::start();
    checks.check(&check_of(server.port));
    checks.0.close_input();
    assert_eq!(checks.0.exit_code(), Some(0));

    let wrong = [
        ("/format", json!("redline.check/2"), "format"),
        ("/keep_bytes", json!(64 * 1024 * 1024 + 1), "keep_bytes"),
        ("/timeout_ns", json!(0), "timeout_ns"),
        ("/request/expect/status", json!(99), "request.expect.status"),
        ("/request/path", json!("nowhere"), "request.path"),
        ("/target/port", json!(0), "target.port"),
        ("/surplus", json!(1), "surplus"),
    ];
    for (place, value, field) in wrong {
        let mut checks = Checks::start();
        checks.0.say(&with(check_of(server.port), place, value).to_string());
        let output = checks.0.finish();
        assert_eq!(output.code, Some(2));
        assert_eq!(output.error()["kind"], "bad_job");
        let message = output.error()["message"].as_str().unwrap();
        assert!(message.starts_with(&format!("{field}: ")), "{message}");
    }
}

#[test]
fn an_answer_of_http2_is_shown_as_one_of_http1_is() {
    let server = Http2Server::start(Builder::new(), |_| Act::Grpc("7"));
    let check = with(with(check_of(server.port), "/target/http", json!("2")), "/keep_bytes", json!(4));
    let seen = Checks::start().check(&check);
    assert_eq!((&seen["outcome"], &seen["status"]), (&json!("unexpected_status"), &json!(200)));
    assert_eq!((&seen["grpc_status"], &seen["body_length"]), (&json!(7), &json!(5)));
    // Fields of the trailers are not among them.
    assert_eq!(seen["headers"], json!([["content-type", "application/grpc+proto"]]));
    assert_eq!((body(&seen), &seen["body_sha256"]), (b"hell".to_vec(), &json!(HELLO_SHA256)));

    let hints = Server::start(|mut peer, _| {
        greet(&mut peer)?;
        let stream = next_stream(&mut peer)?;
        // `:status 103`, a literal with the name of entry 8 of HPACK's static table, and `:status 200`.
        peer.say_bytes(&frame(HEADERS, 4, stream, b"\x08\x03103"))?;
        peer.say_bytes(&ok(stream))?;
        peer.stall();
        Ok(())
    });
    let seen = Checks::start().check(&with(check_of(hints.port), "/target/http", json!("2")));
    assert_eq!((&seen["status"], &seen["interim"], &seen["headers"]), (&json!(200), &json!([103]), &json!([])));
}

/// The size of a body is limited if its content is checked, but not if it is only counted.
#[test]
fn a_body_has_no_limit_unless_it_is_looked_into() {
    const LONG: usize = 3 << 20;
    let server = Server::start(|mut peer, _| {
        peer.request()?;
        peer.say(&format!("HTTP/1.1 200 OK\r\nContent-Length: {LONG}\r\n\r\n"))?;
        peer.say(&"a".repeat(LONG))?;
        peer.stall();
        Ok(())
    });
    let mut checks = Checks::start();
    let check = with(check_of(server.port), "/timeout_ns", json!(60_000_000_000_u64));
    for keeps in [LONG + 1, 100_000] {
        let seen = checks.check(&with(check.clone(), "/keep_bytes", json!(keeps)));
        assert_eq!((&seen["outcome"], &seen["body_length"]), (&json!("ok"), &json!(LONG)));
        assert_eq!(body(&seen), "a".repeat(keeps.min(LONG)).as_bytes());
    }
    let looking = with(check, "/request/expect/json", json!([{"pointer": "", "equals": 1}]));
    let seen = checks.check(&looking);
    assert_eq!(seen["outcome"], "malformed");
    assert!(seen["failure"]["reason"].as_str().unwrap().contains("1 MiB"), "{seen:#}");
    assert!(seen["failure"]["at"].as_u64().unwrap() > 1 << 20);
}

#[test]
fn a_connection_that_ends_with_the_answer_is_not_replaced() {
    let server = Server::start(|mut peer, _| {
        peer.request()?;
        peer.say("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    });
    let mut checks = Checks::start();
    for accepted in 1..=3 {
        assert_eq!(checks.check(&check_of(server.port))["outcome"], "ok");
        assert_eq!(server.accepted.load(std::sync::atomic::Ordering::SeqCst), accepted);
    }
}

#[test]
fn placeholders_have_their_first_values() {
    let server = Server::start(|mut peer, _| {
        while let Some((line, _)) = peer.request()? {
            peer.say(&format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{line}", line.len()))?;
        }
        Ok(())
    });
    let check = with(check_of(server.port), "/request/path", json!("/{seq}/{pick:ids}/{rand:3..9}/{rand:-4..4}"));
    let seen = Checks::start().check(&with(check, "/picks", json!({"ids": ["b", "a"]})));
    assert_eq!(body(&seen), b"GET /0/b/3/-4 HTTP/1.1\r\n");
}

#[test]
fn the_time_of_a_check_bounds_all_of_it() {
    let silent = Server::start(|mut peer, _| {
        peer.stall();
        Ok(())
    });
    let mut checks = Checks::start();
    for tls in [Value::Null, json!({"insecure": true})] {
        let check = with(with(check_of(silent.port), "/timeout_ns", json!(100_000_000)), "/target/tls", tls);
        let seen = checks.check(&check);
        let outcome = if check["target"]["tls"].is_null() { "timeout" } else { "tls" };
        assert_eq!((&seen["outcome"], &seen["status"]), (&json!(outcome), &Value::Null));
        assert!(seen["elapsed_ns"].as_u64().unwrap() >= 100_000_000);
    }
}

#[test]
fn bytes_that_nobody_requested_are_seen() {
    let longer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhello";
    for (answer, has_surplus) in [(longer, json!(true)), (HELLO, Value::Null)] {
        let server = Server::answering(answer);
        let seen = Checks::start().check(&check_of(server.port));
        assert_eq!((&seen["outcome"], &seen["has_surplus"]), (&json!("ok"), &has_surplus), "{seen:#}");
    }
}

/// A folded field counts as a field, and a field of the trailers does not.
#[test]
fn an_answer_in_pieces_is_shown_as_one_in_one_piece_is() {
    const ANSWER: &str = "HTTP/1.1 102 Processing\r\nX-A: 1\r\n\r\nHTTP/1.1 200 OK\r\nX-B: 1\r\n 2\r\nX-C:\r\n\
                          Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\nX-D: 4\r\n\r\n";
    let mut checks = Checks::start();
    for size in [1, 7, ANSWER.len()] {
        let server = Server::start(move |mut peer, _| {
            peer.request()?;
            for piece in ANSWER.as_bytes().chunks(size) {
                peer.say_bytes(piece)?;
                std::thread::yield_now();
            }
            peer.stall();
            Ok(())
        });
        let seen = checks.check(&check_of(server.port));
        assert_eq!(seen["headers"], json!([["x-b", "1 2"], ["x-c", ""], ["transfer-encoding", "chunked"]]));
        assert_eq!((&seen["interim"], &seen["body_sha256"]), (&json!([102]), &json!(HELLO_SHA256)));
        assert_eq!(body(&seen), b"hello");
    }
}

#[test]
fn a_signal_ends_checks_and_so_does_a_parent_that_is_gone() {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let mut checks = Checks::start();
        checks.check(&check_of(Server::answering(HELLO).port));
        checks.0.signal(signal);
        assert_eq!(checks.0.exit_code(), Some(130));
    }
    let mut orphan = Engine::start_heeding("", |command| {
        // The first process has other children or none.
        command.arg("check").env("REDLINE_PARENT", "1");
    });
    assert_eq!(orphan.exit_code(), Some(1));
}

#[test]
fn an_address_of_ipv6_is_named_in_brackets() {
    if let Err(why) = std::net::TcpListener::bind("[::1]:0") {
        return eprintln!("skipped: this machine has no IPv6: {why}");
    }
    let server = Server::start_on("[::1]:0", |mut peer, _| {
        peer.request()?;
        peer.say(HELLO)?;
        peer.stall();
        Ok(())
    });
    for host in ["::1", "[::1]"] {
        let seen = Checks::start().check(&with(check_of(server.port), "/target/host", json!(host)));
        assert_eq!((&seen["outcome"], &seen["address"]), (&json!("ok"), &json!(format!("[::1]:{}", server.port))));
    }
}
