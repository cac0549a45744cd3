//! The connections of one worker: how many are wanted, which has room, what is written on them.

mod backoff;
mod opening;

use std::io;
use std::net::SocketAddr;

use redline_traffic::TlsInfo;

use crate::connection::Connection;
use crate::demand::NEVER;
use crate::flights::Line;
use crate::io::{Io, Sending};
use crate::job::{Job, Target};
use crate::outbox::Tape;
use crate::sources::Sources;
use crate::states::{ConnectionStates, State};
use crate::stop::Stop;
use crate::sys::socket::{Address, new_socket};

use backoff::ConnectBackoff;
pub use opening::{Failure, Handshake, Opened, Opening};

pub struct Pool<I> {
    pub io: I,
    pub connections: Vec<Connection>,
    pub roster: ConnectionStates,
    /// Handshakes that ended well and were not counted yet.
    pub shaken: Vec<Handshake>,
    /// Bytes that were sent and received while connections were opened, and not counted yet.
    pub opening_bytes: (usize, usize),
    tls_told: Option<TlsInfo>,
    address: Address,
    target: Target,
    sources: Sources,
    /// The number of connection 0 among those of all workers.
    first: u32,
    /// The most requests in flight on one connection, and in all on one.
    depth: u32,
    requests_per_connection: u32,
    tapes: Vec<Tape>,
    /// For bytes between the layers.
    plain: Vec<u8>,
    /// How many connections more are to be parked as soon as they are idle.
    surplus: usize,
    patience: ConnectBackoff,
}

impl<I: Io> Pool<I> {
    /// A pool of at most so many connections, all parked.
    pub fn new(
        job: &Job,
        tapes: Vec<Tape>,
        target: SocketAddr,
        first: u32,
        connections: usize,
        stop: &Stop,
    ) -> io::Result<Self> {
        Ok(Self {
            io: I::new(connections, stop.waker())?,
            connections: (0..connections).map(|_| Connection::new()).collect(),
            roster: ConnectionStates::new(connections),
            shaken: Vec::new(),
            opening_bytes: (0, 0),
            tls_told: None,
            address: Address::new(target),
            target: job.target.clone(),
            sources: Sources::new(target, &job.target.sources, job.load.connections()),
            first,
            depth: job.load.depth,
            requests_per_connection: job.load.requests_per_connection.unwrap_or(u32::MAX),
            tapes,
            plain: Vec::new(),
            surplus: 0,
            patience: ConnectBackoff::default(),
        })
    }

    /// So many connections more are wanted.
    pub fn grow(&mut self, more: usize) {
        let spared = more.min(self.surplus);
        self.surplus -= spared;
        for _ in spared..more {
            if let Some(connection) = self.roster.front(State::Parked) {
                self.roster.change(connection, State::Down);
            }
        }
    }

    /// One connection less is wanted: one that is not open, or is idle, or the next that will be.
    pub fn shrink(&mut self) {
        let spare = self.roster.front(State::Down).or_else(|| self.roster.front(State::Idle));
        self.surplus += 1;
        if let Some(connection) = spare {
            self.drop_socket(connection, true);
        }
    }

    /// Write what a connection has to be written, as far as the kernel takes it; how many bytes it took.
    #[inline]
    pub fn flush(&mut self, connection: u32) -> io::Result<usize> {
        let writer = &mut self.connections[connection as usize];
        let mut written = 0;
        while writer.in_hand == 0 && !writer.full {
            let one = writer.line.length <= 1;
            let next = writer.next_out(&self.tapes, &mut self.plain).map_err(io::Error::other)?;
            let Some(next) = next else {
                break;
            };
            let (alone, length) = (one && next.is_tape, next.bytes.len());
            // SAFETY: tapes live as long as the pool, which drops its backend with it; other bytes stay where they are until
            // they were taken or the connection is closed, because while they are in hand nothing is asked of the outbox.
            match unsafe { self.io.send(connection, next.bytes, alone) } {
                Sending::Taken(bytes) => {
                    writer.took(bytes);
                    written += bytes;
                }
                Sending::Full(bytes) => {
                    writer.took(bytes);
                    writer.full = true;
                    written += bytes;
                }
                Sending::Later => writer.in_hand = length,
                Sending::Broken(why) => return Err(why),
            }
        }
        Ok(written)
    }

    /// The kernel took so many bytes of what it had in hand, and has room; how many bytes it took in all.
    pub fn taken(&mut self, connection: u32, bytes: usize) -> io::Result<usize> {
        let writer = &mut self.connections[connection as usize];
        writer.in_hand = 0;
        writer.full = false;
        if bytes > 0 {
            writer.took(bytes);
        }
        Ok(bytes + self.flush(connection)?)
    }

    /// Connections that are open.
    pub fn open(&self) -> usize {
        self.roster.length(State::Idle) + self.roster.length(State::Busy) + self.roster.length(State::Full)
    }

    pub fn is_open(&self, connection: u32) -> bool {
        matches!(self.roster.state(connection), State::Idle | State::Busy | State::Full)
    }

    pub fn has_room(&self) -> bool {
        self.roster.length(State::Idle) + self.roster.length(State::Busy) > 0
    }

    /// The connection that the next request goes out on: an idle one, or one with room.
    #[inline]
    pub fn next_with_room(&self) -> Option<u32> {
        self.roster.front(State::Idle).or_else(|| self.roster.front(State::Busy))
    }

    /// How many requests more can be put on an open connection now.
    #[inline]
    pub fn room(&self, connection: u32) -> u32 {
        let carrier = &self.connections[connection as usize];
        // An answer may come before its request is written: then the rest of it has to go out first.
        if carrier.closing || carrier.line.length == 0 && carrier.is_blocked() {
            return 0;
        }
        let depth_left = self.depth.saturating_sub(carrier.line.length);
        let left = self.requests_per_connection.saturating_sub(carrier.carried);
        depth_left.min(left).min(self.streams(connection))
    }

    /// How many streams more an HTTP/2 peer takes now.
    #[inline]
    fn streams(&self, connection: u32) -> u32 {
        let layers = self.connections[connection as usize].layers.as_deref();
        layers.and_then(|layers| layers.http2.as_ref()).map_or(u32::MAX, redline_http2::Session::room)
    }

    /// Put an open connection where it belongs, after what is in flight on it has changed.
    #[inline]
    pub fn settle(&mut self, connection: u32) {
        let carrier = &self.connections[connection as usize];
        let (empty, blocked) = (carrier.line.length == 0, carrier.is_blocked());
        let room = self.room(connection);
        if empty && !blocked && (room == 0 || self.surplus > 0) {
            // It has served, or is wanted no more.
            return self.drop_socket(connection, true);
        }
        let state = match (empty, room) {
            (_, 0) => State::Full,
            (true, _) => State::Idle,
            (false, _) => State::Busy,
        };
        self.roster.change(connection, state);
    }

    /// More requests wait than the connections can carry: the pool grows, as far as it may.
    pub fn grow_for(&mut self, waiting: u64) {
        let coming = self.roster.length(State::Opening) + self.roster.length(State::Down);
        if self.roster.length(State::Parked) > 0 && (coming as u64) < waiting {
            self.grow(1);
        }
    }

    /// Whether a connection that is down may be opened now.
    pub fn may_open(&self, now_ns: u64) -> bool {
        self.next_opening_ns() <= now_ns
    }

    /// From when on a connection that is down may be opened; never, when an event has to come first.
    pub fn next_opening_ns(&self) -> u64 {
        if self.roster.length(State::Down) == 0 || self.roster.length(State::Opening) >= self.patience.at_once() {
            return NEVER;
        }
        self.patience.until_ns()
    }

    /// Begin to open the connection that has been down for the longest time; which one could not be, and why.
    pub fn begin_next(&mut self, now_ns: u64) -> Result<(), (u32, io::Error)> {
        let Some(connection) = self.roster.front(State::Down) else {
            return Ok(());
        };
        // Whatever comes of it, it goes to the back of a queue: the others have their turn first.
        self.roster.change(connection, State::Down);
        self.patience.tried(now_ns);
        let source = self.sources.of(self.first + connection);
        new_socket(&self.address, source, I::NONBLOCKING)
            .and_then(|socket| self.io.connect(connection, socket, &self.address))
            .map_err(|error| (connection, error))?;
        self.connections[connection as usize].begin(now_ns);
        self.roster.change(connection, State::Opening);
        Ok(())
    }

    /// A connection is open; whether it replaces an earlier one.
    pub fn opened(&mut self, connection: u32, now_ns: u64) -> bool {
        self.patience.opened();
        let was_open = std::mem::replace(&mut self.connections[connection as usize].was_open, true);
        if self.streams(connection) == 0 {
            // An HTTP/2 peer that greets with a refusal.
            self.lost(connection, true, now_ns);
        } else {
            self.settle(connection);
        }
        was_open
    }

    /// An answer came.
    #[inline]
    pub fn answered(&mut self, connection: u32) {
        if !std::mem::replace(&mut self.connections[connection as usize].answered, true) {
            self.patience.answered();
        }
    }

    /// A connection could not be opened.
    pub fn refused(&mut self, connection: u32, now_ns: u64) {
        self.drop_socket(connection, true);
        self.patience.refused(now_ns);
    }

    /// An open connection has ended, or is to be ended because of what came on it; `reset` when something on it is unanswered.
    pub fn lost(&mut self, connection: u32, reset: bool, now_ns: u64) {
        let ended = &self.connections[connection as usize];
        if !ended.answered {
            self.patience.dropped(ended.opened_ns, now_ns);
        }
        self.drop_socket(connection, reset);
    }

    /// Close a connection, without blame for its peer. It carries nothing any more.
    pub fn drop_socket(&mut self, connection: u32, reset: bool) {
        self.io.close(connection, reset);
        let ended = &mut self.connections[connection as usize];
        debug_assert_eq!(ended.line.length, Line::EMPTY.length);
        ended.end();
        let parked = self.surplus > 0;
        self.surplus -= usize::from(parked);
        self.roster.change(connection, if parked { State::Parked } else { State::Down });
    }
}
