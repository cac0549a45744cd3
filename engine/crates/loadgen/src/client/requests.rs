//! The requests in flight of a worker: their beginnings and their ends.
//!
//! This module knows nothing of sockets and protocols: callers pass the connection of a request.

use std::collections::BTreeMap;
use std::sync::Arc;

use redline_traffic::{Outcome, StreamNews};
use redline_websocket::Kind;
use redline_wire::{Answer, MessageText, MessageTime, MessageValues, ReadOptions, StreamSoFar, Verdict};

use super::activity::{Activity, ClientEvent, ClockReading, StreamProgress};
use super::connection::Connection;
use super::continuing::Waits;
use super::pending::{PendingRequest, PendingRequests};
use super::scenario::{Scenario, Unwritable};
use super::streams::{EndedStream, Fate, Progress, StreamEnd, Streams};
use super::websocket::SWITCHING_PROTOCOLS;
use crate::first_failures::Cause;
use crate::ids::{ConnectionId, PendingId};
use crate::job::{Stream, WebSocket};
use crate::request::{DueRequest, EndedRequest};
use crate::sys::time::{now_ns, unix_ns};

/// How often a request may be written without an answer before it fails, not counting requests that the server announced not to
/// process.
const MOST_TRIES: u8 = 2;

/// The requests in flight, and the job's settings for them.
pub struct Requests {
    pending: PendingRequests,
    scenario: Scenario,
    streams: Streams,
}

impl Requests {
    pub fn new(scenario: Scenario) -> Self {
        Self { pending: PendingRequests::new(), scenario, streams: Streams::default() }
    }

    pub fn len(&self) -> usize {
        self.pending.len()
    }

    pub fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// The streams of events that have begun.
    #[inline]
    pub fn streams(&self) -> &Streams {
        &self.streams
    }

    /// The bodies that wait for an answer 100.
    #[inline]
    pub fn waits(&self) -> &Waits {
        self.scenario.waits()
    }

    pub fn waits_mut(&mut self) -> &mut Waits {
        self.scenario.waits_mut()
    }

    /// The next stream that has to be ended by now.
    pub fn expired_stream(&mut self, now_ns: u64, expires_from_ns: u64) -> Option<(PendingId, StreamEnd)> {
        self.streams.expired(now_ns, expires_from_ns)
    }

    /// The values that a step of a journey has taken, by their names.
    pub fn taken(&self, due: &DueRequest) -> BTreeMap<String, String> {
        self.scenario.visitors().map_or_else(BTreeMap::new, |visitors| visitors.taken(due))
    }

    /// The cookies that the user of a step was without, each with its reason.
    pub fn missing_cookies(&self, due: &DueRequest) -> Vec<String> {
        self.scenario.visitors().map_or_else(Vec::new, |visitors| visitors.missing_cookies(due))
    }

    /// The request that was written first, of those whose answer is no stream that has begun.
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
            (self.pending.remove(pending, connection.queue_mut()).due, why)
        })
    }

    /// The first byte of an answer came, and its end has not.
    pub fn begin(&mut self, pending: PendingId, now_ns: u64) {
        self.pending.begin(pending, now_ns);
    }

    /// More of a stream of events has arrived. Returns whether all of its events that count have. An answer with a wrong status
    /// is no stream, and ends with its last byte.
    pub fn follow(&mut self, pending: PendingId, so_far: StreamSoFar, now_ns: u64, activity: &mut Activity) -> bool {
        let PendingRequest { due, request, .. } = *self.pending.get(pending);
        if self.streams.get(pending).is_none() {
            let Some(stream) = self.scenario.stream(request as usize, so_far.status) else {
                return false;
            };
            self.begin_stream(pending, stream, so_far.status, now_ns, activity);
        }
        self.streams.follow(pending, so_far, now_ns, activity.late_ns, |news| {
            activity.events.push(ClientEvent::Stream(StreamProgress { due_ns: due.due_ns, request, news }));
        })
    }

    /// The WebSocket of a request whose user listens, if it is one.
    #[inline]
    pub fn listens_on(&self, pending: PendingId) -> Option<&Arc<WebSocket>> {
        self.scenario.websocket(self.pending.get(pending).request as usize).filter(|websocket| websocket.listens)
    }

    /// The WebSocket of a request is open, whose user listens: its messages are a stream. What the user sends is put on it.
    pub fn begin_listening(
        &mut self,
        pending: PendingId,
        connection: &mut Connection,
        now_ns: u64,
        activity: &mut Activity,
    ) {
        let PendingRequest { due, request, .. } = *self.pending.get(pending);
        let Some(stream) = self.scenario.any_stream(request as usize) else {
            return;
        };
        self.begin_stream(pending, stream, SWITCHING_PROTOCOLS, now_ns, activity);
        let sends = self.listens_on(pending).is_some_and(|websocket| websocket.sends);
        if sends && let Err(why) = self.scenario.write_subscription(request as usize, &due, connection, now_ns) {
            activity
                .failures
                .note(Outcome::Closed, now_ns, || Cause::words(why.words()).of(self.scenario.name_of(request)));
        }
    }

    /// The answer to a request is a stream, of which nothing but its head has arrived.
    fn begin_stream(&mut self, pending: PendingId, stream: Stream, status: u16, now_ns: u64, activity: &mut Activity) {
        let PendingRequest { due, request, .. } = *self.pending.get(pending);
        let arrived_ns = now_ns.saturating_sub(activity.late_ns.unwrap_or(0));
        // As its messages, or a head that was read late would come after the first of them.
        self.pending.begin_stream(pending, now_ns, arrived_ns);
        // The timeout is that of the head: whether a stream takes too long is for its own limits to say.
        self.pending.outlive(pending);
        self.streams.begin(pending, stream, due.due_ns, status, arrived_ns);
        let news = StreamNews::Begun;
        activity.events.push(ClientEvent::Stream(StreamProgress { due_ns: due.due_ns, request, news }));
    }

    /// A message was pushed to a user who listens. Returns whether all that count have come.
    ///
    /// # Errors
    /// That it does not state the time, and should, in words.
    pub fn pushed(
        &mut self,
        pending: PendingId,
        payload: &[u8],
        now_ns: u64,
        activity: &mut Activity,
    ) -> Result<bool, String> {
        let Some((rules, mut so_far)) = self.streams.get(pending).map(|progress| (progress.rules(), progress.so_far))
        else {
            return Ok(false);
        };
        so_far.body_length += payload.len() as u64;
        let counts = so_far.messages.message(rules, b"", payload, 0);
        let is_complete = self.follow(pending, so_far, now_ns, activity);
        if let Some(rules) = rules.filter(|_| counts) {
            if let Some(text) = rules.text_in(payload) {
                self.gather(pending, vec![text]);
            }
            if let Some(time) = rules.time_in(payload) {
                self.stated(pending, [time], now_ns, activity)?;
            }
        }
        Ok(is_complete)
    }

    /// The events of a stream that came, in words; empty where none has begun.
    pub fn came(&self, pending: PendingId) -> String {
        self.streams.get(pending).map(Progress::came).unwrap_or_default()
    }

    /// These values were read in messages of a stream: the text in them is gathered for its user.
    ///
    /// # Errors
    /// Why the stream is wrong: a message reports an error, or does not state the time and should.
    pub fn read(
        &mut self,
        pending: PendingId,
        values: MessageValues,
        now_ns: u64,
        activity: &mut Activity,
    ) -> Result<(), String> {
        let MessageValues { times, texts, error } = values;
        if let Some(error) = error {
            return Err(format!("a message reports an error: {error}"));
        }
        if !texts.is_empty() {
            self.gather(pending, texts);
        }
        self.stated(pending, times, now_ns, activity)
    }

    /// Messages have these parts of a text, which is gathered for the user of a step.
    fn gather(&mut self, pending: PendingId, texts: Vec<MessageText>) {
        let PendingRequest { due, request, .. } = *self.pending.get(pending);
        let until = self.scenario.any_stream(request as usize).and_then(|stream| stream.until);
        if let Some(visitors) = self.scenario.visitors_mut() {
            visitors.gather(&due, texts, until);
        }
    }

    /// Messages of a stream state these times of the server's clock.
    ///
    /// # Errors
    /// That a message states none, in words.
    fn stated(
        &self,
        pending: PendingId,
        times: impl IntoIterator<Item = MessageTime>,
        now_ns: u64,
        activity: &mut Activity,
    ) -> Result<(), String> {
        let PendingRequest { due, request, .. } = *self.pending.get(pending);
        // When the messages arrived, by the clock that servers read.
        let since_ns = self::now_ns().saturating_sub(now_ns) + activity.late_ns.unwrap_or(0);
        let arrived_ns = i128::from(unix_ns()) - i128::from(since_ns);
        for time in times {
            let time = time.map_err(|message| {
                format!("a message does not state the time where the request says; it was {message}")
            })?;
            let news = StreamNews::Stated(arrived_ns - i128::from(time));
            activity.events.push(ClientEvent::Stream(StreamProgress { due_ns: due.due_ns, request, news }));
        }
        Ok(())
    }

    /// A stream of events has ended as it should, before its last byte. `head` has the fields of the answer that were kept.
    pub fn end_stream(
        &mut self,
        pending: PendingId,
        connection: &mut Connection,
        head: &[u8],
        now_ns: u64,
        activity: &mut Activity,
    ) {
        let Some((so_far, rules)) = self.streams.get(pending).map(|progress| (progress.so_far, progress.rules()))
        else {
            return;
        };
        let PendingRequest { due, written_ns, first_ns, request, .. } =
            self.remove(pending, Fate::Enough, connection, now_ns, activity);
        let (status, body_bytes) = (so_far.status, so_far.body_length);
        let answer = Answer {
            status,
            grpc_status: None,
            body_length: body_bytes,
            body_sha256: None,
            events: Some(so_far.messages),
            keep_alive: false,
        };
        if let Some(record) = connection.take_any_record() {
            activity.recorded = Some((answer, record));
        }
        let (outcome, why) = if so_far.messages.counted == 0 {
            // Its time is over.
            let why = match (rules, so_far.messages.aside) {
                (Some(rules), aside @ 1..) => format!("its time is over: {}", rules.none_of(aside)),
                _ => "its time is over, and no message came".to_owned(),
            };
            (Outcome::UnexpectedBody, Some(why))
        } else {
            self.meet(&due, &answer, Outcome::Ok, head, &[], now_ns)
        };
        if let Some(why) = why {
            activity.failures.note(outcome, now_ns, || Cause::words(why).of(self.scenario.name_of(request)));
        }
        // The messages of a WebSocket have no status.
        let status = (status != SWITCHING_PROTOCOLS).then_some(status);
        let (written_ns, first_ns) = (Some(written_ns), Some(first_ns));
        activity.events.push(ClientEvent::Ended(EndedRequest {
            has_streamed: true,
            due,
            request,
            written_ns,
            first_ns,
            outcome,
            status,
            grpc_status: None,
            body_bytes,
            has_errors: false,
        }));
    }

    /// An answer came to a step of a journey, if it is one: its user learns from it. Returns the outcome, and what is missing.
    #[inline]
    fn meet(
        &mut self,
        due: &DueRequest,
        answer: &Answer,
        outcome: Outcome,
        head: &[u8],
        body: &[u8],
        now_ns: u64,
    ) -> (Outcome, Option<String>) {
        match self.scenario.visitors_mut() {
            Some(visitors) if visitors.learns(due, head) => visitors.meet(due, answer, outcome, head, body, now_ns),
            _ => (outcome, None),
        }
    }

    /// Remove a request from those in flight, which has ended like this.
    #[inline]
    pub fn remove(
        &mut self,
        pending: PendingId,
        fate: Fate,
        connection: &mut Connection,
        now_ns: u64,
        activity: &mut Activity,
    ) -> PendingRequest {
        if !self.streams.is_empty() {
            self.remove_stream(pending, fate, now_ns, activity);
        }
        self.pending.remove(pending, connection.queue_mut())
    }

    #[cold]
    fn remove_stream(&mut self, pending: PendingId, fate: Fate, now_ns: u64, activity: &mut Activity) {
        let Some(EndedStream { is_stalled, is_push, open_gap_ns, ended }) = self.streams.remove(pending, fate, now_ns)
        else {
            return;
        };
        let PendingRequest { due, request, .. } = *self.pending.get(pending);
        let stall = is_stalled.then_some(StreamNews::Stall { is_push });
        let open = open_gap_ns.map(|ns| StreamNews::OpenGap { ns, is_push });
        for news in stall.into_iter().chain(open).chain([StreamNews::Ended(ended)]) {
            activity.events.push(ClientEvent::Stream(StreamProgress { due_ns: due.due_ns, request, news }));
        }
    }

    /// Judge the answer to a request, and record its end. `head` has the fields of the answer that were kept. `cause` is
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
        let outcome = match judged.verdict {
            Verdict::Right => Outcome::Ok,
            Verdict::WrongStatus => Outcome::UnexpectedStatus,
            Verdict::WrongBody => Outcome::UnexpectedBody,
        };
        let (outcome, why) = self.meet(&due, answer, outcome, head, body, now_ns);
        if outcome != Outcome::Ok {
            let difference = || {
                let why = why.unwrap_or_else(|| self.scenario.difference(request as usize, answer, body));
                [why].into_iter().chain(self.missing_cookies(&due)).collect::<Vec<_>>().join("; ")
            };
            activity.failures.note(outcome, now_ns, || cause(difference()).of(self.scenario.name_of(request)));
        }
        let errors = if outcome == Outcome::Ok { self.scenario.watched_errors(request as usize, body) } else { None };
        let has_errors = errors.is_some();
        if let Some(errors) = errors {
            activity.failures.note(outcome, now_ns, || Cause::words(errors).of(self.scenario.name_of(request)));
        }
        let (status, grpc_status) = (Some(answer.status), answer.grpc_status);
        let body_bytes = answer.body_length;
        let (written_ns, first_ns) = (Some(written_ns), Some(if first_ns == 0 { now_ns } else { first_ns }));
        let has_streamed = pending.has_streamed;
        activity.events.push(ClientEvent::Ended(EndedRequest {
            due,
            request,
            written_ns,
            first_ns,
            has_streamed,
            outcome,
            status,
            grpc_status,
            body_bytes,
            has_errors,
        }));
    }

    /// Judge the message that answers a message, and record its end.
    pub fn judge_message(
        &mut self,
        pending: &PendingRequest,
        kind: Kind,
        payload: &[u8],
        now_ns: u64,
        activity: &mut Activity,
    ) {
        let PendingRequest { due, written_ns, first_ns, request, .. } = *pending;
        let difference = self.scenario.difference_of_message(request as usize, &due, kind, payload);
        let outcome = if difference.is_none() { Outcome::Ok } else { Outcome::UnexpectedBody };
        if let Some(difference) = difference {
            activity.failures.note(outcome, now_ns, || Cause::words(difference).of(self.scenario.name_of(request)));
        }
        activity.events.push(ClientEvent::Ended(EndedRequest {
            due,
            request,
            written_ns: Some(written_ns),
            first_ns: Some(if first_ns == 0 { now_ns } else { first_ns }),
            has_streamed: false,
            outcome,
            status: None,
            grpc_status: None,
            body_bytes: payload.len() as u64,
            has_errors: false,
        }));
    }

    /// A request ends without a complete answer.
    pub fn fail(
        &mut self,
        pending: PendingId,
        connection: &mut Connection,
        outcome: Outcome,
        now_ns: u64,
        activity: &mut Activity,
    ) {
        let is_ours = matches!(outcome, Outcome::InFlight | Outcome::Timeout);
        let fate = if is_ours { Fate::GivenUp } else { Fate::Broken };
        let PendingRequest { due, written_ns, request, has_streamed, .. } =
            self.remove(pending, fate, connection, now_ns, activity);
        let ended = EndedRequest { has_streamed, ..EndedRequest::unanswered(due, request, Some(written_ns), outcome) };
        activity.events.push(ClientEvent::Ended(ended));
    }

    /// All requests on a connection end with this outcome.
    pub fn fail_all(&mut self, connection: &mut Connection, outcome: Outcome, now_ns: u64, activity: &mut Activity) {
        while let Some(pending) = connection.first_pending() {
            self.fail(pending, connection, outcome, now_ns, activity);
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
            return self.fail(pending, connection, outcome, now_ns, activity);
        }
        let PendingRequest { due, written_ns, .. } = self.remove(pending, Fate::Broken, connection, now_ns, activity);
        let due = DueRequest { tries: due.tries + 1, written_ns: Some(written_ns), ..due };
        activity.events.push(ClientEvent::Retry(due));
    }

    /// Write a request again because its server announced that it would not process it. That never fails, however often it
    /// happens: such a connection has answered another request.
    pub fn resend(&mut self, pending: PendingId, connection: &mut Connection, now_ns: u64, activity: &mut Activity) {
        let PendingRequest { due, written_ns, .. } = self.remove(pending, Fate::Broken, connection, now_ns, activity);
        activity.events.push(ClientEvent::Resend(DueRequest { written_ns: Some(written_ns), ..due }));
    }

    /// Write all requests on a connection again, as [`Self::resend`] does.
    pub fn resend_all(&mut self, connection: &mut Connection, now_ns: u64, activity: &mut Activity) {
        while let Some(pending) = connection.first_pending() {
            self.resend(pending, connection, now_ns, activity);
        }
    }
}
