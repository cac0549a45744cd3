//! A worker's share of a load: which requests are due, how requests end, and when phases end.

mod journeys;
mod mix;

use redline_traffic::{JourneyEnd, JourneyTally, KeptRequests, Outcome, RequestTally, StreamNews};

use self::mix::Mix;
use crate::by_journey::Entry;
use crate::client::{Activity, ClientEvent, ClockReading, OpenFailure, StreamProgress};
use crate::demand::{Demand, DueEvent, NOBODY, Walks};
use crate::first_failures::{Cause, FirstFailures, OVER, in_words};
use crate::job::Job;
use crate::request::{DueRequest, EndedRequest};
use crate::request_log::RequestLog;
use crate::tally::{Tally, Window};

/// Requests that are due or wait, and the counts of requests that ended. Times are nanoseconds of the monotonic clock.
pub struct WorkerLoad {
    demand: Demand,
    tally: Tally,
    /// How many more measured requests may fall due; the measurement ends with the last of them.
    count: Option<u64>,
    timeout_ns: u64,
    drain_ns: u64,
    measure_ns: u64,
    end_ns: u64,
    drain_end_ns: u64,
    /// No request has waited too long before this time, because the worker stood still.
    expires_from_ns: u64,
    /// Whether the measurement ended early.
    was_cut: bool,
    mix: Mix,
}

impl WorkerLoad {
    /// `count` is how many measured requests may fall due in this worker.
    pub fn new(demand: Demand, tally: Tally, count: Option<u64>, job: &Job) -> Self {
        let Window { measure_ns, end_ns, .. } = tally.window();
        let mut load = Self {
            demand,
            tally,
            count,
            timeout_ns: job.timeout_ns,
            drain_ns: job.drain_ns,
            measure_ns,
            end_ns,
            drain_end_ns: end_ns.saturating_add(job.drain_ns),
            expires_from_ns: 0,
            was_cut: false,
            mix: Mix::new(job),
        };
        if count == Some(0) || load.demand.walks().is_some_and(Walks::is_done) {
            // Other workers have all requests, or all rows.
            load.end_at(measure_ns);
        }
        load
    }

    /// When [`Self::advance`] has something to do.
    #[inline]
    pub fn next_ns(&self) -> u64 {
        self.tally.next_ns()
    }

    /// Advance to this time: intervals end, and with them perhaps the warm-up. Returns whether the worker stood still before.
    /// Answers that arrived meanwhile are not read yet, and the server may have stood still too, so all that is in flight gets
    /// its whole time again.
    pub fn advance(&mut self, now_ns: u64) -> bool {
        let paused = self.tally.advance(now_ns);
        self.follow_window();
        if paused {
            self.expires_from_ns = now_ns.saturating_add(self.timeout_ns);
            if now_ns >= self.end_ns {
                self.drain_end_ns = self.drain_end_ns.max(now_ns.saturating_add(self.drain_ns));
            }
        }
        paused
    }

    /// The measurement may have started earlier than planned.
    fn follow_window(&mut self) {
        let Window { measure_ns, end_ns, .. } = self.tally.window();
        if measure_ns < self.measure_ns {
            self.measure_ns = measure_ns;
            self.end_ns = self.end_ns.min(end_ns);
            self.drain_end_ns = self.drain_end_ns.min(self.end_ns.saturating_add(self.drain_ns));
            self.demand.cut(self.end_ns);
            if self.count == Some(0) || self.demand.walks().is_some_and(Walks::is_done) {
                self.end_at(measure_ns);
            }
        }
    }

    /// Whether the load would still run at this time.
    pub fn outlasts(&self, at_ns: u64) -> bool {
        at_ns < self.drain_end_ns
    }

    /// Stop at the time that was set for all workers. A worker that learns of it later has measured until now, so its window
    /// ends now, and its rates are over the time that it measured.
    pub fn stop_at(&mut self, at_ns: u64, now_ns: u64) {
        let at_ns = at_ns.max(now_ns);
        self.end_at(at_ns);
        self.drain_ns = 0;
        self.drain_end_ns = self.drain_end_ns.min(at_ns);
    }

    /// End the window at this time, before its planned end.
    fn end_at(&mut self, at_ns: u64) {
        self.was_cut = true;
        self.end_ns = self.end_ns.min(at_ns);
        self.drain_end_ns = self.drain_end_ns.min(self.end_ns.saturating_add(self.drain_ns));
        self.demand.cut(at_ns);
        self.tally.cut(at_ns);
    }

    /// When the measurement ended, if it ended early.
    pub fn cut_ns(&self) -> Option<u64> {
        self.was_cut.then_some(self.end_ns)
    }

    /// Whether the load is over. `idle`: no request is in flight.
    pub fn is_over(&self, idle: bool, now_ns: u64) -> bool {
        now_ns >= self.drain_end_ns || now_ns >= self.end_ns && idle && self.demand.waiting() == 0
    }

    /// Whether connections may still be opened: when nothing falls due any more, only for requests that wait.
    pub fn may_open(&self, now_ns: u64) -> bool {
        now_ns < self.drain_end_ns && (now_ns < self.end_ns || self.demand.waiting() > 0)
    }

    /// When the next request falls due, an interval ends, or a request has waited too long.
    pub fn wake_ns(&self, now_ns: u64) -> u64 {
        let end_ns = if now_ns < self.end_ns { self.end_ns } else { self.drain_end_ns };
        end_ns.min(self.demand.next_due_ns()).min(self.tally.next_ns()).min(self.expires_ns())
    }

    pub fn is_open(&self) -> bool {
        self.demand.is_open()
    }

    /// How many requests are due and not sent.
    #[inline]
    pub fn waiting(&self) -> u64 {
        self.demand.waiting()
    }

    /// Take the request that has waited longest.
    #[inline]
    pub fn take(&mut self) -> Option<DueRequest> {
        let due = self.demand.take()?;
        self.mark(&due);
        Some(due)
    }

    /// Take what has waited longest, even if it cannot be sent.
    fn take_any(&mut self) -> Option<DueRequest> {
        let due = self.demand.take_any()?;
        self.mark(&due);
        Some(due)
    }

    #[inline]
    pub fn next_due_ns(&self) -> u64 {
        self.demand.next_due_ns()
    }

    /// Take the next event of the schedule, which is due. A request that is due waits to be taken.
    #[inline]
    pub fn pop_due(&mut self, now_ns: u64) -> DueEvent {
        let event = self.demand.pop_due();
        match event {
            DueEvent::Due(due_ns) => {
                self.tally.due(due_ns, now_ns);
                self.count_down(due_ns, now_ns);
                event
            }
            DueEvent::Step(due_ns) => {
                self.tally.due(due_ns, now_ns);
                DueEvent::Due(due_ns)
            }
            DueEvent::Dropped(mark) => {
                self.tally.journey(mark, Entry::Ended(JourneyEnd::Unfinished));
                self.end_if_done(now_ns);
                DueEvent::Nothing
            }
            DueEvent::Joined | DueEvent::Left | DueEvent::Nothing => event,
        }
    }

    /// No connection had room for a request that is due. Returns whether a connection may be added for it, which is so in an
    /// open load.
    pub fn waits_for_connection(&mut self, due_ns: u64) -> bool {
        if self.demand.is_open() {
            self.tally.waited(due_ns);
        }
        self.demand.is_open()
    }

    /// A measured request fell due, or a journey. The measurement ends with the last that may.
    #[inline]
    fn count_down(&mut self, due_ns: u64, now_ns: u64) {
        if self.demand.walks().is_some() {
            return self.begin_journey(due_ns);
        }
        self.count_down_request(due_ns, now_ns);
    }

    #[inline]
    fn count_down_request(&mut self, due_ns: u64, now_ns: u64) {
        if let Some(left) = &mut self.count
            && due_ns >= self.measure_ns
        {
            *left = left.saturating_sub(1);
            if *left == 0 {
                self.end_at(now_ns.max(due_ns + 1));
                // Other requests may be due at the same moment, which are too many.
                self.demand.cut(0);
            }
        }
    }

    /// The first byte of a request is about to be written. A retry counts once.
    #[inline]
    pub fn sent(&mut self, due: &DueRequest) {
        if due.written_ns.is_none() {
            self.tally.sent(due.due_ns);
        }
    }

    /// A request could not be encoded, so nothing of it was written.
    pub fn not_encoded(&mut self, (due, why): (DueRequest, String), now_ns: u64, failures: &mut FirstFailures) {
        failures.note(Outcome::Closed, now_ns, || Cause::words(why).of(self.mix.name_of(&due)));
        self.end_waiting(due, Outcome::Closed, now_ns);
    }

    /// Count what happened on the connections, and clear the activity.
    #[inline]
    pub fn apply(&mut self, activity: &mut Activity, now_ns: u64) {
        self.tally.bytes_sent(std::mem::take(&mut activity.bytes_sent));
        self.tally.bytes_received(std::mem::take(&mut activity.bytes_received));
        if !activity.events.is_empty() {
            for event in &activity.events {
                self.apply_event(event, now_ns, &mut activity.failures);
            }
            activity.events.clear();
        }
    }

    #[inline]
    fn apply_event(&mut self, event: &ClientEvent, now_ns: u64, failures: &mut FirstFailures) {
        match event {
            ClientEvent::Ended(ended) => self.end(ended, now_ns),
            ClientEvent::Retry(due) => {
                self.tally.retried(due.due_ns);
                self.demand.give_back(*due);
            }
            ClientEvent::Resend(due) => {
                self.tally.resent(due.due_ns);
                self.demand.give_back(*due);
            }
            ClientEvent::Clock(ClockReading { due_ns, to_server_ns, from_server_ns }) => {
                self.tally.one_way(*due_ns, *to_server_ns, *from_server_ns);
            }
            ClientEvent::Stream(progress) => self.tally.stream(progress),
            ClientEvent::Handshake(handshake) => self.tally.handshake(handshake.ns, handshake.resumed),
            ClientEvent::Upgraded(ns) => self.tally.upgraded(*ns),
            ClientEvent::Volume(volume) => self.tally.volume(*volume),
            ClientEvent::Reconnected => self.tally.reconnected(),
            ClientEvent::Surplus => self.tally.surplus(),
            ClientEvent::NotOpened(failure) => self.not_opened(failure, now_ns, failures),
        }
    }

    /// A connection could not be opened. The request that has waited longest fails with it; all waiting requests fail when no
    /// connection is open, because they cannot be sent.
    fn not_opened(&mut self, failure: &OpenFailure, now_ns: u64, failures: &mut FirstFailures) {
        let waiting = self.demand.waiting();
        let failed = if failure.none_open { waiting } else { waiting.min(1) };
        for _ in 0..failed {
            if failure.why.is_exhaustion() {
                self.tally.exhausted(self.demand.oldest_due_ns());
            }
            let outcome = failure.why.outcome();
            self.end_oldest_waiting(outcome, now_ns, failures, || failure.why.to_string());
        }
    }

    /// When the request that has waited longest has waited too long.
    fn expires_ns(&self) -> u64 {
        self.demand.oldest_due_ns().saturating_add(self.timeout_ns).max(self.expires_from_ns)
    }

    /// End the requests that have waited longer than the timeout.
    pub fn expire_waiting(&mut self, now_ns: u64, failures: &mut FirstFailures) {
        while self.expires_ns() <= now_ns {
            let timeout_ns = self.timeout_ns;
            let lacks_user = self.demand.lacks_user();
            let what = if lacks_user { "no user was free" } else { "no connection had room" };
            let reason = || format!("{what} for it within {}", in_words(timeout_ns));
            self.end_oldest_waiting(Outcome::Timeout, now_ns, failures, reason);
        }
    }

    fn end_oldest_waiting(
        &mut self,
        outcome: Outcome,
        now_ns: u64,
        failures: &mut FirstFailures,
        reason: impl FnOnce() -> String,
    ) {
        if let Some(due) = self.take_any() {
            failures.note(outcome, now_ns, || Cause::words(reason()).of(self.mix.name_of(&due)));
            self.end_waiting(due, outcome, now_ns);
        }
    }

    /// End a request that is not on a connection. It may have been on a connection before, without an answer.
    fn end_waiting(&mut self, due: DueRequest, outcome: Outcome, now_ns: u64) {
        let request = self.mix.index_of(&due);
        self.end(&EndedRequest::unanswered(due, request, due.written_ns, outcome), now_ns);
    }

    /// A request has ended. In a closed load its user sends the next, now or later.
    #[inline]
    fn end(&mut self, ended: &EndedRequest, now_ns: u64) {
        self.tally.ended(ended, now_ns);
        if !ended.has_streamed && self.mix.has_stream(ended.request) {
            let due_ns = ended.due.due_ns;
            let news = StreamNews::Silent(now_ns.saturating_sub(due_ns));
            self.tally.stream(&StreamProgress { due_ns, request: ended.request, news });
        }
        if self.demand.walks().is_some() {
            return self.end_step(ended, now_ns);
        }
        if let Some(due_ns) = self.demand.ended(ended.due, now_ns) {
            // A request that fell due while its user waited for an answer is not late.
            self.tally.due(due_ns, due_ns);
            if due_ns < now_ns {
                self.tally.waited(due_ns);
            }
            self.count_down_request(due_ns, now_ns);
        }
    }

    /// Take the measurements by journey.
    pub fn take_journeys(&mut self) -> Option<JourneyTally> {
        self.tally.take_journeys()
    }

    /// Take the log of single requests.
    pub fn take_log(&mut self) -> Option<Box<RequestLog>> {
        self.tally.take_log()
    }

    /// Take the measurements by request.
    pub fn take_requests(&mut self) -> Vec<RequestTally> {
        self.tally.take_requests()
    }

    /// The single requests that were kept.
    pub fn kept(&self) -> KeptRequests {
        self.tally.kept()
    }

    /// The tally and the journeys under way, to be used for another load.
    pub fn into_tally(self) -> (Tally, Option<Walks>) {
        (self.tally, self.demand.into_walks())
    }

    /// End waiting requests, with their age as their time, and the last interval. With a pace, the end of a request may
    /// make another fall due that was due in time.
    pub fn finish(&mut self, now_ns: u64, failures: &mut FirstFailures) {
        while let Some(due) = self.take_any() {
            let (outcome, reason) = match due.written_ns {
                Some(_) => {
                    (Outcome::InFlight, "the server did not process it, and it was not sent again in time".to_owned())
                }
                None if due.user == NOBODY && self.demand.walks().is_some() => {
                    (Outcome::Unsent, format!("no user was free for it {OVER}"))
                }
                None => (Outcome::Unsent, format!("no connection had room for it {OVER}")),
            };
            failures.note(outcome, now_ns, || Cause::words(reason).of(self.mix.name_of(&due)));
            self.end_waiting(due, outcome, now_ns);
        }
        self.leave_unfinished();
        self.tally.finish(now_ns);
    }
}
