//! A check and a load give the same outcome, for the same reason, whatever a server does.

use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use h2::Reason;
use h2::server::Builder;
use rustls::version::{TLS12, TLS13};
use serde_json::{Value, json};

use crate::checks::{Checks, check_of};
use crate::support::http2::{Act, Http2Server};
use crate::support::server::{HELLO, HELLO_SHA256, Peer, Server};
use crate::support::tls::{TlsServer, certificates};
use crate::support::{EngineOutput, job, run, with};

/// What a server does after it has read a request.
#[derive(Clone, Copy)]
enum Step {
    Say(&'static str),
    /// The same, byte by byte.
    Trickle(&'static str),
    /// Send this many bytes of a body.
    Body(usize),
    Pause,
    /// End the connection. Without this it stays open.
    Close,
    /// Reset the connection, with most of the request unread.
    Reset,
}
use Step::{Body, Close, Pause, Reset, Say, Trickle};

/// A request, and the expected answer.
#[derive(Clone)]
struct Case {
    steps: &'static [Step],
    method: &'static str,
    expect: Value,
    /// Whether to wait only briefly for the server, because it sends nothing more.
    hangs: bool,
    /// The outcome and the reason; empty if it is enough that they are the same.
    outcome: &'static str,
    reason: &'static str,
}

fn case(outcome: &'static str, reason: &'static str, steps: &'static [Step]) -> Case {
    Case { steps, method: "GET", expect: json!({"status": 200}), hangs: false, outcome, reason }
}

fn expecting(key: &str, value: Value, reason: &'static str) -> Case {
    let answer = &[Say("HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n{\"total\": 42}")];
    let case = case(if reason.is_empty() { "ok" } else { "unexpected_body" }, reason, answer);
    Case { expect: with(case.expect.clone(), &format!("/{key}"), value), ..case }
}

/// An HTTP/1.1 answer that breaks a rule.
fn broken(steps: &'static [Step]) -> Case {
    case("malformed", "", steps)
}

/// Answers that are well-formed.
fn whole() -> Vec<Case> {
    vec![
        case("ok", "", &[Say("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")]),
        case("ok", "", &[Trickle("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")]),
        case("ok", "", &[Say("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")]),
        case(
            "ok",
            "",
            &[Say("HTTP/1.1 103 Early\r\nLink: a\r\n\r\n"), Pause, Say("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")],
        ),
        case(
            "ok",
            "",
            &[Say(
                "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
            )],
        ),
        case("ok", "", &[Say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n")]),
        case(
            "ok",
            "",
            &[Trickle("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nX-A: b\r\n\r\n")],
        ),
        case("ok", "", &[Say("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello"), Close]),
        case("ok", "", &[Say("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhel"), Pause, Say("lo"), Close]),
        case("ok", "", &[Say("HTTP/1.0 200 OK\r\n\r\nhello"), Close]),
        case("ok", "", &[Say("HTTP/1.1 200 OK\r\n\r\n"), Close]),
        case("ok", "", &[Say("HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n"), Body(300_000)]),
        case("ok", "", &[Say("HTTP/1.1 200 OK\r\nX-A: b\r\n c\r\nContent-Length: 0\r\n\r\n")]),
        case(
            "unexpected_status",
            "status 503 in place of 200",
            &[Say("HTTP/1.1 503 Busy\r\nContent-Length: 5\r\n\r\nhello")],
        ),
        case(
            "unexpected_status",
            "status 503 in place of 200",
            &[Trickle("HTTP/1.1 503 Busy\r\nContent-Length: 5\r\n\r\nhello")],
        ),
        case("unexpected_status", "status 204 in place of 200", &[Say("HTTP/1.1 204 No Content\r\n\r\n")]),
        case(
            "unexpected_status",
            "status 304 in place of 200",
            &[Say("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n")],
        ),
        case(
            "unexpected_status",
            "status 401 in place of 200",
            &[Say("HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n"), Close],
        ),
        case(
            "unexpected_status",
            "status 408 in place of 200",
            &[Say("HTTP/1.1 408 Late\r\nConnection: close\r\n\r\n"), Close],
        ),
        case("", "", &[Say("HTTP/1.1 101 Switching\r\nUpgrade: a\r\n\r\n"), Close]),
        case("", "", &[Say("HTTP/1.1 600 What\r\nContent-Length: 0\r\n\r\n")]),
        case("", "", &[Say("HTTP/1.1 999 What\r\nContent-Length: 0\r\n\r\n")]),
        Case { method: "HEAD", ..case("ok", "", &[Say("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")]) },
    ]
}

/// Answers that are compared with expectations.
fn compared() -> Vec<Case> {
    vec![
        expecting("body_length", json!(13), ""),
        expecting("body_length", json!(12), "13 bytes of body in place of 12"),
        expecting(
            "body_sha256",
            json!(HELLO_SHA256),
            "a body with the SHA-256 439993d78a1983bc65f64f33f27c7bf9107f97cda8cac982a3c83b51fc2118b2 in place of 2cf24dba",
        ),
        expecting("json", json!([{"pointer": "/total", "equals": 42.0}]), ""),
        expecting("json", json!([{"pointer": "/total", "equals": 3}]), "42 at \"/total\" of the body in place of 3"),
        expecting(
            "json",
            json!([{"pointer": "/sum", "equals": 3}]),
            "a body without a JSON value at \"/sum\" in place of 3",
        ),
    ]
}

/// Incomplete answers.
fn unfinished() -> Vec<Case> {
    let hangs: [(&str, &[Step]); 3] = [
        ("no answer within 150 ms", &[]),
        ("no whole answer within 150 ms, but 7 bytes of it", &[Say("HTTP/1.")]),
        (
            "no whole answer within 150 ms, but 41 bytes of it",
            &[Say("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel")],
        ),
    ];
    let mut cases = vec![
        case("closed", "the connection ended before the answer", &[Close]),
        case("closed", "the connection ended after 7 bytes of the answer", &[Say("HTTP/1."), Close]),
        case(
            "closed",
            "the connection ended after 41 bytes of the answer",
            &[Say("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel"), Close],
        ),
        case(
            "closed",
            "the connection ended after 200041 bytes of the answer",
            &[Say("HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\n\r\n"), Pause, Body(199_997), Close],
        ),
        case(
            "closed",
            "the connection ended after 55 bytes of the answer",
            &[Say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello"), Close],
        ),
        case(
            "closed",
            "the connection ended after 23 bytes of the answer",
            &[Say("HTTP/1.1 103 Early\r\n\r\nH"), Close],
        ),
        case("reset", "Connection reset by peer (os error 104)", &[Reset]),
    ];
    cases.extend(hangs.map(|(reason, steps)| Case { hangs: true, ..case("timeout", reason, steps) }));
    cases
}

/// Answers that break a rule.
fn malformed() -> Vec<Case> {
    vec![
        broken(&[Say("\x16\x03\x01 is not HTTP\r\n\r\n")]),
        broken(&[Say("SSH-2.0-OpenSSH_9.6\r\n")]),
        broken(&[Say("220 mail.example.org ESMTP\r\n")]),
        broken(&[Say("\r\n\r\nHTTP/1.1 200 OK\r\n\r\n")]),
        broken(&[Say("HTTP/2 200 OK\r\nContent-Length: 0\r\n\r\n")]),
        broken(&[Say("HTTP/1.1 20 OK\r\nContent-Length: 0\r\n\r\n")]),
        broken(&[Say("HTTP/1.1 2x0 OK\r\nContent-Length: 0\r\n\r\n")]),
        broken(&[Say("HTTP/1.1 099 OK\r\nContent-Length: 0\r\n\r\n")]),
        broken(&[Say("HTTP/1.1 200 OK\r\nContent-Length: banana\r\n\r\n")]),
        broken(&[Trickle("HTTP/1.1 200 OK\r\nContent-Length: banana\r\n\r\n")]),
        broken(&[Say("HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nok")]),
        broken(&[Say("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nok")]),
        broken(&[Say("HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551616\r\n\r\n")]),
        broken(&[Say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok")]),
        case("", "", &[Say("HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nok")]),
        broken(&[Say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")]),
        broken(&[Say("HTTP/1.1 200 OK\r\nX A: b\r\nContent-Length: 0\r\n\r\n")]),
        broken(&[Say("HTTP/1.1 200 OK\r\nX-A : b\r\nContent-Length: 0\r\n\r\n")]),
        broken(&[Say("HTTP/1.1 200 OK\r\nX-A: \0\r\nContent-Length: 0\r\n\r\n")]),
        broken(&[Say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n")]),
        broken(&[Say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5 \r\nhello\r\n0\r\n\r\n")]),
        broken(&[Trickle("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello!")]),
        broken(&[Say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), Pause, Say("zz\r\n")]),
        broken(&[Say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX A: b\r\n\r\n")]),
        broken(&[Say("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")]),
    ]
}

/// Answers followed by bytes that nobody requested.
fn followed() -> Vec<Case> {
    vec![
        case("", "", &[Say("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhello")]),
        case("", "", &[Say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n0\r\n\r\n")]),
        case("", "", &[Say("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello")]),
        Case { method: "HEAD", ..case("", "", &[Say("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")]) },
    ]
}

fn play(mut peer: Peer, steps: &[Step]) -> std::io::Result<()> {
    if let [Reset] = steps {
        return peer.begin_of_request();
    }
    peer.request()?;
    for step in steps {
        match step {
            Say(text) => peer.say(text)?,
            Trickle(text) => {
                for at in 0..text.len() {
                    peer.say(&text[at..=at])?;
                    thread::yield_now();
                }
            }
            Body(length) => peer.say(&"a".repeat(*length))?,
            Pause => thread::sleep(Duration::from_millis(20)),
            Close | Reset => return Ok(()),
        }
    }
    peer.stall();
    Ok(())
}

/// A load of a single request, the request of the check.
fn load_of(check: &Value) -> Value {
    let job = with(job(0), "/target", check["target"].clone());
    let job = with(with(job, "/load/closed", json!({"users": 1})), "/count", json!(1));
    let job = with(with(job, "/warmup_ns", json!(0)), "/measure_ns", json!(30_000_000_000_u64));
    let job = with(with(job, "/timeout_ns", check["timeout_ns"].clone()), "/drain_ns", json!(30_000_000_000_u64));
    with(job, "/requests", json!([check["request"]]))
}

/// The outcome of a load of a single request, and its failure.
fn verdict_of(output: &EngineOutput) -> (String, Value) {
    assert_eq!(output.code, Some(0), "{:#?}", output.events.last());
    let result = output.result();
    assert_eq!(result.total(), 1, "{}", result.event["counts"]);
    assert!(result.failures().len() <= 1);
    let failure = result.failures().first().cloned().unwrap_or_default();
    (failure["outcome"].as_str().unwrap_or("ok").to_owned(), failure)
}

/// Compare what a check and a load report of a request, except for its time.
fn agree(checked: &Value, loaded: &(String, Value)) {
    // If an answer arrives in pieces, the check or the load may have received more.
    let bytes =
        |failure: &Value| failure["bytes_base64"].as_str().map_or(Vec::new(), |text| STANDARD.decode(text).unwrap());
    let (of_check, of_load) = (bytes(&checked["failure"]), bytes(&loaded.1));
    assert!(of_check.starts_with(&of_load) || of_load.starts_with(&of_check), "{checked:#}\n{:#}", loaded.1);
    let timeless = |failure: &Value| {
        let mut failure = failure.clone();
        if let Some(fields) = failure.as_object_mut() {
            assert!(fields.remove("time_ns").is_some_and(|time| time.is_u64()));
            fields.insert("bytes_base64".to_owned(), json!(fields["bytes_base64"].is_string()));
        }
        failure
    };
    assert_eq!(checked["outcome"], loaded.0, "{checked:#}\n{:#}", loaded.1);
    assert_eq!(timeless(&checked["failure"]), timeless(&loaded.1));
}

#[test]
fn whatever_a_server_answers_a_check_and_a_load_say_the_same() {
    let mut checks = Checks::start();
    for case in [whole(), compared(), unfinished(), malformed(), followed()].concat() {
        let steps = case.steps;
        let server = Server::start(move |peer, _| play(peer, steps));
        let request = json!({"method": case.method, "path": "/", "expect": case.expect});
        let timeout_ns: u64 = if case.hangs { 150_000_000 } else { 30_000_000_000 };
        let check = with(with(check_of(server.port), "/request", request), "/timeout_ns", json!(timeout_ns));
        let checked = checks.check(&check);
        agree(&checked, &verdict_of(&run(&load_of(&check))));
        if !case.outcome.is_empty() {
            assert_eq!(checked["outcome"], case.outcome, "{checked:#}");
        }
        if !case.reason.is_empty() {
            let reason = checked["failure"]["reason"].as_str().unwrap();
            assert!(reason.starts_with(case.reason), "{reason:?} is not {:?}", case.reason);
        }
    }
}

/// Compare the check with a load, which may end before it begins because nothing can be connected to.
fn agree_with_load(check: &Value) -> Value {
    let checked = Checks::start().check(check);
    let output = run(&load_of(check));
    if output.code == Some(0) {
        agree(&checked, &verdict_of(&output));
    } else {
        let message = output.error()["message"].as_str().unwrap();
        let reason = checked["failure"]["reason"].as_str().unwrap();
        assert!(output.error()["kind"] == "connect" && message.ends_with(reason), "{message:?} is not {reason:?}");
    }
    checked
}

fn reason(checked: &Value) -> (&str, &str) {
    (checked["outcome"].as_str().unwrap(), checked["failure"]["reason"].as_str().unwrap_or_default())
}

#[test]
fn over_http2_a_check_and_a_load_say_the_same() {
    let cases = [
        (Act::Answer("hello"), "ok", ""),
        (Act::Status(503), "unexpected_status", "status 503 in place of 200"),
        (Act::Status(404), "unexpected_status", "status 404 in place of 200"),
        (Act::Grpc("0"), "ok", ""),
        (Act::Grpc("13"), "unexpected_status", "grpc-status 13 in place of 0"),
        (Act::Grpc(""), "unexpected_status", "grpc-status 2 in place of 0"),
        (Act::GrpcHead("5"), "unexpected_status", "grpc-status 5 in place of 0"),
        (Act::Reset(Reason::INTERNAL_ERROR), "refused", "the server reset the stream with INTERNAL_ERROR"),
        (Act::Reset(Reason::REFUSED_STREAM), "refused", "the server refused to process it as often as it was sent"),
        (Act::AnswerAndGo, "ok", ""),
        (Act::Stall, "timeout", "no answer within 150 ms"),
    ];
    for (act, outcome, why) in cases {
        let server = Http2Server::start(Builder::new(), move |_| act);
        let timeout_ns: u64 = if outcome == "timeout" { 150_000_000 } else { 30_000_000_000 };
        let check = with(with(check_of(server.port), "/target/http", json!("2")), "/timeout_ns", json!(timeout_ns));
        let checked = agree_with_load(&check);
        assert_eq!(reason(&checked), (outcome, why), "{act:?}");
    }
    let plain = Server::start(|peer, _| play(peer, &[Say("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")]));
    let checked = agree_with_load(&with(check_of(plain.port), "/target/http", json!("2")));
    assert_eq!(checked["outcome"], "malformed", "{checked:#}");
}

#[test]
fn over_tls_a_check_and_a_load_say_the_same() {
    let certificates = certificates("127.0.0.1");
    let config = || certificates.config(&[&TLS12, &TLS13], &[]);
    let hello = TlsServer::answering(config(), HELLO);
    let cut = TlsServer::start(config(), |mut peer, _| {
        peer.request()?;
        peer.say("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel")
    });
    let ended = TlsServer::start(config(), |mut peer, _| {
        peer.request()?;
        peer.say("HTTP/1.1 200 OK\r\n\r\nhello")?;
        peer.close()
    });
    let broken = TlsServer::answering(config(), "HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nok");
    let plain = Server::answering(HELLO);
    let demanding = TlsServer::answering(certificates.demanding_config(&TLS13), HELLO);
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let trusting = json!({"ca_pem": certificates.ca_pem});
    let after = "the connection ended after 41 bytes of the answer, without close_notify";
    let cases = [
        (hello.port, trusting.clone(), "ok", ""),
        (hello.port, json!({"insecure": true}), "ok", ""),
        (hello.port, json!({}), "tls", "the TLS handshake failed: "),
        (cut.port, trusting.clone(), "closed", after),
        (ended.port, trusting.clone(), "ok", ""),
        (broken.port, trusting.clone(), "malformed", "Content-Length is not a number in digits (RFC 9110, 8.6)"),
        (plain.port, trusting.clone(), "tls", "the TLS handshake failed: "),
        (demanding.port, trusting.clone(), "tls", "the server sent the alert certificate_required"),
        (nobody, trusting, "connect", "Connection refused (os error 111)"),
    ];
    for (port, tls, outcome, why) in cases {
        let checked = agree_with_load(&with(check_of(port), "/target/tls", tls.clone()));
        let seen = reason(&checked);
        assert!(
            seen.0 == outcome && seen.1.starts_with(why) && seen.1.is_empty() == why.is_empty(),
            "{seen:?}, not {why:?}"
        );
        assert_eq!(checked["address"].is_null(), outcome == "connect");
        if !checked["status"].is_null() {
            let known = (&checked["tls"]["version"], &checked["tls"]["alpn"]);
            assert_eq!(known, (&json!("1.3"), &Value::Null), "{checked:#}");
            assert!(checked["tls"]["cipher"].is_string());
        }
    }
}

#[test]
fn nobody_and_no_host_are_connect() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let checked = agree_with_load(&check_of(nobody));
    assert_eq!(reason(&checked), ("connect", "Connection refused (os error 111)"));
    assert!(checked["address"].is_null() && checked["status"].is_null() && checked["headers"].is_null());
    let unknown = agree_with_load(&with(check_of(80), "/target/host", json!("nowhere.invalid")));
    assert!(reason(&unknown).1.starts_with("the host \"nowhere.invalid\" is not known: "), "{unknown:#}");
}
