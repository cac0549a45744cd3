//! A request in flight.

use std::sync::Arc;

use redline_wire::{KeptBody, MessageValues, StreamSoFar};
use sha2::{Digest, Sha256};

use crate::MOST_KEPT_BYTES;
use crate::event::{BodyOptions, Event};
use crate::message::{Message, Verdict};
use crate::rule::Rule;
use crate::watch::Watch;

/// An open request, until its stream is closed.
#[derive(Debug, Default)]
pub struct Slot {
    token: u32,
    /// The outcome was reported, or the request was cancelled.
    reported: bool,
    pub message: Message,
    hash: Option<Sha256>,
    kept: Option<Vec<u8>>,
    cut: bool,
    /// What else is kept of the answer: mostly nothing.
    watch: Option<Box<Watch>>,
    /// The body, and how much of it was sent.
    body: Option<Arc<[u8]>>,
    sent: usize,
}

impl Slot {
    pub fn new(token: u32, message: Message, body: Option<Arc<[u8]>>, options: BodyOptions) -> Self {
        let hash = options.hash.then(Sha256::new);
        let kept = options.keep.any().then(Vec::new);
        Self {
            token,
            message,
            hash,
            kept,
            cut: options.keep == KeptBody::Beginning,
            watch: Watch::of(options),
            body,
            ..Self::default()
        }
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
        self.watch = None;
    }

    /// The head of the answer is complete, which may begin a stream whose events are counted.
    pub fn begin_stream(&mut self) {
        if let Some(watch) = &mut self.watch {
            watch.begin_stream();
        }
    }

    /// A DATA frame is complete.
    pub fn end_frame(&mut self) {
        if let Some(watch) = &mut self.watch {
            watch.end_frame();
        }
    }

    /// Whether more of a stream has arrived that was not yet reported.
    pub fn has_news(&self) -> bool {
        self.watch.as_ref().is_some_and(|watch| watch.has_news())
    }

    /// The fields of the head that are kept, until the answer is complete.
    pub fn fields(&self) -> &[u8] {
        self.watch.as_ref().map_or(&[], |watch| watch.fields())
    }

    /// Report how much of a stream has arrived, if there are news. `is_last`: its outcome follows.
    pub fn report_stream(&mut self, events: &mut Vec<Event>, is_last: bool) {
        if let Some(counted) = self.watch.as_mut().and_then(|watch| watch.take_news()) {
            let (status, body_length) = (self.message.status(), self.message.body_length());
            let so_far = StreamSoFar { status, body_length, messages: counted };
            let values = self.watch.as_mut().map_or_else(MessageValues::default, |watch| watch.take_values());
            events.push(Event::Stream { token: self.token, so_far, values, is_last });
        }
    }

    /// A valid field of the head or of the trailers arrived.
    pub fn field(&mut self, name: &[u8], value: &[u8]) {
        if let Some(watch) = &mut self.watch
            && self.message.status() == 0
        {
            watch.field(name, value);
        }
    }

    /// An interim answer's head is complete: its fields are not those of the answer.
    pub fn pass_over(&mut self) {
        if let Some(watch) = &mut self.watch {
            watch.pass_over();
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
        if let Some(watch) = &mut self.watch {
            watch.data(bytes);
        }
        if let Some(kept) = &mut self.kept {
            let room = MOST_KEPT_BYTES - kept.len();
            if bytes.len() > room && self.cut {
                kept.extend_from_slice(&bytes[..room]);
                return Verdict::Fine;
            }
            if bytes.len() > room {
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
        let (counted, fields) = self.watch.as_mut().map_or((None, None), |watch| watch.end());
        let body = self.kept.take().map(Vec::into_boxed_slice);
        let body = body.or_else(|| self.watch.as_ref().and_then(|watch| watch.shown()));
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
