//! The session, the main type of this crate.

use std::sync::Arc;

use redline_wire::Record;

use crate::MOST_HEAD_BYTES;
use crate::event::{BodyOptions, Error, Event};
use crate::ffi::{Connection, Drained};
use crate::frame_heads::FrameHeads;

/// Bytes that are serialized ahead, so that the events that they cause are reported in time.
const MOST_AHEAD_BYTES: usize = 64 * 1024;

/// An error code (RFC 9113, section 7).
const INTERNAL_ERROR: u32 = 2;

/// The client side of an HTTP/2 connection.
///
/// Call [`Session::open`] while there is [`Session::room`], write the bytes of [`Session::output`] while
/// [`Session::wants_write`], and pass received bytes to [`Session::feed`]. After an error of `feed`, the connection cannot be
/// used any more, and requests that are still open on it are not reported. Timeouts are the caller's.
pub struct Session {
    connection: Connection,
    frame_heads: FrameHeads,
    /// The bytes that were serialized ahead, and how many of them were taken.
    ahead: Vec<u8>,
    taken: usize,
    /// The error code with which this side ended the connection because the peer violates HTTP/2.
    dead: Option<u32>,
}

impl Session {
    /// Create a session on a fresh connection; the preface and SETTINGS wait in its output.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn new() -> Result<Self, Error> {
        Ok(Self {
            connection: Connection::new()?,
            frame_heads: FrameHeads::default(),
            ahead: Vec::new(),
            taken: 0,
            dead: None,
        })
    }

    /// How many streams may be opened now: 100 in all before the peer's SETTINGS, 0 after GOAWAY and when the stream numbers
    /// are used up.
    #[must_use]
    pub fn room(&self) -> u32 {
        if self.dead.is_some() || !self.connection.may_open() {
            return 0;
        }
        let open = u32::try_from(self.connection.streams().count()).unwrap_or(u32::MAX);
        self.connection.most_streams().saturating_sub(open)
    }

    /// Open a stream. `fields` begin with `:method`, `:scheme`, `:authority` and `:path`, and have lower-case names; the rest,
    /// including `content-length`, is up to the caller. `body`, if not empty, is sent as DATA under flow control. `token` names
    /// the request in events; no two open requests may share a token. The stream of a CONNECT, one for each session, carries
    /// what [`Session::send`] is given.
    ///
    /// # Errors
    /// [`Error::NoRoom`], [`Error::TooLong`], [`Error::Memory`].
    pub fn open(
        &mut self,
        fields: &[(&[u8], &[u8])],
        body: Option<Arc<[u8]>>,
        options: BodyOptions,
        token: u32,
    ) -> Result<(), Error> {
        if self.room() == 0 {
            return Err(Error::NoRoom);
        }
        if fields.iter().map(|(name, value)| name.len() + value.len() + 32).sum::<usize>() > MOST_HEAD_BYTES {
            return Err(Error::TooLong);
        }
        let stream = self.connection.open(fields, body.filter(|body| !body.is_empty()), options, token)?;
        self.frame_heads.open(stream);
        Ok(())
    }

    /// Whether the peer allows extended CONNECT (RFC 8441, section 3); `None` before its SETTINGS.
    #[must_use]
    pub fn allows_connect(&self) -> Option<bool> {
        self.connection.streams().is_settled.then(|| self.connection.allows_connect())
    }

    /// Append bytes to what is sent on the stream that CONNECT opened, under flow control; `last`: it ends after them.
    pub fn send(&mut self, bytes: &[u8], last: bool) {
        if let Some(pipe) = self.connection.streams_mut().pipe.as_mut().filter(|pipe| !pipe.is_ended) {
            pipe.push(bytes);
            pipe.is_ended = last;
            self.connection.resume_pipe();
        }
    }

    /// How many bytes wait to be sent on the stream that CONNECT opened.
    #[must_use]
    pub fn unsent(&self) -> usize {
        self.connection.streams().pipe.as_ref().map_or(0, |pipe| pipe.unsent())
    }

    /// Append what was received on the stream that CONNECT opened.
    pub fn take_received(&mut self, into: &mut Vec<u8>) {
        if let Some(pipe) = &mut self.connection.streams_mut().pipe {
            into.append(&mut pipe.received);
        }
    }

    /// Record the answer on the only stream, with up to `keeps` bytes of its body.
    pub fn record(&mut self, keeps: usize) {
        self.connection.streams_mut().record = Some(Box::new(Record::new(keeps)));
    }

    /// The record of the last answer, if it was recorded.
    pub fn take_record(&mut self) -> Option<Box<Record>> {
        self.connection.streams_mut().record.take()
    }

    /// Process received bytes; events are appended to `events`.
    ///
    /// # Errors
    /// [`Error::Malformed`] when the peer violates the protocol or floods; [`Error::Memory`].
    pub fn feed(&mut self, bytes: &[u8], events: &mut Vec<Event>) -> Result<(), Error> {
        // Events that arose while writing come first. Then callbacks append to the caller's list.
        events.append(&mut self.connection.streams_mut().events);
        std::mem::swap(&mut self.connection.streams_mut().events, events);
        let fed = self.take(bytes);
        self.connection.streams_mut().report_begun();
        std::mem::swap(&mut self.connection.streams_mut().events, events);
        fed
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.alive()?;
        let violation = self.frame_heads.read(bytes);
        let queued = self.connection.queued();
        let mut fed = self.connection.feed(&bytes[..violation.map_or(bytes.len(), |frame| frame.at)]);
        if let (Ok(()), Some(frame)) = (fed, violation) {
            fed = Err(self.connection.end(frame.code));
        }
        if let Err(why) = fed {
            self.dead = Some(if let Error::Malformed { code } = why { code } else { INTERNAL_ERROR });
            return fed;
        }
        // A frame that is queued because of these bytes may end a stream or the connection, which shows when it is serialized.
        if self.connection.queued() > queued || self.connection.streams().going {
            self.make_ahead();
        }
        self.alive()
    }

    fn alive(&self) -> Result<(), Error> {
        self.dead.map_or(Ok(()), |code| Err(Error::Malformed { code }))
    }

    fn make_ahead(&mut self) {
        if self.taken > 0 {
            self.ahead.drain(..self.taken);
            self.taken = 0;
        }
        if self.ahead.len() < MOST_AHEAD_BYTES {
            let mut ahead = std::mem::take(&mut self.ahead);
            self.drain(&mut ahead, MOST_AHEAD_BYTES);
            self.ahead = ahead;
        }
    }

    fn drain(&mut self, out: &mut Vec<u8>, limit: usize) {
        match self.connection.drain(out, limit) {
            Drained::Alive => {}
            Drained::Ended { code } => self.dead = Some(code),
        }
    }

    /// Append bytes to be written, about `most` (up to a frame more). The rest is for the next call.
    pub fn output(&mut self, out: &mut Vec<u8>, most: usize) {
        let limit = out.len().saturating_add(most);
        if self.taken < self.ahead.len() {
            let take = most.min(self.ahead.len() - self.taken);
            out.extend_from_slice(&self.ahead[self.taken..self.taken + take]);
            self.taken += take;
            if self.taken == self.ahead.len() {
                self.ahead = Vec::new();
                self.taken = 0;
            }
        }
        if out.len() < limit && self.ahead.is_empty() {
            self.drain(out, limit);
        }
    }

    /// Whether [`Session::output`] would append anything.
    #[must_use]
    pub fn wants_write(&self) -> bool {
        !self.ahead.is_empty() || self.connection.wants_write()
    }

    /// Cancel a request: its stream is reset with CANCEL, and its token is not reported. Unknown tokens are ignored.
    pub fn cancel(&mut self, token: u32) {
        let streams = self.connection.streams_mut();
        streams.events.retain(|event| event.token() != Some(token));
        if let Some(stream) = streams.cancel(token) {
            self.connection.reset(stream);
        }
    }

    /// The status of the answer to a request, until it is complete; 0 before it.
    #[must_use]
    pub fn status(&self, token: u32) -> u16 {
        self.connection.streams().status(token)
    }

    /// The fields that are kept of the answer to a request, a line each, until it is complete.
    #[must_use]
    pub fn fields(&self, token: u32) -> &[u8] {
        self.connection.streams().fields(token)
    }

    /// Whether part of an answer that is not complete has arrived.
    #[must_use]
    pub fn is_answering(&self) -> bool {
        self.connection.streams().is_answering()
    }

    /// Whether the peer accepts no more requests and none is open.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.dead.is_some() || (!self.connection.may_open() && self.connection.streams().count() == 0)
    }
}
