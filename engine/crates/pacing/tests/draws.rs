//! The laws of draws: by number alone, in range, and with the right probabilities.

mod support;

use proptest::prelude::*;
use redline_pacing::{Impossible, NS_PER_S, Pace, Think, Weights, random_bits, uniform_between};
use support::{chi_square_excess, critical_distance, exponential, kolmogorov_smirnov};

proptest! {
    #[test]
    fn numbers_are_in_range(seed: u64, seq: u64, salt: u64, a: i64, b: i64) {
        let drawn = uniform_between(seed, seq, salt, a, b);
        prop_assert!((a.min(b)..=a.max(b)).contains(&drawn));
        prop_assert_eq!(drawn, uniform_between(seed, seq, salt, b, a));
        prop_assert_eq!(uniform_between(seed, seq, salt, a, a), a);
    }

    #[test]
    fn what_weighs_nothing_is_never_chosen(weights in prop::collection::vec(prop_oneof![Just(0.0), 0.0_f64..1e9], 1..40), bits: u64, seed: u64) {
        prop_assume!(weights.iter().sum::<f64>() > 0.0);
        let choice = Weights::new(&weights).unwrap();
        for bits in [bits, 0, u64::MAX] {
            prop_assert!(weights[choice.choose(bits)] > 0.0);
        }
        prop_assert!((0..100).all(|seq| weights[choice.pick(seed, seq)] > 0.0));
    }

    #[test]
    fn paces_are_exact(quarters in 1_u64..4_000_000, start in 0_u64..1 << 50, turn in 0_u64..1 << 32) {
        let pace = Pace::new(quarters as f64 / 4.0).unwrap();
        let exact = u128::from(turn) * 4 * u128::from(NS_PER_S) / u128::from(quarters);
        prop_assert_eq!(u128::from(pace.due(start, turn)), u128::from(start) + exact);
        prop_assert!(pace.due(start, turn) <= pace.due(start, turn + 1));
    }

    #[test]
    fn starts_are_spread_over_one_period(rate in 1e-3_f64..1e6, of in 1_u32..300_000, rank in 0_u32..300_000) {
        let pace = Pace::new(rate).unwrap();
        let expected = NS_PER_S as f64 / rate * f64::from(rank % of) / f64::from(of);
        let start = pace.start_of(5, rank % of, of);
        prop_assert!((start as f64 - 5.0 - expected).abs() <= 1.0 + expected * 1e-12);
        prop_assert!(start < 6 + pace.due(0, 1));
    }

    #[test]
    fn think_times_belong_to_a_turn(seed: u64, user: u32, turn: u64, ns in 0_u64..1 << 51) {
        prop_assert_eq!(Think::None.draw(seed, user, turn), 0);
        prop_assert_eq!(Think::Fixed(ns).draw(seed, user, turn), ns);
        let mean = Think::Exponential(ns);
        prop_assert_eq!(mean.draw(seed, user, turn), mean.draw(seed, user, turn));
        prop_assert!(mean.draw(seed, user, turn) <= 37 * ns);
    }
}

#[test]
fn think_times_are_exponential_along_users_turns_and_seeds() {
    const N: u32 = 100_000;
    let think = Think::Exponential(1_000_000);
    let draws: [Box<dyn Fn(u32) -> u64>; 4] = [
        Box::new(|i| think.draw(1, i, 0)),
        Box::new(|i| think.draw(1, 0, i.into())),
        Box::new(|i| think.draw(i.into(), 0, 0)),
        Box::new(|i| think.draw(1, i % 300, (i / 300).into())),
    ];
    for draw in draws {
        let sample: Vec<f64> = (0..N).map(|i| draw(i) as f64).collect();
        let distance = kolmogorov_smirnov(sample, exponential(1e6));
        assert!(distance < critical_distance(N as usize), "{distance}");
    }
}

#[test]
fn choices_follow_their_weights() {
    const N: u64 = 200_000;
    for weights in [&[1.0][..], &[3.0, 1.0], &[1e-3, 5.0, 0.25, 0.25, 90.0, 4.0], &[1.0; 17]] {
        let choice = Weights::new(weights).unwrap();
        let mut counts = vec![0; weights.len()];
        (0..N).for_each(|seq| counts[choice.pick(9, seq)] += 1);
        let sum: f64 = weights.iter().sum();
        let expected: Vec<f64> = weights.iter().map(|weight| weight / sum * N as f64).collect();
        let excess = if weights.len() > 1 { chi_square_excess(&counts, &expected) } else { 0.0 };
        assert!(excess < 4.0, "{counts:?} {expected:?}");
    }
}

/// The ends of the range are as likely as the middle, and a range of two thirds of 2⁶⁴ shows a bias of a plain remainder.
#[test]
fn numbers_are_uniform() {
    const N: u64 = 130_000;
    let mut counts = vec![0; 13];
    (0..N).for_each(|seq| counts[(uniform_between(3, seq, 1, -6, 6) + 6) as usize] += 1);
    assert!(chi_square_excess(&counts, &[N as f64 / 13.0; 13]).abs() < 3.5, "{counts:?}");

    let (low, high) = (i64::MIN, i64::MIN.wrapping_add((u64::MAX / 3 * 2) as i64));
    let sample: Vec<f64> = (0..N).map(|seq| uniform_between(4, seq, 2, low, high).abs_diff(low) as f64).collect();
    let size = high.abs_diff(low) as f64;
    assert!(kolmogorov_smirnov(sample, |value| value / size) < critical_distance(N as usize));
}

/// A bit of a draw is as often 1 as 0, and changes with half of all single-bit changes of any of the three numbers.
#[test]
fn one_bit_of_the_input_changes_half_of_the_draw() {
    const N: u64 = 2000;
    for bit in 0..64 {
        let flips = |other: fn(u64, u64) -> u64| -> u32 {
            (0..N).map(|i| (random_bits(i, i, i) ^ other(i, 1 << bit)).count_ones()).sum()
        };
        let by_number = [
            flips(|i, flip| random_bits(i ^ flip, i, i)),
            flips(|i, flip| random_bits(i, i ^ flip, i)),
            flips(|i, flip| random_bits(i, i, i ^ flip)),
        ];
        // 64 · N coins have a standard deviation of 4 · √N.
        let (mean, allowed) = (32.0 * N as f64, 5.0 * 4.0 * (N as f64).sqrt());
        assert!(by_number.iter().all(|flipped| (f64::from(*flipped) - mean).abs() < allowed), "{bit}: {by_number:?}");
    }
}

#[test]
fn what_cannot_be_is_refused() {
    for weights in [&[][..], &[0.0], &[1.0, -1.0], &[f64::NAN], &[f64::INFINITY], &[f64::MAX, f64::MAX]] {
        assert!(matches!(Weights::new(weights), Err(Impossible::Weight(_))), "{weights:?}");
    }
    for rate in [0.0, -1.0, f64::NAN, 1e9] {
        assert!(matches!(Pace::new(rate), Err(Impossible::Rate(_))));
    }
}

/// Golden: the draws of a seed are part of the contract, on every machine and for ever.
#[test]
fn the_draws_of_a_seed_are_pinned() {
    assert_eq!(
        [0, 1, 2].map(|seq| random_bits(42, seq, 7)),
        [0x518c_cfbc_c848_9b3d, 0x909d_7856_dbe9_d02a, 0xfae8_18a8_86f3_0d72]
    );
    assert_eq!([0, 1, 2].map(|turn| Think::Exponential(1_000_000).draw(42, 5, turn)), [384_265, 1_842_062, 366_218]);
    assert_eq!([0, 1, 2, 3].map(|seq| uniform_between(42, seq, 0, 1, 100)), [39, 4, 31, 14]);
    let choice = Weights::new(&[3.0, 1.0, 2.0]).unwrap();
    assert_eq!([0, 1, 2, 3, 4, 5].map(|seq| choice.pick(42, seq)), [0, 0, 1, 2, 0, 2]);
}
