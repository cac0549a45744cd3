//! One worker: an event loop over its connections that shares nothing with the others while it runs.
//!
//! Here is the loop. `taking_up` says how requests that are due go out, `ending` how requests end, `phases` when the load does.
//! What connections and answers mean for requests is in `connecting`, `exchange` and `streams`.

mod ending;
mod phases;
mod taking_up;

use std::io;
use std::sync::Arc;

use redline_wire::Heads;

use crate::demand::{Demand, NEVER};
use crate::failure_log::FailureLog;
use crate::flights::Flights;
use crate::io::{Event, Io};
use crate::job::Job;
use crate::pool::Pool;
use crate::scenario::Scenario;
use crate::states::State;
use crate::stop::Stop;
use crate::sys::time::now_ns;
use crate::tally::Tally;

/// What is a worker's own.
pub struct WorkerParts<I> {
    pub pool: Pool<I>,
    pub demand: Demand,
    pub scenario: Scenario,
    pub tally: Tally,
    pub reasons: FailureLog,
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
    pub reasons: FailureLog,
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
    pub fn new(share: WorkerParts<I>, job: Arc<Job>, stop: Arc<Stop>, end_ns: u64) -> Self {
        let drain_end_ns = end_ns.saturating_add(job.drain_ns);
        let measure_ns = end_ns - job.measure_ns;
        let WorkerParts { pool, demand, scenario, tally, reasons, count } = share;
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
}

#[cfg(test)]
mod tests;
