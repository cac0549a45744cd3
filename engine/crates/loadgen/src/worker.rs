//! One worker: an event loop over its connections that shares nothing with the others while it runs.

use std::io;
use std::sync::Arc;

use redline_traffic::Outcome;

use crate::demand::{Demand, NEVER};
use crate::job::Job;
use crate::pool::{EVENTS, Pool, WAKER};
use crate::reasons::Reasons;
use crate::roster::State;
use crate::stop::Stop;
use crate::sys::epoll::Ready;
use crate::sys::time::now_ns;
use crate::tally::{Ending, Tally};

/// How much one read takes: what is shorter than this was all there was.
const BUFFER_BYTES: usize = 64 * 1024;

/// What is a worker's own.
pub struct Share {
    pub pool: Pool,
    pub demand: Demand,
    pub tally: Tally,
    pub reasons: Reasons,
}

pub struct Worker {
    pub job: Arc<Job>,
    pub stop: Arc<Stop>,
    pub pool: Pool,
    pub demand: Demand,
    pub tally: Tally,
    pub reasons: Reasons,
    /// The end of the measurement window, and of the drain after it.
    pub end_ns: u64,
    pub drain_end_ns: u64,
    pub now_ns: u64,
    pub buffer: Box<[u8]>,
    /// Sockets, by their tokens, of which more can be read although no event will say so, and whether they are ending.
    pub unread: Vec<(u64, bool)>,
    was_cut: bool,
}

impl Worker {
    pub fn new(share: Share, job: Arc<Job>, stop: Arc<Stop>, end_ns: u64) -> Self {
        let drain_end_ns = end_ns.saturating_add(job.drain_ns);
        let buffer = vec![0; BUFFER_BYTES].into_boxed_slice();
        let Share { pool, demand, tally, reasons } = share;
        Self {
            job,
            stop,
            pool,
            demand,
            tally,
            reasons,
            end_ns,
            drain_end_ns,
            now_ns: now_ns(),
            buffer,
            unread: Vec::new(),
            was_cut: false,
        }
    }

    /// Do the whole load; when its measurement ended if it was cut before its time.
    ///
    /// # Errors
    /// When the kernel refuses to wait: nothing can be known then.
    pub fn run(mut self) -> io::Result<Option<u64>> {
        let mut ready = [Ready::NOTHING; EVENTS];
        // A request to stop may have come before the first wait.
        self.heed_stop();
        loop {
            self.tick();
            self.take_up();
            self.expire();
            self.open_down();
            if self.is_over() {
                break;
            }
            let timeout_ns = self.next_wake_ns().saturating_sub(self.now_ns);
            let filled = self.pool.poll.wait(&mut ready, timeout_ns)?;
            for event in &ready[..filled] {
                self.handle(*event);
            }
            self.receive_unread();
        }
        self.finish();
        Ok(self.was_cut.then_some(self.end_ns))
    }

    /// Read the clock.
    #[inline]
    pub fn tick(&mut self) {
        self.now_ns = now_ns();
        self.tally.advance(self.now_ns);
    }

    /// Everything that is due by now falls due, and goes out when there is an idle connection.
    #[inline]
    fn take_up(&mut self) {
        // Those that wait come first: after this nobody waits while a connection is idle, so who falls due and finds one idle
        // has it, and who finds none waits.
        self.dispatch();
        while self.demand.next_due_ns() <= self.now_ns {
            let due_ns = self.demand.fall_due();
            self.tally.due(due_ns, self.now_ns);
            if self.pool.roster.length(State::Idle) == 0 {
                if self.demand.is_open() {
                    self.tally.waited(due_ns);
                }
            } else {
                self.dispatch();
                self.tick();
            }
        }
    }

    /// As long as a request waits and a connection is idle, the first goes out on the first.
    fn dispatch(&mut self) {
        while let Some(connection) = self.pool.roster.front(State::Idle) {
            let Some(due_ns) = self.demand.take() else {
                return;
            };
            self.send(connection, due_ns);
            if self.demand.waiting() > 0 {
                self.tick();
            }
        }
    }

    fn handle(&mut self, event: Ready) {
        if event.token() == WAKER {
            return self.heed_stop();
        }
        if let Some(connection) = self.pool.of(event) {
            match self.pool.roster.state(connection) {
                State::Down => {}
                State::Opening => self.settle_opening(connection, event),
                State::Idle | State::Busy => {
                    if event.writable() {
                        self.send_rest(connection);
                    }
                    if event.readable() {
                        self.receive(connection, event.ending());
                    }
                }
            }
            self.take_up();
        }
    }

    /// Go on with what was left unread, once for each connection.
    fn receive_unread(&mut self) {
        for _ in 0..self.unread.len() {
            let (token, ending) = self.unread.remove(0);
            if let Some(connection) = self.pool.by_token(token) {
                self.receive(connection, ending);
                self.take_up();
            }
        }
    }

    /// What took too long has failed.
    fn expire(&mut self) {
        let timeout_ns = self.job.timeout_ns;
        let since = |worker: &Self, state| {
            let connection = worker.pool.roster.front(state)?;
            let since_ns = worker.pool.connections[connection as usize].since_ns;
            (since_ns.saturating_add(timeout_ns) <= worker.now_ns).then_some(connection)
        };
        while let Some(connection) = since(self, State::Busy) {
            self.fail(connection, Outcome::Timeout);
        }
        while let Some(connection) = since(self, State::Opening) {
            self.opening_failed(connection, &io::ErrorKind::TimedOut.into());
        }
        while self.demand.oldest_due_ns().saturating_add(timeout_ns) <= self.now_ns {
            self.end_oldest_waiting(Outcome::Timeout);
        }
    }

    /// The request that waits first in line ends without having been written.
    pub fn end_oldest_waiting(&mut self, outcome: Outcome) {
        if let Some(due_ns) = self.demand.take() {
            self.end(Ending { due_ns, written_ns: None, outcome, status: None });
        }
    }

    /// A request has ended; a closed load's user asks again.
    #[inline]
    pub fn end(&mut self, ending: Ending) {
        self.tally.ended(ending, self.now_ns);
        if self.demand.ask_again(self.now_ns) {
            self.tally.due(self.now_ns, self.now_ns);
        }
    }

    fn next_wake_ns(&self) -> u64 {
        if !self.unread.is_empty() {
            return self.now_ns;
        }
        let timeout_ns = self.job.timeout_ns;
        let expiry = |state| {
            let front = self.pool.roster.front(state);
            front.map_or(NEVER, |front| self.pool.connections[front as usize].since_ns.saturating_add(timeout_ns))
        };
        let end_ns = if self.now_ns < self.end_ns { self.end_ns } else { self.drain_end_ns };
        end_ns
            .min(self.demand.next_due_ns())
            .min(self.tally.interval_end_ns())
            .min(expiry(State::Busy))
            .min(expiry(State::Opening))
            .min(self.demand.oldest_due_ns().saturating_add(timeout_ns))
            .min(self.pool.next_opening_ns())
    }

    fn is_over(&self) -> bool {
        let all_answered = self.demand.waiting() == 0 && self.pool.roster.length(State::Busy) == 0;
        self.now_ns >= self.drain_end_ns || self.now_ns >= self.end_ns && all_answered
    }

    /// Somebody asked to stop: the window and the drain end at the time that all workers were given. Who hears of it later has
    /// measured until now, and its window ends now: the rates that it tells are over the time that it took.
    fn heed_stop(&mut self) {
        let asked_ns = self.stop.at_ns();
        if asked_ns < self.drain_end_ns {
            self.tick();
            let at_ns = asked_ns.max(self.now_ns);
            self.was_cut = true;
            self.end_ns = self.end_ns.min(at_ns);
            self.drain_end_ns = self.drain_end_ns.min(at_ns);
            self.demand.cut(at_ns);
            self.tally.cut(at_ns);
        }
    }

    /// What is still unanswered ends at its age.
    fn finish(&mut self) {
        while self.demand.waiting() > 0 {
            self.end_oldest_waiting(Outcome::Unsent);
        }
        while let Some(connection) = self.pool.roster.front(State::Busy) {
            self.fail(connection, Outcome::InFlight);
        }
        self.tally.finish(self.now_ns);
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::mpsc::channel;
    use std::thread;
    use std::time::Duration;

    use redline_traffic::Phase;

    use super::*;
    use crate::job::tests::job;
    use crate::stop::INTERRUPTED;
    use crate::tally::{Outlet, Piece, Window};

    #[test]
    fn who_hears_late_of_the_end_has_measured_until_then() {
        let stop = Arc::new(Stop::new().unwrap());
        stop.ask(INTERRUPTED);
        while now_ns() <= stop.at_ns() {
            thread::sleep(Duration::from_millis(1));
        }
        let heard_ns = now_ns();
        let epoch_ns = stop.at_ns() - 1_000_000;
        let window = Window { epoch_ns, measure_ns: epoch_ns, end_ns: epoch_ns + 10_000_000_000 };
        let (sender, pieces) = channel();
        let (_lender, returned) = channel();
        let outlet = Outlet { pieces: Box::new(move |piece| sender.send(piece).unwrap()), spare: returned };
        let job = Arc::new(job("127.0.0.1"));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let share = Share {
            pool: Pool::new(listener.local_addr().unwrap(), 1, job.asked, &stop).unwrap(),
            demand: Demand::closed(1, epoch_ns, window.end_ns),
            tally: Tally::new(window, job.interval_ns, outlet),
            reasons: Reasons::new(0),
        };
        let cut_ns = Worker::new(share, job, stop, window.end_ns).run().unwrap().unwrap();
        assert!(cut_ns >= heard_ns);
        let pieces: Vec<Piece> = pieces.iter().collect();
        let measured = pieces.iter().rfind(|piece| piece.phase == Phase::Measure).unwrap();
        assert_eq!(epoch_ns + measured.end_ns, cut_ns);
        assert_eq!(pieces.iter().map(|piece| piece.slice.counts.outcomes.total()).sum::<u64>(), 1);
    }
}
