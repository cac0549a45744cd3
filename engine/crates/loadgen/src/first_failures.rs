//! Why requests of a worker failed: the first failure of each outcome.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use redline_traffic::{Failure, Failures, Outcome};

/// The end of an answer's time, in reasons.
pub const OVER: &str = "by the end of the load";

/// Why a request failed.
pub struct Cause {
    /// What was wrong, in a line of text.
    pub reason: String,
    /// The position in the answer, in bytes from its first.
    pub at: Option<u64>,
    /// Bytes of the answer around that position, and the position of the first of them.
    pub shown: Option<(u64, Vec<u8>)>,
    /// The index of the request, if there are several and it is known.
    pub request: Option<u32>,
}

impl Cause {
    /// A cause without a position, when no part of the answer arrived.
    pub fn words(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), at: None, shown: None, request: None }
    }

    /// The cause of the failure of this request.
    pub fn of(self, request: Option<u32>) -> Self {
        Self { request, ..self }
    }
}

/// The first failures, at times of the monotonic clock.
#[derive(Default)]
pub struct FirstFailures {
    /// A bit for each outcome that has occurred.
    seen: u16,
    failures: Failures,
}

impl FirstFailures {
    /// A request ends with this outcome now. `cause` is called only for the first failure of an outcome.
    #[inline]
    pub fn note(&mut self, outcome: Outcome, now_ns: u64, cause: impl FnOnce() -> Cause) {
        let bit = 1 << outcome as u16;
        if self.seen & bit == 0 {
            self.seen |= bit;
            let Cause { reason, at, shown, request } = cause();
            let (from, bytes_base64) = shown.map(|(from, bytes)| (from, STANDARD.encode(bytes))).unzip();
            self.failures.add(Failure { outcome, reason, at, from, bytes_base64, request, time_ns: now_ns });
        }
    }

    /// The failures, with times since the epoch.
    pub fn since(self, epoch_ns: u64) -> Failures {
        self.failures.since(epoch_ns)
    }
}

/// A duration in text: `5 s`, `250 ms`.
pub fn in_words(ns: u64) -> String {
    match ns {
        0..1_000_000 => format!("{} µs", ns / 1000),
        ns if ns.is_multiple_of(1_000_000_000) => format!("{} s", ns / 1_000_000_000),
        ns => format!("{} ms", ns / 1_000_000),
    }
}
