//! What became of one of several requests of a job.

use serde::{Deserialize, Serialize};

use crate::{Outcomes, SparseHistogram, StatusClasses, StreamTally};

/// The measurements of one of a job's requests, of those that were due in the window.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestTally {
    /// Right answers in the window, whenever due.
    pub completed: u64,
    /// Bytes of the bodies of complete answers.
    pub body_bytes: u64,
    /// Complete answers by class.
    pub status: StatusClasses,
    /// All requests by outcome.
    pub outcomes: Outcomes,
    /// From due to the last byte of the answer, or to when the outcome was known.
    pub response: SparseHistogram,
    /// The streams of events among the answers; `None` if its answers are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams: Option<Box<StreamTally>>,
}

impl RequestTally {
    /// Add all counts of another tally of the same request.
    pub fn add(&mut self, other: &Self) {
        self.completed += other.completed;
        self.body_bytes += other.body_bytes;
        self.status += other.status;
        self.outcomes += other.outcomes;
        self.response.add(&other.response);
        if let Some(streams) = &other.streams {
            self.streams.get_or_insert_default().add(streams);
        }
    }

    /// Add the tallies of another worker, shard or slice, request by request.
    pub fn add_all(sums: &mut Vec<Self>, others: &[Self]) {
        if sums.len() < others.len() {
            sums.resize(others.len(), Self::default());
        }
        sums.iter_mut().zip(others).for_each(|(sum, other)| sum.add(other));
    }
}
