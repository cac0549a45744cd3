//! The head of a response: status, framing, and whether the connection lives on.

use std::mem::MaybeUninit;

use httparse::{Header, ParserConfig, Status};

use crate::MOST_HEADERS;
use crate::answer::Malformed;

/// How the end of a body is found (RFC 9112, section 6.3).
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
    pub framing: Framing,
}

/// A verdict may fall at each of so many first bytes, so that what is not HTTP/1 at all is malformed before a line ends.
const FIRST_BYTES: usize = 16;

/// The length of the longest prefix of `bytes` at which a verdict may fall: in its first bytes, behind a bare carriage return,
/// where a line begins that does not continue the one before (so that folded lines are parsed once), or at the blank line.
/// Such places before `before` were seen earlier.
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

/// Parse a head at the beginning of `bytes`; `None` when it is not complete yet. It looks at no byte past the head's blank line.
pub(crate) fn parse(bytes: &[u8], is_head: bool) -> Result<Option<Head>, Malformed> {
    match bytes {
        // Blank lines before an answer end no answer that came before. (And each would be parsed again with every line that follows.)
        [b'\r' | b'\n', ..] => Err(Malformed::Head),
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
    // A folded value is one with spaces in place of its line ends (RFC 9112, section 5.2), which all the values that matter
    // here are split at or may not have.
    let parsed = ParserConfig::default()
        .allow_obsolete_multiline_headers_in_responses(true)
        .parse_response_with_uninit_headers(&mut response, bytes, &mut headers)
        .map_err(|error| match error {
            httparse::Error::TooManyHeaders => Malformed::TooManyHeaders,
            _ => Malformed::Head,
        })?;
    let (Status::Complete(length), Some(status), Some(minor)) = (parsed, response.code, response.version) else {
        return Ok(None);
    };
    let facts = Facts::of(response.headers)?;
    let framing = facts.framing(status, minor, is_head)?;
    let persistent = if minor == 1 { !facts.close } else { facts.keep_alive && !facts.close };
    let keep_alive = persistent && framing != Framing::UntilClose && status != 101;
    Ok(Some(Head { bytes: length, status, keep_alive, framing }))
}

/// The few headers that decide about framing and persistence.
#[derive(Default)]
struct Facts {
    content_length: Option<u64>,
    /// Whether the last transfer coding is chunked; `None` when there is no coding.
    chunked: Option<bool>,
    /// How often chunked is applied.
    times_chunked: u32,
    /// Whether chunked has parameters.
    parameters: bool,
    close: bool,
    keep_alive: bool,
}

impl Facts {
    fn of(headers: &[Header<'_>]) -> Result<Self, Malformed> {
        let mut facts = Self::default();
        for header in headers {
            // The length of a name is the cheapest way to pass over the headers that do not matter here.
            match header.name.len() {
                10 if header.name.eq_ignore_ascii_case("connection") => facts.connection(header.value),
                14 if header.name.eq_ignore_ascii_case("content-length") => facts.length(header.value)?,
                17 if header.name.eq_ignore_ascii_case("transfer-encoding") => facts.encoding(header.value),
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

    fn length(&mut self, value: &[u8]) -> Result<(), Malformed> {
        let value = value.trim_ascii();
        if value.is_empty() {
            return Err(Malformed::ContentLength);
        }
        let length = value.iter().try_fold(0_u64, |sum, byte| {
            let digit = byte.checked_sub(b'0').filter(|digit| *digit < 10)?;
            sum.checked_mul(10)?.checked_add(u64::from(digit))
        });
        match (length, self.content_length) {
            (None, _) => Err(Malformed::ContentLength),
            (Some(new), Some(old)) if new != old => Err(Malformed::ContentLength),
            _ => {
                self.content_length = length;
                Ok(())
            }
        }
    }

    fn encoding(&mut self, value: &[u8]) {
        // All lines of a header are one list (RFC 9110, section 5.3), so that an empty one adds nothing.
        for coding in tokens(value) {
            let name = coding.split(|byte| *byte == b';').next().unwrap_or(coding);
            let is_chunked = name.trim_ascii().eq_ignore_ascii_case(b"chunked");
            self.times_chunked += u32::from(is_chunked);
            // It has no parameters: one is an error (RFC 9112, section 7.1).
            self.parameters |= is_chunked && name.len() < coding.len();
            self.chunked = Some(is_chunked);
        }
    }

    fn framing(&self, status: u16, minor: u8, is_head: bool) -> Result<Framing, Malformed> {
        if is_head || status < 200 || status == 204 || status == 304 {
            return Ok(Framing::None);
        }
        if let Some(chunked) = self.chunked {
            // Two framings, one that HTTP/1.0 does not know, or chunks within chunks: where the body ends is a guess
            // (RFC 9112, section 6.1).
            if self.content_length.is_some() || minor == 0 || self.times_chunked > 1 || self.parameters {
                return Err(Malformed::Framing);
            }
            return Ok(if chunked { Framing::Chunked } else { Framing::UntilClose });
        }
        Ok(self.content_length.map_or(Framing::UntilClose, Framing::Length))
    }
}

fn tokens(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).filter(|token| !token.is_empty())
}
