//! Which requests are due, and which wait for a connection.

mod closed;
mod open;
mod walking;
mod walks;

use std::collections::VecDeque;

pub use closed::{Closed, Users};
use open::Open;
use redline_pacing::Schedule;
use walking::{Begins, Journeys};
pub use walks::{AfterStep, NOBODY, WalkRules, Walks};

use crate::by_journey::Mark;
use crate::request::{DueRequest, EndedRequest, NEVER};

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
    /// Nothing falls due at or after this.
    end_ns: u64,
}

// A byte tells which it is: computed from another field, it costs a hundredth of what a request does.
#[repr(u8)]
enum Kind {
    Closed(Closed),
    Open(Open),
    Journeys(Box<Journeys>),
}

impl Demand {
    fn new(kind: Kind, end_ns: u64) -> Self {
        Self { kind, returned: VecDeque::new(), end_ns }
    }

    /// Users who send the next request when a request is answered. With `walks`, they take journeys, and go on with those
    /// under way.
    pub fn closed(users: Users, walks: Option<Walks>, epoch_ns: u64, end_ns: u64) -> Self {
        let busy = walks.iter().flat_map(Walks::users_under_way);
        let closed = Closed::new(users, epoch_ns, busy);
        let kind = match walks {
            None => Kind::Closed(closed),
            Some(walks) => Kind::Journeys(Box::new(Journeys::new(Begins::Closed(closed), walks))),
        };
        Self::new(kind, end_ns)
    }

    /// Requests that fall due by a schedule. With `walks`, journeys that begin by it, and those under way.
    pub fn open(schedule: Schedule, walks: Option<Walks>, epoch_ns: u64, end_ns: u64) -> Self {
        let open = Open::new(schedule, epoch_ns);
        let kind = match walks {
            None => Kind::Open(open),
            Some(walks) => Kind::Journeys(Box::new(Journeys::new(Begins::Open(open), walks))),
        };
        Self::new(kind, end_ns)
    }

    /// Only steps that are due by the walks themselves.
    pub fn of_walks(walks: Walks, end_ns: u64) -> Self {
        Self::new(Kind::Journeys(Box::new(Journeys::new(Begins::Never, walks))), end_ns)
    }

    /// The journeys, if this is a load of journeys.
    #[inline]
    pub fn walks(&self) -> Option<&Walks> {
        if let Kind::Journeys(journeys) = &self.kind { Some(&journeys.walks) } else { None }
    }

    #[inline]
    pub fn walks_mut(&mut self) -> Option<&mut Walks> {
        if let Kind::Journeys(journeys) = &mut self.kind { Some(&mut journeys.walks) } else { None }
    }

    /// The journeys, to go on in another load.
    pub fn into_walks(self) -> Option<Walks> {
        if let Kind::Journeys(journeys) = self.kind { Some(journeys.walks) } else { None }
    }

    pub fn is_open(&self) -> bool {
        match &self.kind {
            Kind::Closed(_) => false,
            Kind::Open(_) => true,
            Kind::Journeys(journeys) => !journeys.is_closed(),
        }
    }

    /// When the next event is due; [`NEVER`] when there is none.
    #[inline]
    pub fn next_due_ns(&self) -> u64 {
        let due_ns = match &self.kind {
            Kind::Closed(closed) => closed.next_ns(),
            Kind::Open(open) => open.next_due_ns(),
            Kind::Journeys(journeys) => journeys.next_ns(),
        };
        if due_ns < self.end_ns { due_ns } else { NEVER }
    }

    /// Take the next event. There must be one: see [`Demand::next_due_ns`].
    #[inline]
    pub fn pop_due(&mut self) -> DueEvent {
        match &mut self.kind {
            Kind::Closed(closed) => closed.pop_due(),
            Kind::Open(open) => DueEvent::Due(open.pop_due()),
            Kind::Journeys(journeys) => journeys.pop_due(),
        }
    }

    /// A request has ended, or a journey. In a closed load its user sends the next, now or later. Returns the due time of the next request if
    /// it is due now, and waits; the time may be in the past if users keep a pace.
    #[inline]
    pub fn ended(&mut self, due: DueRequest, now_ns: u64) -> Option<u64> {
        match &mut self.kind {
            Kind::Closed(closed) => closed.ended(due, now_ns, self.end_ns),
            Kind::Open(_) => None,
            Kind::Journeys(journeys) => journeys.ended(due, now_ns, self.end_ns),
        }
    }

    /// A step of a journey has ended: what follows. `None` if this is no load of journeys.
    #[inline]
    pub fn step_ended(&mut self, ended: &EndedRequest, now_ns: u64) -> Option<AfterStep> {
        let Kind::Journeys(journeys) = &mut self.kind else {
            return None;
        };
        Some(journeys.step_ended(ended, now_ns, self.end_ns))
    }

    /// How many requests wait and can be sent.
    #[inline]
    pub fn waiting(&self) -> u64 {
        let fresh = match &self.kind {
            Kind::Closed(closed) => closed.waiting.len() as u64,
            Kind::Open(open) => open.waiting,
            Kind::Journeys(journeys) => journeys.waiting(),
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
            Kind::Journeys(journeys) => journeys.oldest_due_ns(),
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
            Kind::Journeys(journeys) => journeys.take(false),
        }
    }

    /// Take what has waited longest, even if it cannot be sent because no user is free.
    pub fn take_any(&mut self) -> Option<DueRequest> {
        if self.returned.is_empty()
            && let Kind::Journeys(journeys) = &mut self.kind
        {
            return journeys.take(true);
        }
        self.take()
    }

    /// Whether what has waited longest waits for a user.
    pub fn lacks_user(&self) -> bool {
        if let Kind::Journeys(journeys) = &self.kind { journeys.lacks_user() } else { false }
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
