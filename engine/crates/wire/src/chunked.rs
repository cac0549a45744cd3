//! The chunked transfer coding (RFC 9112, section 7.1), byte by byte outside the data and in bulk within it.

use crate::MOST_HEAD_BYTES;
use crate::answer::Malformed;

/// Where in a chunked body the next byte stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// In the hexadecimal size; whether a digit has come.
    Size(bool),
    /// In white space or an extension after the size.
    Extension,
    /// After the carriage return of the size line.
    SizeEnd,
    /// In a chunk's data.
    Data,
    /// After the data: its carriage return, then its line feed.
    DataCr,
    DataLf,
    /// At the beginning of a trailer line, within one, or after the carriage return of the blank one.
    TrailerStart,
    Trailer,
    LastLf,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunked {
    at: At,
    remaining: u64,
    /// Bytes of the current size and its extension, or of all trailers.
    overhead: u32,
}

/// What a piece of input held.
pub(crate) enum Piece<'a> {
    /// Data of the body; the second is how many bytes of input it took.
    Data(&'a [u8], usize),
    /// The body is whole, after so many bytes of input.
    End(usize),
    /// All input is used, and more is needed.
    More,
}

impl Chunked {
    pub(crate) fn new() -> Self {
        Self { at: At::Size(false), remaining: 0, overhead: 0 }
    }

    /// Advance over `input` to the next data or the end of the body.
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
            if self.step(*byte)? {
                return Ok(Piece::End(i + 1));
            }
        }
        Ok(Piece::More)
    }

    /// Take one byte outside the data; true when it was the last of the body.
    fn step(&mut self, byte: u8) -> Result<bool, Malformed> {
        self.at = match (self.at, byte) {
            (At::Size(_), digit) if digit.is_ascii_hexdigit() => self.digit(digit)?,
            (At::Size(true) | At::Extension, b'\r') => At::SizeEnd,
            (At::Size(true), b' ' | b'\t' | b';') => self.kept(At::Extension)?,
            (At::Extension, other) if other != b'\n' => self.kept(At::Extension)?,
            (At::SizeEnd, b'\n') => self.size_is_known(),
            (At::DataCr, b'\r') => At::DataLf,
            (At::DataLf, b'\n') => At::Size(false),
            (At::TrailerStart, b'\r') => At::LastLf,
            (At::TrailerStart | At::Trailer, other) if other != b'\n' => self.kept(At::Trailer)?,
            (At::Trailer, b'\n') => At::TrailerStart,
            (At::LastLf, b'\n') => return Ok(true),
            _ => return Err(Malformed::Chunk),
        };
        Ok(false)
    }

    fn digit(&mut self, byte: u8) -> Result<At, Malformed> {
        let digit = char::from(byte).to_digit(16).unwrap_or_default();
        self.remaining = self.remaining.checked_mul(16).ok_or(Malformed::Chunk)? | u64::from(digit);
        // Zeros in front change nothing, so without a count they could go on for ever.
        self.kept(At::Size(true))
    }

    fn size_is_known(&mut self) -> At {
        self.overhead = 0;
        if self.remaining == 0 { At::TrailerStart } else { At::Data }
    }

    fn kept(&mut self, at: At) -> Result<At, Malformed> {
        self.overhead += 1;
        if self.overhead as usize > MOST_HEAD_BYTES { Err(Malformed::TooLong) } else { Ok(at) }
    }
}
