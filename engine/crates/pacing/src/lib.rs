//! The due times of an open load: seeded, in nanoseconds since the schedule's epoch, the same everywhere.
//!
//! A [`Schedule`] is an endless, non-decreasing iterator. It knows neither clock nor server, so it cannot move because
//! one of them was late. Cloning it gives a second reading of the same times, which is how a queue of waiting requests
//! is held without memory: two cursors on one schedule.

use std::fmt;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};

/// Nanoseconds in a second.
pub const NS_PER_S: u64 = 1_000_000_000;
/// The slowest rate that a schedule takes, per second.
pub const LOWEST_RATE_PER_S: f64 = 1e-6;
/// The fastest rate that a schedule takes, per second: far past what one machine sends, and few enough that a worker that
/// cannot send them can still count them all.
pub const HIGHEST_RATE_PER_S: f64 = 1e7;
/// The most workers that a schedule can be split over.
pub const MOST_WORKERS: u32 = 1024;

/// 2⁻⁵³: from 53 random bits to a number in [0, 1).
const UNIT: f64 = 1.0 / (1_u64 << 53) as f64;
/// Binary digits kept below one nanosecond while exponential gaps are summed, so that rounding does not bias the rate.
const FRACTION_BITS: u32 = 20;

/// How the requests of an open load are spread over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// Request *i* is due at ⌊*i* · 10⁹ / rate⌋ ns, exactly.
    Uniform,
    /// Gaps are exponential with mean 1 / rate: a Poisson process.
    Poisson,
}

/// Why a schedule cannot be made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Impossible {
    /// The rate is not a number from [`LOWEST_RATE_PER_S`] to [`HIGHEST_RATE_PER_S`].
    Rate(f64),
    /// The workers are not 1 to [`MOST_WORKERS`], or the worker is not one of them.
    Workers(u32),
}

impl fmt::Display for Impossible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rate(rate) => {
                write!(f, "a rate of {rate} per second is not between {LOWEST_RATE_PER_S} and {HIGHEST_RATE_PER_S}")
            }
            Self::Workers(workers) => write!(f, "{workers} workers are not between 1 and {MOST_WORKERS}"),
        }
    }
}

impl std::error::Error for Impossible {}

/// One worker's share of an open load's due times.
///
/// Uniform arrivals are split by *i* mod `workers`; Poisson arrivals into independent streams of rate / `workers`, whose
/// sum is again Poisson with the whole rate (superposition; Kingman, *Poisson Processes*, 1993, section 2.2).
#[derive(Clone, Debug)]
pub struct Schedule(Shape);

#[derive(Clone, Debug)]
enum Shape {
    Uniform(Steps),
    Poisson(Gaps),
}

impl Schedule {
    /// The schedule of `worker` (from 0) of `workers`.
    ///
    /// # Errors
    /// [`Impossible`] when the rate or the split is out of range.
    pub fn new(rate_per_s: f64, arrivals: Arrivals, seed: u64, worker: u32, workers: u32) -> Result<Self, Impossible> {
        if !(LOWEST_RATE_PER_S..=HIGHEST_RATE_PER_S).contains(&rate_per_s) {
            return Err(Impossible::Rate(rate_per_s));
        }
        if workers == 0 || workers > MOST_WORKERS || worker >= workers {
            return Err(Impossible::Workers(workers));
        }
        Ok(Self(match arrivals {
            Arrivals::Uniform => Shape::Uniform(Steps::new(rate_per_s, worker, workers)),
            Arrivals::Poisson => Shape::Poisson(Gaps::new(rate_per_s, seed, worker, workers)),
        }))
    }
}

impl Iterator for Schedule {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        Some(match &mut self.0 {
            Shape::Uniform(steps) => steps.advance(),
            Shape::Poisson(gaps) => gaps.advance(),
        })
    }
}

/// Due times at equal distances, without rounding error: whole nanoseconds and an exact remainder, as Bresenham drew lines.
#[derive(Clone, Debug)]
struct Steps {
    next_ns: u64,
    step_ns: u64,
    remainder: u128,
    step_remainder: u128,
    denominator: u128,
}

impl Steps {
    fn new(rate_per_s: f64, worker: u32, workers: u32) -> Self {
        let (numerator, denominator) = as_fraction(rate_per_s);
        let period = u128::from(NS_PER_S) * denominator;
        let first = u128::from(worker) * period;
        let step = u128::from(workers) * period;
        Self {
            next_ns: (first / numerator) as u64,
            step_ns: (step / numerator) as u64,
            remainder: first % numerator,
            step_remainder: step % numerator,
            denominator: numerator,
        }
    }

    fn advance(&mut self) -> u64 {
        let due = self.next_ns;
        self.remainder += self.step_remainder;
        let carry = self.remainder >= self.denominator;
        if carry {
            self.remainder -= self.denominator;
        }
        self.next_ns = self.next_ns.saturating_add(self.step_ns).saturating_add(u64::from(carry));
        due
    }
}

/// A positive finite number as the fraction that it exactly is, in lowest powers of two.
fn as_fraction(rate: f64) -> (u128, u128) {
    let bits = rate.to_bits();
    let exponent = ((bits >> 52) & 0x7ff) as i32 - 1075;
    let mantissa = u128::from((bits & ((1 << 52) - 1)) | (1 << 52));
    let shift = mantissa.trailing_zeros().min(exponent.unsigned_abs());
    if exponent >= 0 { (mantissa << exponent, 1) } else { (mantissa >> shift, 1 << (exponent.unsigned_abs() - shift)) }
}

/// Due times with exponential gaps, by inversion: −ln(1 − *u*) / rate.
///
/// The logarithm is `libm`'s, not the platform's, so that the same seed gives the same times on every machine.
#[derive(Clone, Debug)]
struct Gaps {
    random: Xoshiro256PlusPlus,
    mean: f64,
    at: u128,
}

impl Gaps {
    fn new(rate_per_s: f64, seed: u64, worker: u32, workers: u32) -> Self {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        for _ in 0..worker {
            random.long_jump();
        }
        let fixed_point = (1_u64 << FRACTION_BITS) as f64;
        let mean = NS_PER_S as f64 * f64::from(workers) / rate_per_s * fixed_point;
        Self { random, mean, at: 0 }
    }

    fn advance(&mut self) -> u64 {
        let uniform = (self.random.next_u64() >> 11) as f64 * UNIT;
        let gap = -libm::log1p(-uniform) * self.mean;
        self.at = self.at.saturating_add(gap as u128);
        u64::try_from(self.at >> FRACTION_BITS).unwrap_or(u64::MAX)
    }
}
