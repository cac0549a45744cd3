//! The connections of a worker: how many are needed, which have room, and writing on them.

mod backoff;
mod opening;
mod reached;
mod states;

use std::io;
use std::sync::Arc;

use redline_traffic::TlsInfo;
use redline_wire::Record;

use self::backoff::ConnectBackoff;
pub use self::opening::{ConnectResult, OpeningProgress, no_websocket, refused};
use self::reached::Reached;
pub use self::states::ConnectionState;
use self::states::ConnectionStates;
use super::connection::Connection;
use super::outbox::Tape;
use super::websocket::SWITCHING_PROTOCOLS;
use crate::ids::ConnectionId;
use crate::io::{Chunk, Event, Io, Sending};
use crate::job::{Job, Target, WebSocket};
use crate::peers::Peers;
use crate::request::NEVER;
use crate::sources::Sources;
use crate::stop::Stop;
use crate::sys::socket::{Address, new_socket};

/// The code of a close frame when nothing is wrong (RFC 6455, section 7.4.1).
pub const NORMAL_CLOSURE: u16 = 1000;

/// Fields are dropped in this order: the backend before the connections and tapes, whose bytes the kernel may be reading.
pub struct Pool<I> {
    io: I,
    connections: Vec<Connection>,
    /// What their earlier sockets came to.
    reached: Vec<Reached>,
    states: ConnectionStates,
    /// The result of the first TLS handshake.
    tls: Option<TlsInfo>,
    /// Where connections go, in turn. The kernel may be reading them: they stay where they are.
    addresses: Vec<Address>,
    target: Target,
    /// The WebSocket that each connection becomes before its first request.
    websocket: Option<Arc<WebSocket>>,
    /// A connection may become a WebSocket: each before its first request, or with a request.
    has_websockets: bool,
    /// Record answers, with up to this many bytes of their bodies.
    records: Option<usize>,
    sources: Sources,
    /// The number of the first connection among the connections of all workers.
    first: u32,
    /// The most requests in flight on one connection.
    depth: u32,
    /// The most requests on a connection over its lifetime.
    requests_per_connection: u32,
    tapes: Vec<Tape>,
    /// Bytes between the layers.
    plain: Vec<u8>,
    /// How many connections to park as soon as they are idle.
    surplus: usize,
    backoff: ConnectBackoff,
}

impl<I: Io> Pool<I> {
    /// A pool of at most this many connections, all parked.
    pub fn new(
        job: &Job,
        tapes: Vec<Tape>,
        target: &Peers,
        first: u32,
        connections: usize,
        stop: &Stop,
    ) -> io::Result<Self> {
        let websocket = job.requests.first().and_then(|request| request.websocket.clone());
        Ok(Self {
            io: I::new(connections, stop.waker(), job.requests.iter().any(|request| request.stream.is_some()))?,
            connections: (0..connections).map(|_| Connection::new()).collect(),
            reached: vec![Reached::default(); connections],
            states: ConnectionStates::new(connections),
            tls: None,
            addresses: target.all().iter().map(Address::new).collect::<io::Result<_>>()?,
            target: job.target.clone(),
            has_websockets: job.requests.iter().any(|request| request.websocket.is_some()),
            websocket: websocket.filter(|websocket| !websocket.listens),
            records: job.records,
            sources: Sources::new(target, &job.target.sources, job.load.connections()),
            first,
            depth: job.load.depth,
            requests_per_connection: job.load.requests_per_connection.unwrap_or(u32::MAX),
            tapes,
            plain: Vec::new(),
            surplus: 0,
            backoff: ConnectBackoff::default(),
        })
    }

    /// Wait for events until this time at most, as [`Io::wait`] does.
    ///
    /// # Errors
    /// When the kernel refuses to wait.
    pub fn wait(&mut self, until_ns: u64) -> io::Result<()> {
        self.io.wait(until_ns)
    }

    /// The next event of the last wait.
    #[inline]
    pub fn next_event(&mut self) -> Option<Event> {
        self.io.next()
    }

    /// Give back a chunk that was read.
    #[inline]
    pub fn release(&mut self, chunk: Chunk) {
        self.io.release(chunk);
    }

    #[inline]
    pub fn connection(&self, connection: ConnectionId) -> &Connection {
        &self.connections[connection.index()]
    }

    #[inline]
    pub fn connection_mut(&mut self, connection: ConnectionId) -> &mut Connection {
        &mut self.connections[connection.index()]
    }

    #[inline]
    pub fn state(&self, connection: ConnectionId) -> ConnectionState {
        self.states.state(connection)
    }

    /// The connection that has been opening for the longest time, and since when.
    pub fn oldest_opening(&self) -> Option<(ConnectionId, u64)> {
        let oldest = self.states.front(ConnectionState::Opening)?;
        Some((oldest, self.connections[oldest.index()].opened_ns()))
    }

    /// This many more connections are needed.
    pub fn grow(&mut self, more: usize) {
        let spared = more.min(self.surplus);
        self.surplus -= spared;
        for _ in spared..more {
            if let Some(connection) = self.states.front(ConnectionState::Parked) {
                self.states.change(connection, ConnectionState::Down);
            }
        }
    }

    /// A connection fewer is needed: close one that is not open, or is idle, or else the next that becomes idle.
    pub fn shrink(&mut self) {
        let in_turn = [ConnectionState::Down, ConnectionState::Resting, ConnectionState::Idle];
        let spare = in_turn.into_iter().find_map(|state| self.states.front(state));
        self.surplus += 1;
        if let Some(connection) = spare {
            self.drop_socket(connection, true);
        }
    }

    /// Write the bytes of a connection, as far as the kernel takes them. Returns how many it took.
    #[inline]
    pub fn flush(&mut self, connection: ConnectionId) -> io::Result<usize> {
        let writer = &mut self.connections[connection.index()];
        let mut written = 0;
        while writer.is_writable() {
            let is_only = writer.in_flight() <= 1;
            let next = writer.next_out(&self.tapes, &mut self.plain).map_err(io::Error::other)?;
            let Some(next) = next else {
                break;
            };
            let alone = is_only && next.is_tape;
            // SAFETY: a write that is `alone` is of a tape. Tapes live as long as the pool, which drops its backend first.
            // Other bytes are in the part of an outbox that does not change until the connection consumes them (here, or in
            // `sent`) or ends (in `drop_socket`, after the backend has closed the socket): while a write is submitted, the
            // connection is not writable, and nothing calls `next_out`.
            match unsafe { self.io.send(connection, next.bytes, alone) } {
                Sending::Taken(bytes) => {
                    writer.consume(bytes);
                    written += bytes;
                }
                Sending::Full(bytes) => {
                    writer.consume(bytes);
                    writer.filled();
                    written += bytes;
                }
                Sending::Later => writer.submitted(),
                Sending::Broken(why) => return Err(why),
            }
        }
        Ok(written)
    }

    /// The kernel took this many bytes of the submitted write, and has room. Returns how many bytes it took in all, with those
    /// that are written now.
    pub fn sent(&mut self, connection: ConnectionId, bytes: usize) -> io::Result<usize> {
        self.connections[connection.index()].sent(bytes);
        Ok(bytes + self.flush(connection)?)
    }

    /// The record of the next message on a WebSocket that this head opens, in a check.
    pub fn record_of(&self, head: &[u8]) -> Option<Box<Record>> {
        self.records.map(|keeps| {
            let mut record = Box::new(Record::new(keeps));
            record.head(head, SWITCHING_PROTOCOLS);
            record
        })
    }

    /// Whether any connection is a WebSocket that is open.
    pub fn has_open_websockets(&self) -> bool {
        let is_one = |index: usize| self.is_open(ConnectionId(index as u32)) && self.connections[index].is_websocket();
        self.has_websockets && (0..self.connections.len()).any(is_one)
    }

    /// Send a close frame on each open WebSocket.
    pub fn close_websockets(&mut self) {
        for index in 0..self.connections.len() {
            self.close_websocket(ConnectionId(index as u32));
        }
    }

    /// Send a close frame on a connection that is an open WebSocket, unless one was sent.
    fn close_websocket(&mut self, connection: ConnectionId) {
        if self.is_open(connection) && self.connection(connection).is_websocket() {
            let writer = &mut self.connections[connection.index()];
            writer.stage_frames(|session, out| session.write_close(Some(NORMAL_CLOSURE), out));
            // A connection that cannot be written is closed without it.
            let _ = self.flush(connection);
        }
    }

    /// How many connections are open.
    pub fn open(&self) -> usize {
        self.states.count(ConnectionState::Idle)
            + self.states.count(ConnectionState::Busy)
            + self.states.count(ConnectionState::Full)
    }

    #[inline]
    pub fn is_open(&self, connection: ConnectionId) -> bool {
        matches!(self.states.state(connection), ConnectionState::Idle | ConnectionState::Busy | ConnectionState::Full)
    }

    #[inline]
    pub fn has_room(&self) -> bool {
        self.states.count(ConnectionState::Idle) + self.states.count(ConnectionState::Busy) > 0
    }

    /// The connection for the next request: an idle connection, or a connection with room.
    #[inline]
    pub fn next_with_room(&self) -> Option<ConnectionId> {
        self.states.front(ConnectionState::Idle).or_else(|| self.states.front(ConnectionState::Busy))
    }

    /// How many more requests an open connection can take now.
    #[inline]
    pub fn room(&self, connection: ConnectionId) -> u32 {
        let carrier = &self.connections[connection.index()];
        // An answer may arrive before its request is written; the rest of the request must be written first.
        if carrier.refuses_requests() || carrier.is_empty() && carrier.is_blocked() {
            return 0;
        }
        let depth_left = self.depth.saturating_sub(carrier.in_flight());
        let left = self.requests_per_connection.saturating_sub(carrier.carried());
        depth_left.min(left).min(self.streams(connection))
    }

    /// How many more streams an HTTP/2 peer accepts now.
    #[inline]
    fn streams(&self, connection: ConnectionId) -> u32 {
        self.connections[connection.index()].http2().map_or(u32::MAX, redline_http2::Session::room)
    }

    /// Whether no further request will be put on an open connection. An HTTP/2 peer that accepts no stream now may accept
    /// streams later.
    #[inline]
    pub fn has_served(&self, connection: ConnectionId) -> bool {
        let carrier = &self.connections[connection.index()];
        carrier.refuses_requests()
            || carrier.carried() >= self.requests_per_connection
            || carrier.http2().is_some_and(redline_http2::Session::is_finished)
    }

    /// Update the state of an open connection after its requests in flight have changed.
    #[inline]
    pub fn settle(&mut self, connection: ConnectionId) {
        let carrier = &self.connections[connection.index()];
        let (empty, blocked) = (carrier.is_empty(), carrier.is_blocked());
        if empty && !blocked && (self.has_served(connection) || self.surplus > 0) {
            return self.drop_socket(connection, true);
        }
        let room = self.room(connection);
        let state = match (empty, room) {
            (_, 0) => ConnectionState::Full,
            (true, _) => ConnectionState::Idle,
            (false, _) => ConnectionState::Busy,
        };
        self.states.change(connection, state);
    }

    /// More requests wait than the connections can carry: add a connection, if the limit allows.
    pub fn grow_for(&mut self, waiting: u64) {
        let coming = self.states.count(ConnectionState::Opening) + self.states.count(ConnectionState::Down);
        if self.states.count(ConnectionState::Parked) > 0 && (coming as u64) < waiting {
            self.grow(1);
        }
    }

    /// More requests wait than the connections can carry: open resting connections, as many as are needed.
    #[inline]
    pub fn wake_for(&mut self, waiting: u64) {
        let coming = self.states.count(ConnectionState::Opening) + self.states.count(ConnectionState::Down);
        for _ in coming as u64..waiting {
            let Some(connection) = self.states.front(ConnectionState::Resting) else {
                return;
            };
            self.states.change(connection, ConnectionState::Down);
        }
    }

    /// When a connection that is down may be opened; [`NEVER`] when an event must come first.
    #[inline]
    pub fn next_opening_ns(&self) -> u64 {
        if self.states.count(ConnectionState::Down) == 0
            || self.states.count(ConnectionState::Opening) >= self.backoff.concurrent()
        {
            return NEVER;
        }
        self.backoff.until_ns()
    }

    /// Start to open the connection that has been down for the longest time.
    ///
    /// # Errors
    /// Returns the connection that could not be opened, and why.
    pub fn begin_next(&mut self, now_ns: u64) -> Result<(), (ConnectionId, io::Error)> {
        let Some(connection) = self.states.front(ConnectionState::Down) else {
            return Ok(());
        };
        // Whatever the result, the connection goes to the back of a queue, so that others have their turn.
        self.states.change(connection, ConnectionState::Down);
        self.backoff.started(now_ns);
        let number = self.first + connection.0;
        let address = &self.addresses[number as usize % self.addresses.len()];
        new_socket(address, self.sources.of(number), I::NONBLOCKING)
            .and_then(|socket| self.io.connect(connection, socket, address))
            .map_err(|error| (connection, error))?;
        let opening = &mut self.connections[connection.index()];
        opening.begin(now_ns);
        if let Some(keeps) = self.records {
            opening.record(keeps);
        }
        self.states.change(connection, ConnectionState::Opening);
        Ok(())
    }

    /// A connection is open. Returns whether it replaces an earlier socket.
    pub fn opened(&mut self, connection: ConnectionId, now_ns: u64) -> bool {
        self.backoff.opened();
        self.reached[connection.index()].opened = true;
        let was_open = self.connections[connection.index()].opened(now_ns);
        if self.has_served(connection) {
            // An HTTP/2 peer may begin with GOAWAY.
            self.lost(connection, true, now_ns);
        } else {
            self.settle(connection);
        }
        was_open
    }

    /// Record the next answer on every connection, in a check.
    pub fn record_again(&mut self) {
        if let Some(keeps) = self.records {
            for connection in &mut self.connections {
                match connection.http2_mut() {
                    Some(session) => session.record(keeps),
                    None => connection.record(keeps),
                }
            }
        }
    }

    /// An answer arrived.
    #[inline]
    pub fn answered(&mut self, connection: ConnectionId, now_ns: u64) {
        if self.connections[connection.index()].answer_came(now_ns) {
            self.backoff.answered();
        }
    }

    /// A connection could not be opened.
    pub fn refused(&mut self, connection: ConnectionId, now_ns: u64) {
        self.drop_socket(connection, true);
        self.backoff.refused(now_ns);
    }

    /// An open connection has ended, or must be ended because of received bytes. `reset` when a request on it is unanswered.
    pub fn lost(&mut self, connection: ConnectionId, reset: bool, now_ns: u64) {
        let ended = &self.connections[connection.index()];
        if !ended.has_answered() {
            self.backoff.dropped(ended.opened_ns(), now_ns);
        }
        self.drop_socket(connection, reset);
    }

    /// The peer ended a connection without requests. If the connection had been idle for a while, the peer would end the next
    /// in the same way (RFC 9112, section 9.5), so it is not opened again before a request needs it.
    pub fn ended_idle(&mut self, connection: ConnectionId, reset: bool, now_ns: u64) {
        if !self.connections[connection.index()].is_quiet(now_ns) {
            return self.lost(connection, reset, now_ns);
        }
        self.drop_socket(connection, reset);
        if self.states.state(connection) == ConnectionState::Down {
            self.states.change(connection, ConnectionState::Resting);
        }
    }

    /// Close a connection, without slowing down the next. No request is on it any more.
    pub fn drop_socket(&mut self, connection: ConnectionId, reset: bool) {
        if self.has_websockets {
            self.close_websocket(connection);
        }
        self.io.close(connection, reset);
        self.reached[connection.index()].note(&self.connections[connection.index()]);
        self.connections[connection.index()].end();
        let parked = self.surplus > 0;
        self.surplus -= usize::from(parked);
        self.states.change(connection, if parked { ConnectionState::Parked } else { ConnectionState::Down });
    }
}
