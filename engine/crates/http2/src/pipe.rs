//! The bytes of another protocol on a stream that an extended CONNECT opens.

use crate::streams::Place;

/// The bytes of such a stream, in both directions.
#[derive(Debug)]
pub struct Pipe {
    pub place: Place,
    pub stream: i32,
    /// What the peer sent, until it is taken.
    pub received: Vec<u8>,
    /// What is to be sent, and how much of it was.
    unsent: Vec<u8>,
    sent: usize,
    /// Nothing follows what is to be sent.
    pub is_ended: bool,
    /// nghttp2 found nothing to send, and waits to be told that there is more.
    pub is_deferred: bool,
}

impl Pipe {
    pub fn new(place: Place, stream: i32) -> Self {
        Self { place, stream, received: Vec::new(), unsent: Vec::new(), sent: 0, is_ended: false, is_deferred: false }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.unsent.drain(..self.sent);
        self.sent = 0;
        self.unsent.extend_from_slice(bytes);
    }

    /// The stream is closed: what was received can still be taken.
    pub fn close(&mut self) {
        (self.place, self.is_ended) = (Place(u32::MAX), true);
        (self.unsent, self.sent) = (Vec::new(), 0);
    }

    pub fn unsent(&self) -> usize {
        self.unsent.len() - self.sent
    }

    /// Append the next `length` bytes.
    pub fn send(&mut self, length: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.unsent[self.sent..self.sent + length]);
        self.sent += length;
    }
}
