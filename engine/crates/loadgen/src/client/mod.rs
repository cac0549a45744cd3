//! The connections of one worker, and the requests in flight on them.
//!
//! A [`Client`] opens connections, writes requests and handles the events of its backend, and records in an [`Activity`] what
//! happened to requests. It knows nothing of the load: the worker acts on what was recorded.

mod connection;
mod flights;
mod http1;
mod http2;
mod outbox;
mod pool;
mod scenario;

use std::fmt::Display;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;

use redline_traffic::Outcome;
use redline_wire::{Heads, Verdict};

use self::flights::{Flight, Flights};
pub use self::pool::{ConnectResult, Handshake, OpenError};
use self::pool::{ConnectionState, OpeningProgress, Pool};
use self::scenario::{Judged, Scenario};
use crate::demand::{NEVER, Task};
use crate::failure_log::{FailureKind, FailureLog};
use crate::ids::{ConnectionId, FlightId, GlobalWorkerId};
use crate::io::{Event, Io};
use crate::job::Job;
use crate::stop::Stop;
use crate::sys::time::unix_ns;

/// How often a request may be written without an answer before it has failed, not counting what the server announced.
const MOST_TRIES: u8 = 2;

/// What happened on the connections, for the worker to act on.
#[derive(Default)]
pub struct Activity {
    /// In order.
    pub events: Vec<ClientEvent>,
    pub bytes_sent: usize,
    pub bytes_received: usize,
}

/// What happened to a request or a connection.
pub enum ClientEvent {
    Ended(Completion),
    /// A request was not answered, and is to be written again.
    Retry(Task),
    /// The server announced that it would not process a request, which is to be written again.
    Resend(Task),
    /// An answer contained the server's clock.
    Clock(ClockReading),
    Handshake(Handshake),
    /// A connection was opened in place of an earlier one.
    Reconnected,
    NotOpened(OpenFailure),
}

/// A request that has ended.
pub struct Completion {
    pub task: Task,
    /// When it was last written, if it was.
    pub written_ns: Option<u64>,
    pub outcome: Outcome,
    /// The status of its answer, when the answer was complete.
    pub status: Option<u16>,
}

/// The server's clock in an answer. Offsets are in nanoseconds.
#[expect(clippy::struct_field_names, reason = "units stand in names")]
pub struct ClockReading {
    pub due_ns: u64,
    /// The server's clock, less ours when the request was written.
    pub to_server_ns: i128,
    /// Ours when the answer was complete, less the server's clock.
    pub from_server_ns: i128,
}

/// A connection could not be opened.
pub struct OpenFailure {
    pub kind: FailureKind,
    /// No other connection is open either.
    pub none_open: bool,
}

/// The connections of one worker, and the requests in flight on them.
pub struct Client<I> {
    pool: Pool<I>,
    flights: Flights,
    scenario: Scenario,
    failures: FailureLog,
    heads: Heads,
    /// Decrypted bytes.
    plain: Vec<u8>,
    http2_events: Vec<redline_http2::Event>,
    timeout_ns: u64,
}

impl<I: Io> Client<I> {
    /// A client of at most this many connections, of which none is open. `first` is the number of the first among the
    /// connections of all workers.
    ///
    /// # Errors
    /// When the backend cannot be set up.
    pub fn new(
        job: &Arc<Job>,
        worker: GlobalWorkerId,
        target: SocketAddr,
        first: u32,
        connections: usize,
        stop: &Stop,
    ) -> io::Result<Self> {
        let scenario = Scenario::new(job, worker);
        Ok(Self {
            pool: Pool::new(job, scenario.tapes(), target, first, connections, stop)?,
            flights: Flights::new(),
            scenario,
            failures: FailureLog::new(worker),
            heads: Heads::new(),
            plain: Vec::new(),
            http2_events: Vec::new(),
            timeout_ns: job.timeout_ns,
        })
    }

    /// Open this many connections, trying each once, until the timeout. Those that are still being opened then continue.
    ///
    /// # Errors
    /// When the kernel refuses to wait.
    pub fn connect_first(
        &mut self,
        connections: usize,
        stop: &Stop,
        activity: &mut Activity,
    ) -> io::Result<ConnectResult> {
        self.pool.grow(connections);
        let result = self.pool.open_all(self.timeout_ns, stop, activity)?;
        if let Some(why) = &result.error {
            self.failures.report(why.kind(), why);
        }
        Ok(result)
    }

    /// One connection more is needed.
    pub fn grow(&mut self) {
        self.pool.grow(1);
    }

    /// One connection less is needed.
    pub fn shrink(&mut self) {
        self.pool.shrink();
    }

    /// More requests wait than the connections can carry.
    pub fn grow_for(&mut self, waiting: u64) {
        self.pool.grow_for(waiting);
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

    /// Requests that were written and have not ended.
    pub fn in_flight(&self) -> usize {
        self.flights.len()
    }

    pub fn is_idle(&self) -> bool {
        self.flights.is_empty()
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
        let written_ns = self.flights.oldest().map_or(NEVER, |oldest| self.flights.get(oldest).written_ns);
        opening_ns.min(written_ns).saturating_add(self.timeout_ns).min(self.pool.next_opening_ns())
    }

    /// Put a request on a connection. [`Self::flush`] writes it.
    ///
    /// # Errors
    /// The task, when it could not be encoded: nothing of it was written.
    #[inline]
    pub fn put(&mut self, connection: ConnectionId, mut task: Task, now_ns: u64) -> Result<(), Task> {
        let request = self.scenario.draw(&mut task);
        let carrier = self.pool.connection_mut(connection);
        carrier.count_request();
        let flight = self.flights.insert(task, now_ns, request as u32, connection, carrier.queue_mut());
        if let Err(why) = self.scenario.write(request, flight, carrier) {
            carrier.refuse_requests();
            self.failures.report(FailureKind::Malformed, &why);
            return Err(self.remove(flight).task);
        }
        Ok(())
    }

    /// Write what was put on a connection.
    #[inline]
    pub fn flush(&mut self, connection: ConnectionId, now_ns: u64, activity: &mut Activity) {
        self.pool.settle(connection);
        self.write(connection, now_ns, activity);
    }

    #[inline]
    fn write(&mut self, connection: ConnectionId, now_ns: u64, activity: &mut Activity) {
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
            return self.continue_opening(connection, event, now_ns, activity);
        }
        match event {
            Event::Received { chunk, more, .. } => {
                self.received(connection, chunk.bytes(), more, now_ns, activity);
                self.pool.release(chunk);
            }
            Event::Sent(_, bytes) => self.sent(connection, bytes, now_ns, activity),
            Event::Unwritable(_, why) => self.unwritable(connection, &why, now_ns, activity),
            Event::Ended(_) => self.ended(connection, now_ns, activity),
            Event::Broken(_, why) => self.broken(connection, &why, now_ns, activity),
            // Of a connection that is no longer being opened.
            Event::Woken | Event::Opened(_) | Event::Refused(..) => {}
        }
    }

    /// Open connections that are down, as fast as the backoff allows.
    pub fn open_down(&mut self, now_ns: u64, activity: &mut Activity) {
        while self.pool.next_opening_ns() <= now_ns {
            if let Err((connection, error)) = self.pool.begin_next(now_ns) {
                self.not_opened(connection, &OpenError::Connect(error), now_ns, activity);
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
            OpeningProgress::Failed(why) => self.not_opened(connection, &why, now_ns, activity),
        }
    }

    fn not_opened(&mut self, connection: ConnectionId, why: &OpenError, now_ns: u64, activity: &mut Activity) {
        self.failures.report(why.kind(), why);
        self.pool.refused(connection, now_ns);
        let failure = OpenFailure { kind: why.kind(), none_open: self.pool.open() == 0 };
        activity.events.push(ClientEvent::NotOpened(failure));
    }

    /// End the requests and the openings that take longer than the timeout.
    pub fn expire(&mut self, now_ns: u64, activity: &mut Activity) {
        let timeout_ns = self.timeout_ns;
        while let Some(oldest) = self.flights.oldest()
            && self.flights.get(oldest).written_ns.saturating_add(timeout_ns) <= now_ns
        {
            self.time_out(oldest, now_ns, activity);
        }
        while let Some((connection, since_ns)) = self.pool.oldest_opening()
            && since_ns.saturating_add(timeout_ns) <= now_ns
        {
            let why = self.pool.too_slow(connection);
            self.not_opened(connection, &why, now_ns, activity);
        }
    }

    /// End one request. In HTTP/2 its stream is cancelled; in HTTP/1.1 the requests behind it on its connection cannot be
    /// answered before it, and end with it.
    fn time_out(&mut self, flight: FlightId, now_ns: u64, activity: &mut Activity) {
        let connection = self.flights.get(flight).connection;
        if self.cancel_stream(connection, flight, now_ns, activity) {
            return;
        }
        self.fail_queue(connection, Outcome::Timeout, activity);
        // This does not count against the peer: it may be slow, but it is there.
        self.pool.drop_socket(connection, true);
    }

    /// End all requests in flight.
    pub fn abandon(&mut self, outcome: Outcome, activity: &mut Activity) {
        while let Some(flight) = self.flights.oldest() {
            self.fail_flight(flight, outcome, activity);
        }
    }

    /// The kernel took bytes of an earlier write.
    fn sent(&mut self, connection: ConnectionId, bytes: usize, now_ns: u64, activity: &mut Activity) {
        match self.pool.sent(connection, bytes) {
            Ok(bytes) => activity.bytes_sent += bytes,
            Err(why) => return self.unwritable(connection, &why, now_ns, activity),
        }
        // The answer may arrive before the request is written, and a stream is free only once its end was written.
        if self.pool.state(connection) == ConnectionState::Full {
            self.pool.settle(connection);
        }
    }

    /// Nothing can be written any more. The peer may have answered before it closed: received bytes count, and are read before
    /// the end of the connection is.
    fn unwritable(&mut self, connection: ConnectionId, why: &io::Error, now_ns: u64, activity: &mut Activity) {
        if matches!(why.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) {
            self.pool.connection_mut(connection).refuse_writes();
            self.pool.settle(connection);
        } else {
            self.broken(connection, why, now_ns, activity);
        }
    }

    /// Bytes arrived on an open connection.
    #[inline]
    fn received(&mut self, connection: ConnectionId, bytes: &[u8], more: bool, now_ns: u64, activity: &mut Activity) {
        activity.bytes_received += bytes.len();
        let reader = self.pool.connection_mut(connection);
        if !reader.has_layers() {
            return self.take_answers(connection, bytes, more, now_ns, activity);
        }
        let Some(tls) = reader.tls_mut() else {
            return self.take_frames(connection, bytes, now_ns, activity);
        };
        let mut plain = std::mem::take(&mut self.plain);
        plain.clear();
        match tls.feed(bytes, &mut plain) {
            Ok(fed) => {
                if reader.http2().is_some() {
                    self.take_frames(connection, &plain, now_ns, activity);
                } else if !plain.is_empty() {
                    self.take_answers(connection, &plain, more || fed.closed, now_ns, activity);
                }
                if fed.closed && self.pool.is_open(connection) {
                    self.end_of_stream(connection, now_ns, activity);
                }
            }
            Err(why) => self.malformed(connection, &why, now_ns, activity),
        }
        self.plain = plain;
    }

    /// The socket has ended. Over TLS that ends no answer: only the peer's `close_notify` does (RFC 9112, section 9.8).
    fn ended(&mut self, connection: ConnectionId, now_ns: u64, activity: &mut Activity) {
        let carrier = self.pool.connection(connection);
        if carrier.is_tls() && !carrier.is_empty() {
            return self.fail(connection, Outcome::Closed, now_ns, activity);
        }
        self.end_of_stream(connection, now_ns, activity);
    }

    /// The connection failed.
    fn broken(&mut self, connection: ConnectionId, why: &io::Error, now_ns: u64, activity: &mut Activity) {
        if !self.pool.is_open(connection) {
            return;
        }
        if !self.pool.connection(connection).is_empty() {
            self.failures.report(FailureKind::Reset, why);
        }
        self.fail(connection, Outcome::Reset, now_ns, activity);
    }

    fn malformed(&mut self, connection: ConnectionId, why: &dyn Display, now_ns: u64, activity: &mut Activity) {
        self.failures.report(FailureKind::Malformed, why);
        self.fail(connection, Outcome::Malformed, now_ns, activity);
    }

    /// The connection is useless now; the requests on it end with this outcome.
    fn fail(&mut self, connection: ConnectionId, outcome: Outcome, now_ns: u64, activity: &mut Activity) {
        self.fail_queue(connection, outcome, activity);
        self.pool.lost(connection, true, now_ns);
    }

    fn fail_queue(&mut self, connection: ConnectionId, outcome: Outcome, activity: &mut Activity) {
        while let Some(flight) = self.pool.connection(connection).first_flight() {
            self.fail_flight(flight, outcome, activity);
        }
    }

    fn fail_flight(&mut self, flight: FlightId, outcome: Outcome, activity: &mut Activity) {
        let Flight { task, written_ns, .. } = self.remove(flight);
        let completion = Completion { task, written_ns: Some(written_ns), outcome, status: None };
        activity.events.push(ClientEvent::Ended(completion));
    }

    fn remove(&mut self, flight: FlightId) -> Flight {
        let connection = self.flights.get(flight).connection;
        self.flights.remove(flight, self.pool.connection_mut(connection).queue_mut())
    }

    /// A request is to be written again; it fails with this outcome when it was written too often.
    fn retry(&mut self, flight: FlightId, outcome: Outcome, activity: &mut Activity) {
        if self.flights.get(flight).task.tries >= MOST_TRIES {
            return self.fail_flight(flight, outcome, activity);
        }
        let Flight { task, written_ns, .. } = self.remove(flight);
        let task = Task { tries: task.tries + 1, written_ns: Some(written_ns), ..task };
        activity.events.push(ClientEvent::Retry(task));
    }

    /// A request is to be written again, because its server announced that it would not process it. That is no failure, however
    /// often it happens: such a connection has an answer for another request.
    fn resend(&mut self, flight: FlightId, activity: &mut Activity) {
        let Flight { task, written_ns, .. } = self.remove(flight);
        activity.events.push(ClientEvent::Resend(Task { written_ns: Some(written_ns), ..task }));
    }

    /// A request has its answer.
    #[inline]
    fn judged(flight: &Flight, judged: Judged, status: u16, now_ns: u64, activity: &mut Activity) {
        let Flight { task, written_ns, .. } = *flight;
        if let Some(clock_ns) = judged.clock_ns {
            let (ours_ns, theirs_ns) = (i128::from(unix_ns()), i128::from(clock_ns));
            let since_written_ns = i128::from(now_ns.saturating_sub(written_ns));
            activity.events.push(ClientEvent::Clock(ClockReading {
                due_ns: task.due_ns,
                to_server_ns: theirs_ns - (ours_ns - since_written_ns),
                from_server_ns: ours_ns - theirs_ns,
            }));
        }
        let outcome = match judged.verdict {
            Verdict::Right => Outcome::Ok,
            Verdict::WrongStatus => Outcome::UnexpectedStatus,
            Verdict::WrongBody => Outcome::UnexpectedBody,
        };
        let completion = Completion { task, written_ns: Some(written_ns), outcome, status: Some(status) };
        activity.events.push(ClientEvent::Ended(completion));
    }
}
