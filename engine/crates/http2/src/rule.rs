//! The rules that an answer or a peer can break, in words.

use std::fmt;

use libnghttp2_sys as ng;

/// A rule that an answer on a stream can break. Its text says what was wrong, and by which section of which RFC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the text of a rule says what it is")]
pub enum Rule {
    FieldsTooLong,
    TooManyFields,
    NameEmpty,
    NameUpperCase,
    NameByte,
    ValueByte,
    ValueSpace,
    ConnectionField,
    PseudoField,
    PseudoLate,
    PseudoInTrailers,
    StatusTwice,
    StatusDigits,
    StatusMissing,
    Status101,
    InterimEnd,
    TrailersOpen,
    HeadersConnected,
    LengthNumber,
    LengthsDiffer,
    DataBeforeStatus,
    DataTooLong,
    DataTooShort,
    BodyTooLong,
    Frame,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FieldsTooLong => "the fields are longer than 64 KiB, which is the most that is read",
            Self::TooManyFields => "there are more than 128 fields, which is the most that is read",
            Self::NameEmpty => "a field has no name (RFC 9113, 8.2.1)",
            Self::NameUpperCase => "the name of a field is not in lower case (RFC 9113, 8.2.1)",
            Self::NameByte => "a name has a character that no field name may have (RFC 9113, 8.2.1)",
            Self::ValueByte => "a NUL or a line end stands in the value of a field (RFC 9113, 8.2.1)",
            Self::ValueSpace => "the value of a field begins or ends with a space (RFC 9113, 8.2.1)",
            Self::ConnectionField => "HTTP/2 allows no field about the connection (RFC 9113, 8.2.2)",
            Self::PseudoField => "an answer has no pseudo-field but :status (RFC 9113, 8.3)",
            Self::PseudoLate => "a pseudo-field follows another field (RFC 9113, 8.3)",
            Self::PseudoInTrailers => "a pseudo-field stands in the trailers (RFC 9113, 8.1)",
            Self::StatusTwice => "there are two statuses (RFC 9113, 8.3)",
            Self::StatusDigits => "the status is not a number from 100 to 999 (RFC 9113, 8.3.2)",
            Self::StatusMissing => "there is no status (RFC 9113, 8.3.2)",
            Self::Status101 => "the status is 101, which HTTP/2 does not have (RFC 9113, 8.6)",
            Self::InterimEnd => "an interim answer ends the stream (RFC 9113, 8.1)",
            Self::TrailersOpen => "fields after the status do not end the stream (RFC 9113, 8.1)",
            Self::HeadersConnected => "fields follow on a stream that carries another protocol (RFC 9113, 8.5)",
            Self::LengthNumber => "content-length is not a number in digits (RFC 9110, 8.6)",
            Self::LengthsDiffer => "content-length is given twice with different values (RFC 9110, 8.6)",
            Self::DataBeforeStatus => "data precede the status (RFC 9113, 8.1)",
            Self::DataTooLong => "the body is longer than content-length or the status allows (RFC 9113, 8.1.1)",
            Self::DataTooShort => "the body is shorter than content-length says (RFC 9113, 8.1.1)",
            Self::BodyTooLong => "the body is longer than 1 MiB, which is the most that is looked into",
            Self::Frame => "a frame breaks the rules of its stream (RFC 9113, 5.4.2)",
        })
    }
}

/// The name of an HTTP/2 error code (RFC 9113, section 7), or `unknown error`.
#[must_use]
pub fn code_name(code: u32) -> &'static str {
    match code {
        ng::NGHTTP2_NO_ERROR => "NO_ERROR",
        ng::NGHTTP2_PROTOCOL_ERROR => "PROTOCOL_ERROR",
        ng::NGHTTP2_INTERNAL_ERROR => "INTERNAL_ERROR",
        ng::NGHTTP2_FLOW_CONTROL_ERROR => "FLOW_CONTROL_ERROR",
        ng::NGHTTP2_SETTINGS_TIMEOUT => "SETTINGS_TIMEOUT",
        ng::NGHTTP2_STREAM_CLOSED => "STREAM_CLOSED",
        ng::NGHTTP2_FRAME_SIZE_ERROR => "FRAME_SIZE_ERROR",
        ng::NGHTTP2_REFUSED_STREAM => "REFUSED_STREAM",
        ng::NGHTTP2_CANCEL => "CANCEL",
        ng::NGHTTP2_COMPRESSION_ERROR => "COMPRESSION_ERROR",
        ng::NGHTTP2_CONNECT_ERROR => "CONNECT_ERROR",
        ng::NGHTTP2_ENHANCE_YOUR_CALM => "ENHANCE_YOUR_CALM",
        ng::NGHTTP2_INADEQUATE_SECURITY => "INADEQUATE_SECURITY",
        ng::NGHTTP2_HTTP_1_1_REQUIRED => "HTTP_1_1_REQUIRED",
        _ => "unknown error",
    }
}

/// What the peer did, in words, if this side ends the connection with this code.
pub(crate) fn violation(code: u32) -> &'static str {
    match code {
        ng::NGHTTP2_HTTP_1_1_REQUIRED => "the peer answers in HTTP/1, not in HTTP/2",
        ng::NGHTTP2_FLOW_CONTROL_ERROR => "the peer sends more than the window allows (RFC 9113, 5.2)",
        ng::NGHTTP2_STREAM_CLOSED => "the peer continues a stream that it has ended (RFC 9113, 5.1)",
        ng::NGHTTP2_FRAME_SIZE_ERROR => "a frame has a wrong length (RFC 9113, 4.2)",
        ng::NGHTTP2_COMPRESSION_ERROR => "the fields cannot be decoded (RFC 9113, 4.3)",
        ng::NGHTTP2_ENHANCE_YOUR_CALM => "the peer floods the connection (RFC 9113, 10.5)",
        _ => "a frame breaks the rules of the connection (RFC 9113, 5.4.1)",
    }
}
