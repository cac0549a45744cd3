//! The server's time in an answer.

use crate::json::Pointer;

/// The unit of a time that is a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Seconds.
    S,
    /// Milliseconds.
    Ms,
    /// Microseconds.
    Us,
    /// Nanoseconds.
    Ns,
}

impl Unit {
    /// The unit in nanoseconds, as a power of ten.
    fn digits(self) -> i32 {
        match self {
            Self::S => 9,
            Self::Ms => 6,
            Self::Us => 3,
            Self::Ns => 0,
        }
    }
}

/// Where an answer's body states the time since 1970, and in which unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timestamp {
    /// Where in the body, which then is JSON; `None` for the whole body.
    pub pointer: Option<Pointer>,
    /// The unit.
    pub unit: Unit,
}

impl Timestamp {
    /// The time in nanoseconds since 1970: a JSON number, or a number in a JSON string, with optional white space around it.
    ///
    /// It is read digit by digit, because a 64-bit float holds only 16 of the 19 digits; fractions of a nanosecond are cut off.
    /// `None` when there is no such number, or it is negative or exceeds 64 bits.
    #[must_use]
    pub fn read(&self, body: &[u8]) -> Option<u64> {
        let text = match &self.pointer {
            Some(pointer) => pointer.find(body)?.as_bytes(),
            None => body,
        };
        let text = text.trim_ascii();
        let unquoted = text.strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\""));
        scaled(unquoted.unwrap_or(text).trim_ascii(), self.unit.digits())
    }
}

/// The decimal number in `text` (RFC 8259, section 6, but leading zeros are accepted) times ten to the power of `digits`,
/// rounded down.
fn scaled(text: &[u8], digits: i32) -> Option<u64> {
    let mut text = std::str::from_utf8(text).ok()?;
    let mut places = digits;
    if let Some((number, exponent)) = text.split_once(['e', 'E']) {
        places = places.saturating_add(exponent.parse::<i32>().ok()?);
        text = number;
    }
    let (whole, fraction) = text.split_once('.').map_or((text, None), |(whole, fraction)| (whole, Some(fraction)));
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !fraction.is_none_or(is_number) {
        return None;
    }
    // How many digits, fraction included, precede the decimal point once it has moved; zeros follow.
    let kept = (whole.len() as i64).checked_add(i64::from(places))?;
    let mut known = whole.bytes().chain(fraction.unwrap_or_default().bytes()).map(|byte| u64::from(byte - b'0'));
    let mut result = 0_u64;
    for _ in 0..kept {
        let digit = known.next();
        if digit.is_none() && result == 0 {
            // Nothing but zeros, however many.
            break;
        }
        result = result.checked_mul(10)?.checked_add(digit.unwrap_or(0))?;
    }
    Some(result)
}
