//! The bytes of a connection that the kernel has not taken yet.
//!
//! Requests that never vary are not copied: the outbox counts how many of their bytes are left. Bytes that were rendered or
//! encrypted for this connection are in two buffers, because the buffer that the kernel may be reading must not move.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::ids::TapeId;

/// The bytes of a request that never varies, repeated, so that many requests are a single write.
#[derive(Clone, Debug)]
pub struct Tape {
    bytes: Arc<[u8]>,
    /// The length of the request.
    period: usize,
}

/// The length of a tape, at least one request: a deep pipeline is a single write.
const TAPE_BYTES: usize = 16 * 1024;

impl Tape {
    pub fn new(request: &Arc<[u8]>) -> Self {
        let times = (TAPE_BYTES / request.len().max(1)).max(1);
        let bytes = if times == 1 { Arc::clone(request) } else { request.repeat(times).into() };
        Self { bytes, period: request.len() }
    }

    pub fn period(&self) -> usize {
        self.period
    }

    /// The next bytes when `left` bytes remain until the end of a request.
    fn rest(&self, left: usize) -> &[u8] {
        let at = (self.period - left % self.period) % self.period;
        &self.bytes[at..self.bytes.len().min(at + left)]
    }
}

enum Piece {
    /// This many bytes of a tape, up to the end of a request.
    Tape { tape: TapeId, left: usize },
    /// This many bytes of the buffers.
    Own { left: usize },
}

#[derive(Default)]
pub struct Outbox {
    pieces: VecDeque<Piece>,
    /// The buffer that is being written, which does not move meanwhile.
    writing: Vec<u8>,
    written: usize,
    /// The buffer that is written next.
    staged: Vec<u8>,
}

/// The bytes to write next.
pub struct Next<'a> {
    pub bytes: &'a [u8],
    /// Whether they belong to a tape, which lives as long as the pool.
    pub is_tape: bool,
}

impl Outbox {
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Append a request of a tape.
    #[inline]
    pub fn push_tape(&mut self, tape: TapeId, length: usize) {
        if let Some(Piece::Tape { tape: last, left }) = self.pieces.back_mut()
            && *last == tape
        {
            *left += length;
        } else {
            self.pieces.push_back(Piece::Tape { tape, left: length });
        }
    }

    /// Append the bytes that `write` appends. The kernel does not read this buffer yet.
    #[inline]
    pub fn stage<T>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        let before = self.staged.len();
        let result = write(&mut self.staged);
        self.push_staged(self.staged.len() - before);
        result
    }

    /// Append the bytes that `write` appends, or none if it fails.
    ///
    /// # Errors
    /// Those of `write`.
    #[inline]
    pub fn try_stage<E>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>) -> Result<(), E> {
        let before = self.staged.len();
        let result = write(&mut self.staged);
        if result.is_err() {
            self.staged.truncate(before);
        }
        self.push_staged(self.staged.len() - before);
        result
    }

    fn push_staged(&mut self, length: usize) {
        if length == 0 {
            return;
        }
        if let Some(Piece::Own { left }) = self.pieces.back_mut() {
            *left += length;
        } else {
            self.pieces.push_back(Piece::Own { left: length });
        }
    }

    /// The bytes to write next. The kernel reads none of this outbox during the call.
    #[inline]
    pub fn next<'a>(&'a mut self, tapes: &'a [Tape]) -> Option<Next<'a>> {
        match self.pieces.front()? {
            Piece::Tape { tape, left } => Some(Next { bytes: tapes[tape.index()].rest(*left), is_tape: true }),
            Piece::Own { left } => {
                if self.written == self.writing.len() {
                    self.writing.clear();
                    self.written = 0;
                    std::mem::swap(&mut self.writing, &mut self.staged);
                }
                let end = self.writing.len().min(self.written + left);
                Some(Next { bytes: &self.writing[self.written..end], is_tape: false })
            }
        }
    }

    /// The kernel took this many of the next bytes.
    #[inline]
    pub fn consume(&mut self, bytes: usize) {
        let Some(front) = self.pieces.front_mut() else {
            return;
        };
        let left = match front {
            Piece::Tape { left, .. } => left,
            Piece::Own { left } => {
                self.written += bytes;
                left
            }
        };
        *left -= bytes;
        if *left == 0 {
            self.pieces.pop_front();
        }
    }

    /// Drop everything, and free the memory.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Outbox, Tape};
    use crate::ids::TapeId;

    proptest! {
        /// However it is filled and emptied, the bytes leave in the order of the requests.
        #[test]
        fn bytes_leave_in_order(steps in prop::collection::vec((0_u8..4, 1_usize..50_000), 0..60)) {
            let tapes = [Tape::new(&(*b"one").into()), Tape::new(&vec![7_u8; 20_000].into())];
            let (mut outbox, mut expected, mut out) = (Outbox::default(), Vec::new(), Vec::new());
            for (step, size) in steps {
                match step {
                    0 | 1 => {
                        let tape = &tapes[usize::from(step)];
                        expected.extend_from_slice(tape.rest(tape.period()));
                        outbox.push_tape(TapeId(step.into()), tape.period());
                    }
                    2 => {
                        let own = vec![size as u8; size % 1000];
                        expected.extend_from_slice(&own);
                        outbox.stage(|out| out.extend_from_slice(&own));
                    }
                    _ => {
                        if let Some(next) = outbox.next(&tapes) {
                            let taken = next.bytes.len().min(size);
                            out.extend_from_slice(&next.bytes[..taken]);
                            outbox.consume(taken);
                        }
                    }
                }
            }
            while let Some(next) = outbox.next(&tapes) {
                let taken = next.bytes.len();
                out.extend_from_slice(next.bytes);
                outbox.consume(taken);
            }
            prop_assert!(outbox.is_empty());
            prop_assert!(out == expected);
        }
    }
}
