//! What is to be sent, and when.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// Bytes of answers that wait for their time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    /// When they may be sent.
    pub at_ns: u64,
    /// When the request arrived that they answer.
    pub arrival_ns: u64,
    /// The token of the connection.
    pub token: u64,
    /// The stream of the connection; 0 for HTTP/1.1, whose answers are one after the other.
    pub stream: i32,
    /// How many bytes.
    pub length: usize,
    /// Whether they begin the answer.
    pub first: bool,
    /// Whether they complete the answer.
    pub last: bool,
}

/// All waiting bytes by time; bytes due at the same time are in the order in which they were added.
#[derive(Debug, Default)]
pub struct Agenda {
    entries: BinaryHeap<Reverse<Entry>>,
    added: u64,
}

#[derive(Debug)]
struct Entry {
    order: u64,
    due: Due,
}

impl Agenda {
    /// Adds bytes that wait.
    pub fn add(&mut self, due: Due) {
        self.entries.push(Reverse(Entry { order: self.added, due }));
        self.added += 1;
    }

    /// When the next bytes fall due.
    pub fn next_ns(&self) -> Option<u64> {
        self.entries.peek().map(|Reverse(entry)| entry.due.at_ns)
    }

    /// Takes the next bytes that are due at `now_ns` or before.
    pub fn take_due(&mut self, now_ns: u64) -> Option<Due> {
        if self.next_ns()? > now_ns {
            return None;
        }
        self.entries.pop().map(|Reverse(entry)| entry.due)
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.due.at_ns, self.order).cmp(&(other.due.at_ns, other.order))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Entry {}

#[cfg(test)]
mod tests {
    use super::{Agenda, Due};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_waits_leaves_by_time_and_then_in_order(times in prop::collection::vec(0..20_u64, 0..100)) {
            let mut agenda = Agenda::default();
            for (index, &at_ns) in times.iter().enumerate() {
                agenda.add(Due {
                    at_ns,
                    arrival_ns: 0,
                    token: index as u64,
                    stream: 0,
                    length: 1,
                    first: true,
                    last: true,
                });
            }
            let mut expected: Vec<(u64, u64)> = times.iter().zip(0..).map(|(&at_ns, index)| (at_ns, index)).collect();
            expected.sort_unstable();
            let early = std::iter::from_fn(|| agenda.take_due(9)).map(|due| (due.at_ns, due.token)).collect::<Vec<_>>();
            prop_assert!(agenda.next_ns().is_none_or(|at_ns| at_ns > 9));
            let rest = std::iter::from_fn(|| agenda.take_due(u64::MAX)).map(|due| (due.at_ns, due.token));
            prop_assert_eq!(early.into_iter().chain(rest).collect::<Vec<_>>(), expected);
            prop_assert!(agenda.is_empty());
        }
    }
}
