//! One worker: an event loop over its connections that shares nothing with the others while it runs.

use std::io;
use std::sync::Arc;

use redline_traffic::Outcome;
use redline_wire::Heads;

use crate::demand::{Demand, Fallen, NEVER, Task};
use crate::flights::Flights;
use crate::io::{Event, Io};
use crate::job::Job;
use crate::pool::Pool;
use crate::reasons::Reasons;
use crate::roster::State;
use crate::scenario::Scenario;
use crate::stop::Stop;
use crate::sys::time::now_ns;
use crate::tally::{Ending, Tally, Window};

/// What is a worker's own.
pub struct Share<I> {
    pub pool: Pool<I>,
    pub demand: Demand,
    pub scenario: Scenario,
    pub tally: Tally,
    pub reasons: Reasons,
    /// How many measured requests may fall due; the measurement ends with the last.
    pub count: Option<u64>,
}

pub struct Worker<I> {
    pub job: Arc<Job>,
    pub stop: Arc<Stop>,
    pub pool: Pool<I>,
    pub flights: Flights,
    pub demand: Demand,
    pub scenario: Scenario,
    pub tally: Tally,
    pub reasons: Reasons,
    pub heads: Heads,
    /// For bytes that were decrypted, and for what HTTP/2 made of them.
    pub plain: Vec<u8>,
    pub answers: Vec<redline_http2::Event>,
    count: Option<u64>,
    measure_ns: u64,
    /// The end of the measurement window, and of the drain after it.
    pub end_ns: u64,
    pub drain_end_ns: u64,
    pub now_ns: u64,
    /// The window ended before its time.
    was_cut: bool,
}

impl<I: Io> Worker<I> {
    pub fn new(share: Share<I>, job: Arc<Job>, stop: Arc<Stop>, end_ns: u64) -> Self {
        let drain_end_ns = end_ns.saturating_add(job.drain_ns);
        let measure_ns = end_ns - job.measure_ns;
        let Share { pool, demand, scenario, tally, reasons, count } = share;
        let (heads, plain, answers) = (Heads::new(), Vec::new(), Vec::new());
        let flights = Flights::new();
        let now_ns = now_ns();
        Self {
            job,
            stop,
            pool,
            flights,
            demand,
            scenario,
            tally,
            reasons,
            heads,
            plain,
            answers,
            count,
            measure_ns,
            end_ns,
            drain_end_ns,
            now_ns,
            was_cut: false,
        }
    }

    /// Do the whole load; when its measurement ended if that was before its time.
    ///
    /// # Errors
    /// When the kernel refuses to wait: nothing can be known then.
    pub fn run(&mut self) -> io::Result<Option<u64>> {
        self.count_handshakes();
        if self.count == Some(0) {
            // All requests are other workers'.
            self.end_at(self.measure_ns);
        }
        // A request to stop may have come before the first wait.
        self.heed_stop();
        loop {
            self.tick();
            self.take_up();
            self.expire();
            self.open_down();
            // What has expired, or could not be opened, may have made room.
            self.dispatch();
            if self.is_over() {
                break;
            }
            let wake_ns = self.next_wake_ns();
            self.pool.io.wait(if self.job.spin || wake_ns <= self.now_ns { 0 } else { wake_ns })?;
            while let Some(event) = self.pool.io.next() {
                self.handle(event);
            }
        }
        self.finish();
        Ok(self.was_cut.then_some(self.end_ns))
    }

    /// Read the clock.
    #[inline]
    pub fn tick(&mut self) {
        self.now_ns = now_ns();
        if self.now_ns >= self.tally.interval_end_ns() {
            self.end_intervals();
        }
    }

    /// Time has passed the end of an interval, which may have been the last of the warm-up.
    #[cold]
    fn end_intervals(&mut self) {
        self.tally.advance(self.now_ns);
        let Window { measure_ns, end_ns, .. } = self.tally.window();
        if measure_ns < self.measure_ns {
            self.measure_ns = measure_ns;
            self.end_ns = self.end_ns.min(end_ns);
            self.drain_end_ns = self.drain_end_ns.min(self.end_ns.saturating_add(self.job.drain_ns));
            self.demand.cut(self.end_ns);
            if self.count == Some(0) {
                self.end_at(measure_ns);
            }
        }
    }

    /// Everything that is due by now falls due, and goes out when there is a connection for it.
    #[inline]
    pub fn take_up(&mut self) {
        // Those that wait come first: after this nobody waits while a connection has room, so who falls due and finds room
        // has it, and who finds none waits.
        self.dispatch();
        while self.demand.next_due_ns() <= self.now_ns {
            match self.demand.fall() {
                Fallen::Due(due_ns) => self.fall_due(due_ns),
                Fallen::Joined => self.pool.grow(1),
                Fallen::Left => self.pool.shrink(),
                Fallen::Nothing => {}
            }
        }
    }

    fn fall_due(&mut self, due_ns: u64) {
        self.tally.due(due_ns, self.now_ns);
        self.count_down(due_ns);
        if self.pool.has_room() {
            self.dispatch();
            self.tick();
        } else if self.demand.is_open() {
            self.tally.waited(due_ns);
            self.pool.grow_for(self.demand.waiting());
        }
    }

    /// A measured request fell due: with the last of those that were asked for the measurement ends.
    fn count_down(&mut self, due_ns: u64) {
        if let Some(left) = &mut self.count
            && due_ns >= self.measure_ns
        {
            *left = left.saturating_sub(1);
            if *left == 0 {
                self.end_at(self.now_ns.max(due_ns + 1));
                // Others may be due at the same moment: they are too many.
                self.demand.cut(0);
            }
        }
    }

    /// As long as a request waits and a connection has room, the first goes out. A closed load's users have their own
    /// connections, so that one is filled before the next; an open load's requests are spread.
    fn dispatch(&mut self) {
        while self.demand.waiting() > 0 {
            let Some(connection) = self.pool.next_with_room() else {
                return;
            };
            let room = self.pool.room(connection);
            let burst = if self.demand.is_open() { room.min(1) } else { room };
            for _ in 0..burst {
                let Some(task) = self.demand.take() else {
                    break;
                };
                self.put(connection, task);
            }
            self.pool.settle(connection);
            self.flush(connection);
            if self.demand.waiting() > 0 {
                self.tick();
            }
        }
    }

    fn handle(&mut self, event: Event) {
        if let Some(connection) = event.connection()
            && self.pool.roster.state(connection) == State::Opening
        {
            return self.advance(connection, event);
        }
        let mut more_comes = false;
        match event {
            Event::Woken => return self.heed_stop(),
            Event::Received { connection, chunk, more } => {
                more_comes = more;
                self.tick();
                self.received(connection, chunk.bytes(), more);
                self.pool.io.release(chunk);
            }
            Event::Taken(connection, bytes) => self.taken(connection, bytes),
            Event::Unwritable(connection, why) => self.unwritable(connection, &why),
            Event::Ended(connection) => self.ended(connection),
            Event::Broken(connection, why) => self.broken(connection, &why),
            // Of a connection that is not being opened any more.
            Event::Opened(_) | Event::Refused(..) => {}
        }
        // What comes next may be the end of this connection: a request that went out on it now would be lost.
        if !more_comes {
            self.take_up();
        }
    }

    /// What took too long has failed.
    fn expire(&mut self) {
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

    fn next_wake_ns(&self) -> u64 {
        let timeout_ns = self.job.timeout_ns;
        let opening = self.pool.roster.front(State::Opening);
        let opening_ns = opening.map_or(NEVER, |front| self.pool.connections[front as usize].opened_ns);
        let written_ns = self.flights.oldest().map_or(NEVER, |flight| flight.written_ns);
        let end_ns = if self.now_ns < self.end_ns { self.end_ns } else { self.drain_end_ns };
        let since_ns = opening_ns.min(written_ns).min(self.demand.oldest_due_ns());
        end_ns
            .min(self.demand.next_due_ns())
            .min(self.tally.interval_end_ns())
            .min(since_ns.saturating_add(timeout_ns))
            .min(self.pool.next_opening_ns())
    }

    fn is_over(&self) -> bool {
        let all_answered = self.demand.waiting() == 0 && self.flights.length() == 0;
        self.now_ns >= self.drain_end_ns || self.now_ns >= self.end_ns && all_answered
    }

    /// Somebody asked to stop: the window and the drain end at the time that all workers were given. Who hears of it later has
    /// measured until now, and its window ends now: the rates that it tells are over the time that it took.
    fn heed_stop(&mut self) {
        let asked_ns = self.stop.at_ns();
        if asked_ns < self.drain_end_ns {
            self.tick();
            let at_ns = asked_ns.max(self.now_ns);
            self.end_at(at_ns);
            self.drain_end_ns = self.drain_end_ns.min(at_ns);
        }
    }

    /// The window ends then, before its time.
    fn end_at(&mut self, at_ns: u64) {
        self.was_cut = true;
        self.end_ns = self.end_ns.min(at_ns);
        self.drain_end_ns = self.drain_end_ns.min(self.end_ns.saturating_add(self.job.drain_ns));
        self.demand.cut(at_ns);
        self.tally.cut(at_ns);
    }

    /// What is still unanswered ends at its age. With a pace, ending one makes the next fall due that was due in time.
    fn finish(&mut self) {
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

#[cfg(test)]
mod tests;
