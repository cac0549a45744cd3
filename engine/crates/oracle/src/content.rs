//! The body of an answer.

use std::io::Write as _;
use std::sync::Arc;

use crate::sessions::{Asked, Reply, Sessions};
use crate::sys::realtime_ns;

/// The body of every answer.
#[derive(Debug, Clone)]
pub enum Content {
    /// The name in the request.
    Name,
    /// These bytes.
    Bytes(Arc<[u8]>),
    /// A stream of so many events with this Content-Type.
    Events(&'static str, usize, Arc<[u8]>),
    /// The server's clock.
    Time(ClockText),
    /// The name, to users who have logged in.
    Sessions(Sessions),
}

/// The text of the server's wall clock.
#[derive(Debug, Clone)]
pub struct ClockText {
    unit_ns: i128,
    skew_ns: i128,
    json: bool,
    text: Vec<u8>,
}

/// The events of a chat completion that are no tokens.
pub const NO_TOKENS: usize = 3;

impl Content {
    /// The letter x, `length` times.
    pub fn filled(length: usize) -> Self {
        Self::Bytes(vec![b'x'; length].into())
    }

    /// This many events, all of the same length: server-sent events, or lines of JSON.
    pub fn events(count: usize, lines: bool) -> Self {
        let (content_type, event): (_, &[u8]) =
            if lines { ("application/x-ndjson", b"{\"x\":1}\n") } else { ("text/event-stream", b"data: x\n\n") };
        Self::Events(content_type, count, event.repeat(count).into())
    }

    /// A chat completion of this many events, all of the same length: the role, tokens, their number, and `[DONE]`.
    pub fn tokens(count: usize) -> Self {
        let token = r#"{"choices":[{"index":0,"delta":{"content":"a"}}]}"#;
        let usage = format!(r#"{{"choices":[],"usage":{{"completion_tokens":{}}}}}"#, count - NO_TOKENS);
        let role = r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#;
        let all = [role].into_iter().chain(std::iter::repeat_n(token, count - NO_TOKENS)).chain([&*usage, "[DONE]"]);
        let longest = role.len().max(usage.len());
        // A comment in each event makes up for its length.
        let body = all.map(|data| format!(":{}\ndata: {data}\n\n", "-".repeat(longest - data.len())));
        Self::Events("text/event-stream", count, body.collect::<String>().into_bytes().into())
    }

    /// The answer to a request that has just arrived.
    #[inline]
    pub fn reply<'a>(&'a mut self, asked: Asked<'a>) -> Reply<'a> {
        match self {
            Self::Name => Reply::plain(200, asked.name),
            Self::Bytes(bytes) => Reply::plain(200, bytes),
            &mut Self::Events(content_type, events, ref body) => {
                Reply { content_type, events, ..Reply::plain(200, body) }
            }
            Self::Time(clock) => Reply::plain(200, clock.at(realtime_ns())),
            Self::Sessions(sessions) => sessions.reply(asked),
        }
    }

    /// Whether answers depend on the bodies of requests.
    pub const fn keeps_bodies(&self) -> bool {
        matches!(self, Self::Sessions(_))
    }
}

impl ClockText {
    /// Whole units of `unit_ns` since 1970, of a clock that is `skew_ns` ahead; in an object `{"now":N}` for `json`.
    pub const fn new(unit_ns: u64, skew_ns: i64, json: bool) -> Self {
        Self { unit_ns: unit_ns as i128, skew_ns: skew_ns as i128, json, text: Vec::new() }
    }

    fn at(&mut self, realtime_ns: u64) -> &[u8] {
        let now = (i128::from(realtime_ns) + self.skew_ns).div_euclid(self.unit_ns);
        self.text.clear();
        // Writing to a vector does not fail.
        let _ = if self.json { write!(self.text, r#"{{"now":{now}}}"#) } else { write!(self.text, "{now}") };
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::{ClockText, Content};
    use crate::sessions::Asked;

    #[test]
    fn a_clock_is_sent_in_its_unit_with_its_skew() {
        let now_ns = 1_790_000_000_123_456_789;
        assert_eq!(ClockText::new(1_000_000_000, 0, false).at(now_ns), b"1790000000");
        assert_eq!(ClockText::new(1_000_000, -124_000_000, false).at(now_ns), b"1789999999999");
        assert_eq!(ClockText::new(1, 11, true).at(now_ns), br#"{"now":1790000000123456800}"#);
    }

    #[test]
    fn a_body_is_what_was_requested() {
        let asked = Asked { name: b"path0", length: 0, body: b"", cookie: b"", token: b"" };
        assert_eq!(Content::Name.reply(asked).body, b"path0");
        assert_eq!(Content::filled(3).reply(asked).body, b"xxx");
        assert_eq!(Content::filled(0).reply(asked).body, b"");
    }

    #[test]
    fn the_events_of_a_chat_completion_have_one_length() {
        let asked = Asked { name: b"", length: 0, body: b"", cookie: b"", token: b"" };
        let mut content = Content::tokens(6);
        let body = String::from_utf8(content.reply(asked).body.to_vec()).unwrap();
        let events: Vec<&str> = body.split_inclusive("\n\n").collect();
        assert!(events.len() == 6 && events.iter().all(|event| event.len() == events[0].len()), "{events:?}");
        assert_eq!(events.iter().filter(|event| event.contains(r#""content":"a""#)).count(), 3);
        assert!(events[4].contains(r#""completion_tokens":3"#) && events[5].ends_with("data: [DONE]\n\n"));
    }
}
