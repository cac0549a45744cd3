//! What is kept of an answer only where it is requested: its events as they come, and the fields of its head.

use redline_wire::{BodyKind, EventKind, EventReader, KeptFields, MessageCounts, MessageRules, MessageValues};

use crate::event::BodyOptions;

/// What is kept of an answer.
#[derive(Debug, Default)]
pub struct Watch {
    /// The events to count, and their reader once the head says that they come.
    kind: Option<EventKind>,
    rules: Option<&'static MessageRules>,
    reader: Option<EventReader>,
    /// What the head says of the body, which is sent in frames.
    body: BodyKind,
    /// What arrived of the stream was not yet reported.
    has_news: bool,
    /// The present DATA frame has data.
    has_data: bool,
    /// The fields of the head that are kept, as lines.
    keeps: KeptFields,
    fields: Vec<u8>,
    /// The beginning of a body that is not the stream that was expected.
    began: Vec<u8>,
}

/// How much is kept of an answer that is not the stream that was expected.
const MOST_SHOWN: usize = 200;

impl Watch {
    /// `None` if these options keep nothing.
    pub fn of(options: BodyOptions) -> Option<Box<Self>> {
        (options.fields != KeptFields::None || options.events.is_some()).then(|| {
            let (kind, rules, keeps) = (options.events, options.messages, options.fields);
            Box::new(Self { kind, rules, keeps, ..Self::default() })
        })
    }

    /// A valid field of a head arrived.
    #[cold]
    pub fn field(&mut self, name: &[u8], value: &[u8]) {
        match name {
            b"content-type" => self.body.content_type(value),
            b"content-encoding" => self.body.content_encoding(value),
            _ => {}
        }
        let is_kept = match self.keeps {
            KeptFields::None => false,
            KeptFields::SetCookie => name == b"set-cookie",
            KeptFields::All => !name.starts_with(b":"),
        };
        if is_kept {
            self.fields.extend_from_slice(name);
            self.fields.extend_from_slice(b": ");
            self.fields.extend_from_slice(value);
            self.fields.push(b'\n');
        }
    }

    /// The head was that of an interim answer.
    #[cold]
    pub fn pass_over(&mut self) {
        self.body = BodyKind::default();
        self.fields.clear();
    }

    /// The head is complete, which may begin a stream whose events are counted.
    #[cold]
    pub fn begin_stream(&mut self) {
        let body = BodyKind { is_chunked: true, ..self.body };
        self.reader = self.kind.filter(|kind| body.is(*kind)).map(|kind| EventReader::new(kind, self.rules));
        self.has_news = self.reader.is_some();
    }

    /// A piece of the body arrived.
    #[cold]
    pub fn data(&mut self, bytes: &[u8]) {
        if let Some(reader) = &mut self.reader {
            reader.data(bytes, false);
            (self.has_news, self.has_data) = (true, true);
        } else if self.kind.is_some() {
            let room = MOST_SHOWN.saturating_sub(self.began.len());
            self.began.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
    }

    /// A DATA frame is complete.
    #[cold]
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

    /// The events so far, if there are news of them.
    #[cold]
    pub fn take_news(&mut self) -> Option<MessageCounts> {
        let has_news = std::mem::take(&mut self.has_news);
        self.reader.as_ref().filter(|_| has_news).map(EventReader::counts)
    }

    /// Take what was read in messages that counted since the last call.
    #[cold]
    pub fn take_values(&mut self) -> MessageValues {
        self.reader.as_mut().map_or_else(MessageValues::default, EventReader::take_values)
    }

    /// The fields that are kept, until the answer is complete.
    pub fn fields(&self) -> &[u8] {
        &self.fields
    }

    /// What is shown of a stream that is not as expected: its first message if none counted, or the beginning of what is none.
    pub fn shown(&self) -> Option<Box<[u8]>> {
        let shown = self.reader.as_ref().map_or(&*self.began, |reader| reader.first());
        (!shown.is_empty()).then(|| shown.into())
    }

    /// The answer is complete. Returns the messages in it, if it was a stream of them, and its fields, if any were kept.
    #[cold]
    pub fn end(&mut self) -> (Option<MessageCounts>, Option<Box<[u8]>>) {
        let counted = self.reader.as_mut().map(|reader| {
            let before = reader.counts();
            reader.end();
            self.has_news |= reader.counts() != before;
            reader.counts()
        });
        let fields = std::mem::take(&mut self.fields);
        (counted, (!fields.is_empty()).then(|| fields.into_boxed_slice()))
    }
}
