//! Errors in a job are reported by field, before anything is done.

use std::process::Command;

use crate::support::{Engine, job, with};
use serde_json::{Value, json};

/// The error message for this job text, which must be refused.
fn refused(text: &str) -> String {
    let output = Engine::start(text).finish();
    assert_eq!(output.code, Some(2), "{text}");
    assert_eq!(output.error()["kind"], "bad_job", "{text}");
    output.error()["message"].as_str().unwrap().to_owned()
}

fn names(place: &str, value: &Value, field: &str) {
    let message = refused(&with(job(1), place, value.clone()).to_string());
    assert!(message.starts_with(&format!("{field}:")), "{place} = {value}: {message}");
}

#[test]
fn each_field_is_checked_and_named() {
    let open = |open: Value| json!({"open": open});
    let cases = [
        ("/format", json!("redline.job/2"), "format"),
        ("/target/port", json!(0), "target.port"),
        ("/target/port", json!(65536), "target.port"),
        ("/target/host", json!(""), "target.host"),
        ("/target/host", json!("http://a"), "target.host"),
        ("/requests/0/method", json!("GE T"), "requests[0].method"),
        ("/requests/0/path", json!("no-slash"), "requests[0].path"),
        ("/requests/0/path", json!("/a b"), "requests[0].path"),
        ("/requests/0/headers", json!([["A", "b"], ["C", "d\r\nE: f"]]), "requests[0].headers[1]"),
        ("/requests/0/headers", json!([["Content-Length", "5"]]), "requests[0].headers[0]"),
        ("/requests/0/headers", json!([["A"]]), "requests[0].headers[0]"),
        ("/requests/0/body_base64", json!("%%%"), "requests[0].body_base64"),
        ("/requests/0/expect/status", json!(100), "requests[0].expect.status"),
        ("/requests/0/expect/status", json!("200"), "requests[0].expect.status"),
        ("/requests/0/expect/body_length", json!(-1), "requests[0].expect.body_length"),
        ("/requests/0/expect/body_sha256", json!("abc"), "requests[0].expect.body_sha256"),
        ("/requests/0/expect/body_sha256", json!("é".repeat(64)), "requests[0].expect.body_sha256"),
        ("/requests", json!([]), "requests"),
        ("/requests/0/weight", json!(-1), "requests[0].weight"),
        ("/requests/0/path", json!("/{rand:5..1}"), "requests[0].path"),
        ("/requests/0/headers", json!([["A", "{pick:none}"]]), "requests[0].headers[0]"),
        ("/requests/0/body_text", json!("{pick:none}"), "requests[0].body_text"),
        ("/requests/0/expect/json", json!([{"pointer": "a", "equals": 1}]), "requests[0].expect.json[0].pointer"),
        ("/requests/0/expect/json", json!([{"pointer": "/a"}]), "requests[0].expect.json[0]"),
        (
            "/requests/0/expect/json",
            json!([{"pointer": "", "equals": null, "stands": "absent"}]),
            "requests[0].expect.json[0]",
        ),
        ("/requests/0/expect/json", json!([{"pointer": "", "stands": "here"}]), "requests[0].expect.json[0].stands"),
        ("/requests/0/timestamp", json!({"unit": "weeks"}), "requests[0].timestamp.unit"),
        ("/target/http", json!("3"), "target.http"),
        ("/target/tls", json!({"ca_pem": "none"}), "target.tls.ca_pem"),
        ("/target/tls", json!({"versions": ["1.1"]}), "target.tls.versions[0]"),
        ("/target/tls", json!({"server_name": "a b"}), "target.tls.server_name"),
        ("/target/sources", json!(["localhost"]), "target.sources[0]"),
        ("/load/closed/users", json!(0), "load.closed.users"),
        ("/load/closed/depth", json!(0), "load.closed.depth"),
        ("/load/closed/requests_per_connection", json!(0), "load.closed.requests_per_connection"),
        ("/load/closed/pace_per_s", json!(0), "load.closed.pace_per_s"),
        ("/load/closed", json!({"users": 1, "pace_per_s": 1, "think": {"fixed_ns": 1}}), "load.closed.pace_per_s"),
        ("/load/closed/think", json!({"fixed_ns": u64::MAX}), "load.closed.think"),
        ("/load/closed/stages", json!([{"to": 0.5, "over_ns": 1}]), "load.closed.stages[0].to"),
        ("/load/closed/stages", json!([{"to": 1, "over_ns": u64::MAX}]), "load.closed.stages[0].over_ns"),
        ("/load", open(json!({"arrivals": "uniform", "connections": 1})), "load.open.rate_per_s"),
        (
            "/load",
            open(json!({"arrivals": {"replayed_ns": [5, 4]}, "connections": 1})),
            "load.open.arrivals.replayed_ns[1]",
        ),
        (
            "/load",
            open(json!({"arrivals": {"replayed": {"due_ns": [5], "requests": []}}, "connections": 1})),
            "load.open.arrivals.replayed.requests",
        ),
        (
            "/load",
            open(json!({"arrivals": {"replayed": {"due_ns": [5, 6], "requests": [0, 1]}}, "connections": 1})),
            "load.open.arrivals.replayed.requests[1]",
        ),
        (
            "/load",
            open(json!({"rate_per_s": 1, "arrivals": {"replayed_ns": []}, "connections": 1})),
            "load.open.rate_per_s",
        ),
        (
            "/load",
            open(json!({"rate_per_s": 1, "arrivals": "uniform", "connections": 1, "connections_at_start": 2})),
            "load.open.connections_at_start",
        ),
        ("/count", json!(0), "count"),
        ("/backend", json!("kqueue"), "backend"),
        ("/load", open(json!({"rate_per_s": 0, "arrivals": "uniform", "connections": 1})), "load.open.rate_per_s"),
        ("/load", open(json!({"rate_per_s": -5, "arrivals": "uniform", "connections": 1})), "load.open.rate_per_s"),
        ("/load", open(json!({"rate_per_s": 1e12, "arrivals": "uniform", "connections": 1})), "load.open.rate_per_s"),
        ("/load", open(json!({"rate_per_s": 5, "arrivals": "bursty", "connections": 1})), "load.open.arrivals"),
        ("/load", open(json!({"rate_per_s": 5, "arrivals": "uniform", "connections": 0})), "load.open.connections"),
        ("/warmup_ns", json!(-1), "warmup_ns"),
        ("/warmup_ns", json!(1.5), "warmup_ns"),
        ("/measure_ns", json!(0), "measure_ns"),
        ("/measure_ns", json!(u64::MAX), "measure_ns"),
        ("/drain_ns", json!(null), "drain_ns"),
        ("/timeout_ns", json!(0), "timeout_ns"),
        ("/interval_ns", json!(9_999_999), "interval_ns"),
        ("/deadline_ns", json!(0), "deadline_ns"),
        ("/seed", json!(-1), "seed"),
        ("/workers", json!(0), "workers"),
        ("/connects_at_once", json!(0), "connects_at_once"),
        ("/workers", json!(3), "workers"),
        ("/cpus", json!([100_000]), "cpus[0]"),
    ];
    for (place, value, field) in cases {
        names(place, &value, field);
    }
}

#[test]
fn unknown_and_missing_keys_are_named() {
    for (place, key) in [("/surprise", "surprise"), ("/target/gateway", "gateway"), ("/requests/0/host", "host")] {
        let message = refused(&with(job(1), place, json!(1)).to_string());
        assert!(message.contains(&format!("unknown field `{key}`")), "{message}");
    }
    let required = [
        "format",
        "target",
        "requests",
        "load",
        "warmup_ns",
        "measure_ns",
        "drain_ns",
        "timeout_ns",
        "interval_ns",
        "deadline_ns",
        "seed",
        "workers",
    ];
    for key in required {
        let mut job = job(1);
        job.as_object_mut().unwrap().remove(key);
        assert!(refused(&job.to_string()).contains(&format!("missing field `{key}`")), "{key}");
    }
    assert!(refused(&with(job(1), "/load", json!({"ramp": {}})).to_string()).contains("ramp"));
}

#[test]
fn what_is_not_one_json_object_is_refused() {
    for text in ["", "{", "null", "[]", "\u{0}", "{\"format\": \"redline.job/1\"", &format!("{} {{}}", job(1))] {
        refused(text);
    }
}

#[test]
fn the_version_and_the_help_are_told_and_other_arguments_are_not_taken() {
    let engine = |argument: &str| Command::new(env!("CARGO_BIN_EXE_redline-engine")).arg(argument).output().unwrap();
    let version = engine("--version");
    assert!(version.status.success());
    assert_eq!(String::from_utf8(version.stdout).unwrap(), format!("redline-engine {}\n", env!("CARGO_PKG_VERSION")));
    assert!(String::from_utf8(engine("--help").stdout).unwrap().contains("standard input"));
    let other = engine("--rate");
    assert_eq!((other.status.code(), other.stdout.len()), (Some(2), 0));
    assert!(String::from_utf8(other.stderr).unwrap().contains("hint:"));
}
