//! The expected answer.

use std::sync::LazyLock;

use memchr::memmem::Finder;
use serde_json::value::RawValue;
use serde_json::{Number, Value};

use crate::answer::{Answer, KeptBody, KeptFields, ReadOptions};
use crate::events::EventKind;
use crate::json::{NotJson, Pointer};
use crate::messages::{MessageCounts, MessageRules, shown};

/// What must stand at a place of the body, which is JSON.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Where in the body.
    pub pointer: Pointer,
    /// What must stand there.
    pub stands: Stands,
}

/// What must stand at a place of a body of JSON.
#[derive(Clone, Debug, PartialEq)]
pub enum Stands {
    /// This value. Numbers are equal when their values are: 3 is 3.0.
    Equal(Value),
    /// Any value, null included.
    Present,
    /// Nothing.
    Absent,
    /// Nothing, null, or an empty text, list or object.
    Empty,
}

/// The expected answer; what is absent is not checked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Expect {
    /// The status.
    pub status: u16,
    /// Other statuses that are as right.
    pub also: Vec<u16>,
    /// Bytes of the body, without its transfer coding.
    pub body_length: Option<u64>,
    /// SHA-256 of the body.
    pub body_sha256: Option<[u8; 32]>,
    /// Values in the body.
    pub json: Vec<Field>,
    /// A body of JSON has no `errors` at its top, as GraphQL writes them. Other bodies, and what is longer than is kept, are right.
    pub no_errors: bool,
    /// Whether such `errors` are looked for, in answers that are right with them.
    pub watch_errors: bool,
    /// The body is a stream of events.
    pub stream: Option<StreamExpect>,
}

/// A stream of events that is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamExpect {
    /// What an event is.
    pub kind: EventKind,
    /// Which of them count.
    pub messages: Option<&'static MessageRules>,
    /// The least number of events that count before its end.
    pub events: u64,
}

impl StreamExpect {
    fn is_met(self, answer: &Answer) -> bool {
        answer.events.is_some_and(|messages| messages.counted >= self.events)
    }

    /// How an answer differs from it. `body`: its first message, if none counted, or the beginning of what is no stream.
    fn difference(self, answer: &Answer, body: &[u8]) -> String {
        match (answer.events, self.messages) {
            (None, _) => {
                let began = if body.is_empty() { String::new() } else { format!("; it began with {}", shown(body)) };
                format!("{} in place of a stream of {}{began}", self.kind.missing(), self.kind.words())
            }
            (Some(seen @ MessageCounts { counted: 0, .. }), Some(rules)) => rules.missing(seen, body),
            (Some(MessageCounts { counted: 0, .. }), None) => "a stream without a message".to_owned(),
            (Some(seen), _) => format!("a stream that ended after {} of {} events", seen.counted, self.events),
        }
    }
}

/// How an answer compares with the expected answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// As expected.
    Right,
    /// Another HTTP status, or a gRPC status other than OK.
    WrongStatus,
    /// The expected status, with another length, hash or value.
    WrongBody,
}

impl Expect {
    /// What the parser must do so that the answer can be judged. `head`: the method is HEAD.
    #[must_use]
    pub fn read_options(&self, head: bool) -> ReadOptions {
        let events = self.stream.map(|stream| stream.kind);
        ReadOptions {
            head,
            hash: self.body_sha256.is_some(),
            keep: match (self.json.is_empty(), self.no_errors || self.watch_errors) {
                (false, _) => KeptBody::Whole,
                (true, true) => KeptBody::Beginning,
                (true, false) => KeptBody::None,
            },
            fields: KeptFields::None,
            events,
            messages: self.stream.and_then(|stream| stream.messages),
        }
    }

    /// Whether a status is right.
    #[must_use]
    #[inline]
    pub fn has_status(&self, status: u16) -> bool {
        status == self.status || self.also.contains(&status)
    }

    /// Compare an answer with the expected answer. `body` is used only for `json`.
    #[must_use]
    #[inline]
    pub fn judge(&self, answer: &Answer, body: &[u8]) -> Verdict {
        if !self.has_status(answer.status) || answer.grpc_status.is_some_and(|status| status != 0) {
            return Verdict::WrongStatus;
        }
        let length_is_right = self.body_length.is_none_or(|length| length == answer.body_length);
        let hash_is_right = self.body_sha256.is_none() || self.body_sha256 == answer.body_sha256;
        let stream_is_right = self.stream.is_none_or(|stream| stream.is_met(answer));
        let json_is_right =
            self.json.iter().all(|field| field.is_in(body)) && !(self.no_errors && errors(body).is_some());
        let is_right = length_is_right && hash_is_right && stream_is_right && json_is_right;
        if is_right { Verdict::Right } else { Verdict::WrongBody }
    }

    /// The `errors` in the body of an answer that is right with them, in words; `None` if there are none, or they are not looked
    /// for.
    #[must_use]
    #[inline]
    pub fn watched_errors(&self, body: &[u8]) -> Option<String> {
        if self.watch_errors { errors(body).map(abridged) } else { None }
    }

    /// How an answer differs from the expected answer, in words; `None` if it does not.
    #[must_use]
    pub fn difference(&self, answer: &Answer, body: &[u8]) -> Option<String> {
        if !self.has_status(answer.status) {
            let right = std::iter::once(&self.status).chain(&self.also).map(u16::to_string).collect::<Vec<_>>();
            return Some(format!("status {} in place of {}", answer.status, right.join(" or ")));
        }
        if let Some(status @ 1..) = answer.grpc_status {
            return Some(format!("grpc-status {status} in place of 0"));
        }
        if let Some(length) = self.body_length.filter(|length| *length != answer.body_length) {
            return Some(format!("{} bytes of body in place of {length}", answer.body_length));
        }
        if let (Some(right), Some(sha256)) = (self.body_sha256, answer.body_sha256)
            && right != sha256
        {
            return Some(format!("a body with the SHA-256 {} in place of {}", in_hex(&sha256), in_hex(&right)));
        }
        if let Some(stream) = self.stream.filter(|stream| !stream.is_met(answer)) {
            return Some(stream.difference(answer, body));
        }
        let wrong = self.json.iter().find(|field| !field.is_in(body)).map(|field| field.difference(body));
        wrong.or_else(|| {
            let errors = self.no_errors.then(|| errors(body)).flatten()?;
            Some(format!("`errors` in the body: {}", abridged(errors)))
        })
    }
}

/// Bytes as hexadecimal digits.
#[must_use]
pub fn in_hex(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from_digit(u32::from(half), 16).unwrap_or_default();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// The beginning of a text, on a single line.
fn abridged(text: &str) -> String {
    const MOST: usize = 64;
    let short: String = text.chars().take(MOST).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if short.len() < text.len() { format!("{short}…") } else { short }
}

impl Field {
    fn is_in(&self, body: &[u8]) -> bool {
        let Ok(found) = self.pointer.look_up(body) else {
            return false;
        };
        match &self.stands {
            Stands::Present => found.is_some(),
            Stands::Absent => found.is_none(),
            Stands::Empty => found.is_none_or(is_empty),
            Stands::Equal(right) => {
                let value = found.and_then(|text| serde_json::from_str(text).ok());
                value.is_some_and(|value: Value| equal(right, &value))
            }
        }
    }

    fn difference(&self, body: &[u8]) -> String {
        let place = &self.pointer;
        let right = match &self.stands {
            Stands::Equal(value) => value.to_string(),
            Stands::Present => "any value".to_owned(),
            Stands::Absent => "nothing".to_owned(),
            Stands::Empty => "nothing, null, or an empty value".to_owned(),
        };
        match self.pointer.look_up(body) {
            Ok(Some(value)) => format!("{} at {place} of the body in place of {right}", abridged(value)),
            Ok(None) => format!("a body without a JSON value at {place} in place of {right}"),
            Err(NotJson) => format!("a body that is not JSON, in place of {right} at {place}"),
        }
    }
}

/// Whether a JSON text is null, or an empty text, list or object.
fn is_empty(text: &str) -> bool {
    match serde_json::from_str(text) {
        Ok(Value::Null) => true,
        Ok(Value::String(text)) => text.is_empty(),
        Ok(Value::Array(items)) => items.is_empty(),
        Ok(Value::Object(members)) => members.is_empty(),
        _ => false,
    }
}

/// The `errors` at the top of a body of JSON, or of the items of a list that it is; `None` if these are empty, or the body is not
/// JSON.
fn errors(body: &[u8]) -> Option<&str> {
    // Nearly all bodies have no such text, and are not parsed.
    static NAME: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"errors\""));
    NAME.find(body)?;
    let place = Pointer::to("errors");
    if body.trim_ascii_start().first() != Some(&b'[') {
        return place.find(body).filter(|text| !is_empty(text));
    }
    let items: Vec<&RawValue> = serde_json::from_slice(body).ok()?;
    items.into_iter().find_map(|item| place.find(item.get().as_bytes()).filter(|text| !is_empty(text)))
}

fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => equal_numbers(a, b),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| equal(a, b)))
        }
        _ => a == b,
    }
}

/// Compare as integers if both are, because a 64-bit float cannot hold all 64-bit integers.
fn equal_numbers(a: &Number, b: &Number) -> bool {
    match (whole(a), whole(b)) {
        (Some(a), Some(b)) => a == b,
        (None, None) => a.as_f64() == b.as_f64(),
        _ => false,
    }
}

fn whole(number: &Number) -> Option<i128> {
    const FITS: f64 = 1e30;
    number.as_i128().or_else(|| number.as_f64().filter(|f| f.fract() == 0.0 && f.abs() < FITS).map(|f| f as i128))
}
