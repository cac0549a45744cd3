//! A step that fails because browsers drop a cookie says which, in a check and in a load, over HTTP/1.1 and HTTP/2.

use h2::server::Builder;
use serde_json::{Value, json};

use crate::journeys::walked;
use crate::support::http2::{Act, Http2Server};
use crate::support::server::Server;
use crate::support::{complete, job, with};

/// A site whose `/login` sets this cookie, and whose other paths answer 401 without it.
struct Site {
    port: u16,
    _server: Server,
}

impl Site {
    fn of(cookie: &'static str) -> Self {
        let server = Server::start(move |mut peer, _| {
            while let Some(request) = peer.whole_request()? {
                let (status, head) = match request.path.as_str() {
                    "/auth/login" => ("200 OK", format!("Set-Cookie: {cookie}\r\n")),
                    _ if request.header("Cookie").is_some() => ("200 OK", String::new()),
                    _ => ("401 No", String::new()),
                };
                peer.say(&format!("HTTP/1.1 {status}\r\n{head}Content-Length: 0\r\n\r\n"))?;
            }
            Ok(())
        });
        Self { port: server.port, _server: server }
    }
}

fn login(http: &str, port: u16) -> Value {
    let request = |path: &str| json!({"method": "GET", "path": path, "expect": {"status": 200}});
    let job = with(with(job(port), "/target/http", json!(http)), "/count", json!(20));
    let steps = json!({"steps": [{"request": 0}, {"request": 1}], "cookies": true});
    with(with(job, "/requests", json!([request("/auth/login"), request("/profile")])), "/journey", steps)
}

/// What the check and the load say of the second step.
fn said(job: &Value) -> (Value, String) {
    let check = json!({"format": "redline.check/1", "target": job["target"], "requests": job["requests"],
        "journey": job["journey"], "timeout_ns": 5_000_000_000_u64, "keep_bytes": 100});
    let seen = walked(&check);
    assert_eq!(seen[0]["missing_cookies"], Value::Null, "{seen:#?}");
    assert_eq!(seen[1]["outcome"], "unexpected_status", "{seen:#?}");
    let result = complete(job);
    (seen[1]["missing_cookies"].clone(), result.reason("unexpected_status").to_owned())
}

#[test]
fn each_reason_is_told_in_a_check_and_in_a_load() {
    let dropped = |name: &str, why: &str| format!("the cookie `{name}` of step 1 was dropped, as browsers do: {why}");
    let not_sent = |name: &str, why: &str| format!("the cookie `{name}` was not sent, as browsers do: {why}");
    let long: &'static str = Box::leak(format!("sid={}", "x".repeat(4096)).into_boxed_str());
    for (cookie, why) in [
        ("sid=1; Domain=example.org", dropped("sid", "its Domain is example.org, and the host is 127.0.0.1")),
        ("__Host-a=1; Path=/auth", dropped("__Host-a", "a name with __Host- needs Secure, Path=/ and no Domain")),
        ("sid=1; Max-Age=0", dropped("sid", "it had expired when it came")),
        (long, dropped("sid", "its name and value have more than 4,096 bytes")),
        ("sid=1", not_sent("sid", "its path is /auth")),
    ] {
        let site = Site::of(cookie);
        let (checked, reason) = said(&login("1.1", site.port));
        assert_eq!(checked, json!([why]), "{cookie:.40}");
        assert_eq!(reason, format!("status 401 in place of 200; {why}"));
    }
}

#[test]
fn they_are_told_over_http2_too() {
    let server = Http2Server::start(Builder::new(), |received| match received.request.uri().path() {
        "/auth/login" => Act::Headed("set-cookie", "sid=1; Domain=example.org", "hello"),
        _ => Act::Status(401),
    });
    let why =
        "the cookie `sid` of step 1 was dropped, as browsers do: its Domain is example.org, and the host is 127.0.0.1";
    let (checked, reason) = said(&login("2", server.port));
    assert_eq!((checked, reason), (json!([why]), format!("status 401 in place of 200; {why}")));
}
