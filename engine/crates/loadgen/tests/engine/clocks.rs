//! The clocks of the server's processes and of the hypervisor are read at both ends of the measurement.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
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

/// The clocks are read at or after both ends of the window; how long after depends on the machine.
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

/// An engine that serves the clocks of these processes, as on another host, and the key of a job that reads them.
pub fn served(pids: &Value) -> (Child, Value) {
    let token = "00112233445566778899aabbccddeeff";
    let mut command = Command::new(env!("CARGO_BIN_EXE_redline-engine"));
    command.args(["clocks", "127.0.0.1"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    writeln!(child.stdin.as_mut().unwrap(), "{}", json!({"token": token, "pids": pids})).unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let listening: Value = serde_json::from_str(&line).unwrap();
    (child, json!({"address": listening["address"], "token": token}))
}

#[test]
fn the_clocks_of_another_host_are_read_there() {
    let server = Server::answering(HELLO);
    let before_ns = own_cpu_ns();
    let (mut child, clocks) = served(&json!([[std::process::id()]]));
    let result = complete(&with(job(server.port), "/clocks", clocks));
    in_order(&result.event);
    let read_ns = result.event["clocks"]["server_cpu_ns"].as_u64().unwrap();
    assert!((1..=own_cpu_ns() - before_ns).contains(&read_ns), "{read_ns}");
    // It ends with its standard input.
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    let gone = complete(&with(job(server.port), "/clocks", json!({"address": "127.0.0.1:9", "token": "0".repeat(32)})));
    assert!(gone.event["clocks"]["server_cpu_ns"].is_null());
}

#[test]
fn clocks_that_cannot_be_served_are_refused() {
    for (address, line, code, why) in [
        ("here", "", 2, "is no address"),
        ("127.0.0.1", "{}", 1, "missing field"),
        ("127.0.0.1", r#"{"token": "abc", "pids": []}"#, 1, "32 hexadecimal digits"),
        (
            "192.0.2.1",
            r#"{"token": "00112233445566778899aabbccddeeff", "pids": []}"#,
            1,
            "cannot be served on 192.0.2.1",
        ),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_redline-engine"));
        command.args(["clocks", address]).stdin(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // This fails if the engine has ended before it read anything.
        let _ = writeln!(child.stdin.take().unwrap(), "{line}");
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(why), "{said}");
    }
}

#[test]
fn a_process_that_is_gone_has_no_clock_and_neither_have_none() {
    let server = Server::answering(HELLO);
    // The highest number that a process can have; no process has it.
    for pids in [json!([]), json!([4_194_304])] {
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
