//! Which requests are due, and which wait for a connection.

mod closed;
mod open;

use std::collections::VecDeque;

use redline_pacing::Schedule;

pub use closed::{Closed, Users};
use open::Open;

/// Later than any time.
pub const NEVER: u64 = u64::MAX;

/// A request that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DueRequest {
    /// When it was due, in nanoseconds of the monotonic clock.
    pub due_ns: u64,
    /// In a closed load, the number of its user among the users of this worker; in a replay, its number among all requests.
    pub user: u32,
    /// How often it was written without an answer, not counting what its server announced not to process.
    pub tries: u8,
    /// Its number among all requests of the job, set when it is first written.
    pub seq: u64,
    /// When it was last written, if it was.
    pub written_ns: Option<u64>,
}

impl DueRequest {
    pub fn new(due_ns: u64, user: u32) -> Self {
        Self { due_ns, user, tries: 0, seq: 0, written_ns: None }
    }
}

/// The next event of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DueEvent {
    /// A request fell due at this time, and waits.
    Due(u64),
    /// A user of a closed load joined.
    Joined,
    /// A user of a closed load left.
    Left,
    /// An event for a user who has left.
    Nothing,
}

/// The requests of a worker's share of a load. Times are nanoseconds of the monotonic clock.
pub struct Demand {
    kind: Kind,
    /// Requests to be written again, before all others.
    returned: VecDeque<DueRequest>,
    /// Nothing falls due at or after this.
    end_ns: u64,
}

enum Kind {
    Closed(Closed),
    Open(Open),
}

impl Demand {
    /// Users who send the next request when a request is answered.
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

    /// When the next event is due; [`NEVER`] when there is none.
    #[inline]
    pub fn next_due_ns(&self) -> u64 {
        let due_ns = match &self.kind {
            Kind::Closed(closed) => closed.next_ns(),
            Kind::Open(open) => open.next_due_ns(),
        };
        if due_ns < self.end_ns { due_ns } else { NEVER }
    }

    /// Take the next event. There must be one: see [`Demand::next_due_ns`].
    #[inline]
    pub fn pop_due(&mut self) -> DueEvent {
        match &mut self.kind {
            Kind::Closed(closed) => closed.pop_due(),
            Kind::Open(open) => DueEvent::Due(open.pop_due()),
        }
    }

    /// A request has ended. In a closed load its user sends the next, now or later. Returns the due time of the next request if
    /// it is due now, and waits; the time may be in the past if users keep a pace.
    #[inline]
    pub fn ended(&mut self, due: DueRequest, now_ns: u64) -> Option<u64> {
        match &mut self.kind {
            Kind::Closed(closed) => closed.ended(due, now_ns, self.end_ns),
            Kind::Open(_) => None,
        }
    }

    /// How many requests wait.
    #[inline]
    pub fn waiting(&self) -> u64 {
        let fresh = match &self.kind {
            Kind::Closed(closed) => closed.waiting.len() as u64,
            Kind::Open(open) => open.waiting,
        };
        fresh + self.returned.len() as u64
    }

    /// When the oldest waiting request was due; [`NEVER`] when none waits.
    pub fn oldest_due_ns(&self) -> u64 {
        if let Some(due) = self.returned.front() {
            return due.due_ns;
        }
        match &self.kind {
            Kind::Closed(closed) => closed.waiting.front().map_or(NEVER, |due| due.due_ns),
            Kind::Open(open) => open.oldest_due_ns(),
        }
    }

    /// Take the oldest waiting request.
    #[inline]
    pub fn take(&mut self) -> Option<DueRequest> {
        if let Some(due) = self.returned.pop_front() {
            return Some(due);
        }
        match &mut self.kind {
            Kind::Closed(closed) => closed.waiting.pop_front(),
            Kind::Open(open) => open.take(),
        }
    }

    /// A request is to be written again.
    pub fn give_back(&mut self, due: DueRequest) {
        self.returned.push_back(due);
    }

    /// No request falls due from this time on.
    pub fn cut(&mut self, end_ns: u64) {
        self.end_ns = self.end_ns.min(end_ns);
    }
}

#[cfg(test)]
mod tests;
