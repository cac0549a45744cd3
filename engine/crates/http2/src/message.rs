//! Validates an answer as HTTP (RFC 9113, section 8.1). nghttp2 could do so too, but ends the whole connection, with every
//! other request on it, over a malformed answer.

use crate::rule::Rule;
use crate::{MOST_FIELDS, MOST_HEAD_BYTES};

/// What to do with a stream after an event on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Fine,
    Malformed(Rule),
}

impl Verdict {
    fn fine_if(fine: bool, rule: Rule) -> Self {
        if fine { Self::Fine } else { Self::Malformed(rule) }
    }
}

/// An answer that is arriving: interim answers, then the final answer, its body and perhaps trailers.
#[derive(Debug, Default)]
pub struct Message {
    /// The request was HEAD: a length may be declared, but no body follows.
    head_only: bool,
    /// The request was an extended CONNECT: after 200 to 299, its data are another protocol's (RFC 9113, section 8.5).
    connects: bool,
    /// Size of the list of fields that is arriving.
    head_bytes: usize,
    /// Ordinary fields in the list so far: no pseudo-field may follow them.
    fields: usize,
    /// The status in the list of fields that is arriving; 0 before it.
    coming: u16,
    /// The status of the final answer; 0 before it.
    status: u16,
    content_length: Option<u64>,
    body_length: u64,
    /// Whether this is a gRPC answer, which has a status of its own.
    is_grpc: bool,
    grpc_status: Option<u32>,
}

/// The gRPC status UNKNOWN, for an answer without a status.
const GRPC_UNKNOWN: u32 = 2;

impl Message {
    pub fn new(head_only: bool, connects: bool) -> Self {
        Self { head_only, connects, ..Self::default() }
    }

    /// Whether the stream carries another protocol now.
    fn is_connected(&self) -> bool {
        self.connects && matches!(self.status, 200..=299)
    }

    /// Whether any part of the answer has arrived.
    pub fn has_begun(&self) -> bool {
        self.status != 0 || self.head_bytes > 0
    }

    pub fn status(&self) -> u16 {
        self.status
    }

    /// The status in the last list of fields.
    pub fn coming(&self) -> u16 {
        self.coming
    }

    /// The gRPC status, from the trailers or, in an answer without a body, from its head; `None` if this is not a gRPC answer.
    pub fn grpc_status(&self) -> Option<u32> {
        if self.is_grpc { self.grpc_status.or(Some(GRPC_UNKNOWN)) } else { self.grpc_status }
    }

    pub fn body_length(&self) -> u64 {
        self.body_length
    }

    /// A list of fields begins: an interim answer, the final answer or trailers.
    pub fn begin_head(&mut self) {
        (self.head_bytes, self.fields, self.coming) = (0, 0, 0);
        if self.status == 0 {
            self.content_length = None;
        }
    }

    /// A field arrived.
    pub fn field(&mut self, name: &[u8], value: &[u8]) -> Verdict {
        self.head_bytes += name.len() + value.len() + 32;
        if self.head_bytes > MOST_HEAD_BYTES {
            return Verdict::Malformed(Rule::FieldsTooLong);
        }
        if let Err(rule) = check_value(value) {
            return Verdict::Malformed(rule);
        }
        if let Some(b':') = name.first() {
            return self.pseudo_field(name, value);
        }
        self.fields += 1;
        if self.fields > MOST_FIELDS {
            return Verdict::Malformed(Rule::TooManyFields);
        }
        match name {
            b"content-length" if self.status == 0 => {
                let earlier = self.content_length;
                self.content_length = number(value);
                match (earlier, self.content_length) {
                    (_, None) => Verdict::Malformed(Rule::LengthNumber),
                    (Some(earlier), Some(length)) if earlier != length => Verdict::Malformed(Rule::LengthsDiffer),
                    _ => Verdict::Fine,
                }
            }
            b"content-type" if self.status == 0 => {
                self.is_grpc = value.starts_with(b"application/grpc");
                Verdict::Fine
            }
            b"grpc-status" => {
                let status = number(value).and_then(|status| u32::try_from(status).ok());
                self.grpc_status = status.or(Some(GRPC_UNKNOWN));
                Verdict::Fine
            }
            // These fields concern an HTTP/1.1 connection (section 8.2.2); `te` is allowed only in requests.
            b"connection" | b"keep-alive" | b"proxy-connection" | b"te" | b"transfer-encoding" | b"upgrade" => {
                Verdict::Malformed(Rule::ConnectionField)
            }
            _ => check_name(name).map_or_else(Verdict::Malformed, |()| Verdict::Fine),
        }
    }

    fn pseudo_field(&mut self, name: &[u8], value: &[u8]) -> Verdict {
        let before = self.coming;
        self.coming = status(value).unwrap_or_default();
        let rule = if self.status != 0 {
            Rule::PseudoInTrailers
        } else if name != b":status" {
            Rule::PseudoField
        } else if self.fields > 0 {
            Rule::PseudoLate
        } else if before != 0 {
            Rule::StatusTwice
        } else {
            return Verdict::fine_if(self.coming != 0, Rule::StatusDigits);
        };
        Verdict::Malformed(rule)
    }

    /// The list of fields is complete.
    pub fn end_head(&mut self, last: bool) -> Verdict {
        match (self.status, self.coming) {
            (0, 0) => Verdict::Malformed(Rule::StatusMissing),
            (0, 101) => Verdict::Malformed(Rule::Status101),
            (0, 100..=199) => Verdict::fine_if(!last, Rule::InterimEnd),
            (0, coming) => {
                self.status = coming;
                Verdict::Fine
            }
            _ if self.is_connected() => Verdict::Malformed(Rule::HeadersConnected),
            _ => Verdict::fine_if(last, Rule::TrailersOpen),
        }
    }

    /// A piece of the body arrived.
    pub fn data(&mut self, length: usize) -> Verdict {
        self.body_length += length as u64;
        if self.status == 0 {
            return Verdict::Malformed(Rule::DataBeforeStatus);
        }
        Verdict::fine_if(self.right_length().is_none_or(|most| self.body_length <= most), Rule::DataTooLong)
    }

    /// The peer has ended its side.
    pub fn end(&self) -> Verdict {
        if self.status == 0 {
            return Verdict::Malformed(Rule::StatusMissing);
        }
        Verdict::fine_if(self.right_length().is_none_or(|length| self.body_length == length), Rule::DataTooShort)
    }

    /// The length that the body must have, if known.
    fn right_length(&self) -> Option<u64> {
        if self.is_connected() {
            return None;
        }
        if self.head_only || matches!(self.status, 204 | 304) { Some(0) } else { self.content_length }
    }
}

/// Which bytes are forbidden in names, and which in values. A table, because every byte of every field is looked up.
const WRONG: [u8; 256] = {
    let mut wrong = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        if matches!(byte as u8, 0..=b' ' | b':' | b'A'..=b'Z' | 0x7f..) {
            wrong[byte] |= IN_NAME;
        }
        if matches!(byte as u8, 0 | b'\n' | b'\r') {
            wrong[byte] |= IN_VALUE;
        }
        byte += 1;
    }
    wrong
};
const IN_NAME: u8 = 1;
const IN_VALUE: u8 = 2;

/// Whether a field may have this name (section 8.2.1); pseudo-fields are listed elsewhere.
fn check_name(name: &[u8]) -> Result<(), Rule> {
    if name.is_empty() {
        Err(Rule::NameEmpty)
    } else if wrong(name) & IN_NAME == 0 {
        Ok(())
    } else if name.iter().any(u8::is_ascii_uppercase) {
        Err(Rule::NameUpperCase)
    } else {
        Err(Rule::NameByte)
    }
}

/// Whether a field may have this value (section 8.2.1).
fn check_value(value: &[u8]) -> Result<(), Rule> {
    let is_space = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    if is_space(value.first()) || is_space(value.last()) {
        Err(Rule::ValueSpace)
    } else if wrong(value) & IN_VALUE != 0 {
        Err(Rule::ValueByte)
    } else {
        Ok(())
    }
}

/// The flags of forbidden bytes. Looking at all bytes takes fewer instructions than stopping at the first.
fn wrong(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0, |seen, byte| seen | WRONG[usize::from(*byte)])
}

/// A status: three digits, 100 at least. A client treats 600 to 999 as a server error (RFC 9110, section 15).
fn status(value: &[u8]) -> Option<u16> {
    let &[first @ b'1'..=b'9', second @ b'0'..=b'9', third @ b'0'..=b'9'] = value else { return None };
    Some(u16::from(first - b'0') * 100 + u16::from(second - b'0') * 10 + u16::from(third - b'0'))
}

/// A decimal number that fits 64 bits.
fn number(value: &[u8]) -> Option<u64> {
    let digit = |number: u64, byte: &u8| match byte {
        b'0'..=b'9' => number.checked_mul(10)?.checked_add(u64::from(byte - b'0')),
        _ => None,
    };
    if value.is_empty() { None } else { value.iter().try_fold(0, digit) }
}
