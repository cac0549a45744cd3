//! The events that the engine writes, one JSON object a line: `docs/reference/engine-protocol.md`.

use serde::{Deserialize, Serialize};

use crate::{Failure, Failures, Outcome, Slice};

/// The format of the events, named in `started`.
pub const ENGINE_FORMAT: &str = "redline.engine/1";

/// One line of output, to be written. What was seen is borrowed, so that its memory can be used again.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub enum Event<'a> {
    /// A shard has connected and waits for the epoch. It is for the engine that started the shard only.
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
    /// It could not be made.
    Error(&'a EngineError),
}

/// One line of output, as it is read.
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
    /// How it waits for sockets.
    pub backend: String,
    /// What was negotiated in the first handshake.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsInfo>,
    /// Why the work cannot be done if the other shards have no connection either.
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
    /// What was negotiated in the first handshake; none without TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsInfo>,
}

/// The engine that drives the load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Engine {
    /// `redline-engine`.
    pub name: String,
    /// Its version.
    pub version: String,
    /// How it waits for sockets: `epoll` or `io_uring`.
    pub backend: String,
    /// Worker threads, in all processes.
    pub workers: u32,
    /// The cores that they are pinned to; empty when they are not pinned.
    pub cpus: Vec<u32>,
    /// Processes that the connections are spread over.
    pub processes: u32,
}

/// What was negotiated in a TLS handshake.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsInfo {
    /// `1.2` or `1.3`.
    pub version: String,
    /// The name of the cipher suite, as the TLS library names it.
    pub cipher: String,
    /// The protocol that ALPN chose, if it chose one.
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
    /// After the window, while what was due within it is answered.
    Drain,
}

/// One slice of time, merged over the workers. `S` is a [`Slice`], or a reference to one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval<S> {
    /// Where it lies; no interval spans two phases.
    pub phase: Phase,
    /// From 0, through all phases.
    pub index: u64,
    /// Nanoseconds since the epoch.
    pub start_ns: u64,
    /// Nanoseconds since the epoch.
    pub end_ns: u64,
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

/// The sums of all measure and drain intervals, with the window's own rates. `S` is a [`Slice`], or a reference to one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary<S> {
    /// How it ended.
    pub ended: Ended,
    /// Where the window began, in nanoseconds since the epoch.
    pub measure_start_ns: u64,
    /// Where it really ended.
    pub measure_end_ns: u64,
    /// What was read at both ends of the window; `None` when it ended early, and with several processes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clocks: Option<Clocks>,
    /// The first failure of each outcome in the whole load.
    #[serde(default)]
    pub failures: Failures,
    /// What happened.
    #[serde(flatten)]
    pub slice: S,
}

/// How far clocks went between two readings, close to the two ends of the measurement window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clocks {
    /// When they were read first, in nanoseconds since the epoch.
    pub start_ns: u64,
    /// When they were read last.
    pub end_ns: u64,
    /// CPU time of the server's processes; `None` when there are none, or one of them is gone.
    pub server_cpu_ns: Option<u64>,
    /// What the hypervisor took from all cores; `None` when it is not known.
    pub steal_ns: Option<u64>,
}

/// Why there is no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The job is wrong; the message names the field.
    BadJob,
    /// Not one connection could be opened.
    Connect,
    /// The machine does not allow what the job needs.
    Limit,
    /// A system call failed that does not fail.
    Internal,
}

/// An error, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineError {
    /// What kind of error.
    pub kind: ErrorKind,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
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

/// One slice of one target of a duet, summed over the workers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DuetSlice {
    /// Which target: 0 is the job's own, then those of the duet.
    pub target: u32,
    /// Nanoseconds since the epoch.
    pub start_ns: u64,
    /// When all was answered, in nanoseconds since the epoch.
    pub end_ns: u64,
    /// How long a worker measured, on average: from the end of the guard to when it noticed the end of the slice.
    pub measured_ns: u64,
    /// Right answers in that time.
    pub measured: u64,
    /// Right answers in the whole slice.
    pub completed: u64,
    /// Requests that ended otherwise.
    pub failed: u64,
    /// What was received in the whole slice. All of it was answered, so this is a number of whole answers.
    pub bytes_received: u64,
    /// CPU time that each target's processes used from before the slice to its end; empty when no processes were given.
    pub cpu_ns: Vec<Option<u64>>,
    /// CPU time of the engine's workers.
    pub engine_cpu_ns: u64,
    /// CPU time that the hypervisor took from this machine meanwhile, in ticks of the kernel; none where it is not known.
    pub steal_ns: Option<u64>,
}

/// The end of a duet.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DuetResult<'a> {
    /// How it ended.
    pub ended: Ended,
    /// Blocks that were left out because a worker stood still meanwhile.
    pub paused_blocks: u64,
    /// What was measured of each target, in all its measured slices but those in which a worker stood still.
    pub targets: &'a [DuetTotal],
}

/// What was measured of one target of a duet.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DuetTotal {
    /// The first failure of each outcome, in all its slices.
    pub failures: Failures,
    /// What happened.
    #[serde(flatten)]
    pub slice: Slice,
}

/// The result of one request. What belongs to an answer is `None` without a complete one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Checked {
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
    /// Of an answer of gRPC.
    pub grpc_status: Option<u32>,
    /// The address that was connected to, if one was.
    pub address: Option<String>,
    /// What the TLS handshake negotiated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsInfo>,
    /// From before the connection was opened to the end.
    pub elapsed_ns: u64,
}
