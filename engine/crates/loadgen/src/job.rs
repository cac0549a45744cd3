//! The job, read from standard input and validated completely before anything is started.

mod check;
mod duet;
mod journey;
mod load;
mod requests;
mod target;
mod websocket;

use std::path::PathBuf;
use std::sync::Arc;

use redline_pacing::{MOST_WORKERS, random_bits};
use redline_traffic::{EngineError, ErrorKind};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::ids::{GlobalWorkerId, WorkerId};
use crate::peers::Peers;
use crate::request_log::LogOrder;
use crate::server_clocks::{RawClocks, RemoteClocks};
use crate::shards::child::is_shard;

pub use check::parse_check;
pub use duet::Duet;
#[cfg(test)]
pub use journey::Step;
pub use journey::{Journey, RowUse};
pub use load::{Load, Shape};
#[cfg(test)]
pub use requests::Good;
pub use requests::{Request, Stream};
pub use target::{Addresses, Http, Target};
pub use websocket::{Opening, WebSocket};

/// The format of jobs that this engine reads.
pub const JOB_FORMAT: &str = "redline.job/1";
/// The longest duration in a job: thirty days.
const LONGEST_NS: u64 = 30 * 24 * 3_600_000_000_000;
/// The most requests that are kept for their traces.
const MOST_SAMPLED: u32 = 100_000;
/// The shortest interval: ten milliseconds.
const SHORTEST_INTERVAL_NS: u64 = 10_000_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawJob {
    format: String,
    target: target::RawTarget,
    requests: Vec<requests::RawRequest>,
    #[serde(default)]
    picks: requests::Picks,
    #[serde(default)]
    journey: Option<journey::RawJourney>,
    load: load::RawLoad,
    warmup_ns: u64,
    measure_ns: u64,
    #[serde(default)]
    count: Option<u64>,
    drain_ns: u64,
    timeout_ns: u64,
    interval_ns: u64,
    deadline_ns: u64,
    seed: u64,
    workers: u32,
    #[serde(default)]
    cpus: Vec<u32>,
    #[serde(default)]
    backend: Backend,
    #[serde(default)]
    spin: bool,
    #[serde(default)]
    connects_at_once: Option<u32>,
    #[serde(default)]
    shard: Option<Shard>,
    #[serde(default)]
    part: Option<RawPart>,
    #[serde(default)]
    commands: bool,
    #[serde(default)]
    pids: Vec<u32>,
    #[serde(default)]
    clocks: Option<RawClocks>,
    #[serde(default)]
    log: Option<RawLog>,
    #[serde(default)]
    traces: RawTraces,
    #[serde(default)]
    duet: Option<duet::RawDuet>,
}

/// How sockets are driven.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backend {
    /// `io_uring` if the kernel supports it, else epoll.
    #[default]
    Auto,
    Epoll,
    IoUring,
}

/// The rows of single requests.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLog {
    folder: PathBuf,
    at_most: u64,
}

/// The trace contexts of requests.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RawTraces {
    seed: u64,
    at_most: u32,
}

/// The workers of this engine among those of all engines that share a job, which run on hosts of their own.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPart {
    first_worker: u32,
    all_workers: u32,
}

/// The workers of this process among those of all processes of a job.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Shard {
    pub first_worker: u32,
    pub all_workers: u32,
    /// Where connections go, the same for all processes.
    #[serde(default)]
    pub target: Option<Peers>,
}

/// A valid job.
#[derive(Clone, Debug)]
pub struct Job {
    pub target: Target,
    pub requests: Vec<Request>,
    /// How often each request is drawn.
    pub weights: redline_pacing::Weights,
    /// The requests are steps that users take in order, in place of requests that are drawn.
    pub journey: Option<Arc<Journey>>,
    pub load: Load,
    pub warmup_ns: u64,
    pub measure_ns: u64,
    pub count: Option<u64>,
    pub drain_ns: u64,
    pub timeout_ns: u64,
    pub interval_ns: u64,
    pub deadline_ns: u64,
    pub seed: u64,
    /// Workers of this process.
    pub workers: u32,
    pub shard: Shard,
    /// Other engines do the rest of this job, and a command says when its schedule starts.
    pub is_part: bool,
    pub cpus: Vec<u32>,
    pub backend: Backend,
    pub spin: bool,
    /// How many connections are opened before a server has time to accept them; all, without it.
    pub connects_at_once: Option<u32>,
    /// A command may start the measurement before the warm-up ends.
    pub commands: bool,
    /// The server's processes, whose CPU time is read at both ends of the measurement.
    pub pids: Vec<u32>,
    /// Where CPU times are read instead, for a server on another host.
    pub clocks: Option<RemoteClocks>,
    /// Of the ids of traces.
    pub trace_seed: u64,
    /// How many requests are kept whose traces are sampled.
    pub most_sampled: usize,
    /// Single requests are written here.
    pub log: Option<LogOrder>,
    /// Several targets in turn, instead of a single target.
    pub duet: Option<Duet>,
    /// Record answers, with up to this many bytes of their bodies, and give placeholders their lowest values. Only in a check.
    pub records: Option<usize>,
}

/// A `bad_job` error that names the field.
pub fn bad(field: &str, message: &str, hint: &str) -> EngineError {
    let message = if field.is_empty() { message.to_owned() } else { format!("{field}: {message}") };
    EngineError { kind: ErrorKind::BadJob, message, hint: hint.to_owned() }
}

/// Parse JSON into a type that is not yet validated.
fn parse<T: DeserializeOwned>(text: &str) -> Result<T, EngineError> {
    let mut json = serde_json::Deserializer::from_str(text);
    let raw = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let path = error.path().to_string();
        let field = if path == "." { "" } else { &path };
        bad(field, &error.inner().to_string(), "see its format in docs/reference/engine-protocol.md")
    })?;
    json.end().map_err(|error| bad("", &error.to_string(), "write one JSON object and nothing after it"))?;
    Ok(raw)
}

impl Job {
    /// Parse and validate a job.
    ///
    /// # Errors
    /// A `bad_job` that names the first invalid field.
    pub fn parse(text: &str) -> Result<Self, EngineError> {
        Self::parse_for(text, 0)
    }

    /// Parse and validate a duet for one of its targets; 0 is the job's own target.
    ///
    /// # Errors
    /// A `bad_job` that names the first invalid field.
    pub fn parse_for(text: &str, target: usize) -> Result<Self, EngineError> {
        parse::<RawJob>(text)?.check(target)
    }

    /// The number of a worker of this process among the workers of all processes.
    pub fn global(&self, worker: WorkerId) -> GlobalWorkerId {
        GlobalWorkerId(self.shard.first_worker + worker.0)
    }

    /// A worker's share of a whole number.
    pub fn share_of(&self, all: u64, worker: WorkerId) -> u64 {
        let all_workers = u64::from(self.shard.all_workers);
        all / all_workers + u64::from(u64::from(self.global(worker).0) < all % all_workers)
    }

    /// The most connections of the workers of this process.
    pub fn own_connections(&self) -> u32 {
        let all = u64::from(self.load.connections());
        (0..self.workers).map(|worker| self.share_of(all, WorkerId(worker)) as u32).sum()
    }
}

impl RawJob {
    fn check(self, number: usize) -> Result<Job, EngineError> {
        if self.format != JOB_FORMAT {
            let message = format!("this engine reads {JOB_FORMAT:?}, not {:?}", self.format);
            return Err(bad("format", &message, "use the engine that belongs to your version of the lab"));
        }
        self.check_durations()?;
        if self.traces.at_most > MOST_SAMPLED {
            let message = format!("{} is above {MOST_SAMPLED}", self.traces.at_most);
            return Err(bad("traces.at_most", &message, "they are a sample anyway"));
        }
        if self.connects_at_once == Some(0) {
            return Err(bad("connects_at_once", "no connection would be opened", "give 1 at least, or leave it out"));
        }
        let shard = self.check_workers()?;
        self.check_duet()?;
        self.check_part()?;
        let (duet, others) = self.duet.map(duet::RawDuet::check).transpose()?.unzip();
        let target = match others.into_iter().flatten().nth(number.wrapping_sub(1)) {
            Some(other) => other.check(&format!("duet.targets[{}]", number - 1))?,
            None => self.target.check("target")?,
        };
        // A part is started by a command, and accepts no other if its load changes.
        let changes = self.load.changes_over_time() && duet.is_none();
        if self.commands && self.part.is_none() && changes {
            let message = "the load changes from the beginning of the measurement on, so that has to be known before";
            return Err(bad("commands", message, "leave out `commands`, or the stages or replayed arrivals"));
        }
        let load = self.load.check(self.warmup_ns, self.requests.len())?;
        if u64::from(shard.all_workers) > u64::from(load.connections()) {
            let message = format!("{} is not between 1 and {}", shard.all_workers, load.connections());
            return Err(bad("workers", &message, "each worker needs a connection of its own"));
        }
        let is_duet = duet.is_some();
        let journey = self.journey.map(|journey| journey.check(&self.requests, &load, shard.all_workers, is_duet));
        let journey = journey.transpose()?.map(Arc::new);
        let (requests, weights) = requests::check(self.requests, &self.picks, &target, journey.as_deref())?;
        let websocket = requests.iter().position(|request| request.websocket.is_some());
        if let Some(request) = websocket.filter(|_| requests.len() > 1 && journey.is_none()) {
            let message = "each connection is one WebSocket, on which a single kind of message is sent";
            return Err(bad(&format!("requests[{request}].websocket"), message, "leave out the other requests"));
        }
        let expecting = requests.iter().position(|request| request.expect_continue_ns.is_some());
        if let Some(request) = expecting.filter(|_| load.depth > 1) {
            let message = "a request that is pipelined behind it would come before its body";
            return Err(bad(&format!("requests[{request}].expect_continue_ns"), message, "set depth to 1"));
        }
        let stream = requests.iter().position(|request| request.stream.is_some());
        let has_streams = target.http == Http::V2 && websocket.is_none();
        if let Some(request) = stream.filter(|_| !has_streams && load.depth > 1) {
            let message = "requests behind it on its connection would wait for its end";
            return Err(bad(&format!("requests[{request}].stream"), message, "set depth to 1, or use HTTP/2"));
        }
        Ok(Job {
            target,
            requests,
            weights,
            journey,
            load,
            warmup_ns: self.warmup_ns,
            measure_ns: self.measure_ns,
            count: self.count,
            drain_ns: self.drain_ns,
            timeout_ns: self.timeout_ns,
            interval_ns: self.interval_ns,
            deadline_ns: self.deadline_ns,
            seed: self.seed,
            workers: self.workers,
            shard,
            is_part: self.part.is_some(),
            cpus: self.cpus,
            backend: self.backend,
            spin: self.spin,
            connects_at_once: self.connects_at_once,
            commands: self.commands && !changes,
            pids: self.pids,
            clocks: self.clocks.map(RawClocks::check).transpose()?,
            // The requests of all targets of a duet have the same numbers.
            trace_seed: random_bits(self.seed, self.traces.seed, number as u64),
            most_sampled: self.traces.at_most as usize,
            log: self.log.map(|RawLog { folder, at_most }| LogOrder { folder, at_most }),
            duet,
            records: None,
        })
    }

    /// Reject what a job with a duet cannot have.
    fn check_duet(&self) -> Result<(), EngineError> {
        if self.duet.is_none() {
            return Ok(());
        }
        let hint = "leave it out, or the duet";
        if self.load.changes_over_time() && !self.load.is_replay() {
            return Err(bad("duet", "the load changes over time, and slices of it would differ", hint));
        }
        if self.log.is_some() {
            return Err(bad("log", "single requests of a duet are not logged", hint));
        }
        if self.count.is_some() {
            return Err(bad("count", "a duet ends by time", hint));
        }
        if !self.pids.is_empty() {
            return Err(bad("pids", "a duet has the processes of each target", "give them in `duet.pids`"));
        }
        Ok(())
    }

    /// Reject what a part of a job cannot have.
    fn check_part(&self) -> Result<(), EngineError> {
        if self.part.is_none() {
            return Ok(());
        }
        if self.duet.is_some() {
            return Err(bad("part", "a duet is loaded by one engine", "leave it out, or the duet"));
        }
        if !self.commands {
            return Err(bad("commands", "a command starts the schedule of a part", "set it to true"));
        }
        Ok(())
    }

    fn check_workers(&self) -> Result<Shard, EngineError> {
        if !(1..=MOST_WORKERS).contains(&self.workers) {
            let message = format!("{} is not between 1 and {MOST_WORKERS}", self.workers);
            return Err(bad("workers", &message, "one for each core that the engine may use"));
        }
        if self.shard.is_some() && !is_shard() {
            return Err(bad("shard", "this key is the engine's own", "leave it out"));
        }
        let (field, shard) = match (self.shard.clone(), self.part) {
            (Some(shard), _) => ("shard", shard),
            (None, Some(RawPart { first_worker, all_workers })) => {
                ("part", Shard { first_worker, all_workers, target: None })
            }
            (None, None) => ("workers", Shard { first_worker: 0, all_workers: self.workers, target: None }),
        };
        let beyond = shard.first_worker.checked_add(self.workers).is_none_or(|end| end > shard.all_workers);
        if beyond || shard.all_workers > MOST_WORKERS {
            let message = format!(
                "its workers are not among {} workers, or these are more than {MOST_WORKERS}",
                shard.all_workers
            );
            return Err(bad(field, &message, "number the workers of all parts from 0"));
        }
        if self.count == Some(0) {
            return Err(bad("count", "0 requests are nothing to measure", "give a number, or null to stop by time"));
        }
        Ok(shard)
    }

    fn check_durations(&self) -> Result<(), EngineError> {
        let durations = [
            ("warmup_ns", self.warmup_ns, 0),
            ("measure_ns", self.measure_ns, 1),
            ("drain_ns", self.drain_ns, 0),
            ("timeout_ns", self.timeout_ns, 1),
            ("interval_ns", self.interval_ns, SHORTEST_INTERVAL_NS),
            ("deadline_ns", self.deadline_ns, 1),
        ];
        for (field, ns, least) in durations {
            if !(least..=LONGEST_NS).contains(&ns) {
                let message = format!("{ns} is not between {least} and {LONGEST_NS}");
                return Err(bad(field, &message, "durations are in nanoseconds"));
            }
        }
        Ok(())
    }
}

fn from_hex(text: &str) -> Option<[u8; 32]> {
    let digits: Vec<u8> = text.chars().map(|c| c.to_digit(16).map(|digit| digit as u8)).collect::<Option<_>>()?;
    let bytes: Vec<u8> = digits.chunks(2).map(|pair| pair[0] << 4 | pair.get(1).copied().unwrap_or(0)).collect();
    (digits.len() == 64).then(|| bytes.try_into().ok())?
}

#[cfg(test)]
pub mod tests;
