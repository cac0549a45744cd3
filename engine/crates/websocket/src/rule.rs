//! The rules that a peer can break, and the codes with which connections are closed, in words.

use std::fmt;

/// A rule that the peer breaks. Its text says what is wrong, and by which section of RFC 6455.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the text of a rule says what it is")]
pub enum Rule {
    ReservedBit,
    PackedFragment,
    NotDeflate,
    UnpackedTooLong,
    ReservedOpcode,
    MaskedByServer,
    NotMaskedByClient,
    ControlFragment,
    ControlTooLong,
    NothingToContinue,
    MessageWithinMessage,
    LengthNotShortest,
    LengthTooLarge,
    MessageTooLong,
    TooManyFrames,
    NotUtf8,
    CloseOfOneByte,
    CloseCode,
    CloseNotUtf8,
}

impl Rule {
    /// The code with which the connection is closed (RFC 6455, 7.4.1).
    #[must_use]
    pub fn close_code(self) -> u16 {
        match self {
            Self::NotUtf8 | Self::CloseNotUtf8 | Self::NotDeflate => 1007,
            Self::UnpackedTooLong | Self::MessageTooLong | Self::TooManyFrames => 1009,
            _ => 1002,
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ReservedBit => "a reserved bit of a frame is set, and no extension was agreed on (RFC 6455, 5.2)",
            Self::PackedFragment => "the bit of compression is set in a frame that begins no message (RFC 7692, 6.1)",
            Self::NotDeflate => "a compressed message is not DEFLATE (RFC 7692, 7.2.2)",
            Self::UnpackedTooLong => {
                "a message is longer than 16 MiB when decompressed, which is the most that is read"
            }
            Self::ReservedOpcode => "a frame has a reserved opcode (RFC 6455, 5.2)",
            Self::MaskedByServer => "the server masks a frame (RFC 6455, 5.1)",
            Self::NotMaskedByClient => "the client does not mask a frame (RFC 6455, 5.1)",
            Self::ControlFragment => "a control frame is a fragment (RFC 6455, 5.5)",
            Self::ControlTooLong => "a control frame has more than 125 bytes (RFC 6455, 5.5)",
            Self::NothingToContinue => "a fragment continues no message (RFC 6455, 5.4)",
            Self::MessageWithinMessage => "a message begins within the fragments of another (RFC 6455, 5.4)",
            Self::LengthNotShortest => "the length of a frame has more bytes than it needs (RFC 6455, 5.2)",
            Self::LengthTooLarge => "the highest bit of a frame's length is set (RFC 6455, 5.2)",
            Self::MessageTooLong => "a message is longer than 16 MiB, which is the most that is read",
            Self::TooManyFrames => "a message has more than 1,048,576 frames, which is the most that is read",
            Self::NotUtf8 => "a text is not UTF-8 (RFC 6455, 8.1)",
            Self::CloseOfOneByte => "a close frame has one byte (RFC 6455, 5.5.1)",
            Self::CloseCode => "a close frame has a code that no one may send (RFC 6455, 7.4)",
            Self::CloseNotUtf8 => "the reason in a close frame is not UTF-8 (RFC 6455, 5.5.1)",
        })
    }
}

impl std::error::Error for Rule {}

/// What a close code means, as IANA registers it.
#[must_use]
pub fn close_code_name(code: u16) -> &'static str {
    match code {
        1000 => "normal closure",
        1001 => "going away",
        1002 => "protocol error",
        1003 => "unsupported data",
        1007 => "invalid frame payload data",
        1008 => "policy violation",
        1009 => "message too big",
        1010 => "mandatory extension",
        1011 => "internal error",
        1012 => "service restart",
        1013 => "try again later",
        1014 => "bad gateway",
        3000..=3999 => "a registered code",
        _ => "a private code",
    }
}

/// Whether a peer may send a close code (RFC 6455, 7.4, and the codes that IANA registered later).
pub(crate) fn may_be_sent(code: u16) -> bool {
    matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999)
}
