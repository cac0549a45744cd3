//! However a run ends, it loses nothing that it measured.

use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use crate::support::server::{HELLO, Server};
use crate::support::{Engine, complete, crowd_job, job, open_job, run, with};
use serde_json::json;

const LONG: u64 = 50_000_000_000;

#[test]
fn a_server_that_dies_is_refused_connections_and_conserved_requests() {
    for job in [job(0), open_job(0, 500, 4)] {
        let server = Server::answering(HELLO);
        let job = with(with(job, "/target/port", json!(server.port)), "/timeout_ns", json!(200_000_000));
        let mut engine = Engine::start(&with(job, "/measure_ns", json!(LONG)).to_string());
        engine.wait_for_measured("/outcomes/ok");
        server.kill();
        engine.wait_for_measured("/outcomes/connect");
        engine.signal(libc::SIGINT);
        let output = engine.finish();
        assert_eq!(output.code, Some(130));
        let result = output.result();
        assert!(result.outcome("ok") > 0);
        assert!(result.outcome("connect") > 0);
        assert_eq!(result.count("exhausted"), 0);
    }
}

/// Every answer costs a descriptor, until none is left.
#[test]
fn running_out_of_descriptors_is_told_from_a_server_that_refuses() {
    let server = Server::start(|mut peer, _| {
        peer.request()?;
        peer.say("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello")
    });
    let job = with(job(server.port), "/measure_ns", json!(LONG)).to_string();
    let mut engine = Engine::start(&job);
    engine.wait_for_measured("/outcomes/ok");
    engine.limit_open_files(3);
    engine.wait_for_measured("/exhausted");
    engine.signal(libc::SIGINT);
    let output = engine.finish();
    let result = output.result();
    assert!(result.count("exhausted") > 0);
    assert_eq!(result.count("exhausted"), result.outcome("connect"));
    assert_eq!(result.reason("connect"), "Too many open files (os error 24)");
}

#[test]
fn a_server_that_comes_back_is_used_again() {
    let server = Server::answering(HELLO);
    let port = server.port;
    let job = with(with(job(port), "/measure_ns", json!(LONG)), "/load/closed/users", json!(4));
    let mut engine = Engine::start(&job.to_string());
    engine.wait_for_measured("/completed");
    server.kill();
    engine.wait_until(|event| event["counts"]["outcomes"]["connect"] != 0 && event["counts"]["completed"] == 0);
    let _server = Server::start_on(&format!("127.0.0.1:{port}"), |mut peer, _| {
        while peer.request()?.is_some() {
            peer.say(HELLO)?;
        }
        Ok(())
    });
    engine.wait_for_measured("/completed");
    engine.signal(libc::SIGINT);
    assert!(engine.finish().result().count("reconnects") > 0);
}

#[test]
fn a_signal_ends_the_measurement_early_with_a_result() {
    let server = Server::answering(HELLO);
    for (signal, job) in [
        (libc::SIGINT, job(server.port)),
        (libc::SIGTERM, open_job(server.port, 1000, 3)),
        (libc::SIGINT, with(open_job(server.port, 1000, 3), "/workers", json!(2))),
    ] {
        let job = with(job, "/measure_ns", json!(LONG));
        let mut engine = Engine::start(&job.to_string());
        engine.wait_for_measured("/outcomes/ok");
        engine.signal(signal);
        let output = engine.finish();
        assert_eq!(output.code, Some(130));
        let result = output.result();
        assert_eq!(result.event["ended"], "interrupted");
        assert!(result.event["measure_end_ns"].as_u64().unwrap() < LONG);
        let measured = output.of_kind("interval").filter(|event| event["phase"] == "measure").last().unwrap();
        assert_eq!(result.event["measure_end_ns"], measured["end_ns"]);
        assert!(result.outcome("ok") > 0);
    }
}

/// A stop and a continuation interrupt the wait for signals, which is neither a signal to end nor the deadline.
#[test]
fn a_pause_does_not_end_the_measurement() {
    let server = Server::answering(HELLO);
    let mut engine = Engine::start(&with(job(server.port), "/measure_ns", json!(LONG)).to_string());
    engine.wait_for_measured("/outcomes/ok");
    for _ in 0..3 {
        engine.signal(libc::SIGSTOP);
        while !crate::support::engine::is_stopped(engine.pid()) {
            thread::sleep(Duration::from_millis(1));
        }
        engine.signal(libc::SIGCONT);
        engine.wait_for_measured("/outcomes/ok");
        engine.wait_for_measured("/outcomes/ok");
    }
    engine.signal(libc::SIGINT);
    let output = engine.finish();
    assert_eq!(output.code, Some(130));
    assert_eq!(output.result().event["ended"], "interrupted");
}

#[test]
fn a_signal_in_the_warm_up_leaves_an_empty_result() {
    let server = Server::answering(HELLO);
    let job = with(job(server.port), "/warmup_ns", json!(LONG));
    let mut engine = Engine::start(&job.to_string());
    engine.wait_until(|event| event["event"] == "started");
    engine.signal(libc::SIGINT);
    let output = engine.finish();
    assert_eq!(output.code, Some(130));
    let result = output.result();
    assert_eq!(result.event["ended"], "interrupted");
    assert_eq!(result.event["measure_start_ns"], result.event["measure_end_ns"]);
    assert_eq!(result.count("due"), 0);
}

#[test]
fn a_signal_while_connecting_ends_it() {
    // The backlog of a listener that nobody accepts from fills up, and then connecting takes for ever.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let job = with(with(job(port), "/load/closed/users", json!(600)), "/timeout_ns", json!(LONG));
    let mut engine = Engine::start(&job.to_string());
    let _first = listener.accept().unwrap();
    engine.signal(libc::SIGTERM);
    assert_eq!(engine.exit_code(), Some(130));
}

#[test]
fn the_deadline_cuts_what_would_go_on() {
    let server = Server::answering(HELLO);
    let job = with(with(job(server.port), "/measure_ns", json!(LONG)), "/deadline_ns", json!(5_000_000_000_u64));
    let output = run(&job);
    assert_eq!(output.code, Some(124));
    let result = output.result();
    assert_eq!(result.event["ended"], "deadline");
    assert!(result.outcome("ok") > 0);
}

#[test]
fn the_deadline_cuts_a_stalled_server_too() {
    let server = Server::start(|mut peer, _| {
        peer.stall();
        Ok(())
    });
    let job = with(with(job(server.port), "/drain_ns", json!(LONG)), "/timeout_ns", json!(LONG));
    let job = with(with(job, "/deadline_ns", json!(5_000_000_000_u64)), "/warmup_ns", json!(0));
    let output = run(&job);
    assert_eq!(output.code, Some(124));
    output.result().are_all("in_flight");
}

/// Nobody reads, so the pipe fills up and the main thread waits for ever: the deadline holds all the same.
#[test]
fn the_deadline_holds_when_nobody_reads() {
    let server = Server::answering(HELLO);
    let job = with(with(job(server.port), "/measure_ns", json!(LONG)), "/interval_ns", json!(10_000_000));
    let mut engine = Engine::start(&with(job, "/deadline_ns", json!(1_500_000_000)).to_string());
    engine.shrink_output();
    assert_eq!(engine.exit_code(), Some(124));
}

#[test]
fn the_engine_ends_when_its_reader_is_gone() {
    let server = Server::answering(HELLO);
    let mut engine = Engine::start(&with(job(server.port), "/measure_ns", json!(LONG)).to_string());
    engine.wait_until(|event| event["event"] == "started");
    engine.stop_reading();
    assert_eq!(engine.exit_code(), Some(1));
}

#[test]
fn the_engine_does_not_begin_for_a_parent_that_is_gone() {
    let job = job(1).to_string();
    let mut orphan = Engine::start_with(&job, |command| {
        command.env("REDLINE_PARENT", "1");
    });
    assert_eq!(orphan.exit_code(), Some(1));
    let server = Server::answering(HELLO);
    let job = crate::support::job(server.port).to_string();
    let child = Engine::start_with(&job, |command| {
        command.env("REDLINE_PARENT", std::process::id().to_string());
    });
    assert_eq!(child.finish().code, Some(0));
}

#[test]
fn a_target_that_refuses_from_the_beginning_is_an_error() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let output = run(&job(port));
    assert_eq!(output.code, Some(1));
    assert_eq!(output.error()["kind"], "connect");
    assert!(output.error()["message"].as_str().unwrap().contains("refused"));
}

/// The kernel refuses immediately, without an attempt, as when ports or descriptors have run out.
#[test]
fn an_address_that_cannot_be_connected_to_is_an_error() {
    let output = run(&with(job(80), "/target/host", json!("255.255.255.255")));
    assert_eq!(output.code, Some(1));
    assert_eq!(output.error()["kind"], "connect");
}

#[test]
fn a_host_that_is_not_known_is_an_error() {
    let output = run(&with(job(80), "/target/host", json!("no-such-host.invalid")));
    assert_eq!(output.code, Some(1));
    assert_eq!(output.error()["kind"], "connect");
    assert!(output.error()["message"].as_str().unwrap().contains("no-such-host.invalid"));
}

#[test]
fn many_connections_are_opened() {
    let server = Server::answering(HELLO);
    let result = complete(&crowd_job(server.port, 300));
    assert_eq!(result.outcome("ok"), result.total());
}
