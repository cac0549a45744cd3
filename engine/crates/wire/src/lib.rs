//! HTTP/1.1 on the wire, without sockets: requests become bytes, bytes become answers as they arrive (RFC 9112), and answers
//! are judged.
//!
//! [`Parser`] takes the bytes of a connection in pieces of any size. It allocates nothing while heads arrive in one piece,
//! inspects bodies only to count them (and to hash or keep them on request), and bounds everything that a peer can make it
//! keep. [`Template`] checks a request once and then writes it as often as it is sent, for HTTP/1.1 or HTTP/2. [`Expect`] and
//! [`Timestamp`] describe the expected answer and the time that it states.

mod answer;
mod body_chunks;
mod chunked;
mod events;
mod expect;
mod fields;
mod given;
mod head;
mod heads;
mod json;
mod malformed;
mod messages;
mod parser;
mod payload;
mod record;
mod request;
mod scan;
mod template;
mod text;
mod timestamp;
mod trace;

pub use answer::{Answer, KeptBody, KeptFields, ParsedAnswer, ReadOptions};
pub use events::{BodyKind, EventKind, EventReader};
pub use expect::{Expect, Field, Stands, StreamExpect, Verdict, in_hex};
pub use fields::Fields;
pub use given::GivenValue;
pub use heads::Heads;
pub use json::Pointer;
pub use malformed::{Malformed, Rule};
pub use messages::{Amount, Counts, MessageCounts, MessageRules, MessageText, MessageTime, MessageValues, Place};
pub use parser::{Parser, StreamSoFar, values_in};
pub use payload::Payload;
pub use record::Record;
pub use request::{Body, BodyEscape, Part, Spec, Unsendable};
pub use template::Template;
pub use text::{Names, Unfit, Values};
pub use timestamp::{Timestamp, Unit};
pub use trace::{TraceContext, TraceShare};

/// The longest status line and headers, the longest trailers, and the most interim answers before an answer: 64 KiB.
pub const MOST_HEAD_BYTES: usize = 64 * 1024;
/// The most headers that are accepted.
pub const MOST_HEADERS: usize = 128;
/// The longest body that is kept to be checked: 1 MiB.
pub const MOST_KEPT_BODY: usize = 1024 * 1024;
