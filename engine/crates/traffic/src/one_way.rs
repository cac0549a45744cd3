//! One-way times: differences of two clocks, so they have a sign.

use serde::{Deserialize, Serialize};

use crate::Histogram;

/// Durations in nanoseconds of either sign.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Signed {
    /// The absolute values of negative durations.
    pub negative: Histogram,
    /// Durations of 0 or more.
    pub positive: Histogram,
}

impl Signed {
    /// Record a duration in nanoseconds. Returns true when it exceeded the range and was recorded at its end.
    #[inline]
    pub fn record(&mut self, ns: i128) -> bool {
        let size = u64::try_from(ns.unsigned_abs()).unwrap_or(u64::MAX);
        if ns < 0 { self.negative.record(size) } else { self.positive.record(size) }
    }

    /// How many durations were recorded.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.negative.count() + self.positive.count()
    }

    /// Add all counts of another value.
    pub fn add(&mut self, other: &Self) {
        self.negative.add(&other.negative);
        self.positive.add(&other.positive);
    }

    /// Clear all counts, keeping the memory.
    pub fn clear(&mut self) {
        self.negative.clear();
        self.positive.clear();
    }
}

/// The server's clock compared with ours, if answers contain it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OneWay {
    /// The server's clock minus ours when the request was written.
    pub to_server: Signed,
    /// Our clock when the answer was complete, minus the server's.
    pub from_server: Signed,
}

impl OneWay {
    /// Add all counts of another value.
    pub fn add(&mut self, other: &Self) {
        self.to_server.add(&other.to_server);
        self.from_server.add(&other.from_server);
    }

    /// Clear all counts, keeping the memory.
    pub fn clear(&mut self) {
        self.to_server.clear();
        self.from_server.clear();
    }
}
