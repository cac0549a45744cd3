//! What was measured of answers that are streams of events.

use serde::{Deserialize, Serialize};

use crate::SparseHistogram;

/// The measurements of streams of events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamTally {
    /// Streams that began, of the requests that were due in the phase.
    pub begun: u64,
    /// Events that arrived, whenever their requests were due.
    pub events: u64,
    /// Times without an event that were too long, in streams of requests that were due in the phase.
    pub stalls: u64,
    /// From due to the first event.
    pub first_event: SparseHistogram,
    /// From each event to the next of its stream.
    pub gaps: SparseHistogram,
}

/// What is new in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamNews {
    /// Its head has arrived.
    Begun,
    /// Events have arrived together.
    Events {
        /// How many; at least 1.
        count: u64,
        /// Nanoseconds since the event before them, or from due if they are the first.
        since_ns: u64,
        /// They are the first.
        is_first: bool,
    },
    /// There was no event for too long.
    Stall,
}

impl StreamTally {
    /// Count what is new. `of_phase`: the request was due in the phase; `in_window`: now is a time whose events count.
    pub fn count(&mut self, news: StreamNews, of_phase: bool, in_window: bool) {
        if let (StreamNews::Events { count, .. }, true) = (news, in_window) {
            self.events += count;
        }
        if !of_phase {
            return;
        }
        match news {
            StreamNews::Begun => self.begun += 1,
            StreamNews::Stall => self.stalls += 1,
            StreamNews::Events { count, since_ns, is_first } => {
                if is_first {
                    self.first_event.record(since_ns);
                } else {
                    self.gaps.record(since_ns);
                }
                // The others came with the first of them.
                self.gaps.record_n(0, count - 1);
            }
        }
    }

    /// Add all counts of another tally.
    pub fn add(&mut self, other: &Self) {
        self.events += other.events;
        self.add_drained(other);
    }

    /// Add the counts of a drain: all but the events, which came after the window.
    pub fn add_drained(&mut self, other: &Self) {
        self.begun += other.begun;
        self.stalls += other.stalls;
        self.first_event.add(&other.first_event);
        self.gaps.add(&other.gaps);
    }

    /// Clear everything.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}
