//! What is due, and what waits for a connection.

mod closed;
mod open;

use std::collections::VecDeque;

use redline_pacing::Schedule;

pub use closed::{Closed, Users};
use open::Open;

/// Later than any time.
pub const NEVER: u64 = u64::MAX;

/// A request that is due, before anything is known of what it asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// When it was due, in nanoseconds of the monotonic clock.
    pub due_ns: u64,
    /// Whose it is, in a closed load: the number of the user among those of this worker.
    pub user: u32,
    /// How often it was written in vain without its server having announced that.
    pub tries: u8,
    /// Its number among all requests of the job; given when it is first written.
    pub seq: u64,
    /// When it was last written in vain.
    pub written_ns: Option<u64>,
}

impl Task {
    pub fn new(due_ns: u64, user: u32) -> Self {
        Self { due_ns, user, tries: 0, seq: 0, written_ns: None }
    }
}

/// What happens next by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DueEvent {
    /// A request fell due then, and waits.
    Due(u64),
    /// A user of a closed load came.
    Joined,
    /// A user of a closed load went.
    Left,
    /// Something was to happen for a user who is not there any more.
    Nothing,
}

/// The requests of one worker's share of a load. Times are nanoseconds of the monotonic clock.
pub struct Demand {
    kind: Kind,
    /// Written in vain, and waiting to be written again, before all others.
    returned: VecDeque<Task>,
    /// Nothing falls due at or after this.
    end_ns: u64,
}

enum Kind {
    Closed(Closed),
    Open(Open),
}

impl Demand {
    /// Users who ask again when they are answered.
    pub fn closed(users: Users, epoch_ns: u64, end_ns: u64) -> Self {
        Self { kind: Kind::Closed(Closed::new(users, epoch_ns)), returned: VecDeque::new(), end_ns }
    }

    /// Requests that fall due by a schedule.
    pub fn open(schedule: Schedule, epoch_ns: u64, end_ns: u64) -> Self {
        Self { kind: Kind::Open(Open::new(schedule, epoch_ns)), returned: VecDeque::new(), end_ns }
    }

    pub fn is_open(&self) -> bool {
        matches!(self.kind, Kind::Open(_))
    }

    /// When something next happens by itself; [`NEVER`] when nothing will.
    #[inline]
    pub fn next_due_ns(&self) -> u64 {
        let due_ns = match &self.kind {
            Kind::Closed(closed) => closed.next_ns(),
            Kind::Open(open) => open.next_due_ns(),
        };
        if due_ns < self.end_ns { due_ns } else { NEVER }
    }

    /// What happens next, happens. Only when there is something: see [`Demand::next_due_ns`].
    #[inline]
    pub fn pop_due(&mut self) -> DueEvent {
        match &mut self.kind {
            Kind::Closed(closed) => closed.pop_due(),
            Kind::Open(open) => DueEvent::Due(open.pop_due()),
        }
    }

    /// A request has ended. A closed load's user asks again, now or later: when that request is due now, and waits, its due
    /// time. It may lie in the past where users keep a pace.
    #[inline]
    pub fn ended(&mut self, task: Task, now_ns: u64) -> Option<u64> {
        match &mut self.kind {
            Kind::Closed(closed) => closed.ended(task, now_ns, self.end_ns),
            Kind::Open(_) => None,
        }
    }

    /// How many wait.
    #[inline]
    pub fn waiting(&self) -> u64 {
        let fresh = match &self.kind {
            Kind::Closed(closed) => closed.waiting.len() as u64,
            Kind::Open(open) => open.waiting,
        };
        fresh + self.returned.len() as u64
    }

    /// When the request that waits first in line was due; [`NEVER`] when none waits.
    pub fn oldest_due_ns(&self) -> u64 {
        if let Some(task) = self.returned.front() {
            return task.due_ns;
        }
        match &self.kind {
            Kind::Closed(closed) => closed.waiting.front().map_or(NEVER, |task| task.due_ns),
            Kind::Open(open) => open.oldest_due_ns(),
        }
    }

    /// Take the request that waits first in line.
    #[inline]
    pub fn take(&mut self) -> Option<Task> {
        if let Some(task) = self.returned.pop_front() {
            return Some(task);
        }
        match &mut self.kind {
            Kind::Closed(closed) => closed.waiting.pop_front(),
            Kind::Open(open) => open.take().map(|due_ns| Task::new(due_ns, 0)),
        }
    }

    /// A request was written in vain, and is to be written again.
    pub fn give_back(&mut self, task: Task) {
        self.returned.push_back(task);
    }

    /// Nothing falls due from this time on.
    pub fn cut(&mut self, end_ns: u64) {
        self.end_ns = self.end_ns.min(end_ns);
    }
}

#[cfg(test)]
mod tests;
