//! Answers that are streams of messages, which are counted as they arrive.

use memchr::{memchr, memchr2};

use crate::messages::{MOST_MESSAGE_BYTES, MessageCounts, MessageRules, MessageValues};

/// What an event of a stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A server-sent event with data (HTML, section 9.2.6). Comments, and events without data, are none.
    Sse,
    /// A line that is not blank.
    Ndjson,
    /// A chunk of the transfer coding; in HTTP/2 a DATA frame that is not empty.
    Chunks,
    /// A message on a WebSocket, which no body has.
    Messages,
}

impl EventKind {
    /// A stream of these events, in words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Sse => "server-sent events",
            Self::Ndjson => "NDJSON",
            Self::Chunks => "chunks",
            Self::Messages => "messages",
        }
    }

    /// Why an answer is no such stream.
    #[must_use]
    pub const fn missing(self) -> &'static str {
        match self {
            Self::Sse => "an answer whose Content-Type is not text/event-stream, or which is compressed",
            Self::Ndjson => "an answer whose Content-Type is not that of NDJSON, or which is compressed",
            Self::Chunks => "an answer that is not sent in chunks",
            Self::Messages => "an answer that opens no WebSocket",
        }
    }
}

/// What the head of an answer says of its body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BodyKind {
    /// The kind of events that its Content-Type names.
    pub events: Option<EventKind>,
    /// It has a Content-Encoding, so that its events cannot be read.
    pub is_encoded: bool,
    /// It is sent in chunks.
    pub is_chunked: bool,
}

impl BodyKind {
    /// Read a Content-Type.
    pub fn content_type(&mut self, value: &[u8]) {
        const NDJSON: [&[u8]; 6] = [
            b"application/x-ndjson",
            b"application/ndjson",
            b"application/jsonl",
            b"application/x-jsonlines",
            b"application/jsonlines",
            b"application/stream+json",
        ];
        let end = value.iter().position(|byte| *byte == b';').unwrap_or(value.len());
        let essence = value[..end].trim_ascii();
        self.events = if essence.eq_ignore_ascii_case(b"text/event-stream") {
            Some(EventKind::Sse)
        } else if NDJSON.iter().any(|name| essence.eq_ignore_ascii_case(name)) {
            Some(EventKind::Ndjson)
        } else {
            None
        };
    }

    /// Read a Content-Encoding.
    pub fn content_encoding(&mut self, value: &[u8]) {
        self.is_encoded |= !value.trim_ascii().is_empty() && !value.trim_ascii().eq_ignore_ascii_case(b"identity");
    }

    /// Whether it is a stream of these events.
    #[must_use]
    pub fn is(self, kind: EventKind) -> bool {
        match kind {
            EventKind::Chunks => self.is_chunked,
            EventKind::Messages => false,
            kind => self.events == Some(kind) && !self.is_encoded,
        }
    }
}

/// Reads the messages of a body that arrives in pieces. What is counted does not depend on how the body is cut.
#[derive(Clone, Debug)]
pub struct EventReader {
    kind: EventKind,
    /// Which messages count, and what they hold; all count without them.
    rules: Option<&'static MessageRules>,
    /// The line, or chunk, whose end has not arrived: as much of it as is looked at.
    part: Vec<u8>,
    /// The bytes of it that are not.
    part_cut: u64,
    /// The data and the type of the present server-sent event, if rules look at them.
    data: Vec<u8>,
    /// The bytes of its data that are not looked at.
    data_cut: u64,
    event: Vec<u8>,
    /// What arrived of the present server-sent event.
    arrived: Lines,
    /// The last byte was a carriage return, so that a line feed that follows belongs to it.
    after_cr: bool,
    /// No line has ended.
    is_first_line: bool,
    counts: MessageCounts,
    /// What was read in messages, and not yet taken.
    values: MessageValues,
    /// The beginning of the first message, while none counts.
    first: Vec<u8>,
}

/// The lines of a server-sent event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lines {
    None,
    /// Comments, or fields without data.
    Other,
    Data,
}

/// As much of a line as says what it is, and of a first message as is shown.
const LOOKED_AT: usize = 16;
const SHOWN: usize = 200;
/// Capacity that a stream keeps between its messages.
const IDLE: usize = 4 * 1024;
const MARK: [u8; 3] = [0xef, 0xbb, 0xbf];

impl EventReader {
    /// A reader at the beginning of a body.
    #[must_use]
    pub const fn new(kind: EventKind, rules: Option<&'static MessageRules>) -> Self {
        Self {
            kind,
            rules,
            part: Vec::new(),
            part_cut: 0,
            data: Vec::new(),
            data_cut: 0,
            event: Vec::new(),
            arrived: Lines::None,
            after_cr: false,
            is_first_line: true,
            counts: MessageCounts { counted: 0, aside: 0, amount: 0, is_finished: false },
            values: MessageValues { times: Vec::new(), texts: Vec::new(), error: None },
            first: Vec::new(),
        }
    }

    /// The messages that were complete so far.
    #[must_use]
    pub const fn counts(&self) -> MessageCounts {
        self.counts
    }

    /// Take what the rules have read in messages that counted since the last call.
    #[must_use]
    pub fn take_values(&mut self) -> MessageValues {
        std::mem::take(&mut self.values)
    }

    /// The beginning of the first message, if none counted so far.
    #[must_use]
    pub fn first(&self) -> &[u8] {
        if self.counts.counted == 0 { &self.first } else { &[] }
    }

    /// A piece of the body arrived. `ends`: a chunk or frame ends with it.
    pub fn data(&mut self, piece: &[u8], ends: bool) {
        match self.kind {
            EventKind::Sse => self.lines(piece),
            EventKind::Ndjson => self.rows(piece),
            EventKind::Chunks => {
                if self.rules.is_some() {
                    self.keep(piece);
                }
                if ends {
                    let (chunk, cut) = self.take_part();
                    self.message(&chunk, cut);
                    self.part = cleared(chunk);
                }
            }
            EventKind::Messages => {}
        }
    }

    /// The body is complete. A last line without an end is a line; a server-sent event without its blank line is none.
    pub fn end(&mut self) {
        if self.kind == EventKind::Ndjson {
            self.rows(b"\n");
        }
    }

    /// Keep a part of a line or chunk.
    fn keep(&mut self, bytes: &[u8]) {
        let most = if self.rules.is_some() { MOST_MESSAGE_BYTES } else { LOOKED_AT };
        let kept = bytes.len().min(most.saturating_sub(self.part.len()));
        self.part.extend_from_slice(&bytes[..kept]);
        self.part_cut += (bytes.len() - kept) as u64;
    }

    /// Take the line or chunk, which is complete, and the number of its bytes that are not looked at.
    fn take_part(&mut self) -> (Vec<u8>, u64) {
        (std::mem::take(&mut self.part), std::mem::take(&mut self.part_cut))
    }

    fn lines(&mut self, mut piece: &[u8]) {
        if !piece.is_empty() && std::mem::take(&mut self.after_cr) {
            piece = piece.strip_prefix(b"\n").unwrap_or(piece);
        }
        while let Some(end) = memchr2(b'\r', b'\n', piece) {
            let (line, rest) = piece.split_at(end);
            piece = match rest {
                [b'\r', b'\n', rest @ ..] => rest,
                [b'\r'] => {
                    self.after_cr = true;
                    &[]
                }
                _ => &rest[1..],
            };
            if self.part.is_empty() {
                self.line(line, 0);
            } else {
                self.keep(line);
                let (whole, cut) = self.take_part();
                self.line(&whole, cut);
                self.part = cleared(whole);
            }
        }
        self.keep(piece);
    }

    /// A line of a server-sent event is complete. `cut`: the bytes behind it, which are not looked at.
    fn line(&mut self, line: &[u8], cut: u64) {
        let is_first = std::mem::take(&mut self.is_first_line);
        let line = if is_first { line.strip_prefix(&MARK).unwrap_or(line) } else { line };
        if line.is_empty() {
            return self.dispatch();
        }
        let (name, value) = match memchr(b':', line) {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &line[line.len()..]),
        };
        match name {
            b"data" => {
                if self.rules.is_some() {
                    if self.arrived == Lines::Data {
                        self.data.push(b'\n');
                    }
                    let value = value.strip_prefix(b" ").unwrap_or(value);
                    let kept = value.len().min(MOST_MESSAGE_BYTES.saturating_sub(self.data.len()));
                    self.data.extend_from_slice(&value[..kept]);
                    self.data_cut += cut + (value.len() - kept) as u64;
                }
                self.arrived = Lines::Data;
                return;
            }
            b"event" if self.rules.is_some() => {
                self.event.clear();
                self.event.extend_from_slice(value.strip_prefix(b" ").unwrap_or(value));
            }
            _ => {}
        }
        if self.arrived == Lines::None {
            self.arrived = Lines::Other;
        }
    }

    /// A blank line ends a server-sent event.
    fn dispatch(&mut self) {
        match std::mem::replace(&mut self.arrived, Lines::None) {
            Lines::None => {}
            Lines::Other => self.counts.aside += 1,
            Lines::Data => {
                let (data, cut) = (std::mem::take(&mut self.data), std::mem::take(&mut self.data_cut));
                self.message(&data, cut);
                self.data = cleared(data);
            }
        }
        self.event.clear();
    }

    fn rows(&mut self, mut piece: &[u8]) {
        while let Some(end) = memchr(b'\n', piece) {
            let row = &piece[..end];
            if self.part.is_empty() {
                self.row(row, 0);
            } else {
                self.keep(row);
                let (whole, cut) = self.take_part();
                self.row(&whole, cut);
                self.part = cleared(whole);
            }
            piece = &piece[end + 1..];
        }
        // White space does not make a line, however much there is.
        let from = if self.part.is_empty() { piece.iter().position(|byte| !is_blank(*byte)) } else { Some(0) };
        if let Some(from) = from {
            self.keep(&piece[from..]);
        }
    }

    fn row(&mut self, row: &[u8], cut: u64) {
        let Some(from) = row.iter().position(|byte| !is_blank(*byte)) else {
            return;
        };
        let row = &row[from..];
        self.message(row.strip_suffix(b"\r").unwrap_or(row), cut);
    }

    /// A message is complete. `cut`: the bytes behind it, which are not looked at.
    fn message(&mut self, data: &[u8], cut: u64) {
        let is_over = self.rules.and_then(|rules| rules.until).is_some_and(|until| self.counts.counted >= until);
        let counts = self.counts.message(self.rules, &self.event, data, cut);
        if !is_over && let Some(rules) = self.rules {
            rules.read(&self.event, data, counts, &mut self.values);
        }
        if !counts && self.counts.counted == 0 && self.first.is_empty() {
            self.first.extend_from_slice(&data[..data.len().min(SHOWN)]);
        }
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r')
}

/// An empty buffer that keeps a little memory.
fn cleared(mut buffer: Vec<u8>) -> Vec<u8> {
    buffer.clear();
    buffer.shrink_to(IDLE);
    buffer
}
