//! A load of journeys: when they begin as in any load, and their steps in between.

use std::collections::VecDeque;

use redline_pacing::Schedule;

use super::closed::{Closed, Users};
use super::open::Open;
use super::walks::{AfterStep, Walks};
use super::{Demand, DueEvent, DueRequest, Kind, NEVER};
use crate::by_journey::Mark;
use crate::client::EndedRequest;

impl Demand {
    /// A closed load whose users go on with their journeys.
    pub fn closed_of_journeys(users: Users, walks: Option<Box<Walks>>, epoch_ns: u64, end_ns: u64) -> Self {
        let busy = walks.iter().flat_map(|walks| walks.users_under_way());
        let kind = Kind::Closed(Closed::new(users, epoch_ns, busy));
        Self { kind, returned: VecDeque::new(), walks, end_ns }
    }

    /// Requests that fall due by a schedule, or journeys that begin by it.
    pub fn open(schedule: Schedule, walks: Option<Box<Walks>>, epoch_ns: u64, end_ns: u64) -> Self {
        Self { kind: Kind::Open(Open::new(schedule, epoch_ns)), returned: VecDeque::new(), walks, end_ns }
    }

    /// No load: only steps that are due by the walks alone.
    pub fn of_walks(walks: Walks, end_ns: u64) -> Self {
        Self { kind: Kind::Walks, returned: VecDeque::new(), walks: Some(Box::new(walks)), end_ns }
    }

    /// The journeys under way, if this is a load of journeys.
    #[inline]
    pub fn walks(&self) -> Option<&Walks> {
        self.walks.as_deref()
    }

    #[inline]
    pub fn walks_mut(&mut self) -> Option<&mut Walks> {
        self.walks.as_deref_mut()
    }

    /// The journeys, to go on in another load.
    pub fn into_walks(self) -> Option<Box<Walks>> {
        self.walks
    }

    /// When the next event is due, in a load of journeys whose next journey begins at this time.
    pub(super) fn next_walking_ns(&self, walks: &Walks, begin_ns: u64) -> u64 {
        let begin_ns = if walks.begins_are_over() { NEVER } else { begin_ns };
        let due_ns = begin_ns.min(walks.next_ns());
        if due_ns < self.end_ns { due_ns } else { NEVER }
    }

    /// Take the next event, if it is of a journey under way.
    pub(super) fn pop_step(&mut self) -> Option<DueEvent> {
        let begin_ns = self.kind.next_ns();
        let walks = self.walks.as_deref_mut()?;
        let begin_ns = if walks.begins_are_over() { NEVER } else { begin_ns };
        if walks.next_ns() > begin_ns {
            return None;
        }
        let user = walks.next_user()?;
        if self.kind.is_present(user) {
            return walks.pop_due().map(DueEvent::Step);
        }
        let (_, mark) = walks.drop_next()?;
        self.kind.left(user);
        Some(DueEvent::Dropped(mark))
    }

    /// Take the step or the first step of a journey that has waited longest. `any`: also one without a free user.
    pub(super) fn take_walking(&mut self, any: bool) -> Option<DueRequest> {
        let walks = self.walks.as_deref_mut()?;
        let begin_ns = self.kind.oldest_due_ns();
        let may_begin = begin_ns != NEVER && (any || walks.can_begin(1) > 0);
        if walks.waiting() > 0 && (!may_begin || walks.oldest_due_ns() <= begin_ns) {
            return walks.take();
        }
        if !may_begin {
            return None;
        }
        let due = self.kind.take()?;
        Some(walks.set_off(due))
    }

    /// Take what has waited longest, even if it cannot be sent.
    pub fn take_any(&mut self) -> Option<DueRequest> {
        match self.returned.pop_front() {
            None if self.walks.is_some() => self.take_walking(true),
            None => self.kind.take(),
            due => due,
        }
    }

    /// Whether what has waited longest waits for a user.
    pub fn lacks_user(&self) -> bool {
        let begin_ns = self.kind.oldest_due_ns();
        self.walks.as_deref().is_some_and(|walks| walks.can_begin(1) == 0 && begin_ns < walks.oldest_due_ns())
    }

    /// A step has ended: what follows, and the mark of its journey.
    #[inline]
    pub fn step_ended(&mut self, ended: &EndedRequest, now_ns: u64) -> Option<(AfterStep, Option<Mark>)> {
        let user = ended.due.user;
        let is_present = self.kind.is_present(user);
        let walks = self.walks.as_deref_mut()?;
        let mark = walks.mark_of(user);
        Some((walks.ended(ended, now_ns, self.end_ns, is_present), mark))
    }

    /// A journey has ended. In a closed load its user begins the next, as after a request of any other load.
    #[inline]
    pub fn journey_ended(&mut self, due: DueRequest, now_ns: u64) -> Option<u64> {
        let is_over = self.walks.as_deref().is_some_and(Walks::begins_are_over);
        let end_ns = if is_over { 0 } else { self.end_ns };
        match &mut self.kind {
            Kind::Closed(closed) => closed.ended(due, now_ns, end_ns),
            Kind::Open(_) | Kind::Walks => None,
        }
    }
}
