//! Values that a visitor takes from an answer.

use std::fmt;

use redline_wire::{Pointer, values_in};
use regex::bytes::Regex;

use crate::Jar;

/// Where a value stands in an answer.
#[derive(Clone, Debug)]
pub enum Take {
    /// At a JSON Pointer in the body: the content of a string, any other value as it stands.
    Json(Pointer),
    /// In the first header field of this name, in lower case.
    Header(Box<str>),
    /// In the visitor's cookie of this name, which this answer or an earlier answer set.
    Cookie(Box<str>),
    /// The first group of the first match in the body, or the match if the expression has no group.
    Regex(Regex),
    /// The strings at a JSON Pointer in the messages of a stream that count, one after the other: whoever reads the stream
    /// gathers them.
    Text(Pointer),
}

/// Why a place is no place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongTake(String);

impl fmt::Display for WrongTake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WrongTake {}

impl Take {
    /// At a JSON Pointer (RFC 6901).
    ///
    /// # Errors
    /// When it is not valid.
    pub fn json(pointer: &str) -> Result<Self, WrongTake> {
        Pointer::parse(pointer).map(Self::Json).ok_or_else(|| WrongTake(format!("{pointer:?} is not a JSON Pointer")))
    }

    /// At a JSON Pointer (RFC 6901) in the messages of a stream.
    ///
    /// # Errors
    /// When it is not valid.
    pub fn text(pointer: &str) -> Result<Self, WrongTake> {
        Pointer::parse(pointer).map(Self::Text).ok_or_else(|| WrongTake(format!("{pointer:?} is not a JSON Pointer")))
    }

    /// In a header field.
    #[must_use]
    pub fn header(name: &str) -> Self {
        Self::Header(name.to_ascii_lowercase().into())
    }

    /// In a cookie.
    #[must_use]
    pub fn cookie(name: &str) -> Self {
        Self::Cookie(name.into())
    }

    /// By a regular expression, in the syntax of the `regex` crate; bytes that are not UTF-8 may be matched.
    ///
    /// # Errors
    /// When it is not valid, or too large.
    pub fn regex(expression: &str) -> Result<Self, WrongTake> {
        let why = |error: regex::Error| match error {
            // The last line says what is wrong; those before draw where.
            regex::Error::Syntax(text) => {
                WrongTake(text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned())
            }
            other => WrongTake(other.to_string()),
        };
        Regex::new(expression).map(Self::Regex).map_err(why)
    }

    /// Whether it reads the body.
    #[must_use]
    pub fn reads_body(&self) -> bool {
        matches!(self, Self::Json(_) | Self::Regex(_))
    }

    /// Where messages have the parts of the text that it gathers, if it does.
    #[must_use]
    pub fn gathers(&self) -> Option<&Pointer> {
        match self {
            Self::Text(pointer) => Some(pointer),
            _ => None,
        }
    }

    /// Whether it reads fields of the head other than cookies.
    #[must_use]
    pub fn reads_fields(&self) -> bool {
        matches!(self, Self::Header(_))
    }

    /// Put the value in place of `value`. Returns whether the answer has it. `head` has its fields, a line each, if this
    /// reads any, and `body` the text that was gathered, if this is one. Its cookies are in the `jar` already.
    pub fn take(&self, head: &[u8], body: &[u8], jar: &Jar, now_s: i64, value: &mut Vec<u8>) -> bool {
        let mut put = |found: &[u8]| {
            value.clear();
            value.extend_from_slice(found);
        };
        match self {
            Self::Json(pointer) => pointer.text(body).map(|text| put(text.as_bytes())),
            Self::Text(_) => Some(body).filter(|text| !text.is_empty()).map(put),
            Self::Header(name) => values_in(head, name.as_bytes()).next().map(put),
            Self::Cookie(name) => jar.value(name.as_bytes(), now_s).map(put),
            Self::Regex(regex) => regex
                .captures(body)
                .and_then(|groups| if regex.captures_len() > 1 { groups.get(1) } else { groups.get(0) })
                .map(|found| put(found.as_bytes())),
        }
        .is_some()
    }
}

impl fmt::Display for Take {
    /// As it is named in a message: `/token`, `the header x-csrf`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(pointer) => write!(f, "{pointer} of the body"),
            Self::Text(pointer) => write!(f, "{pointer} of the messages"),
            Self::Header(name) => write!(f, "the header {name}"),
            Self::Cookie(name) => write!(f, "the cookie {name}"),
            Self::Regex(regex) => write!(f, "a match of {:?} in the body", regex.as_str()),
        }
    }
}
