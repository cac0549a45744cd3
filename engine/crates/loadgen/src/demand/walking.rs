//! A load of journeys: when they begin as in any load, and their steps in between.

use super::DueEvent;
use super::closed::Closed;
use super::open::Open;
use super::walks::{AfterStep, Walks};
use crate::request::{DueRequest, EndedRequest, NEVER};

/// What decides when journeys begin.
// A byte tells which it is, as for all that is due.
#[repr(u8)]
pub enum Begins {
    Closed(Closed),
    Open(Open),
    /// None begins.
    Never,
}

/// The journeys of a worker: those that begin, and those under way.
pub struct Journeys {
    begins: Begins,
    pub walks: Walks,
}

impl Begins {
    #[inline]
    fn next_ns(&self) -> u64 {
        match self {
            Self::Closed(closed) => closed.next_ns(),
            Self::Open(open) => open.next_due_ns(),
            Self::Never => NEVER,
        }
    }

    #[inline]
    fn waiting(&self) -> u64 {
        match self {
            Self::Closed(closed) => closed.waiting.len() as u64,
            Self::Open(open) => open.waiting,
            Self::Never => 0,
        }
    }

    #[inline]
    fn oldest_due_ns(&self) -> u64 {
        match self {
            Self::Closed(closed) => closed.waiting.front().map_or(NEVER, |due| due.due_ns),
            Self::Open(open) => open.oldest_due_ns(),
            Self::Never => NEVER,
        }
    }

    #[inline]
    fn take(&mut self) -> Option<DueRequest> {
        match self {
            Self::Closed(closed) => closed.waiting.pop_front(),
            Self::Open(open) => open.take(),
            Self::Never => None,
        }
    }

    /// Whether a user has not left.
    #[inline]
    fn is_present(&self, user: u32) -> bool {
        if let Self::Closed(closed) = self { closed.is_present(user) } else { true }
    }
}

impl Journeys {
    pub fn new(begins: Begins, walks: Walks) -> Self {
        Self { begins, walks }
    }

    pub fn is_closed(&self) -> bool {
        matches!(self.begins, Begins::Closed(_))
    }

    /// When the next journey begins, or the number of users changes.
    fn next_begin_ns(&self) -> u64 {
        if self.walks.begins_are_over() { NEVER } else { self.begins.next_ns() }
    }

    /// When the next event is due.
    pub fn next_ns(&self) -> u64 {
        self.next_begin_ns().min(self.walks.next_ns())
    }

    /// Take the next event.
    pub fn pop_due(&mut self) -> DueEvent {
        if self.walks.next_ns() <= self.next_begin_ns() {
            return self.pop_step().unwrap_or(DueEvent::Nothing);
        }
        match &mut self.begins {
            Begins::Closed(closed) => closed.pop_due(),
            Begins::Open(open) => DueEvent::Due(open.pop_due()),
            Begins::Never => DueEvent::Nothing,
        }
    }

    fn pop_step(&mut self) -> Option<DueEvent> {
        let user = self.walks.upcoming()?.user;
        if self.begins.is_present(user) {
            return self.walks.pop_due().map(DueEvent::Step);
        }
        let mark = self.walks.drop_next()?;
        if let Begins::Closed(closed) = &mut self.begins {
            closed.left(user);
        }
        Some(DueEvent::Dropped(mark))
    }

    /// How many steps and first steps wait and can be sent.
    #[inline]
    pub fn waiting(&self) -> u64 {
        self.walks.can_begin(self.begins.waiting()) + self.walks.waiting()
    }

    /// When the step that has waited longest was due; [`NEVER`] when none waits, or waiting has no limit.
    pub fn oldest_due_ns(&self) -> u64 {
        if self.walks.is_patient() { NEVER } else { self.begins.oldest_due_ns().min(self.walks.oldest_due_ns()) }
    }

    /// Take the step or the first step of a journey that has waited longest. `any`: also one without a free user.
    #[inline]
    pub fn take(&mut self, any: bool) -> Option<DueRequest> {
        let begin_ns = self.begins.oldest_due_ns();
        if begin_ns == NEVER {
            return self.walks.take();
        }
        let may_begin = any || self.walks.can_begin(1) > 0;
        if self.walks.waiting() > 0 && (!may_begin || self.walks.oldest_due_ns() <= begin_ns) {
            return self.walks.take();
        }
        if !may_begin {
            return None;
        }
        let due = self.begins.take()?;
        Some(self.walks.set_off(due))
    }

    /// Whether what has waited longest waits for a user.
    pub fn lacks_user(&self) -> bool {
        self.walks.can_begin(1) == 0 && self.begins.oldest_due_ns() < self.walks.oldest_due_ns()
    }

    /// A step has ended: what follows.
    #[inline]
    pub fn step_ended(&mut self, ended: &EndedRequest, now_ns: u64, end_ns: u64) -> AfterStep {
        self.walks.ended(ended, now_ns, end_ns, self.begins.is_present(ended.due.user))
    }

    /// A journey has ended. In a closed load its user begins the next, as after a request of any other load: returns when it
    /// was due, if it waits.
    #[inline]
    pub fn ended(&mut self, due: DueRequest, now_ns: u64, end_ns: u64) -> Option<u64> {
        let end_ns = if self.walks.begins_are_over() { 0 } else { end_ns };
        match &mut self.begins {
            Begins::Closed(closed) => closed.ended(due, now_ns, end_ns),
            Begins::Open(_) | Begins::Never => None,
        }
    }
}
