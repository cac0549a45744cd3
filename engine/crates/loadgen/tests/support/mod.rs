//! Runs the real engine, and reads what it tells.
#![allow(dead_code, reason = "each test file uses a part of this")]

pub mod server;

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use redline_traffic::Histogram;
use serde_json::{Value, json};

/// Which backend the jobs of these tests ask for: the one that is named in `REDLINE_TEST_BACKEND`, or the best.
pub fn backend() -> String {
    std::env::var("REDLINE_TEST_BACKEND").unwrap_or_else(|_| "auto".to_owned())
}

/// A job of 50 ms warm-up and 300 ms measurement: two users who ask for `/`.
pub fn job(port: u16) -> Value {
    json!({
        "format": "redline.job/1",
        "target": {"host": "127.0.0.1", "port": port},
        "requests": [{"method": "GET", "path": "/", "expect": {"status": 200}}],
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
        "backend": backend(),
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
    /// What it said on standard error.
    pub log: String,
}

/// An engine that runs. It is killed if it is still there when this is dropped.
pub struct Engine {
    child: Child,
    input: Option<ChildStdin>,
    out: Option<BufReader<ChildStdout>>,
    seen: Vec<Value>,
}

impl Engine {
    pub fn start(job: &str) -> Self {
        Self::start_with(job, |_| {})
    }

    pub fn start_with(job: &str, prepare: impl FnOnce(&mut Command)) -> Self {
        let mut engine = Self::start_heeding(job, prepare);
        engine.input = None;
        engine
    }

    /// Its standard input stays open, for what is said to it later.
    pub fn start_heeding(job: &str, prepare: impl FnOnce(&mut Command)) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_redline-engine"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        prepare(&mut command);
        let mut child = command.spawn().unwrap();
        // It may refuse a job before it has read it all.
        let mut input = child.stdin.take();
        let _ = input.as_mut().unwrap().write_all(job.as_bytes());
        let out = child.stdout.take().map(BufReader::new);
        Self { child, input, out, seen: Vec::new() }
    }

    /// Say one line to it.
    pub fn say(&mut self, line: &str) {
        self.input.as_mut().unwrap().write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    pub fn pid(&self) -> libc::pid_t {
        libc::pid_t::try_from(self.child.id()).unwrap()
    }

    pub fn signal(&self, signal: i32) {
        // SAFETY: no memory is passed; the process is our child and has not been waited for.
        assert_eq!(unsafe { libc::kill(self.pid(), signal) }, 0);
    }

    /// Take its descriptors away: from now on it gets none that is not below `most`.
    pub fn limit_open_files(&self, most: u64) {
        let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
        // SAFETY: the limit is valid for reads, and the old one is not asked for.
        let set = unsafe { libc::prlimit(self.pid(), libc::RLIMIT_NOFILE, &raw const limit, std::ptr::null_mut()) };
        assert_eq!(set, 0);
    }

    /// Let the pipe of its output hold as little as the kernel allows.
    pub fn shrink_output(&self) {
        let out = self.out.as_ref().unwrap().get_ref();
        // SAFETY: no memory is passed; the descriptor is open.
        assert!(unsafe { libc::fcntl(out.as_raw_fd(), libc::F_SETPIPE_SZ, 4096) } > 0);
    }

    /// Nobody reads its output any more.
    pub fn stop_reading(&mut self) {
        drop(self.out.take());
    }

    fn read_event(&mut self) -> Option<&Value> {
        let mut line = String::new();
        if self.out.as_mut().unwrap().read_line(&mut line).unwrap() == 0 {
            return None;
        }
        self.seen.push(serde_json::from_str(&line).unwrap());
        self.seen.last()
    }

    /// Wait for an event of which this is true.
    pub fn wait_until(&mut self, mut wanted: impl FnMut(&Value) -> bool) {
        while let Some(event) = self.read_event() {
            if wanted(event) {
                return;
            }
        }
        panic!("the engine ended without telling what was waited for: {:#?}", self.seen.last());
    }

    /// Wait for an interval of the measurement in which this count, by its JSON pointer, is not 0.
    pub fn wait_for_measured(&mut self, count: &str) {
        self.wait_until(|event| event["phase"] == "measure" && event["counts"].pointer(count).unwrap() != 0);
    }

    /// Read to the end of its output and wait for its end.
    pub fn finish(mut self) -> Told {
        while self.read_event().is_some() {}
        let mut log = String::new();
        if let Some(mut err) = self.child.stderr.take() {
            err.read_to_string(&mut log).unwrap();
        }
        let code = self.exit_code();
        Told { code, events: std::mem::take(&mut self.seen), log }
    }

    /// Wait for its end; a minute is past every deadline of these tests.
    pub fn exit_code(&mut self) -> Option<i32> {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(90) {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            thread::sleep(Duration::from_millis(5));
        }
        panic!("the engine outlived its job");
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether a process is stopped by a signal.
pub fn is_stopped(pid: libc::pid_t) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(") ").unwrap().1.starts_with('T')
}

/// Let a command hold so many descriptors at most, whatever this host allows.
pub fn limit_open_files(command: &mut Command, most: u64) {
    let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
    // SAFETY: the call that is made between fork and exec is async-signal-safe and touches no memory but the limit.
    unsafe {
        command.pre_exec(move || match libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        });
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
        for counter in
            ["due", "sent", "waited", "late", "retried", "reconnects", "handshakes", "saturated", "exhausted"]
        {
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
        assert!(self.count("exhausted") <= self.outcome("connect"));
    }

    /// All requests, some at least, ended so.
    pub fn are_all(&self, outcome: &str) {
        assert!(self.total() > 0);
        assert_eq!(self.outcome(outcome), self.total(), "{:#}", self.event["counts"]);
    }
}
