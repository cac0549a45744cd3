//! Why bytes are not an answer: the rule that they break, and where.

use std::fmt;

/// Why bytes are not an HTTP/1.1 response that this parser accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// The rule that they break.
    pub rule: Rule,
    /// The byte that breaks it, counted from the first byte of the answer, interim answers included.
    pub at: usize,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rule.fmt(f)
    }
}

impl std::error::Error for Malformed {}

/// A rule that an answer can break. Its text says what was wrong, and by which section of which RFC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the text of a rule says what it is")]
pub enum Rule {
    NotHttp,
    BlankLine,
    Version,
    VersionEnd,
    StatusDigits,
    StatusLow,
    Reason,
    BareCr,
    SpaceBeforeFields,
    NameSpace,
    NameEmpty,
    NoColon,
    NameCharacter,
    ValueNul,
    ValueControl,
    TooManyFields,
    HeadTooLong,
    InterimTooLong,
    BodyTooLong,
    LengthEmpty,
    LengthNumber,
    LengthTooBig,
    LengthsDiffer,
    LengthAndCoding,
    CodingInHttp10,
    ChunkedTwice,
    ChunkedParameters,
    ChunkSize,
    ChunkSizeSpace,
    ChunkSizeTooBig,
    ChunkLine,
    ChunkExtension,
    ChunkLineTooLong,
    ChunkEnd,
    LastLine,
    TrailersTooLong,
}

impl Rule {
    /// What was wrong, in words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::NotHttp => "the answer does not begin with HTTP/1. (RFC 9112, 2.3)",
            Self::BlankLine => "a line end precedes the status line (RFC 9112, 4)",
            Self::Version => "the version is not HTTP/1. and a digit (RFC 9112, 2.3)",
            Self::VersionEnd => "the version is not followed by a space (RFC 9112, 4)",
            Self::StatusDigits => "the status is not three digits (RFC 9112, 4)",
            Self::StatusLow => "the status is below 100 (RFC 9110, 15)",
            Self::Reason => "a control character stands in the reason phrase (RFC 9112, 4)",
            Self::BareCr => "a carriage return is not followed by a line feed (RFC 9112, 2.2)",
            Self::SpaceBeforeFields => "a space precedes the first field (RFC 9112, 2.2)",
            Self::NameSpace => "a space stands in the name of a field, or between it and the colon (RFC 9112, 5.1)",
            Self::NameEmpty => "a field has no name (RFC 9112, 5)",
            Self::NoColon => "a field has no colon (RFC 9112, 5)",
            Self::NameCharacter => "a name has a character that no field name may have (RFC 9110, 5.6.2)",
            Self::ValueNul => "a NUL stands in the value of a field (RFC 9110, 5.5)",
            Self::ValueControl => "a control character stands in the value of a field (RFC 9110, 5.5)",
            Self::TooManyFields => "there are more than 128 header fields, which is the most that is read",
            Self::HeadTooLong => {
                "the status line and the headers are longer than 64 KiB, which is the most that is read"
            }
            Self::InterimTooLong => "the interim answers are longer than 64 KiB, which is the most that is read",
            Self::BodyTooLong => "the body is longer than 1 MiB, which is the most that is looked into",
            Self::LengthEmpty => "Content-Length is empty (RFC 9110, 8.6)",
            Self::LengthNumber => "Content-Length is not a number in digits (RFC 9110, 8.6)",
            Self::LengthTooBig => "Content-Length does not fit into 64 bits",
            Self::LengthsDiffer => "Content-Length is given twice with different values (RFC 9112, 6.3)",
            Self::LengthAndCoding => "both Content-Length and Transfer-Encoding are given (RFC 9112, 6.3)",
            Self::CodingInHttp10 => "Transfer-Encoding is given in HTTP/1.0, which has none (RFC 9112, 6.1)",
            Self::ChunkedTwice => "the transfer coding chunked is applied twice (RFC 9112, 6.1)",
            Self::ChunkedParameters => "the transfer coding chunked has a parameter (RFC 9112, 7.1)",
            Self::ChunkSize => "the size of a chunk is not a number in hexadecimal digits (RFC 9112, 7.1)",
            Self::ChunkSizeSpace => "a space follows the size of a chunk (RFC 9112, 7.1)",
            Self::ChunkSizeTooBig => "the size of a chunk does not fit into 64 bits",
            Self::ChunkLine => "the line with the size of a chunk does not end in CR LF (RFC 9112, 7.1)",
            Self::ChunkExtension => "the extension of a chunk is not a name, or a name and a value (RFC 9112, 7.1.1)",
            Self::ChunkLineTooLong => {
                "the line with the size of a chunk is longer than 64 KiB, which is the most that is read"
            }
            Self::ChunkEnd => "no CR LF follows the data of a chunk where its size ends them (RFC 9112, 7.1)",
            Self::LastLine => "the empty line after the last chunk does not end in CR LF (RFC 9112, 7.1)",
            Self::TrailersTooLong => "the trailers are longer than 64 KiB, which is the most that is read",
        }
    }

    /// Whether the bytes do not even begin like an HTTP/1 answer.
    #[must_use]
    pub const fn is_no_beginning(self) -> bool {
        matches!(self, Self::NotHttp | Self::BlankLine)
    }

    /// This rule, broken at this position.
    pub(crate) const fn at(self, at: usize) -> Malformed {
        Malformed { rule: self, at }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}

/// The first fault in a malformed head; `None` if the grammar is kept.
///
/// The parser of heads does not report where it stopped. This reads the same grammar (RFC 9112, sections 4 and 5) in order, so
/// that the fault does not depend on how much of the head has arrived.
#[cold]
pub(crate) fn head_fault(bytes: &[u8]) -> Option<Malformed> {
    if matches!(bytes, [b'\r' | b'\n', ..]) {
        return Some(Rule::BlankLine.at(0));
    }
    let at = |at: usize| bytes.get(at).copied();
    for (i, expected) in b"HTTP/1.".iter().enumerate() {
        if at(i)? != *expected {
            return Some(Rule::NotHttp.at(i));
        }
    }
    if !at(7)?.is_ascii_digit() {
        return Some(Rule::Version.at(7));
    }
    match at(8)? {
        b' ' => {}
        digit if digit.is_ascii_digit() => return Some(Rule::Version.at(8)),
        _ => return Some(Rule::VersionEnd.at(8)),
    }
    for i in 9..12 {
        if !at(i)?.is_ascii_digit() {
            return Some(Rule::StatusDigits.at(i));
        }
    }
    if !matches!(at(12)?, b' ' | b'\r' | b'\n') {
        return Some(Rule::StatusDigits.at(12));
    }
    let mut line = match text_end(bytes, 12)? {
        Ok(next) => next,
        Err(Malformed { at, rule: Rule::BareCr }) => return Some(Rule::BareCr.at(at)),
        Err(Malformed { at, .. }) => return Some(Rule::Reason.at(at)),
    };
    for fields in 1.. {
        match at(line)? {
            b'\n' => return None,
            b'\r' => return if at(line + 1)? == b'\n' { None } else { Some(Rule::BareCr.at(line)) },
            b' ' | b'\t' => return Some(Rule::SpaceBeforeFields.at(line)),
            _ => {}
        }
        let mut colon = line;
        while is_token(at(colon)?) {
            colon += 1;
        }
        if at(colon)? != b':' || colon == line {
            return Some(name_rule(at(colon)?, colon == line).at(colon));
        }
        let mut end = colon + 1;
        loop {
            match text_end(bytes, end)? {
                Err(fault) => return Some(fault),
                Ok(next) => end = next,
            }
            // A line that begins with a space continues the previous line (RFC 9112, section 5.2).
            if !matches!(at(end)?, b' ' | b'\t') {
                break;
            }
        }
        if fields > crate::MOST_HEADERS {
            return Some(Rule::TooManyFields.at(line));
        }
        line = end;
    }
    None
}

/// The beginning of the line after the text that begins here, or the position of a wrong byte in it; `None` when it does not
/// end.
fn text_end(bytes: &[u8], from: usize) -> Option<Result<usize, Malformed>> {
    let end = from + bytes.get(from..)?.iter().position(|byte| !is_text(*byte))?;
    match bytes[end] {
        b'\n' => Some(Ok(end + 1)),
        b'\r' => Some(if *bytes.get(end + 1)? == b'\n' { Ok(end + 2) } else { Err(Rule::BareCr.at(end)) }),
        other => Some(Err(value_rule(other).at(end))),
    }
}

/// The rule that a byte breaks in the name of a field.
pub(crate) fn name_rule(byte: u8, first: bool) -> Rule {
    match byte {
        b':' if first => Rule::NameEmpty,
        b' ' | b'\t' => Rule::NameSpace,
        b'\r' | b'\n' => Rule::NoColon,
        _ => Rule::NameCharacter,
    }
}

/// The rule that a byte breaks in the value of a field.
pub(crate) fn value_rule(byte: u8) -> Rule {
    if byte == 0 { Rule::ValueNul } else { Rule::ValueControl }
}

/// `tchar`, RFC 9110, section 5.6.2.
pub(crate) fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Whether a byte may occur in a field value or a quoted string (RFC 9110, sections 5.5 and 5.6.4).
pub(crate) fn is_text(byte: u8) -> bool {
    matches!(byte, b'\t' | b' '..=b'~' | 0x80..)
}
