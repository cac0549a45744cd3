//! How long the service of a request takes: seeded draws from laws that are known in closed form.

use crate::random::Random;

/// The longest service; a longer log-normal draw is cut to it.
const LONGEST_NS: f64 = 86_400e9;

/// A law of service times, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Law {
    /// Exponential.
    Exponential {
        /// Its mean.
        mean_ns: f64,
    },
    /// Always the same.
    Deterministic {
        /// The time.
        service_ns: u64,
    },
    /// One of two times.
    Bimodal {
        /// The time of most services.
        fast_ns: u64,
        /// The other service time.
        slow_ns: u64,
        /// The probability of `slow_ns`.
        slow_share: f64,
    },
    /// The logarithm is normal: quantile q is `median_ns * exp(sigma * z_q)`, the mean `median_ns * exp(sigma^2 / 2)`.
    LogNormal {
        /// Its median.
        median_ns: f64,
        /// The standard deviation of its logarithm.
        sigma: f64,
    },
}

/// Service times, drawn one after the other.
#[derive(Debug, Clone)]
pub struct Service {
    law: Law,
    random: Random,
}

impl Service {
    /// The same seed gives the same times.
    pub const fn new(law: Law, seed: u64) -> Self {
        Self { law, random: Random::new(seed) }
    }

    /// The next time.
    pub fn draw_ns(&mut self) -> u64 {
        match self.law {
            Law::Exponential { mean_ns } => (self.random.exponential() * mean_ns).round() as u64,
            Law::Deterministic { service_ns } => service_ns,
            Law::Bimodal { fast_ns, slow_ns, slow_share } => {
                if self.random.chance(slow_share) {
                    slow_ns
                } else {
                    fast_ns
                }
            }
            Law::LogNormal { median_ns, sigma } => {
                (median_ns * (sigma * self.random.normal()).exp()).min(LONGEST_NS).round() as u64
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Law, Service};

    const N: usize = 200_000;
    /// A fair draw in a test with a fixed seed deviates this far from the truth with a probability of about 1e-6.
    const Z: f64 = 5.0;

    fn draws(law: Law) -> Vec<f64> {
        let mut service = Service::new(law, 5);
        (0..N).map(|_| service.draw_ns() as f64).collect()
    }

    fn share_at_most(sample: &[f64], t_ns: f64) -> f64 {
        sample.iter().filter(|&&value| value <= t_ns).count() as f64 / sample.len() as f64
    }

    fn assert_share(sample: &[f64], t_ns: f64, truth: f64) {
        let share = share_at_most(sample, t_ns);
        let slack = Z * (truth * (1.0 - truth) / sample.len() as f64).sqrt();
        assert!((share - truth).abs() <= slack, "at {t_ns} ns: {share}, not {truth}");
    }

    fn assert_mean(sample: &[f64], truth_ns: f64, deviation_ns: f64) {
        let mean = sample.iter().sum::<f64>() / sample.len() as f64;
        let slack = Z * deviation_ns / (sample.len() as f64).sqrt();
        assert!((mean - truth_ns).abs() <= slack, "{mean}, not {truth_ns}");
    }

    #[test]
    fn an_exponential_law_has_its_quantiles() {
        let sample = draws(Law::Exponential { mean_ns: 1e6 });
        assert_mean(&sample, 1e6, 1e6);
        for q in [0.1, 0.5, 0.9, 0.99, 0.999_f64] {
            assert_share(&sample, -1e6 * (1.0 - q).ln(), q);
        }
    }

    #[test]
    fn a_bimodal_law_has_two_times_in_their_shares() {
        let sample = draws(Law::Bimodal { fast_ns: 100_000, slow_ns: 5_000_000, slow_share: 0.03 });
        assert!(sample.iter().all(|&value| [100_000, 5_000_000].contains(&(value as u64))));
        assert_share(&sample, 100_000.0, 0.97);
    }

    #[test]
    fn a_log_normal_law_has_its_quantiles_and_its_mean() {
        let (median_ns, sigma) = (2e6, 0.8_f64);
        let sample = draws(Law::LogNormal { median_ns, sigma });
        // Quantiles of the standard normal distribution.
        for (q, z) in [(0.05, -1.644_854), (0.5, 0.0), (0.9, 1.281_552), (0.99, 2.326_348), (0.999, 3.090_232)] {
            assert_share(&sample, median_ns * f64::exp(sigma * z), q);
        }
        let mean_ns = median_ns * (sigma * sigma / 2.0).exp();
        assert_mean(&sample, mean_ns, mean_ns * ((sigma * sigma).exp() - 1.0).sqrt());
    }

    #[test]
    fn a_deterministic_law_never_changes_and_a_seed_repeats() {
        assert!(draws(Law::Deterministic { service_ns: 7 }).iter().all(|&value| value as u64 == 7));
        let law = Law::LogNormal { median_ns: 1e6, sigma: 1.0 };
        assert_eq!(draws(law), draws(law));
    }
}
