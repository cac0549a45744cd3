//! The requests: several by weight, placeholders, bodies large and small, and JSON answers.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::server::{HELLO, Request, Server};
use crate::support::{complete, histogram, job, open_job, run, with};
use serde_json::{Value, json};

pub type Record = Arc<Mutex<Vec<Request>>>;

/// A server that records its requests, and answers with the length of the body.
pub fn recorder() -> (Server, Record) {
    let record = Record::default();
    let kept = Arc::clone(&record);
    let server = Server::start(move |mut peer, _| {
        while let Some(request) = peer.whole_request()? {
            let output = request.body.len().to_string();
            kept.lock().unwrap().push(request);
            peer.say(&format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{output}", output.len()))?;
        }
        Ok(())
    });
    (server, record)
}

/// This many requests of one user, without a warm-up.
pub fn counted(port: u16, requests: Value, count: u64) -> Value {
    let job = with(with(job(port), "/requests", requests), "/load/closed/users", json!(1));
    let job = with(with(job, "/warmup_ns", json!(0)), "/count", json!(count));
    with(job, "/measure_ns", json!(20_000_000_000_u64))
}

/// The requests that a server received from such a job.
fn asked(requests: &Value, count: u64, seed: u64) -> Vec<Request> {
    let (server, record) = recorder();
    complete(&with(counted(server.port, requests.clone(), count), "/seed", json!(seed))).are_all("ok");
    let asked = std::mem::take(&mut *record.lock().unwrap());
    assert_eq!(asked.len() as u64, count);
    // The port differs between runs.
    let without_host = |request: Request| {
        let headers = request.headers.into_iter().filter(|(name, _)| !name.eq_ignore_ascii_case("host"));
        Request { headers: headers.collect(), ..request }
    };
    asked.into_iter().map(without_host).collect()
}

fn get(path: &str, weight: f64) -> Value {
    json!({"weight": weight, "method": "GET", "path": path, "expect": {"status": 200}})
}

#[test]
fn requests_come_as_often_as_they_weigh() {
    let requests = json!([get("/six", 6.0), get("/three", 3.0), get("/one", 1.0), get("/never", 0.0)]);
    let asked = asked(&requests, 1000, 11);
    let of = |path: &str| asked.iter().filter(|request| request.path == path).count() as f64;
    let chi_square: f64 = [("/six", 600.0), ("/three", 300.0), ("/one", 100.0)]
        .into_iter()
        .map(|(path, expected)| (of(path) - expected).powi(2) / expected)
        .sum();
    // With 2 degrees of freedom, one seed of 10,000 exceeds 18.4.
    assert!(chi_square < 18.4, "{chi_square}");
    assert_eq!(of("/never") as u32, 0);
}

/// A server that is slow at `/slow`, answers 500 at `/wrong`, and the length of the path elsewhere.
fn server_of_three() -> Server {
    Server::start(|mut peer, _| {
        while let Some(request) = peer.whole_request()? {
            let status = if request.path == "/wrong" { "500 Oops" } else { "200 OK" };
            if request.path == "/slow" {
                thread::sleep(Duration::from_millis(5));
            }
            let body = &request.path;
            peer.say(&format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len()))?;
        }
        Ok(())
    })
}

#[test]
fn each_request_of_a_mix_is_counted_by_itself() {
    let server = server_of_three();
    let requests = json!([get("/slow", 1.0), get("/wrong", 1.0), get("/quick/one", 2.0), get("/never", 0.0)]);
    for backend in ["epoll", "io_uring"] {
        let job = with(counted(server.port, requests.clone(), 200), "/backend", json!(backend));
        let job = with(with(job, "/load/closed/users", json!(3)), "/workers", json!(2));
        // Some requests are of the warm-up, and none of them is counted.
        let result = complete(&with(job, "/warmup_ns", json!(50_000_000)));
        let counted = result.event["requests"].as_array().unwrap();
        let of = |at: usize, key: &str| counted[at]["outcomes"][key].as_u64().unwrap();
        assert_eq!((counted.len(), of(0, "ok") + of(1, "unexpected_status") + of(2, "ok")), (4, 200));
        assert!((20..=80).contains(&of(0, "ok")) && of(2, "ok") > of(0, "ok"), "{counted:#?}");
        assert_eq!(counted[1]["status"], json!({"5xx": of(1, "unexpected_status")}));
        assert_eq!(counted[1]["completed"], 0);
        assert_eq!(counted[0]["body_bytes"].as_u64().unwrap(), 5 * of(0, "ok"));
        assert_eq!(counted[2]["body_bytes"].as_u64().unwrap(), 10 * of(2, "ok"));
        let median = |at: usize| histogram(&counted[at], "response").quantile_ns(0.5);
        assert!(median(0) >= 5_000_000 && median(2) < 4_000_000, "{} {}", median(0), median(2));
        assert_eq!(histogram(&counted[3], "response").count(), 0);
    }
    let single = complete(&counted(server.port, json!([get("/one", 1.0)]), 10));
    assert_eq!(single.event.get("requests"), None);
}

/// Requests that were never written are counted too, or no request's times would show that they waited.
#[test]
fn requests_that_were_never_written_count_by_weight() {
    let silent = Server::start(|mut peer, _| {
        peer.whole_request()?;
        thread::sleep(Duration::from_secs(2));
        Ok(())
    });
    let job = with(open_job(silent.port, 1000, 2), "/requests", json!([get("/a", 1.0), get("/b", 3.0)]));
    let job = with(with(job, "/warmup_ns", json!(0)), "/drain_ns", json!(10_000_000));
    let result = complete(&job);
    assert!(result.outcome("unsent") > 100, "{:#}", result.event["counts"]);
    let unsent = |at: usize| result.event["requests"][at]["outcomes"]["unsent"].as_u64().unwrap();
    assert!(unsent(0) > 0 && unsent(1) > 2 * unsent(0), "{} {}", unsent(0), unsent(1));
}

#[test]
fn the_same_seed_asks_the_same_and_another_does_not() {
    let varied = json!({
        "method": "POST", "path": "/{seq}/{rand:1..1000000}", "headers": [["X-Pick", "{rand:-5..5}"]],
        "body_text": "{rand:0..99}", "expect": {"status": 200},
    });
    let requests = json!([get("/a", 1.0), get("/b", 1.0), varied]);
    let first = asked(&requests, 200, 5);
    assert_eq!(first, asked(&requests, 200, 5));
    assert_ne!(first, asked(&requests, 200, 6));
}

#[test]
fn no_two_requests_of_all_workers_have_the_same_number() {
    let (server, record) = recorder();
    let request = json!({
        "method": "PUT", "path": "/items/{seq}?again={seq}", "headers": [["X-Seq", "n={seq};"]],
        "body_text": "{{\"n\": {seq}, \"of\": {\"a\": [1]}}}}", "expect": {"status": 200},
    });
    let job = with(open_job(server.port, 400, 6), "/requests", json!([request]));
    complete(&with(job, "/workers", json!(2))).are_all("ok");
    let record = record.lock().unwrap();
    let mut numbers = HashSet::new();
    for request in record.iter() {
        let number: u64 = request.path["/items/".len()..].split('?').next().unwrap().parse().unwrap();
        assert_eq!(request.path, format!("/items/{number}?again={number}"));
        assert_eq!(request.header("X-Seq"), Some(format!("n={number};").as_str()));
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        assert_eq!(body, json!({"n": number, "of": {"a": [1]}}));
        assert!(numbers.insert(number), "{number} twice");
    }
    // 400 a second for 350 ms, half of them by each worker: 0 to 139.
    assert_eq!(numbers, (0..140).collect());
}

#[test]
fn numbers_and_picks_are_drawn_from_all_that_there_are() {
    let request = json!({
        "method": "POST", "path": "/{rand:-2..2}", "headers": [["X-Id", "{pick:ids}"]],
        "body_text": "{pick:ids}|{rand:7..7}", "expect": {"status": 200},
    });
    let (server, record) = recorder();
    let job = with(counted(server.port, json!([request]), 300), "/picks", json!({"ids": ["x", "longer", "ümlaut"]}));
    complete(&job).are_all("ok");
    let record = record.lock().unwrap();
    let paths: HashSet<_> = record.iter().map(|request| request.path.as_str()).collect();
    assert_eq!(paths, HashSet::from(["/-2", "/-1", "/0", "/1", "/2"]));
    let headers: HashSet<_> = record.iter().map(|request| request.header("X-Id").unwrap()).collect();
    assert_eq!(headers, HashSet::from(["x", "longer", "ümlaut"]));
    // The next request was read right, so lengths are in bytes.
    let bodies: HashSet<_> = record.iter().map(|request| std::str::from_utf8(&request.body).unwrap()).collect();
    assert_eq!(bodies, HashSet::from(["x|7", "longer|7", "ümlaut|7"]));
}

#[test]
fn expected_json_is_compared_by_value() {
    let answer = r#"{"total": 3.0, "a/b": [{"c": null}], "s": "x", "big": 12345678901234567890}"#;
    let said = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{answer}", answer.len());
    let server = Server::answering(Box::leak(said.into_boxed_str()));
    let outcome = |fields: Value, outcome: &str| {
        let job = with(job(server.port), "/requests/0/expect/json", fields);
        complete(&with(with(job, "/count", json!(20)), "/warmup_ns", json!(0))).are_all(outcome);
    };
    let field = |pointer: &str, value: Value| json!([{"pointer": pointer, "equals": value}]);
    outcome(field("/total", json!(3)), "ok");
    outcome(field("/a~1b/0/c", Value::Null), "ok");
    outcome(json!([{"pointer": "/s", "equals": "x"}, {"pointer": "/a~1b", "equals": [{"c": null}]}]), "ok");
    outcome(field("/big", json!(12_345_678_901_234_567_890_u64)), "ok");
    outcome(field("/total", json!(4)), "unexpected_body");
    outcome(field("/total", json!("3")), "unexpected_body");
    outcome(field("/missing", Value::Null), "unexpected_body");
    outcome(json!([{"pointer": "/total", "equals": 3}, {"pointer": "/s", "equals": "y"}]), "unexpected_body");
}

#[test]
fn errors_at_the_top_are_unexpected_where_none_may_be() {
    let outcome = |answer: &str, expect: Value, outcome: &str| {
        let said = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{answer}", answer.len());
        let server = Server::answering(Box::leak(said.into_boxed_str()));
        let job = with(job(server.port), "/requests/0/expect", expect);
        complete(&with(with(job, "/count", json!(20)), "/warmup_ns", json!(0))).are_all(outcome);
    };
    let none = json!({"status": 200, "no_errors": true});
    let absent = json!({"status": 200, "json": [{"pointer": "/errors", "stands": "absent"}]});
    for expect in [none.clone(), absent.clone()] {
        outcome(r#"{"errors": [{"message": "no"}], "data": null}"#, expect.clone(), "unexpected_body");
        outcome(r#"{"data": {"errors": [1]}}"#, expect, "ok");
    }
    outcome("pong", none.clone(), "ok");
    outcome("pong", absent, "unexpected_body");
    outcome(&format!("{{\"data\": \"{}\"}}", "a".repeat(2 << 20)), none, "ok");
}

#[test]
fn what_is_not_json_is_unexpected_and_what_is_too_long_is_malformed() {
    let wanted = json!([{"pointer": "/a", "equals": 1}]);
    let server = Server::answering(HELLO);
    complete(&with(job(server.port), "/requests/0/expect/json", wanted.clone())).are_all("unexpected_body");
    let server = Server::start(|mut peer, _| {
        while peer.request()?.is_some() {
            peer.say("HTTP/1.1 200 OK\r\nContent-Length: 1048577\r\n\r\n")?;
            peer.say(&" ".repeat(1_048_577))?;
        }
        Ok(())
    });
    let job = with(job(server.port), "/requests/0/expect/json", wanted);
    complete(&with(with(job, "/count", json!(5)), "/warmup_ns", json!(0))).are_all("malformed");
}

#[test]
fn head_and_get_share_a_pipeline() {
    let server = Server::start(|mut peer, _| {
        while let Some(request) = peer.whole_request()? {
            let body = if request.method == "HEAD" { "" } else { "hello" };
            peer.say(&format!("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{body}"))?;
        }
        Ok(())
    });
    let head = json!({"method": "HEAD", "path": "/", "expect": {"status": 200, "body_length": 0}});
    let get = json!({"method": "GET", "path": "/", "expect": {"status": 200, "body_length": 5}});
    let job = with(job(server.port), "/requests", json!([head, get]));
    let result = complete(&with(job, "/load/closed/depth", json!(8)));
    result.are_all("ok");
    assert_eq!(result.count("reconnects"), 0);
}

#[test]
fn a_small_request_follows_a_large_one() {
    let (server, record) = recorder();
    let large = json!({"method": "POST", "path": "/large", "body_base64": "QUFB".repeat(5_000_000 / 3),
        "expect": {"status": 200, "body_length": 7}});
    let small = json!({"method": "POST", "path": "/small", "headers": [["X-N", "{seq}"]], "body_text": "<{seq}>",
        "expect": {"status": 200, "body_length": 1}});
    let job = with(counted(server.port, json!([large, small]), 8), "/load/closed/depth", json!(4));
    complete(&with(job, "/timeout_ns", json!(20_000_000_000_u64))).are_all("ok");
    let record = record.lock().unwrap();
    let large: Vec<_> = record.iter().filter(|request| request.path == "/large").collect();
    assert!(!large.is_empty() && large.len() < record.len(), "the seed draws both");
    assert!(
        large.iter().all(|request| request.body.len() == 4_999_998 && request.body.iter().all(|byte| *byte == b'A'))
    );
    let small = record.iter().filter(|request| request.path == "/small");
    for request in small {
        assert_eq!(request.body, format!("<{}>", request.header("X-N").unwrap()).into_bytes());
    }
}

#[test]
fn requests_are_framed_as_the_contract_says() {
    let requests = json!([
        {"method": "POST", "path": "/post", "expect": {"status": 200}},
        {"method": "GET", "path": "/get", "headers": [["Host", "other.test"]], "expect": {"status": 200}},
    ]);
    let (server, record) = recorder();
    complete(&counted(server.port, requests, 20)).are_all("ok");
    let record = record.lock().unwrap();
    let of = |path: &str| record.iter().find(|request| request.path == path).unwrap();
    assert_eq!(of("/post").header("Content-Length"), Some("0"));
    assert_eq!(of("/post").header("Host"), Some(format!("127.0.0.1:{}", server.port).as_str()));
    assert_eq!((of("/get").header("Content-Length"), of("/get").header("Host")), (None, Some("other.test")));
    let hosts = of("/get").headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("host"));
    assert_eq!(hosts.count(), 1);
}

#[test]
fn a_placeholder_that_nothing_fills_is_a_bad_job() {
    for (place, value) in [("/requests/0/path", "/{pick:none}"), ("/requests/0/path", "/{rand:5..1}")] {
        let output = run(&with(job(1), place, json!(value)));
        assert_eq!(output.code, Some(2), "{value}");
        assert!(output.error()["message"].as_str().unwrap().contains("requests[0].path"), "{}", output.error());
    }
}

#[test]
fn a_timestamp_tells_both_ways() {
    let server = Server::start(|mut peer, _| {
        while peer.request()?.is_some() {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos();
            let body = format!("{{\"at\": {now}}}");
            peer.say(&format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()))?;
        }
        Ok(())
    });
    let job = with(job(server.port), "/requests/0/timestamp", json!({"pointer": "/at", "unit": "ns"}));
    let output = run(&job);
    let result = output.result();
    result.are_all("ok");
    for way in ["to_server", "from_server"] {
        let mut count = 0;
        for interval in output.of_kind("interval").filter(|interval| interval["phase"] != "warmup") {
            for sign in ["negative", "positive"] {
                if let Some(text) = interval["one_way"][way][sign].as_str() {
                    count += redline_traffic::Histogram::decode(text).unwrap().count();
                }
            }
        }
        assert_eq!(count, result.outcome("ok"), "{way}");
    }
    let missing = with(job, "/requests/0/timestamp/pointer", json!("/none"));
    complete(&missing).are_all("unexpected_body");
}

/// The paths of the requests that a server recorded, in order.
fn paths(record: &Record) -> Vec<String> {
    record.lock().unwrap().drain(..).map(|request| request.path).collect()
}

/// A replay of these requests, 10 ms apart.
fn replay(order: &[usize], gap_ms: u64, connections: u32) -> Value {
    let offsets: Vec<u64> = (0..order.len() as u64).map(|i| i * gap_ms * 1_000_000).collect();
    json!({"open": {"arrivals": {"replayed": {"due_ns": offsets, "requests": order}}, "connections": connections}})
}

/// When each request came on each connection, and its path.
type Arrivals = HashMap<usize, Vec<(Instant, String)>>;

#[test]
fn a_replay_sends_the_recorded_request_no_earlier_than_its_time() {
    let order = [2, 0, 1, 1, 2, 0, 0, 2, 1, 2];
    let gap = Duration::from_millis(20);
    for workers in [1, 2] {
        let arrivals = Arc::<Mutex<Arrivals>>::default();
        let kept = Arc::clone(&arrivals);
        let server = Server::start(move |mut peer, connection| {
            while let Some(request) = peer.whole_request()? {
                kept.lock().unwrap().entry(connection).or_default().push((Instant::now(), request.path));
                peer.say("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")?;
            }
            Ok(())
        });
        let job = with(job(server.port), "/requests", json!([get("/0", 1.0), get("/1", 1.0), get("/2", 0.0)]));
        let job = with(with(job, "/load", replay(&order, 20, workers)), "/workers", json!(workers));
        let job = with(job, "/measure_ns", json!(400_000_000));
        let before = Instant::now();
        complete(&job).are_all("ok");
        // A worker has a connection and each of its turns. What two workers send at about the same time may arrive in
        // either order, and late by as long as a busy machine lets a worker wait, but not early.
        let mut lists: Vec<_> = arrivals.lock().unwrap().drain().map(|(_, list)| list).collect();
        lists.retain(|list| !list.is_empty());
        let mut expected: Vec<Vec<usize>> =
            (0..workers as usize).map(|worker| (worker..order.len()).step_by(workers as usize).collect()).collect();
        assert_eq!(lists.len(), expected.len());
        for list in lists {
            let paths: Vec<_> = list.iter().map(|(_, path)| path.clone()).collect();
            let path = |turn: &usize| format!("/{}", order[*turn]);
            let place = expected.iter().position(|turns| turns.iter().map(path).eq(paths.iter().cloned()));
            let turns = expected.remove(place.unwrap_or_else(|| panic!("{workers} workers: {paths:?}")));
            for ((at, path), turn) in list.iter().zip(turns) {
                assert!(at.duration_since(before) >= gap * turn as u32, "{path} came before its time, turn {turn}");
            }
        }
    }
}

#[test]
fn the_targets_of_a_duet_get_the_same_recorded_requests() {
    let ((a, of_a), (b, of_b)) = (recorder(), recorder());
    let order: Vec<usize> = (0..40).map(|i| i % 4).collect();
    let job = with(job(a.port), "/requests", json!((0..4).map(|i| get(&format!("/{i}"), 1.0)).collect::<Vec<_>>()));
    let targets = json!([{"host": "127.0.0.1", "port": b.port}]);
    // The whole windows of 50 ms are seven, after which they begin again.
    let duet = json!({"targets": targets, "slice_ns": 50_000_000, "guard_ns": 2_000_000});
    let job = with(with(job, "/load", replay(&order, 10, 1)), "/duet", duet);
    let job = with(with(job, "/measure_ns", json!(1_000_000_000)), "/warmup_ns", json!(0));
    let output = run(&job);
    assert_eq!(output.code, Some(0), "{:#?}\n{}", output.events.last(), output.log);
    let sent = paths(&of_a);
    assert_eq!(sent, paths(&of_b));
    let whole = order[..35].iter().map(|request| format!("/{request}"));
    let expected: Vec<_> = whole.cycle().take(sent.len()).collect();
    assert!(sent.len() >= 50 && sent == expected, "{sent:?}");
}
