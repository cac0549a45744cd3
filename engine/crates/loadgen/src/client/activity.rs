//! What happened to the requests and connections of a worker, as its client records it.

use std::{fmt, io};

use redline_traffic::{Outcome, StreamNews};
use redline_websocket::Volume;
use redline_wire::{Answer, Record};

use crate::first_failures::FirstFailures;
use crate::request::{DueRequest, EndedRequest};

/// What happened on the connections, for the worker to count.
#[derive(Default)]
pub struct Activity {
    /// In the order in which it happened.
    pub events: Vec<ClientEvent>,
    pub bytes_sent: usize,
    pub bytes_received: usize,
    pub failures: FirstFailures,
    /// How long ago the bytes arrived that are being read, if the kernel said it.
    pub late_ns: Option<u64>,
    /// The last answer that was recorded.
    pub recorded: Option<(Answer, Box<Record>)>,
}

/// What happened to a request or a connection.
pub enum ClientEvent {
    Ended(EndedRequest),
    /// A request got no answer and is to be written again.
    Retry(DueRequest),
    /// The server announced that it would not process a request, which is to be written again.
    Resend(DueRequest),
    /// An answer contained the server's clock.
    Clock(ClockReading),
    Stream(StreamProgress),
    Handshake(Handshake),
    /// A server opened a WebSocket, so many nanoseconds after it was asked.
    Upgraded(u64),
    /// Messages had so many bytes before and after their compression.
    Volume(Volume),
    /// A connection was opened in place of an earlier connection.
    Reconnected,
    /// A connection was closed because bytes came on it that nobody requested; or a message came on it that answers none.
    Surplus,
    NotOpened(OpenFailure),
}

/// The server's clock in an answer. Offsets are in nanoseconds.
#[expect(clippy::struct_field_names, reason = "units stand in names")]
pub struct ClockReading {
    pub due_ns: u64,
    /// The server's clock minus ours when the request was written.
    pub to_server_ns: i128,
    /// Our clock when the answer was complete, minus the server's clock.
    pub from_server_ns: i128,
}

/// Something new in the answer to a request, which is a stream of events.
pub struct StreamProgress {
    pub due_ns: u64,
    /// The index of the request in the job.
    pub request: u32,
    pub news: StreamNews,
}

/// A connection could not be opened.
pub struct OpenFailure {
    pub why: OpenError,
    /// Whether no other connection is open either.
    pub none_open: bool,
}

/// Why a connection could not be opened.
#[derive(Debug)]
pub enum OpenError {
    Connect(io::Error),
    /// The proxy was reached, and there is no tunnel through it.
    Proxy(String),
    /// The TCP connection was open, and the handshake failed.
    Tls(String),
    /// The server answered no WebSocket: this outcome, for this reason.
    WebSocket(Outcome, String),
}

impl OpenError {
    /// The outcome of requests that fail for this reason.
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::Connect(_) | Self::Proxy(_) => Outcome::Connect,
            Self::Tls(_) => Outcome::Tls,
            Self::WebSocket(outcome, _) => *outcome,
        }
    }

    /// Whether this machine had no port, descriptor or memory for the connection.
    pub fn is_exhaustion(&self) -> bool {
        let exhausted = [
            libc::EADDRNOTAVAIL,
            libc::EMFILE,
            libc::ENFILE,
            libc::ENOBUFS,
            libc::ENOMEM,
            // epoll: /proc/sys/fs/epoll/max_user_watches.
            libc::ENOSPC,
        ];
        let code = if let Self::Connect(error) = self { error.raw_os_error() } else { None };
        code.is_some_and(|code| exhausted.contains(&code))
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect(error) => error.fmt(f),
            Self::Proxy(why) => why.fmt(f),
            Self::Tls(why) => write!(f, "the TLS handshake failed: {why}"),
            Self::WebSocket(_, why) => write!(f, "the WebSocket handshake failed: {why}"),
        }
    }
}

/// A TLS handshake that succeeded.
#[derive(Clone, Copy)]
pub struct Handshake {
    pub ns: u64,
    pub resumed: bool,
}
