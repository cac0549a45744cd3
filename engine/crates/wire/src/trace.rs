//! Trace contexts of requests: W3C Trace Context, version 00 (<https://www.w3.org/TR/trace-context/>).

/// The trace that a request begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct TraceContext {
    trace: u128,
    parent: u64,
    lot: u64,
}

impl TraceContext {
    /// Its length in bytes: `00-`, 32 digits, `-`, 16 digits, `-`, 2 digits.
    pub const BYTES: usize = 55;

    /// A context of random bits. Ids of zeros are not valid, and become 1. `lot` is drawn for whether it is sampled.
    #[must_use]
    pub fn new(trace: u128, parent: u64, lot: u64) -> Self {
        Self { trace: trace.max(1), parent: parent.max(1), lot }
    }

    /// Whether it is among this share of all contexts.
    #[must_use]
    pub fn is_sampled(&self, share: TraceShare) -> bool {
        self.lot < share.0 || share == TraceShare::ALL
    }

    /// Append it, as one of which this share is sampled.
    pub fn append(&self, share: TraceShare, out: &mut Vec<u8>) {
        out.extend_from_slice(b"00-");
        append_hex(out, &self.trace.to_be_bytes());
        out.push(b'-');
        append_hex(out, &self.parent.to_be_bytes());
        out.extend_from_slice(if self.is_sampled(share) { b"-01" } else { b"-00" });
    }
}

/// The share of contexts that are sampled, in units of 2⁻⁶⁴.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TraceShare(u64);

impl TraceShare {
    /// All are sampled.
    pub const ALL: Self = Self(u64::MAX);

    /// Read `1%`; `None` if it is no share from 0% to 100%.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let digits =
            text.strip_suffix('%').filter(|number| number.starts_with(|first: char| first.is_ascii_digit()))?;
        let percent: f64 = digits.parse().ok()?;
        // A cast saturates: 100% is all.
        (0.0..=100.0).contains(&percent).then_some(Self((percent / 100.0 * 2.0_f64.powi(64)) as u64))
    }
}

fn append_hex(out: &mut Vec<u8>, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.extend(bytes.iter().flat_map(|byte| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Whether it is a valid context of version 00: `version-format` of the specification, 3.2.2.
    fn is_valid(text: &str) -> bool {
        let parts: Vec<&str> = text.split('-').collect();
        let is_hex = |part: &str| part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        parts.iter().map(|part| part.len()).eq([2, 32, 16, 2])
            && parts[0] == "00"
            && parts[1..3].iter().all(|id| is_hex(id) && id.bytes().any(|byte| byte != b'0'))
            && ["00", "01"].contains(&parts[3])
    }

    fn written(context: TraceContext, share: TraceShare) -> String {
        let mut out = Vec::new();
        context.append(share, &mut out);
        String::from_utf8(out).unwrap()
    }

    proptest! {
        #[test]
        fn contexts_are_valid_whatever_bits_are_drawn(
            trace in prop_oneof![Just(0), any::<u128>()],
            parent in prop_oneof![Just(0), any::<u64>()],
            lot in prop_oneof![Just(0), Just(u64::MAX), any::<u64>()],
            percent in 0.0..=100.0,
        ) {
            let share = TraceShare::parse(&format!("{percent}%")).unwrap();
            let text = written(TraceContext::new(trace, parent, lot), share);
            prop_assert!(is_valid(&text), "{text}");
            prop_assert_eq!(text.len(), TraceContext::BYTES);
            let (trace, parent) = (trace.max(1), parent.max(1));
            prop_assert!(text.starts_with(&format!("00-{trace:032x}-{parent:016x}-")), "{text}");
        }
    }

    #[test]
    fn a_share_is_sampled() {
        let sampled = |percent, lot| TraceContext::new(1, 1, lot).is_sampled(TraceShare::parse(percent).unwrap());
        for lot in [0, 1, u64::MAX] {
            assert!(sampled("100%", lot) && !sampled("0%", lot));
        }
        assert!(sampled("50%", (1 << 63) - 1) && !sampled("50%", 1 << 63));
        assert!(sampled("0.1%", u64::MAX / 1001) && !sampled("0.1%", u64::MAX / 999));
        for wrong in ["", "%", "1", "-1%", "101%", "1e9%", "nan%", "inf%", "+1%", "x%", "1%%"] {
            assert_eq!(TraceShare::parse(wrong), None, "{wrong}");
        }
    }
}
