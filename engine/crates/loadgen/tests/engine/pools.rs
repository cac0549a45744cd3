//! Pools that grow, connections that are replaced after a number of requests, and loads of a number of requests.

use std::sync::atomic::Ordering::SeqCst;
use std::thread;
use std::time::Duration;

use crate::support::server::{HELLO, Server};
use crate::support::{complete, job, open_job, run, with};
use serde_json::{Value, json};

/// A server that takes this long for each answer.
fn slow(time: Duration) -> Server {
    Server::start(move |mut peer, _| {
        while peer.request()?.is_some() {
            thread::sleep(time);
            peer.say(HELLO)?;
        }
        Ok(())
    })
}

fn closed(port: u16, closed: &Value) -> Value {
    with(with(job(port), "/load", json!({"closed": closed})), "/warmup_ns", json!(0))
}

fn open(port: u16, open: &Value) -> Value {
    with(with(job(port), "/load", json!({"open": open})), "/warmup_ns", json!(0))
}

#[test]
fn a_pool_grows_while_requests_find_no_connection() {
    let server = slow(Duration::from_millis(100));
    let load = json!({"rate_per_s": 100, "arrivals": "uniform", "connections": 8, "connections_at_start": 1});
    let output = run(&with(open(server.port, &load), "/drain_ns", json!(5_000_000_000_u64)));
    assert_eq!((output.code, &output.events[0]["connections"]), (Some(0), &json!(1)));
    let result = output.result();
    result.are_all("ok");
    // 10 at the same time would be needed.
    assert_eq!((result.count("due"), server.accepted.load(SeqCst)), (30, 8));
    assert!(result.count("waited") > 0);
    assert_eq!(result.count("reconnects"), 0);
}

#[test]
fn a_pool_that_suffices_does_not_grow() {
    let server = Server::answering(HELLO);
    let load = json!({"arrivals": {"replayed_ns": [0, 100_000_000, 200_000_000]}, "connections": 8, "connections_at_start": 1});
    let result = complete(&open(server.port, &load));
    result.are_all("ok");
    assert!(server.accepted.load(SeqCst) <= 1 + result.count("waited") as usize);
}

#[test]
fn a_connection_is_replaced_after_its_requests() {
    for depth in [1, 4] {
        let server = Server::answering(HELLO);
        let load = json!({"users": 2, "depth": depth, "requests_per_connection": 10, "think": {"fixed_ns": 1_000_000}});
        let result = complete(&closed(server.port, &load));
        result.are_all("ok");
        let (requests, accepted) = (result.total(), server.accepted.load(SeqCst) as u64);
        // Each of the two users may have begun a connection that it did not use up.
        assert!(requests.div_ceil(10) <= accepted && accepted <= requests.div_ceil(10) + 4, "{requests} on {accepted}");
        assert!(accepted - 2 - result.count("reconnects") <= 2, "{accepted} and {}", result.count("reconnects"));
    }
}

#[test]
fn one_request_for_each_connection() {
    let server = Server::start(|mut peer, _| {
        peer.request()?;
        peer.say(HELLO)?;
        // It would not answer a second request.
        peer.stall();
        Ok(())
    });
    let load = json!({"rate_per_s": 200, "arrivals": "uniform", "connections": 4, "requests_per_connection": 1});
    let result = complete(&open(server.port, &load));
    result.are_all("ok");
    assert_eq!(result.count("due"), 60);
    assert!((60..=64).contains(&server.accepted.load(SeqCst)));
}

#[test]
fn a_count_is_met_exactly() {
    let server = Server::answering(HELLO);
    let loads = [
        json!({"closed": {"users": 5}}),
        json!({"closed": {"users": 6, "think": {"exponential_ns": 500_000}}}),
        json!({"open": {"rate_per_s": 5000, "arrivals": "poisson", "connections": 3}}),
        json!({"open": {"rate_per_s": 5000, "arrivals": "uniform", "connections": 3, "depth": 4}}),
    ];
    for load in loads {
        for workers in [1, 3] {
            let job = with(with(job(server.port), "/load", load.clone()), "/workers", json!(workers));
            let job = with(with(job, "/count", json!(100)), "/measure_ns", json!(30_000_000_000_u64));
            let result = complete(&job);
            result.are_all("ok");
            assert_eq!(result.count("due"), 100, "{load} by {workers} workers");
            let end_ns = result.event["measure_end_ns"].as_u64().unwrap();
            assert!(end_ns > 50_000_000 && end_ns < 30_050_000_000, "{end_ns}");
        }
    }
}

/// Requests that are due, or become due, at the same moment as the last are too many.
#[test]
fn a_count_is_met_exactly_where_several_are_due_at_once() {
    let server = Server::start(|mut peer, _| {
        while peer.request()?.is_some() {
            let mut answers = HELLO.to_owned();
            while peer.has_more() && peer.request()?.is_some() {
                answers += HELLO;
            }
            peer.say(&answers)?;
        }
        Ok(())
    });
    let loads = [
        json!({"open": {"rate_per_s": 2_000_000, "arrivals": "uniform", "connections": 2}}),
        json!({"open": {"arrivals": {"replayed_ns": vec![0; 100]}, "connections": 2}}),
        json!({"closed": {"users": 1, "depth": 16}}),
        json!({"closed": {"users": 64, "think": {"fixed_ns": 1_000_000}}}),
        json!({"closed": {"users": 20, "pace_per_s": 10_000}}),
    ];
    for load in loads {
        let job = with(with(job(server.port), "/load", load.clone()), "/warmup_ns", json!(0));
        let result = complete(&with(job, "/count", json!(50)));
        assert_eq!(result.count("due"), 50, "{load}");
    }
}

#[test]
fn a_count_that_is_not_reached_ends_with_the_window() {
    let server = Server::answering(HELLO);
    let result = complete(&with(open_job(server.port, 100, 2), "/count", json!(1000)));
    result.are_all("ok");
    assert_eq!((result.count("due"), result.event["measure_end_ns"].as_u64()), (30, Some(350_000_000)));
}

/// A worker reaches its share of the count, the other does not: the window is the longer of theirs.
#[test]
fn a_count_that_one_worker_reaches_ends_with_the_other() {
    let server = Server::answering(HELLO);
    let load = json!({"open": {"arrivals": {"replayed_ns": [0, 1, 2]}, "connections": 2}});
    let job = with(with(job(server.port), "/load", load), "/workers", json!(2));
    let result = complete(&with(job, "/count", json!(4)));
    // The first worker has two requests, which is its share; the second has one, and waits for another to the end.
    assert_eq!(result.count("due"), 3);
    assert_eq!(result.event["measure_end_ns"].as_u64(), Some(350_000_000));
}
