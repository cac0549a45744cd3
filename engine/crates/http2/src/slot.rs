//! One request under way.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::event::{Asked, Event};
use crate::{MOST_HEAD_BYTES, MOST_KEPT_BYTES};

/// What to do with a stream after something came on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Fine,
    Malformed,
}

/// A request that was opened, until its stream is closed.
#[derive(Debug, Default)]
pub struct Slot {
    token: u32,
    /// Its outcome was told, or nobody wants to know it.
    told: bool,
    /// Of the last list of fields; 0 before the first.
    status: u16,
    /// Size of the list of fields that is coming.
    head_bytes: usize,
    body_length: u64,
    hash: Option<Sha256>,
    kept: Option<Vec<u8>>,
    /// What is to be sent, and how much of it was.
    body: Option<Arc<[u8]>>,
    sent: usize,
}

impl Slot {
    pub fn new(token: u32, body: Option<Arc<[u8]>>, asked: Asked) -> Self {
        let hash = asked.hash.then(Sha256::new);
        let kept = asked.keep.then(Vec::new);
        Self { token, hash, kept, body, ..Self::default() }
    }

    /// The token, if its outcome may still be told.
    pub fn pending(&self) -> Option<u32> {
        (!self.told).then_some(self.token)
    }

    /// Tell the outcome, unless one was; what was kept for it is let go.
    pub fn tell(&mut self, events: &mut Vec<Event>, outcome: impl FnOnce(u32) -> Event) {
        if !std::mem::replace(&mut self.told, true) {
            events.push(outcome(self.token));
            self.forget();
        }
    }

    /// The outcome is of no interest any more.
    pub fn forget(&mut self) {
        self.told = true;
        self.hash = None;
        self.kept = None;
    }

    /// A list of fields begins: an interim answer, the answer or trailers.
    pub fn begin_head(&mut self) {
        self.head_bytes = 0;
    }

    /// A field came.
    pub fn field(&mut self, name: &[u8], value: &[u8]) -> Verdict {
        self.head_bytes += name.len() + value.len() + 32;
        if self.head_bytes > MOST_HEAD_BYTES {
            return Verdict::Malformed;
        }
        if name == b":status" {
            match status(value) {
                Some(status) => self.status = status,
                None => return Verdict::Malformed,
            }
        }
        Verdict::Fine
    }

    /// A piece of the body came.
    pub fn data(&mut self, bytes: &[u8]) -> Verdict {
        self.body_length += bytes.len() as u64;
        if let Some(hash) = &mut self.hash {
            hash.update(bytes);
        }
        if let Some(kept) = &mut self.kept {
            if kept.len() + bytes.len() > MOST_KEPT_BYTES {
                return Verdict::Malformed;
            }
            kept.extend_from_slice(bytes);
        }
        Verdict::Fine
    }

    /// The peer has ended its side.
    pub fn answer(&mut self, events: &mut Vec<Event>) {
        let (status, body_length) = (self.status, self.body_length);
        let body_sha256 = self.hash.take().map(|hash| hash.finalize().into());
        let body = self.kept.take().map(Vec::into_boxed_slice);
        self.tell(events, |token| Event::Answer { token, status, body_length, body_sha256, body });
    }

    /// Bytes of the request's body that were not sent.
    pub fn unsent(&self) -> usize {
        self.body.as_ref().map_or(0, |body| body.len() - self.sent)
    }

    /// Send the next so many bytes of the body.
    pub fn send(&mut self, length: usize, out: &mut Vec<u8>) {
        if let Some(body) = &self.body {
            out.extend_from_slice(&body[self.sent..self.sent + length]);
            self.sent += length;
        }
    }
}

/// Three digits, 100 to 599.
fn status(value: &[u8]) -> Option<u16> {
    let &[first @ b'1'..=b'5', second @ b'0'..=b'9', third @ b'0'..=b'9'] = value else { return None };
    Some(u16::from(first - b'0') * 100 + u16::from(second - b'0') * 10 + u16::from(third - b'0'))
}
