//! The chunked transfer coding (RFC 9112, section 7.1), byte by byte outside the data and in bulk within it.

use crate::MOST_HEAD_BYTES;
use crate::malformed::{Malformed, Rule, is_text, is_token, name_rule, value_rule};

/// The position of the next byte in a chunked body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// In the hexadecimal size; whether a digit has arrived.
    Size(bool),
    /// In white space that must precede an extension: after the size, and after another extension.
    AfterSize,
    BeforeExtension,
    /// Before an extension's name, in it, and in white space after it.
    NameStart,
    Name,
    AfterName,
    /// Before an extension's value, in a token, in a quoted string, after its backslash, and after it.
    ValueStart,
    Value,
    Quoted,
    Escaped,
    AfterQuoted,
    /// After the carriage return of the size line.
    SizeEnd,
    /// In a chunk's data.
    Data,
    /// After the data: its carriage return, then its line feed.
    DataCr,
    DataLf,
    /// At the beginning of a trailer line; whether there is a line before it, which it may continue.
    TrailerStart(bool),
    /// In a trailer's name, in its value, and after the carriage return of its line.
    TrailerName,
    TrailerValue,
    TrailerLf,
    /// After the carriage return of the last, blank line.
    LastLf,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunked {
    at: At,
    remaining: u64,
    /// Bytes of the current size and its extension, or of all trailers.
    overhead: u32,
}

/// The content of a piece of input.
pub(crate) enum Piece<'a> {
    /// Data of the body, and the number of input bytes used.
    Data(&'a [u8], usize),
    /// The body is complete, after this many bytes of input.
    End(usize),
    /// All input is used, and more is needed.
    More,
}

impl Chunked {
    pub(crate) fn new() -> Self {
        Self { at: At::Size(false), remaining: 0, overhead: 0 }
    }

    /// Whether the data of a chunk have just ended.
    pub(crate) fn is_after_data(&self) -> bool {
        self.at == At::DataCr
    }

    /// Advance over `input` to the next data or the end of the body. The position of an error counts from the first byte of
    /// `input`.
    pub(crate) fn next<'a>(&mut self, input: &'a [u8]) -> Result<Piece<'a>, Malformed> {
        for (i, byte) in input.iter().enumerate() {
            if self.at == At::Data {
                let left = input.len() - i;
                let take = usize::try_from(self.remaining).map_or(left, |remaining| remaining.min(left));
                self.remaining -= take as u64;
                if self.remaining == 0 {
                    self.at = At::DataCr;
                }
                return Ok(Piece::Data(&input[i..i + take], i + take));
            }
            if self.step(*byte).map_err(|rule| rule.at(i))? {
                return Ok(Piece::End(i + 1));
            }
        }
        Ok(Piece::More)
    }

    /// Process a byte outside the data. Returns true when it was the last of the body.
    fn step(&mut self, byte: u8) -> Result<bool, Rule> {
        let at = match (self.at, byte) {
            (At::Size(_), digit) if digit.is_ascii_hexdigit() => return self.digit(digit),
            (At::Size(true) | At::Name | At::Value | At::AfterQuoted, b'\r') => At::SizeEnd,
            (At::SizeEnd, b'\n') => self.size_is_known(),
            (At::DataCr, b'\r') => At::DataLf,
            (At::DataLf, b'\n') => At::Size(false),
            (At::TrailerStart(_), b'\r') => At::LastLf,
            (At::LastLf, b'\n') => return Ok(true),
            (At::TrailerStart(_) | At::TrailerName | At::TrailerValue | At::TrailerLf, _) => self.trailer(byte)?,
            _ => self.extension(byte)?,
        };
        self.at = at;
        Ok(false)
    }

    /// `*( BWS ";" BWS token [ BWS "=" BWS ( token / quoted-string ) ] )`, RFC 9112, section 7.1.1.
    fn extension(&mut self, byte: u8) -> Result<At, Rule> {
        let at = match (self.at, byte) {
            (At::Size(true) | At::AfterSize, b' ' | b'\t') => At::AfterSize,
            (At::BeforeExtension | At::Value | At::AfterQuoted, b' ' | b'\t') => At::BeforeExtension,
            (
                At::Size(true)
                | At::AfterSize
                | At::BeforeExtension
                | At::Name
                | At::AfterName
                | At::Value
                | At::AfterQuoted,
                b';',
            ) => At::NameStart,
            (At::NameStart | At::ValueStart, b' ' | b'\t') => self.at,
            (At::NameStart | At::Name, byte) if is_token(byte) => At::Name,
            (At::Name | At::AfterName, b' ' | b'\t') => At::AfterName,
            (At::Name | At::AfterName, b'=') => At::ValueStart,
            (At::ValueStart, b'"') => At::Quoted,
            (At::ValueStart | At::Value, byte) if is_token(byte) => At::Value,
            (At::Quoted, b'"') => At::AfterQuoted,
            (At::Quoted, b'\\') => At::Escaped,
            (At::Quoted | At::Escaped, byte) if is_text(byte) => At::Quoted,
            (At::Size(true), b'\n') | (At::SizeEnd, _) => return Err(Rule::ChunkLine),
            (At::Size(_), _) => return Err(Rule::ChunkSize),
            (At::AfterSize, _) => return Err(Rule::ChunkSizeSpace),
            (At::DataCr | At::DataLf, _) => return Err(Rule::ChunkEnd),
            (At::LastLf, _) => return Err(Rule::LastLine),
            _ => return Err(Rule::ChunkExtension),
        };
        self.counted(Rule::ChunkLineTooLong)?;
        Ok(at)
    }

    /// A field line (RFC 9112, section 5). Its end may be a line feed alone (section 2.2), and it may be folded (section 5.2).
    fn trailer(&mut self, byte: u8) -> Result<At, Rule> {
        let at = match (self.at, byte) {
            (At::TrailerStart(_) | At::TrailerName, byte) if is_token(byte) => At::TrailerName,
            (At::TrailerName, b':') | (At::TrailerStart(true), b' ' | b'\t') => At::TrailerValue,
            (At::TrailerValue, b'\r') => At::TrailerLf,
            (At::TrailerValue | At::TrailerLf, b'\n') => At::TrailerStart(true),
            (At::TrailerValue, byte) if is_text(byte) => At::TrailerValue,
            (At::TrailerStart(_), b'\n') => return Err(Rule::LastLine),
            (At::TrailerStart(_) | At::TrailerName, byte) => {
                return Err(name_rule(byte, matches!(self.at, At::TrailerStart(_))));
            }
            (At::TrailerLf, _) => return Err(Rule::BareCr),
            (_, byte) => return Err(value_rule(byte)),
        };
        self.counted(Rule::TrailersTooLong)?;
        Ok(at)
    }

    fn digit(&mut self, byte: u8) -> Result<bool, Rule> {
        let digit = char::from(byte).to_digit(16).unwrap_or_default();
        self.remaining = self.remaining.checked_mul(16).ok_or(Rule::ChunkSizeTooBig)? | u64::from(digit);
        self.at = At::Size(true);
        // Leading zeros change nothing, so without a count they could continue for ever.
        self.counted(Rule::ChunkLineTooLong)?;
        Ok(false)
    }

    fn size_is_known(&mut self) -> At {
        self.overhead = 0;
        if self.remaining == 0 { At::TrailerStart(false) } else { At::Data }
    }

    fn counted(&mut self, limit: Rule) -> Result<(), Rule> {
        self.overhead += 1;
        if self.overhead as usize > MOST_HEAD_BYTES { Err(limit) } else { Ok(()) }
    }
}
