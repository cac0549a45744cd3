//! The load of a job.

use std::sync::Arc;

use redline_pacing::{Arrivals, HIGHEST_RATE_PER_S, LOWEST_RATE_PER_S, Pace, Profile, Stage, Think};
use redline_traffic::EngineError;
use serde::Deserialize;

use super::{LONGEST_NS, bad};

/// The most connections of a job.
const MOST_CONNECTIONS: u32 = 10_000_000;
/// The deepest pipeline, and the most streams of a connection.
const DEEPEST: u32 = 10_000;
/// The most stages of a load.
const MOST_STAGES: usize = 10_000;

#[derive(Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum RawLoad {
    Closed(RawClosed),
    Open(RawOpen),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawClosed {
    users: u32,
    #[serde(default = "default_depth")]
    depth: u32,
    #[serde(default)]
    think: Option<RawThink>,
    #[serde(default)]
    pace_per_s: Option<f64>,
    #[serde(default)]
    requests_per_connection: Option<u32>,
    #[serde(default)]
    stages: Vec<RawStage>,
    #[serde(default)]
    ramps_up: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawOpen {
    #[serde(default)]
    rate_per_s: Option<f64>,
    arrivals: RawArrivals,
    connections: u32,
    #[serde(default)]
    connections_at_start: Option<u32>,
    #[serde(default = "default_depth")]
    depth: u32,
    #[serde(default)]
    requests_per_connection: Option<u32>,
    #[serde(default)]
    stages: Vec<RawStage>,
}

fn default_depth() -> u32 {
    1
}

#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawStage {
    to: f64,
    over_ns: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum RawThink {
    FixedNs(u64),
    ExponentialNs(u64),
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum RawArrivals {
    Uniform,
    Poisson,
    ReplayedNs(Vec<u64>),
    Replayed(RawReplay),
}

/// Recorded requests: when they are due, and which of the job's requests they are.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawReplay {
    due_ns: Vec<u64>,
    requests: Vec<u32>,
}

impl RawArrivals {
    fn is_replay(&self) -> bool {
        matches!(self, Self::ReplayedNs(_) | Self::Replayed(_))
    }
}

/// The load of a job.
#[derive(Clone, Debug)]
pub struct Load {
    pub shape: Shape,
    /// The most requests in flight on one connection.
    pub depth: u32,
    /// The number of requests after which a connection is replaced.
    pub requests_per_connection: Option<u32>,
    /// The request of the job that is sent at each of the replayed times; without them requests are drawn by weight.
    pub replayed: Option<Arc<[u32]>>,
}

#[derive(Clone, Debug)]
pub enum Shape {
    Closed { users: Profile, think: Think, pace: Option<Pace> },
    Open { rate_per_s: Profile, arrivals: Arrivals, connections: u32, at_start: u32 },
}

impl Load {
    /// The most connections that are open.
    pub fn connections(&self) -> u32 {
        match &self.shape {
            Shape::Closed { users, .. } => users.most() as u32,
            Shape::Open { connections, .. } => *connections,
        }
    }
}

impl RawLoad {
    /// Whether these are recorded requests, which a duet replays in windows.
    pub fn is_replay(&self) -> bool {
        matches!(self, Self::Open(open) if open.arrivals.is_replay())
    }

    /// Whether the load changes at times relative to the start of the measurement.
    pub fn changes_over_time(&self) -> bool {
        match self {
            Self::Closed(closed) => !closed.stages.is_empty(),
            Self::Open(open) => !open.stages.is_empty() || open.arrivals.is_replay(),
        }
    }

    /// `begins_ns` is when the measurement starts, after the epoch; `requests` is the number of the job's requests.
    pub fn check(self, begins_ns: u64, requests: usize) -> Result<Load, EngineError> {
        match self {
            Self::Closed(closed) => closed.check(begins_ns),
            Self::Open(open) => open.check(begins_ns, requests),
        }
    }
}

impl RawClosed {
    fn check(self, begins_ns: u64) -> Result<Load, EngineError> {
        let stages = check_stages("load.closed.stages", &self.stages, |users| {
            (0.0..=f64::from(MOST_CONNECTIONS)).contains(&users) && users.fract() == 0.0
        })?;
        let first = f64::from(self.users);
        let users = if self.ramps_up {
            Profile::rising(first, &stages, begins_ns)
        } else {
            Profile::new(first, &stages, begins_ns)
        };
        if self.users > MOST_CONNECTIONS || !(1.0..=f64::from(MOST_CONNECTIONS)).contains(&users.most()) {
            let message = format!("{} is not between 1 and {MOST_CONNECTIONS}", self.users);
            return Err(bad(
                "load.closed.users",
                &message,
                "a load needs at least one connection; with stages it may begin with 0",
            ));
        }
        check_depth("load.closed", self.depth, self.requests_per_connection)?;
        let pace = self.pace_per_s.map(|rate| check_pace(rate, self.depth, self.think.is_some())).transpose()?;
        let think = RawThink::check(self.think.as_ref(), "load.closed.think")?;
        let shape = Shape::Closed { users, think, pace };
        let Self { depth, requests_per_connection, .. } = self;
        Ok(Load { shape, depth, requests_per_connection, replayed: None })
    }
}

impl RawThink {
    /// Validate a think time, or none, in this field.
    pub fn check(think: Option<&Self>, field: &str) -> Result<Think, EngineError> {
        match think {
            Some(Self::FixedNs(ns) | Self::ExponentialNs(ns)) if *ns > LONGEST_NS => {
                Err(bad(field, &format!("{ns} is past {LONGEST_NS}"), "durations are in nanoseconds"))
            }
            None => Ok(Think::None),
            Some(Self::FixedNs(ns)) => Ok(Think::Fixed(*ns)),
            Some(Self::ExponentialNs(ns)) => Ok(Think::Exponential(*ns)),
        }
    }
}

fn check_pace(rate_per_s: f64, depth: u32, thinks: bool) -> Result<Pace, EngineError> {
    if thinks || depth > 1 {
        let message = "a pace goes neither with a think time nor with a depth past 1";
        return Err(bad("load.closed.pace_per_s", message, "leave out `think` and `depth`, or `pace_per_s`"));
    }
    check_rate("load.closed.pace_per_s", rate_per_s)?;
    Pace::new(rate_per_s).map_err(|why| bad("load.closed.pace_per_s", &why.to_string(), "give requests per second"))
}

impl RawOpen {
    fn check(self, begins_ns: u64, requests: usize) -> Result<Load, EngineError> {
        if self.connections == 0 || self.connections > MOST_CONNECTIONS {
            let message = format!("{} is not between 1 and {MOST_CONNECTIONS}", self.connections);
            return Err(bad("load.open.connections", &message, "a load needs at least one connection"));
        }
        let at_start = self.connections_at_start.unwrap_or(self.connections);
        if at_start == 0 || at_start > self.connections {
            let message = format!("{at_start} is not between 1 and {}", self.connections);
            return Err(bad("load.open.connections_at_start", &message, "the pool grows from there to `connections`"));
        }
        check_depth("load.open", self.depth, self.requests_per_connection)?;
        let rate_per_s = self.check_rates(begins_ns)?;
        let mut replayed = None;
        let arrivals = match self.arrivals {
            RawArrivals::Uniform => Arrivals::Uniform,
            RawArrivals::Poisson => Arrivals::Poisson,
            RawArrivals::ReplayedNs(offsets) => Arrivals::Replayed(check_offsets("replayed_ns", offsets)?),
            RawArrivals::Replayed(replay) => {
                replayed = Some(replay.check_requests(requests)?);
                Arrivals::Replayed(check_offsets("replayed.due_ns", replay.due_ns)?)
            }
        };
        let shape = Shape::Open { rate_per_s, arrivals, connections: self.connections, at_start };
        Ok(Load { shape, depth: self.depth, requests_per_connection: self.requests_per_connection, replayed })
    }

    fn check_rates(&self, begins_ns: u64) -> Result<Profile, EngineError> {
        const RATE: &str = "load.open.rate_per_s";
        if self.arrivals.is_replay() {
            if self.rate_per_s.is_some() || !self.stages.is_empty() {
                return Err(bad(RATE, "replayed arrivals have no rate", "leave out `rate_per_s` and `stages`"));
            }
            return Ok(Profile::new(0.0, &[], begins_ns));
        }
        let rate = self.rate_per_s.ok_or_else(|| bad(RATE, "is missing", "give requests per second"))?;
        if rate != 0.0 || self.stages.is_empty() {
            check_rate(RATE, rate)?;
        }
        let stages = check_stages("load.open.stages", &self.stages, |rate| {
            rate == 0.0 || (LOWEST_RATE_PER_S..=HIGHEST_RATE_PER_S).contains(&rate)
        })?;
        let profile = Profile::new(rate, &stages, begins_ns);
        if profile.most() <= 0.0 {
            return Err(bad(RATE, "is 0 and stays 0", "give a rate, or a stage to one"));
        }
        Ok(profile)
    }
}

fn check_rate(field: &str, rate_per_s: f64) -> Result<(), EngineError> {
    if (LOWEST_RATE_PER_S..=HIGHEST_RATE_PER_S).contains(&rate_per_s) {
        return Ok(());
    }
    let message = format!("{rate_per_s} is not between {LOWEST_RATE_PER_S} and {HIGHEST_RATE_PER_S}");
    Err(bad(field, &message, "give requests per second"))
}

impl RawReplay {
    fn check_requests(&self, known: usize) -> Result<Arc<[u32]>, EngineError> {
        const REQUESTS: &str = "load.open.arrivals.replayed.requests";
        if self.requests.len() != self.due_ns.len() {
            let message = format!("{} requests for {} due times", self.requests.len(), self.due_ns.len());
            return Err(bad(REQUESTS, &message, "give the number of a request for each due time"));
        }
        if let Some(i) = self.requests.iter().position(|request| *request as usize >= known) {
            let message = format!("{} is not the number of a request", self.requests[i]);
            return Err(bad(&format!("{REQUESTS}[{i}]"), &message, "requests are numbered from 0"));
        }
        Ok(self.requests.as_slice().into())
    }
}

fn check_offsets(key: &str, offsets: Vec<u64>) -> Result<Arc<[u64]>, EngineError> {
    let wrong = offsets.windows(2).position(|pair| pair[1] < pair[0]).map(|i| i + 1);
    if let Some(i) = wrong.or_else(|| offsets.iter().position(|offset| *offset > LONGEST_NS)) {
        let field = format!("load.open.arrivals.{key}[{i}]");
        return Err(bad(&field, "is before the one before it, or too late", "give nanoseconds that do not decrease"));
    }
    Ok(offsets.into())
}

fn check_depth(field: &str, depth: u32, requests_per_connection: Option<u32>) -> Result<(), EngineError> {
    if depth == 0 || depth > DEEPEST {
        let message = format!("{depth} is not between 1 and {DEEPEST}");
        return Err(bad(
            &format!("{field}.depth"),
            &message,
            "it is how many requests are in flight on one connection",
        ));
    }
    if requests_per_connection == Some(0) {
        let hint = "give a number of requests, or null for no limit";
        return Err(bad(&format!("{field}.requests_per_connection"), "0 requests are none", hint));
    }
    Ok(())
}

fn check_stages(field: &str, stages: &[RawStage], is_right: impl Fn(f64) -> bool) -> Result<Vec<Stage>, EngineError> {
    if stages.len() > MOST_STAGES {
        return Err(bad(field, &format!("there are more than {MOST_STAGES}"), "describe the load with fewer stages"));
    }
    for (i, stage) in stages.iter().enumerate() {
        if !is_right(stage.to) {
            let hint = "give users as a whole number, or requests per second";
            return Err(bad(&format!("{field}[{i}].to"), &format!("{} is out of range", stage.to), hint));
        }
        if stage.over_ns > LONGEST_NS {
            let message = format!("{} is past {LONGEST_NS}", stage.over_ns);
            return Err(bad(&format!("{field}[{i}].over_ns"), &message, "durations are in nanoseconds"));
        }
    }
    Ok(stages.iter().map(|stage| Stage { to: stage.to, over_ns: stage.over_ns }).collect())
}
