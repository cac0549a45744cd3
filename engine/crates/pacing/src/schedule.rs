//! The due times of an open load.

use std::sync::Arc;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};

use crate::area::Area;
use crate::draws::unit;
use crate::exact::Steps;
use crate::{Impossible, MOST_WORKERS, NS_PER_S, Profile, checked_rate};

/// Binary digits kept below a nanosecond while exponential gaps are summed, so that rounding does not bias the rate.
const FRACTION_BITS: u32 = 20;

/// How the requests of an open load are spread over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// Request *i* is due where the integral of the rate passes *i*: at a constant rate ⌊*i* · 10⁹ / rate⌋ ns, exactly.
    Uniform,
    /// Gaps are exponential with mean 1 / rate: a Poisson process.
    Poisson,
    /// These times, in nanoseconds from the begin of the profile's stages, not decreasing. The profile's values are ignored.
    Replayed(Arc<[u64]>),
}

/// A worker's share of an open load's due times: a non-decreasing iterator, endless unless the rate becomes 0 and stays 0 or
/// the replayed times end.
///
/// Uniform and replayed arrivals are split by *i* mod `workers`; Poisson arrivals into independent streams of rate / `workers`,
/// whose sum is again Poisson with the whole rate (superposition; Kingman, *Poisson Processes*, 1993, section 2.2). If the rate
/// changes, times of a unit process are mapped by the inverse of the rate's integral (the mapping theorem; there, section 2.3).
///
/// Cloning allocates nothing and gives a second reading of the same times. A queue of waiting requests is thus held without
/// memory, as two cursors on one schedule.
#[derive(Clone, Debug)]
pub struct Schedule(Shape);

#[derive(Clone, Debug)]
enum Shape {
    Uniform(Steps),
    Poisson(Gaps),
    StagedUniform(StagedSteps),
    StagedPoisson(StagedGaps),
    Replayed(Replay),
}

impl Schedule {
    /// The schedule of `worker` (from 0) of `workers`, for a profile of the rate per second.
    ///
    /// # Errors
    /// [`Impossible`] when a rate or the split is out of range, or replayed times decrease. A rate of 0 is out of range only
    /// when it never becomes positive.
    pub fn new(
        profile: &Profile,
        arrivals: &Arrivals,
        seed: u64,
        worker: u32,
        workers: u32,
    ) -> Result<Self, Impossible> {
        if workers == 0 || workers > MOST_WORKERS || worker >= workers {
            return Err(Impossible::Workers(workers));
        }
        if let Arrivals::Replayed(times) = arrivals {
            return Ok(Self(Shape::Replayed(Replay::new(times, profile.begins_ns(), worker, workers)?)));
        }
        let poisson = *arrivals == Arrivals::Poisson;
        if profile.is_constant() {
            let rate = checked_rate(profile.start())?;
            return Ok(Self(if poisson {
                Shape::Poisson(Gaps::new(rate, seed, worker, workers))
            } else {
                Shape::Uniform(Steps::new(rate, worker, workers))
            }));
        }
        for rate in profile.values().filter(|rate| *rate != 0.0) {
            checked_rate(rate)?;
        }
        checked_rate(profile.most())?;
        Ok(Self(if poisson {
            Shape::StagedPoisson(StagedGaps::new(profile, seed, worker, workers))
        } else {
            Shape::StagedUniform(StagedSteps::new(profile, worker, workers))
        }))
    }
}

impl Schedule {
    /// The schedule of `worker` of `workers` for the times of a replay that lie in a window of `length_ns`, due from the start
    /// of the window on. `turn` numbers the windows: they follow each other, and begin again where no whole window is left.
    ///
    /// # Errors
    /// [`Impossible`] when the split is out of range, or the times decrease.
    pub fn window(
        times: &Arc<[u64]>,
        turn: u64,
        length_ns: u64,
        worker: u32,
        workers: u32,
    ) -> Result<Self, Impossible> {
        if workers == 0 || workers > MOST_WORKERS || worker >= workers {
            return Err(Impossible::Workers(workers));
        }
        let whole = times.last().map_or(0, |last| last.saturating_add(1)) / length_ns.max(1);
        let from_ns = (turn % whole.max(1)).saturating_mul(length_ns);
        let mut replay = Replay::new(times, 0, worker, workers)?;
        let (first, stride) = (times.partition_point(|time| *time < from_ns), replay.stride);
        replay.index = (first + stride - 1 - worker as usize) / stride * stride + worker as usize;
        replay.from_ns = from_ns;
        replay.times_until = times.partition_point(|time| *time < from_ns.saturating_add(length_ns));
        Ok(Self(Shape::Replayed(replay)))
    }

    /// The number of the next request among those of a replay; 0 for other arrivals.
    #[must_use]
    #[inline]
    pub fn upcoming(&self) -> usize {
        if let Shape::Replayed(replay) = &self.0 { replay.index } else { 0 }
    }
}

impl Iterator for Schedule {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        match &mut self.0 {
            Shape::Uniform(steps) => Some(steps.advance()),
            Shape::Poisson(gaps) => Some(gaps.advance()),
            Shape::StagedUniform(steps) => steps.advance(),
            Shape::StagedPoisson(gaps) => gaps.advance(),
            Shape::Replayed(replay) => replay.advance(),
        }
    }
}

/// A worker's own stream of exponential gaps with mean 1, by inversion: −ln(1 − *u*).
///
/// The logarithm is `libm`'s, not the platform's, so that the same seed gives the same times on every machine.
#[derive(Clone, Debug)]
struct Exponential(Xoshiro256PlusPlus);

impl Exponential {
    fn new(seed: u64, worker: u32) -> Self {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        for _ in 0..worker {
            random.long_jump();
        }
        Self(random)
    }

    fn draw(&mut self) -> f64 {
        -libm::log1p(-unit(self.0.next_u64()))
    }
}

/// Due times with exponential gaps of the same mean.
#[derive(Clone, Debug)]
struct Gaps {
    random: Exponential,
    mean: f64,
    at: u128,
}

impl Gaps {
    fn new(rate_per_s: f64, seed: u64, worker: u32, workers: u32) -> Self {
        let fixed_point = (1_u64 << FRACTION_BITS) as f64;
        let mean = NS_PER_S as f64 * f64::from(workers) / rate_per_s * fixed_point;
        Self { random: Exponential::new(seed, worker), mean, at: 0 }
    }

    fn advance(&mut self) -> u64 {
        let gap = self.random.draw() * self.mean;
        self.at = self.at.saturating_add(gap as u128);
        u64::try_from(self.at >> FRACTION_BITS).unwrap_or(u64::MAX)
    }
}

/// Request *i* where the integral passes *i*; before the stages begin, exactly as at a constant rate.
#[derive(Clone, Debug)]
struct StagedSteps {
    before: Option<Steps>,
    profile: Profile,
    index: u64,
    stride: u64,
}

impl StagedSteps {
    fn new(profile: &Profile, worker: u32, workers: u32) -> Self {
        let before = (profile.start() > 0.0).then(|| Steps::new(profile.start(), worker, workers));
        Self { before, profile: profile.clone(), index: worker.into(), stride: workers.into() }
    }

    fn advance(&mut self) -> Option<u64> {
        let area = Area::of(self.index);
        self.index = self.index.saturating_add(self.stride);
        if let Some(steps) = &mut self.before {
            let due = steps.advance();
            if due < self.profile.begins_ns() {
                return Some(due);
            }
            self.before = None;
        }
        Some(self.profile.when(area)?.max(self.profile.begins_ns()))
    }
}

/// Where the integral passes the times of a Poisson process of rate 1 / `workers`.
#[derive(Clone, Debug)]
struct StagedGaps {
    random: Exponential,
    profile: Profile,
    workers: f64,
    at: Area,
    last_ns: u64,
}

impl StagedGaps {
    fn new(profile: &Profile, seed: u64, worker: u32, workers: u32) -> Self {
        let random = Exponential::new(seed, worker);
        Self { random, profile: profile.clone(), workers: workers.into(), at: Area::default(), last_ns: 0 }
    }

    fn advance(&mut self) -> Option<u64> {
        self.at = self.at.plus(Area::from_f64(self.random.draw() * self.workers));
        // Two areas that are very close may be rounded to times in the other order.
        self.last_ns = self.profile.when(self.at)?.max(self.last_ns);
        Some(self.last_ns)
    }
}

/// Given due times from `from_ns` on, which is where the measurement begins.
#[derive(Clone, Debug)]
struct Replay {
    times: Arc<[u64]>,
    /// The index of the first time that is not replayed.
    times_until: usize,
    begins_ns: u64,
    from_ns: u64,
    index: usize,
    stride: usize,
}

impl Replay {
    fn new(times: &Arc<[u64]>, begins_ns: u64, worker: u32, workers: u32) -> Result<Self, Impossible> {
        if let Some(before) = times.windows(2).position(|pair| pair[1] < pair[0]) {
            return Err(Impossible::Backwards(before + 1));
        }
        Ok(Self {
            times: times.clone(),
            times_until: times.len(),
            begins_ns,
            from_ns: 0,
            index: worker as usize,
            stride: workers as usize,
        })
    }

    fn advance(&mut self) -> Option<u64> {
        let due = self.times[..self.times_until].get(self.index)?;
        self.index += self.stride;
        Some(self.begins_ns.saturating_add(due - self.from_ns))
    }
}
