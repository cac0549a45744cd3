//! The incremental parser of the responses on a connection.

use memchr::memchr;
use sha2::{Digest, Sha256};

use crate::answer::{Answer, KeptBody, ParsedAnswer, ReadOptions};
use crate::chunked::{Chunked, Piece};
use crate::events::EventReader;
use crate::head::{self, Framing, Head};
use crate::heads::Heads;
use crate::malformed::{Malformed, Rule};
use crate::messages::{MessageCounts, MessageValues};
use crate::record::Record;
use crate::{MOST_HEAD_BYTES, MOST_KEPT_BODY};

/// How much of a stream has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamSoFar {
    /// The status of the answer.
    pub status: u16,
    /// Bytes of the body, without its transfer coding.
    pub body_length: u64,
    /// Messages that are complete.
    pub messages: MessageCounts,
}

impl StreamSoFar {
    /// All of a stream whose end has arrived; `None` if the answer is no stream whose events are counted.
    #[must_use]
    pub fn of(answer: &Answer) -> Option<Self> {
        let Answer { status, body_length, events, .. } = *answer;
        events.map(|messages| Self { status, body_length, messages })
    }
}

#[derive(Clone, Copy, Debug)]
enum State {
    Head,
    Length(u64),
    Chunked(Chunked),
    UntilClose,
}

/// State that most connections never need, allocated when a head arrives in pieces, or a body is hashed or kept.
#[derive(Clone, Debug, Default)]
struct Extra {
    /// A head that has arrived in part.
    pending: Vec<u8>,
    hash: Sha256,
    body: Vec<u8>,
    /// The events of the present answer, if it is a stream.
    events: Option<EventReader>,
    /// What was read in messages of the last stream, and not yet taken.
    values: MessageValues,
    /// The head of the present answer, if its fields are kept.
    head: Vec<u8>,
    record: Option<Box<Record>>,
}

impl Extra {
    /// Whether a head is kept, or is to be recorded.
    fn has_head(&self) -> bool {
        !self.head.is_empty() || self.record.is_some()
    }

    /// These are the bytes of a head: keep what is to be kept of it, and nothing of the head before.
    fn keep_head(&mut self, bytes: &[u8], head: Head, options: ReadOptions) {
        if let Some(record) = &mut self.record {
            record.head(bytes, head.status);
        }
        self.head.clear();
        if options.fields.of_head(head.sets_cookie) {
            self.head.extend_from_slice(bytes);
        }
    }
}

/// Capacity that an idle connection may keep: enough for the usual head or body in pieces, so that the steady state allocates
/// nothing, and little enough for a quarter of a million connections.
const IDLE_PENDING: usize = 2 * 1024;
const IDLE_BODY: usize = 4 * 1024;
/// How much is kept of an answer that is not the stream that was expected.
const MOST_SHOWN: usize = 200;

/// Reads the answers on a connection, in sequence.
///
/// The options are passed with each piece, and are the same for all pieces of an answer. After [`Malformed`] the connection
/// cannot be used any more; call [`Parser::reset`] before the next connection.
#[derive(Clone, Debug)]
pub struct Parser {
    state: State,
    /// Bytes of the present answer, interim answers included, that arrived in earlier pieces.
    before: usize,
    body_length: u64,
    extra: Option<Box<Extra>>,
    /// Bytes of interim answers since the last answer.
    interim_bytes: u32,
    status: u16,
    keep_alive: bool,
}

impl Default for Parser {
    fn default() -> Self {
        Self::new()
    }
}

impl Parser {
    /// A parser for a fresh connection.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            state: State::Head,
            before: 0,
            body_length: 0,
            extra: None,
            interim_bytes: 0,
            status: 0,
            keep_alive: false,
        }
    }

    /// Drop what has arrived, and free its memory: the next byte is the first of a new connection.
    pub fn reset(&mut self) {
        *self = Self::new();
    }

    /// Whether no byte of an answer has arrived since the last complete answer.
    #[must_use]
    pub fn is_between(&self) -> bool {
        let pending = self.extra.as_ref().is_some_and(|extra| !extra.pending.is_empty());
        matches!(self.state, State::Head) && self.interim_bytes == 0 && !pending
    }

    /// Whether a part of the next answer has arrived; interim answers do not count.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        let pending = self.extra.as_ref().is_some_and(|extra| !extra.pending.is_empty());
        !matches!(self.state, State::Head) || pending
    }

    /// The status of the present answer and the bytes and events of its body so far, if it is a stream whose events are
    /// counted.
    #[must_use]
    pub fn stream(&self) -> Option<StreamSoFar> {
        let messages = self.extra.as_ref()?.events.as_ref()?.counts();
        (!matches!(self.state, State::Head)).then_some(StreamSoFar {
            status: self.status,
            body_length: self.body_length,
            messages,
        })
    }

    /// Take what was read in messages of the present or the last answer that counted since the last call.
    pub fn take_values(&mut self) -> MessageValues {
        let Some(extra) = &mut self.extra else {
            return MessageValues::default();
        };
        // Those of an answer that has ended are taken before the next begins.
        match &mut extra.events {
            Some(events) => events.take_values(),
            None => std::mem::take(&mut extra.values),
        }
    }

    /// Record the next answer, if its body is hashed, with up to `keeps` bytes of the body.
    pub fn record(&mut self, keeps: usize) {
        self.extra.get_or_insert_default().record = Some(Box::new(Record::new(keeps)));
    }

    /// The record of the last complete answer, if it was recorded.
    #[inline]
    pub fn take_record(&mut self) -> Option<Box<Record>> {
        self.extra.as_mut()?.record.take()
    }

    /// The body of the last complete answer, if it was kept, until bytes of the next are fed or [`Parser::forget_body`].
    #[must_use]
    pub fn body(&self) -> &[u8] {
        self.extra.as_ref().map_or(&[], |extra| &extra.body)
    }

    /// The head of the last complete answer, if any of it was kept, until bytes of the next are fed: for [`values_in`].
    #[inline]
    #[must_use]
    pub fn kept_head(&self) -> &[u8] {
        self.extra.as_ref().map_or(&[], |extra| &extra.head)
    }

    /// Free the memory of a kept body, except for a little, once it has been used.
    pub fn forget_body(&mut self) {
        if let Some(extra) = &mut self.extra {
            extra.body.clear();
            extra.body.shrink_to(IDLE_BODY);
        }
    }

    /// Read bytes up to the end of an answer; `None` when all were read and the answer is not complete.
    ///
    /// `options` are those of the request that this answer belongs to. `heads` may be shared by all connections, and affects
    /// only speed.
    ///
    /// # Errors
    /// [`Malformed`] when the bytes are not a response.
    #[expect(clippy::inline_always, reason = "measured: a call costs a tenth of reading an answer")]
    #[inline(always)]
    pub fn feed(
        &mut self,
        bytes: &[u8],
        options: ReadOptions,
        heads: &mut Heads,
    ) -> Result<Option<ParsedAnswer>, Malformed> {
        let mut used = 0;
        loop {
            let rest = &bytes[used..];
            let at = self.before + used;
            match &mut self.state {
                State::Head => match self.head(rest, at, options, heads)? {
                    Some(taken) => used += taken,
                    None => break,
                },
                State::Length(remaining) => {
                    let take = usize::try_from(*remaining).map_or(rest.len(), |remaining| remaining.min(rest.len()));
                    *remaining -= take as u64;
                    let complete = *remaining == 0;
                    self.data(&rest[..take], at, false, options)?;
                    if complete {
                        return Ok(Some(self.complete(used + take, options)));
                    }
                    break;
                }
                State::Chunked(chunked) => match chunked.next(rest) {
                    Ok(Piece::Data(data, taken)) => {
                        let ends = chunked.is_after_data();
                        self.data(data, at + taken - data.len(), ends, options)?;
                        used += taken;
                    }
                    Ok(Piece::End(taken)) => return Ok(Some(self.complete(used + taken, options))),
                    Ok(Piece::More) => break,
                    Err(fault) => return Err(fault.rule.at(at + fault.at)),
                },
                State::UntilClose => {
                    self.data(rest, at, false, options)?;
                    break;
                }
            }
        }
        self.before += bytes.len();
        Ok(None)
    }

    /// The connection has ended: returns the answer that this completes, if any.
    pub fn end(&mut self, options: ReadOptions) -> Option<Answer> {
        matches!(self.state, State::UntilClose).then(|| self.complete(0, options).answer)
    }

    /// Read a head. Returns how many of `bytes`, which begin `at` this byte of the answer, it took; `None` when it is not
    /// complete.
    #[expect(clippy::inline_always, reason = "measured: a call costs a tenth of reading an answer")]
    #[inline(always)]
    fn head(
        &mut self,
        bytes: &[u8],
        at: usize,
        options: ReadOptions,
        heads: &mut Heads,
    ) -> Result<Option<usize>, Malformed> {
        if bytes.is_empty() {
            return Ok(None);
        }
        if self.extra.as_ref().is_some_and(|extra| !extra.pending.is_empty()) {
            return self.pending_head(bytes, at, options);
        }
        // Bytes past the limit are not read.
        if let Ok(Some(head)) = heads.parse(&bytes[..bytes.len().min(MOST_HEAD_BYTES)], options.head) {
            if options.fields.of_head(head.sets_cookie) || self.extra.as_deref().is_some_and(Extra::has_head) {
                self.keep_head(&bytes[..head.bytes], head, options);
            }
            self.start_body(head, at, options)?;
            return Ok(Some(head.bytes));
        }
        self.pending_head(bytes, at, options)
    }

    /// A whole head has arrived, in a piece.
    #[inline(never)]
    fn keep_head(&mut self, bytes: &[u8], head: Head, options: ReadOptions) {
        self.extra.get_or_insert_default().keep_head(bytes, head, options);
    }

    /// Read a head that arrives in pieces, or is malformed. It is parsed up to a position where a verdict is possible. These
    /// positions depend only on the bytes, so the verdict does not depend on how they were cut.
    #[cold]
    fn pending_head(&mut self, bytes: &[u8], at: usize, options: ReadOptions) -> Result<Option<usize>, Malformed> {
        let extra = self.extra.get_or_insert_default();
        let pending = &mut extra.pending;
        let before = pending.len();
        let begins_at = at - before;
        let room = MOST_HEAD_BYTES - before;
        pending.extend_from_slice(&bytes[..bytes.len().min(room)]);
        let too_long = bytes.len() > room;
        let end = if too_long { pending.len() } else { head::last_verdict(pending, before) };
        let head = if too_long || end > before {
            head::parse(&pending[..end], options.head).map_err(|fault| fault.rule.at(begins_at + fault.at))?
        } else {
            None
        };
        let Some(head) = head else {
            return if too_long { Err(Rule::HeadTooLong.at(begins_at + MOST_HEAD_BYTES)) } else { Ok(None) };
        };
        let mut pending = std::mem::take(&mut extra.pending);
        extra.keep_head(&pending[..head.bytes], head, options);
        pending.clear();
        pending.shrink_to(IDLE_PENDING);
        extra.pending = pending;
        let taken = head.bytes.saturating_sub(before);
        self.start_body(head, begins_at, options)?;
        Ok(Some(taken))
    }

    /// A head is complete, which began `at` this byte of the answer.
    #[inline]
    fn start_body(&mut self, head: Head, at: usize, options: ReadOptions) -> Result<(), Malformed> {
        if head.status < 200 && head.status != 101 {
            return self.pass_over(head, at);
        }
        self.interim_bytes = 0;
        self.status = head.status;
        self.keep_alive = head.keep_alive;
        self.body_length = 0;
        self.state = match head.framing {
            Framing::None => State::Length(0),
            Framing::Length(length) => State::Length(length),
            Framing::Chunked => State::Chunked(Chunked::new()),
            Framing::UntilClose => State::UntilClose,
        };
        let has_body = |extra: &Extra| !extra.body.is_empty() || extra.events.is_some();
        if options.hash || options.keep.any() || options.events.is_some() || self.extra.as_deref().is_some_and(has_body)
        {
            self.prepare(&head, options);
        }
        Ok(())
    }

    #[inline(never)]
    fn prepare(&mut self, head: &Head, options: ReadOptions) {
        let extra = self.extra.get_or_insert_default();
        extra.events =
            options.events.filter(|kind| head.body.is(*kind)).map(|kind| EventReader::new(kind, options.messages));
        extra.body.clear();
        extra.values = MessageValues::default();
    }

    fn pass_over(&mut self, interim: Head, at: usize) -> Result<(), Malformed> {
        self.interim_bytes = self.interim_bytes.saturating_add(interim.bytes as u32);
        if self.interim_bytes as usize > MOST_HEAD_BYTES { Err(Rule::InterimTooLong.at(at)) } else { Ok(()) }
    }

    /// Process data of the body, which begin `at` this byte of the answer. `ends`: a chunk ends with them.
    #[inline]
    fn data(&mut self, data: &[u8], at: usize, ends: bool, options: ReadOptions) -> Result<(), Malformed> {
        // Nobody sends 2^64 bytes.
        self.body_length = self.body_length.saturating_add(data.len() as u64);
        if options.hash || options.keep.any() || options.events.is_some() {
            self.look_at(data, at, ends, options)?;
        }
        Ok(())
    }

    fn look_at(&mut self, data: &[u8], at: usize, ends: bool, options: ReadOptions) -> Result<(), Malformed> {
        let extra = self.extra.get_or_insert_default();
        if let Some(events) = &mut extra.events {
            events.data(data, ends);
        } else if options.events.is_some() && !options.keep.any() {
            // What is no stream is shown.
            let room = MOST_SHOWN.saturating_sub(extra.body.len());
            extra.body.extend_from_slice(&data[..data.len().min(room)]);
        }
        if options.hash {
            extra.hash.update(data);
        }
        if let Some(record) = &mut extra.record {
            record.data(data);
        }
        if options.keep.any() {
            let room = MOST_KEPT_BODY - extra.body.len();
            if data.len() > room && options.keep == KeptBody::Beginning {
                extra.body.extend_from_slice(&data[..room]);
                return Ok(());
            }
            if data.len() > room {
                return Err(Rule::BodyTooLong.at(at + room));
            }
            extra.body.extend_from_slice(data);
        }
        Ok(())
    }

    #[expect(clippy::inline_always, reason = "measured: a call costs as much as what it does")]
    #[inline(always)]
    fn complete(&mut self, used: usize, options: ReadOptions) -> ParsedAnswer {
        let body_sha256 = options.hash.then(|| self.extra.get_or_insert_default().hash.finalize_reset().into());
        let events = if options.events.is_some() { self.end_events() } else { None };
        self.state = State::Head;
        self.before = 0;
        let answer = Answer {
            status: self.status,
            grpc_status: None,
            body_length: self.body_length,
            body_sha256,
            events,
            keep_alive: self.keep_alive,
        };
        ParsedAnswer { answer, used }
    }

    /// The body is complete: how many events were in it, if it was a stream.
    #[cold]
    fn end_events(&mut self) -> Option<MessageCounts> {
        let extra = self.extra.as_mut()?;
        let mut events = extra.events.take()?;
        events.end();
        extra.body.extend_from_slice(events.first());
        extra.values = events.take_values();
        Some(events.counts())
    }
}

/// The values of the fields of this name in a head, or in lines of fields, without spaces around them. Of a folded value, the first
/// line.
pub fn values_in<'a>(head: &'a [u8], name: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    lines_in(head).filter_map(move |line| {
        let is_it = line.get(name.len()) == Some(&b':') && line[..name.len()].eq_ignore_ascii_case(name);
        is_it.then(|| line[name.len() + 1..].trim_ascii())
    })
}

fn lines_in(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(head);
    std::iter::from_fn(move || {
        let bytes = rest?;
        let end = memchr(b'\n', bytes);
        rest = end.map(|end| &bytes[end + 1..]);
        Some(&bytes[..end.unwrap_or(bytes.len())])
    })
}
