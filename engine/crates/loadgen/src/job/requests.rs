//! The requests of a job, and the expected answers.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use redline_pacing::Weights;
use redline_traffic::EngineError;
use redline_wire::{
    Amount, Body, BodyEscape, Counts, EventKind, Expect, Field, KeptBody, MessageRules, Names, Part, Place, Pointer,
    ReadOptions, Spec, Stands, StreamExpect, Template, Timestamp, Unit,
};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::journey::{Journey, Keeps};
use super::target::{Http, Target};
use super::websocket::{RawWebSocket, WebSocket};
use super::{LONGEST_NS, bad, from_hex};

/// Lists that requests pick from, by their names.
pub type Picks = BTreeMap<String, Vec<String>>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawRequest {
    #[serde(default = "default_weight")]
    weight: f64,
    method: String,
    path: String,
    #[serde(default)]
    headers: Vec<(String, String)>,
    #[serde(default)]
    body_base64: Option<String>,
    #[serde(default)]
    body_text: Option<String>,
    #[serde(default)]
    body_escape: Option<RawEscape>,
    #[serde(default)]
    chunked: Option<RawChunks>,
    #[serde(default)]
    expect_continue_ns: Option<u64>,
    expect: RawExpect,
    #[serde(default)]
    timestamp: Option<RawTimestamp>,
    #[serde(default)]
    stream: Option<RawStream>,
    #[serde(default)]
    websocket: Option<RawWebSocket>,
}

/// Whether a body is sent in chunks: a single one, or of so many bytes.
#[derive(Clone, Copy, Deserialize)]
#[serde(untagged)]
enum RawChunks {
    Whole(bool),
    Bytes(NonZeroUsize),
}

impl RawChunks {
    fn bytes(self) -> Option<NonZeroUsize> {
        match self {
            Self::Whole(chunked) => chunked.then_some(NonZeroUsize::MAX),
            Self::Bytes(bytes) => Some(bytes),
        }
    }
}

/// How values of a user are written in `body_text`.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RawEscape {
    Json,
    Form,
}

fn default_weight() -> f64 {
    1.0
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawExpect {
    status: RawStatus,
    #[serde(default)]
    body_length: Option<u64>,
    #[serde(default)]
    body_sha256: Option<String>,
    #[serde(default)]
    json: Option<Vec<RawField>>,
    #[serde(default)]
    no_errors: bool,
    #[serde(default)]
    watch_errors: bool,
}

/// The right status, or several.
#[derive(Deserialize)]
#[serde(untagged)]
enum RawStatus {
    One(u16),
    Any(Vec<u16>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawField {
    pointer: String,
    #[serde(default, deserialize_with = "given")]
    equals: Option<Value>,
    #[serde(default)]
    stands: Option<RawStands>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RawStands {
    Present,
    Absent,
    Empty,
}

/// A value that is there, which may be null.
fn given<'de, D: Deserializer<'de>>(json: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(json).map(Some)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTimestamp {
    #[serde(default)]
    pointer: Option<String>,
    unit: RawUnit,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStream {
    events: RawEvents,
    #[serde(default)]
    message: Option<RawCounts>,
    #[serde(default)]
    amount: Option<RawAmount>,
    #[serde(default)]
    last: RawLast,
    #[serde(default)]
    errors: RawErrors,
    #[serde(default)]
    good: Option<Good>,
    #[serde(default)]
    until: Option<u64>,
    #[serde(default)]
    for_ns: Option<u64>,
    #[serde(default)]
    stall_ns: Option<u64>,
    #[serde(default)]
    stall_fails: bool,
    #[serde(default)]
    every_ns: Option<u64>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RawEvents {
    Sse,
    Ndjson,
    Chunks,
    Messages,
}

/// Which messages count: an object with one of these keys.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum RawCounts {
    Json(Vec<String>),
    Event(Vec<String>),
    Regex(String),
}

/// How much messages hold: an object with one of these keys.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum RawAmount {
    Bytes(bool),
    Each(Vec<String>),
    Total(Vec<String>),
}

/// The messages that end a conversation.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RawLast {
    data: Vec<String>,
    event: Vec<String>,
}

/// The messages that report an error.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RawErrors {
    json: Vec<String>,
    event: Vec<String>,
}

/// What a good conversation stays below.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_field_names, reason = "units stand in names")]
pub struct Good {
    pub first_message_ns: Option<u64>,
    pub gap_ns: Option<u64>,
    pub per_message_ns: Option<u64>,
    pub response_ns: Option<u64>,
}

/// An answer that is a stream of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    pub kind: EventKind,
    /// Which of its messages count; all without it.
    pub messages: Option<&'static MessageRules>,
    /// The fewest of them.
    pub least: u64,
    /// Some message ends it.
    pub has_last: bool,
    pub good: Option<Good>,
    /// After this many events the request is complete.
    pub until: Option<u64>,
    /// This long after its beginning the request is complete.
    pub for_ns: Option<u64>,
    /// A longer time without an event is a stall.
    pub stall_ns: Option<u64>,
    /// A stall ends the request as `timeout`.
    pub stall_fails: bool,
    /// The server sends a message each of these times: how far off they are is counted.
    pub every_ns: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum RawUnit {
    S,
    Ms,
    Us,
    Ns,
}

/// A request of a job.
#[derive(Clone, Debug)]
pub struct Request {
    pub template: Template,
    pub expect: Expect,
    pub timestamp: Option<Timestamp>,
    pub stream: Option<Stream>,
    /// It is a message on a WebSocket.
    pub websocket: Option<Arc<WebSocket>>,
    /// The body waits for an answer 100 for this long.
    pub expect_continue_ns: Option<u64>,
    /// What to keep of its answers.
    pub options: ReadOptions,
}

/// Validate all requests and their weights.
pub fn check(
    raw: Vec<RawRequest>,
    picks: &Picks,
    target: &Target,
    journey: Option<&Journey>,
) -> Result<(Vec<Request>, Weights), EngineError> {
    if raw.is_empty() {
        return Err(bad("requests", "there is none", "give at least one request"));
    }
    let weights: Vec<f64> = raw.iter().map(|request| request.weight).collect();
    let weights = Weights::new(&weights).map_err(|why| {
        let wrong = raw.iter().position(|request| !(0.0..f64::INFINITY).contains(&request.weight));
        let field = wrong.map_or_else(|| "requests".to_owned(), |i| format!("requests[{i}].weight"));
        bad(&field, &why.to_string(), "weights are 0 or more, and not all 0")
    })?;
    if journey.is_some()
        && let Some(i) = raw.iter().position(|request| request.weight.to_bits() != 1.0_f64.to_bits())
    {
        let message = "the steps of a journey are sent in order, not drawn by weight";
        return Err(bad(&format!("requests[{i}].weight"), message, "leave it out, or the journey"));
    }
    let requests = raw.into_iter().enumerate();
    let requests = requests.map(|(i, request)| request.check(&format!("requests[{i}]"), picks, target, journey, i));
    Ok((requests.collect::<Result<_, _>>()?, weights))
}

impl RawRequest {
    /// The host that its headers name, without a port; None if none does, or if it has values of a visitor.
    pub fn named_host(&self) -> Option<&str> {
        let (_, host) = self.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("host"))?;
        let bare = host.rsplit_once(':').filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
        (!host.contains('{')).then_some(bare.map_or(host.as_str(), |(bare, _)| bare))
    }

    /// The texts in which placeholders are values.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let headers = self.headers.iter().map(|(_, value)| value.as_str());
        [self.path.as_str()].into_iter().chain(headers).chain(self.body_text.as_deref())
    }

    /// Reject what cannot be combined with a WebSocket, if it is a message on one.
    fn check_websocket(&self, field: &str, target: &Target, journey: Option<&Journey>) -> Result<(), EngineError> {
        let listens = self.websocket.as_ref().is_some_and(RawWebSocket::listens);
        let of_websocket = self.stream.as_ref().is_some_and(|stream| matches!(stream.events, RawEvents::Messages));
        if listens != of_websocket {
            let message = "a stream of messages is what a WebSocket answers whose user listens, and nothing else is";
            return Err(bad(field, message, "give `answer` as listen and `stream.events` as messages, or neither"));
        }
        let others = [
            ("the steps of a journey, unless it listens", journey.is_some() && !listens),
            ("the steps of a journey over HTTP/2", journey.is_some() && target.http == Http::V2),
            ("a method other than GET", self.method != "GET"),
            ("a stream of events", self.stream.is_some() && !listens),
            ("a timestamp", self.timestamp.is_some() && !listens),
            ("chunks", self.chunked.is_some()),
            ("an answer 100", self.expect_continue_ns.is_some()),
        ];
        if let Some((other, _)) = others.into_iter().find(|(_, is_given)| *is_given && self.websocket.is_some()) {
            return Err(bad(field, &format!("it cannot be combined with {other}"), "leave out one of the two"));
        }
        Ok(())
    }

    /// Validate the request. `place` is its field in the job, and `number` its index.
    pub fn check(
        self,
        place: &str,
        picks: &Picks,
        target: &Target,
        journey: Option<&Journey>,
        number: usize,
    ) -> Result<Request, EngineError> {
        let within = |field: &str| format!("{place}.{field}");
        self.check_websocket(&within("websocket"), target, journey)?;
        let is_head = self.method == "HEAD";
        let text_is_given = self.body_text.is_some();
        let body = body_of(self.body_text, self.body_base64, self.body_escape, place)?;
        let expect_continue_ns = self.expect_continue_ns;
        let mut headers = self.headers;
        let names = match journey {
            Some(journey) => Names { picks, takes: &journey.names, columns: journey.columns() },
            None => Names::picks(picks),
        };
        if let Some(websocket) = &self.websocket {
            websocket.add_headers(&within("websocket"), target.http, &mut headers)?;
        }
        // The body of a request is that of the message, once the WebSocket is open.
        let (body, message) =
            if self.websocket.is_some() { (Body::Bytes(Vec::new()), Some(body)) } else { (body, None) };
        if let Some(ns) = expect_continue_ns {
            let field = within("expect_continue_ns");
            if !(1..=LONGEST_NS).contains(&ns) {
                let message = format!("it is not between 1 and {LONGEST_NS}");
                return Err(bad(&field, &message, "durations are in nanoseconds"));
            }
            if target.http == Http::V2 {
                let message = "a body waits for an answer 100 only in HTTP/1.1";
                return Err(bad(&field, message, "leave it out, or set http to 1.1"));
            }
            if matches!(&body, Body::Bytes(bytes) if bytes.is_empty()) {
                return Err(bad(&field, "there is no body to wait with", "give a body, or leave it out"));
            }
            headers.push(("Expect".to_owned(), "100-continue".to_owned()));
        }
        let spec = Spec {
            method: &self.method,
            path: &self.path,
            host: &target.host,
            port: target.port,
            headers: &headers,
            body,
            chunks: self.chunked.and_then(RawChunks::bytes),
            tls: target.tls.is_some(),
            http2: target.http == Http::V2,
            cookies: journey.is_some_and(|journey| journey.cookies),
        };
        let template = Template::compile(spec, &names).map_err(|why| {
            let field = match why.part() {
                Part::Method => within("method"),
                Part::Host => "target.host".to_owned(),
                Part::Path => within("path"),
                Part::Header(header) => within(&format!("headers[{header}]")),
                Part::Body if text_is_given => within("body_text"),
                Part::Body => within("body_base64"),
            };
            bad(
                &field,
                &why.to_string(),
                "see RFC 9110 and 9112, and docs/reference/engine-protocol.md for placeholders",
            )
        })?;
        let websocket = match (self.websocket, message) {
            (Some(websocket), Some(message)) => {
                Some(Arc::new(websocket.check(&within("websocket"), target.http, &template, message, &names)?))
            }
            _ => None,
        };
        let expect = self.expect.check(&within("expect"))?;
        let mut timestamp = self.timestamp.map(|timestamp| timestamp.check(&within("timestamp"))).transpose()?;
        let keeps = journey.map_or_else(Keeps::default, |journey| journey.keeps(number));
        keeps.check(&within("stream"), self.stream.is_some())?;
        let stream = match self.stream {
            // Each message of a stream states the time.
            Some(stream) => Some(stream.check(&within("stream"), timestamp.take(), keeps.texts.first())?),
            None => None,
        };
        if stream.is_some() {
            let is_whole = expect.body_length.is_some()
                || expect.body_sha256.is_some()
                || !expect.json.is_empty()
                || expect.no_errors
                || expect.watch_errors;
            if is_head || is_whole {
                let message = "the body of a stream of events is only counted";
                let hint = "leave out what is expected of the body, and HEAD, or the stream";
                return Err(bad(&within("stream"), message, hint));
            }
        }
        let of_body = stream.filter(|stream| stream.kind != EventKind::Messages);
        let expect = Expect {
            stream: of_body.map(|Stream { kind, messages, least, .. }| StreamExpect { kind, messages, events: least }),
            ..expect
        };
        let options = expect.read_options(is_head);
        let keep = if timestamp.is_some() || keeps.body { KeptBody::Whole } else { options.keep };
        let options = ReadOptions { keep, fields: keeps.fields, ..options };
        Ok(Request { template, expect, timestamp, stream, websocket, expect_continue_ns, options })
    }
}

/// The body that a request has, as text or as bytes.
fn body_of(
    text: Option<String>,
    base64: Option<String>,
    escape: Option<RawEscape>,
    place: &str,
) -> Result<Body, EngineError> {
    match (text, base64) {
        (Some(_), Some(_)) => {
            let message = "there is a body_base64 as well";
            Err(bad(&format!("{place}.body_text"), message, "give one of them, or none"))
        }
        (Some(text), None) => {
            let escape = match escape {
                None => BodyEscape::None,
                Some(RawEscape::Json) => BodyEscape::Json,
                Some(RawEscape::Form) => BodyEscape::Form,
            };
            Ok(Body::Text(text, escape))
        }
        (None, base64) => STANDARD.decode(base64.unwrap_or_default()).map(Body::Bytes).map_err(|error| {
            let hint = "give standard base64 with padding, or null";
            bad(&format!("{place}.body_base64"), &error.to_string(), hint)
        }),
    }
}

impl RawStream {
    fn check(self, place: &str, timestamp: Option<Timestamp>, text: Option<&Pointer>) -> Result<Stream, EngineError> {
        let Self { events, message, amount, last, errors, good, until, for_ns, stall_ns, stall_fails, every_ns } = self;
        if until == Some(0) {
            let message = "0 events are none to wait for";
            return Err(bad(&format!("{place}.until"), message, "give a number, or null for the whole stream"));
        }
        for (field, ns) in [("for_ns", for_ns), ("stall_ns", stall_ns), ("every_ns", every_ns)] {
            if ns.is_some_and(|ns| !(1..=LONGEST_NS).contains(&ns)) {
                let message = format!("it is not between 1 and {LONGEST_NS}");
                return Err(bad(&format!("{place}.{field}"), &message, "durations are in nanoseconds"));
            }
        }
        if stall_fails && stall_ns.is_none() {
            let message = "there is no stall_ns that says what a stall is";
            return Err(bad(&format!("{place}.stall_fails"), message, "give it, or leave this out"));
        }
        let kind = match events {
            RawEvents::Sse => EventKind::Sse,
            RawEvents::Ndjson => EventKind::Ndjson,
            RawEvents::Chunks => EventKind::Chunks,
            RawEvents::Messages => EventKind::Messages,
        };
        let has_last = !last.data.is_empty() || !last.event.is_empty();
        let counts = message.map(|counts| counts.check(&format!("{place}.message"))).transpose()?;
        let amount = amount.map(|amount| amount.check(&format!("{place}.amount"))).transpose()?;
        let errors = errors.check(&format!("{place}.errors"))?;
        let reads = timestamp.is_some() || text.is_some() || !errors.is_empty();
        let messages = (has_last || counts.is_some() || amount.is_some() || reads).then(|| {
            let bytes = |texts: Vec<String>| texts.into_iter().map(String::into_bytes).collect();
            MessageRules {
                counts: counts.unwrap_or_default(),
                amount: amount.unwrap_or_default(),
                last_data: bytes(last.data),
                last_events: bytes(last.event),
                errors,
                timestamp,
                text: text.cloned().map(Place::new),
                until,
            }
            .keep()
        });
        let least = until.unwrap_or(1);
        Ok(Stream { kind, messages, least, has_last, good, until, for_ns, stall_ns, stall_fails, every_ns })
    }
}

impl RawCounts {
    fn check(self, place: &str) -> Result<Counts, EngineError> {
        Ok(match self {
            Self::Json(pointers) => Counts::Json(places(&format!("{place}.json"), &pointers)?),
            Self::Event(names) => Counts::Events(names.into_iter().map(String::into_bytes).collect()),
            Self::Regex(text) => Counts::matching(&text)
                .map_err(|why| bad(&format!("{place}.regex"), &why, "see docs.rs/regex for what can be written"))?,
        })
    }
}

impl RawErrors {
    fn check(self, place: &str) -> Result<Vec<Counts>, EngineError> {
        let at = places(&format!("{place}.json"), &self.json)?;
        let types: Vec<_> = self.event.into_iter().map(String::into_bytes).collect();
        let of_places = (!at.is_empty()).then_some(Counts::Json(at));
        Ok(of_places.into_iter().chain((!types.is_empty()).then_some(Counts::Events(types))).collect())
    }
}

impl RawAmount {
    fn check(self, place: &str) -> Result<Amount, EngineError> {
        Ok(match self {
            Self::Bytes(true) => Amount::Bytes,
            Self::Bytes(false) => Amount::One,
            Self::Each(pointers) => Amount::Each(places(&format!("{place}.each"), &pointers)?),
            Self::Total(pointers) => Amount::Total(places(&format!("{place}.total"), &pointers)?),
        })
    }
}

fn places(field: &str, pointers: &[String]) -> Result<Vec<Place>, EngineError> {
    let numbered = pointers.iter().enumerate();
    numbered.map(|(i, text)| pointer(&format!("{field}[{i}]"), text).map(Place::new)).collect()
}

impl Request {
    /// End a stream of events with its first event, which shows that it is one, unless its text is carried on.
    pub fn end_with_first_event(&mut self) {
        let rules = self.stream.and_then(|stream| stream.messages);
        if rules.is_some_and(|rules| rules.text.is_some()) {
            return;
        }
        if let Some(stream) = &mut self.stream {
            (stream.until, stream.for_ns, stream.least) = (Some(1), None, 1);
        }
        if let Some(stream) = &mut self.expect.stream {
            stream.events = 1;
        }
    }
}

impl RawExpect {
    fn check(self, place: &str) -> Result<Expect, EngineError> {
        let statuses = match self.status {
            RawStatus::One(status) => vec![status],
            RawStatus::Any(statuses) => statuses,
        };
        if let Some(status) = statuses.iter().find(|status| !(200..=599).contains(*status)) {
            let message = format!("{status} is not between 200 and 599");
            let hint = "1xx answers are skipped, so none can be expected";
            return Err(bad(&format!("{place}.status"), &message, hint));
        }
        let Some((status, also)) = statuses.split_first() else {
            return Err(bad(&format!("{place}.status"), "is an empty list", "give at least one status"));
        };
        let body_sha256 = self.body_sha256.as_deref().map(|hex| {
            from_hex(hex).ok_or_else(|| {
                let hint = "give the SHA-256 of the expected body, or null";
                bad(&format!("{place}.body_sha256"), "is not 64 hexadecimal digits", hint)
            })
        });
        let fields = self.json.unwrap_or_default().into_iter().enumerate();
        let json = fields.map(|(i, field)| {
            let pointer = pointer(&format!("{place}.json[{i}].pointer"), &field.pointer)?;
            let stands = match (field.equals, field.stands) {
                (Some(value), None) => Stands::Equal(value),
                (None, Some(RawStands::Present)) => Stands::Present,
                (None, Some(RawStands::Absent)) => Stands::Absent,
                (None, Some(RawStands::Empty)) => Stands::Empty,
                _ => {
                    let message = "it has not exactly one of `equals` and `stands`";
                    return Err(bad(&format!("{place}.json[{i}]"), message, "give the value, or what stands there"));
                }
            };
            Ok(Field { pointer, stands })
        });
        Ok(Expect {
            status: *status,
            also: also.to_vec(),
            body_length: self.body_length,
            body_sha256: body_sha256.transpose()?,
            json: json.collect::<Result<_, EngineError>>()?,
            no_errors: self.no_errors,
            watch_errors: self.watch_errors,
            stream: None,
        })
    }
}

impl RawTimestamp {
    fn check(self, place: &str) -> Result<Timestamp, EngineError> {
        let pointer = self.pointer.map(|text| pointer(&format!("{place}.pointer"), &text)).transpose()?;
        let unit = match self.unit {
            RawUnit::S => Unit::S,
            RawUnit::Ms => Unit::Ms,
            RawUnit::Us => Unit::Us,
            RawUnit::Ns => Unit::Ns,
        };
        Ok(Timestamp { pointer, unit })
    }
}

fn pointer(field: &str, text: &str) -> Result<Pointer, EngineError> {
    let message = format!("{text:?} is not a JSON Pointer");
    Pointer::parse(text)
        .ok_or_else(|| bad(field, &message, "give \"\" for the whole, or \"/\" before each step: RFC 6901"))
}
