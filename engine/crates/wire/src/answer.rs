//! What is options, what is answered, and what is no answer.

use std::fmt;

/// What the parser must know of a request to read its answer, and do with the body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// The method is HEAD: the answer has no body.
    pub head: bool,
    /// Hash the body.
    pub hash: bool,
    /// Keep the body, to look into it.
    pub keep: bool,
}

/// One complete answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// 200 to 599 as a rule; 1xx only for 101. Interim answers are skipped.
    pub status: u16,
    /// The status of gRPC, if it is an answer of gRPC, which HTTP/2 carries; 0 is OK.
    pub grpc_status: Option<u32>,
    /// Bytes of the body, without its transfer coding.
    pub body_length: u64,
    /// SHA-256 of the body, when it was requested.
    pub body_sha256: Option<[u8; 32]>,
    /// Whether the connection may carry another request.
    pub keep_alive: bool,
}

/// An answer and how many of the bytes just given belong to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParsedAnswer {
    /// The answer.
    pub answer: Answer,
    /// Bytes used; what is left belongs to the next answer, or answers no request.
    pub used: usize,
}

/// Why bytes are not an HTTP/1.1 response that this parser takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// The status line or a header does not follow the grammar.
    Head,
    /// The status is none of RFC 9110: below 100 or above 599.
    Status,
    /// More than [`crate::MOST_HEADERS`] headers.
    TooManyHeaders,
    /// A head, interim answers, a chunk's size line or trailers past [`crate::MOST_HEAD_BYTES`], or a body that is to be kept
    /// past [`crate::MOST_KEPT_BODY`].
    TooLong,
    /// Not a number, past 64 bits, or two that differ.
    ContentLength,
    /// Both a length and a transfer coding, or a transfer coding in HTTP/1.0.
    Framing,
    /// The chunked coding is broken, or a chunk's size is past 64 bits.
    Chunk,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Head => "the head is not HTTP/1.1",
            Self::Status => "the status is not between 100 and 599",
            Self::TooManyHeaders => "there are too many headers",
            Self::TooLong => {
                "a head, interim answers, a chunk's size line, trailers or a body to look into are too long"
            }
            Self::ContentLength => "Content-Length is wrong",
            Self::Framing => "where the body ends is ambiguous",
            Self::Chunk => "the chunked coding is wrong",
        })
    }
}

impl std::error::Error for Malformed {}
