//! When a user's next request is due: after a think time, or at a pace.

use crate::draws::{mixed, unit};
use crate::exact::as_fraction;
use crate::{Impossible, NS_PER_S, checked_rate};

/// Separates think times from other draws with the same seed.
const SALT: u64 = 0x7468_696e_6b00_0000;

/// How long a user waits after an answer before its next request is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Think {
    /// Not at all.
    None,
    /// Always this many nanoseconds.
    Fixed(u64),
    /// Exponentially distributed with this mean, in nanoseconds.
    Exponential(u64),
}

impl Think {
    /// The think time, in nanoseconds, before request `turn` of `user`. It depends only on these numbers and the seed, not on
    /// the order of answers.
    #[must_use]
    pub fn draw(&self, seed: u64, user: u32, turn: u64) -> u64 {
        match *self {
            Self::None => 0,
            Self::Fixed(ns) => ns,
            Self::Exponential(mean_ns) => {
                let uniform = unit(mixed(seed ^ SALT, u64::from(user), turn));
                (-libm::log1p(-uniform) * mean_ns as f64) as u64
            }
        }
    }
}

/// The requests of a user who keeps a pace, answered or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// A period is this many nanoseconds and `remainder` / `denominator`.
    whole_ns: u64,
    remainder: u128,
    denominator: u128,
}

impl Pace {
    /// A pace of this many requests per second.
    ///
    /// # Errors
    /// [`Impossible::Rate`] when it is out of a schedule's range.
    pub fn new(rate_per_s: f64) -> Result<Self, Impossible> {
        let (numerator, denominator) = as_fraction(checked_rate(rate_per_s)?);
        let period = u128::from(NS_PER_S) * denominator;
        Ok(Self { whole_ns: (period / numerator) as u64, remainder: period % numerator, denominator: numerator })
    }

    /// When request `turn` (from 0) is due, for a user whose first request was due at `start_ns`: ⌊`start_ns` + `turn` · 10⁹ /
    /// rate⌋, exactly.
    #[must_use]
    pub fn due(&self, start_ns: u64, turn: u64) -> u64 {
        let whole = start_ns.saturating_add(turn.saturating_mul(self.whole_ns));
        whole.saturating_add(self.share_of_remainder(turn))
    }

    /// When the first request is due, for a user who begins at `begun_ns` as number `rank` (from 0) of `of` who begin together,
    /// as [`crate::Change`] gives them. Users are spread over a period at exactly equal distances, which the fractions of a
    /// golden ratio would only approximate.
    #[must_use]
    pub fn start_of(&self, begun_ns: u64, rank: u32, of: u32) -> u64 {
        let period = u128::from(self.whole_ns) * self.denominator + self.remainder;
        let offset = period * u128::from(rank) / (self.denominator * u128::from(of.max(1)));
        begun_ns.saturating_add(u64::try_from(offset).unwrap_or(u64::MAX))
    }

    fn share_of_remainder(&self, turn: u64) -> u64 {
        if self.remainder == 0 {
            return 0;
        }
        // The remainder has at most 73 bits, so more than 2⁵⁵ turns might overflow: with a period of 100 ns that is a century.
        let product = self.remainder.saturating_mul(u128::from(turn));
        u64::try_from(product / self.denominator).unwrap_or(u64::MAX)
    }
}
