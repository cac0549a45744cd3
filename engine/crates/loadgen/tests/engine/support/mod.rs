//! Jobs for the engine, and its events.

pub mod engine;
pub mod http2;
pub mod output;
pub mod server;
pub mod tls;

use serde_json::{Value, json};

pub use engine::Engine;
pub use output::{EngineOutput, Outcome, histogram, requests_add_up_to};

/// The backend of the jobs of these tests: the backend named in `REDLINE_TEST_BACKEND`, or the best.
pub fn backend() -> String {
    std::env::var("REDLINE_TEST_BACKEND").unwrap_or_else(|_| "auto".to_owned())
}

/// A job of 50 ms warm-up and 300 ms measurement: two users who request `/` and think for a millisecond in between.
///
/// Users who do not think take all CPU time. The main thread of the engine then waits until its events are due for output, and
/// with it every test that waits for an event. A test of such a load overrides `/load`.
pub fn job(port: u16) -> Value {
    json!({
        "format": "redline.job/1",
        "target": {"host": "127.0.0.1", "port": port},
        "requests": [{"method": "GET", "path": "/", "expect": {"status": 200}}],
        "load": {"closed": {"users": 2, "think": {"fixed_ns": 1_000_000}}},
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

/// Many users, who think for so long that they leave the machine CPU time.
pub fn crowd_job(port: u16, users: u32) -> Value {
    with(job(port), "/load/closed", json!({"users": users, "think": {"fixed_ns": 20_000_000}}))
}

/// A job whose requests fall due at a rate, with uniform arrivals.
pub fn open_job(port: u16, rate: u32, connections: u32) -> Value {
    let open = json!({"rate_per_s": rate, "arrivals": "uniform", "connections": connections});
    with(job(port), "/load", json!({"open": open}))
}

/// The job with another value at `place`, a JSON pointer.
pub fn with(mut job: Value, place: &str, value: Value) -> Value {
    let (parent, key) = place.rsplit_once('/').unwrap();
    job.pointer_mut(parent).unwrap()[key] = value;
    job
}

/// Run a job to its end.
pub fn run(job: &Value) -> EngineOutput {
    Engine::start(&job.to_string()).finish()
}

/// Run a job that completes, and return its result, which obeys all laws of results.
pub fn complete(job: &Value) -> Outcome {
    let output = run(job);
    assert_eq!(output.code, Some(0), "{:#?}", output.events.last());
    let result = output.result();
    assert_eq!(result.event["ended"], "complete");
    assert_eq!(output.events[0]["event"], "started");
    result
}
