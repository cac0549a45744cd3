//! When the measurement begins, where that is told while the load runs.
//!
//! It begins at the end of an interval of the warm-up, the same for all workers. Each of them asks here whenever one of its
//! own ends, under a lock: so whoever is told of an instant that is still to come is told before any worker has passed it, and a
//! worker that is late has not passed it either. While the measurement runs nobody asks.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::sys::time::now_ns;

/// The ends of the intervals of a warm-up, in nanoseconds of the monotonic clock.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_field_names, reason = "units stand in names")]
pub struct IntervalGrid {
    pub epoch_ns: u64,
    pub interval_ns: u64,
    /// When the warm-up ends if nobody says so before.
    pub latest_ns: u64,
}

impl IntervalGrid {
    /// The first end of an interval after this time; `None` when the warm-up ends by itself before it.
    pub fn next_after(&self, ns: u64) -> Option<u64> {
        let whole = ns.saturating_sub(self.epoch_ns) / self.interval_ns + 1;
        Some(self.epoch_ns + whole * self.interval_ns).filter(|at_ns| *at_ns < self.latest_ns)
    }
}

#[derive(Default)]
struct Told {
    at_ns: Option<u64>,
    /// The last end of an interval that some worker has passed.
    passed_ns: u64,
}

/// When the measurement begins. Said once, by whoever is asked to begin it.
#[derive(Default)]
pub struct MeasureStart(Mutex<Told>);

impl MeasureStart {
    /// Begin at the next end of an interval. What was said before, and what is said too late, changes nothing.
    pub fn ask(&self, grid: IntervalGrid) {
        let mut told = self.lock();
        if told.at_ns.is_none() {
            told.at_ns = grid.next_after(now_ns().max(told.passed_ns));
        }
    }

    /// Begin then, which is the end of an interval; whether no worker has passed it yet.
    pub fn set(&self, at_ns: u64) -> bool {
        let mut told = self.lock();
        if told.passed_ns >= at_ns {
            return false;
        }
        told.at_ns = Some(at_ns);
        true
    }

    /// When it begins, if that was said.
    pub fn at_ns(&self) -> Option<u64> {
        self.lock().at_ns
    }

    /// A worker passes the end of an interval of its warm-up: whether the measurement begins with it.
    pub fn has_come(&self, end_ns: u64) -> bool {
        let mut told = self.lock();
        told.passed_ns = told.passed_ns.max(end_ns);
        told.at_ns.is_some_and(|at_ns| at_ns <= end_ns)
    }

    fn lock(&self) -> MutexGuard<'_, Told> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_begins_at_an_end_of_an_interval_before_the_warm_up_ends() {
        let grid = IntervalGrid { epoch_ns: 1000, interval_ns: 100, latest_ns: 1250 };
        let next: Vec<_> = [0, 1000, 1099, 1100, 1199].into_iter().map(|ns| grid.next_after(ns)).collect();
        assert_eq!(next, [Some(1100), Some(1100), Some(1100), Some(1200), Some(1200)]);
        assert_eq!((grid.next_after(1200), grid.next_after(9999)), (None, None));
    }

    #[test]
    fn what_a_worker_has_passed_cannot_be_the_beginning_any_more() {
        let beginning = MeasureStart::default();
        assert!(!beginning.has_come(1100));
        assert!(!beginning.set(1100));
        assert_eq!(beginning.at_ns(), None);
        assert!(beginning.set(1200));
        assert!(!beginning.has_come(1100));
        assert!(beginning.has_come(1200));
    }

    #[test]
    fn it_is_said_once() {
        let beginning = MeasureStart::default();
        let epoch_ns = now_ns();
        let grid = IntervalGrid { epoch_ns, interval_ns: 1_000_000_000_000, latest_ns: u64::MAX };
        beginning.ask(grid);
        let said = beginning.at_ns();
        assert_eq!(said, Some(epoch_ns + grid.interval_ns));
        beginning.ask(IntervalGrid { interval_ns: 1, ..grid });
        assert_eq!(beginning.at_ns(), said);
    }
}
