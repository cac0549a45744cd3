//! The incremental parser of the responses on one connection.

use std::fmt;

use sha2::{Digest, Sha256};

use crate::MOST_HEAD_BYTES;
use crate::chunked::{Chunked, Piece};
use crate::head::{self, Framing, Head};

/// What the requests on a connection ask for, as far as it decides how answers are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// The method is HEAD: no answer has a body.
    pub head: bool,
    /// Bodies are to be hashed.
    pub hash: bool,
}

/// One whole answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// 200 to 599 as a rule; 1xx only for 101. Interim answers are passed over.
    pub status: u16,
    /// Bytes of the body, without its transfer coding.
    pub body_length: u64,
    /// SHA-256 of the body, when it was asked for.
    pub body_sha256: Option<[u8; 32]>,
    /// Whether the connection may carry another request.
    pub keep_alive: bool,
}

/// An answer and how many of the bytes just given belong to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whole {
    /// The answer.
    pub answer: Answer,
    /// Bytes used; what is left was not asked for.
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
    /// A head, a chunk extension or trailers past [`crate::MOST_HEAD_BYTES`].
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
            Self::TooLong => "a head, an extension or trailers are too long",
            Self::ContentLength => "Content-Length is wrong",
            Self::Framing => "where the body ends is ambiguous",
            Self::Chunk => "the chunked coding is wrong",
        })
    }
}

impl std::error::Error for Malformed {}

#[derive(Clone, Copy, Debug)]
enum State {
    Head,
    Length(u64),
    Chunked(Chunked),
    UntilClose,
}

/// Reads the answers on one connection, one after the other.
///
/// After [`Malformed`] the connection is of no more use; call [`Parser::reset`] before the next one.
#[derive(Clone, Debug)]
pub struct Parser {
    asked: Asked,
    state: State,
    /// A head that has not come whole.
    pending: Vec<u8>,
    status: u16,
    keep_alive: bool,
    body_length: u64,
    hash: Option<Sha256>,
}

impl Parser {
    /// A parser for a fresh connection.
    #[must_use]
    pub fn new(asked: Asked) -> Self {
        let hash = asked.hash.then(Sha256::new);
        Self { asked, state: State::Head, pending: Vec::new(), status: 0, keep_alive: false, body_length: 0, hash }
    }

    /// Forget what has come: the next byte is the first of a new connection.
    pub fn reset(&mut self) {
        self.pending = Vec::new();
        self.begin();
    }

    /// Take bytes up to the end of one answer; `None` when all were taken and the answer is not whole.
    ///
    /// # Errors
    /// [`Malformed`] when they are not a response.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Option<Whole>, Malformed> {
        let mut used = 0;
        loop {
            let rest = &bytes[used..];
            match &mut self.state {
                State::Head => match self.head(rest)? {
                    Some(taken) => used += taken,
                    None => return Ok(None),
                },
                State::Length(remaining) => {
                    let take = usize::try_from(*remaining).map_or(rest.len(), |remaining| remaining.min(rest.len()));
                    *remaining -= take as u64;
                    let whole = *remaining == 0;
                    self.data(&rest[..take])?;
                    return Ok(whole.then(|| self.whole(used + take)));
                }
                State::Chunked(chunked) => match chunked.next(rest)? {
                    Piece::Data(data, taken) => {
                        self.data(data)?;
                        used += taken;
                    }
                    Piece::End(taken) => return Ok(Some(self.whole(used + taken))),
                    Piece::More => return Ok(None),
                },
                State::UntilClose => {
                    self.data(rest)?;
                    return Ok(None);
                }
            }
        }
    }

    /// The connection has ended: the answer that this makes whole, if there is one.
    pub fn end(&mut self) -> Option<Answer> {
        matches!(self.state, State::UntilClose).then(|| self.whole(0).answer)
    }

    /// Read a head; how many of `bytes` it took, or `None` when it is not whole.
    fn head(&mut self, bytes: &[u8]) -> Result<Option<usize>, Malformed> {
        let before = self.pending.len();
        let head = if before == 0 { head::parse(bytes, self.asked.head)? } else { self.resumed_head(bytes)? };
        if let Some(head) = head {
            self.pending.clear();
            let taken = head.bytes.checked_sub(before).ok_or(Malformed::Head)?;
            return self.start_body(head).map(|()| Some(taken));
        }
        if before == 0 {
            self.pending.extend_from_slice(bytes);
        }
        if self.pending.len() > MOST_HEAD_BYTES { Err(Malformed::TooLong) } else { Ok(None) }
    }

    /// Read a head whose beginning came earlier.
    fn resumed_head(&mut self, bytes: &[u8]) -> Result<Option<Head>, Malformed> {
        self.pending.extend_from_slice(bytes);
        // A head ends with a line feed, so without one there is nothing new to see: long lines are not parsed again.
        if memchr::memchr(b'\n', bytes).is_none() {
            return Ok(None);
        }
        head::parse(&self.pending, self.asked.head)
    }

    fn start_body(&mut self, head: Head) -> Result<(), Malformed> {
        if head.bytes > MOST_HEAD_BYTES {
            return Err(Malformed::TooLong);
        }
        if !(100..=599).contains(&head.status) {
            return Err(Malformed::Status);
        }
        if head.status < 200 && head.status != 101 {
            return Ok(());
        }
        self.status = head.status;
        self.keep_alive = head.keep_alive;
        self.state = match head.framing {
            Framing::None => State::Length(0),
            Framing::Length(length) => State::Length(length),
            Framing::Chunked => State::Chunked(Chunked::new()),
            Framing::UntilClose => State::UntilClose,
        };
        Ok(())
    }

    fn data(&mut self, data: &[u8]) -> Result<(), Malformed> {
        self.body_length = self.body_length.checked_add(data.len() as u64).ok_or(Malformed::TooLong)?;
        if let Some(hash) = &mut self.hash {
            hash.update(data);
        }
        Ok(())
    }

    fn whole(&mut self, used: usize) -> Whole {
        let answer = Answer {
            status: self.status,
            body_length: self.body_length,
            body_sha256: self.hash.as_mut().map(|hash| hash.finalize_reset().into()),
            keep_alive: self.keep_alive,
        };
        self.begin();
        Whole { answer, used }
    }

    fn begin(&mut self) {
        self.state = State::Head;
        self.body_length = 0;
        if let Some(hash) = &mut self.hash {
            hash.reset();
        }
    }
}
