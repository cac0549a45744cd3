//! The counts and distributions of one slice of time.

use serde::Serialize;

use crate::{Counts, Histogram};

/// What happened in one interval, or in many when merged.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Slice {
    /// The counters.
    pub counts: Counts,
    /// From due to the last byte of the answer, or to when the outcome was known.
    pub response: Histogram,
    /// From written to the last byte of the answer, or to when the outcome was known.
    pub service: Histogram,
    /// From due to taken up: the engine's own delay.
    pub lateness: Histogram,
    /// CPU time of the engine's process in nanoseconds.
    pub engine_cpu_ns: u64,
}

impl Slice {
    /// Add all counts of another.
    pub fn add(&mut self, other: &Self) {
        self.counts += other.counts;
        self.response.add(&other.response);
        self.service.add(&other.service);
        self.lateness.add(&other.lateness);
        self.engine_cpu_ns += other.engine_cpu_ns;
    }

    /// Add a slice of the drain to the measurement before it: all that belongs to its requests, and nothing of what is a
    /// rate over the window (right answers, bytes, CPU time).
    pub fn add_drained(&mut self, other: &Self) {
        self.counts += Counts { completed: 0, bytes_sent: 0, bytes_received: 0, ..other.counts };
        self.response.add(&other.response);
        self.service.add(&other.service);
        self.lateness.add(&other.lateness);
    }

    /// Forget everything, keeping the memory.
    pub fn clear(&mut self) {
        self.counts = Counts::default();
        self.response.clear();
        self.service.clear();
        self.lateness.clear();
        self.engine_cpu_ns = 0;
    }
}
