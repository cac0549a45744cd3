//! Why requests of one worker failed: the first failure of each outcome.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use redline_traffic::{Failure, Failures, Outcome};

/// The time until which an answer was waited for, in reasons.
pub const OVER: &str = "by the end of the load";

/// Why a request failed.
pub struct Cause {
    /// What was wrong, in one line of words.
    pub reason: String,
    /// Where in the answer, in bytes from its first.
    pub at: Option<u64>,
    /// Bytes of the answer around that place, and where they begin.
    pub shown: Option<(u64, Vec<u8>)>,
}

impl Cause {
    /// A cause without a place, where nothing of the answer came.
    pub fn words(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), at: None, shown: None }
    }
}

/// The first failures, at times of the monotonic clock.
#[derive(Default)]
pub struct FirstFailures {
    /// A bit for each outcome that has one.
    seen: u16,
    failures: Failures,
}

impl FirstFailures {
    /// A request ends so now. Why is worked out for the first of its outcome alone.
    #[inline]
    pub fn note(&mut self, outcome: Outcome, now_ns: u64, cause: impl FnOnce() -> Cause) {
        let bit = 1 << outcome as u16;
        if self.seen & bit == 0 {
            self.seen |= bit;
            let Cause { reason, at, shown } = cause();
            let (from, bytes_base64) = shown.map(|(from, bytes)| (from, STANDARD.encode(bytes))).unzip();
            self.failures.add(Failure { outcome, reason, at, from, bytes_base64, time_ns: now_ns });
        }
    }

    /// Take what was noted, with times since the epoch.
    pub fn since(self, epoch_ns: u64) -> Failures {
        self.failures.since(epoch_ns)
    }
}

/// A duration in words: `5 s`, `250 ms`.
pub fn in_words(ns: u64) -> String {
    match ns {
        0..1_000_000 => format!("{} µs", ns / 1000),
        ns if ns.is_multiple_of(1_000_000_000) => format!("{} s", ns / 1_000_000_000),
        ns => format!("{} ms", ns / 1_000_000),
    }
}
