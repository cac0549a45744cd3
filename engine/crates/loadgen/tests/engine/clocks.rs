//! The clocks of the server's processes and of the hypervisor are read at both ends of the measurement.

use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::server::{HELLO, Server};
use crate::support::{Engine, complete, job, run, with};

/// The CPU time of this process, in which the servers run.
fn own_cpu_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writes.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) }, 0);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// They are read at or after both ends of the window; how long after depends on the machine.
fn in_order(result: &Value) {
    let of = |value: &Value| value.as_u64().unwrap();
    let clocks = &result["clocks"];
    assert!(of(&clocks["start_ns"]) >= of(&result["measure_start_ns"]), "{result}");
    assert!(of(&clocks["end_ns"]) >= of(&result["measure_end_ns"]), "{result}");
}

#[test]
fn the_servers_clock_is_read_at_both_ends_of_the_measurement() {
    let server = Server::answering(HELLO);
    for workers in [1, 2] {
        let before_ns = own_cpu_ns();
        let job = with(with(job(server.port), "/pids", json!([std::process::id()])), "/workers", json!(workers));
        let result = complete(&job);
        in_order(&result.event);
        let read_ns = result.event["clocks"]["server_cpu_ns"].as_u64().unwrap();
        assert!((1..=own_cpu_ns() - before_ns).contains(&read_ns), "{read_ns}");
    }
}

#[test]
fn a_process_that_is_gone_has_no_clock_and_neither_have_none() {
    let server = Server::answering(HELLO);
    // The highest number that a process can have, which none has.
    for pids in [json!([]), json!([std::process::id(), 4_194_304])] {
        let result = complete(&with(job(server.port), "/pids", pids));
        in_order(&result.event);
        assert!(result.event["clocks"]["server_cpu_ns"].is_null());
    }
}

#[test]
fn they_are_read_where_a_command_starts_the_measurement() {
    let server = Server::answering(HELLO);
    let job = with(with(job(server.port), "/commands", json!(true)), "/warmup_ns", json!(30_000_000_000_u64));
    let mut engine = Engine::start_heeding(&format!("{job}\n"), |_| {});
    engine.wait_until(|event| event["phase"] == "warmup");
    engine.say(r#"{"command":"measure"}"#);
    let output = engine.finish();
    assert_eq!(output.code, Some(0));
    in_order(&output.result().event);
}

#[test]
fn a_measurement_that_ends_early_has_none() {
    let server = Server::answering(HELLO);
    let counted = run(&with(job(server.port), "/count", json!(3)));
    assert!(counted.result().event.get("clocks").is_none());

    let mut engine = Engine::start(&with(job(server.port), "/measure_ns", json!(30_000_000_000_u64)).to_string());
    engine.wait_until(|event| event["phase"] == "measure");
    thread::sleep(Duration::from_millis(5));
    engine.signal(libc::SIGINT);
    assert!(engine.finish().result().event.get("clocks").is_none());
}
