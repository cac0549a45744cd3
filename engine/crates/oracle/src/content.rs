//! The body of an answer.

use std::io::Write as _;
use std::sync::Arc;

use crate::sys::realtime_ns;

/// The body of every answer.
#[derive(Debug, Clone)]
pub enum Content {
    /// The name in the request.
    Name,
    /// These bytes.
    Bytes(Arc<[u8]>),
    /// The server's clock.
    Time(ClockText),
}

/// The text of the server's wall clock.
#[derive(Debug, Clone)]
pub struct ClockText {
    unit_ns: i128,
    skew_ns: i128,
    json: bool,
    text: Vec<u8>,
}

impl Content {
    /// The letter x, `length` times.
    pub fn filled(length: usize) -> Self {
        Self::Bytes(vec![b'x'; length].into())
    }

    /// The body of the answer to a request for `name`, which has just arrived.
    #[inline]
    pub fn body<'a>(&'a mut self, name: &'a [u8]) -> &'a [u8] {
        match self {
            Self::Name => name,
            Self::Bytes(bytes) => bytes,
            Self::Time(clock) => clock.at(realtime_ns()),
        }
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

    #[test]
    fn a_clock_is_sent_in_its_unit_with_its_skew() {
        let now_ns = 1_790_000_000_123_456_789;
        assert_eq!(ClockText::new(1_000_000_000, 0, false).at(now_ns), b"1790000000");
        assert_eq!(ClockText::new(1_000_000, -124_000_000, false).at(now_ns), b"1789999999999");
        assert_eq!(ClockText::new(1, 11, true).at(now_ns), br#"{"now":1790000000123456800}"#);
    }

    #[test]
    fn a_body_is_what_was_requested() {
        assert_eq!(Content::Name.body(b"path0"), b"path0");
        assert_eq!(Content::filled(3).body(b"path0"), b"xxx");
        assert_eq!(Content::filled(0).body(b"path0"), b"");
    }
}
