//! Servers of many makers, if they are installed, in their usual configuration: every answer must be right.

mod server;

use crate::support::server::HELLO_SHA256;
use crate::support::{complete, job, run, with};
use serde_json::{Value, json};
use server::{Maker, java, nghttpd, nginx, node, openssl};

/// The protocol that is spoken to a server.
#[derive(Clone, Copy)]
struct Way {
    port: usize,
    http: &'static str,
    tls: bool,
}

const PLAIN: Way = Way { port: 0, http: "1.1", tls: false };

fn to(maker: &Maker, way: Way) -> Value {
    let job = with(job(maker.ports[way.port]), "/target/http", json!(way.http));
    let tls = if way.tls { json!({"ca_pem": maker.certificates.ca_pem}) } else { Value::Null };
    // Without a warm-up every user has a first request in the measurement, however busy the machine is.
    let job = with(with(job, "/warmup_ns", json!(0)), "/measure_ns", json!(150_000_000));
    with(with(job, "/target/tls", tls), "/timeout_ns", json!(20_000_000_000_u64))
}

/// A closed and an open load of `hello`, and a load of bodies both ways if the server accepts them.
fn all_is_right(maker: &Maker, way: Way, depth: u32, echo: Option<&str>) {
    let right = json!({"status": 200, "body_sha256": HELLO_SHA256, "body_length": 5});
    let hello = json!([{"method": "GET", "path": "/hello", "expect": right}]);
    let job = with(with(to(maker, way), "/requests", hello), "/drain_ns", json!(20_000_000_000_u64));
    let closed = json!({"closed": {"users": 4, "depth": depth}});
    complete(&with(job.clone(), "/load", closed)).are_all("ok");
    let open =
        json!({"rate_per_s": 400, "arrivals": "poisson", "connections": 4, "connections_at_start": 2, "depth": depth});
    let result = complete(&with(job.clone(), "/load", json!({"open": open})));
    result.are_all("ok");
    assert_eq!(result.count("reconnects"), 0);
    let few = json!({"closed": {"users": 2, "depth": depth, "requests_per_connection": 7}});
    complete(&with(job.clone(), "/load", few)).are_all("ok");
    if let Some(path) = echo {
        let large = json!({"method": "POST", "path": path, "headers": [["Content-Type", "text/plain"]],
            "body_base64": "aGVs".repeat(50_000), "expect": {"status": 200, "body_length": 150_000}});
        let small = json!({"method": "POST", "path": path, "headers": [["Content-Type", "text/plain"]],
            "body_text": "{{\"n\": {rand:10..99}}}", "expect": {"status": 200, "body_length": 9}});
        let job = with(with(job, "/requests", json!([large, small])), "/count", json!(40));
        complete(&with(job, "/measure_ns", json!(20_000_000_000_u64))).are_all("ok");
    }
}

#[test]
fn nginx_answers_in_all_its_ways() {
    let Some(nginx) = nginx() else { return };
    all_is_right(&nginx, PLAIN, 1, None);
    all_is_right(&nginx, PLAIN, 8, None);
    all_is_right(&nginx, Way { port: 1, http: "1.1", tls: true }, 4, None);
    all_is_right(&nginx, Way { port: 1, http: "2", tls: true }, 8, None);
}

/// Requests that nginx leaves unanswered when it closes a connection are sent again, however often: none fails.
#[test]
fn nginx_that_closes_its_connections_fails_no_request() {
    let Some(nginx) = nginx() else { return };
    let ways = [
        Way { port: 2, http: "1.1", tls: false },
        Way { port: 3, http: "1.1", tls: true },
        Way { port: 3, http: "2", tls: true },
    ];
    for way in ways {
        let right = json!({"status": 200, "body_sha256": HELLO_SHA256, "body_length": 5});
        let hello = json!([{"method": "GET", "path": "/hello", "expect": right}]);
        let job =
            with(with(to(&nginx, way), "/requests", hello), "/load", json!({"closed": {"users": 2, "depth": 16}}));
        let job = with(with(job, "/count", json!(500)), "/measure_ns", json!(20_000_000_000_u64));
        let result = complete(&job);
        result.are_all("ok");
        assert!(result.total() >= 500 && result.count("reconnects") > 0);
        assert!(result.count("resent") > 0, "{}", result.event["counts"]);
        assert_eq!(result.count("retried"), 0, "{}", result.event["counts"]);
    }
}

#[test]
fn nghttpd_answers_in_all_its_ways() {
    if let Some(plain) = nghttpd(false) {
        all_is_right(&plain, Way { port: 0, http: "2", tls: false }, 8, Some("/echo"));
    }
    if let Some(secure) = nghttpd(true) {
        all_is_right(&secure, Way { port: 0, http: "2", tls: true }, 8, Some("/echo"));
    }
}

#[test]
fn node_answers_in_all_its_ways() {
    let Some(node) = node() else { return };
    all_is_right(&node, PLAIN, 4, Some("/echo"));
    all_is_right(&node, Way { port: 1, http: "1.1", tls: true }, 4, Some("/echo"));
    all_is_right(&node, Way { port: 2, http: "2", tls: false }, 8, Some("/echo"));
    all_is_right(&node, Way { port: 3, http: "2", tls: true }, 8, Some("/echo"));
}

#[test]
fn the_server_of_the_jdk_answers() {
    let Some(java) = java() else { return };
    all_is_right(&java, PLAIN, 1, Some("/echo"));
    all_is_right(&java, PLAIN, 4, None);
}

/// The keys that `insecure` accepts although they cannot be checked, and the errors for the others (`docs/reference/tls.md`).
#[test]
fn insecure_takes_any_key_and_names_what_is_not_offered() {
    const RSA: &[&str] = &["rsa:2048"];
    const OFFERED: &str = "it accepts no combination of what was offered: TLS 1.2 and 1.3, key exchange by ECDHE";
    let cases: [(&[&str], &[&str], Option<&str>); 8] = [
        (&["rsa:1024"], &["-tls1_2", "-cipher", "DEFAULT@SECLEVEL=0"], None),
        (&["rsa:1024"], &["-tls1_3", "-cipher", "DEFAULT@SECLEVEL=0"], None),
        (&["ec", "-pkeyopt", "ec_paramgen_curve:secp521r1"], &["-tls1_3"], None),
        (&["ec", "-pkeyopt", "ec_paramgen_curve:secp521r1"], &["-tls1_2"], Some(OFFERED)),
        (RSA, &["-tls1_2", "-cipher", "ECDHE-RSA-AES128-SHA256"], Some(OFFERED)),
        (RSA, &["-tls1_2", "-cipher", "AES128-GCM-SHA256"], Some(OFFERED)),
        (RSA, &["-tls1_1", "-cipher", "DEFAULT@SECLEVEL=0"], Some("it accepts none of the versions")),
        (RSA, &["-tls1_2", "-Verify", "1"], Some("it wants a certificate of the client")),
    ];
    for (key, options, refusal) in cases {
        let Some(maker) = openssl(key, options) else { return };
        let job = with(to(&maker, Way { port: 0, http: "1.1", tls: true }), "/target/tls", json!({"insecure": true}));
        let output = run(&with(with(job, "/load/closed/users", json!(1)), "/drain_ns", json!(20_000_000_000_u64)));
        match refusal {
            None => output.result().are_all("ok"),
            Some(why) => assert!(output.error()["message"].as_str().unwrap().contains(why), "{:#}", output.error()),
        }
    }
}
