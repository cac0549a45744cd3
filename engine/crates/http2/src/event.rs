//! How a session handles answers, and the events that it reports.

use std::fmt;

use redline_wire::{EventKind, KeptBody, KeptFields, MessageCounts, MessageRules, MessageValues, StreamSoFar};

use crate::rule::{Rule, violation};

/// How to handle the body of an answer, besides counting its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BodyOptions {
    /// Hash the body.
    pub hash: bool,
    /// How much of the body is kept, up to [`crate::MOST_KEPT_BYTES`]. A longer body that has to be kept whole resets the
    /// stream and is [`Event::Malformed`].
    pub keep: KeptBody,
    /// Count the events of the body, if it is a stream of them.
    pub events: Option<EventKind>,
    /// Which of these events count, and what they hold; all count without it.
    pub messages: Option<&'static MessageRules>,
    /// The fields of the head that are kept.
    pub fields: KeptFields,
}

/// What happened to a request or to the connection. The outcome of each token is reported at most once, and nothing of it
/// after [`crate::Session::cancel`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The head of an answer arrived whose end has not. Another event follows.
    Begun {
        /// The token of the request.
        token: u32,
    },
    /// More of a stream whose events are counted has arrived.
    Stream {
        /// The token of the request.
        token: u32,
        /// How much has arrived in all.
        so_far: StreamSoFar,
        /// What was read in messages that arrived since the last event.
        values: MessageValues,
        /// The next event is the outcome of this token.
        is_last: bool,
    },
    /// The answer is complete, trailers included.
    Answer {
        /// The token of the request.
        token: u32,
        /// 200 to 999; interim answers are skipped.
        status: u16,
        /// The gRPC status, if this is a gRPC answer; 0 is OK.
        grpc_status: Option<u32>,
        /// Bytes of the body.
        body_length: u64,
        /// SHA-256 of the body, when it was requested.
        body_sha256: Option<[u8; 32]>,
        /// The messages of the body; `None` unless they were to be counted and it is a stream of them.
        events: Option<MessageCounts>,
        /// The body, when it was requested; what is to be shown of a stream that is not as expected.
        body: Option<Box<[u8]>>,
        /// The fields of its head that were requested, as lines `name: value`: see [`redline_wire::values_in`].
        fields: Option<Box<[u8]>>,
    },
    /// The peer reset the stream, with this error code (RFC 9113, section 7); never `REFUSED_STREAM`.
    Refused {
        /// The token of the request.
        token: u32,
        /// The error code of its `RST_STREAM`.
        code: u32,
    },
    /// The peer did not process the request: its stream is past the last stream of a `GOAWAY`, was reset with `REFUSED_STREAM`,
    /// or could not be opened any more. It is safe to send the request again on another connection.
    Unprocessed {
        /// The token of the request.
        token: u32,
    },
    /// The answer is not valid HTTP, or exceeds a limit. The stream is reset; the connection stays open.
    Malformed {
        /// The token of the request.
        token: u32,
        /// The rule that the answer breaks.
        rule: Rule,
        /// The name of the field that breaks the rule, escaped; `None` if the rule is not about a single field.
        field: Option<Box<str>>,
    },
    /// The peer accepts no further requests on this connection. Requests that it has accepted may still be answered.
    GoAway {
        /// The last stream that the peer has processed or may yet process; 0 for none.
        last: i32,
        /// The error code of the `GOAWAY`; 0 for none.
        code: u32,
    },
}

impl Event {
    /// The token of the request that the event is about; `None` for an event of the connection.
    #[must_use]
    pub fn token(&self) -> Option<u32> {
        match self {
            Self::Begun { token }
            | Self::Stream { token, .. }
            | Self::Answer { token, .. }
            | Self::Refused { token, .. }
            | Self::Unprocessed { token }
            | Self::Malformed { token, .. } => Some(*token),
            Self::GoAway { .. } => None,
        }
    }
}

/// Why a session cannot continue, or a request cannot be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// Memory for the session could not be allocated.
    Memory,
    /// No stream may be opened now: see [`crate::Session::room`].
    NoRoom,
    /// The request's fields exceed [`crate::MOST_HEAD_BYTES`].
    TooLong,
    /// The peer violates HTTP/2, or floods. The connection cannot be used any more.
    Malformed {
        /// The error code that is sent to the peer (RFC 9113, section 7).
        code: u32,
    },
}

impl Error {
    /// Whether the peer continued a stream that it had ended. The answer is complete, and nobody requested what follows.
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
