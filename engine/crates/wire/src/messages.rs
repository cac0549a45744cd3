//! Which messages of a stream count, how much they hold, and which of them end a conversation.

use std::borrow::Cow;
use std::sync::{Mutex, PoisonError};

use memchr::memmem::Finder;
use regex::bytes::Regex;

use crate::json::Pointer;
use crate::scan;
use crate::timestamp::Timestamp;

/// The longest message that is looked at whole; of a longer one, its beginning is.
pub const MOST_MESSAGE_BYTES: usize = 1024 * 1024;

/// Which messages of a stream count, and what they hold.
#[derive(Clone, Debug, Default)]
pub struct MessageRules {
    /// Which count.
    pub counts: Counts,
    /// How much they hold.
    pub amount: Amount,
    /// Data of messages that end a conversation.
    pub last_data: Vec<Vec<u8>>,
    /// Types of server-sent events that end a conversation.
    pub last_events: Vec<Vec<u8>>,
    /// Messages that report an error, which makes the conversation wrong.
    pub errors: Vec<Counts>,
    /// Where each message that counts states the server's time.
    pub timestamp: Option<Timestamp>,
    /// Where each message that counts has a part of the text that is gathered.
    pub text: Option<Place>,
    /// After so many that count, no more are counted or read: what comes with the last of them depends on the reads.
    pub until: Option<u64>,
}

/// The time that a message states, in nanoseconds since 1970; or how a message begins that states none.
pub type MessageTime = Result<u64, String>;

/// The part of the text that a message has; or how a message begins that has none.
pub type MessageText = Result<String, String>;

/// What is read in the messages of a stream that count, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageValues {
    /// The times in them, if they are read.
    pub times: Vec<MessageTime>,
    /// The parts of the text, if it is gathered.
    pub texts: Vec<MessageText>,
    /// How the first message begins that reports an error.
    pub error: Option<String>,
}

/// Which messages count.
#[derive(Clone, Debug, Default)]
pub enum Counts {
    /// All.
    #[default]
    All,
    /// Those with a value at one of these places that is not null or empty.
    Json(Vec<Place>),
    /// Server-sent events of these types.
    Events(Vec<Vec<u8>>),
    /// Those in which this is found.
    Matching(Regex),
}

/// How much messages hold.
#[derive(Clone, Debug, Default)]
pub enum Amount {
    /// One each, so that nothing else is counted.
    #[default]
    One,
    /// The bytes of those that count.
    Bytes,
    /// The number at one of these places of each message.
    Each(Vec<Place>),
    /// The largest number at one of these places of any message: how much the conversation held so far.
    Total(Vec<Place>),
}

/// A place in a message of JSON.
#[derive(Clone, Debug)]
pub struct Place {
    pointer: Pointer,
    name: Finder<'static>,
}

impl Place {
    /// The place of this pointer.
    #[must_use]
    pub fn new(pointer: Pointer) -> Self {
        let name = pointer.steps().last().filter(|step| step.parse::<usize>().is_err());
        let name = Finder::new(name.map_or("", String::as_str)).into_owned();
        Self { pointer, name }
    }

    /// The content of the string there.
    fn string<'a>(&self, data: &'a [u8]) -> Option<Cow<'a, str>> {
        self.find(data).and_then(scan::string)
    }

    /// The text from the value on.
    fn find<'a>(&self, data: &'a [u8]) -> Option<&'a [u8]> {
        scan::may_have(&self.name, data).then(|| scan::seek(data, self.pointer.steps())).flatten()
    }
}

impl Counts {
    /// Those in which this regular expression is found.
    ///
    /// # Errors
    /// Why it is none.
    pub fn matching(text: &str) -> Result<Self, String> {
        Regex::new(text).map(Self::Matching).map_err(|why| why.to_string())
    }

    /// Whether a message counts.
    fn has(&self, event: &[u8], data: &[u8]) -> bool {
        match self {
            Self::All => true,
            Self::Json(places) => places.iter().any(|place| place.find(data).is_some_and(scan::is_something)),
            // An event that names no type has this one.
            Self::Events(names) => names.iter().any(|name| name == if event.is_empty() { b"message" } else { event }),
            Self::Matching(regex) => regex.is_match(data),
        }
    }

    /// What messages lack that do not count, in words.
    fn lacked(&self) -> String {
        let listed = |names: Vec<String>| names.join(" or ");
        match self {
            Self::All => "any data".to_owned(),
            Self::Json(places) => {
                format!("a value at {}", listed(places.iter().map(|place| place.pointer.to_string()).collect()))
            }
            Self::Events(names) => {
                format!("the type {}", listed(names.iter().map(|name| String::from_utf8_lossy(name).into()).collect()))
            }
            Self::Matching(regex) => format!("a match of {regex}"),
        }
    }
}

/// As much of a message as is shown.
const MOST_SHOWN: usize = 200;

/// The beginning of bytes, on a single line.
pub(crate) fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// The beginning of a message, as it is shown.
fn beginning(data: &[u8]) -> String {
    shown(&data[..data.len().min(MOST_SHOWN)])
}

fn first_number(places: &[Place], data: &[u8]) -> u64 {
    places.iter().find_map(|place| place.find(data).and_then(scan::number)).unwrap_or(0)
}

impl MessageRules {
    /// The same rules for as long as the process runs, so that a copy costs nothing. A job has few of them.
    #[must_use]
    pub fn keep(self) -> &'static Self {
        static KEPT: Mutex<Vec<(String, &'static MessageRules)>> = Mutex::new(Vec::new());
        let text = format!("{self:?}");
        let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, rules)) = kept.iter().find(|(known, _)| *known == text) {
            return rules;
        }
        let rules: &'static Self = Box::leak(Box::new(self));
        kept.push((text, rules));
        rules
    }

    /// Whether anything is read in messages.
    #[must_use]
    pub fn read_values(&self) -> bool {
        self.timestamp.is_some() || self.text.is_some() || !self.errors.is_empty()
    }

    /// Read a message.
    pub(crate) fn read(&self, event: &[u8], data: &[u8], counts: bool, values: &mut MessageValues) {
        if values.error.is_none() && self.errors.iter().any(|errors| errors.has(event, data)) {
            values.error = Some(beginning(data));
        }
        if counts {
            values.times.extend(self.time_in(data));
            values.texts.extend(self.text_in(data));
        }
    }

    /// The part of the text that a message has; `None` where none is gathered.
    #[must_use]
    pub fn text_in(&self, data: &[u8]) -> Option<MessageText> {
        let place = self.text.as_ref()?;
        if data.len() >= MOST_MESSAGE_BYTES {
            return Some(Ok(String::from_utf8_lossy(data).into())); // It was cut, and is too long for a text.
        }
        let text = place.string(data).filter(|text| !text.is_empty()).map(Cow::into_owned);
        Some(text.ok_or_else(|| beginning(data)))
    }

    /// The time that a message states; `None` where none is read.
    #[must_use]
    pub fn time_in(&self, data: &[u8]) -> Option<MessageTime> {
        let timestamp = self.timestamp.as_ref()?;
        Some(timestamp.read(data).ok_or_else(|| beginning(data)))
    }

    /// Why a stream without a message that counts is wrong; `first` is the beginning of its first message.
    #[must_use]
    pub fn missing(&self, seen: MessageCounts, first: &[u8]) -> String {
        if seen.aside == 0 {
            return format!("a stream without a message, in place of messages with {}", self.counts.lacked());
        }
        let none = self.none_of(seen.aside);
        if first.is_empty() {
            return format!("{none}: they have no data, as comments have none");
        }
        format!("{none}; the first was {}", shown(first))
    }

    /// What so many messages lacked, none of which counted.
    #[must_use]
    pub fn none_of(&self, messages: u64) -> String {
        format!("none of {messages} messages had {}", self.counts.lacked())
    }
}

impl PartialEq for MessageRules {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for MessageRules {}

/// The messages of a stream so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageCounts {
    /// Messages that count.
    pub counted: u64,
    /// Other messages, and server-sent events without data, such as comments.
    pub aside: u64,
    /// How much they hold.
    pub amount: u64,
    /// A message that ends a conversation has come.
    pub is_finished: bool,
}

impl MessageCounts {
    /// Count a message. `rules`: all count without them. `cut`: the bytes behind `data`, which are not looked at. Returns whether
    /// it counts.
    pub fn message(&mut self, rules: Option<&MessageRules>, event: &[u8], data: &[u8], cut: u64) -> bool {
        let Some(rules) = rules else {
            self.counted += 1;
            return true;
        };
        self.is_finished |= rules.last_data.iter().any(|last| last == data)
            || (!event.is_empty() && rules.last_events.iter().any(|last| last == event));
        if rules.until.is_some_and(|until| self.counted >= until) {
            return false;
        }
        let counts = rules.counts.has(event, data);
        if counts {
            self.counted += 1;
        } else {
            self.aside += 1;
        }
        match &rules.amount {
            Amount::One => {}
            Amount::Bytes => self.amount += if counts { data.len() as u64 + cut } else { 0 },
            Amount::Each(places) => self.amount += first_number(places, data),
            Amount::Total(places) => self.amount = self.amount.max(first_number(places, data)),
        }
        counts
    }
}
