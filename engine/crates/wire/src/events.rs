//! Answers that are streams of events, which are counted as they arrive.

/// What an event of a stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A server-sent event with data (HTML, section 9.2.6). Comments, and events without data, are none.
    Sse,
    /// A line that is not blank.
    Ndjson,
    /// A chunk of the transfer coding; in HTTP/2 a DATA frame that is not empty.
    Chunks,
}

impl EventKind {
    /// A stream of these events, in words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Sse => "server-sent events",
            Self::Ndjson => "NDJSON",
            Self::Chunks => "chunks",
        }
    }

    /// Why an answer is no such stream.
    #[must_use]
    pub const fn missing(self) -> &'static str {
        match self {
            Self::Sse => "an answer whose Content-Type is not text/event-stream, or which is compressed",
            Self::Ndjson => "an answer whose Content-Type is not that of NDJSON, or which is compressed",
            Self::Chunks => "an answer that is not sent in chunks",
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
            kind => self.events == Some(kind) && !self.is_encoded,
        }
    }
}

/// Counts the events of a body that arrives in pieces. The count does not depend on how the body is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventReader {
    kind: EventKind,
    line: Line,
    /// The last byte was a carriage return, so that a line feed that follows belongs to it.
    after_cr: bool,
    /// A line of the present server-sent event has data.
    has_data: bool,
    /// A byte order mark may begin the stream; how much of it has arrived.
    mark: u8,
    events: u64,
}

/// How much of the present line has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    /// Nothing; for NDJSON also when there is only white space.
    Blank,
    /// So many bytes of the name `data`.
    Name(u8),
    /// A field `data`.
    Data,
    /// Another field, or a comment; for NDJSON anything.
    Other,
}

const NAME: &[u8] = b"data";
const MARK: [u8; 3] = [0xef, 0xbb, 0xbf];

impl EventReader {
    /// A reader at the beginning of a body.
    #[must_use]
    pub const fn new(kind: EventKind) -> Self {
        Self { kind, line: Line::Blank, after_cr: false, has_data: false, mark: 0, events: 0 }
    }

    /// The events that were complete so far.
    #[must_use]
    pub const fn events(&self) -> u64 {
        self.events
    }

    /// A piece of the body arrived. `ends`: a chunk or frame ends with it.
    pub fn data(&mut self, piece: &[u8], ends: bool) {
        match self.kind {
            EventKind::Sse => piece.iter().for_each(|byte| self.sse(*byte)),
            EventKind::Ndjson => piece.iter().for_each(|byte| self.ndjson(*byte)),
            EventKind::Chunks => self.events += u64::from(ends),
        }
    }

    /// The body is complete. A last line without an end is a line; a server-sent event without its blank line is none.
    pub fn end(&mut self) {
        if self.kind == EventKind::Ndjson {
            self.ndjson(b'\n');
        }
    }

    fn sse(&mut self, byte: u8) {
        if self.mark < 3 {
            if byte == MARK[usize::from(self.mark)] {
                self.mark += 1;
                return;
            }
            // A part of a mark is the beginning of a field that is not `data`.
            if self.mark > 0 {
                self.line = Line::Other;
            }
            self.mark = 3;
        }
        if byte == b'\n' && std::mem::take(&mut self.after_cr) {
            return;
        }
        self.after_cr = byte == b'\r';
        if !matches!(byte, b'\r' | b'\n') {
            self.line = match self.line {
                Line::Blank if byte == NAME[0] => Line::Name(1),
                Line::Name(4) if byte == b':' => Line::Data,
                Line::Name(known @ 1..=3) if byte == NAME[usize::from(known)] => Line::Name(known + 1),
                Line::Data => Line::Data,
                _ => Line::Other,
            };
            return;
        }
        match std::mem::replace(&mut self.line, Line::Blank) {
            Line::Blank => self.events += u64::from(std::mem::take(&mut self.has_data)),
            Line::Data | Line::Name(4) => self.has_data = true,
            Line::Name(_) | Line::Other => {}
        }
    }

    fn ndjson(&mut self, byte: u8) {
        match byte {
            b'\n' => self.events += u64::from(std::mem::replace(&mut self.line, Line::Blank) != Line::Blank),
            b' ' | b'\t' | b'\r' => {}
            _ => self.line = Line::Other,
        }
    }
}
