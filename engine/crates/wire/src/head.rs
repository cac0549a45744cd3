//! The head of a response: status, framing, and whether the connection persists.

use std::mem::MaybeUninit;

use httparse::{Header, ParserConfig, Status};

use crate::MOST_HEADERS;
use crate::events::BodyKind;
use crate::malformed::{Malformed, Rule, head_fault};

/// How the end of a body is determined (RFC 9112, section 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    None,
    Length(u64),
    Chunked,
    UntilClose,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub bytes: usize,
    pub status: u16,
    pub keep_alive: bool,
    pub sets_cookie: bool,
    pub framing: Framing,
    pub body: BodyKind,
}

/// A verdict is possible at each of this many first bytes, so that what is not HTTP/1 is malformed before a line ends.
const FIRST_BYTES: usize = 16;

/// The length of the longest prefix of `bytes` at which a verdict is possible: in its first bytes, after a bare carriage
/// return, at the beginning of a line that does not continue the previous line (so that folded lines are parsed once), or at
/// the blank line. Positions up to `before` were considered earlier.
pub(crate) fn last_verdict(bytes: &[u8], before: usize) -> usize {
    let may_fall = |at: &usize| match (bytes[at - 1], bytes[*at]) {
        (b'\r', b'\n') => *at > 1 && bytes[at - 2] == b'\n',
        (b'\r', _) => true,
        (b'\n', next) => !matches!(next, b' ' | b'\t'),
        _ => false,
    };
    let last = (before.max(1)..bytes.len()).rfind(may_fall).map_or(0, |at| at + 1);
    last.max(bytes.len().min(FIRST_BYTES))
}

/// Parse a head at the beginning of `bytes`; `None` when it is not complete yet. Bytes after the head's blank line are not
/// read. The position of an error counts from the beginning of the head.
pub(crate) fn parse(bytes: &[u8], is_head: bool) -> Result<Option<Head>, Malformed> {
    match bytes {
        // Blank lines before an answer belong to no earlier answer. (And they would be parsed again with every line that
        // follows.)
        [b'\r' | b'\n', ..] => Err(Rule::BlankLine.at(0)),
        // A later minor version is read as the highest that is known (RFC 9110, section 2.5).
        [b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'2'..=b'9', rest @ ..] => {
            parse_known(&[b"HTTP/1.1", rest].concat(), is_head)
        }
        _ => parse_known(bytes, is_head),
    }
}

fn parse_known(bytes: &[u8], is_head: bool) -> Result<Option<Head>, Malformed> {
    let mut headers = [const { MaybeUninit::<Header<'_>>::uninit() }; MOST_HEADERS];
    let mut response = httparse::Response::new(&mut []);
    // A folded value is equivalent to a value with spaces in place of its line ends (RFC 9112, section 5.2). All the values
    // that matter here are split at spaces or may not contain them.
    let parsed = ParserConfig::default()
        .allow_obsolete_multiline_headers_in_responses(true)
        .parse_response_with_uninit_headers(&mut response, bytes, &mut headers)
        .map_err(|_| head_fault(bytes).unwrap_or(Rule::NotHttp.at(0)))?;
    let (Status::Complete(length), Some(status), Some(minor)) = (parsed, response.code, response.version) else {
        return Ok(None);
    };
    if status < 100 {
        return Err(Rule::StatusLow.at(9));
    }
    let facts = Facts::of(response.headers, bytes)?;
    let framing = facts.framing(status, minor, is_head)?;
    let persistent = if minor == 1 { !facts.close } else { facts.keep_alive && !facts.close };
    let keep_alive = persistent && framing != Framing::UntilClose && status != 101;
    let body = BodyKind { is_chunked: framing == Framing::Chunked, ..facts.body };
    Ok(Some(Head { bytes: length, status, keep_alive, sets_cookie: facts.sets_cookie, framing, body }))
}

/// The headers that decide framing and persistence, and what else matters of a head.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
struct Facts {
    content_length: Option<u64>,
    /// The position of the value of the last Transfer-Encoding.
    coding_at: usize,
    /// Whether the last transfer coding is chunked; `None` when there is no coding.
    chunked: Option<bool>,
    /// How often chunked is applied.
    times_chunked: u32,
    /// Whether chunked has parameters.
    parameters: bool,
    close: bool,
    keep_alive: bool,
    sets_cookie: bool,
    body: BodyKind,
}

impl Facts {
    /// Read the headers of a head, which is `bytes`.
    fn of(headers: &[Header<'_>], bytes: &[u8]) -> Result<Self, Malformed> {
        let mut facts = Self::default();
        // The values are parts of these bytes.
        let place = |value: &[u8]| (value.as_ptr() as usize).saturating_sub(bytes.as_ptr() as usize);
        for header in headers {
            // The length of a name is the cheapest way to skip the headers that do not matter here.
            match header.name.len() {
                10 if header.name.eq_ignore_ascii_case("connection") => facts.connection(header.value),
                10 if header.name.eq_ignore_ascii_case("set-cookie") => facts.sets_cookie = true,
                12 if header.name.eq_ignore_ascii_case("content-type") => facts.body.content_type(header.value),
                16 if header.name.eq_ignore_ascii_case("content-encoding") => facts.body.content_encoding(header.value),
                14 if header.name.eq_ignore_ascii_case("content-length") => {
                    facts.length(header.value).map_err(|rule| rule.at(place(header.value)))?;
                }
                17 if header.name.eq_ignore_ascii_case("transfer-encoding") => {
                    facts.encoding(header.value);
                    facts.coding_at = place(header.value);
                }
                _ => {}
            }
        }
        Ok(facts)
    }

    fn connection(&mut self, value: &[u8]) {
        for token in tokens(value) {
            self.close |= token.eq_ignore_ascii_case(b"close");
            self.keep_alive |= token.eq_ignore_ascii_case(b"keep-alive");
        }
    }

    /// Identical values, in lines or in a list, count as a single value (RFC 9112, section 6.3).
    fn length(&mut self, value: &[u8]) -> Result<(), Rule> {
        for value in value.split(|byte| *byte == b',') {
            let new = length(value.trim_ascii())?;
            if self.content_length.is_some_and(|old| old != new) {
                return Err(Rule::LengthsDiffer);
            }
            self.content_length = Some(new);
        }
        Ok(())
    }

    fn encoding(&mut self, value: &[u8]) {
        // All lines of a header are a single list (RFC 9110, section 5.3), so an empty line adds nothing.
        for coding in tokens(value) {
            let name = coding.split(|byte| *byte == b';').next().unwrap_or(coding);
            let is_chunked = name.trim_ascii().eq_ignore_ascii_case(b"chunked");
            self.times_chunked += u32::from(is_chunked);
            // Chunked has no parameters: a parameter is an error (RFC 9112, section 7.1).
            self.parameters |= is_chunked && name.len() < coding.len();
            self.chunked = Some(is_chunked);
        }
    }

    fn framing(&self, status: u16, minor: u8, is_head: bool) -> Result<Framing, Malformed> {
        if is_head || status < 200 || status == 204 || status == 304 {
            return Ok(Framing::None);
        }
        if let Some(chunked) = self.chunked {
            // Two framings, a framing that HTTP/1.0 does not know, or chunks within chunks: the end of the body would be a
            // guess (RFC 9112, section 6.1).
            let rule = if self.content_length.is_some() {
                Some(Rule::LengthAndCoding)
            } else if minor == 0 {
                Some(Rule::CodingInHttp10)
            } else if self.parameters {
                Some(Rule::ChunkedParameters)
            } else if self.times_chunked > 1 {
                Some(Rule::ChunkedTwice)
            } else {
                None
            };
            if let Some(rule) = rule {
                return Err(rule.at(self.coding_at));
            }
            return Ok(if chunked { Framing::Chunked } else { Framing::UntilClose });
        }
        Ok(self.content_length.map_or(Framing::UntilClose, Framing::Length))
    }
}

/// A length in digits.
fn length(value: &[u8]) -> Result<u64, Rule> {
    if value.is_empty() {
        return Err(Rule::LengthEmpty);
    }
    if !value.iter().all(u8::is_ascii_digit) {
        return Err(Rule::LengthNumber);
    }
    let add = |sum: u64, digit: &u8| sum.checked_mul(10)?.checked_add(u64::from(digit - b'0'));
    value.iter().try_fold(0, add).ok_or(Rule::LengthTooBig)
}

fn tokens(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).filter(|token| !token.is_empty())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{MOST_HEADERS, parse};
    use crate::malformed::head_fault;

    /// A head that is damaged, or has about the maximum of fields.
    fn head() -> impl Strategy<Value = Vec<u8>> {
        let start =
            prop_oneof![Just("HTTP/1.1 200 OK\r\n"), Just("HTTP/1.0 404\n"), Just("HTTP/1.7 200 \r\n"), Just("")];
        let line = prop_oneof![Just("A: b\r\n"), Just("C:\n"), Just(" d\r\n"), Just("E: \t\r\n"), Just("F-g:h\r\n")];
        let lines =
            prop_oneof![0_usize..6, MOST_HEADERS - 1..MOST_HEADERS + 3].prop_flat_map(move |n| vec![line.clone(); n]);
        let odd = prop_oneof![Just(b'\r'), Just(b'\n'), Just(b' '), Just(b':'), Just(0), any::<u8>()];
        let hits = prop::collection::vec((any::<prop::sample::Index>(), odd), 0..4);
        (start, lines, hits).prop_map(|(start, lines, hits)| {
            let mut bytes = [start, &lines.concat(), "\r\n"].concat().into_bytes();
            for (index, byte) in hits {
                let index = index.index(bytes.len());
                bytes[index] = byte;
            }
            bytes
        })
    }

    proptest! {
        /// The parser and the search for the fault read the same grammar.
        #[test]
        fn a_head_that_is_malformed_has_a_fault(bytes in head()) {
            for end in 1..=bytes.len() {
                let bytes = &bytes[..end];
                prop_assert_eq!(parse(bytes, false).is_err(), head_fault(bytes).is_some(), "{}", bytes.escape_ascii());
            }
        }
    }
}
