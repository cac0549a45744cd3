//! Runs the real engine, and reads what it tells.
#![allow(dead_code, reason = "each test file uses a part of this")]

pub mod server;

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use redline_traffic::Histogram;
use serde_json::{Value, json};

/// A job of 50 ms warm-up and 300 ms measurement: two users who ask for `/`.
pub fn job(port: u16) -> Value {
    json!({
        "format": "redline.job/1",
        "target": {"host": "127.0.0.1", "port": port},
        "request": {"method": "GET", "path": "/"},
        "expect": {"status": 200},
        "load": {"closed": {"users": 2}},
        "warmup_ns": 50_000_000_u64,
        "measure_ns": 300_000_000_u64,
        "drain_ns": 1_000_000_000_u64,
        "timeout_ns": 5_000_000_000_u64,
        "interval_ns": 100_000_000_u64,
        "deadline_ns": 60_000_000_000_u64,
        "seed": 1,
        "workers": 1,
        "cpus": [],
    })
}

/// A job whose requests fall due at a rate, with uniform arrivals.
pub fn open_job(port: u16, rate: u32, connections: u32) -> Value {
    let open = json!({"rate_per_s": rate, "arrivals": "uniform", "connections": connections});
    with(job(port), "/load", json!({"open": open}))
}

/// The job with one thing different; `place` is a JSON pointer.
pub fn with(mut job: Value, place: &str, value: Value) -> Value {
    let (parent, key) = place.rsplit_once('/').unwrap();
    job.pointer_mut(parent).unwrap()[key] = value;
    job
}

/// What an engine told, and how it ended.
#[derive(Debug)]
pub struct Told {
    pub code: Option<i32>,
    pub events: Vec<Value>,
}

/// An engine that runs. It is killed if it is still there when this is dropped.
pub struct Engine(Child);

impl Engine {
    pub fn start(job: &str) -> Self {
        Self::start_with(job, |_| {})
    }

    pub fn start_with(job: &str, prepare: impl FnOnce(&mut Command)) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_redline-engine"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        prepare(&mut command);
        let mut child = command.spawn().unwrap();
        // It may refuse a job before it has read it all.
        let _ = child.stdin.take().unwrap().write_all(job.as_bytes());
        Self(child)
    }

    pub fn child(&mut self) -> &mut Child {
        &mut self.0
    }

    pub fn signal(&self, signal: i32) {
        let pid = libc::pid_t::try_from(self.0.id()).unwrap();
        // SAFETY: no memory is passed; the process is our child and has not been waited for.
        assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
    }

    /// Wait for one line that has this text.
    pub fn wait_for(&mut self, text: &str) -> String {
        let out = self.0.stdout.as_mut().unwrap();
        let mut line = Vec::new();
        let mut byte = [0];
        while out.read(&mut byte).unwrap() == 1 {
            if byte[0] != b'\n' {
                line.push(byte[0]);
                continue;
            }
            let whole = String::from_utf8(std::mem::take(&mut line)).unwrap();
            if whole.contains(text) {
                return whole;
            }
        }
        panic!("the engine ended without telling {text}");
    }

    /// Read to the end of its output and wait for its end.
    pub fn finish(mut self) -> Told {
        let mut text = String::new();
        self.0.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        let events = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        Told { code: self.exit_code(), events }
    }

    /// Wait for its end; a minute is past every deadline of these tests.
    pub fn exit_code(&mut self) -> Option<i32> {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(90) {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status.code();
            }
            thread::sleep(Duration::from_millis(5));
        }
        panic!("the engine outlived its job");
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Run a job to its end.
pub fn run(job: &Value) -> Told {
    Engine::start(&job.to_string()).finish()
}

/// Run a job that completes; its result, held to every law that all results obey.
pub fn complete(job: &Value) -> Outcome {
    let told = run(job);
    assert_eq!(told.code, Some(0), "{:#?}", told.events.last());
    let result = told.result();
    assert_eq!(result.event["ended"], "complete");
    assert_eq!(told.events[0]["event"], "started");
    result
}

pub fn histogram(event: &Value, name: &str) -> Histogram {
    Histogram::decode(event[name].as_str().unwrap()).unwrap()
}

impl Told {
    pub fn of_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Value> {
        self.events.iter().filter(move |event| event["event"] == kind)
    }

    /// The result, after checking that nothing was lost on the way to it.
    pub fn result(&self) -> Outcome {
        let event = self.events.last().unwrap().clone();
        assert_eq!(event["event"], "result", "{event:#}");
        let result = Outcome { event };
        result.is_conserved();
        self.intervals_add_up_to(&result);
        result
    }

    fn intervals_add_up_to(&self, result: &Outcome) {
        let mut end = 0;
        let mut measured = Vec::new();
        for (index, interval) in self.of_kind("interval").enumerate() {
            assert_eq!(interval["index"], index);
            assert_eq!(interval["start_ns"], end);
            end = interval["end_ns"].as_u64().unwrap();
            assert!(interval["start_ns"].as_u64().unwrap() < end, "{interval}");
            if interval["phase"] != "warmup" {
                measured.push(interval);
            }
        }
        for name in ["response", "service", "lateness"] {
            let mut sum = Histogram::new();
            for interval in &measured {
                sum.add(&histogram(interval, name));
            }
            assert_eq!(sum, result.histogram(name), "{name}");
        }
        for counter in ["due", "sent", "waited", "late", "reconnects", "saturated"] {
            let sum: u64 = measured.iter().map(|interval| interval["counts"][counter].as_u64().unwrap()).sum();
            assert_eq!(sum, result.count(counter), "{counter}");
        }
        let window = measured.iter().filter(|interval| interval["phase"] == "measure");
        let completed: u64 = window.map(|interval| interval["counts"]["completed"].as_u64().unwrap()).sum();
        assert_eq!(completed, result.count("completed"));
    }

    /// The one event of a job that could not run.
    pub fn error(&self) -> &Value {
        assert_eq!(self.events.len(), 1, "{:#?}", self.events);
        assert_eq!(self.events[0]["event"], "error");
        assert_ne!(self.events[0]["hint"], "");
        &self.events[0]
    }
}

/// A `result`.
pub struct Outcome {
    pub event: Value,
}

impl Outcome {
    pub fn count(&self, name: &str) -> u64 {
        self.event["counts"][name].as_u64().unwrap()
    }

    pub fn outcome(&self, name: &str) -> u64 {
        self.event["counts"]["outcomes"][name].as_u64().unwrap()
    }

    pub fn total(&self) -> u64 {
        self.event["counts"]["outcomes"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum()
    }

    pub fn histogram(&self, name: &str) -> Histogram {
        histogram(&self.event, name)
    }

    /// Every request that fell due is in the response histogram and has one outcome.
    fn is_conserved(&self) {
        assert_eq!(self.total(), self.count("due"), "{:#}", self.event["counts"]);
        assert_eq!(self.histogram("response").count(), self.count("due"));
        assert_eq!(self.histogram("lateness").count(), self.count("due"));
        assert_eq!(self.histogram("service").count(), self.count("sent"));
    }

    /// All requests, some at least, ended so.
    pub fn are_all(&self, outcome: &str) {
        assert!(self.total() > 0);
        assert_eq!(self.outcome(outcome), self.total(), "{:#}", self.event["counts"]);
    }
}
