//! Single requests that are kept beside the counts: the slowest, and some whose traces are sampled.

use serde::{Deserialize, Serialize};

use crate::Outcome;

/// How many of the slowest requests are kept.
pub const MOST_SLOWEST: usize = 10;

/// A request of the measurement. Times are nanoseconds since the epoch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptRequest {
    /// The index of the request in the job, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<u32>,
    /// When it was due.
    pub due_ns: u64,
    /// When it was last written; `None` if it never was.
    pub written_ns: Option<u64>,
    /// When the first byte of its answer came, if that was complete.
    pub first_ns: Option<u64>,
    /// When the last byte of its answer came, or its outcome was known.
    pub end_ns: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// The status of its answer, if that was complete and has one.
    pub status: Option<u16>,
    /// The trace context that was sent with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
}

impl KeptRequest {
    /// From due to the end.
    #[must_use]
    pub fn response_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.due_ns)
    }
}

/// The requests that are kept of a load.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptRequests {
    /// The [`MOST_SLOWEST`] with the longest response times, the slowest first.
    pub slowest: Vec<KeptRequest>,
    /// Of those whose traces are sampled, a random sample: the lowest trace ids.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sampled: Vec<KeptRequest>,
}

impl KeptRequests {
    /// Whether nothing was kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slowest.is_empty() && self.sampled.is_empty()
    }

    /// Add those of another worker or shard, with at most so many whose traces are sampled.
    pub fn add(&mut self, other: Self, most_sampled: usize) {
        self.slowest.extend(other.slowest);
        self.slowest.sort_by_key(|kept| (u64::MAX - kept.response_ns(), kept.due_ns));
        self.slowest.truncate(MOST_SLOWEST);
        self.sampled.extend(other.sampled);
        self.sampled.sort_by(|one, other| one.traceparent.cmp(&other.traceparent));
        self.sampled.truncate(most_sampled);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kept(due_ns: u64, lasts_ns: u64, id: u32) -> KeptRequest {
        KeptRequest {
            request: None,
            due_ns,
            written_ns: None,
            first_ns: None,
            end_ns: due_ns + lasts_ns,
            outcome: Outcome::Ok,
            status: None,
            traceparent: Some(format!("00-{id:032x}-{id:016x}-01")),
        }
    }

    fn of(requests: &[KeptRequest]) -> KeptRequests {
        let mut made = KeptRequests::default();
        made.add(KeptRequests { slowest: requests.to_vec(), sampled: requests.to_vec() }, 7);
        made
    }

    proptest! {
        #[test]
        fn the_kept_of_parts_are_the_kept_of_all(
            all in prop::collection::vec((0_u64..1000, 0_u64..50, any::<u32>()), 0..60), cut in 0_usize..60
        ) {
            let all: Vec<_> = all.into_iter().map(|(due, lasts, id)| kept(due, lasts, id)).collect();
            let (one, other) = all.split_at(cut.min(all.len()));
            let mut merged = of(one);
            merged.add(of(other), 7);
            let times = |kept: &KeptRequests| -> Vec<u64> {
                kept.slowest.iter().map(KeptRequest::response_ns).collect()
            };
            let mut sorted: Vec<u64> = all.iter().map(KeptRequest::response_ns).collect();
            sorted.sort_unstable_by(|one, other| other.cmp(one));
            sorted.truncate(MOST_SLOWEST);
            prop_assert_eq!(times(&merged), sorted);
            let ids = |kept: &KeptRequests| -> Vec<_> {
                kept.sampled.iter().map(|kept| kept.traceparent.clone()).collect()
            };
            prop_assert_eq!(ids(&merged), ids(&of(&all)));
            prop_assert!(merged.sampled.len() == all.len().min(7));
        }
    }
}
