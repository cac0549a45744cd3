//! Histograms of nanoseconds, all with the same range and precision.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer as Source, Serialize, Serializer as Format};

/// The shortest duration that is resolved, in nanoseconds; shorter durations are recorded as this.
pub const LOWEST_NS: u64 = 1;
/// The longest duration that is resolved, an hour in nanoseconds. Longer durations saturate.
pub const HIGHEST_NS: u64 = 3_600_000_000_000;
/// Significant decimal digits.
pub const DIGITS: u8 = 3;

/// A distribution of durations in nanoseconds (Tene, <http://hdrhistogram.org>).
///
/// Serialized as its V2 compressed base64 text, which every `HdrHistogram` library reads.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram(hdrhistogram::Histogram<u64>);

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    /// An empty histogram. All its memory is allocated here.
    ///
    /// # Panics
    /// Never: the library accepts the constant bounds.
    #[must_use]
    pub fn new() -> Self {
        let bounds = hdrhistogram::Histogram::new_with_bounds(LOWEST_NS, HIGHEST_NS, DIGITS);
        Self(bounds.expect("one nanosecond to one hour at three digits is a valid range"))
    }

    /// Record a duration. Returns true when it exceeded the range and was recorded at its end.
    #[inline]
    pub fn record(&mut self, ns: u64) -> bool {
        self.0.saturating_record(ns.clamp(LOWEST_NS, HIGHEST_NS));
        ns > HIGHEST_NS
    }

    /// Record a duration as often as this.
    pub fn record_n(&mut self, ns: u64, count: u64) {
        self.0.saturating_record_n(ns.clamp(LOWEST_NS, HIGHEST_NS), count);
    }

    /// Pass each recorded duration, to the precision, and how often it was recorded.
    pub fn for_each(&self, mut pass: impl FnMut(u64, u64)) {
        self.0.iter_recorded().for_each(|step| pass(step.value_iterated_to(), step.count_at_value()));
    }

    /// Add all counts of another histogram.
    ///
    /// # Panics
    /// Never: all histograms of this type have the same range.
    pub fn add(&mut self, other: &Self) {
        if !other.is_empty() {
            self.0.add(&other.0).expect("histograms of one range can be added");
        }
    }

    /// Take away counts that were recorded.
    ///
    /// # Panics
    /// When a duration was not recorded as often.
    pub fn subtract(&mut self, other: &Self) {
        if !other.is_empty() {
            self.0.subtract(&other.0).expect("what is taken away was recorded");
        }
    }

    /// Clear all counts, keeping the memory.
    pub fn clear(&mut self) {
        if !self.is_empty() {
            self.0.reset();
        }
    }

    /// How many durations were recorded.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// Whether nothing was recorded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The shortest recorded duration, to the precision; 0 when there is none.
    #[must_use]
    pub fn min_ns(&self) -> u64 {
        if self.is_empty() { 0 } else { self.0.min() }
    }

    /// The longest recorded duration, to the precision; 0 when there is none.
    #[must_use]
    pub fn max_ns(&self) -> u64 {
        self.0.max()
    }

    /// The duration that a share `q` (0 to 1) of the recorded durations does not exceed; 0 when there is none.
    #[must_use]
    pub fn quantile_ns(&self, q: f64) -> u64 {
        self.0.value_at_quantile(q)
    }

    /// The V2 compressed encoding as base64 text.
    ///
    /// # Panics
    /// Never: writing to memory does not fail.
    #[must_use]
    pub fn encode(&self) -> String {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(&self.0, &mut bytes).expect("writing to memory does not fail");
        STANDARD.encode(bytes)
    }

    /// Read what [`Histogram::encode`] wrote; `None` for anything else.
    #[must_use]
    pub fn decode(text: &str) -> Option<Self> {
        let bytes = STANDARD.decode(text).ok()?;
        let decoded: hdrhistogram::Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).ok()?;
        let mut histogram = Self::new();
        histogram.0.add(&decoded).ok()?;
        Some(histogram)
    }
}

impl Serialize for Histogram {
    fn serialize<S: Format>(&self, format: S) -> Result<S::Ok, S::Error> {
        format.serialize_str(&self.encode())
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<S: Source<'de>>(source: S) -> Result<Self, S::Error> {
        Self::decode(&String::deserialize(source)?).ok_or_else(|| S::Error::custom("it is not an encoded histogram"))
    }
}
