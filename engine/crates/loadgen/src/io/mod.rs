//! Sockets driven by completions: an operation is started, and its end is reported as an [`Event`]. Two backends implement it.
//!
//! A backend owns the sockets of a worker, one for each connection that is not down. It reports nothing about a closed socket.

pub mod epoll;
pub mod uring;

use std::io;
use std::net::TcpStream;
use std::os::fd::BorrowedFd;

use crate::ids::ConnectionId;
use crate::sys::socket::Address;
use crate::sys::time::{self, unix_ns};

/// What happened to a connection, or to all connections.
pub enum Event {
    /// Another thread woke the worker.
    Woken,
    /// A socket is connected.
    Opened(ConnectionId),
    /// A socket could not be connected.
    Refused(ConnectionId, io::Error),
    /// Bytes arrived. `more`: more bytes, or the end of the stream, follow immediately.
    Received { connection: ConnectionId, chunk: Chunk, more: bool },
    /// The kernel took this many bytes of an earlier [`Sending::Later`] or [`Sending::Full`], and has room for more.
    Sent(ConnectionId, usize),
    /// A write failed; received bytes can still be read.
    Unwritable(ConnectionId, io::Error),
    /// The peer closed its side.
    Ended(ConnectionId),
    /// The connection failed.
    Broken(ConnectionId, io::Error),
}

impl Event {
    /// The connection that the event concerns.
    pub fn connection(&self) -> Option<ConnectionId> {
        match *self {
            Self::Woken => None,
            Self::Opened(connection)
            | Self::Refused(connection, _)
            | Self::Received { connection, .. }
            | Self::Sent(connection, _)
            | Self::Unwritable(connection, _)
            | Self::Ended(connection)
            | Self::Broken(connection, _) => Some(connection),
        }
    }
}

/// The result of [`Io::send`].
pub enum Sending {
    /// This many bytes were taken, and there is room for more.
    Taken(usize),
    /// This many bytes were taken, and there is no room now: [`Event::Sent`] reports when there is.
    Full(usize),
    /// The kernel reads the bytes later: [`Event::Sent`] reports how many it took.
    Later,
    /// The connection failed.
    Broken(io::Error),
}

/// Received bytes, in a buffer that belongs to the chunk until [`Io::release`] returns it to its backend. A chunk that is
/// dropped instead costs the backend a buffer.
pub struct Chunk {
    memory: Box<[u8]>,
    /// Where the received bytes begin.
    from: usize,
    length: usize,
    /// When the last of them arrived, in nanoseconds since 1970, if the kernel said it.
    arrived_unix_ns: Option<u64>,
    /// The index of the buffer in the backend.
    buffer: u16,
}

impl Chunk {
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.memory[self.from..self.from + self.length]
    }

    /// How long before this time the last of the bytes arrived, if the kernel said it. A core that is lost between two clocks
    /// makes it less, never more.
    #[inline]
    pub fn late_ns(&self, now_ns: u64) -> Option<u64> {
        let ago_ns = self.arrived_unix_ns.map(|arrived_ns| unix_ns().saturating_sub(arrived_ns))?;
        Some(now_ns.saturating_sub(time::now_ns().saturating_sub(ago_ns)))
    }
}

/// A way to drive sockets.
pub trait Io: Sized {
    /// The name in a job and in the event `started`.
    const NAME: &'static str;
    /// Whether its sockets must not block.
    const NONBLOCKING: bool;

    /// A backend for this many connections, numbered from 0. `waker` wakes it. `stamps`: the kernel says when bytes arrived.
    ///
    /// # Errors
    /// When the kernel lacks a feature, or a limit is reached.
    fn new(connections: usize, waker: BorrowedFd<'_>, stamps: bool) -> io::Result<Self>;

    /// Start to connect a connection that has no socket.
    ///
    /// # Errors
    /// When connecting fails immediately; the connection has no socket then.
    fn connect(&mut self, connection: ConnectionId, socket: TcpStream, target: &Address) -> io::Result<()>;

    /// Write bytes. A connection has at most one write that is [`Sending::Later`]. `alone`: the peer has received all bytes
    /// that were written before.
    ///
    /// # Safety
    /// The kernel may read the bytes after the call: they must stay valid and unchanged
    ///
    /// - after [`Sending::Later`], until [`Event::Sent`] or [`Event::Unwritable`] of this connection, [`Io::close`], or the
    ///   drop of the backend;
    /// - after [`Sending::Taken`] of an `alone` write, as long as the backend exists.
    unsafe fn send(&mut self, connection: ConnectionId, bytes: &[u8], alone: bool) -> Sending;

    /// Wait for events until this time of the monotonic clock; do not sleep if it is 0. May return early without an event,
    /// because the timer of an earlier wait is left running: setting a timer costs more than waking in vain.
    ///
    /// # Errors
    /// When the kernel refuses to wait.
    fn wait(&mut self, until_ns: u64) -> io::Result<()>;

    /// The next event of the last wait.
    fn next(&mut self) -> Option<Event>;

    /// Return a chunk's buffer.
    fn release(&mut self, chunk: Chunk);

    /// Close a connection's socket, if it has one: with a reset, or in order. No event of it follows, and the kernel no longer
    /// reads its bytes.
    fn close(&mut self, connection: ConnectionId, reset: bool);
}
