//! The events that the engine writes, one JSON object per line: `docs/reference/engine-protocol.md`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Failure, Failures, JourneyTally, KeptRequests, Outcome, RequestTally, Slice};

/// The format of the events, named in `started`.
pub const ENGINE_FORMAT: &str = "redline.engine/1";

/// A line of output, to be written. Measurements are borrowed, so that their memory can be reused.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub enum Event<'a> {
    /// A shard has connected and waits for the epoch. Only for the engine that started the shard.
    Connected(Connected),
    /// The schedule has begun.
    Started(Started),
    /// An interval has ended.
    Interval(Interval<&'a Slice>),
    /// The measurement has ended.
    Result(Summary<&'a Slice>),
    /// A block of a duet has ended.
    Block(DuetBlock),
    /// A duet has ended.
    Duet(DuetResult<'a>),
    /// A check has ended.
    Checked(Checked),
    /// A step of a checked journey was not sent because of its condition.
    Skipped {
        /// The index of its request.
        step: u32,
    },
    /// A checked journey has ended.
    Walked {
        /// Whether every step that was sent was answered right.
        complete: bool,
    },
    /// The work could not be done.
    Error(&'a EngineError),
}

/// A line of output that was read.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub enum OwnedEvent {
    /// See [`Event::Connected`].
    Connected(Connected),
    /// See [`Event::Started`].
    Started(Started),
    /// See [`Event::Interval`].
    Interval(Interval<Box<Slice>>),
    /// See [`Event::Result`].
    Result(Summary<Box<Slice>>),
    /// See [`Event::Error`].
    Error(EngineError),
}

/// The result of connecting a shard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connected {
    /// Connections that are open.
    pub connections: u64,
    /// How long opening them took, in nanoseconds.
    pub connect_ns: u64,
    /// The name of the backend.
    pub backend: String,
    /// The result of the first TLS handshake.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsInfo>,
    /// Where the connections go, in turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<String>,
    /// Why the job cannot be done if the other shards have no connection either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<EngineError>,
}

/// The connections are open and the epoch is now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    /// [`ENGINE_FORMAT`].
    pub format: String,
    /// The engine.
    pub engine: Engine,
    /// Connections that are open at the epoch.
    pub connections: u64,
    /// How long opening them took, in nanoseconds.
    pub connect_ns: u64,
    /// The epoch on the wall clock, in nanoseconds since 1970.
    pub epoch_unix_ns: u64,
    /// The result of the first TLS handshake; `None` without TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsInfo>,
    /// Where the connections go, in turn; empty in a duet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<String>,
}

/// The engine that drives the load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Engine {
    /// `redline-engine`.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The name of the backend: `epoll` or `io_uring`.
    pub backend: String,
    /// Worker threads, in all processes.
    pub workers: u32,
    /// The cores to which they are pinned; empty if they are not pinned.
    pub cpus: Vec<u32>,
    /// Processes that the connections are spread over.
    pub processes: u32,
}

/// The result of a TLS handshake.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsInfo {
    /// `1.2` or `1.3`.
    pub version: String,
    /// The name of the cipher suite, as the TLS library names it.
    pub cipher: String,
    /// The protocol that ALPN chose, if any.
    pub alpn: Option<String>,
    /// Whether any certificate was trusted.
    pub insecure: bool,
}

/// The phase of a load that an interval belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Before the measurement.
    Warmup,
    /// The measurement window.
    Measure,
    /// After the window, while requests that were due in it are answered.
    Drain,
}

/// A slice of time, merged over the workers. `S` is a [`Slice`], or a reference to a slice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval<S> {
    /// The phase; no interval spans two phases.
    pub phase: Phase,
    /// The index, from 0 through all phases.
    pub index: u64,
    /// Nanoseconds since the epoch.
    pub start_ns: u64,
    /// Nanoseconds since the epoch.
    pub end_ns: u64,
    /// Right answers by 50 ms; empty if they were not counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ticks: Vec<u32>,
    /// Right answers by worker; empty if there is one, or if their intervals differ.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<u64>,
    /// What happened.
    #[serde(flatten)]
    pub slice: S,
}

/// How a measurement ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ended {
    /// As planned.
    Complete,
    /// By SIGINT or SIGTERM.
    Interrupted,
    /// By the job's deadline.
    Deadline,
}

/// The sums of all measure and drain intervals, with the rates of the window. `S` is a [`Slice`], or a reference to a slice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary<S> {
    /// How it ended.
    pub ended: Ended,
    /// When the window began, in nanoseconds since the epoch.
    pub measure_start_ns: u64,
    /// When the window really ended.
    pub measure_end_ns: u64,
    /// The clocks at both ends of the window; `None` when it ended early, and with several processes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clocks: Option<Clocks>,
    /// The first failure of each outcome in the whole load.
    #[serde(default)]
    pub failures: Failures,
    /// By request, in the order of the job; empty for a single request.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub requests: Vec<RequestTally>,
    /// Of a job with a journey.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub journeys: Option<JourneyTally>,
    /// How far the connections ever came, from the warm-up on.
    #[serde(default)]
    pub reach: Reach,
    /// Single requests.
    #[serde(default, skip_serializing_if = "KeptRequests::is_empty")]
    pub kept: KeptRequests,
    /// What happened.
    #[serde(flatten)]
    pub slice: S,
}

/// How many connections of a load ever came so far, whatever became of them later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reach {
    /// They were open.
    pub opened: u64,
    /// A request was written on them.
    pub asked: u64,
    /// An answer came on them, right or wrong.
    pub answered: u64,
}

impl Reach {
    /// The sum of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            opened: self.opened + other.opened,
            asked: self.asked + other.asked,
            answered: self.answered + other.answered,
        }
    }
}

/// How far clocks advanced between two readings, close to the two ends of the measurement window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clocks {
    /// When the first reading was made, in nanoseconds since the epoch.
    pub start_ns: u64,
    /// When the last reading was made.
    pub end_ns: u64,
    /// CPU time of the server's processes; `None` when there are none, or a process is gone.
    pub server_cpu_ns: Option<u64>,
    /// CPU time that the hypervisor took from all cores; `None` when it is not known.
    pub steal_ns: Option<u64>,
}

/// Why there is no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The job is wrong; the message names the field.
    BadJob,
    /// No connection could be opened.
    Connect,
    /// The machine does not allow what the job needs.
    Limit,
    /// A system call failed unexpectedly.
    Internal,
}

/// An error, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineError {
    /// The kind of error.
    pub kind: ErrorKind,
    /// What is wrong.
    pub message: String,
    /// How to correct it.
    pub hint: String,
}

/// Two slices of each target of a duet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DuetBlock {
    /// From 0.
    pub index: u64,
    /// Of the warm-up, or measured.
    pub phase: Phase,
    /// In the order in which they ran.
    pub slices: Vec<DuetSlice>,
}

/// A slice of a duet's target, summed over the workers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DuetSlice {
    /// The index of the target: 0 is the job's own, then those of the duet.
    pub target: u32,
    /// Nanoseconds since the epoch.
    pub start_ns: u64,
    /// When all requests were answered, in nanoseconds since the epoch.
    pub end_ns: u64,
    /// How long a worker measured, on average: from the end of the guard to when it noticed the end of the slice.
    pub measured_ns: u64,
    /// Right answers in that time.
    pub measured: u64,
    /// Right answers in the whole slice.
    pub completed: u64,
    /// Requests that ended with another outcome.
    pub failed: u64,
    /// Bytes received in the whole slice. Every request was answered, so they are whole answers.
    pub bytes_received: u64,
    /// CPU time that each target's processes used from before the slice to its end; empty when no processes were given.
    pub cpu_ns: Vec<Option<u64>>,
    /// CPU time of the engine's workers.
    pub engine_cpu_ns: u64,
    /// CPU time that the hypervisor took from this machine meanwhile, in ticks of the kernel; `None` if it is not known.
    pub steal_ns: Option<u64>,
}

/// The end of a duet.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DuetResult<'a> {
    /// How it ended.
    pub ended: Ended,
    /// Blocks that were excluded because a worker stood still meanwhile.
    pub paused_blocks: u64,
    /// The measurements of every target, in all its measured slices but those in which a worker stood still.
    pub targets: &'a [DuetTotal],
}

/// The measurements of a duet's target.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DuetTotal {
    /// The first failure of each outcome, in all its slices.
    pub failures: Failures,
    /// By request, in the order of the job; empty for a single request.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub requests: Vec<RequestTally>,
    /// Of a job with a journey.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub journeys: Option<JourneyTally>,
    /// How far the connections ever came, in all of its slices.
    pub reach: Reach,
    /// Single requests of its measured slices.
    #[serde(skip_serializing_if = "KeptRequests::is_empty")]
    pub kept: KeptRequests,
    /// What happened.
    #[serde(flatten)]
    pub slice: Slice,
}

/// The result of a check. Fields of the answer are `None` without a complete answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Checked {
    /// The index of the request of a journey's step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<u32>,
    /// The values that the step has taken, by their names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub taken: Option<BTreeMap<String, String>>,
    /// The cookies that the step was sent without, each with its reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing_cookies: Vec<String>,
    /// How it ended.
    pub outcome: Outcome,
    /// Why it failed, if it did.
    pub failure: Option<Failure>,
    /// The answer's status.
    pub status: Option<u16>,
    /// The answer's headers, names in lower case.
    pub headers: Option<Vec<(String, String)>>,
    /// The statuses of the interim answers before it.
    pub interim: Vec<u16>,
    /// Bytes of the whole body.
    pub body_length: Option<u64>,
    /// SHA-256 of the whole body.
    pub body_sha256: Option<String>,
    /// The beginning of the body, as much as the check keeps.
    pub body_base64: Option<String>,
    /// The gRPC status, if this is a gRPC answer.
    pub grpc_status: Option<u32>,
    /// The address of the connection, if there was one.
    pub address: Option<String>,
    /// The result of the TLS handshake.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsInfo>,
    /// Whether bytes arrived that nobody requested, with the answer or after it.
    #[serde(skip_serializing_if = "is_false")]
    pub has_surplus: bool,
    /// Whether the server takes no further request on the connection after its answer.
    #[serde(skip_serializing_if = "is_false")]
    pub closes: bool,
    /// From before the connection was opened to the end.
    pub elapsed_ns: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !value
}
