//! What a session is to do with answers, and the events that it reports.

use std::fmt;

use crate::rule::{Rule, violation};

/// What to do with the body of an answer, besides counting its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BodyOptions {
    /// Hash it.
    pub hash: bool,
    /// Keep it, up to [`crate::MOST_KEPT_BYTES`]; a longer one resets the stream and is [`Event::Malformed`].
    pub keep: bool,
}

/// What became of a request. Each token is reported at most once, and never after [`crate::Session::cancel`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The answer is complete, trailers included.
    Answer {
        /// What the request was opened as.
        token: u32,
        /// 200 to 999: interim answers are passed over.
        status: u16,
        /// The status of gRPC, if it is an answer of gRPC; 0 is OK.
        grpc_status: Option<u32>,
        /// Bytes of the body.
        body_length: u64,
        /// SHA-256 of the body, when it was requested.
        body_sha256: Option<[u8; 32]>,
        /// The body, when it was requested.
        body: Option<Box<[u8]>>,
    },
    /// The peer reset the stream, with this error code (RFC 9113, section 7); never `REFUSED_STREAM`.
    Refused {
        /// What the request was opened as.
        token: u32,
        /// The error code of its `RST_STREAM`.
        code: u32,
    },
    /// The peer said that it did not look at the request: it is past the last stream of a `GOAWAY`, was reset with
    /// `REFUSED_STREAM`, or could not be sent any more. It is safe to send it again on another connection.
    Unprocessed {
        /// What the request was opened as.
        token: u32,
    },
    /// The answer is not HTTP, or past a limit; the stream is reset, the connection stays open.
    Malformed {
        /// What the request was opened as.
        token: u32,
        /// The rule that it breaks.
        rule: Rule,
        /// The name of the field that breaks it, made visible; `None` where it is not about one field.
        field: Option<Box<str>>,
    },
    /// The peer takes no further requests on this connection; those that it has taken may still be answered.
    GoAway {
        /// The last stream that it has processed or may yet process; 0 for none.
        last: i32,
        /// Its error code; 0 for none.
        code: u32,
    },
}

/// Why a session cannot go on, or a request not be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// Memory for the session could not be had.
    Memory,
    /// No stream may be opened now: see [`crate::Session::room`].
    NoRoom,
    /// The request's fields are past [`crate::MOST_HEAD_BYTES`].
    TooLong,
    /// The peer does not follow HTTP/2, or floods: the connection is of no more use.
    Malformed {
        /// The error code that it is sent (RFC 9113, section 7).
        code: u32,
    },
}

impl Error {
    /// The peer continued a stream that it had ended: its answer is complete, and nobody requested what follows.
    #[must_use]
    pub fn is_surplus(&self) -> bool {
        matches!(self, Self::Malformed { code } if *code == libnghttp2_sys::NGHTTP2_STREAM_CLOSED)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Memory => "there is no memory for an HTTP/2 session",
            Self::NoRoom => "no stream may be opened on the connection now",
            Self::TooLong => "the request's fields are too long",
            Self::Malformed { code } => violation(*code),
        })
    }
}

impl std::error::Error for Error {}
