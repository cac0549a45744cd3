//! A connection without its socket: received bytes become answers, which are sent when they are released.

use std::io::Write as _;

use crate::request::{Head, Request, read_head};

/// The most bytes of answers that may wait for their time or their reader; beyond it no more requests are read.
const BACKLOG_LIMIT: usize = 1024 * 1024;

/// When an answer may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Release {
    /// Immediately.
    Now,
    /// When [`Conversation::release`] is called for it.
    Later,
}

/// Where answers come from.
pub trait Respondent {
    /// The body of the answer to a request for `name` that is complete now.
    fn body<'a>(&'a mut self, name: &'a [u8]) -> &'a [u8];
    /// Whether the connection is reset instead of the next answer.
    fn resets(&mut self) -> bool;
    /// When the answer, with a head and a body of these lengths, may be sent.
    fn release(&mut self, head: usize, body: usize) -> Release;
}

/// The state of a connection. It holds no buffers while nothing is in progress.
///
/// Answers are in a single buffer in the order of their requests: `sent` bytes of it are sent, up to `released` may be sent,
/// and the rest waits for its time. Bytes from `reset_at` on are never sent.
#[derive(Debug)]
pub struct Conversation {
    partial: Vec<u8>,
    body: Option<Box<Body>>,
    answers: Vec<u8>,
    sent: usize,
    released: usize,
    reset_at: usize,
    ended: bool,
    /// Whether answers have too many bytes; complete requests may be in `partial`.
    held: bool,
}

/// A request body that is being received, and its answer.
#[derive(Debug)]
struct Body {
    missing: u64,
    text: Vec<u8>,
    close: bool,
}

impl Conversation {
    /// A conversation without any bytes.
    pub const fn new() -> Self {
        Self {
            partial: Vec::new(),
            body: None,
            answers: Vec::new(),
            sent: 0,
            released: 0,
            reset_at: usize::MAX,
            ended: false,
            held: false,
        }
    }

    /// Takes received bytes, in pieces of any size. Asks `respondent` for an answer when a request is complete.
    pub fn receive(&mut self, bytes: &[u8], mut respondent: impl Respondent) {
        if self.partial.is_empty() {
            let taken = self.take(bytes, &mut respondent);
            self.partial.extend_from_slice(&bytes[taken..]);
        } else {
            let mut joined = std::mem::take(&mut self.partial);
            joined.extend_from_slice(bytes);
            let taken = self.take(&joined, &mut respondent);
            if taken < joined.len() {
                joined.drain(..taken);
                self.partial = joined;
            }
        }
    }

    /// Whether received requests wait for room in the answers, and there is room again. The caller then calls
    /// [`receive`](Self::receive) with no bytes.
    pub fn can_resume(&self) -> bool {
        self.held && self.has_room()
    }

    /// How many bytes of a request's body are certain to arrive next and can be skipped, so that one is left.
    pub fn body_to_skip(&self) -> u64 {
        self.body.as_ref().map_or(0, |body| body.missing.saturating_sub(1))
    }

    /// This many bytes of the body were received and skipped; at most [`body_to_skip`](Self::body_to_skip).
    pub fn skip(&mut self, length: u64) {
        if let Some(body) = &mut self.body {
            body.missing -= length;
        }
    }

    /// Uses this buffer for answers, unless the conversation has a buffer.
    pub fn lend(&mut self, buffer: &mut Vec<u8>) {
        if self.answers.capacity() == 0 {
            std::mem::swap(&mut self.answers, buffer);
        }
    }

    /// Returns the buffer of the answers when it is empty.
    pub fn give_back(&mut self, buffer: &mut Vec<u8>) {
        if self.answers.is_empty() && self.answers.capacity() > 0 {
            *buffer = std::mem::take(&mut self.answers);
        }
    }

    fn has_room(&self) -> bool {
        self.answers.len() - self.sent < BACKLOG_LIMIT
    }

    /// Consumes all complete requests and body bytes. Returns the number of bytes.
    fn take(&mut self, bytes: &[u8], respondent: &mut impl Respondent) -> usize {
        let mut taken = 0;
        self.held = false;
        while !self.ended {
            if !self.has_room() {
                self.held = true;
                return taken;
            }
            let rest = &bytes[taken..];
            if let Some(mut body) = self.body.take() {
                let here = body.missing.min(rest.len() as u64);
                taken += here as usize;
                body.missing -= here;
                if body.missing > 0 {
                    self.body = Some(body);
                    return taken;
                }
                self.answer_name(&body.text, body.close, respondent);
                continue;
            }
            match read_head(rest) {
                Head::Partial => return taken,
                Head::Refused(status) => self.refuse(status, respondent),
                Head::Complete(request) => {
                    taken += request.head_length;
                    self.begin(&request, respondent);
                }
            }
        }
        bytes.len()
    }

    fn begin(&mut self, request: &Request<'_>, respondent: &mut impl Respondent) {
        if !request.post && request.body_length == 0 {
            return self.answer_name(request.name, request.close, respondent);
        }
        let mut text = request.name.to_vec();
        if request.post {
            let _ = write!(text, " {}", request.body_length);
        }
        self.body = Some(Box::new(Body { missing: request.body_length, text, close: request.close }));
    }

    fn answer_name(&mut self, name: &[u8], close: bool, respondent: &mut impl Respondent) {
        if respondent.resets() {
            self.reset_at = self.answers.len();
            self.ended = true;
        }
        let start = self.answers.len();
        let body = self.write(200, respondent.body(name), close);
        self.time(self.answers.len() - body - start, body, respondent);
    }

    fn refuse(&mut self, status: u16, respondent: &mut impl Respondent) {
        let start = self.answers.len();
        self.write(status, b"", true);
        self.time(self.answers.len() - start, 0, respondent);
    }

    fn time(&mut self, head: usize, body: usize, respondent: &mut impl Respondent) {
        if respondent.release(head, body) == Release::Now {
            self.released = self.answers.len();
        }
    }

    /// Adds an answer. Returns the length of its body.
    fn write(&mut self, status: u16, text: &[u8], close: bool) -> usize {
        let line: &[u8] = match status {
            200 => b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: ",
            405 => b"HTTP/1.1 405 Method Not Allowed\r\nAllow: GET, POST\r\nContent-Length: ",
            431 => b"HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Length: ",
            501 => b"HTTP/1.1 501 Not Implemented\r\nContent-Length: ",
            505 => b"HTTP/1.1 505 HTTP Version Not Supported\r\nContent-Length: ",
            _ => b"HTTP/1.1 400 Bad Request\r\nContent-Length: ",
        };
        self.answers.extend_from_slice(line);
        add_decimal(&mut self.answers, text.len());
        self.answers.extend_from_slice(if close { b"\r\nConnection: close\r\n\r\n" } else { b"\r\n\r\n" });
        self.answers.extend_from_slice(text);
        self.ended |= close;
        text.len()
    }

    /// Allows the next `length` bytes of answers to be sent.
    pub fn release(&mut self, length: usize) {
        self.released = (self.released + length).min(self.answers.len());
    }

    /// The peer sends no more. Its requests are still answered.
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// The bytes that may be sent now.
    pub fn outgoing(&self) -> &[u8] {
        &self.answers[self.sent..self.released.min(self.reset_at)]
    }

    /// Whether the time of a reset has come, and all answers before it are sent.
    pub fn is_reset(&self) -> bool {
        self.released > self.reset_at && self.sent == self.reset_at
    }

    /// The first `length` bytes of [`outgoing`](Self::outgoing) were sent.
    pub fn left(&mut self, length: usize) {
        self.sent += length;
        if self.sent == self.answers.len() {
            self.answers.clear();
        } else if self.sent > BACKLOG_LIMIT {
            self.answers.drain(..self.sent);
        } else {
            return;
        }
        self.released -= self.sent;
        if self.reset_at != usize::MAX {
            self.reset_at -= self.sent;
        }
        self.sent = 0;
    }

    /// Whether more bytes are to be read.
    pub fn listens(&self) -> bool {
        !self.ended && self.has_room()
    }

    /// Whether both sides have ended.
    pub fn is_over(&self) -> bool {
        self.ended && self.answers.is_empty()
    }
}

/// Adds a number in decimal. `write!` would be a considerable part of an answer's cost.
fn add_decimal(text: &mut Vec<u8>, mut number: usize) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    text.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests;
