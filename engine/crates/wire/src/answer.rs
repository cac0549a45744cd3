//! Answers, and what the parser must know of their requests.

use crate::events::EventKind;
use crate::messages::{MessageCounts, MessageRules};

/// What the parser must know of a request to read its answer, and how it handles the body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// The method is HEAD: the answer has no body.
    pub head: bool,
    /// Hash the body.
    pub hash: bool,
    /// How much of the body is kept.
    pub keep: KeptBody,
    /// Count the events of the body, if it is a stream of them.
    pub events: Option<EventKind>,
    /// Which of these events count, and what they hold; all count without it.
    pub messages: Option<&'static MessageRules>,
    /// The fields of the head that are kept.
    pub fields: KeptFields,
}

/// How much of a body is kept, so that it can be checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeptBody {
    /// Nothing.
    #[default]
    None,
    /// The beginning, if it is too long to be kept whole.
    Beginning,
    /// All of it; a body that is too long is malformed.
    Whole,
}

impl KeptBody {
    /// Whether anything of a body is kept.
    #[must_use]
    #[inline]
    pub fn any(self) -> bool {
        self != Self::None
    }
}

/// Which fields of the head are kept, so that a visitor can take values and cookies from them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeptFields {
    /// None.
    #[default]
    None,
    /// At least `Set-Cookie`; none of a head without it.
    SetCookie,
    /// All.
    All,
}

impl KeptFields {
    /// Whether anything of a head is kept that has, or has not, `Set-Cookie`.
    #[inline]
    pub(crate) fn of_head(self, sets_cookie: bool) -> bool {
        match self {
            Self::None => false,
            Self::SetCookie => sets_cookie,
            Self::All => true,
        }
    }
}

/// A complete answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// 200 to 999, or 101. Other interim answers are skipped.
    pub status: u16,
    /// The gRPC status, if this is a gRPC answer, which HTTP/2 carries; 0 is OK.
    pub grpc_status: Option<u32>,
    /// Bytes of the body, without its transfer coding.
    pub body_length: u64,
    /// SHA-256 of the body, when it was requested.
    pub body_sha256: Option<[u8; 32]>,
    /// The messages of the body; `None` unless they were to be counted and it is a stream of them.
    pub events: Option<MessageCounts>,
    /// Whether the connection may carry another request.
    pub keep_alive: bool,
}

/// An answer and how many of the bytes passed last belong to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParsedAnswer {
    /// The answer.
    pub answer: Answer,
    /// Bytes used. The rest belongs to the next answer, or to no request.
    pub used: usize,
}
