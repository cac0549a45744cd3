//! The number of requests that have fallen due: the integral of a rate.

/// The area under a [`crate::Profile`] of a rate per second: a number of requests, with 64 binary digits after the point.
///
/// Fixed point, because a float that counts 10¹³ requests has too few digits left for the next, and because a sum of small gaps
/// must not drift.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Area(u128);

const SCALE: f64 = 18_446_744_073_709_551_616.0;

impl Area {
    /// Exactly `count` requests.
    #[must_use]
    pub const fn of(count: u64) -> Self {
        Self((count as u128) << 64)
    }

    /// Rounded to a float.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / SCALE
    }

    /// The nearest area; 0 for negative numbers and NaN.
    pub(crate) fn from_f64(requests: f64) -> Self {
        Self((requests * SCALE) as u128)
    }

    pub(crate) const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    pub(crate) const fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}
