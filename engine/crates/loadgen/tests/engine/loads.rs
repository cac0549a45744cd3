//! The shapes of load: what falls due, what waits, and what is independent of slow connections.

use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use crate::support::server::{HELLO, Server};
use crate::support::{complete, job, open_job, run, with};
use redline_pacing::{Arrivals, Profile, Schedule};
use serde_json::json;

#[test]
fn a_uniform_load_has_exactly_its_requests_whoever_shares_it() {
    let server = Server::answering(HELLO);
    for (workers, rate) in [(1, 1000), (2, 1000), (3, 777)] {
        let job = with(open_job(server.port, rate, 6), "/workers", json!(workers));
        let result = complete(&job);
        result.are_all("ok");
        // Due at i / rate, from 50 ms on and before 350 ms.
        let due = (0..).map(|i: u64| i * 1_000_000_000 / u64::from(rate));
        let expected = due.take_while(|due| *due < 350_000_000).filter(|due| *due >= 50_000_000).count();
        assert_eq!(result.count("due"), expected as u64, "{workers} workers");
    }
}

#[test]
fn a_poisson_load_has_the_requests_of_its_seed() {
    let server = Server::answering(HELLO);
    let poisson = with(open_job(server.port, 1000, 4), "/load/open/arrivals", json!("poisson"));
    let due = |seed: u64| complete(&with(poisson.clone(), "/seed", json!(seed))).count("due");
    let schedule = Schedule::new(&Profile::constant(1000.0), &Arrivals::Poisson, 7, 0, 1).unwrap();
    let expected = schedule.take_while(|due| *due < 350_000_000).filter(|due| *due >= 50_000_000).count() as u64;
    assert_eq!(due(7), expected);
    assert_eq!(due(7), expected);
}

/// Connection 0 answers its first request after a second; requests that fall due meanwhile are sent on the other.
#[test]
fn a_slow_connection_does_not_hold_back_the_others() {
    let server = Server::start(|mut peer, number| {
        while peer.request()?.is_some() {
            if number == 0 {
                thread::sleep(Duration::from_secs(1));
            }
            peer.say(HELLO)?;
        }
        Ok(())
    });
    let job = with(open_job(server.port, 200, 2), "/drain_ns", json!(5_000_000_000_u64));
    let result = complete(&with(job, "/warmup_ns", json!(0)));
    result.are_all("ok");
    assert_eq!(result.count("due"), 60);
    // The slow connection was busy for the whole window: it had one request, and the other 59 did not wait for it.
    let response = result.histogram("response");
    assert!(response.max_ns() >= 1_000_000_000 - 1_000_000);
    assert!(response.quantile_ns(58.5 / 60.0) < 900_000_000);
}

/// One connection, 100 requests a second of 50 ms each: due times do not move, so waiting is in the response time.
#[test]
fn waiting_for_a_connection_is_in_the_response_time() {
    let server = Server::start(|mut peer, _| {
        while peer.request()?.is_some() {
            thread::sleep(Duration::from_millis(50));
            peer.say(HELLO)?;
        }
        Ok(())
    });
    let job = with(with(open_job(server.port, 100, 1), "/warmup_ns", json!(0)), "/drain_ns", json!(10_000_000_000_u64));
    let result = complete(&job);
    result.are_all("ok");
    assert_eq!(result.count("due"), 30);
    // All but the first request fell due while the connection was busy.
    assert!(result.count("waited") >= 28);
    // Request 29 was due at 290 ms, after 29 others of 50 ms each: it was not answered before 1500 ms.
    assert!(result.histogram("response").max_ns() >= 1_210_000_000 - 2_000_000);
    assert!(result.count("late") >= 24);
}

#[test]
fn requests_that_wait_past_the_timeout_end_without_being_sent() {
    let server = Server::start(|mut peer, _| {
        peer.stall();
        Ok(())
    });
    let job = with(with(open_job(server.port, 200, 1), "/timeout_ns", json!(80_000_000)), "/warmup_ns", json!(0));
    let result = complete(&job);
    result.are_all("timeout");
    assert_eq!(result.count("due"), 60);
    assert!(result.count("sent") < 60);
    assert!(result.histogram("response").min_ns() >= 80_000_000 - 80_000);
}

#[test]
fn what_still_waits_after_the_drain_is_unsent() {
    let server = Server::start(|mut peer, _| {
        peer.stall();
        Ok(())
    });
    let job = with(with(open_job(server.port, 200, 2), "/drain_ns", json!(0)), "/warmup_ns", json!(0));
    let result = complete(&job);
    assert_eq!((result.outcome("in_flight"), result.outcome("unsent"), result.count("due")), (2, 58, 60));
    assert_eq!(result.count("sent"), 2);
}

/// More requests than the engine can send in the window: every request that fell due is still counted.
#[test]
fn an_impossible_rate_loses_nothing() {
    let server = Server::answering(HELLO);
    let job = with(with(open_job(server.port, 2_000_000, 2), "/drain_ns", json!(0)), "/warmup_ns", json!(0));
    let result = complete(&job);
    assert_eq!(result.count("due"), 600_000);
    assert!(result.outcome("unsent") > 0);
    // The queue is never empty once it has formed: later requests all wait, whenever a connection becomes idle.
    assert!(result.count("due") - result.count("waited") <= 4, "{}", result.event["counts"]);
}

#[test]
fn users_are_split_over_workers() {
    let server = Server::answering(HELLO);
    let job = with(with(job(server.port), "/load/closed/users", json!(5)), "/workers", json!(3));
    let output = run(&job);
    let started = &output.events[0];
    assert_eq!((&started["connections"], &started["engine"]["workers"]), (&json!(5), &json!(3)));
    assert_eq!(started["format"], "redline.engine/1");
    output.result().are_all("ok");
}

#[test]
fn no_interval_spans_two_phases() {
    let server = Server::answering(HELLO);
    let job = with(with(job(server.port), "/interval_ns", json!(70_000_000)), "/warmup_ns", json!(100_000_000));
    let output = run(&job);
    output.result().are_all("ok");
    let intervals: Vec<_> = output
        .of_kind("interval")
        .map(|event| (event["phase"].as_str().unwrap(), event["end_ns"].as_u64().unwrap() / 1_000_000))
        .filter(|(phase, _)| *phase != "drain")
        .collect();
    let expected = [
        ("warmup", 70),
        ("warmup", 100),
        ("measure", 170),
        ("measure", 240),
        ("measure", 310),
        ("measure", 380),
        ("measure", 400),
    ];
    assert_eq!(intervals, expected);
    assert!(output.of_kind("interval").any(|event| event["phase"] == "drain"));
}

/// A server that answers nothing for 100 ms of the measurement: ticks show it, intervals of 150 ms do not.
#[test]
fn ticks_show_what_is_shorter_than_an_interval() {
    let server = Server::start(|mut peer, _| {
        let mut answers = 0;
        while peer.request()?.is_some() {
            answers += 1;
            thread::sleep(Duration::from_millis(if answers == 60 { 120 } else { 1 }));
            peer.say(HELLO)?;
        }
        Ok(())
    });
    let job = with(with(job(server.port), "/interval_ns", json!(150_000_000)), "/warmup_ns", json!(0));
    let output = run(&with(with(job, "/measure_ns", json!(600_000_000)), "/load/closed/users", json!(1)));
    output.result().are_all("ok");
    let measured: Vec<_> = output.of_kind("interval").filter(|event| event["phase"] == "measure").collect();
    assert!(measured.iter().all(|interval| interval["ticks"].as_array().is_some_and(|ticks| ticks.len() == 3)));
    let ticks = measured.iter().flat_map(|interval| interval["ticks"].as_array().unwrap());
    assert!(ticks.filter(|tick| **tick == json!(0)).count() >= 1);
    assert!(measured.iter().all(|interval| interval["counts"]["completed"] != json!(0)));
}

#[test]
fn intervals_of_less_than_two_ticks_have_none() {
    let server = Server::answering(HELLO);
    for interval_ns in [99_999_999, 100_000_000] {
        let output = run(&with(job(server.port), "/interval_ns", json!(interval_ns)));
        output.result().are_all("ok");
        let has_ticks = output.of_kind("interval").any(|event| event.get("ticks").is_some());
        assert_eq!(has_ticks, interval_ns == 100_000_000);
    }
}

#[test]
fn names_and_ipv6_are_targets_too() {
    let server = Server::answering(HELLO);
    complete(&with(job(server.port), "/target/host", json!("localhost"))).are_all("ok");
    if let Err(why) = TcpListener::bind("[::1]:0") {
        eprintln!("skipped: [::1] cannot be bound: {why}");
        return;
    }
    let server = Server::start_on("[::1]:0", |mut peer, _| {
        while peer.request()?.is_some() {
            peer.say(HELLO)?;
        }
        Ok(())
    });
    complete(&with(job(server.port), "/target/host", json!("::1"))).are_all("ok");
}
