//! What became of the journeys of a job.

use serde::{Deserialize, Serialize};

use crate::SparseHistogram;

/// The journeys that fell due in the window. Lists are by step, in the order of the job: those of `once`, then the others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JourneyTally {
    /// Journeys that fell due.
    pub due: u64,
    /// Those whose last step was answered right.
    pub completed: u64,
    /// Those that a wrong or failed step ended.
    pub abandoned: Vec<u64>,
    /// Steps that were not sent because of their condition.
    pub skipped: Vec<u64>,
    /// Those that were under way when the load ended, or whose user left.
    pub unfinished: u64,
    /// How often users ran `once` again.
    pub again: u64,
    /// Of completed journeys: from due to the last byte of the last step, without think times.
    pub response: SparseHistogram,
    /// No journey could begin any more, because every row had been used.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rows_used_up: bool,
}

/// How a journey ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JourneyEnd {
    /// The last step was answered right, after this many nanoseconds without think times.
    Completed(u64),
    /// This step was wrong, or failed.
    Abandoned(u16),
    /// The load ended, or the user left.
    Unfinished,
}

impl JourneyTally {
    /// A tally for a journey of this many steps.
    #[must_use]
    pub fn new(steps: usize) -> Self {
        Self { abandoned: vec![0; steps], skipped: vec![0; steps], ..Self::default() }
    }

    /// A journey has ended.
    pub fn end(&mut self, end: JourneyEnd) {
        match end {
            JourneyEnd::Completed(response_ns) => {
                self.completed += 1;
                self.response.record(response_ns);
            }
            JourneyEnd::Abandoned(step) => self.abandoned[step as usize] += 1,
            JourneyEnd::Unfinished => self.unfinished += 1,
        }
    }

    /// Add all counts of another tally of the same job.
    pub fn add(&mut self, other: &Self) {
        self.due += other.due;
        self.completed += other.completed;
        add_lists(&mut self.abandoned, &other.abandoned);
        add_lists(&mut self.skipped, &other.skipped);
        self.unfinished += other.unfinished;
        self.again += other.again;
        self.response.add(&other.response);
        self.rows_used_up |= other.rows_used_up;
    }

    /// Add the tally of another worker, shard or slice, if it has any.
    pub fn add_to(sum: &mut Option<Self>, other: Option<&Self>) {
        if let Some(other) = other {
            sum.get_or_insert_default().add(other);
        }
    }
}

fn add_lists(sums: &mut Vec<u64>, others: &[u64]) {
    if sums.len() < others.len() {
        sums.resize(others.len(), 0);
    }
    sums.iter_mut().zip(others).for_each(|(sum, other)| *sum += other);
}
