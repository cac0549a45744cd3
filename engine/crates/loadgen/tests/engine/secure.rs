//! TLS: whom the engine trusts, what it negotiates, and what it counts of the handshakes.

use std::sync::atomic::Ordering::SeqCst;

use crate::support::output::histogram;
use crate::support::server::{HELLO, HELLO_SHA256, Server};
use crate::support::tls::{self, Certificates, TlsServer, certificates, own_expired_certificate};
use crate::support::{EngineOutput, Outcome, job, run, with};
use rustls::version::{TLS12, TLS13};
use serde_json::{Value, json};

/// A server of both versions, for 127.0.0.1.
fn hello() -> (TlsServer, Certificates) {
    let certificates = certificates("127.0.0.1");
    (TlsServer::answering(certificates.config(&[&TLS12, &TLS13], &[]), HELLO), certificates)
}

/// A job that trusts these certificates.
fn trusting(port: u16, certificates: &Certificates) -> Value {
    let job = with(job(port), "/requests/0/expect/body_sha256", json!(HELLO_SHA256));
    with(job, "/target/tls", json!({"ca_pem": certificates.ca_pem}))
}

fn all_of(output: &EngineOutput, counter: &str) -> u64 {
    output.of_kind("interval").map(|interval| interval["counts"][counter].as_u64().unwrap()).sum()
}

/// A run that completes, in which every counted handshake has its time, in the same interval.
fn shakes(job: &Value) -> (EngineOutput, Outcome) {
    let output = run(job);
    assert_eq!(output.code, Some(0), "{:#?}\n{}", output.events.last(), output.log);
    for interval in output.of_kind("interval") {
        let counts = &interval["counts"];
        let timed = if interval["handshake"].is_null() { 0 } else { histogram(interval, "handshake").count() };
        assert_eq!(counts["handshakes"], timed, "{counts}");
        assert!(counts["resumed"].as_u64() <= counts["handshakes"].as_u64());
    }
    let result = output.result();
    assert_eq!(output.events[0]["event"], "started");
    (output, result)
}

/// A job that could not run because of TLS.
fn is_refused(job: &Value, why: &str) {
    let output = run(job);
    assert_eq!(output.code, Some(1), "{:#?}", output.events.last());
    let error = output.error();
    assert_eq!(error["kind"], "connect");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("TLS") && message.contains(why), "{message}");
}

#[test]
fn a_server_of_a_trusted_authority_is_spoken_to() {
    let (server, certificates) = hello();
    let (output, result) = shakes(&trusting(server.port, &certificates));
    result.are_all("ok");
    let tls = &output.events[0]["tls"];
    assert_eq!((&tls["version"], &tls["insecure"], &tls["alpn"]), (&json!("1.3"), &json!(false), &Value::Null));
    // Handshakes before the epoch are in the first interval.
    let first = output.of_kind("interval").next().unwrap();
    assert_eq!((&first["counts"]["handshakes"], server.shaken.load(SeqCst)), (&json!(2), 2));
    assert_eq!(all_of(&output, "handshakes"), 2);
    assert!(result.count("bytes_received") > result.count("completed") * HELLO.len() as u64);
}

#[test]
fn an_unknown_authority_and_a_wrong_name_are_refused() {
    let (server, certificates) = hello();
    is_refused(&trusting(server.port, &tls::certificates("127.0.0.1")), "certificate");
    // The system does not trust it either.
    is_refused(&with(job(server.port), "/target/tls", json!({})), "certificate");
    let misnamed = with(trusting(server.port, &certificates), "/target/tls/server_name", json!("other.test"));
    is_refused(&misnamed, "certificate");
    is_refused(&with(trusting(server.port, &certificates), "/target/host", json!("localhost")), "certificate");
    assert_eq!(server.resumed.load(SeqCst), 0);
}

/// A server's own certificate that is given is trusted, whatever its dates are.
#[test]
fn a_servers_own_certificate_is_trusted_by_its_bytes() {
    for certificates in [own_expired_certificate("127.0.0.1"), leaf_alone()] {
        let server = TlsServer::answering(certificates.config(&[&TLS12, &TLS13], &[]), HELLO);
        shakes(&trusting(server.port, &certificates)).1.are_all("ok");
        // It is trusted for its own name only.
        let misnamed = with(trusting(server.port, &certificates), "/target/tls/server_name", json!("other.test"));
        is_refused(&misnamed, "certificate");
    }
}

/// A server's certificate from an unknown authority, given instead of the authority's.
fn leaf_alone() -> Certificates {
    let mut certificates = certificates("127.0.0.1");
    certificates.ca_pem.clone_from(&certificates.pem);
    certificates
}

/// In TLS 1.3 the alert arrives when the client considers the handshake complete, and the request is in flight.
#[test]
fn a_server_that_wants_a_certificate_of_the_client_is_a_tls_failure_that_says_so() {
    const WANTS: &str = "it wants a certificate of the client";
    let certificates = certificates("127.0.0.1");
    let server = TlsServer::answering(certificates.demanding_config(&TLS13), HELLO);
    let result = run(&trusting(server.port, &certificates)).result();
    result.are_all("tls");
    let reason = result.reason("tls");
    assert!(reason.contains(WANTS) && reason.contains("certificate_required"), "{reason}");
    let server = TlsServer::answering(certificates.demanding_config(&TLS12), HELLO);
    is_refused(&trusting(server.port, &certificates), WANTS);
}

#[test]
fn a_server_name_is_told_and_checked() {
    let certificates = certificates("server.test");
    let server = TlsServer::answering(certificates.config(&[&TLS12, &TLS13], &[]), HELLO);
    is_refused(&trusting(server.port, &certificates), "certificate");
    let named = with(trusting(server.port, &certificates), "/target/tls/server_name", json!("server.test"));
    shakes(&named).1.are_all("ok");
    assert_eq!(server.named.lock().unwrap().as_deref(), Some("server.test"));
}

#[test]
fn who_asks_for_no_security_is_told_that_there_was_none() {
    let (server, _) = hello();
    let (output, result) = shakes(&with(job(server.port), "/target/tls", json!({"insecure": true})));
    result.are_all("ok");
    assert_eq!(output.events[0]["tls"]["insecure"], true);
}

#[test]
fn both_versions_are_spoken_and_others_refused() {
    for (version, server_speaks) in [("1.2", &TLS12), ("1.3", &TLS13)] {
        let certificates = certificates("127.0.0.1");
        let server = TlsServer::answering(certificates.config(&[server_speaks], &["http/1.1"]), HELLO);
        let only = |version: &str| with(trusting(server.port, &certificates), "/target/tls/versions", json!([version]));
        for job in [only(version), trusting(server.port, &certificates)] {
            let (output, result) = shakes(&with(job, "/load/closed/depth", json!(4)));
            result.are_all("ok");
            let tls = &output.events[0]["tls"];
            assert_eq!((&tls["version"], &tls["alpn"]), (&json!(version), &json!("http/1.1")));
        }
        is_refused(&only(if version == "1.2" { "1.3" } else { "1.2" }), "");
    }
}

#[test]
fn replaced_connections_resume_their_sessions_unless_they_are_not_to() {
    for (version, resumption) in [("1.3", true), ("1.2", true), ("1.3", false), ("1.2", false)] {
        let (server, certificates) = hello();
        let job = with(trusting(server.port, &certificates), "/target/tls/versions", json!([version]));
        let job = with(job, "/target/tls/resumption", json!(resumption));
        let (output, result) = shakes(&with(job, "/load/closed/requests_per_connection", json!(5)));
        result.are_all("ok");
        let (shaken, resumed) = (all_of(&output, "handshakes"), all_of(&output, "resumed"));
        // At the end either side may know of a handshake that the other does not.
        assert!(shaken > 2 && (server.shaken.load(SeqCst) as u64).abs_diff(shaken) <= 2);
        assert!(result.count("reconnects") > 0);
        if resumption {
            // The first handshakes have no session to resume; in 1.3 a ticket may also arrive too late for the next.
            assert!(resumed > 0 && resumed < shaken, "TLS {version}: {resumed} of {shaken}");
            assert!(server.resumed.load(SeqCst) as u64 + 2 >= resumed);
        } else {
            assert_eq!((resumed, server.resumed.load(SeqCst)), (0, 0), "TLS {version}");
        }
    }
}

#[test]
fn the_end_of_a_secure_connection_is_heeded() {
    // The end is announced in HTTP and in TLS.
    let certificates = certificates("127.0.0.1");
    let polite = TlsServer::start(certificates.config(&[&TLS13], &[]), |mut peer, _| {
        peer.request()?;
        peer.say("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello")?;
        peer.close()
    });
    let (_, result) = shakes(&trusting(polite.port, &certificates));
    result.are_all("ok");
    assert!(result.count("reconnects") > 0);
    // A body that ends with the connection is complete if TLS announces the end.
    let until_end = TlsServer::start(certificates.config(&[&TLS12, &TLS13], &[]), |mut peer, _| {
        peer.request()?;
        peer.say("HTTP/1.0 200 OK\r\n\r\nhello")?;
        peer.close()
    });
    for version in ["1.2", "1.3"] {
        let job = with(trusting(until_end.port, &certificates), "/target/tls/versions", json!([version]));
        shakes(&job).1.are_all("ok");
    }
    // In the middle of an answer.
    let early = TlsServer::start(certificates.config(&[&TLS13], &[]), |mut peer, _| {
        peer.request()?;
        peer.say("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nhello")?;
        peer.close()
    });
    shakes(&trusting(early.port, &certificates)).1.are_all("closed");
}

#[test]
fn a_server_that_speaks_no_tls_is_refused_and_does_not_hang() {
    let (_, certificates) = hello();
    let plain = Server::start(|mut peer, _| {
        peer.begin_of_request()?;
        peer.say("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")?;
        peer.stall();
        Ok(())
    });
    is_refused(&trusting(plain.port, &certificates), "the peer does not speak TLS");
    let silent = Server::start(|mut peer, _| {
        peer.stall();
        Ok(())
    });
    let slow = with(trusting(silent.port, &certificates), "/timeout_ns", json!(200_000_000));
    is_refused(&slow, "the server did not complete it in time");
    // The server uses TLS, and the job does not.
    let (server, _) = hello();
    let result = crate::support::complete(&with(job(server.port), "/timeout_ns", json!(200_000_000)));
    assert_eq!(result.outcome("ok"), 0, "{}", result.event["counts"]);
}

#[test]
fn a_handshake_that_fails_during_the_load_is_its_own_outcome() {
    let (_, certificates) = hello();
    // The first connection is TLS, and all others are something else.
    let inner = TlsServer::start(certificates.config(&[&TLS13], &[]), |mut peer, _| {
        peer.request()?;
        peer.say("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello")?;
        peer.close()
    });
    let inner_port = inner.port;
    let proxy = Server::start(move |peer, number| {
        if number == 0 { peer.relay_to(inner_port) } else { peer.answer_blindly("HTTP/1.1 502 Bad Gateway\r\n\r\n") }
    });
    let single = with(trusting(proxy.port, &certificates), "/load/closed/users", json!(1));
    let output = run(&with(single, "/warmup_ns", json!(0)));
    assert_eq!(output.code, Some(0), "{:#?}", output.events.last());
    let result = output.result();
    assert!(result.outcome("tls") > 0, "{}", result.event["counts"]);
    assert_eq!(result.outcome("ok") + result.outcome("tls"), result.total(), "{}", result.event["counts"]);
    assert_eq!(result.outcome("ok"), 1);
    assert!(result.reason("tls").starts_with("the TLS handshake failed: "), "{}", result.reason("tls"));
}

#[test]
fn a_large_body_goes_over_tls_both_ways() {
    let certificates = certificates("127.0.0.1");
    let echo = TlsServer::start(certificates.config(&[&TLS12, &TLS13], &[]), |mut peer, _| {
        while let Some(request) = peer.request()? {
            let body = String::from_utf8(request.body).unwrap();
            peer.say(&format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()))?;
        }
        Ok(())
    });
    let request = json!({"method": "POST", "path": "/", "body_base64": "QUFB".repeat(100_000),
        "expect": {"status": 200, "body_length": 300_000}});
    for version in ["1.2", "1.3"] {
        let job = with(job(echo.port), "/requests", json!([request]));
        let job = with(job, "/target/tls", json!({"ca_pem": certificates.ca_pem, "versions": [version]}));
        let job = with(with(job, "/warmup_ns", json!(0)), "/count", json!(20));
        shakes(&with(job, "/drain_ns", json!(20_000_000_000_u64))).1.are_all("ok");
    }
}
