//! Trace contexts: each request begins a trace of its own, a share of them sampled.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::requests::{counted, recorder};
use crate::support::server::Request;
use crate::support::{complete, run, with};

/// The trace ids, and whether they are sampled, of requests whose contexts are valid.
fn contexts(requests: &[Request]) -> Vec<(String, bool)> {
    let is_id = |id: &str, digits| {
        let is_hex = id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        id.len() == digits && is_hex && id.bytes().any(|byte| byte != b'0')
    };
    let read = |request: &Request| {
        let context = request.header("traceparent").unwrap();
        let parts: Vec<&str> = context.split('-').collect();
        assert!(parts[0] == "00" && is_id(parts[1], 32) && is_id(parts[2], 16) && parts.len() == 4, "{context}");
        assert!(["00", "01"].contains(&parts[3]), "{context}");
        (parts[1].to_owned(), parts[3] == "01")
    };
    requests.iter().map(read).collect()
}

/// The requests that a server receives from a job of 400 requests with this header.
fn sent(header: &str, change: impl FnOnce(Value) -> Value) -> Vec<Request> {
    let (server, record) = recorder();
    let request = json!({
        "method": "PUT", "path": "/{seq}/{traceparent}", "headers": [["traceparent", header]],
        "body_text": "{{\"context\": \"{traceparent}\"}}", "expect": {"status": 200},
    });
    complete(&change(counted(server.port, json!([request]), 400))).are_all("ok");
    std::mem::take(&mut *record.lock().unwrap())
}

#[test]
fn each_request_begins_a_trace_of_its_own_and_a_share_is_sampled() {
    let requests =
        sent("{traceparent:25%}", |job| with(with(job, "/load/closed/users", json!(4)), "/workers", json!(2)));
    let contexts = contexts(&requests);
    let ids: HashSet<&String> = contexts.iter().map(|(id, _)| id).collect();
    assert_eq!((ids.len(), contexts.len()), (400, 400));
    let sampled = contexts.iter().filter(|(_, is_sampled)| *is_sampled).count();
    // 100 on average; the seed is fixed.
    assert!((70..130).contains(&sampled), "{sampled}");
    for (request, (id, _)) in requests.iter().zip(&contexts) {
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        let context = body["context"].as_str().unwrap();
        assert!(context.contains(id) && request.path.ends_with(context) && context.ends_with("-01"), "{context}");
    }
}

#[test]
fn a_load_that_is_repeated_samples_the_same_and_has_ids_of_its_own() {
    let of_seed = |seed: u64| contexts(&sent("{traceparent:50%}", |job| with(job, "/traces", json!({"seed": seed}))));
    let [first, again, other] = [1, 1, 2].map(of_seed);
    assert_eq!(first, again);
    assert!(first.iter().map(|(_, is_sampled)| is_sampled).eq(other.iter().map(|(_, is_sampled)| is_sampled)));
    let ids: HashSet<&String> = first.iter().chain(&other).map(|(id, _)| id).collect();
    assert_eq!(ids.len(), 800);
}

#[test]
fn the_targets_of_a_duet_get_ids_of_their_own() {
    let ((first, one), (second, other)) = (recorder(), recorder());
    let request = json!({
        "method": "GET", "path": "/{seq}", "headers": [["traceparent", "{traceparent}"]], "expect": {"status": 200},
    });
    let job = with(crate::support::job(first.port), "/requests", json!([request]));
    let targets = json!([{"host": "127.0.0.1", "port": second.port}]);
    let duet = json!({"targets": targets, "slice_ns": 10_000_000, "guard_ns": 2_000_000});
    let output = run(&with(with(job, "/duet", duet), "/load/closed/think", json!({"fixed_ns": 500_000})));
    assert_eq!(output.code, Some(0), "{}", output.log);
    let mut ids = HashSet::new();
    for requests in [one, other] {
        for (id, is_sampled) in contexts(&requests.lock().unwrap()) {
            assert!(is_sampled && ids.insert(id.clone()), "{id} twice");
        }
    }
    assert!(ids.len() > 20, "{}", ids.len());
}
