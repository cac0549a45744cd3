//! The CPU time of a fixed piece of work, by core.

use std::process::{Command, Output};

use serde_json::Value;

fn fixed_work(cpus: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_redline-engine")).args(["fixed-work", cpus]).output().unwrap()
}

#[test]
fn it_takes_cpu_time_on_each_core() {
    let output = fixed_work("0");
    assert!(output.status.success(), "{output:?}");
    let by_core: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(by_core.as_object().unwrap().len(), 1);
    assert!(by_core["0"].as_u64().unwrap() > 0, "{by_core}");
}

#[test]
fn cores_that_are_none_are_refused() {
    let wrong = fixed_work("0,x");
    assert_eq!(wrong.status.code(), Some(2), "{wrong:?}");
    let missing = fixed_work("1023");
    assert_eq!(missing.status.code(), Some(1), "{missing:?}");
    assert!(wrong.stdout.is_empty() && missing.stdout.is_empty());
}
