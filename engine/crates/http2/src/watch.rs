//! What is kept of an answer only where it is requested: its events as they come, and the fields of its head.

use redline_wire::{BodyKind, EventKind, EventReader, KeptFields};

use crate::event::BodyOptions;

/// What is kept of an answer.
#[derive(Debug, Default)]
pub struct Watch {
    /// The events to count, and their reader once the head says that they come.
    kind: Option<EventKind>,
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
}

impl Watch {
    /// `None` if these options keep nothing.
    pub fn of(options: BodyOptions) -> Option<Box<Self>> {
        (options.fields != KeptFields::None || options.events.is_some())
            .then(|| Box::new(Self { kind: options.events, keeps: options.fields, ..Self::default() }))
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
        self.reader = self.kind.filter(|kind| body.is(*kind)).map(EventReader::new);
        self.has_news = self.reader.is_some();
    }

    /// A piece of the body arrived.
    #[cold]
    pub fn data(&mut self, bytes: &[u8]) {
        if let Some(reader) = &mut self.reader {
            reader.data(bytes, false);
            (self.has_news, self.has_data) = (true, true);
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
    pub fn take_news(&mut self) -> Option<u64> {
        let has_news = std::mem::take(&mut self.has_news);
        self.reader.as_ref().filter(|_| has_news).map(EventReader::events)
    }

    /// The answer is complete. Returns how many events were in it, if it was a stream of them, and its fields, if any
    /// were kept.
    #[cold]
    pub fn end(&mut self) -> (Option<u64>, Option<Box<[u8]>>) {
        let counted = self.reader.as_mut().map(|reader| {
            let before = reader.events();
            reader.end();
            self.has_news |= reader.events() > before;
            reader.events()
        });
        let fields = std::mem::take(&mut self.fields);
        (counted, (!fields.is_empty()).then(|| fields.into_boxed_slice()))
    }
}
