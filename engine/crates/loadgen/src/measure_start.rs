//! When the measurement starts, if a command sets that while the load runs.
//!
//! It starts at the end of an interval of the warm-up, the same for all workers. A worker looks here, under a lock, whenever an
//! interval of its warm-up ends, so all workers see an instant that none had passed when it was set. No worker looks here while
//! the measurement runs.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::sys::time::now_ns;

/// The ends of the intervals of a warm-up, in nanoseconds of the monotonic clock.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_field_names, reason = "units stand in names")]
pub struct IntervalGrid {
    pub epoch_ns: u64,
    pub interval_ns: u64,
    /// When the warm-up ends without a command.
    pub latest_ns: u64,
}

impl IntervalGrid {
    /// The first end of an interval after this time; `None` when the warm-up ends before it.
    pub fn next_after(&self, ns: u64) -> Option<u64> {
        self.end_of(ns.saturating_sub(self.epoch_ns) / self.interval_ns + 1)
    }

    /// The first end of an interval at or after this time since the epoch; `None` when the warm-up ends before it.
    pub fn at_or_after(&self, since_epoch_ns: u64) -> Option<u64> {
        self.end_of(since_epoch_ns.div_ceil(self.interval_ns).max(1))
    }

    /// The end of the interval with this number, counted from 1.
    fn end_of(&self, number: u64) -> Option<u64> {
        let at_ns = self.epoch_ns.saturating_add(number.saturating_mul(self.interval_ns));
        Some(at_ns).filter(|at_ns| *at_ns < self.latest_ns)
    }
}

#[derive(Default)]
struct StartState {
    at_ns: Option<u64>,
    /// The last end of an interval that a worker has passed.
    passed_ns: u64,
}

/// When the measurement starts. It is set at most once.
#[derive(Default)]
pub struct MeasureStart {
    state: Mutex<StartState>,
    is_set: Condvar,
}

impl MeasureStart {
    /// Start at the next end of an interval. Does nothing if the start was set before, or the warm-up ends before.
    pub fn set_next(&self, grid: IntervalGrid) {
        let mut state = self.lock();
        if state.at_ns.is_none() {
            state.at_ns = grid.next_after(now_ns().max(state.passed_ns));
            self.is_set.notify_all();
        }
    }

    /// Start at this end of an interval. Returns false if a worker has already passed it.
    pub fn set(&self, at_ns: u64) -> bool {
        let mut state = self.lock();
        if state.passed_ns >= at_ns {
            return false;
        }
        state.at_ns = Some(at_ns);
        self.is_set.notify_all();
        true
    }

    /// When the measurement starts, if that was set.
    pub fn at_ns(&self) -> Option<u64> {
        self.lock().at_ns
    }

    /// Wait until the start is set, or until `latest_ns`, when the measurement starts anyway. Returns when it starts.
    pub fn wait_until(&self, latest_ns: u64) -> u64 {
        let mut state = self.lock();
        loop {
            let left_ns = latest_ns.saturating_sub(now_ns());
            if left_ns == 0 || state.at_ns.is_some() {
                return state.at_ns.unwrap_or(latest_ns);
            }
            let woken = self.is_set.wait_timeout(state, Duration::from_nanos(left_ns));
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// A worker passes the end of an interval of its warm-up. Returns whether the measurement starts there.
    pub fn is_reached(&self, end_ns: u64) -> bool {
        let mut state = self.lock();
        state.passed_ns = state.passed_ns.max(end_ns);
        state.at_ns.is_some_and(|at_ns| at_ns <= end_ns)
    }

    fn lock(&self) -> MutexGuard<'_, StartState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_starts_at_an_end_of_an_interval_before_the_warm_up_ends() {
        let grid = IntervalGrid { epoch_ns: 1000, interval_ns: 100, latest_ns: 1250 };
        let next: Vec<_> = [0, 1000, 1099, 1100, 1199].into_iter().map(|ns| grid.next_after(ns)).collect();
        assert_eq!(next, [Some(1100), Some(1100), Some(1100), Some(1200), Some(1200)]);
        assert_eq!((grid.next_after(1200), grid.next_after(9999)), (None, None));
        let named: Vec<_> = [0, 1, 100, 101, 200, 201, u64::MAX].into_iter().map(|ns| grid.at_or_after(ns)).collect();
        assert_eq!(named, [Some(1100), Some(1100), Some(1100), Some(1200), Some(1200), None, None]);
    }

    #[test]
    fn an_instant_that_a_worker_has_passed_cannot_be_set() {
        let start = MeasureStart::default();
        assert!(!start.is_reached(1100));
        assert!(!start.set(1100));
        assert_eq!(start.at_ns(), None);
        assert!(start.set(1200));
        assert!(!start.is_reached(1100));
        assert!(start.is_reached(1200));
    }

    #[test]
    fn who_waits_for_it_is_woken_when_it_is_set() {
        let start = std::sync::Arc::new(MeasureStart::default());
        let latest_ns = now_ns() + 1_000_000;
        assert_eq!(start.wait_until(latest_ns), latest_ns);
        let waiting = std::sync::Arc::clone(&start);
        let waiter = std::thread::spawn(move || waiting.wait_until(u64::MAX));
        assert!(start.set(7));
        assert_eq!(waiter.join().unwrap(), 7);
    }

    #[test]
    fn it_is_set_once() {
        let start = MeasureStart::default();
        let epoch_ns = now_ns();
        let grid = IntervalGrid { epoch_ns, interval_ns: 1_000_000_000_000, latest_ns: u64::MAX };
        start.set_next(grid);
        let set = start.at_ns();
        assert_eq!(set, Some(epoch_ns + grid.interval_ns));
        start.set_next(IntervalGrid { interval_ns: 1, ..grid });
        assert_eq!(start.at_ns(), set);
    }
}
