//! What is due, and what waits for a connection.
//!
//! An open load's waiting requests are a stretch of its schedule, so two cursors hold any number of them: one at the next
//! request to fall due, one at the oldest that waits. A closed load's are at most its users.

use std::collections::VecDeque;

use redline_pacing::Schedule;

/// Later than any time.
pub const NEVER: u64 = u64::MAX;

/// The requests of one worker's share of a load. Times are nanoseconds of the monotonic clock.
pub struct Demand {
    kind: Kind,
    /// Nothing falls due at or after this.
    end_ns: u64,
}

enum Kind {
    Closed { beginners: usize, epoch_ns: u64, waiting: VecDeque<u64> },
    Open { ahead: Cursor, oldest: Option<Cursor>, waiting: u64 },
}

#[derive(Clone)]
struct Cursor {
    schedule: Schedule,
    epoch_ns: u64,
    due_ns: u64,
}

impl Cursor {
    fn new(mut schedule: Schedule, epoch_ns: u64) -> Self {
        let due_ns = next_after(&mut schedule, epoch_ns);
        Self { schedule, epoch_ns, due_ns }
    }

    fn advance(&mut self) -> u64 {
        std::mem::replace(&mut self.due_ns, next_after(&mut self.schedule, self.epoch_ns))
    }
}

fn next_after(schedule: &mut Schedule, epoch_ns: u64) -> u64 {
    schedule.next().map_or(NEVER, |due| due.saturating_add(epoch_ns))
}

impl Demand {
    /// Users who ask first at the epoch, and again when they are answered.
    pub fn closed(users: usize, epoch_ns: u64, end_ns: u64) -> Self {
        Self { kind: Kind::Closed { beginners: users, epoch_ns, waiting: VecDeque::with_capacity(users) }, end_ns }
    }

    /// Requests that fall due by a schedule.
    pub fn open(schedule: Schedule, epoch_ns: u64, end_ns: u64) -> Self {
        Self { kind: Kind::Open { ahead: Cursor::new(schedule, epoch_ns), oldest: None, waiting: 0 }, end_ns }
    }

    pub fn is_open(&self) -> bool {
        matches!(self.kind, Kind::Open { .. })
    }

    /// When the next request falls due; [`NEVER`] when none will by itself.
    #[inline]
    pub fn next_due_ns(&self) -> u64 {
        let due = match &self.kind {
            Kind::Closed { beginners: 0, .. } => NEVER,
            Kind::Closed { epoch_ns, .. } => *epoch_ns,
            Kind::Open { ahead, .. } => ahead.due_ns,
        };
        if due < self.end_ns { due } else { NEVER }
    }

    /// The next request falls due, and waits. Only when there is one: see [`Demand::next_due_ns`].
    pub fn fall_due(&mut self) -> u64 {
        match &mut self.kind {
            Kind::Closed { beginners, epoch_ns, waiting } => {
                *beginners -= 1;
                waiting.push_back(*epoch_ns);
                *epoch_ns
            }
            Kind::Open { ahead, oldest, waiting } => {
                if *waiting == 0 {
                    *oldest = Some(ahead.clone());
                }
                *waiting += 1;
                ahead.advance()
            }
        }
    }

    /// A closed load's user asks again, and waits; false when the load is open or has ended.
    pub fn ask_again(&mut self, now_ns: u64) -> bool {
        match &mut self.kind {
            Kind::Closed { waiting, .. } if now_ns < self.end_ns => {
                waiting.push_back(now_ns);
                true
            }
            _ => false,
        }
    }

    /// How many wait.
    #[inline]
    pub fn waiting(&self) -> u64 {
        match &self.kind {
            Kind::Closed { waiting, .. } => waiting.len() as u64,
            Kind::Open { waiting, .. } => *waiting,
        }
    }

    /// When the request that waits first in line was due; [`NEVER`] when none waits.
    pub fn oldest_due_ns(&self) -> u64 {
        match &self.kind {
            Kind::Closed { waiting, .. } => waiting.front().copied().unwrap_or(NEVER),
            Kind::Open { waiting: 0, .. } => NEVER,
            Kind::Open { oldest, .. } => oldest.as_ref().map_or(NEVER, |cursor| cursor.due_ns),
        }
    }

    /// Take the request that waits first in line; when it was due.
    pub fn take(&mut self) -> Option<u64> {
        match &mut self.kind {
            Kind::Closed { waiting, .. } => waiting.pop_front(),
            Kind::Open { waiting: 0, .. } => None,
            Kind::Open { oldest, waiting, .. } => {
                *waiting -= 1;
                oldest.as_mut().map(Cursor::advance)
            }
        }
    }

    /// Nothing falls due from this time on.
    pub fn cut(&mut self, end_ns: u64) {
        self.end_ns = self.end_ns.min(end_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::{Demand, NEVER};
    use proptest::prelude::*;
    use redline_pacing::{Arrivals, Schedule};

    fn schedule(seed: u64) -> Schedule {
        Schedule::new(1e6, Arrivals::Poisson, seed, 0, 1).unwrap()
    }

    proptest! {
        /// Whatever the order of falling due and taking, the queue is first come, first served, and loses nothing.
        #[test]
        fn an_open_queue_is_a_stretch_of_the_schedule(seed: u64, takes in prop::collection::vec(any::<bool>(), 0..300)) {
            let mut demand = Demand::open(schedule(seed), 1000, NEVER);
            let mut due = schedule(seed).map(|due| due + 1000);
            let mut queue = std::collections::VecDeque::new();
            for take in takes {
                if take {
                    prop_assert_eq!(demand.take(), queue.pop_front());
                } else {
                    let expected = due.next().unwrap();
                    prop_assert_eq!(demand.next_due_ns(), expected);
                    prop_assert_eq!(demand.fall_due(), expected);
                    queue.push_back(expected);
                }
                prop_assert_eq!(demand.waiting(), queue.len() as u64);
                prop_assert_eq!(demand.oldest_due_ns(), queue.front().copied().unwrap_or(NEVER));
            }
        }
    }

    #[test]
    fn an_open_load_ends_before_its_end() {
        let mut demand = Demand::open(Schedule::new(1e7, Arrivals::Uniform, 0, 0, 1).unwrap(), 50, 251);
        assert_eq!([demand.fall_due(), demand.fall_due(), demand.fall_due()], [50, 150, 250]);
        assert_eq!(demand.next_due_ns(), NEVER);
        assert!(!demand.ask_again(51));
    }

    #[test]
    fn users_begin_together_and_ask_again_until_the_end() {
        let mut demand = Demand::closed(2, 100, 1000);
        assert_eq!(demand.next_due_ns(), 100);
        assert_eq!([demand.fall_due(), demand.fall_due()], [100, 100]);
        assert_eq!(demand.next_due_ns(), NEVER);
        assert_eq!(demand.take(), Some(100));
        assert!(demand.ask_again(500));
        assert_eq!([demand.take(), demand.take(), demand.take()], [Some(100), Some(500), None]);
        demand.cut(600);
        assert!(!demand.ask_again(600));
    }
}
