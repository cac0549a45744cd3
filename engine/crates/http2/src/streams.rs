//! The streams of one connection, as nghttp2 reports them.

use redline_wire::Record;

use crate::event::Event;
use crate::message::Verdict;
use crate::pipe::Pipe;
use crate::rule::Rule;
use crate::slot::Slot;

/// An error code (RFC 9113, section 7).
const REFUSED_STREAM: u32 = 7;

/// The index of a request among [`Streams`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place(pub u32);

/// What to do with a stream that the peer has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answered {
    Fine,
    /// The rest of the request's body need not be sent.
    Early,
    Malformed,
}

/// The requests in flight, and the events and bytes that were not yet taken.
#[derive(Debug, Default)]
pub struct Streams {
    /// Requests with the numbers of their streams; 0 for a free slot.
    slots: Vec<(i32, Slot)>,
    free: Vec<u32>,
    recent: Place,
    /// The answers whose head came with the present bytes.
    begun: Vec<(Place, u32)>,
    /// The streams of events of which more came with the present bytes.
    news: Vec<Place>,
    pub events: Vec<Event>,
    pub out: Vec<u8>,
    /// The length of `out` at which bodies pause.
    pub out_limit: usize,
    /// The peer sent GOAWAY.
    pub going: bool,
    /// The peer's SETTINGS have arrived.
    pub is_settled: bool,
    /// The bytes of the stream that carries another protocol, if one does.
    pub pipe: Option<Box<Pipe>>,
    /// The record of the answer on the only stream, if it is recorded.
    pub record: Option<Box<Record>>,
}

impl Streams {
    /// Requests whose streams are not closed.
    pub fn count(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether part of an answer that is not complete has arrived.
    pub fn is_answering(&self) -> bool {
        self.slots.iter().any(|(stream, slot)| *stream != 0 && slot.message.has_begun())
    }

    /// Report the answers whose head came with the present bytes, and whose end did not.
    pub fn report_begun(&mut self) {
        let (slots, events) = (&self.slots, &mut self.events);
        let is_open = |place: Place, token| {
            let (stream, slot) = &slots[place.0 as usize];
            *stream != 0 && slot.pending() == Some(token)
        };
        let open = self.begun.drain(..).filter(|(place, token)| is_open(*place, *token));
        events.extend(open.map(|(_, token)| Event::Begun { token }));
        for place in self.news.drain(..) {
            let (stream, slot) = &mut self.slots[place.0 as usize];
            if *stream != 0 && slot.pending().is_some() {
                slot.report_stream(&mut self.events, false);
            }
        }
    }

    /// A request is about to be opened.
    pub fn add(&mut self, slot: Slot) -> Place {
        if let Some(place) = self.free.pop() {
            self.slots[place as usize] = (0, slot);
            return Place(place);
        }
        self.slots.push((0, slot));
        Place(self.slots.len() as u32 - 1)
    }

    /// Set the number of a request's stream, now that it is known.
    pub fn set_stream(&mut self, place: Place, stream: i32) {
        self.slots[place.0 as usize].0 = stream;
    }

    /// Free the place for another request.
    pub fn remove(&mut self, place: Place) {
        if let Some(pipe) = self.pipe_at(place) {
            pipe.close();
        }
        self.slots[place.0 as usize] = (0, Slot::default());
        self.free.push(place.0);
    }

    /// The place of a stream that nghttp2 does not know.
    fn find(&self, stream: i32) -> Option<Place> {
        self.slots.iter().position(|slot| slot.0 == stream).map(|place| Place(place as u32))
    }

    /// Cancel the request. Returns its stream.
    pub fn cancel(&mut self, token: u32) -> Option<i32> {
        let (stream, slot) = self.slots.iter_mut().find(|(stream, s)| *stream != 0 && s.pending() == Some(token))?;
        slot.forget();
        Some(*stream)
    }

    /// The status of the answer to a request, until it is complete; 0 before it.
    pub fn status(&self, token: u32) -> u16 {
        let slot = self.slots.iter().find(|(stream, slot)| *stream != 0 && slot.pending() == Some(token));
        slot.map_or(0, |(_, slot)| slot.message.status())
    }

    /// The fields that are kept of the answer to a request, until it is complete.
    pub fn fields(&self, token: u32) -> &[u8] {
        let slot = self.slots.iter().find(|(stream, slot)| *stream != 0 && slot.pending() == Some(token));
        slot.map_or(&[], |(_, slot)| slot.fields())
    }

    fn slot(&mut self, place: Place) -> &mut Slot {
        &mut self.slots[place.0 as usize].1
    }

    /// The place of this stream, if the last frame was on it too: most frames follow a frame of the same stream.
    pub fn recent(&self, stream: i32) -> Option<Place> {
        let recent = self.slots.get(self.recent.0 as usize)?;
        (recent.0 == stream && stream != 0).then_some(self.recent)
    }

    pub fn set_recent(&mut self, place: Place) {
        self.recent = place;
    }

    pub fn begin_head(&mut self, place: Place) {
        self.slot(place).message.begin_head();
    }

    #[inline]
    pub fn field(&mut self, place: Place, name: &[u8], value: &[u8]) -> Verdict {
        let slot = self.slot(place);
        let verdict = slot.message.field(name, value);
        if verdict == Verdict::Fine {
            slot.field(name, value);
        }
        if let Some(record) = &mut self.record
            && !name.starts_with(b":")
        {
            record.field(name, value);
        }
        if let Verdict::Malformed(rule) = verdict {
            self.malformed(place, rule, Some(shown(name)));
        }
        verdict
    }

    #[inline]
    pub fn end_head(&mut self, place: Place, last: bool) -> Verdict {
        let slot = &mut self.slots[place.0 as usize].1;
        let is_answer = slot.message.status() == 0;
        let verdict = slot.message.end_head(last);
        if let Some(record) = &mut self.record {
            record.end_head(slot.message.coming());
        }
        if is_answer && slot.message.status() == 0 {
            slot.pass_over();
        }
        if is_answer
            && slot.message.status() != 0
            && let Some(token) = slot.pending()
        {
            if !last {
                self.begun.push((place, token));
            }
            slot.begin_stream();
            if slot.has_news() {
                self.news.push(place);
            }
        }
        self.judged(place, verdict)
    }

    #[inline]
    pub fn data(&mut self, place: Place, bytes: &[u8]) -> Verdict {
        let slot = self.slot(place);
        let had_news = slot.has_news();
        let verdict = if slot.pending().is_some() { slot.data(bytes) } else { Verdict::Fine };
        if slot.has_news() && !had_news {
            self.news.push(place);
        }
        if let Some(pipe) = self.pipe_at(place) {
            pipe.received.extend_from_slice(bytes);
        }
        if let Some(record) = &mut self.record {
            record.data(bytes);
        }
        self.judged(place, verdict)
    }

    /// A DATA frame is complete.
    #[inline]
    pub fn end_frame(&mut self, place: Place) {
        let slot = self.slot(place);
        let had_news = slot.has_news();
        slot.end_frame();
        if slot.has_news() && !had_news {
            self.news.push(place);
        }
    }

    fn judged(&mut self, place: Place, verdict: Verdict) -> Verdict {
        if let Verdict::Malformed(rule) = verdict {
            self.malformed(place, rule, None);
        }
        verdict
    }

    pub fn malformed(&mut self, place: Place, rule: Rule, field: Option<Box<str>>) {
        let slot = &mut self.slots[place.0 as usize].1;
        slot.report(&mut self.events, |token| Event::Malformed { token, rule, field });
    }

    /// The peer has ended its side.
    #[inline]
    pub fn answered(&mut self, place: Place) -> Answered {
        let slot = &mut self.slots[place.0 as usize].1;
        if let Verdict::Malformed(rule) = slot.message.end() {
            self.malformed(place, rule, None);
            return Answered::Malformed;
        }
        slot.answer(&mut self.events);
        if slot.unsent() > 0 { Answered::Early } else { Answered::Fine }
    }

    pub fn reset(&mut self, place: Place, code: u32) {
        self.slots[place.0 as usize].1.report(&mut self.events, |token| match code {
            REFUSED_STREAM => Event::Unprocessed { token },
            code => Event::Refused { token, code },
        });
    }

    /// The stream is closed. If nothing was reported before, the cause is the peer's GOAWAY or our reset.
    pub fn closed(&mut self, place: Place, stream: i32, code: u32) {
        if self.slots[place.0 as usize].0 != stream {
            return; // Its request could not be sent, which was reported before.
        }
        self.slots[place.0 as usize].1.report(&mut self.events, |token| match code {
            REFUSED_STREAM => Event::Unprocessed { token },
            _ => Event::Malformed { token, rule: Rule::Frame, field: None },
        });
        self.remove(place);
    }

    /// The request could not be sent.
    pub fn not_sent(&mut self, stream: i32) {
        let Some(place) = self.find(stream) else { return };
        self.slots[place.0 as usize].1.report(&mut self.events, |token| Event::Unprocessed { token });
        self.remove(place);
    }

    pub fn go_away(&mut self, last: i32, code: u32) {
        self.going = true;
        self.events.push(Event::GoAway { last, code });
    }

    pub fn unsent(&mut self, place: Place) -> usize {
        self.slot(place).unsent()
    }

    /// The bytes of a stream, if it carries another protocol.
    #[inline]
    pub fn pipe_at(&mut self, place: Place) -> Option<&mut Pipe> {
        self.pipe.as_deref_mut().filter(|pipe| pipe.place == place)
    }

    /// Append a DATA frame, unless enough bytes wait to be taken. Returns whether it was appended.
    pub fn send(&mut self, place: Place, head: &[u8], length: usize) -> bool {
        if self.out.len() >= self.out_limit {
            return false;
        }
        self.out.extend_from_slice(head);
        match self.pipe.as_deref_mut().filter(|pipe| pipe.place == place) {
            Some(pipe) => pipe.send(length, &mut self.out),
            None => self.slots[place.0 as usize].1.send(length, &mut self.out),
        }
        true
    }
}

/// A field's name for a message: unprintable bytes are escaped, and a long name is cut.
fn shown(name: &[u8]) -> Box<str> {
    const MOST: usize = 64;
    name[..name.len().min(MOST)].escape_ascii().to_string().into()
}
