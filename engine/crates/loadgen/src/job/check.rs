//! A check: a request or a journey to a target, read and validated like those of a job.

use std::sync::Arc;

use redline_pacing::{Profile, Think, Weights};
use redline_traffic::EngineError;
use serde::Deserialize;

use super::journey::RawJourney;
use super::requests::{self, Picks, RawRequest};
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
    #[serde(default)]
    request: Option<RawRequest>,
    #[serde(default)]
    requests: Vec<RawRequest>,
    #[serde(default)]
    journey: Option<RawJourney>,
    #[serde(default)]
    picks: Picks,
    timeout_ns: u64,
    keep_bytes: usize,
    #[serde(default)]
    trace_seed: u64,
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
        let shape = Shape::Closed { users: Profile::constant(1.0), think: Think::None, pace: None };
        let load = Load { shape, depth: 1, requests_per_connection: None, replayed: None };
        let hint = "give `request`, or `requests` and `journey`";
        let (mut requests, journey) = match (self.request, self.journey) {
            (Some(_), Some(_)) => return Err(bad("request", "there is a journey as well", hint)),
            (None, None) => return Err(bad("request", "is missing", hint)),
            (Some(_), None) if !self.requests.is_empty() => {
                return Err(bad("requests", "there is no journey of them", hint));
            }
            (Some(request), None) => (vec![request.check("request", &self.picks, &target, None, 0)?], None),
            (None, Some(journey)) => {
                let journey = journey.for_one_user().check(&self.requests, &load, 1, false)?;
                (requests::check(self.requests, &self.picks, &target, Some(&journey))?.0, Some(journey))
            }
        };
        for request in &mut requests {
            request.options.hash = true;
            request.end_with_first_event();
        }
        Ok(Job {
            target,
            requests,
            weights: Weights::new(&[1.0]).map_err(|why| bad("request.weight", &why.to_string(), "leave it out"))?,
            journey: journey.map(Arc::new),
            load,
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
            connects_at_once: None,
            commands: false,
            pids: Vec::new(),
            clocks: None,
            trace_seed: self.trace_seed,
            most_sampled: 0,
            log: None,
            duet: None,
            records: Some(self.keep_bytes),
        })
    }
}
