//! A warm-up that a command ends while the load runs.

use serde_json::{Value, json};

use crate::support::engine::limit_open_files;
use crate::support::server::{HELLO, Server};
use crate::support::{Engine, EngineOutput, job, open_job, run, with};

const INTERVAL_NS: u64 = 20_000_000;
const MEASURE_NS: u64 = 100_000_000;
const LONG_NS: u64 = 30_000_000_000;

/// A job with a warm-up of at most 30 s that accepts commands, as a line.
fn heeding(job: Value) -> Value {
    let job = with(with(job, "/commands", json!(true)), "/warmup_ns", json!(LONG_NS));
    with(with(job, "/measure_ns", json!(MEASURE_NS)), "/interval_ns", json!(INTERVAL_NS))
}

fn start(job: &Value) -> Engine {
    Engine::start_heeding(&format!("{job}\n"), |_| {})
}

/// Let it warm up for a while, and send the command to measure.
fn measured(mut engine: Engine) -> EngineOutput {
    let mut seen = 0;
    engine.wait_until(|event| {
        seen += u64::from(event["event"] == "interval");
        seen == 3
    });
    engine.say(r#"{"command":"measure"}"#);
    let output = engine.finish();
    assert_eq!(output.code, Some(0), "{:#?}\n{}", output.events.last(), output.log);
    output
}

/// When the measurement began, after checking that it began at the end of an interval and had its length.
fn beginning(output: &EngineOutput) -> u64 {
    let result = output.result().event;
    let (start_ns, end_ns) = (result["measure_start_ns"].as_u64().unwrap(), result["measure_end_ns"].as_u64().unwrap());
    assert_eq!((start_ns % INTERVAL_NS, end_ns - start_ns), (0, MEASURE_NS));
    assert!((3 * INTERVAL_NS..LONG_NS).contains(&start_ns), "{start_ns}");
    let of = |phase| output.of_kind("interval").filter(move |interval| interval["phase"] == phase);
    assert_eq!(of("warmup").last().unwrap()["end_ns"], start_ns);
    assert_eq!(of("measure").next().unwrap()["start_ns"], start_ns);
    assert_eq!(of("measure").last().unwrap()["end_ns"], end_ns);
    start_ns
}

#[test]
fn the_measurement_begins_for_all_workers_at_one_instant() {
    let server = Server::answering(HELLO);
    for workers in [1, 3] {
        let job = with(heeding(with(job(server.port), "/load/closed/users", json!(6))), "/workers", json!(workers));
        let output = measured(start(&job));
        beginning(&output);
        output.result().are_all("ok");
    }
}

#[test]
fn due_times_do_not_move() {
    let server = Server::answering(HELLO);
    let output = measured(start(&with(heeding(open_job(server.port, 1000, 4)), "/workers", json!(2))));
    let start_ns = beginning(&output);
    let result = output.result();
    // A request per millisecond of the schedule, in the window of the result and before it.
    assert_eq!(result.count("due"), 100);
    let warm = output.of_kind("interval").filter(|interval| interval["phase"] == "warmup");
    let warm: u64 = warm.map(|interval| interval["counts"]["due"].as_u64().unwrap()).sum();
    // Warm-up requests that were taken late, when it was over, belong to neither.
    assert!((1..=start_ns / 1_000_000).contains(&warm), "{warm} before {start_ns}");
}

#[test]
fn a_pace_and_a_count_hold() {
    let server = Server::answering(HELLO);
    let paced = with(job(server.port), "/load/closed", json!({"users": 5, "pace_per_s": 50}));
    let output = measured(start(&heeding(paced)));
    beginning(&output);
    assert_eq!(output.result().count("due"), 5 * 5);
    // Two of the three workers have neither of the two requests.
    let counted = with(with(heeding(open_job(server.port, 1000, 4)), "/workers", json!(3)), "/count", json!(1));
    let output = measured(start(&counted));
    assert_eq!(output.result().count("due"), 1);
}

#[test]
fn many_processes_begin_at_one_instant() {
    let server = Server::answering(HELLO);
    let job = heeding(open_job(server.port, 1000, 100));
    let output = measured(Engine::start_heeding(&format!("{job}\n"), |command| limit_open_files(command, 60)));
    assert_eq!(output.events[0]["engine"]["processes"], 3);
    beginning(&output);
    assert_eq!(output.result().count("due"), 100);
}

#[test]
fn without_a_command_the_warm_up_lasts_as_planned() {
    let server = Server::answering(HELLO);
    let short = with(heeding(job(server.port)), "/warmup_ns", json!(50_000_000));
    // Standard input ends with the job, or has an invalid command, or a command after the end.
    let mut late = Engine::start_heeding(&format!("{short}\n{{\"command\":\"begin\"}}\n"), |_| {});
    late.wait_until(|event| event["phase"] == "measure");
    late.say(r#"{"command":"measure"}"#);
    let late = late.finish();
    assert!(late.log.contains("a command cannot be understood"), "{}", late.log);
    for output in [run(&short), late] {
        assert_eq!(output.code, Some(0), "{:#?}", output.events.last());
        let result = output.result().event;
        assert_eq!((&result["measure_start_ns"], &result["measure_end_ns"]), (&json!(50_000_000), &json!(150_000_000)));
    }
}

#[test]
fn a_command_may_come_before_the_load_starts() {
    let server = Server::answering(HELLO);
    let job = heeding(job(server.port));
    let engine = Engine::start_heeding(&format!("{job}\n{{\"command\":\"measure\"}}\n"), |_| {});
    let output = engine.finish();
    assert_eq!(output.code, Some(0), "{:#?}", output.events.last());
    let start_ns = output.result().event["measure_start_ns"].as_u64().unwrap();
    assert!(start_ns.is_multiple_of(INTERVAL_NS) && start_ns < LONG_NS, "{start_ns}");
}

#[test]
fn an_interrupt_ends_a_warm_up_that_waits_for_a_command() {
    let server = Server::answering(HELLO);
    let mut engine = start(&heeding(job(server.port)));
    engine.wait_until(|event| event["event"] == "interval");
    engine.signal(libc::SIGINT);
    let output = engine.finish();
    assert_eq!(output.code, Some(130));
    let result = output.result().event;
    assert_eq!(result["measure_start_ns"], result["measure_end_ns"]);
}

#[test]
fn a_load_with_a_course_of_its_own_cannot_wait_for_a_command() {
    let course = json!([{"to": 4, "over_ns": 0}]);
    let staged = with(job(80), "/load/closed", json!({"users": 2, "stages": course}));
    let replayed = with(job(80), "/load", json!({"open": {"arrivals": {"replayed_ns": [0]}, "connections": 2}}));
    for job in [staged, replayed] {
        let output = run(&heeding(job));
        assert_eq!(output.code, Some(2));
        assert!(output.error()["message"].as_str().unwrap().starts_with("commands: "), "{:#?}", output.events);
    }
}
