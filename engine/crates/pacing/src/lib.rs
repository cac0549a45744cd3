//! When requests are due: seeded, in nanoseconds since the epoch of the schedule, and the same on every machine.
//!
//! - [`Profile`]: how the rate, or the number of users, changes over time.
//! - [`Schedule`]: the due times of an open load.
//! - [`Crowd`]: the users who join and leave a closed load; [`Think`] and [`Pace`]: when a user's next request is due.
//! - [`Weights`], [`uniform_between`] and [`random_bits`]: which request is sent, and the random values in it.
//!
//! This crate uses no clock and no server, so due times cannot move because either was late. Draws for a user or a request
//! depend only on its number and the seed, not on the order of answers.

mod area;
mod crowd;
mod draws;
mod exact;
mod profile;
mod schedule;
mod think;

use std::fmt;

pub use area::Area;
pub use crowd::{Change, Crowd, Move};
pub use draws::{Weights, random_bits, uniform_between};
pub use profile::{Profile, Stage};
pub use schedule::{Arrivals, Schedule};
pub use think::{Pace, Think};

/// Nanoseconds in a second.
pub const NS_PER_S: u64 = 1_000_000_000;
/// The lowest rate of a schedule, per second; 0 is allowed if a stage makes the rate positive.
pub const LOWEST_RATE_PER_S: f64 = 1e-6;
/// The highest rate of a schedule, per second: far more than a machine sends, and few enough that a worker that cannot send the
/// requests can still count them.
pub const HIGHEST_RATE_PER_S: f64 = 1e7;
/// The most workers that a schedule can be split over.
pub const MOST_WORKERS: u32 = 1024;

/// Why a schedule, a pace or a choice cannot be made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Impossible {
    /// The rate is not a number from [`LOWEST_RATE_PER_S`] to [`HIGHEST_RATE_PER_S`], or it is 0 and stays 0.
    Rate(f64),
    /// The workers are not 1 to [`MOST_WORKERS`], or the worker is not one of them.
    Workers(u32),
    /// The replayed due time at this index is before the previous due time.
    Backwards(usize),
    /// There are no weights, they are all 0, their sum is not finite, or this weight is negative or not a number.
    Weight(f64),
}

impl fmt::Display for Impossible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rate(rate) => {
                write!(f, "a rate of {rate} per second is not between {LOWEST_RATE_PER_S} and {HIGHEST_RATE_PER_S}")
            }
            Self::Workers(workers) => write!(f, "{workers} workers are not between 1 and {MOST_WORKERS}"),
            Self::Backwards(index) => write!(f, "replayed due time {index} (from 0) is before the one that it follows"),
            Self::Weight(weight) => write!(f, "a weight of {weight} leaves nothing to choose by"),
        }
    }
}

impl std::error::Error for Impossible {}

/// Check a rate that is kept without stages.
fn checked_rate(rate_per_s: f64) -> Result<f64, Impossible> {
    if (LOWEST_RATE_PER_S..=HIGHEST_RATE_PER_S).contains(&rate_per_s) {
        Ok(rate_per_s)
    } else {
        Err(Impossible::Rate(rate_per_s))
    }
}
