//! A connection without its socket: received bytes become answers, which are sent when they are released.
//!
//! A client that begins with the preface of HTTP/2 is answered in it (RFC 9113, 3.3).

use std::io::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use redline_websocket::Deflate;

use crate::agenda::Due;
use crate::behaviour::PushTimes;
use crate::body::{Framing, Part, Rest};
use crate::endings::Ending;
use crate::request::{Head, Request, read_head};
use crate::sessions::{Asked, Reply};
use crate::streams::Streams;
use crate::websocket::{self, Received, WebSocket};

/// The most bytes of answers that may wait for their time or their reader; beyond it no more requests are read.
const BACKLOG_LIMIT: usize = 1024 * 1024;
/// The longest body that is kept for an answer that depends on it, in bytes.
pub const MOST_KEPT_BYTES: u64 = 64 * 1024;
/// The status that opens a WebSocket in HTTP/1.1.
const SWITCHING_PROTOCOLS: u16 = 101;
/// How HTTP/2 begins.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n";

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
    /// The answer to a request that is complete now.
    fn reply<'a>(&'a mut self, asked: Asked<'a>) -> Reply<'a>;
    /// Whether answers depend on the bodies of requests.
    fn keeps_bodies(&self) -> bool;
    /// Whether the connection is reset instead of the next answer.
    fn resets(&mut self) -> bool;
    /// What becomes of the connection with its `nth` answer, counted from 1.
    fn ending(&self, nth: u64) -> Ending;
    /// This many requests arrived after the last answer was decided.
    fn passed_over(&mut self, requests: u64);
    /// A request with this name became a WebSocket, by an answer with this status.
    fn upgraded(&mut self, _name: &[u8], _status: u16) {}
    /// A message of this many bytes is to be echoed.
    fn message(&mut self, _length: usize) {}
    /// The messages that a WebSocket gets which opens now.
    fn pushes(&self) -> Option<PushTimes> {
        None
    }
    /// How messages of a WebSocket are compressed whose client offers that.
    fn deflate(&self) -> Option<Deflate> {
        None
    }
    /// A message of this many bytes is to be sent this long after the request arrived.
    fn push(&mut self, _after_ns: u64, _length: usize) {}
    /// The client closes a WebSocket with this code.
    fn closed(&mut self, _code: u16) {}
    /// When the answer, with a head and a body of these lengths, may be sent. The stream is 0 in HTTP/1.1.
    fn release(&mut self, stream: i32, head: usize, body: usize) -> Release;
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
    /// How many requests were answered.
    answered: u64,
    /// Whether the last answer is decided: what arrives later is passed over.
    closing: bool,
    /// The streams of HTTP/2, if the client speaks it. Their frames wait in `answers` and may all be sent.
    streams: Option<Box<Streams>>,
    /// The WebSocket that the connection has become.
    websocket: Option<Box<WebSocket>>,
}

/// A request body that is being received, and its answer.
#[derive(Debug)]
struct Body {
    rest: Rest,
    /// Bytes of it that were received.
    length: u64,
    name: Vec<u8>,
    post: bool,
    close: bool,
    /// What came of it, unless nothing depends on it.
    kept: Option<Vec<u8>>,
    cookie: Vec<u8>,
    token: Vec<u8>,
}

impl Body {
    /// More of it was received.
    fn receive(&mut self, bytes: &[u8]) {
        self.length += bytes.len() as u64;
        if let Some(kept) = &mut self.kept {
            kept.extend_from_slice(bytes);
        }
    }

    /// Whether it is to be kept and has too many bytes for that.
    fn is_too_long(&self) -> bool {
        self.kept.is_some() && self.length > MOST_KEPT_BYTES
    }
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
            answered: 0,
            closing: false,
            streams: None,
            websocket: None,
        }
    }

    /// A conversation that is a WebSocket already, on a stream of HTTP/2: its bytes are carried by that.
    pub fn websocket(deflate: Option<Deflate>, respondent: &mut impl Respondent) -> Self {
        let mut conversation = Self::new();
        conversation.become_websocket(deflate, respondent);
        conversation
    }

    /// Takes received bytes, in pieces of any size. Asks `respondent` for an answer when a request is complete.
    pub fn receive(&mut self, bytes: &[u8], mut respondent: impl Respondent) {
        self.receive_from(bytes, &mut respondent);
    }

    /// The same, without taking the respondent.
    pub fn receive_from(&mut self, bytes: &[u8], respondent: &mut impl Respondent) {
        if self.streams.is_some() {
            self.receive_frames(bytes, respondent);
        } else if self.partial.is_empty() {
            let taken = self.take(bytes, respondent);
            self.partial.extend_from_slice(&bytes[taken..]);
        } else {
            let mut joined = std::mem::take(&mut self.partial);
            joined.extend_from_slice(bytes);
            let taken = self.take(&joined, respondent);
            if taken < joined.len() {
                joined.drain(..taken);
                self.partial = joined;
            }
        }
    }

    fn receive_frames(&mut self, bytes: &[u8], respondent: &mut impl Respondent) {
        if let Some(streams) = &mut self.streams
            && streams.receive(bytes, respondent).is_err()
        {
            // The peer broke the rules or the memory is used up: the connection is of no use.
            self.ended = true;
            self.reset_at = 0;
        }
    }

    /// Takes frames that may be sent, while there is room for them.
    pub fn refill(&mut self) {
        while self.has_room()
            && let Some(streams) = &mut self.streams
            && streams.write(&mut self.answers)
        {}
        if self.streams.is_some() {
            self.released = self.answers.len();
        }
    }

    /// Whether received requests wait for room in the answers, and there is room again. The caller then calls
    /// [`receive`](Self::receive) with no bytes.
    pub fn can_resume(&self) -> bool {
        self.has_room() && (self.held || self.messages().is_some_and(Self::can_resume))
    }

    /// How many bytes of a request's body are certain to arrive next and can be skipped, so that one is left.
    pub fn body_to_skip(&self) -> u64 {
        self.body.as_ref().filter(|body| body.kept.is_none()).map_or(0, |body| body.rest.certain().saturating_sub(1))
    }

    /// This many bytes of the body were received and skipped; at most [`body_to_skip`](Self::body_to_skip).
    pub fn skip(&mut self, length: u64) {
        if let Some(body) = &mut self.body {
            body.rest.skip(length);
            body.length += length;
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
            let mut rest = &bytes[taken..];
            if let Some(mut websocket) = self.websocket.take() {
                let start = self.answers.len();
                let received = websocket.receive(&mut rest, &mut self.answers);
                self.websocket = Some(websocket);
                taken = bytes.len() - rest.len();
                match received {
                    None => return bytes.len(),
                    Some(received) => self.echo(&received, start, respondent),
                }
                continue;
            }
            if let Some(mut body) = self.body.take() {
                match body.rest.read(rest) {
                    Part::Data(length) => {
                        taken += length;
                        body.receive(&rest[..length]);
                        if body.is_too_long() {
                            self.refuse(413, respondent);
                        } else {
                            self.body = Some(body);
                        }
                    }
                    Part::Framing(length) => {
                        taken += length;
                        self.body = Some(body);
                    }
                    Part::End(length) => {
                        taken += length;
                        self.answer_to(*body, respondent);
                    }
                    Part::Partial => {
                        self.body = Some(body);
                        return taken;
                    }
                    Part::Wrong => self.refuse(400, respondent),
                }
                continue;
            }
            match read_head(rest) {
                Head::Partial => return taken,
                Head::Refused(_) if self.answered == 0 && rest.starts_with(PREFACE) => {
                    self.streams = Streams::new(respondent.keeps_bodies()).map(Box::new);
                    self.ended = self.streams.is_none();
                    self.receive_frames(rest, respondent);
                    return bytes.len();
                }
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
        let Request { name, post, body, close, cookie, token, .. } = *request;
        if !request.websocket_key.is_empty() && !post && !self.closing {
            respondent.upgraded(name, SWITCHING_PROTOCOLS);
            let start = self.answers.len();
            let deflate = agreed(request.extensions, respondent);
            websocket::open(request.websocket_key, request.subprotocols, deflate, &mut self.answers);
            self.pass_on(start, respondent);
            return self.become_websocket(deflate, respondent);
        }
        if !post && matches!(body, Framing::None | Framing::Length(0)) {
            return self.answer(Asked { name, length: 0, body: b"", cookie, token }, close, respondent);
        }
        let keeps = respondent.keeps_bodies() && !self.closing;
        if keeps && matches!(body, Framing::Length(length) if length > MOST_KEPT_BYTES) {
            return self.refuse(413, respondent);
        }
        let kept = keeps.then(Vec::new);
        let (name, cookie, token) = (name.to_vec(), cookie.to_vec(), token.to_vec());
        let rest = Rest::of(body);
        self.body = Some(Box::new(Body { rest, length: 0, name, post, close, kept, cookie, token }));
    }

    fn become_websocket(&mut self, deflate: Option<Deflate>, respondent: &mut impl Respondent) {
        let mut websocket = Box::new(WebSocket::new(deflate));
        if let Some(times) = respondent.pushes() {
            websocket.is_pushing = true;
            self.push_all(times, &mut websocket, respondent);
        }
        self.websocket = Some(websocket);
    }

    fn answer_to(&mut self, body: Body, respondent: &mut impl Respondent) {
        let Body { length, mut name, post, close, kept, cookie, token, .. } = body;
        if post {
            // Writing to a vector does not fail.
            let _ = write!(name, " {length}");
        }
        let body = kept.as_deref().unwrap_or_default();
        self.answer(Asked { name: &name, length, body, cookie: &cookie, token: &token }, close, respondent);
    }

    fn answer(&mut self, asked: Asked<'_>, close: bool, respondent: &mut impl Respondent) {
        if self.closing {
            return respondent.passed_over(1);
        }
        if respondent.resets() {
            self.reset_at = self.answers.len();
            self.ended = true;
        }
        self.answered += 1;
        let ending = respondent.ending(self.answered);
        self.closing = ending != Ending::Open;
        let start = self.answers.len();
        let body = self.write(&respondent.reply(asked), close || ending == Ending::Said);
        self.ended |= close;
        self.time(self.answers.len() - body - start, body, respondent);
    }

    /// Adds all messages that are pushed. Each says the time since 1970 at which it is due, in nanoseconds, less the delay.
    fn push_all(&mut self, times: PushTimes, websocket: &mut WebSocket, respondent: &mut impl Respondent) {
        let opened_ns = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        for nth in 1..=times.count {
            let after_ns = nth * times.every_ns;
            let says_ns = opened_ns + u128::from(after_ns) - u128::from(times.delay_ns);
            let start = self.answers.len();
            websocket.push(&says_ns.to_string(), &mut self.answers);
            let late_ns = if nth % 2 == 0 { times.jitter_ns } else { 0 };
            respondent.push(after_ns + late_ns, self.answers.len() - start);
        }
    }

    /// What was pushed is not echoed: only messages of the client are counted, and its close frame is answered at once.
    fn hear(&mut self, received: &Received, start: usize, respondent: &mut impl Respondent) {
        match received {
            Received::Control => self.pass_on(start, respondent),
            Received::Message(length) => {
                self.answers.truncate(start);
                respondent.message(*length);
            }
            Received::Closed(code) => {
                self.ended = true;
                self.answers.drain(self.released..start);
                self.released = self.answers.len();
                if let Some(code) = code {
                    respondent.closed(*code);
                }
            }
        }
    }

    /// What answers a frame of a WebSocket was added at `start`.
    fn echo(&mut self, received: &Received, start: usize, respondent: &mut impl Respondent) {
        if self.websocket.as_ref().is_some_and(|websocket| websocket.is_pushing) {
            return self.hear(received, start, respondent);
        }
        if self.closing && !matches!(received, Received::Closed(_)) {
            self.answers.truncate(start);
            if matches!(received, Received::Message(_)) {
                respondent.passed_over(1);
            }
            return;
        }
        match received {
            Received::Control => self.pass_on(start, respondent),
            Received::Closed(code) => {
                self.ended = true;
                if let Some(code) = code {
                    respondent.closed(*code);
                }
                if self.closing {
                    return self.answers.truncate(start);
                }
                self.pass_on(start, respondent);
            }
            Received::Message(length) => {
                respondent.message(*length);
                if respondent.resets() {
                    self.reset_at = start;
                    self.ended = true;
                }
                self.answered += 1;
                let ending = respondent.ending(self.answered);
                self.closing = ending != Ending::Open;
                if ending == Ending::Said
                    && let Some(websocket) = &mut self.websocket
                {
                    websocket.go_away(&mut self.answers);
                }
                self.time(self.answers.len() - start, 0, respondent);
            }
        }
    }

    /// What was added at `start` needs no time, but follows the answers before it.
    fn pass_on(&mut self, start: usize, respondent: &mut impl Respondent) {
        if self.released == start {
            self.released = self.answers.len();
        } else if self.answers.len() > start {
            self.time(self.answers.len() - start, 0, respondent);
        }
    }

    /// What arrived is no request. It ends the connection, with an answer unless the last was given before.
    fn refuse(&mut self, status: u16, respondent: &mut impl Respondent) {
        self.ended = true;
        if self.closing {
            return;
        }
        let start = self.answers.len();
        self.write(&Reply::plain(status, b""), true);
        self.time(self.answers.len() - start, 0, respondent);
    }

    fn time(&mut self, head: usize, body: usize, respondent: &mut impl Respondent) {
        if respondent.release(0, head, body) == Release::Now {
            self.released = self.answers.len();
        }
    }

    /// Adds an answer. Returns the length of its body, as framed.
    fn write(&mut self, reply: &Reply<'_>, close: bool) -> usize {
        let line: &[u8] = match reply.status {
            200 => b"HTTP/1.1 200 OK\r\nContent-Type: ",
            401 => b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Session\r\nContent-Length: ",
            403 => b"HTTP/1.1 403 Forbidden\r\nContent-Length: ",
            413 => b"HTTP/1.1 413 Content Too Large\r\nContent-Length: ",
            405 => b"HTTP/1.1 405 Method Not Allowed\r\nAllow: GET, POST\r\nContent-Length: ",
            431 => b"HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Length: ",
            501 => b"HTTP/1.1 501 Not Implemented\r\nContent-Length: ",
            505 => b"HTTP/1.1 505 HTTP Version Not Supported\r\nContent-Length: ",
            _ => b"HTTP/1.1 400 Bad Request\r\nContent-Length: ",
        };
        self.answers.extend_from_slice(line);
        if reply.status == 200 {
            self.answers.extend_from_slice(reply.content_type.as_bytes());
            let framing: &[u8] =
                if reply.events > 0 { b"\r\nTransfer-Encoding: chunked" } else { b"\r\nContent-Length: " };
            self.answers.extend_from_slice(framing);
        }
        if reply.events == 0 {
            add_decimal(&mut self.answers, reply.body.len());
        }
        if !reply.set_cookie.is_empty() {
            self.answers.extend_from_slice(b"\r\nSet-Cookie: ");
            self.answers.extend_from_slice(reply.set_cookie);
        }
        self.answers.extend_from_slice(if close { b"\r\nConnection: close\r\n\r\n" } else { b"\r\n\r\n" });
        let start = self.answers.len();
        if let Some(of_each) = reply.body.len().checked_div(reply.events) {
            // As servers send what they do not know the length of: each event is a chunk.
            for event in reply.body.chunks(of_each) {
                // Writing to a vector does not fail.
                let _ = write!(self.answers, "{:x}\r\n", event.len());
                self.answers.extend_from_slice(event);
                self.answers.extend_from_slice(b"\r\n");
            }
            self.answers.extend_from_slice(b"0\r\n\r\n");
        } else {
            self.answers.extend_from_slice(reply.body);
        }
        self.answers.len() - start
    }

    /// Allows the next bytes of answers to be sent, of their stream if there are streams.
    pub fn release(&mut self, due: &Due) {
        if let Some(streams) = &mut self.streams {
            // Messages of a WebSocket are one after the other, as answers of HTTP/1.1 are.
            if due.stream == 0 {
                streams.release_message(due);
            } else if streams.release(due.stream, due.length, due.last) {
                self.reset_at = 0;
            }
        } else {
            self.released = (self.released + due.length).min(self.answers.len());
        }
    }

    /// The peer sends no more. Its requests are still answered.
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// The messages of a WebSocket on a stream of HTTP/2.
    fn messages(&self) -> Option<&Self> {
        self.streams.as_ref().and_then(|streams| streams.messages())
    }

    /// The bytes that may be sent now.
    pub fn outgoing(&self) -> &[u8] {
        let end = if self.streams.is_some() { self.released } else { self.released.min(self.reset_at) };
        &self.answers[self.sent..end]
    }

    /// Whether the time of a reset has come, and all answers before it are sent.
    pub fn is_reset(&self) -> bool {
        match self.streams {
            Some(_) => self.reset_at == 0 || self.messages().is_some_and(Self::is_reset),
            None => self.released > self.reset_at && self.sent == self.reset_at,
        }
    }

    /// Whether nothing more will be sent, and the peer should learn that. What it sends is still read: closing would destroy
    /// what is on its way to it.
    pub fn has_finished(&self) -> bool {
        let last = match &self.streams {
            Some(streams) => streams.have_finished(),
            None => self.closing,
        };
        last && self.answers.is_empty()
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
        if self.reset_at != usize::MAX && self.streams.is_none() {
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

/// How messages are compressed, for a client that offers these extensions.
pub fn agreed(extensions: &[u8], respondent: &impl Respondent) -> Option<Deflate> {
    respondent.deflate().filter(|_| extensions.starts_with(b"permessage-deflate"))
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
