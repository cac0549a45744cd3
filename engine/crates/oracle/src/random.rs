//! Seeded random numbers, implemented separately from the engine's, so that the oracle shares no fault with what it judges.

/// `SplitMix64` (Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators, OOPSLA 2014).
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The same seed gives the same numbers.
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 bits.
    pub const fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A draw from the uniform distribution on (0, 1).
    fn uniform(&mut self) -> f64 {
        ((self.next() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// A draw from the exponential distribution of mean 1, by inversion of a uniform in (0, 1).
    pub fn exponential(&mut self) -> f64 {
        -self.uniform().ln()
    }

    /// A draw from the standard normal distribution (Box and Muller, Annals of Mathematical Statistics 29, 1958).
    pub fn normal(&mut self) -> f64 {
        (2.0 * self.exponential()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// True with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.uniform() < probability
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn follows_the_published_sequence() {
        // The first outputs for seed 1234567, as the reference implementation gives them.
        let mut random = Random::new(1_234_567);
        let drawn: Vec<u64> = (0..3).map(|_| random.next()).collect();
        assert_eq!(drawn, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn the_mean_is_one() {
        let mut random = Random::new(3);
        let n = 100_000;
        let mean = (0..n).map(|_| random.exponential()).sum::<f64>() / f64::from(n);
        // The mean of n draws has a standard deviation of 1 / sqrt(n); five of them are allowed.
        assert!((mean - 1.0).abs() < 5.0 / f64::from(n).sqrt(), "mean {mean}");
    }
}
