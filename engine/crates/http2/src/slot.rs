//! A request in flight.

use std::sync::Arc;

use redline_wire::{EventKind, EventReader, StreamSoFar};
use sha2::{Digest, Sha256};

use crate::MOST_KEPT_BYTES;
use crate::event::{BodyOptions, Event};
use crate::message::{Message, Verdict};
use crate::rule::Rule;

/// An open request, until its stream is closed.
#[derive(Debug, Default)]
pub struct Slot {
    token: u32,
    /// The outcome was reported, or the request was cancelled.
    reported: bool,
    pub message: Message,
    hash: Option<Sha256>,
    kept: Option<Vec<u8>>,
    /// The events to count, and their reader once the head says that they come.
    kind: Option<EventKind>,
    reader: Option<EventReader>,
    /// What arrived of the stream was not yet reported.
    has_news: bool,
    /// The present DATA frame has data.
    has_data: bool,
    /// The fields of the head, as lines.
    fields: Option<Vec<u8>>,
    /// The body, and how much of it was sent.
    body: Option<Arc<[u8]>>,
    sent: usize,
}

impl Slot {
    pub fn new(token: u32, head_only: bool, body: Option<Arc<[u8]>>, options: BodyOptions) -> Self {
        let hash = options.hash.then(Sha256::new);
        let kept = options.keep.then(Vec::new);
        let fields = options.fields.then(Vec::new);
        let message = Message::new(head_only);
        Self { token, message, hash, kept, fields, kind: options.events, body, ..Self::default() }
    }

    /// The token, if an outcome may still be reported.
    pub fn pending(&self) -> Option<u32> {
        (!self.reported).then_some(self.token)
    }

    /// Report the outcome, unless it was reported before, and free what was kept for the request.
    pub fn report(&mut self, events: &mut Vec<Event>, outcome: impl FnOnce(u32) -> Event) {
        if !std::mem::replace(&mut self.reported, true) {
            self.report_stream(events, true);
            events.push(outcome(self.token));
            self.forget();
        }
    }

    /// Report no outcome: the request was cancelled.
    pub fn forget(&mut self) {
        self.reported = true;
        self.hash = None;
        self.kept = None;
        self.reader = None;
        self.fields = None;
    }

    /// The head of the answer is complete, which may begin a stream whose events are counted.
    pub fn begin_stream(&mut self) {
        self.reader = self.kind.filter(|kind| self.message.is_stream(*kind)).map(EventReader::new);
        self.has_news = self.reader.is_some();
    }

    /// A DATA frame is complete.
    pub fn end_frame(&mut self) {
        if let Some(reader) = &mut self.reader
            && std::mem::take(&mut self.has_data)
        {
            reader.data(&[], true);
            self.has_news = true;
        }
    }

    /// Whether more of a stream has arrived that was not yet reported.
    pub fn has_news(&self) -> bool {
        self.has_news
    }

    /// Report how much of a stream has arrived, if there are news. `is_last`: its outcome follows.
    pub fn report_stream(&mut self, events: &mut Vec<Event>, is_last: bool) {
        if let Some(reader) = &self.reader
            && std::mem::take(&mut self.has_news)
        {
            let (status, body_length) = (self.message.status(), self.message.body_length());
            let so_far = StreamSoFar { status, body_length, events: reader.events() };
            events.push(Event::Stream { token: self.token, so_far, is_last });
        }
    }

    /// A valid field of the head or of the trailers arrived.
    pub fn field(&mut self, name: &[u8], value: &[u8]) {
        if let Some(fields) = &mut self.fields
            && self.message.status() == 0
            && !name.starts_with(b":")
        {
            fields.extend_from_slice(name);
            fields.extend_from_slice(b": ");
            fields.extend_from_slice(value);
            fields.push(b'\n');
        }
    }

    /// An interim answer's head is complete: its fields are not those of the answer.
    pub fn pass_over(&mut self) {
        if let Some(fields) = &mut self.fields {
            fields.clear();
        }
    }

    /// A piece of the body arrived.
    pub fn data(&mut self, bytes: &[u8]) -> Verdict {
        let verdict = self.message.data(bytes.len());
        if verdict != Verdict::Fine {
            return verdict;
        }
        if let Some(hash) = &mut self.hash {
            hash.update(bytes);
        }
        if let Some(reader) = &mut self.reader {
            reader.data(bytes, false);
            (self.has_news, self.has_data) = (true, true);
        }
        if let Some(kept) = &mut self.kept {
            if kept.len() + bytes.len() > MOST_KEPT_BYTES {
                return Verdict::Malformed(Rule::BodyTooLong);
            }
            kept.extend_from_slice(bytes);
        }
        Verdict::Fine
    }

    /// The peer has ended its side.
    pub fn answer(&mut self, events: &mut Vec<Event>) {
        let (status, body_length) = (self.message.status(), self.message.body_length());
        let grpc_status = self.message.grpc_status();
        let body_sha256 = self.hash.take().map(|hash| hash.finalize().into());
        let body = self.kept.take().map(Vec::into_boxed_slice);
        let counted = self.reader.as_mut().map(|reader| {
            let before = reader.events();
            reader.end();
            self.has_news |= reader.events() > before;
            reader.events()
        });
        let fields = self.fields.take().map(Vec::into_boxed_slice);
        self.report(events, |token| Event::Answer {
            token,
            status,
            grpc_status,
            body_length,
            body_sha256,
            events: counted,
            body,
            fields,
        });
    }

    /// Bytes of the request's body that are not yet sent.
    pub fn unsent(&self) -> usize {
        self.body.as_ref().map_or(0, |body| body.len() - self.sent)
    }

    /// Append the next `length` bytes of the body.
    pub fn send(&mut self, length: usize, out: &mut Vec<u8>) {
        if let Some(body) = &self.body {
            out.extend_from_slice(&body[self.sent..self.sent + length]);
            self.sent += length;
        }
    }
}
