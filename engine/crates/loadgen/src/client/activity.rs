//! What happened to the requests and connections of a worker, as its client records it.

use redline_traffic::{Outcome, StreamNews};
use redline_wire::{Answer, Record};

use crate::demand::DueRequest;
use crate::first_failures::FirstFailures;

use super::OpenError;

/// What happened on the connections, for the worker to count.
#[derive(Default)]
pub struct Activity {
    /// In the order in which it happened.
    pub events: Vec<ClientEvent>,
    pub bytes_sent: usize,
    pub bytes_received: usize,
    pub failures: FirstFailures,
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
    /// A connection was opened in place of an earlier connection.
    Reconnected,
    /// A connection was closed because bytes came on it that nobody requested.
    Surplus,
    NotOpened(OpenFailure),
}

/// A request that has ended.
pub struct EndedRequest {
    pub due: DueRequest,
    /// The index of the request in the job.
    pub request: u32,
    /// When it was last written, if it was.
    pub written_ns: Option<u64>,
    /// When the first byte of its answer came, when the answer was complete.
    pub first_ns: Option<u64>,
    pub outcome: Outcome,
    /// The status of its answer, when the answer was complete.
    pub status: Option<u16>,
    /// The gRPC status, if this is a gRPC answer.
    pub grpc_status: Option<u32>,
    /// Bytes of the body of its answer, when the answer was complete.
    pub body_bytes: u64,
    /// Whether it is a right answer with `errors` that are looked for.
    pub has_errors: bool,
}

impl EndedRequest {
    /// A request without a complete answer.
    pub fn unanswered(due: DueRequest, request: u32, written_ns: Option<u64>, outcome: Outcome) -> Self {
        Self {
            due,
            request,
            written_ns,
            first_ns: None,
            outcome,
            status: None,
            grpc_status: None,
            body_bytes: 0,
            has_errors: false,
        }
    }
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

/// A TLS handshake that succeeded.
#[derive(Clone, Copy)]
pub struct Handshake {
    pub ns: u64,
    pub resumed: bool,
}
