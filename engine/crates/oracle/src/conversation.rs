//! One connection without its socket: bytes received become answers, and answers leave when they are released.

use std::io::Write as _;

use crate::request::{Head, Request, read_head};

/// Answers may wait for their time or their reader up to this many bytes; then no more requests are read.
const BACKLOG_LIMIT: usize = 1024 * 1024;

/// When an answer may leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Release {
    /// At once.
    Now,
    /// When [`Conversation::release`] says so.
    Later,
}

/// The state of one connection.
///
/// Answers lie in one buffer in the order of their requests: `sent` bytes of it have left, up to `released` may leave, the
/// rest waits for its time.
#[derive(Debug, Default)]
pub struct Conversation {
    partial: Vec<u8>,
    body: Option<Body>,
    answers: Vec<u8>,
    sent: usize,
    released: usize,
    ended: bool,
}

/// A request body that is being received, and what will be answered.
#[derive(Debug)]
struct Body {
    missing: u64,
    text: Vec<u8>,
    close: bool,
}

impl Conversation {
    /// Takes bytes as they were received, in pieces of any size. Calls `timed` with the length of each answer when
    /// its request is whole; what it returns says when that answer may leave.
    pub fn receive(&mut self, bytes: &[u8], mut timed: impl FnMut(usize) -> Release) {
        if self.partial.is_empty() {
            let taken = self.take(bytes, &mut timed);
            self.partial.extend_from_slice(&bytes[taken..]);
        } else {
            let mut joined = std::mem::take(&mut self.partial);
            joined.extend_from_slice(bytes);
            let taken = self.take(&joined, &mut timed);
            joined.drain(..taken);
            self.partial = joined;
        }
    }

    /// Consumes all whole requests and body bytes; returns how many bytes that was.
    fn take(&mut self, bytes: &[u8], timed: &mut impl FnMut(usize) -> Release) -> usize {
        let mut taken = 0;
        while !self.ended {
            let rest = &bytes[taken..];
            if let Some(mut body) = self.body.take() {
                let here = body.missing.min(rest.len() as u64);
                taken += here as usize;
                body.missing -= here;
                if body.missing > 0 {
                    self.body = Some(body);
                    return taken;
                }
                self.answer(200, &body.text, body.close, timed);
                continue;
            }
            match read_head(rest) {
                Head::Partial => return taken,
                Head::Refused(status) => self.answer(status, b"", true, timed),
                Head::Whole(request) => {
                    taken += request.head_length;
                    self.begin(&request, timed);
                }
            }
        }
        bytes.len()
    }

    fn begin(&mut self, request: &Request<'_>, timed: &mut impl FnMut(usize) -> Release) {
        if !request.post && request.body_length == 0 {
            return self.answer(200, request.name, request.close, timed);
        }
        let mut text = request.name.to_vec();
        if request.post {
            let _ = write!(text, " {}", request.body_length);
        }
        self.body = Some(Body { missing: request.body_length, text, close: request.close });
    }

    fn answer(&mut self, status: u16, text: &[u8], close: bool, timed: &mut impl FnMut(usize) -> Release) {
        let start = self.answers.len();
        let line: &[u8] = match status {
            200 => b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: ",
            405 => b"HTTP/1.1 405 Method Not Allowed\r\nAllow: GET, POST\r\nContent-Length: ",
            431 => b"HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Length: ",
            501 => b"HTTP/1.1 501 Not Implemented\r\nContent-Length: ",
            505 => b"HTTP/1.1 505 HTTP Version Not Supported\r\nContent-Length: ",
            _ => b"HTTP/1.1 400 Bad Request\r\nContent-Length: ",
        };
        self.answers.extend_from_slice(line);
        let _ = write!(self.answers, "{}", text.len());
        self.answers.extend_from_slice(if close { b"\r\nConnection: close\r\n\r\n" } else { b"\r\n\r\n" });
        self.answers.extend_from_slice(text);
        self.ended |= close;
        if timed(self.answers.len() - start) == Release::Now {
            self.released = self.answers.len();
        }
    }

    /// Lets the next `length` bytes of answers leave.
    pub fn release(&mut self, length: usize) {
        self.released = (self.released + length).min(self.answers.len());
    }

    /// The peer sends no more: what it asked is still answered.
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// What may leave now.
    pub fn outgoing(&self) -> &[u8] {
        &self.answers[self.sent..self.released]
    }

    /// The first `length` bytes of [`outgoing`](Self::outgoing) have left.
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
        self.sent = 0;
    }

    /// Whether more bytes are to be read.
    pub fn listens(&self) -> bool {
        !self.ended && self.answers.len() - self.sent < BACKLOG_LIMIT
    }

    /// Whether all is said on both sides.
    pub fn is_over(&self) -> bool {
        self.ended && self.answers.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::{Conversation, Release};
    use proptest::prelude::*;

    const THREE: &[u8] = b"GET /path0 HTTP/1.1\r\nHost: a\r\n\r\n\
        POST /b HTTP/1.1\r\nContent-Length: 5\r\n\r\nhelloGET /last HTTP/1.1\r\nConnection: close\r\n\r\n";
    const ANSWERS: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\npath0\
        HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\r\nb 5\
        HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 4\r\nConnection: close\r\n\r\nlast";

    fn text(conversation: &Conversation) -> &str {
        std::str::from_utf8(conversation.outgoing()).expect("answers are text")
    }

    proptest! {
        #[test]
        fn answers_do_not_depend_on_how_bytes_are_cut(
            cuts in prop::collection::vec(0..THREE.len(), 0..20), sends in prop::collection::vec(1..60_usize, 0..20),
        ) {
            let mut cuts = cuts;
            cuts.extend([0, THREE.len()]);
            cuts.sort_unstable();
            let (mut conversation, mut sent, mut lengths) = (Conversation::default(), Vec::new(), Vec::new());
            let mut sends = sends.into_iter();
            for pair in cuts.windows(2) {
                conversation.receive(&THREE[pair[0]..pair[1]], |length| {
                    lengths.push(length);
                    Release::Now
                });
                let length = sends.next().unwrap_or(0).min(conversation.outgoing().len());
                sent.extend_from_slice(&conversation.outgoing()[..length]);
                conversation.left(length);
            }
            sent.extend_from_slice(conversation.outgoing());
            conversation.left(conversation.outgoing().len());
            prop_assert_eq!(std::str::from_utf8(&sent), Ok(ANSWERS));
            prop_assert_eq!(lengths.iter().sum::<usize>(), ANSWERS.len());
            prop_assert_eq!(lengths.len(), 3);
            prop_assert!(conversation.is_over());
        }
    }

    #[test]
    fn an_answer_waits_for_its_release() {
        let mut conversation = Conversation::default();
        let mut lengths = Vec::new();
        conversation.receive(THREE, |length| {
            lengths.push(length);
            Release::Later
        });
        assert_eq!(text(&conversation), "");
        conversation.release(lengths[0]);
        assert_eq!(text(&conversation), &ANSWERS[..lengths[0]]);
        conversation.left(lengths[0]);
        assert!(!conversation.is_over());
        conversation.release(lengths[1] + lengths[2]);
        assert_eq!(text(&conversation), &ANSWERS[lengths[0]..]);
    }

    #[test]
    fn nothing_is_read_after_the_end() {
        let mut conversation = Conversation::default();
        let mut answered = 0;
        let mut count = |_| {
            answered += 1;
            Release::Now
        };
        conversation.receive(b"PATCH / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n", &mut count);
        conversation.receive(b"GET / HTTP/1.1\r\n\r\n", &mut count);
        assert_eq!(answered, 1);
        assert!(text(&conversation).starts_with("HTTP/1.1 405 "));
        assert!(!conversation.listens());
    }

    #[test]
    fn a_peer_that_does_not_read_is_not_read() {
        let mut conversation = Conversation::default();
        while conversation.listens() {
            conversation.receive(b"GET / HTTP/1.1\r\n\r\n", |_| Release::Now);
        }
        let backlog = conversation.outgoing().len();
        conversation.left(backlog);
        assert!(conversation.listens());
    }
}
