//! Why requests failed: the first failure of each outcome. That of `ok` is a right answer with `errors` that are looked for.

use serde::{Deserialize, Serialize};

use crate::Outcome;

/// The first request that ended with an outcome other than `ok`, or was answered right with `errors` that are looked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// How it ended.
    pub outcome: Outcome,
    /// What was wrong, in a line of text.
    pub reason: String,
    /// The position in the answer, in bytes from its first; `None` if there is none.
    pub at: Option<u64>,
    /// The position of the first byte that is shown.
    pub from: Option<u64>,
    /// Bytes of the answer around that position; `None` if no part of the answer arrived.
    pub bytes_base64: Option<String>,
    /// The index of the request in the job, if there are several and it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<u32>,
    /// When the failure occurred, in nanoseconds since the epoch; 0 before it.
    pub time_ns: u64,
}

/// The first failure of each outcome, in the order of outcomes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Failures(Vec<Failure>);

impl Failures {
    /// Add a failure, unless its outcome has an earlier failure.
    pub fn add(&mut self, failure: Failure) {
        match self.0.binary_search_by_key(&failure.outcome, |known| known.outcome) {
            Ok(place) if failure.time_ns < self.0[place].time_ns => self.0[place] = failure,
            Ok(_) => {}
            Err(place) => self.0.insert(place, failure),
        }
    }

    /// Add the failures of another worker, shard or slice.
    pub fn merge(&mut self, other: Self) {
        other.0.into_iter().for_each(|failure| self.add(failure));
    }

    /// All failures, in the order of outcomes.
    #[must_use]
    pub fn as_slice(&self) -> &[Failure] {
        &self.0
    }

    /// Take the first failure in the order of outcomes.
    #[must_use]
    pub fn into_first(self) -> Option<Failure> {
        self.0.into_iter().next()
    }

    /// Make all times relative to `epoch_ns`; earlier times become 0.
    #[must_use]
    pub fn since(mut self, epoch_ns: u64) -> Self {
        self.0.iter_mut().for_each(|failure| failure.time_ns = failure.time_ns.saturating_sub(epoch_ns));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::{Failure, Failures};
    use crate::Outcome;

    fn failure(outcome: Outcome, time_ns: u64) -> Failure {
        Failure { outcome, reason: String::new(), at: None, from: None, bytes_base64: None, request: None, time_ns }
    }

    #[test]
    fn the_earliest_of_each_outcome_wins_in_any_order() {
        let all = [(Outcome::Closed, 7), (Outcome::Malformed, 9), (Outcome::Closed, 5), (Outcome::Closed, 6)];
        for turn in 0..all.len() {
            let mut rotated = all;
            rotated.rotate_left(turn);
            let (mut failures, mut others) = (Failures::default(), Failures::default());
            rotated[..2].iter().for_each(|(outcome, time_ns)| failures.add(failure(*outcome, *time_ns)));
            rotated[2..].iter().for_each(|(outcome, time_ns)| others.add(failure(*outcome, *time_ns)));
            failures.merge(others);
            assert_eq!(failures.as_slice(), [failure(Outcome::Malformed, 9), failure(Outcome::Closed, 5)]);
            let later = failures.since(6);
            assert_eq!(later.as_slice(), [failure(Outcome::Malformed, 3), failure(Outcome::Closed, 0)]);
        }
    }
}
