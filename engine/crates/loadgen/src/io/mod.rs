//! Sockets, as completions: what was asked for happens, and is told as an [`Event`]. Two backends, one contract.
//!
//! A backend owns the sockets of a worker, one for each connection that is not down, and tells of no socket that was closed.

pub mod epoll;
pub mod ready;
pub mod uring;

use std::io;
use std::net::TcpStream;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;

use crate::sys::socket::Address;

/// What happened to a connection, or to all.
pub enum Event {
    /// Somebody woke the worker.
    Woken,
    /// A socket is connected.
    Opened(u32),
    /// A socket could not be connected.
    Refused(u32, io::Error),
    /// Bytes came. `more`: there are others to be told at once, or the end of the stream.
    Received { connection: u32, chunk: Chunk, more: bool },
    /// So many bytes that were handed over earlier have been taken, and more can be handed over.
    Taken(u32, usize),
    /// Bytes that were handed over could not be written; what came can still be read.
    Unwritable(u32, io::Error),
    /// The peer sends no more.
    Ended(u32),
    /// The connection is broken.
    Broken(u32, io::Error),
}

impl Event {
    /// Whose it is.
    pub fn connection(&self) -> Option<u32> {
        match *self {
            Self::Woken => None,
            Self::Opened(connection)
            | Self::Refused(connection, _)
            | Self::Received { connection, .. }
            | Self::Taken(connection, _)
            | Self::Unwritable(connection, _)
            | Self::Ended(connection)
            | Self::Broken(connection, _) => Some(connection),
        }
    }
}

/// What became of bytes that were handed over.
pub enum Sending {
    /// So many were taken; there is room for more.
    Taken(usize),
    /// So many were taken, and no more are for now: [`Event::Taken`] tells when.
    Full(usize),
    /// They are on their way: [`Event::Taken`] tells how many were taken.
    Later,
    /// The connection is broken.
    Broken(io::Error),
}

/// Bytes that a backend has received, in its own memory. Not copied, and to be given back by [`Io::release`].
pub struct Chunk {
    bytes: NonNull<u8>,
    length: usize,
    /// Which of the backend's buffers holds them.
    buffer: u16,
}

impl Chunk {
    /// # Safety
    /// The bytes stay where they are, and nobody writes to them, until the chunk is given back.
    unsafe fn new(bytes: &[u8], buffer: u16) -> Self {
        Self { bytes: NonNull::from(bytes).cast(), length: bytes.len(), buffer }
    }

    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `new` was promised that they stay as they are.
        unsafe { std::slice::from_raw_parts(self.bytes.as_ptr(), self.length) }
    }
}

/// A way to drive sockets.
pub trait Io: Sized {
    /// What it is called in a job and in `started`.
    const NAME: &'static str;
    /// Whether its sockets must not block.
    const NONBLOCKING: bool;

    /// For so many connections, numbered from 0; `waker` wakes it.
    ///
    /// # Errors
    /// When the kernel does not have what it takes, or a limit is in the way.
    fn new(connections: usize, waker: BorrowedFd<'_>) -> io::Result<Self>;

    /// Begin to connect a connection that has no socket.
    ///
    /// # Errors
    /// When that fails at once; the connection has no socket then.
    fn connect(&mut self, connection: u32, socket: TcpStream, target: &Address) -> io::Result<()>;

    /// Hand bytes over to be written. At most one hand-over of a connection is on its way. `alone` when everything that was
    /// handed over earlier has reached the peer.
    ///
    /// # Safety
    /// After [`Sending::Later`], and with `alone` after [`Sending::Taken`], the bytes stay valid and as they are until the
    /// connection tells of them, receives an answer, or is closed.
    unsafe fn send(&mut self, connection: u32, bytes: &[u8], alone: bool) -> Sending;

    /// Wait for events, at most until then by the monotonic clock; not at all when that is 0. It may return before that with
    /// none: a timer that was set for an earlier wait is left to run, because setting one costs more than to wake in vain.
    ///
    /// # Errors
    /// When the kernel refuses to wait.
    fn wait(&mut self, until_ns: u64) -> io::Result<()>;

    /// The next event of those that the last wait brought. The chunk of the one before has been given back.
    fn next(&mut self) -> Option<Event>;

    fn release(&mut self, chunk: Chunk);

    /// Close a connection's socket, if it has one: by a reset, or orderly. Nothing is told of it any more.
    fn close(&mut self, connection: u32, reset: bool);
}
