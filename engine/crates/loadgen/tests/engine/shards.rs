//! More connections than a process may hold: the engine starts as many processes as needed, and its output does not show it.

use std::collections::HashSet;
use std::fs;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::engine::limit_open_files;
use crate::support::server::{HELLO, Server};
use crate::support::{Engine, EngineOutput, crowd_job, job, open_job, with};

/// So few descriptors that 100 connections need three processes.
const FEW: u64 = 60;

fn start(job: &Value) -> Engine {
    Engine::start_with(&job.to_string(), |command| limit_open_files(command, FEW))
}

/// A job of 100 connections that lasts longer than any test of it, and leaves the machine time to report.
fn long_job(port: u16) -> Value {
    with(open_job(port, 200, 100), "/measure_ns", json!(30_000_000_000_u64))
}

fn processes(output: &EngineOutput) -> u64 {
    output.events[0]["engine"]["processes"].as_u64().unwrap()
}

/// The processes that an engine has started.
pub fn shards(engine: &Engine) -> Vec<libc::pid_t> {
    let pid = engine.pid();
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    children.split_whitespace().map(|child| child.parse().unwrap()).collect()
}

/// Wait until a process is gone, or is a zombie.
fn is_gone(pid: libc::pid_t) -> bool {
    let state = || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(") ")?.1.chars().next()
    };
    (0..500).any(|_| {
        thread::sleep(Duration::from_millis(10));
        matches!(state(), None | Some('Z' | 'X'))
    })
}

pub fn signal(pid: libc::pid_t, signal: i32) {
    // SAFETY: no memory is passed; the process is a child of our child, which has not waited for it.
    assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
}

#[test]
fn users_are_spread_over_processes_and_told_as_one() {
    let server = Server::answering(HELLO);
    let output = start(&crowd_job(server.port, 100)).finish();
    assert_eq!(output.code, Some(0), "{:#?}\n{}", output.events.last(), output.log);
    assert_eq!((processes(&output), &output.events[0]["connections"]), (3, &json!(100)));
    assert_eq!(output.events[0]["engine"]["workers"], 3);
    assert_eq!(output.of_kind("started").count(), 1);
    assert_eq!(server.accepted.load(SeqCst), 100);
    output.result().are_all("ok");
}

#[test]
fn what_processes_counted_by_request_is_one_sum() {
    let server = Server::answering(HELLO);
    let get = |path: &str| json!({"method": "GET", "path": path, "expect": {"status": 200}});
    let output = start(&with(crowd_job(server.port, 100), "/requests", json!([get("/a"), get("/b")]))).finish();
    assert_eq!((output.code, processes(&output)), (Some(0), 3), "{}", output.log);
    // The result is checked to be the sum of its requests.
    assert_eq!(output.result().event["requests"].as_array().map(Vec::len), Some(2));
}

/// The schedule is split over workers by their numbers among all, so it is the same schedule.
#[test]
fn an_open_load_has_the_rate_that_was_asked_for() {
    let server = Server::answering(HELLO);
    let output = start(&open_job(server.port, 1000, 100)).finish();
    assert_eq!(output.code, Some(0), "{:#?}\n{}", output.events.last(), output.log);
    assert_eq!(processes(&output), 3);
    let result = output.result();
    assert_eq!(result.count("due"), 300);
    result.are_all("ok");
}

#[test]
fn no_two_requests_of_all_processes_have_the_same_number() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let lines = Arc::clone(&seen);
    let server = Server::start(move |mut peer, _| {
        while let Some((line, _)) = peer.request()? {
            lines.lock().unwrap().push(line);
            peer.say(HELLO)?;
        }
        Ok(())
    });
    let numbered = with(open_job(server.port, 500, 100), "/requests/0/path", json!("/{seq}"));
    let output = start(&numbered).finish();
    assert_eq!(output.code, Some(0), "{:#?}\n{}", output.events.last(), output.log);
    output.result().are_all("ok");
    let seen = seen.lock().unwrap();
    let different: HashSet<_> = seen.iter().collect();
    // 350 ms at 500 a second.
    assert_eq!((seen.len(), different.len()), (175, 175));
}

#[test]
fn a_signal_ends_all_processes_with_one_result() {
    let server = Server::answering(HELLO);
    let mut engine = start(&long_job(server.port));
    engine.wait_for_measured("/completed");
    let shards = shards(&engine);
    assert_eq!(shards.len(), 3);
    // As when a whole group of processes is ended.
    for shard in &shards {
        signal(*shard, libc::SIGTERM);
    }
    engine.signal(libc::SIGTERM);
    let output = engine.finish();
    assert_eq!(output.code, Some(130), "{:#?}\n{}", output.events.last(), output.log);
    assert_eq!(output.result().event["ended"], "interrupted");
    assert!(shards.into_iter().all(is_gone));
}

#[test]
fn the_deadline_cuts_all_processes() {
    let server = Server::answering(HELLO);
    let output = start(&with(long_job(server.port), "/deadline_ns", json!(5_000_000_000_u64))).finish();
    assert_eq!(output.code, Some(124), "{:#?}\n{}", output.events.last(), output.log);
    assert_eq!(output.result().event["ended"], "deadline");
}

#[test]
fn a_process_that_is_killed_ends_the_work_and_is_told() {
    let server = Server::answering(HELLO);
    let mut engine = start(&long_job(server.port));
    engine.wait_for_measured("/completed");
    let shards = shards(&engine);
    signal(shards[1], libc::SIGKILL);
    let output = engine.finish();
    assert_eq!(output.code, Some(1));
    let error = output.events.last().unwrap();
    assert_eq!((&error["event"], &error["kind"]), (&json!("error"), &json!("internal")));
    assert!(error["message"].as_str().unwrap().contains("SIGKILL"), "{error}");
    assert!(shards.into_iter().all(is_gone));
}

#[test]
fn no_process_outlives_the_engine() {
    let server = Server::answering(HELLO);
    let mut engine = start(&long_job(server.port));
    engine.wait_for_measured("/completed");
    let shards = shards(&engine);
    engine.signal(libc::SIGKILL);
    assert_eq!(engine.exit_code(), None);
    assert!(shards.into_iter().all(is_gone));
}

#[test]
fn nobody_listening_is_one_error() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let output = start(&long_job(port)).finish();
    assert_eq!(output.code, Some(1), "{}", output.log);
    assert_eq!(output.error()["kind"], "connect");
    assert!(output.error()["message"].as_str().unwrap().contains("Connection refused"), "{:#?}", output.events);
}

/// No range of ports is that wide.
#[test]
fn more_connections_than_ports_are_refused_before_the_start() {
    let from_one = with(job(80), "/target/sources", json!(["127.0.0.1"]));
    let output = crate::support::run(&with(from_one, "/load/closed/users", json!(70_000)));
    assert_eq!(output.code, Some(1));
    let error = output.error();
    assert_eq!(error["kind"], "limit");
    assert!(error["message"].as_str().unwrap().contains("ip_local_port_range"), "{error}");
    assert!(error["hint"].as_str().unwrap().contains("target.sources"), "{error}");
}

#[test]
fn too_few_descriptors_for_any_number_of_processes_are_a_limit() {
    let many = with(job(80), "/load/closed/users", json!(100_000));
    let output = Engine::start_with(&many.to_string(), |command| limit_open_files(command, FEW)).finish();
    assert_eq!(output.code, Some(1));
    let error = output.error();
    assert_eq!(error["kind"], "limit");
    assert!(error["message"].as_str().unwrap().contains("ulimit"), "{error}");
}
