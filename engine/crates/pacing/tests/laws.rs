//! The laws of schedules: exact, monotone, reproducible, mergeable, and exponential for Poisson arrivals.

mod support;

use proptest::prelude::*;
use redline_pacing::{Arrivals, Impossible, NS_PER_S, Profile, Schedule};
use support::{critical_distance, exponential, kolmogorov_smirnov};

fn schedule(rate: f64, arrivals: &Arrivals, seed: u64, worker: u32, workers: u32) -> Result<Schedule, Impossible> {
    Schedule::new(&Profile::constant(rate), arrivals, seed, worker, workers)
}

fn times(rate: f64, arrivals: &Arrivals, seed: u64, worker: u32, workers: u32, n: usize) -> Vec<u64> {
    schedule(rate, arrivals, seed, worker, workers).unwrap().take(n).collect()
}

fn merged(rate: f64, arrivals: &Arrivals, seed: u64, workers: u32, per_worker: usize) -> Vec<u64> {
    let mut all: Vec<u64> = (0..workers).flat_map(|w| times(rate, arrivals, seed, w, workers, per_worker)).collect();
    all.sort_unstable();
    all
}

fn any_arrivals() -> impl Strategy<Value = Arrivals> {
    prop_oneof![Just(Arrivals::Uniform), Just(Arrivals::Poisson)]
}

proptest! {
    #[test]
    fn due_times_never_go_back(rate in 0.001_f64..1e7, arrivals in any_arrivals(), seed: u64, workers in 1_u32..9) {
        for worker in 0..workers {
            let times = times(rate, &arrivals, seed, worker, workers, 500);
            prop_assert!(times.is_sorted());
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_times(rate in 0.001_f64..1e7, arrivals in any_arrivals(), seed: u64) {
        let schedule = schedule(rate, &arrivals, seed, 0, 1).unwrap();
        let first: Vec<u64> = schedule.clone().take(200).collect();
        prop_assert_eq!(&first, &schedule.take(200).collect::<Vec<_>>());
        prop_assert_eq!(first, times(rate, &arrivals, seed, 0, 1, 200));
    }

    #[test]
    fn uniform_times_are_exact(rate in 1_u64..10_000_000, n in 1_usize..2000) {
        for (i, due) in times(rate as f64, &Arrivals::Uniform, 0, 0, 1, n).into_iter().enumerate() {
            prop_assert_eq!(u128::from(due), i as u128 * u128::from(NS_PER_S) / u128::from(rate));
        }
    }

    #[test]
    fn uniform_times_are_exact_for_fractions(quarters in 1_u64..4_000_000, n in 1_usize..2000) {
        for (i, due) in times(quarters as f64 / 4.0, &Arrivals::Uniform, 0, 0, 1, n).into_iter().enumerate() {
            prop_assert_eq!(u128::from(due), i as u128 * 4 * u128::from(NS_PER_S) / u128::from(quarters));
        }
    }

    #[test]
    fn uniform_shares_merge_to_the_complete_schedule(rate in 1_u64..10_000_000, workers in 1_u32..17, per_worker in 1_usize..200) {
        let whole = times(rate as f64, &Arrivals::Uniform, 0, 0, 1, per_worker * workers as usize);
        prop_assert_eq!(merged(rate as f64, &Arrivals::Uniform, 0, workers, per_worker), whole);
    }

    #[test]
    fn other_seeds_and_workers_give_other_times(seed: u64, rate in 1.0_f64..1e6) {
        let first = times(rate, &Arrivals::Poisson, seed, 0, 2, 50);
        prop_assert_ne!(&first, &times(rate, &Arrivals::Poisson, seed.wrapping_add(1), 0, 2, 50));
        prop_assert_ne!(&first, &times(rate, &Arrivals::Poisson, seed, 1, 2, 50));
    }
}

fn gaps_of(times: &[u64]) -> Vec<f64> {
    times.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect()
}

#[test]
fn poisson_gaps_are_exponential_for_one_worker_and_for_the_sum_of_four() {
    const N: usize = 100_000;
    for seed in [1, 2, 3] {
        let alone = times(1000.0, &Arrivals::Poisson, seed, 0, 1, N + 1);
        assert!(kolmogorov_smirnov(gaps_of(&alone), exponential(1e6)) < critical_distance(N));
        // The streams end at different times: the process is complete only up to the first end.
        let shares: Vec<Vec<u64>> = (0..4).map(|w| times(1000.0, &Arrivals::Poisson, seed, w, 4, N / 4)).collect();
        let end = shares.iter().map(|share| *share.last().unwrap()).min().unwrap();
        let mut sum: Vec<u64> = shares.into_iter().flatten().filter(|due| *due <= end).collect();
        sum.sort_unstable();
        assert!(kolmogorov_smirnov(gaps_of(&sum), exponential(1e6)) < critical_distance(sum.len()));
    }
}

/// The mean of n exponential gaps has a relative standard error of 1/√n; five of them is beyond doubt.
#[test]
fn poisson_keeps_its_rate_even_when_gaps_are_short() {
    const N: usize = 1_000_000;
    for rate in [0.5, 20_000.0, 1e7] {
        let last = *times(rate, &Arrivals::Poisson, 7, 0, 1, N).last().unwrap();
        let expected = N as f64 / rate * NS_PER_S as f64;
        assert!((last as f64 / expected - 1.0).abs() < 5.0 / (N as f64).sqrt(), "{rate}: {last} {expected}");
    }
}

/// Golden: these times are part of the contract, on every machine and for ever.
#[test]
fn the_times_of_a_seed_are_pinned() {
    assert_eq!(times(3.0, &Arrivals::Uniform, 0, 0, 1, 4), [0, 333_333_333, 666_666_666, 1_000_000_000]);
    assert_eq!(times(1000.0, &Arrivals::Poisson, 42, 0, 1, 3), GOLDEN_WHOLE);
    assert_eq!(times(1000.0, &Arrivals::Poisson, 42, 1, 2, 3), GOLDEN_SECOND_OF_TWO);
}

const GOLDEN_WHOLE: [u64; 3] = [1_683_650, 2_067_580, 6_196_154];
const GOLDEN_SECOND_OF_TWO: [u64; 3] = [15_735, 334_768, 610_935];

#[test]
fn what_cannot_be_is_refused() {
    for rate in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e8, 1e-9] {
        let refused = schedule(rate, &Arrivals::Uniform, 0, 0, 1).unwrap_err();
        assert!(matches!(refused, Impossible::Rate(_)), "{refused}");
    }
    for (worker, workers) in [(0, 0), (1, 1), (0, 5000)] {
        let refused = schedule(1.0, &Arrivals::Poisson, 0, worker, workers).unwrap_err();
        assert!(matches!(refused, Impossible::Workers(_)), "{refused}");
    }
}
