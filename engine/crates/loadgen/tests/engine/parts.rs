//! A job that several engines share, as on several hosts.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::support::engine::limit_open_files;
use crate::support::server::{HELLO, Server};
use crate::support::{Engine, EngineOutput, job, open_job, run, with};

const NOTICE_NS: u64 = 500_000_000;

/// A part of a job that accepts commands: `workers` of `all_workers`, from `first_worker` on.
pub fn part(job: Value, first_worker: u32, workers: u32, all_workers: u32) -> String {
    let part = json!({"first_worker": first_worker, "all_workers": all_workers});
    let job = with(with(job, "/part", part), "/workers", json!(workers));
    format!("{}\n", with(job, "/commands", json!(true)))
}

fn unix_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64
}

/// Wait until all have connected, and start them at the same instant, which is returned.
pub fn started(engines: &mut [Engine]) -> u64 {
    for engine in engines.iter_mut() {
        engine.wait_until(|event| event["event"] == "connected");
    }
    let at_unix_ns = unix_ns() + NOTICE_NS;
    for engine in engines.iter_mut() {
        engine.say(&format!(r#"{{"command":"start","at_unix_ns":{at_unix_ns}}}"#));
    }
    at_unix_ns
}

pub fn finished(engines: Vec<Engine>) -> Vec<EngineOutput> {
    let outputs: Vec<_> = engines.into_iter().map(Engine::finish).collect();
    for output in &outputs {
        assert_eq!(output.code, Some(0), "{:#?}\n{}", output.events.last(), output.log);
    }
    outputs
}

pub fn start(job: &str) -> Engine {
    Engine::start_heeding(job, |_| {})
}

/// The error message of an engine that had connected.
fn ended_with(output: &EngineOutput) -> &str {
    assert_eq!(output.code, Some(1), "{}", output.log);
    let last = output.events.last().unwrap();
    assert_eq!((&last["event"], last["hint"].as_str().is_some_and(|hint| !hint.is_empty())), (&json!("error"), true));
    last["message"].as_str().unwrap()
}

#[test]
fn parts_start_at_one_instant_and_split_the_load() {
    let server = Server::answering(HELLO);
    // 300 requests of the window among five workers, of which the second engine has three.
    let job = open_job(server.port, 1000, 7);
    let mut engines = vec![start(&part(job.clone(), 0, 2, 5)), start(&part(job, 2, 3, 5))];
    let at_unix_ns = started(&mut engines);
    let outputs = finished(engines);
    let due: Vec<_> = outputs.iter().map(|output| output.result().count("due")).collect();
    assert_eq!(due, [120, 180]);
    let connected = |output: &EngineOutput| output.of_kind("connected").next().unwrap()["connections"].clone();
    // Seven connections: the first two of five workers have two each.
    assert_eq!(outputs.iter().map(connected).collect::<Vec<_>>(), [4, 3]);
    for output in &outputs {
        let epoch = output.of_kind("started").next().unwrap()["epoch_unix_ns"].as_u64().unwrap();
        assert!(epoch.abs_diff(at_unix_ns) < 1_000_000, "{epoch} is not {at_unix_ns}");
    }
}

#[test]
fn a_part_in_many_processes_is_the_same_part() {
    let server = Server::answering(HELLO);
    let job = open_job(server.port, 1000, 200);
    let many = Engine::start_heeding(&part(job.clone(), 0, 3, 6), |command| limit_open_files(command, 60));
    let mut engines = vec![many, start(&part(job, 3, 3, 6))];
    started(&mut engines);
    let outputs = finished(engines);
    let processes = |output: &EngineOutput| output.of_kind("started").next().unwrap()["engine"]["processes"].clone();
    assert_eq!(outputs.iter().map(processes).collect::<Vec<_>>(), [3, 1]);
    assert_eq!(outputs.iter().map(|output| output.result().count("due")).collect::<Vec<_>>(), [150, 150]);
}

#[test]
fn a_part_that_needs_more_workers_than_it_has_is_refused() {
    let job = part(open_job(80, 1000, 200), 0, 1, 2);
    let output = Engine::start_heeding(&job, |command| limit_open_files(command, 60)).finish();
    assert_eq!(output.code, Some(1));
    assert_eq!(output.error()["kind"], "limit", "{:#?}", output.events);
    assert!(output.error()["message"].as_str().unwrap().contains("it has 1 workers"), "{:#?}", output.events);
}

#[test]
fn all_parts_measure_from_the_named_instant_on() {
    let server = Server::answering(HELLO);
    let long = with(with(job(server.port), "/warmup_ns", json!(30_000_000_000_u64)), "/interval_ns", json!(50_000_000));
    let mut engines = vec![start(&part(long.clone(), 0, 1, 2)), start(&part(long, 1, 1, 2))];
    started(&mut engines);
    engines[0].wait_until(|event| event["event"] == "interval");
    // The end of an interval, counted from there.
    for engine in &mut engines {
        engine.say(r#"{"command":"measure","at_ns":980000000}"#);
    }
    for output in finished(engines) {
        let result = output.result().event;
        assert_eq!(
            (&result["measure_start_ns"], &result["measure_end_ns"]),
            (&json!(1_000_000_000), &json!(1_300_000_000))
        );
    }
}

#[test]
fn an_instant_that_has_passed_ends_the_part() {
    let server = Server::answering(HELLO);
    let long = with(with(job(server.port), "/warmup_ns", json!(30_000_000_000_u64)), "/interval_ns", json!(50_000_000));
    let mut engines = vec![start(&part(long, 0, 1, 2))];
    started(&mut engines);
    engines[0].wait_until(|event| event["event"] == "interval" && event["end_ns"].as_u64() >= Some(200_000_000));
    engines[0].say(r#"{"command":"measure","at_ns":100000000}"#);
    let output = engines.remove(0).finish();
    assert!(ended_with(&output).contains("came too late"));

    let mut late = start(&part(job(server.port), 0, 1, 2));
    late.wait_until(|event| event["event"] == "connected");
    late.say(&format!(r#"{{"command":"start","at_unix_ns":{}}}"#, unix_ns()));
    let output = late.finish();
    assert!(ended_with(&output).contains("came too late"));
}

#[test]
fn a_part_ends_with_a_lab_that_never_starts_it_and_by_its_deadline() {
    let server = Server::answering(HELLO);
    // Standard input ends with the job.
    let output = Engine::start(&part(job(server.port), 0, 1, 2)).finish();
    assert!(ended_with(&output).contains("before it said"));
    // It stays open, like the input from a host that is cut off.
    let short = with(job(server.port), "/deadline_ns", json!(Duration::from_secs(1).as_nanos() as u64));
    let output = start(&part(short, 0, 1, 2)).finish();
    assert_eq!(output.code, Some(124), "{:#?}", output.events);
}

#[test]
fn a_part_without_a_connection_says_so_and_waits() {
    let mut engine = start(&part(job(1), 0, 1, 2));
    engine.wait_until(|event| event["event"] == "connected" && event["error"]["kind"] == "connect");
    engine.signal(libc::SIGTERM);
    assert_eq!(engine.finish().code, Some(130));
}

#[test]
fn a_load_that_changes_can_be_split_and_ends_no_warm_up_by_a_command() {
    let server = Server::answering(HELLO);
    let staged = json!({"users": 0, "think": {"fixed_ns": 1_000_000}, "stages": [{"to": 9, "over_ns": 100_000_000}]});
    let job = with(job(server.port), "/load/closed", staged);
    let mut engines = vec![start(&part(job.clone(), 0, 1, 3)), start(&part(job, 1, 2, 3))];
    started(&mut engines);
    for engine in &mut engines {
        engine.say(r#"{"command":"measure","at_ns":0}"#);
    }
    for output in finished(engines) {
        assert_eq!(output.result().event["measure_start_ns"], 50_000_000);
        output.result().are_all("ok");
    }
}

#[test]
fn what_is_wrong_with_a_part_is_named() {
    let of = |first, workers, all| part(open_job(80, 1000, 8), first, workers, all);
    let alone = with(open_job(80, 1000, 8), "/part", json!({"first_worker": 0, "all_workers": 2}));
    for (job, field) in [
        (of(1, 2, 2), "part: "),
        (of(u32::MAX, 1, 2), "part: "),
        (of(0, 1, 2000), "part: "),
        (of(0, 1, 9), "workers: "),
        (alone.to_string(), "commands: "),
    ] {
        let output = Engine::start(&job).finish();
        assert_eq!(output.code, Some(2), "{job}");
        let message = output.error()["message"].as_str().unwrap().to_owned();
        assert!(message.starts_with(field), "{message} is not about {field}");
    }
    let duet = json!({"targets": [{"host": "127.0.0.1", "port": 81}], "slice_ns": 10_000_000, "guard_ns": 0});
    let both: Value = serde_json::from_str(&of(0, 1, 2)).unwrap();
    let output = run(&with(both, "/duet", duet));
    assert!(output.error()["message"].as_str().unwrap().starts_with("part: "), "{:#?}", output.events);
}
