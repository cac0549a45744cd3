//! Values of a visitor in a request: which, and how they are written where they stand.

use memchr::memchr;

use crate::request::{Part, Unsendable};
use crate::text::{Names, Unfit, Values, shown};

/// A value that a visitor has.
#[derive(Clone, Debug, Default)]
pub struct GivenValue {
    bytes: Vec<u8>,
    /// It is written as it stands anywhere but at the beginning of a request target: see [`Escape`].
    is_plain: bool,
}

/// What stands in for a value that is not there.
pub(crate) static NO_VALUE: GivenValue = GivenValue { bytes: Vec::new(), is_plain: false };

impl GivenValue {
    /// The value.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Let `change` change the value.
    pub fn change<T>(&mut self, change: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        let result = change(&mut self.bytes);
        self.is_plain = is_plain(&self.bytes);
        result
    }
}

impl From<Vec<u8>> for GivenValue {
    fn from(bytes: Vec<u8>) -> Self {
        let is_plain = is_plain(&bytes);
        Self { bytes, is_plain }
    }
}

/// Whether a value needs no escape, so that it is looked at once and not whenever it is sent.
fn is_plain(value: &[u8]) -> bool {
    !value.is_empty() && value.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(byte))
}

/// A value of a visitor, by its index among [`Names`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Given {
    Taken(usize),
    Cell(usize),
}

impl Given {
    /// Parse `{take:name}` or `{row:column}` at the beginning of `text`. Returns it and its length in bytes.
    pub(crate) fn parse(text: &str, part: Part, names: &Names<'_>) -> Result<Option<(Self, usize)>, Unsendable> {
        let (rest, known, given): (_, _, fn(usize) -> Self) = if let Some(rest) = text.strip_prefix("{take:") {
            (rest, names.takes, Self::Taken)
        } else if let Some(rest) = text.strip_prefix("{row:") {
            (rest, names.columns, Self::Cell)
        } else {
            return Ok(None);
        };
        if known.is_empty() {
            // Without a visitor these are the braces of a text.
            return Ok(None);
        }
        let name = rest.split_once('}').map(|(name, _)| name);
        let index = name.and_then(|name| known.iter().position(|other| other == name)).ok_or_else(|| {
            let placeholder = text.split_inclusive('}').next().unwrap_or(text);
            Unsendable::Given(part, shown(placeholder))
        })?;
        let length = text.len() - rest.len() + name.unwrap_or_default().len() + 1;
        Ok(Some((given(index), length)))
    }

    #[inline]
    pub(crate) fn value<V: Values>(self, values: &V) -> &GivenValue {
        match self {
            Self::Taken(index) => values.taken(index),
            Self::Cell(index) => values.cell(index),
        }
    }
}

/// How values of a visitor are written, so that the message stays intact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Escape {
    /// As they are.
    None,
    /// Within a JSON string.
    Json,
    /// A value of a form.
    Form,
    /// In the value of a header: spaces around them are cut off, and controls refused.
    Header,
    /// At the beginning or end of such a value with more in it. It may not be empty, because a space would be there then.
    HeaderEdge,
    /// In a request target: what may not stand there is percent-encoded.
    Path,
    /// The value of a parameter of a query.
    Query,
    /// The beginning of a request target. An absolute URL of this scheme and authority becomes its path, without a fragment.
    Target(Box<[u8]>),
}

impl Escape {
    /// Append a value.
    ///
    /// # Errors
    /// When the value cannot be sent here.
    #[inline]
    pub(crate) fn append(&self, value: &GivenValue, out: &mut Vec<u8>) -> Result<(), Unfit> {
        if value.is_plain && !matches!(self, Self::Target(_)) {
            out.extend_from_slice(&value.bytes);
            return Ok(());
        }
        self.append_escaped(&value.bytes, out)
    }

    fn append_escaped(&self, value: &[u8], out: &mut Vec<u8>) -> Result<(), Unfit> {
        match self {
            Self::None => out.extend_from_slice(value),
            Self::Json => append_json(value, out),
            Self::Form => append_encoded(value, out, |byte| byte.is_ascii_alphanumeric() || b"-._~*".contains(&byte)),
            Self::Header | Self::HeaderEdge => {
                let value = value.trim_ascii();
                if *self == Self::HeaderEdge && value.is_empty() {
                    return Err(Unfit::Header);
                }
                if value.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t') {
                    return Err(Unfit::Header);
                }
                out.extend_from_slice(value);
            }
            Self::Path => append_encoded(value, out, may_stand_in_target),
            // What else may stand there has a meaning to who reads it: `+` is a space, `&` begins the next parameter.
            Self::Query => append_encoded(value, out, |byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)),
            Self::Target(origin) => {
                // A fragment is not sent (RFC 9110, section 7.1).
                let value = &value[..memchr(b'#', value).unwrap_or(value.len())];
                let path = value.strip_prefix(&**origin).unwrap_or(value);
                if path.is_empty() && !value.is_empty() {
                    out.push(b'/');
                } else if path.first() != Some(&b'/') || path.starts_with(b"//") {
                    // Two slashes would begin an authority where it is a reference.
                    return Err(Unfit::Path);
                }
                append_encoded(path, out, may_stand_in_target);
            }
        }
        Ok(())
    }
}

/// A number sign would begin a fragment.
fn may_stand_in_target(byte: u8) -> bool {
    byte.is_ascii_graphic() && byte != b'#'
}

/// Append a value with all other bytes percent-encoded.
fn append_encoded(value: &[u8], out: &mut Vec<u8>, stays: impl Fn(u8) -> bool) {
    for byte in value {
        if stays(*byte) {
            out.push(*byte);
        } else {
            out.extend_from_slice(&[b'%', upper_hex(byte >> 4), upper_hex(byte & 15)]);
        }
    }
}

fn append_json(value: &[u8], out: &mut Vec<u8>) {
    for byte in value {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', *byte]),
            0..=0x1f => {
                out.extend_from_slice(b"\\u00");
                out.extend_from_slice(&[upper_hex(byte >> 4), upper_hex(byte & 15)]);
            }
            _ => out.push(*byte),
        }
    }
}

fn upper_hex(half: u8) -> u8 {
    b"0123456789ABCDEF"[usize::from(half & 15)]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Escape, is_plain};

    proptest! {
        /// What is written without looking at it would not be changed.
        #[test]
        fn a_plain_value_needs_no_escape(value in prop::collection::vec(any::<u8>(), 0..3)) {
            let places = [Escape::None, Escape::Json, Escape::Form, Escape::Header, Escape::HeaderEdge, Escape::Path, Escape::Query];
            for place in places.iter().filter(|_| is_plain(&value)) {
                let mut out = Vec::new();
                prop_assert_eq!(place.append_escaped(&value, &mut out), Ok(()));
                prop_assert_eq!(&out, &value);
            }
        }
    }
}
