//! Which requests are due, and which wait for a connection.

mod closed;
mod open;
mod walking;
mod walks;

use std::collections::VecDeque;

pub use closed::{Closed, Users};
use open::Open;
pub use walks::{AfterStep, NOBODY, WalkRules, Walks};

use crate::by_journey::Mark;

/// Later than any time.
pub const NEVER: u64 = u64::MAX;

/// A request that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DueRequest {
    /// When it was due, in nanoseconds of the monotonic clock.
    pub due_ns: u64,
    /// In a closed load and in journeys, the number of its user among the users of this worker; in a replay, its number among
    /// all requests.
    pub user: u32,
    /// How often it was written without an answer, not counting what its server announced not to process.
    pub tries: u8,
    /// How a step of a journey came to be due.
    pub kind: StepKind,
    /// The number of the step of a journey.
    pub step: u16,
    /// Its number among all requests of the job, set when it is first written.
    pub seq: u64,
    /// When it was last written, if it was.
    pub written_ns: Option<u64>,
}

/// How a step came to be due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StepKind {
    /// It follows another step, or is of no journey.
    #[default]
    Next,
    /// It begins a journey.
    First,
    /// It begins `once`, which is taken again.
    Again,
    /// It is sent again, after `once` was.
    Repeated,
}

impl DueRequest {
    pub fn new(due_ns: u64, user: u32) -> Self {
        Self { due_ns, user, tries: 0, kind: StepKind::Next, step: 0, seq: 0, written_ns: None }
    }
}

/// The next event of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DueEvent {
    /// A request fell due at this time, and waits. It begins a journey, in a load of journeys.
    Due(u64),
    /// A later step of a journey fell due at this time, and waits.
    Step(u64),
    /// The user of a journey with this mark has left.
    Dropped(Mark),
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
    /// The journeys under way, in a load of journeys.
    walks: Option<Box<Walks>>,
    /// Nothing falls due at or after this.
    end_ns: u64,
}

enum Kind {
    Closed(Closed),
    Open(Open),
    /// No request falls due but the steps of journeys.
    Walks,
}

impl Kind {
    #[inline]
    fn next_ns(&self) -> u64 {
        match self {
            Self::Closed(closed) => closed.next_ns(),
            Self::Open(open) => open.next_due_ns(),
            Self::Walks => NEVER,
        }
    }

    #[inline]
    fn waiting(&self) -> u64 {
        match self {
            Self::Closed(closed) => closed.waiting.len() as u64,
            Self::Open(open) => open.waiting,
            Self::Walks => 0,
        }
    }

    #[inline]
    fn oldest_due_ns(&self) -> u64 {
        match self {
            Self::Closed(closed) => closed.waiting.front().map_or(NEVER, |due| due.due_ns),
            Self::Open(open) => open.oldest_due_ns(),
            Self::Walks => NEVER,
        }
    }

    #[inline]
    fn take(&mut self) -> Option<DueRequest> {
        match self {
            Self::Closed(closed) => closed.waiting.pop_front(),
            Self::Open(open) => open.take(),
            Self::Walks => None,
        }
    }

    /// Whether a user has not left.
    #[inline]
    fn is_present(&self, user: u32) -> bool {
        if let Self::Closed(closed) = self { closed.is_present(user) } else { true }
    }

    /// The last step of a user who has left is over.
    fn left(&mut self, user: u32) {
        if let Self::Closed(closed) = self {
            closed.left(user);
        }
    }
}

impl Demand {
    /// Users who send the next request when a request is answered.
    pub fn closed(users: Users, epoch_ns: u64, end_ns: u64) -> Self {
        Self::closed_of_journeys(users, None, epoch_ns, end_ns)
    }

    pub fn is_open(&self) -> bool {
        !matches!(self.kind, Kind::Closed(_))
    }

    /// When the next event is due; [`NEVER`] when there is none.
    #[inline]
    pub fn next_due_ns(&self) -> u64 {
        let due_ns = self.kind.next_ns();
        if let Some(walks) = &self.walks {
            return self.next_walking_ns(walks, due_ns);
        }
        if due_ns < self.end_ns { due_ns } else { NEVER }
    }

    /// Take the next event. There must be one: see [`Demand::next_due_ns`].
    #[inline]
    pub fn pop_due(&mut self) -> DueEvent {
        if self.walks.is_some()
            && let Some(event) = self.pop_step()
        {
            return event;
        }
        match &mut self.kind {
            Kind::Closed(closed) => closed.pop_due(),
            Kind::Open(open) => DueEvent::Due(open.pop_due()),
            Kind::Walks => DueEvent::Nothing,
        }
    }

    /// A request has ended. In a closed load its user sends the next, now or later. Returns the due time of the next request if
    /// it is due now, and waits; the time may be in the past if users keep a pace.
    #[inline]
    pub fn ended(&mut self, due: DueRequest, now_ns: u64) -> Option<u64> {
        match &mut self.kind {
            Kind::Closed(closed) => closed.ended(due, now_ns, self.end_ns),
            Kind::Open(_) | Kind::Walks => None,
        }
    }

    /// How many requests wait and can be sent.
    #[inline]
    pub fn waiting(&self) -> u64 {
        let fresh = match &self.walks {
            None => self.kind.waiting(),
            Some(walks) => walks.can_begin(self.kind.waiting()) + walks.waiting(),
        };
        fresh + self.returned.len() as u64
    }

    /// When the oldest waiting request was due; [`NEVER`] when none waits.
    pub fn oldest_due_ns(&self) -> u64 {
        if let Some(due) = self.returned.front() {
            return due.due_ns;
        }
        match &self.walks {
            None => self.kind.oldest_due_ns(),
            Some(walks) if walks.is_patient() => NEVER,
            Some(walks) => self.kind.oldest_due_ns().min(walks.oldest_due_ns()),
        }
    }

    /// Take the oldest waiting request.
    #[inline]
    pub fn take(&mut self) -> Option<DueRequest> {
        if let Some(due) = self.returned.pop_front() {
            return Some(due);
        }
        if self.walks.is_some() {
            return self.take_walking(false);
        }
        self.kind.take()
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
#[cfg(test)]
mod walk_tests;
