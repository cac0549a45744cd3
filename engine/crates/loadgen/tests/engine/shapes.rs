//! The shapes of load in time: think time, pace, stages, replays, pools that grow, connections that are replaced, counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use crate::support::server::{HELLO, Server};
use crate::support::{complete, job, run, with};
use serde_json::{Value, json};

/// A server that answers how many connections it has now, and the most that it had at a time.
fn counting() -> (Server, Arc<AtomicUsize>, Arc<AtomicUsize>) {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (held, peak) = (Arc::clone(&now), Arc::clone(&most));
    let server = Server::start(move |mut peer, _| {
        peak.fetch_max(held.fetch_add(1, SeqCst) + 1, SeqCst);
        while let Ok(Some(_)) = peer.request() {
            if peer.say(HELLO).is_err() {
                break;
            }
        }
        held.fetch_sub(1, SeqCst);
        Ok(())
    });
    (server, now, most)
}

fn closed(port: u16, closed: &Value) -> Value {
    with(with(job(port), "/load", json!({"closed": closed})), "/warmup_ns", json!(0))
}

fn open(port: u16, open: &Value) -> Value {
    with(with(job(port), "/load", json!({"open": open})), "/warmup_ns", json!(0))
}

#[test]
fn a_fixed_thought_bounds_what_a_user_asks() {
    let server = Server::answering(HELLO);
    let result = complete(&closed(server.port, &json!({"users": 10, "think": {"fixed_ns": 20_000_000}})));
    result.are_all("ok");
    // At most a request per 20 ms in 300 ms; at least the first.
    assert!((10..=150).contains(&result.count("due")), "{}", result.count("due"));
    // A think time is not waiting: response times do not include it, and due times follow from it.
    assert_eq!(result.count("waited"), 0);
    assert!(result.histogram("response").min_ns() < 20_000_000);
}

#[test]
fn an_exponential_thought_has_its_mean() {
    let server = Server::answering(HELLO);
    let result = complete(&closed(server.port, &json!({"users": 50, "think": {"exponential_ns": 20_000_000}})));
    result.are_all("ok");
    // 50 first requests, and 300 ms / 20 ms for every user: 800, with a deviation of 27, less what a busy machine costs.
    assert!((200..=1000).contains(&result.count("due")), "{}", result.count("due"));
}

#[test]
fn a_pace_has_exactly_its_requests() {
    let server = Server::answering(HELLO);
    for workers in [1, 3] {
        let paced = with(closed(server.port, &json!({"users": 7, "pace_per_s": 50})), "/workers", json!(workers));
        let result = complete(&paced);
        result.are_all("ok");
        // A user's requests are due at start + k * 20 ms, and its start lies in the first 20 ms.
        assert_eq!(result.count("due"), 7 * 15, "{workers} workers");
    }
}

#[test]
fn a_stall_moves_no_due_time_of_a_pace() {
    let server = Server::start(|mut peer, _| {
        for turn in 0.. {
            if peer.request()?.is_none() {
                break;
            }
            thread::sleep(Duration::from_millis(if turn == 0 { 150 } else { 0 }));
            peer.say(HELLO)?;
        }
        Ok(())
    });
    let result = complete(&closed(server.port, &json!({"users": 2, "pace_per_s": 100})));
    result.are_all("ok");
    assert_eq!(result.count("due"), 2 * 30);
    // At least 14 requests of every user were due while the first was unanswered: at 10, 20, … 140 ms.
    assert!(result.count("waited") >= 2 * 14, "{}", result.count("waited"));
    let response = result.histogram("response");
    assert!(response.max_ns() >= 150_000_000 - 300_000);
    // 26 of the 60 waited 20 ms or longer; requests that followed immediately have a service time without the wait.
    assert!(response.quantile_ns(1.0 - 20.0 / 60.0) >= 20_000_000);
    assert!(result.histogram("service").min_ns() < 100_000_000);
}

#[test]
fn users_come_and_go_by_stages() {
    let (server, now, most) = counting();
    let stages =
        json!([{"to": 8, "over_ns": 100_000_000}, {"to": 8, "over_ns": 50_000_000}, {"to": 1, "over_ns": 100_000_000}]);
    let load = json!({"users": 2, "think": {"fixed_ns": 1_000_000}, "stages": stages});
    let mut engine = crate::support::Engine::start(&closed(server.port, &load).to_string());
    engine.wait_until(|event| event["event"] == "started");
    // In the end only the last user's connection is left, while the load continues.
    let output = engine.finish();
    assert_eq!((output.code, output.events[0]["connections"].as_u64()), (Some(0), Some(2)));
    output.result().are_all("ok");
    assert_eq!((most.load(SeqCst), server.accepted.load(SeqCst)), (8, 8));
    assert_eq!(output.result().count("reconnects"), 0);
    for _ in 0..500 {
        if now.load(SeqCst) == 0 {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("{} connections are left", now.load(SeqCst));
}

#[test]
fn who_leaves_gives_up_its_connection() {
    let (server, now, _) = counting();
    let stages = json!([{"to": 6, "over_ns": 0}, {"to": 6, "over_ns": 100_000_000}, {"to": 1, "over_ns": 0}]);
    let load = json!({"users": 1, "think": {"fixed_ns": 5_000_000}, "stages": stages});
    let long = with(closed(server.port, &load), "/measure_ns", json!(20_000_000_000_u64));
    let mut engine = crate::support::Engine::start(&long.to_string());
    engine.wait_until(|event| event["phase"] == "measure");
    for _ in 0..1000 {
        thread::sleep(Duration::from_millis(10));
        if server.accepted.load(SeqCst) == 6 && now.load(SeqCst) == 1 {
            engine.signal(libc::SIGINT);
            let output = engine.finish();
            assert_eq!(output.code, Some(130));
            let result = output.result();
            assert_eq!(result.outcome("ok") + result.outcome("in_flight"), result.total());
            return;
        }
    }
    panic!("{} of {} connections are left", now.load(SeqCst), server.accepted.load(SeqCst));
}

#[test]
fn a_ramp_of_users_may_begin_with_none() {
    let server = Server::answering(HELLO);
    for workers in [1, 2] {
        let load = json!({"users": 0, "stages": [{"to": 6, "over_ns": 200_000_000}]});
        let output = run(&with(closed(server.port, &load), "/workers", json!(workers)));
        assert_eq!(output.code, Some(0), "{:#?}\n{}", output.events.last(), output.log);
        assert_eq!(output.events[0]["connections"], 0);
        output.result().are_all("ok");
    }
    assert_eq!(server.accepted.load(SeqCst), 12);
}

#[test]
fn paced_users_may_come_by_stages() {
    let server = Server::answering(HELLO);
    let load = json!({"users": 0, "pace_per_s": 100, "stages": [{"to": 4, "over_ns": 0}]});
    let result = complete(&closed(server.port, &load));
    result.are_all("ok");
    // A step to four users who keep a pace of 10 ms for 300 ms.
    assert!((4 * 29..=4 * 30).contains(&result.count("due")), "{}", result.count("due"));
}

#[test]
fn stages_of_a_rate_have_its_integral() {
    let server = Server::answering(HELLO);
    let stages = json!([
        {"to": 1000, "over_ns": 100_000_000}, {"to": 1000, "over_ns": 50_000_000},
        {"to": 200, "over_ns": 0}, {"to": 0, "over_ns": 100_000_000}
    ]);
    // 50 + 50 + 0 + 10, then nothing for 50 ms.
    for workers in [1, 2] {
        let load = json!({"rate_per_s": 0, "arrivals": "uniform", "connections": 4, "stages": stages});
        let result = complete(&with(open(server.port, &load), "/workers", json!(workers)));
        result.are_all("ok");
        assert!((109..=111).contains(&result.count("due")), "{workers} workers: {}", result.count("due"));
    }
    let load =
        json!({"rate_per_s": 100, "arrivals": "uniform", "connections": 4, "stages": [{"to": 500, "over_ns": 0}]});
    // During the warm-up the first value holds.
    let output = run(&with(open(server.port, &load), "/warmup_ns", json!(100_000_000)));
    let warm = output.of_kind("interval").filter(|interval| interval["phase"] == "warmup");
    let warm: u64 = warm.map(|interval| interval["counts"]["due"].as_u64().unwrap()).sum();
    let measured = output.result().count("due");
    assert!((9..=11).contains(&warm) && (149..=151).contains(&measured), "{warm} and {measured}");
}

#[test]
fn a_poisson_load_by_stages_is_the_same_for_the_same_seed() {
    let server = Server::answering(HELLO);
    let stages = json!([{"to": 2000, "over_ns": 300_000_000}]);
    let load = json!({"rate_per_s": 0, "arrivals": "poisson", "connections": 4, "stages": stages});
    let job = open(server.port, &load);
    let due = complete(&job).count("due");
    assert_eq!(due, complete(&job).count("due"));
    // 300, with a deviation of 17.
    assert!((200..=400).contains(&due), "{due}");
}

#[test]
fn replayed_arrivals_are_due_when_they_were() {
    let server = Server::answering(HELLO);
    // The last two lie at the end of the window, and after it.
    let offsets = json!([0, 0, 0, 1_000_000, 150_000_000, 150_000_000, 250_000_000, 299_999_999, 300_000_000]);
    let load = json!({"arrivals": {"replayed_ns": offsets}, "connections": 4});
    for workers in [1, 2] {
        let job = with(open(server.port, &load), "/workers", json!(workers));
        // During the warm-up nothing is due.
        let output = run(&with(job, "/warmup_ns", json!(100_000_000)));
        let warm = output.of_kind("interval").filter(|interval| interval["phase"] == "warmup");
        assert!(warm.into_iter().all(|interval| interval["counts"]["due"] == 0));
        let result = output.result();
        result.are_all("ok");
        assert_eq!((result.count("due"), result.histogram("lateness").count()), (8, 8), "{workers} workers");
    }
}
