//! A queue and its workers, in virtual time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::service::Service;

/// K workers serve a queue in order of arrival: M/M/1, M/D/1, M/M/k and so on when arrivals are Poisson.
///
/// For M/M/1 with an arrival rate lambda below the service rate mu, the stationary response time is exponential with rate mu -
/// lambda (Kleinrock, Queueing Systems I, 1975, section 5.12). Service is counted in virtual time: it begins at the arrival or
/// at the exact end of an earlier service, whenever the process got to run, so that delays of the timer do not add up.
#[derive(Debug, Clone)]
pub struct Queue {
    service: Service,
    free_at_ns: BinaryHeap<Reverse<u64>>,
}

impl Queue {
    /// Workers that are all free; `servers` is at least 1.
    pub fn new(service: Service, servers: usize) -> Self {
        Self { service, free_at_ns: std::iter::repeat_n(Reverse(0), servers.max(1)).collect() }
    }

    /// The instant at which a request that arrives now, after all earlier requests, has been served.
    pub fn completion_ns(&mut self, arrival_ns: u64) -> u64 {
        let service_ns = self.service.draw_ns();
        let Some(mut soonest) = self.free_at_ns.peek_mut() else { return arrival_ns };
        soonest.0 = soonest.0.max(arrival_ns) + service_ns;
        soonest.0
    }
}

#[cfg(test)]
mod tests {
    use super::Queue;
    use crate::random::Random;
    use crate::service::{Law, Service};
    use proptest::prelude::*;

    fn exponential(rate_per_s: f64, seed: u64, servers: usize) -> Queue {
        Queue::new(Service::new(Law::Exponential { mean_ns: 1e9 / rate_per_s }, seed), servers)
    }

    /// Poisson arrivals at `rate_per_s` and the response time of each, in nanoseconds.
    fn responses(mut queue: Queue, rate_per_s: f64, seed: u64, count: usize) -> Vec<u64> {
        let mut random = Random::new(seed);
        let mut clock = 0.0;
        let mut response = || {
            clock += random.exponential() * 1e9 / rate_per_s;
            let arrival_ns = clock as u64;
            queue.completion_ns(arrival_ns) - arrival_ns
        };
        (0..count).map(|_| response()).collect()
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

    /// The distance that n independent draws exceed with probability at most `alpha`: Dvoretzky-Kiefer-Wolfowitz with Massart's
    /// constant (1990), which holds for every n.
    fn critical_distance(n: usize, alpha: f64) -> f64 {
        ((2.0 / alpha).ln() / (2.0 * n as f64)).sqrt()
    }

    /// The mean wait in `runs` runs of 4,000 requests after 1,000, and its standard error: runs are independent, requests in a
    /// run are not.
    fn mean_wait_ns(law: Law, servers: usize, arrivals_per_s: f64, mean_service_ns: f64) -> (f64, f64) {
        let runs = 300;
        let means: Vec<f64> = (0..runs)
            .map(|run| {
                let queue = Queue::new(Service::new(law, 1000 + run), servers);
                let all = responses(queue, arrivals_per_s, 9000 + run, 5000);
                all[1000..].iter().sum::<u64>() as f64 / 4000.0 - mean_service_ns
            })
            .collect();
        let n = means.len() as f64;
        let mean = means.iter().sum::<f64>() / n;
        let variance = means.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
        (mean, (variance / n).sqrt())
    }

    fn assert_wait(law: Law, servers: usize, arrivals_per_s: f64, mean_service_ns: f64, truth_ns: f64) {
        let (mean, error) = mean_wait_ns(law, servers, arrivals_per_s, mean_service_ns);
        // Services are whole nanoseconds.
        assert!((mean - truth_ns).abs() <= 5.0 * error + 1.0, "{law:?}: {mean} +- {error}, not {truth_ns}");
    }

    proptest! {
        #[test]
        fn a_worker_is_never_idle_while_work_waits(rate in 1.0..1e6, seed in any::<u64>(), count in 1..500_usize) {
            // All arrive at the same time: the last is answered after the sum of all services, whatever the spacing of the
            // rest.
            let mut together = exponential(rate, seed, 1);
            let last_ns = (0..count).map(|_| together.completion_ns(0)).last();
            let mut alone = exponential(rate, seed, 1);
            let mut free_at_ns = 0;
            let services_ns = (0..count).map(|_| {
                let arrival_ns = free_at_ns + 7;
                free_at_ns = alone.completion_ns(arrival_ns);
                free_at_ns - arrival_ns
            });
            prop_assert_eq!(last_ns, Some(services_ns.sum()));
        }

        #[test]
        fn k_workers_serve_k_at_a_time(servers in 1..20_usize, count in 1..200_usize) {
            let mut queue = Queue::new(Service::new(Law::Deterministic { service_ns: 10 }, 1), servers);
            for index in 0..count {
                prop_assert_eq!(queue.completion_ns(0), 10 * (index / servers + 1) as u64);
            }
        }
    }

    #[test]
    fn departures_under_poisson_arrivals_follow_the_closed_form() {
        // Every 100th response only: correlation decays with (1 - sqrt(rho))^2 mu (Cohen, The Single Server Queue, 1982), which
        // over 100 arrivals at rho = 0.5 leaves e^-17, so the kept responses are independent for our purpose.
        for (mu, lambda, spacing) in [(1000.0, 500.0, 100), (2000.0, 200.0, 50), (50_000.0, 40_000.0, 2000)] {
            let all = responses(exponential(mu, 11, 1), lambda, 12, 2000 * spacing + 10_000);
            let kept: Vec<u64> = all[10_000..].iter().copied().step_by(spacing).collect();
            let distance = distance_to_exponential(&kept, mu - lambda);
            assert!(distance < critical_distance(kept.len(), 1e-6), "mu {mu}, lambda {lambda}: distance {distance}");
        }
    }

    #[test]
    fn the_test_of_the_closed_form_can_fail() {
        let all = responses(exponential(1000.0, 11, 1), 500.0, 12, 210_000);
        let kept: Vec<u64> = all[10_000..].iter().copied().step_by(100).collect();
        assert!(distance_to_exponential(&kept, 600.0) > critical_distance(kept.len(), 1e-6));
    }

    #[test]
    fn one_worker_keeps_requests_waiting_as_pollaczek_and_khinchine_say() {
        // The mean wait is lambda E[S^2] / (2 (1 - rho)) (Kleinrock I, section 5.6).
        let lambda = 500.0;
        let wait_ns = |mean: f64, square: f64| lambda / 1e9 * square / (2.0 * (1.0 - lambda * mean / 1e9));
        assert_wait(Law::Deterministic { service_ns: 1_000_000 }, 1, lambda, 1e6, wait_ns(1e6, 1e12));
        let bimodal = Law::Bimodal { fast_ns: 500_000, slow_ns: 3_000_000, slow_share: 0.2 };
        assert_wait(bimodal, 1, lambda, 1e6, wait_ns(1e6, 0.8 * 0.25e12 + 0.2 * 9e12));
        let (median_ns, sigma) = (8e5, 0.6_f64);
        let mean_ns = median_ns * (sigma * sigma / 2.0).exp();
        let square = median_ns * median_ns * (2.0 * sigma * sigma).exp();
        assert_wait(Law::LogNormal { median_ns, sigma }, 1, lambda, mean_ns, wait_ns(mean_ns, square));
    }

    #[test]
    fn k_workers_keep_requests_waiting_as_erlang_says() {
        // M/M/4 at 0.75: the mean wait is C(k, a) / (k mu - lambda), with Erlang's C (Kleinrock I, section 3.5).
        let (k, mu, lambda) = (4, 1000.0, 3000.0_f64);
        let offered = lambda / mu;
        let term = |j: i32| offered.powi(j) / (1..=j).map(f64::from).product::<f64>();
        let waiting = term(k) * f64::from(k) / (f64::from(k) - offered);
        let erlang_c = waiting / ((0..k).map(term).sum::<f64>() + waiting);
        let truth_ns = erlang_c / (f64::from(k) * mu - lambda) * 1e9;
        assert_wait(Law::Exponential { mean_ns: 1e6 }, 4, lambda, 1e6, truth_ns);
    }
}
