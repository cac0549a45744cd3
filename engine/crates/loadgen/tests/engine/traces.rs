//! Trace contexts, each of a trace of its own, a share of them sampled; and the single requests that are kept.

use std::collections::HashSet;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::duets::run_undisturbed;
use crate::requests::{counted, recorder};
use crate::support::server::{Request, Server};
use crate::support::{complete, run, with};
use crate::websockets::Oracle;

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

/// A user who listens sends one request: the handshake.
#[test]
fn the_trace_of_a_handshake_is_kept() {
    let oracle = Oracle::start(&["null", "--pushes", "3", "--push-every", "1ms"]);
    let request = json!({
        "method": "GET", "path": "/ticks", "headers": [["traceparent", "{traceparent}"]], "expect": {"status": 200},
        "websocket": {"answer": "listen"}, "stream": {"events": "messages", "until": 3},
    });
    let job = with(crate::support::job(oracle.port), "/requests", json!([request]));
    let result = complete(&with(job, "/traces", json!({"at_most": 5})));
    let ids = |kept: &Value| kept.as_array().unwrap().iter().filter(|one| one["traceparent"].is_string()).count();
    let kept = &result.event["kept"];
    assert!(ids(&kept["slowest"]) > 0, "{kept:#}");
    assert_eq!(ids(&kept["sampled"]), 5, "{kept:#}");
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

#[test]
fn the_slowest_requests_of_each_target_of_a_duet_are_kept() {
    let pausing = || {
        Server::start(|mut peer, _| {
            while let Some(request) = peer.whole_request()? {
                let number: u64 = request.path[1..].parse().unwrap();
                thread::sleep(Duration::from_millis(if number.is_multiple_of(20) { 15 } else { 0 }));
                peer.say("HTTP/1.1 200 S\r\nContent-Length: 0\r\n\r\n")?;
            }
            Ok(())
        })
    };
    let (first, second) = (pausing(), pausing());
    let request = json!({
        "method": "GET", "path": "/{seq}", "headers": [["traceparent", "{traceparent:50%}"]],
        "expect": {"status": 200},
    });
    let job = with(crate::support::job(first.port), "/requests", json!([request]));
    let targets = json!([{"host": "127.0.0.1", "port": second.port}]);
    let duet = json!({"targets": targets, "slice_ns": 10_000_000, "guard_ns": 2_000_000});
    let job = with(with(job, "/duet", duet), "/traces", json!({"at_most": 20}));
    let output = run_undisturbed(&with(job, "/load/closed/think", json!({"fixed_ns": 500_000})));
    let slices: Vec<&Value> =
        output.of_kind("block").filter(|block| block["phase"] == "measure").flat_map(slices_of).collect();
    let mut ids = HashSet::new();
    for (number, target) in output.events.last().unwrap()["targets"].as_array().unwrap().iter().enumerate() {
        let of = |list: &str| target["kept"][list].as_array().unwrap().clone();
        let (slowest, sampled) = (of("slowest"), of("sampled"));
        assert_eq!((slowest.len(), sampled.len()), (10, 20));
        let ns = |kept: &Value, key: &str| kept[key].as_u64().unwrap();
        let took: Vec<u64> = slowest.iter().map(|kept| ns(kept, "end_ns") - ns(kept, "due_ns")).collect();
        assert!(took[0] >= 15_000_000 && took.is_sorted_by(|one, next| one >= next), "{took:?}");
        for kept in slowest.iter().chain(&sampled) {
            let is_in = |slice: &Value| {
                ns(slice, "start_ns") + 2_000_000 <= ns(kept, "due_ns")
                    && ns(kept, "end_ns") <= ns(slice, "end_ns")
                    && slice["target"] == number
            };
            assert!(slices.iter().any(|slice| is_in(slice)), "{kept}");
        }
        ids.extend(sampled.iter().map(|kept| kept["traceparent"].as_str().unwrap().to_owned()));
    }
    assert!(ids.len() == 40 && ids.iter().all(|context| context.ends_with("-01")), "{ids:?}");
}

fn slices_of(block: &Value) -> impl Iterator<Item = &Value> {
    block["slices"].as_array().unwrap().iter()
}

#[test]
fn the_slowest_requests_are_kept_with_what_became_of_them() {
    // The number of a request says what happens to it; others are answered at once.
    let server = Server::start(|mut peer, _| {
        while let Some(request) = peer.whole_request()? {
            let status = match request.path.as_str() {
                "/30" => 503,
                _ => 200,
            };
            match request.path.as_str() {
                "/10" => thread::sleep(Duration::from_millis(200)),
                "/20" => thread::sleep(Duration::from_millis(300)),
                "/30" => thread::sleep(Duration::from_millis(400)),
                "/39" => thread::sleep(Duration::from_secs(3)),
                _ => {}
            }
            let body = request.header("traceparent").unwrap();
            peer.say(&format!("HTTP/1.1 {status} S\r\nContent-Length: {}\r\n\r\n{body}", body.len()))?;
        }
        Ok(())
    });
    let request = json!({
        "method": "GET", "path": "/{seq}", "headers": [["traceparent", "{traceparent:0%}"]],
        "expect": {"status": 200, "body_length": 55},
    });
    let job = with(counted(server.port, json!([request]), 40), "/timeout_ns", json!(1_000_000_000));
    let result = complete(&job);
    let slowest = result.slowest();
    let of = |kept: &Value| (kept["outcome"].clone(), kept["status"].clone(), kept["first_ns"].is_null());
    let expected = [
        (json!("timeout"), Value::Null, true),
        (json!("unexpected_status"), json!(503), false),
        (json!("ok"), json!(200), false),
        (json!("ok"), json!(200), false),
    ];
    assert_eq!(slowest[..4].iter().map(of).collect::<Vec<_>>(), expected);
    for (kept, ms) in slowest.iter().zip([1000, 400, 300, 200]) {
        let times: Vec<u64> = ["due_ns", "written_ns", "end_ns"].map(|key| kept[key].as_u64().unwrap()).into();
        assert!(times.is_sorted() && times[2] - times[1] >= ms * 1_000_000, "{kept}");
        assert_eq!(kept.get("request"), None, "there is one alone");
        assert!(kept["traceparent"].as_str().unwrap().ends_with("-00"), "{kept}");
    }
}

#[test]
fn the_kept_requests_are_those_that_the_server_got() {
    let (server, record) = recorder();
    let request = |path: &str| {
        let headers = json!([["traceparent", "{traceparent:50%}"]]);
        json!({"method": "GET", "path": path, "headers": headers, "expect": {"status": 200}})
    };
    let job = counted(server.port, json!([request("/a"), request("/b")]), 400);
    let job = with(with(job, "/traces", json!({"at_most": 20})), "/load/closed/users", json!(4));
    let job = with(job, "/workers", json!(2));
    let result = complete(&job);
    let requests = record.lock().unwrap();
    let path_of = |kept: &Value| {
        let context = kept["traceparent"].as_str();
        let request = requests.iter().find(|request| request.header("traceparent") == context).unwrap();
        assert_eq!(request.path, ["/a", "/b"][kept["request"].as_u64().unwrap() as usize]);
        context.unwrap().to_owned()
    };
    result.slowest().iter().for_each(|kept| drop(path_of(kept)));
    let sampled: Vec<String> = result.event["kept"]["sampled"].as_array().unwrap().iter().map(path_of).collect();
    let mut all: Vec<_> = requests.iter().map(|request| request.header("traceparent").unwrap()).collect();
    all.retain(|context| context.ends_with("-01"));
    all.sort_unstable();
    assert_eq!(
        (requests.len(), &sampled[..]),
        (400, &all[..20].iter().map(|&id| id.to_owned()).collect::<Vec<_>>()[..])
    );
    drop(requests);
    let warmed = complete(&with(job, "/warmup_ns", json!(50_000_000)));
    let kept = warmed.slowest().iter().chain(warmed.event["kept"]["sampled"].as_array().unwrap());
    assert!(kept.clone().count() == 30 && kept.clone().all(|kept| kept["due_ns"].as_u64() >= Some(50_000_000)));
}
