//! The client of a worker: it opens connections, writes requests, and handles the events of its backend.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use redline_traffic::{Outcome, Reach};
use redline_wire::Heads;

use super::activity::{Activity, ClientEvent, OpenError, OpenFailure};
use super::connection::Connection;
use super::glimpse::unanswered;
use super::pool::{ConnectResult, ConnectionState, OpeningProgress, Pool};
use super::requests::Requests;
use super::scenario::Scenario;
use super::streams::StreamEnd;
use crate::first_failures::{OVER, in_words};
use crate::ids::{ConnectionId, GlobalWorkerId, PendingId};
use crate::io::{Event, Io};
use crate::job::Job;
use crate::peers::Peers;
use crate::request::{DueRequest, NEVER};
use crate::stop::Stop;

/// How long a server has to accept the connections that are opened at once.
const ACCEPTS: Duration = Duration::from_millis(5);

/// The connections of one worker, and the requests in flight on them.
pub struct Client<I> {
    pub(super) pool: Pool<I>,
    pub(super) requests: Requests,
    pub(super) heads: Heads,
    /// Decrypted bytes.
    pub(super) plain: Vec<u8>,
    /// Bytes of a WebSocket that a stream of HTTP/2 carried.
    pub(super) carried: Vec<u8>,
    pub(super) http2_events: Vec<redline_http2::Event>,
    connects_at_once: usize,
    timeout_ns: u64,
    /// Nothing times out before this time.
    expires_from_ns: u64,
}

impl<I: Io> Client<I> {
    /// A client with at most this many connections, none of them open. `first` is the number of its first connection among the
    /// connections of all workers.
    ///
    /// # Errors
    /// When the backend cannot be set up.
    pub fn new(
        job: &Arc<Job>,
        worker: GlobalWorkerId,
        target: &Peers,
        first: u32,
        connections: usize,
        stop: &Stop,
    ) -> io::Result<Self> {
        let scenario = Scenario::new(job, worker);
        let connects_at_once = job.connects_at_once.map_or(u32::MAX, |all| (all / job.shard.all_workers).max(1));
        Ok(Self {
            connects_at_once: connects_at_once as usize,
            pool: Pool::new(job, scenario.tapes(), target, first, connections, stop)?,
            requests: Requests::new(scenario),
            heads: Heads::new(),
            plain: Vec::new(),
            carried: Vec::new(),
            http2_events: Vec::new(),
            timeout_ns: job.timeout_ns,
            expires_from_ns: 0,
        })
    }

    /// Try to open this many connections once, for at most this long. Connections that are still being opened then continue.
    ///
    /// No more are opened at once than the server's listen queue holds, as far as that is known: the kernel drops others, and
    /// the server hears of them again after 1, 3, 7, … s, in which they look open. After an error the rest is tried together.
    ///
    /// # Errors
    /// When the kernel refuses to wait.
    pub fn connect_first(
        &mut self,
        connections: usize,
        limit_ns: u64,
        stop: &Stop,
        activity: &mut Activity,
    ) -> io::Result<ConnectResult> {
        let mut left = connections;
        let mut at_once = self.connects_at_once;
        loop {
            let more = left.min(at_once);
            left -= more;
            self.pool.grow(more);
            let result = self.pool.open_all(limit_ns, stop, activity)?;
            if left == 0 || stop.code().is_some() {
                self.pool.grow(left);
                return Ok(result);
            }
            if result.error.is_some() {
                at_once = left;
            } else {
                thread::sleep(ACCEPTS);
            }
        }
    }

    /// Another connection is needed.
    pub fn grow(&mut self) {
        self.pool.grow(1);
    }

    /// A connection fewer is needed.
    pub fn shrink(&mut self) {
        self.pool.shrink();
    }

    /// More requests wait than the connections can carry.
    pub fn grow_for(&mut self, waiting: u64) {
        self.pool.grow_for(waiting);
    }

    /// More requests wait than the connections can carry: open connections that the peer closed while they were idle.
    #[inline]
    pub fn wake_for(&mut self, waiting: u64) {
        self.pool.wake_for(waiting);
    }

    #[inline]
    pub fn has_room(&self) -> bool {
        self.pool.has_room()
    }

    /// The connection for the next request, and how many requests it can take.
    #[inline]
    pub fn next_with_room(&self) -> Option<(ConnectionId, u32)> {
        let connection = self.pool.next_with_room()?;
        Some((connection, self.pool.room(connection)))
    }

    /// How many requests were written and have not ended.
    pub fn in_flight(&self) -> usize {
        self.requests.len()
    }

    /// Record the next answer, in a check.
    pub fn record_again(&mut self) {
        self.pool.record_again();
    }

    /// The values that a step of a journey has taken, by their names.
    pub fn taken(&self, due: &DueRequest) -> BTreeMap<String, String> {
        self.requests.taken(due)
    }

    /// The cookies that the user of a step was without, each with its reason.
    pub fn missing_cookies(&self, due: &DueRequest) -> Vec<String> {
        self.requests.missing_cookies(due)
    }

    pub fn is_idle(&self) -> bool {
        self.requests.is_empty()
    }

    /// Wait for events until this time at most, as [`Io::wait`] does.
    ///
    /// # Errors
    /// When the kernel refuses to wait.
    pub fn wait(&mut self, until_ns: u64) -> io::Result<()> {
        self.pool.wait(until_ns)
    }

    /// The next event of the last wait.
    #[inline]
    pub fn next_event(&mut self) -> Option<Event> {
        self.pool.next_event()
    }

    /// When a connection may be opened, or something times out.
    pub fn wake_ns(&self) -> u64 {
        let opening_ns = self.pool.oldest_opening().map_or(NEVER, |(_, since_ns)| since_ns);
        let written_ns = self.requests.oldest().map_or(NEVER, |oldest| self.requests.written_ns(oldest));
        let expires_ns = opening_ns.min(written_ns).saturating_add(self.timeout_ns).max(self.expires_from_ns);
        let own_ns = self.requests.streams().next_ns().min(self.requests.waits().next_ns());
        expires_ns.min(self.pool.next_opening_ns()).min(own_ns)
    }

    /// Give all that is in flight the whole timeout again: this worker stood still, and perhaps the server with it.
    pub fn begin_timeouts_again(&mut self, now_ns: u64) {
        self.expires_from_ns = now_ns.saturating_add(self.timeout_ns);
    }

    /// Put a request on a connection. [`Self::flush`] writes it.
    ///
    /// # Errors
    /// Returns the request and why it could not be encoded; nothing of it was written.
    #[inline]
    pub fn put(&mut self, connection: ConnectionId, due: DueRequest, now_ns: u64) -> Result<(), (DueRequest, String)> {
        let carrier = self.pool.connection_mut(connection);
        self.requests.put(due, connection, carrier, now_ns)
    }

    /// Write what was put on a connection.
    #[inline]
    pub fn flush(&mut self, connection: ConnectionId, now_ns: u64, activity: &mut Activity) {
        self.pool.settle(connection);
        self.write(connection, now_ns, activity);
    }

    #[inline]
    pub(super) fn write(&mut self, connection: ConnectionId, now_ns: u64, activity: &mut Activity) {
        match self.pool.flush(connection) {
            Ok(bytes) => activity.bytes_sent += bytes,
            Err(why) => self.unwritable(connection, &why, now_ns, activity),
        }
    }

    /// Handle an event of the backend.
    #[inline]
    pub fn handle(&mut self, event: Event, now_ns: u64, activity: &mut Activity) {
        let Some(connection) = event.connection() else {
            return;
        };
        if self.pool.state(connection) == ConnectionState::Opening {
            activity.late_ns = None;
            return self.continue_opening(connection, event, now_ns, activity);
        }
        match event {
            Event::Received { chunk, more, .. } => {
                activity.late_ns = chunk.late_ns(now_ns);
                self.received(connection, chunk.bytes(), more, now_ns, activity);
                self.pool.release(chunk);
            }
            Event::Sent(_, bytes) => self.sent(connection, bytes, now_ns, activity),
            Event::Unwritable(_, why) => self.unwritable(connection, &why, now_ns, activity),
            Event::Ended(_) => {
                activity.late_ns = None;
                self.ended(connection, now_ns, activity);
            }
            Event::Broken(_, why) => {
                activity.late_ns = None;
                self.broken(connection, &why, now_ns, activity);
            }
            // These concern a connection that is no longer being opened.
            Event::Woken | Event::Opened(_) | Event::Refused(..) => {}
        }
    }

    /// Open connections that are down, as fast as the backoff allows.
    pub fn open_down(&mut self, now_ns: u64, activity: &mut Activity) {
        while self.pool.next_opening_ns() <= now_ns {
            if let Err((connection, error)) = self.pool.begin_next(now_ns) {
                self.not_opened(connection, OpenError::Connect(error), now_ns, activity);
            }
        }
    }

    fn continue_opening(&mut self, connection: ConnectionId, event: Event, now_ns: u64, activity: &mut Activity) {
        match self.pool.advance(connection, event, now_ns, activity) {
            OpeningProgress::Pending => {}
            OpeningProgress::Done => {
                if self.pool.opened(connection, now_ns) {
                    activity.events.push(ClientEvent::Reconnected);
                }
            }
            OpeningProgress::Failed(why) => self.not_opened(connection, why, now_ns, activity),
        }
    }

    fn not_opened(&mut self, connection: ConnectionId, why: OpenError, now_ns: u64, activity: &mut Activity) {
        self.pool.refused(connection, now_ns);
        let failure = OpenFailure { why, none_open: self.pool.open() == 0 };
        activity.events.push(ClientEvent::NotOpened(failure));
    }

    /// End the requests and the openings that take longer than the timeout, and the streams whose time is over.
    #[inline]
    pub fn expire(&mut self, now_ns: u64, activity: &mut Activity) {
        if !self.requests.streams().is_empty() {
            self.expire_streams(now_ns, activity);
        }
        if !self.requests.waits().is_empty() {
            self.end_waits(now_ns, activity);
        }
        if now_ns < self.expires_from_ns {
            return;
        }
        let timeout_ns = self.timeout_ns;
        while let Some(oldest) = self.requests.oldest()
            && self.requests.written_ns(oldest).saturating_add(timeout_ns) <= now_ns
        {
            self.time_out(oldest, now_ns, activity);
        }
        while let Some((connection, since_ns)) = self.pool.oldest_opening()
            && since_ns.saturating_add(timeout_ns) <= now_ns
        {
            let why = self.pool.too_slow(connection);
            self.not_opened(connection, why, now_ns, activity);
        }
    }

    fn expire_streams(&mut self, now_ns: u64, activity: &mut Activity) {
        while let Some((pending, end)) = self.requests.expired_stream(now_ns, self.expires_from_ns) {
            match end {
                StreamEnd::Lasted => self.end_stream(pending, now_ns, activity),
                StreamEnd::Stalled(stall_ns) => {
                    let reason = format!("no event within {}, {}", in_words(stall_ns), self.requests.came(pending));
                    self.cancel(pending, |_| reason, now_ns, activity);
                }
            }
        }
    }

    /// A stream has lasted as long as it should. In HTTP/2 it is reset, in HTTP/1.1 its connection is closed.
    fn end_stream(&mut self, pending: PendingId, now_ns: u64, activity: &mut Activity) {
        let connection = self.requests.connection_of(pending);
        let carrier = self.pool.connection_mut(connection);
        let head = carrier.fields_of(pending).to_vec();
        let has_streams = carrier.cancel_stream(pending);
        self.requests.end_stream(pending, carrier, &head, now_ns, activity);
        self.pool.answered(connection, now_ns);
        if has_streams {
            self.write(connection, now_ns, activity);
            if self.pool.is_open(connection) {
                self.pool.settle(connection);
            }
        } else {
            self.pool.drop_socket(connection, true);
        }
    }

    /// End a request. In HTTP/2 its stream is cancelled; in HTTP/1.1 the requests after it on its connection cannot be answered
    /// before it, and end with it.
    fn time_out(&mut self, pending: PendingId, now_ns: u64, activity: &mut Activity) {
        let time = format!("within {}", in_words(self.timeout_ns));
        self.cancel(pending, |carrier| unanswered(carrier.glimpsed(), &time), now_ns, activity);
    }

    fn cancel(
        &mut self,
        pending: PendingId,
        reason: impl FnOnce(&Connection) -> String,
        now_ns: u64,
        activity: &mut Activity,
    ) {
        let connection = self.requests.connection_of(pending);
        let carrier = self.pool.connection_mut(connection);
        let request = self.requests.name_of(pending);
        let why = || carrier.cause(reason(carrier), None, &[]).of(request);
        activity.failures.note(Outcome::Timeout, now_ns, why);
        if carrier.cancel_stream(pending) {
            self.requests.fail(pending, carrier, Outcome::Timeout, now_ns, activity);
            self.write(connection, now_ns, activity);
            if self.pool.is_open(connection) {
                self.pool.settle(connection);
            }
            return;
        }
        self.requests.fail_all(carrier, Outcome::Timeout, now_ns, activity);
        // This does not count against the peer: it may be slow, but it is there.
        self.pool.drop_socket(connection, true);
    }

    /// End all requests in flight: the load is over.
    pub fn abandon(&mut self, now_ns: u64, activity: &mut Activity) {
        while let Some(pending) = self.requests.oldest() {
            let carrier = self.pool.connection_mut(self.requests.connection_of(pending));
            let request = self.requests.name_of(pending);
            let reason = || carrier.cause(unanswered(carrier.glimpsed(), OVER), None, &[]).of(request);
            activity.failures.note(Outcome::InFlight, now_ns, reason);
            self.requests.fail(pending, carrier, Outcome::InFlight, now_ns, activity);
        }
        while let Some(pending) = self.requests.streams().any() {
            let came = self.requests.came(pending);
            let carrier = self.pool.connection_mut(self.requests.connection_of(pending));
            let request = self.requests.name_of(pending);
            let why = || format!("the stream did not end {OVER}, {came}");
            let reason = || carrier.cause(why(), None, &[]).of(request);
            activity.failures.note(Outcome::InFlight, now_ns, reason);
            self.requests.fail(pending, carrier, Outcome::InFlight, now_ns, activity);
        }
    }

    /// The kernel took bytes of an earlier write.
    fn sent(&mut self, connection: ConnectionId, bytes: usize, now_ns: u64, activity: &mut Activity) {
        match self.pool.sent(connection, bytes) {
            Ok(bytes) => activity.bytes_sent += bytes,
            Err(why) => return self.unwritable(connection, &why, now_ns, activity),
        }
        // The answer may arrive before the request is written, and a stream is free only once its end is written.
        if self.pool.state(connection) == ConnectionState::Full {
            self.pool.settle(connection);
        }
    }

    /// Nothing can be written any more. The peer may have answered before it closed, so received bytes count, and are read
    /// before the end of the connection.
    fn unwritable(&mut self, connection: ConnectionId, why: &io::Error, now_ns: u64, activity: &mut Activity) {
        if matches!(why.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) {
            self.pool.connection_mut(connection).refuse_writes();
            self.pool.settle(connection);
        } else {
            self.broken(connection, why, now_ns, activity);
        }
    }

    /// Send the bodies that have waited long enough for an answer 100, and forget the waits that are over.
    fn end_waits(&mut self, now_ns: u64, activity: &mut Activity) {
        while let Some((number, pending, until_ns)) = self.requests.waits().first() {
            let connection = self.requests.connection_of(pending);
            let is_held = self.pool.connection(connection).held() == Some(number);
            if is_held && until_ns > now_ns {
                break;
            }
            self.requests.waits_mut().remove_first();
            if is_held && self.pool.connection_mut(connection).release() {
                self.write(connection, now_ns, activity);
            }
        }
    }

    /// How far the connections ever came.
    pub fn reach(&self) -> Reach {
        self.pool.reach()
    }
}
