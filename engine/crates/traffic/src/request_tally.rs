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
    /// From due to the first byte of the answer, of complete answers. `None` until the first of them whose first byte was not
    /// the last, or until [`Self::complete`]: it is that of `response`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_byte: Option<SparseHistogram>,
    /// The streams of events among the answers; `None` if its answers are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams: Option<Box<StreamTally>>,
}

impl RequestTally {
    /// Record the times of a request: to the first byte of its answer, if it has a complete one, and to the end.
    #[inline]
    pub fn record(&mut self, first_ns: Option<u64>, response_ns: u64) {
        if self.first_byte.is_some() || first_ns != Some(response_ns) {
            let first_byte = self.first_byte.get_or_insert_with(|| self.response.clone());
            if let Some(first_ns) = first_ns {
                first_byte.record(first_ns);
            }
        }
        self.response.record(response_ns);
    }

    /// Write down the times to the first byte, also where they are the response times.
    #[must_use]
    pub fn complete(mut self) -> Self {
        self.first_byte.get_or_insert_with(|| self.response.clone());
        self
    }

    /// Add all counts of another tally of the same request.
    pub fn add(&mut self, other: &Self) {
        if self.first_byte.is_some() || other.first_byte.is_some() {
            let first_byte = self.first_byte.get_or_insert_with(|| self.response.clone());
            first_byte.add(other.first_byte.as_ref().unwrap_or(&other.response));
        }
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
