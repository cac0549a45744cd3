//! The events that the engine writes, one JSON object a line: `docs/reference/engine-protocol.md`.

use serde::Serialize;

use crate::Slice;

/// The format of the events, told in `started`.
pub const ENGINE_FORMAT: &str = "redline.engine/1";

/// One line of output.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub enum Event<'a> {
    /// The schedule has begun.
    Started(Started<'a>),
    /// An interval has ended.
    Interval(Interval<'a>),
    /// The measurement has ended.
    Result(Summary<'a>),
    /// It could not be made.
    Error(&'a Trouble),
}

/// The connections are open and the epoch is now.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Started<'a> {
    /// [`ENGINE_FORMAT`].
    pub format: &'static str,
    /// Who speaks.
    pub engine: Engine<'a>,
    /// Connections that are open at the epoch.
    pub connections: u64,
    /// How long opening them took, in nanoseconds.
    pub connect_ns: u64,
    /// The epoch on the wall clock, in nanoseconds since 1970.
    pub epoch_unix_ns: u64,
}

/// The engine that drives the load.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Engine<'a> {
    /// `redline-engine`.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
    /// How it waits for sockets: `epoll`.
    pub backend: &'static str,
    /// Worker threads.
    pub workers: u32,
    /// The cores that they are pinned to; empty when they roam.
    pub cpus: &'a [u32],
}

/// The part of a load's life that an interval belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Before the measurement.
    Warmup,
    /// The measurement window.
    Measure,
    /// After the window, while what was due within it is answered.
    Drain,
}

/// One slice of time, merged over the workers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Interval<'a> {
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
    pub slice: &'a Slice,
}

/// How a measurement ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Ended {
    /// As it was asked for.
    Complete,
    /// By SIGINT or SIGTERM.
    Interrupted,
    /// By the job's deadline.
    Deadline,
}

/// The sums of all measure and drain intervals, with the window's own rates.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary<'a> {
    /// How it ended.
    pub ended: Ended,
    /// Where the window began, in nanoseconds since the epoch.
    pub measure_start_ns: u64,
    /// Where it really ended.
    pub measure_end_ns: u64,
    /// What happened.
    #[serde(flatten)]
    pub slice: &'a Slice,
}

/// Why there is no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The job is wrong; the message names the field.
    BadJob,
    /// Not one connection could be opened.
    Connect,
    /// The machine does not allow what the job asks for.
    Limit,
    /// A system call failed that does not fail.
    Internal,
}

/// What went wrong, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Trouble {
    /// What kind of trouble.
    pub kind: ErrorKind,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: String,
}
