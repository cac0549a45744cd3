//! Single requests, whose answers are shown.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::support::server::{HELLO, HELLO_SHA256, Server};
use crate::support::{Engine, with};

/// A check of `/` that is `hello`.
fn check_of(port: u16) -> Value {
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
struct Checks(Engine);

impl Checks {
    fn start() -> Self {
        Self(Engine::start_heeding("", |command| {
            command.arg("check");
        }))
    }

    fn check(&mut self, check: &Value) -> Value {
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
    // Each had a connection of its own.
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
