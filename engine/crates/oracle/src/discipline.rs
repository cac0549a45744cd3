//! When a request that arrived at one instant is answered: the truth, in closed form, without a clock.

use crate::random::Random;

/// How the server treats what arrives. All times are nanoseconds since one origin.
#[derive(Debug, Clone)]
pub enum Discipline {
    /// Answers at once.
    Null,
    /// Answers each request `delay_ns` after its arrival, all in parallel.
    Fixed {
        /// The delay.
        delay_ns: u64,
    },
    /// One worker serves in order of arrival, each for an exponentially distributed time.
    Exponential(Fifo),
    /// Answers at once, except that what arrives in `[k * every_ns, k * every_ns + for_ns)`, k = 0, 1, ..., is
    /// answered at the end of that stall.
    Stall {
        /// From the start of one stall to the start of the next.
        every_ns: u64,
        /// The length of a stall; less than `every_ns`.
        for_ns: u64,
    },
}

impl Discipline {
    /// The instant at which a request that arrives at `arrival_ns` is answered.
    ///
    /// Never before its arrival and, for arrivals in order, never before an earlier answer: so answers fall due in order
    /// of arrival.
    pub fn completion_ns(&mut self, arrival_ns: u64) -> u64 {
        match self {
            Self::Null => arrival_ns,
            Self::Fixed { delay_ns } => arrival_ns + *delay_ns,
            Self::Exponential(worker) => worker.completion_ns(arrival_ns),
            Self::Stall { every_ns, for_ns } => {
                let into = arrival_ns % *every_ns;
                if into < *for_ns { arrival_ns - into + *for_ns } else { arrival_ns }
            }
        }
    }

    /// Whether every answer goes out at once, so that no clock is needed.
    pub const fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }
}

/// One worker and its queue: M/M/1 when arrivals are Poisson.
///
/// For an arrival rate lambda below the service rate mu, the stationary response time is exponential with rate
/// mu - lambda (Kleinrock, Queueing Systems I, 1975, section 5.12). Service is counted in virtual time: each begins at the arrival
/// or at the exact end of the one before, whenever the process got to run, so that delays of the timer do not add up.
#[derive(Debug, Clone)]
pub struct Fifo {
    mean_ns: f64,
    random: Random,
    free_at_ns: u64,
}

impl Fifo {
    /// A worker of `rate_per_s` requests per second when busy; the same seed gives the same service times.
    pub const fn new(rate_per_s: f64, seed: u64) -> Self {
        Self { mean_ns: 1e9 / rate_per_s, random: Random::new(seed), free_at_ns: 0 }
    }

    fn completion_ns(&mut self, arrival_ns: u64) -> u64 {
        let service_ns = (self.random.exponential() * self.mean_ns).round() as u64;
        self.free_at_ns = self.free_at_ns.max(arrival_ns) + service_ns;
        self.free_at_ns
    }
}

#[cfg(test)]
mod tests {
    use super::{Discipline, Fifo};
    use crate::random::Random;
    use proptest::prelude::*;

    fn any_discipline() -> impl Strategy<Value = Discipline> {
        prop_oneof![
            Just(Discipline::Null),
            (0..10_000_000_000_u64).prop_map(|delay_ns| Discipline::Fixed { delay_ns }),
            (1.0..1e6, any::<u64>()).prop_map(|(rate, seed)| Discipline::Exponential(Fifo::new(rate, seed))),
            (2..10_000_000_000_u64)
                .prop_flat_map(|every_ns| (Just(every_ns), 1..every_ns))
                .prop_map(|(every_ns, for_ns)| Discipline::Stall { every_ns, for_ns }),
        ]
    }

    /// Poisson arrivals at `rate_per_s` and the response time of each, in nanoseconds.
    fn responses(worker: Fifo, rate_per_s: f64, seed: u64, count: usize) -> Vec<u64> {
        let mut random = Random::new(seed);
        let mut discipline = Discipline::Exponential(worker);
        let mut clock = 0.0;
        let mut one = || {
            clock += random.exponential() * 1e9 / rate_per_s;
            let arrival_ns = clock as u64;
            discipline.completion_ns(arrival_ns) - arrival_ns
        };
        (0..count).map(|_| one()).collect()
    }

    /// The largest distance between the empirical distribution and 1 - exp(-rate t).
    fn distance_to_exponential(sample_ns: &[u64], rate_per_s: f64) -> f64 {
        let mut sorted = sample_ns.to_vec();
        sorted.sort_unstable();
        let n = sorted.len() as f64;
        let distance = |(rank, &value_ns): (usize, &u64)| {
            let truth = -f64::exp_m1(-rate_per_s * value_ns as f64 / 1e9);
            (truth - rank as f64 / n).abs().max((rank as f64 + 1.0) / n - truth)
        };
        sorted.iter().enumerate().map(distance).fold(0.0, f64::max)
    }

    /// The distance that n independent draws exceed with probability at most `alpha`: Dvoretzky-Kiefer-Wolfowitz with
    /// Massart's constant (1990), which holds for every n.
    fn critical_distance(n: usize, alpha: f64) -> f64 {
        ((2.0 / alpha).ln() / (2.0 * n as f64)).sqrt()
    }

    proptest! {
        #[test]
        fn answers_fall_due_in_order_and_never_early(
            mut discipline in any_discipline(),
            gaps in prop::collection::vec(0..5_000_000_000_u64, 1..200),
        ) {
            let (mut arrival_ns, mut earlier_ns) = (0, 0);
            for gap in gaps {
                arrival_ns += gap;
                let completion_ns = discipline.completion_ns(arrival_ns);
                prop_assert!(completion_ns >= arrival_ns);
                prop_assert!(completion_ns >= earlier_ns);
                earlier_ns = completion_ns;
            }
        }

        #[test]
        fn a_fixed_delay_is_exact(delay_ns in 0..10_000_000_000_u64, arrival_ns in 0..1_000_000_000_000_u64) {
            prop_assert_eq!(Discipline::Fixed { delay_ns }.completion_ns(arrival_ns), arrival_ns + delay_ns);
        }

        #[test]
        fn a_stall_ends_for_all_that_it_holds_at_once(
            every_ns in 2..10_000_000_000_u64, share in 0.0..1.0_f64, cycle in 0..1000_u64, at in 0.0..1.0_f64,
        ) {
            let for_ns = ((every_ns as f64 * share) as u64).clamp(1, every_ns - 1);
            let into = (every_ns as f64 * at) as u64 % every_ns;
            let start_ns = cycle * every_ns;
            let expected = if into < for_ns { start_ns + for_ns } else { start_ns + into };
            prop_assert_eq!(Discipline::Stall { every_ns, for_ns }.completion_ns(start_ns + into), expected);
        }

        #[test]
        fn a_worker_is_never_idle_while_work_waits(rate in 1.0..1e6, seed in any::<u64>(), count in 1..500_usize) {
            // All arrive together: the last leaves after the sum of all services, whatever the spacing of the rest.
            let mut together = Discipline::Exponential(Fifo::new(rate, seed));
            let last_ns = (0..count).map(|_| together.completion_ns(0)).last();
            let mut alone = Discipline::Exponential(Fifo::new(rate, seed));
            let mut free_at_ns = 0;
            let services_ns = (0..count).map(|_| {
                let arrival_ns = free_at_ns + 7;
                free_at_ns = alone.completion_ns(arrival_ns);
                free_at_ns - arrival_ns
            });
            prop_assert_eq!(last_ns, Some(services_ns.sum()));
        }
    }

    #[test]
    fn departures_under_poisson_arrivals_follow_the_closed_form() {
        // Every 100th response only: correlation decays with (1 - sqrt(rho))^2 mu (Cohen, The Single Server Queue, 1982),
        // which over 100 arrivals at rho = 0.5 leaves e^-17, so those kept are independent for our purpose.
        for (mu, lambda, spacing) in [(1000.0, 500.0, 100), (2000.0, 200.0, 50), (50_000.0, 40_000.0, 2000)] {
            let all = responses(Fifo::new(mu, 11), lambda, 12, 2000 * spacing + 10_000);
            let kept: Vec<u64> = all[10_000..].iter().copied().step_by(spacing).collect();
            let distance = distance_to_exponential(&kept, mu - lambda);
            assert!(distance < critical_distance(kept.len(), 1e-6), "mu {mu}, lambda {lambda}: distance {distance}");
        }
    }

    #[test]
    fn the_test_of_the_closed_form_can_fail() {
        let all = responses(Fifo::new(1000.0, 11), 500.0, 12, 210_000);
        let kept: Vec<u64> = all[10_000..].iter().copied().step_by(100).collect();
        assert!(distance_to_exponential(&kept, 600.0) > critical_distance(kept.len(), 1e-6));
    }
}
