//! When a user's next request is due: after a think time, or at a pace.

use crate::draws::{mixed, unit};
use crate::exact::as_fraction;
use crate::{Impossible, NS_PER_S, checked_rate};

/// Tells think times from other draws of the same seed.
const SALT: u64 = 0x7468_696e_6b00_0000;

/// How long a user waits after an answer before its next request is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Think {
    /// Not at all.
    None,
    /// Always so many nanoseconds.
    Fixed(u64),
    /// Exponentially distributed with this mean, in nanoseconds.
    Exponential(u64),
}

impl Think {
    /// The think time, in nanoseconds, before request `turn` of `user`: the same for the same numbers and seed, whatever the
    /// order of answers.
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
    /// A pace of so many requests per second.
    ///
    /// # Errors
    /// [`Impossible::Rate`] when it is out of a schedule's range.
    pub fn new(rate_per_s: f64) -> Result<Self, Impossible> {
        let (numerator, denominator) = as_fraction(checked_rate(rate_per_s)?);
        let period = u128::from(NS_PER_S) * denominator;
        Ok(Self { whole_ns: (period / numerator) as u64, remainder: period % numerator, denominator: numerator })
    }

    /// When request `turn` (from 0) of a user whose first was due at `start_ns` is due: ⌊`start_ns` + `turn` · 10⁹ / rate⌋,
    /// exactly.
    #[must_use]
    pub fn due(&self, start_ns: u64, turn: u64) -> u64 {
        let whole = start_ns.saturating_add(turn.saturating_mul(self.whole_ns));
        whole.saturating_add(self.share_of_remainder(turn))
    }

    /// When the first request of a user is due who begins at `begun_ns` as number `rank` (from 0) of the `of` who begin
    /// together: [`crate::Change`] has both. So they are spread over one period at equal distances, exactly, which the fractions
    /// of a golden ratio would only come close to.
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
        // The remainder has at most 73 bits, so that more than 2⁵⁵ turns might not fit: with a period of 100 ns that is a century.
        let product = self.remainder.saturating_mul(u128::from(turn));
        u64::try_from(product / self.denominator).unwrap_or(u64::MAX)
    }
}
