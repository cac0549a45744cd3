//! The requests in flight of a worker: their beginnings and their ends.
//!
//! This module knows nothing of sockets and protocols: callers pass the connection of a request.

use std::collections::BTreeMap;

use redline_traffic::Outcome;
use redline_wire::{Answer, ReadOptions, Verdict};

use super::activity::{Activity, ClientEvent, ClockReading, EndedRequest};
use super::connection::Connection;
use super::pending::{PendingRequest, PendingRequests};
use super::scenario::{Scenario, Unwritable};
use crate::demand::DueRequest;
use crate::first_failures::Cause;
use crate::ids::{ConnectionId, PendingId};
use crate::sys::time::unix_ns;

/// How often a request may be written without an answer before it fails, not counting requests that the server announced not to
/// process.
const MOST_TRIES: u8 = 2;

/// The requests in flight, and the job's settings for them.
pub struct Requests {
    pending: PendingRequests,
    scenario: Scenario,
}

impl Requests {
    pub fn new(scenario: Scenario) -> Self {
        Self { pending: PendingRequests::new(), scenario }
    }

    pub fn len(&self) -> usize {
        self.pending.len()
    }

    pub fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// The values that a step of a journey has taken, by their names.
    pub fn taken(&self, due: &DueRequest) -> BTreeMap<String, String> {
        self.scenario.visitors().map_or_else(BTreeMap::new, |visitors| visitors.taken(due))
    }

    /// The request that was written first.
    pub fn oldest(&self) -> Option<PendingId> {
        self.pending.oldest()
    }

    /// When a request was written.
    pub fn written_ns(&self, pending: PendingId) -> u64 {
        self.pending.get(pending).written_ns
    }

    /// The index of a request in the job, if there are several.
    pub fn name_of(&self, pending: PendingId) -> Option<u32> {
        self.scenario.name_of(self.pending.get(pending).request)
    }

    pub fn connection_of(&self, pending: PendingId) -> ConnectionId {
        self.pending.get(pending).connection
    }

    /// How the answer to a request is read.
    #[inline]
    pub fn read_options(&self, pending: PendingId) -> ReadOptions {
        self.scenario.read_options(self.pending.get(pending).request as usize)
    }

    /// Put a request on the connection with this number.
    ///
    /// # Errors
    /// Returns the request and why it could not be encoded; nothing of it was written.
    #[inline]
    pub fn put(
        &mut self,
        mut due: DueRequest,
        number: ConnectionId,
        connection: &mut Connection,
        now_ns: u64,
    ) -> Result<(), (DueRequest, String)> {
        let request = self.scenario.draw(&mut due);
        connection.count_request(now_ns);
        let pending = self.pending.insert(due, now_ns, request as u32, number, connection.queue_mut());
        self.scenario.write(request, &due, pending, connection, now_ns).map_err(|why| {
            let why = match why {
                Unwritable::Session(why) => {
                    connection.refuse_requests();
                    why
                }
                Unwritable::Value(why) => why,
            };
            (self.remove(pending, connection).due, why)
        })
    }

    /// The first byte of an answer came, and its end has not.
    pub fn begin(&mut self, pending: PendingId, now_ns: u64) {
        self.pending.begin(pending, now_ns);
    }

    /// Remove a request from those in flight: its answer is to be judged.
    #[inline]
    pub fn remove(&mut self, pending: PendingId, connection: &mut Connection) -> PendingRequest {
        self.pending.remove(pending, connection.queue_mut())
    }

    /// Judge the answer to a request, and record its end. `head` has the fields of the answer, if they were kept. `cause` is
    /// called for a wrong answer.
    #[inline]
    #[expect(clippy::too_many_arguments, reason = "an answer has three parts")]
    pub fn judge(
        &mut self,
        pending: &PendingRequest,
        answer: &Answer,
        head: &[u8],
        body: &[u8],
        cause: impl FnOnce(String) -> Cause,
        now_ns: u64,
        activity: &mut Activity,
    ) {
        let PendingRequest { due, written_ns, first_ns, request, .. } = *pending;
        let judged = self.scenario.judge(request as usize, answer, body);
        if let Some(clock_ns) = judged.clock_ns {
            let (ours_ns, theirs_ns) = (i128::from(unix_ns()), i128::from(clock_ns));
            let since_written_ns = i128::from(now_ns.saturating_sub(written_ns));
            activity.events.push(ClientEvent::Clock(ClockReading {
                due_ns: due.due_ns,
                to_server_ns: theirs_ns - (ours_ns - since_written_ns),
                from_server_ns: ours_ns - theirs_ns,
            }));
        }
        let mut outcome = match judged.verdict {
            Verdict::Right => Outcome::Ok,
            Verdict::WrongStatus => Outcome::UnexpectedStatus,
            Verdict::WrongBody => Outcome::UnexpectedBody,
        };
        let mut why = None;
        if let Some(visitors) = self.scenario.visitors_mut() {
            visitors.keep_cookies(&due, head, now_ns);
            if visitors.asks_again(&due, answer) {
                outcome = Outcome::Ok;
            } else if outcome == Outcome::Ok
                && let Err(missing) = visitors.take(&due, head, body, now_ns)
            {
                outcome = Outcome::UnexpectedBody;
                why = Some(missing);
            }
        }
        if outcome != Outcome::Ok {
            let difference = || why.unwrap_or_else(|| self.scenario.difference(request as usize, answer, body));
            activity.failures.note(outcome, now_ns, || cause(difference()).of(self.scenario.name_of(request)));
        }
        let (status, grpc_status) = (Some(answer.status), answer.grpc_status);
        let body_bytes = answer.body_length;
        let (written_ns, first_ns) = (Some(written_ns), Some(if first_ns == 0 { now_ns } else { first_ns }));
        let ended = EndedRequest { due, request, written_ns, first_ns, outcome, status, grpc_status, body_bytes };
        activity.events.push(ClientEvent::Ended(ended));
    }

    /// A request ends without a complete answer.
    pub fn fail(&mut self, pending: PendingId, connection: &mut Connection, outcome: Outcome, activity: &mut Activity) {
        let PendingRequest { due, written_ns, request, .. } = self.remove(pending, connection);
        let ended = EndedRequest::unanswered(due, request, Some(written_ns), outcome);
        activity.events.push(ClientEvent::Ended(ended));
    }

    /// All requests on a connection end with this outcome.
    pub fn fail_all(&mut self, connection: &mut Connection, outcome: Outcome, activity: &mut Activity) {
        while let Some(pending) = connection.first_pending() {
            self.fail(pending, connection, outcome, activity);
        }
    }

    /// Write all requests on a connection again, as [`Self::retry`] does.
    pub fn retry_all(
        &mut self,
        connection: &mut Connection,
        outcome: Outcome,
        cause: impl Fn(&Connection) -> Cause,
        now_ns: u64,
        activity: &mut Activity,
    ) {
        while let Some(pending) = connection.first_pending() {
            self.retry(pending, connection, outcome, &cause, now_ns, activity);
        }
    }

    /// Whether a request may be written once more.
    pub fn may_retry(&self, pending: PendingId) -> bool {
        self.pending.get(pending).due.tries < MOST_TRIES
    }

    /// Write a request again. It fails with this outcome when it was written too often.
    pub fn retry(
        &mut self,
        pending: PendingId,
        connection: &mut Connection,
        outcome: Outcome,
        cause: impl FnOnce(&Connection) -> Cause,
        now_ns: u64,
        activity: &mut Activity,
    ) {
        if !self.may_retry(pending) {
            activity.failures.note(outcome, now_ns, || cause(connection).of(self.name_of(pending)));
            return self.fail(pending, connection, outcome, activity);
        }
        let PendingRequest { due, written_ns, .. } = self.remove(pending, connection);
        let due = DueRequest { tries: due.tries + 1, written_ns: Some(written_ns), ..due };
        activity.events.push(ClientEvent::Retry(due));
    }

    /// Write a request again because its server announced that it would not process it. That never fails, however often it
    /// happens: such a connection has answered another request.
    pub fn resend(&mut self, pending: PendingId, connection: &mut Connection, activity: &mut Activity) {
        let PendingRequest { due, written_ns, .. } = self.remove(pending, connection);
        activity.events.push(ClientEvent::Resend(DueRequest { written_ns: Some(written_ns), ..due }));
    }

    /// Write all requests on a connection again, as [`Self::resend`] does.
    pub fn resend_all(&mut self, connection: &mut Connection, activity: &mut Activity) {
        while let Some(pending) = connection.first_pending() {
            self.resend(pending, connection, activity);
        }
    }
}
