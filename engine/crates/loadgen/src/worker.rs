//! A worker: an event loop that shares nothing with other workers while it runs.
//!
//! It connects two parts that do not know each other: the [`WorkerLoad`] decides which requests are due and counts how they
//! end; the [`Client`] writes them and reports what happened to them.

mod early;
mod load;

use std::io;
use std::sync::Arc;

use redline_traffic::{JourneyTally, KeptRequests, Reach, RequestTally};

use self::early::EarlyWaking;
pub use self::load::WorkerLoad;
use crate::client::{Activity, Client};
use crate::demand::{DueEvent, Walks};
use crate::first_failures::FirstFailures;
use crate::io::{Event, Io};
use crate::request_log::RequestLog;
use crate::stop::Stop;
use crate::sys::time::now_ns;
use crate::tally::Tally;

pub struct Worker<I> {
    load: WorkerLoad,
    client: Client<I>,
    /// What the client reported and the load has not yet counted. It is empty whenever the clock is read.
    activity: Activity,
    stop: Arc<Stop>,
    /// Poll for events without sleeping.
    spin: bool,
    /// Wake before requests are due, in an open load.
    early: Option<EarlyWaking>,
    now_ns: u64,
    /// Requests without an answer when the load was over.
    unanswered: u64,
}

/// What is left of a worker after a load, for another.
pub struct AfterLoad<I> {
    /// How many requests had no answer.
    pub unanswered: u64,
    pub tally: Tally,
    pub client: Client<I>,
    /// With the failures, and the recorded answer.
    pub activity: Activity,
    /// The journeys under way, in a load of journeys.
    pub walks: Option<Walks>,
}

impl<I: Io> Worker<I> {
    /// `activity` is the activity of connecting before the load.
    pub fn new(load: WorkerLoad, client: Client<I>, activity: Activity, stop: Arc<Stop>, spin: bool) -> Self {
        Self { load, client, activity, stop, spin, early: None, now_ns: now_ns(), unanswered: 0 }
    }

    /// Wake before requests are due, and poll until they are, if the load is open. It has so many workers.
    pub fn wakes_early(mut self, workers: u32) -> Self {
        self.early = (self.load.is_open() && !self.spin).then(|| EarlyWaking::new(workers, self.now_ns));
        self
    }

    /// Run the whole load. Returns when its measurement ended, if it ended early.
    ///
    /// # Errors
    /// When the kernel refuses to wait.
    pub fn run(&mut self) -> io::Result<Option<u64>> {
        self.apply();
        // A request to stop may have come before the first wait.
        self.check_stop();
        loop {
            self.tick();
            self.start_due();
            self.expire();
            if self.load.may_open(self.now_ns) {
                self.client.wake_for(self.load.waiting());
                self.client.open_down(self.now_ns, &mut self.activity);
                self.apply();
            }
            // Requests that expired, or whose connection failed, may have made room.
            self.dispatch();
            if self.load.is_over(self.client.is_idle(), self.now_ns) {
                break;
            }
            let until_ns = self.sleeps_until();
            self.client.wait(until_ns)?;
            let mut idle = true;
            while let Some(event) = self.client.next_event() {
                self.handle(event);
                idle = false;
            }
            if idle && let Some(early) = &mut self.early {
                self.now_ns = now_ns();
                early.woke_by_timer(self.now_ns);
            }
        }
        self.unanswered = self.client.in_flight() as u64 + self.load.waiting();
        self.client.abandon(self.now_ns, &mut self.activity);
        self.apply();
        self.load.finish(self.now_ns, &mut self.activity.failures);
        Ok(self.load.cut_ns())
    }

    /// Take the log of single requests.
    pub fn take_log(&mut self) -> Option<Box<RequestLog>> {
        self.load.take_log()
    }

    /// Take the measurements by request, after the load.
    pub fn take_requests(&mut self) -> Vec<RequestTally> {
        self.load.take_requests()
    }

    /// The single requests that were kept.
    pub fn kept(&self) -> KeptRequests {
        self.load.kept()
    }

    /// Take the measurements by journey, after the load.
    pub fn take_journeys(&mut self) -> Option<JourneyTally> {
        self.load.take_journeys()
    }

    /// Close each WebSocket, after the load, as [`Client::close_websockets`] does.
    ///
    /// # Errors
    /// When the kernel refuses to wait.
    pub fn close_websockets(&mut self) -> io::Result<()> {
        self.client.close_websockets()
    }

    /// How far the connections ever came.
    pub fn reach(&self) -> Reach {
        self.client.reach()
    }

    /// Take the reasons why requests failed, after the load.
    pub fn take_failures(&mut self) -> FirstFailures {
        std::mem::take(&mut self.activity.failures)
    }

    /// What is left after the load.
    pub fn into_parts(self) -> AfterLoad<I> {
        let (tally, walks) = self.load.into_tally();
        AfterLoad { unanswered: self.unanswered, tally, client: self.client, activity: self.activity, walks }
    }

    /// Until when to wait for events; 0 to poll for them.
    #[inline]
    fn sleeps_until(&mut self) -> u64 {
        let wake_ns = self.load.wake_ns(self.now_ns).min(self.client.wake_ns());
        if self.spin || wake_ns <= self.now_ns {
            return 0;
        }
        match &mut self.early {
            Some(early) => early.sleeps_until(self.load.next_due_ns(), wake_ns, self.now_ns),
            None => wake_ns,
        }
    }

    /// Read the clock.
    #[inline]
    fn tick(&mut self) {
        self.now_ns = now_ns();
        if self.now_ns >= self.load.next_ns() {
            self.advance();
        }
    }

    #[cold]
    fn advance(&mut self) {
        if self.load.advance(self.now_ns) {
            self.client.begin_timeouts_again(self.now_ns);
        }
    }

    fn handle(&mut self, event: Event) {
        if let Event::Woken = event {
            return self.check_stop();
        }
        let more_follow = matches!(event, Event::Received { more: true, .. });
        if !matches!(event, Event::Sent(..)) {
            self.tick();
        }
        self.client.handle(event, self.now_ns, &mut self.activity);
        self.apply();
        // The connection may end next: a request that were sent on it now would be lost.
        if !more_follow {
            self.start_due();
        }
    }

    /// Count what the client has reported.
    #[inline]
    fn apply(&mut self) {
        self.load.apply(&mut self.activity, self.now_ns);
    }

    /// Take the requests that are due by now, and send those for which a connection has room.
    #[inline]
    fn start_due(&mut self) {
        // First send the waiting requests. After that, none waits while a connection has room, so a request that falls due
        // either has room or waits.
        self.dispatch();
        while self.load.next_due_ns() <= self.now_ns {
            match self.load.pop_due(self.now_ns) {
                DueEvent::Due(_) if self.client.has_room() => {
                    self.dispatch();
                    self.tick();
                }
                DueEvent::Due(due_ns) => {
                    if self.load.waits_for_connection(due_ns) {
                        self.client.grow_for(self.load.waiting());
                    }
                }
                DueEvent::Joined => self.client.grow(),
                DueEvent::Left => self.client.shrink(),
                DueEvent::Step(_) | DueEvent::Dropped(_) | DueEvent::Nothing => {}
            }
        }
    }

    /// Send waiting requests, as long as a connection has room. Users of a closed load have connections of their own, so a
    /// connection is filled before the next; requests of an open load are spread.
    fn dispatch(&mut self) {
        while self.load.waiting() > 0 {
            let Some((connection, room)) = self.client.next_with_room() else {
                return;
            };
            let burst = if self.load.is_open() { room.min(1) } else { room };
            for _ in 0..burst {
                let Some(due) = self.load.take() else {
                    break;
                };
                match self.client.put(connection, due, self.now_ns) {
                    Ok(()) => self.load.sent(&due),
                    Err(failed) => self.load.not_encoded(failed, self.now_ns, &mut self.activity.failures),
                }
            }
            self.client.flush(connection, self.now_ns, &mut self.activity);
            self.apply();
            if self.load.waiting() > 0 {
                self.tick();
            }
        }
    }

    fn expire(&mut self) {
        self.client.expire(self.now_ns, &mut self.activity);
        self.apply();
        self.load.expire_waiting(self.now_ns, &mut self.activity.failures);
    }

    fn check_stop(&mut self) {
        let stop_ns = self.stop.at_ns();
        if self.load.outlasts(stop_ns) {
            self.tick();
            self.load.stop_at(stop_ns, self.now_ns);
        }
    }
}

#[cfg(test)]
mod tests;
