//! A check: a request to a target, read and validated like those of a job.

use std::sync::Arc;

use redline_pacing::{Profile, Think, Weights};
use redline_traffic::EngineError;
use serde::Deserialize;

use super::requests::{Picks, RawRequest};
use super::target::RawTarget;
use super::{Backend, Job, LONGEST_NS, Load, Shape, Shard, bad, parse};

/// The format of checks that this engine reads.
const CHECK_FORMAT: &str = "redline.check/1";
/// The most bytes of a body that a check keeps.
const MOST_KEPT_BYTES: usize = 64 * 1024 * 1024;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCheck {
    format: String,
    target: RawTarget,
    request: RawRequest,
    #[serde(default)]
    picks: Picks,
    timeout_ns: u64,
    keep_bytes: usize,
}

/// Parse and validate a check: a job of one user who sends a single request, whose answer is recorded.
///
/// # Errors
/// A `bad_job` that names the first invalid field.
pub fn parse_check(text: &str) -> Result<Arc<Job>, EngineError> {
    parse::<RawCheck>(text)?.check().map(Arc::new)
}

impl RawCheck {
    fn check(self) -> Result<Job, EngineError> {
        if self.format != CHECK_FORMAT {
            let message = format!("this engine reads {CHECK_FORMAT:?}, not {:?}", self.format);
            return Err(bad("format", &message, "use the engine that belongs to your version of the lab"));
        }
        if !(1..=LONGEST_NS).contains(&self.timeout_ns) {
            let message = format!("{} is not between 1 and {LONGEST_NS}", self.timeout_ns);
            return Err(bad("timeout_ns", &message, "durations are in nanoseconds"));
        }
        if self.keep_bytes > MOST_KEPT_BYTES {
            let message = format!("{} is not between 0 and {MOST_KEPT_BYTES}", self.keep_bytes);
            return Err(bad("keep_bytes", &message, "the length and the SHA-256 are those of the whole body"));
        }
        let target = self.target.check("target")?;
        let mut request = self.request.check("request", &self.picks, &target)?;
        request.options.hash = true;
        request.end_with_first_event();
        let shape = Shape::Closed { users: Profile::constant(1.0), think: Think::None, pace: None };
        Ok(Job {
            target,
            requests: vec![request],
            weights: Weights::new(&[1.0]).map_err(|why| bad("request.weight", &why.to_string(), "leave it out"))?,
            load: Load { shape, depth: 1, requests_per_connection: None, replayed: None },
            warmup_ns: 0,
            measure_ns: self.timeout_ns,
            count: Some(1),
            drain_ns: self.timeout_ns,
            timeout_ns: self.timeout_ns,
            interval_ns: LONGEST_NS,
            deadline_ns: LONGEST_NS,
            seed: 0,
            workers: 1,
            shard: Shard { first_worker: 0, all_workers: 1, target: None },
            is_part: false,
            cpus: Vec::new(),
            backend: Backend::Epoll,
            spin: false,
            commands: false,
            pids: Vec::new(),
            clocks: None,
            duet: None,
            records: Some(self.keep_bytes),
        })
    }
}
