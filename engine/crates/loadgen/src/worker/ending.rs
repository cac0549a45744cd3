//! How requests end: with their answer, too late, or with the load.

use redline_traffic::Outcome;

use super::Worker;
use crate::demand::Task;
use crate::io::Io;
use crate::states::State;
use crate::tally::Ending;

impl<I: Io> Worker<I> {
    /// What took too long has failed.
    pub(super) fn expire(&mut self) {
        let timeout_ns = self.job.timeout_ns;
        while let Some(flight) = self.flights.oldest()
            && flight.written_ns.saturating_add(timeout_ns) <= self.now_ns
        {
            self.time_out();
        }
        while let Some(connection) = self.pool.roster.front(State::Opening)
            && self.pool.connections[connection as usize].opened_ns.saturating_add(timeout_ns) <= self.now_ns
        {
            self.opening_timed_out(connection);
        }
        while self.demand.oldest_due_ns().saturating_add(timeout_ns) <= self.now_ns {
            self.end_oldest_waiting(Outcome::Timeout);
        }
    }

    /// The request that waits first in line ends without having been written.
    pub fn end_oldest_waiting(&mut self, outcome: Outcome) {
        if let Some(task) = self.demand.take() {
            self.end_unwritten(task, outcome);
        }
    }

    /// A request ends that is not on a connection; it may have been, in vain.
    pub fn end_unwritten(&mut self, task: Task, outcome: Outcome) {
        self.end(task, Ending { due_ns: task.due_ns, written_ns: task.written_ns, outcome, status: None });
    }

    /// A request has ended; a closed load's user asks again.
    #[inline]
    pub fn end(&mut self, task: Task, ending: Ending) {
        self.tally.ended(ending, self.now_ns);
        if let Some(due_ns) = self.demand.ended(task, self.now_ns) {
            // One that was due while the user waited for its answer was not late by our doing.
            self.tally.due(due_ns, due_ns);
            if due_ns < self.now_ns {
                self.tally.waited(due_ns);
            }
            self.count_down(due_ns);
        }
    }

    /// What is still unanswered ends at its age. With a pace, ending one makes the next fall due that was due in time.
    pub(super) fn finish(&mut self) {
        while let Some(flight) = self.flights.oldest_index() {
            self.land_unanswered(flight, Outcome::InFlight);
        }
        while let Some(task) = self.demand.take() {
            let outcome = if task.written_ns.is_some() { Outcome::InFlight } else { Outcome::Unsent };
            self.end_unwritten(task, outcome);
        }
        self.tally.finish(self.now_ns);
    }
}
