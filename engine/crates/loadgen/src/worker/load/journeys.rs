//! What a worker's load does where it is of journeys: when they begin, go on and end.

use redline_traffic::JourneyEnd;

use super::WorkerLoad;
use crate::by_journey::{Entry, Mark};
use crate::demand::{AfterStep, Walks};
use crate::request::{DueRequest, EndedRequest, StepKind};

impl WorkerLoad {
    /// Remember whether a journey counts that begins.
    #[inline]
    pub(super) fn mark(&mut self, due: &DueRequest) {
        if due.kind == StepKind::First {
            let mark = self.tally.mark_of_journey(due.due_ns);
            if let Some(walks) = self.demand.walks_mut() {
                walks.mark(due.user, mark);
            }
        }
    }

    /// A journey fell due. The measurement ends when the last that may begin is over.
    pub(super) fn begin_journey(&mut self, due_ns: u64) {
        self.tally.journey_due(due_ns);
        let mut is_last = false;
        if let Some(left) = &mut self.count
            && due_ns >= self.measure_ns
        {
            *left = left.saturating_sub(1);
            is_last = *left == 0;
        }
        if let Some(walks) = self.demand.walks_mut() {
            if walks.begin() {
                self.tally.rows_used_up();
            }
            if is_last {
                walks.end_begins();
            }
        }
    }

    /// End the measurement, if no journey is under way and none may begin.
    pub(super) fn end_if_done(&mut self, now_ns: u64) {
        if self.demand.walks().is_some_and(Walks::is_done) {
            self.end_at(now_ns.max(self.measure_ns));
        }
    }

    /// A step of a journey has ended: what follows it.
    pub(super) fn end_step(&mut self, ended: &EndedRequest, now_ns: u64) {
        let Some(after) = self.demand.step_ended(ended, now_ns) else {
            return;
        };
        if self.demand.walks().is_some_and(Walks::has_asides) {
            self.count_asides(&ended.due);
        }
        match after {
            // The journey goes on, so it cannot have been the last.
            AfterStep::Due(due_ns) => return self.tally.due(due_ns, due_ns),
            AfterStep::Over(end) => {
                self.tally.journey(self.mark_of(&ended.due), Entry::Ended(end));
                if let Some(due_ns) = self.demand.ended(ended.due, now_ns) {
                    self.tally.due(due_ns, due_ns);
                    if due_ns < now_ns {
                        self.tally.waited(due_ns);
                    }
                    self.begin_journey(due_ns);
                }
            }
            AfterStep::Later | AfterStep::Done => {}
        }
        self.end_if_done(now_ns);
    }

    /// The mark of the journey that a step belongs to.
    fn mark_of(&self, due: &DueRequest) -> Mark {
        let mark = self.demand.walks().and_then(|walks| walks.mark_of(due.user));
        mark.unwrap_or_else(|| self.tally.mark_of_journey(due.due_ns))
    }

    /// Count the steps that were skipped after a step, and that `once` is taken again.
    #[cold]
    fn count_asides(&mut self, due: &DueRequest) {
        let mark = self.mark_of(due);
        if let Some(walks) = self.demand.walks_mut() {
            walks.each_skipped(|step| self.tally.journey(mark, Entry::Skipped(step)));
            if walks.takes_again() {
                self.tally.journey(mark, Entry::Again);
            }
        }
    }

    /// Journeys whose next step would fall due after the load are unfinished. Those of a duet may go on in a later slice.
    pub(super) fn leave_unfinished(&mut self) {
        if let Some(walks) = self.demand.walks()
            && !self.tally.has_later_slices()
        {
            for mark in walks.marks_under_way() {
                self.tally.journey(mark, Entry::Ended(JourneyEnd::Unfinished));
            }
        }
    }
}
