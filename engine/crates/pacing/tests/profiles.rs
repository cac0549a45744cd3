//! The laws of profiles: values, integrals and their inverse, and the due times of rates that change.

mod support;

use std::sync::Arc;

use proptest::prelude::*;
use redline_pacing::{Area, Arrivals, Impossible, NS_PER_S, Profile, Schedule, Stage};
use support::{chi_square_excess, critical_distance, exponential, kolmogorov_smirnov};

const DAY_NS: u64 = 86_400 * NS_PER_S;

fn stage(to: f64, over_ns: u64) -> Stage {
    Stage { to, over_ns }
}

fn rates() -> impl Strategy<Value = f64> {
    prop_oneof![0.5_f64..100.0, 100.0_f64..1e5, (1_u32..1000).prop_map(f64::from)]
}

fn rates_and_zero() -> impl Strategy<Value = f64> {
    prop_oneof![1 => Just(0.0), 3 => rates()]
}

fn stages(rates: impl Strategy<Value = f64>, longest_ns: u64) -> impl Strategy<Value = Vec<Stage>> {
    let over = prop_oneof![1 => Just(0), 4 => 1..longest_ns];
    prop::collection::vec((rates, over).prop_map(|(to, over_ns)| Stage { to, over_ns }), 1..6)
}

fn profiles() -> impl Strategy<Value = Profile> {
    (rates_and_zero(), stages(rates_and_zero(), 3 * NS_PER_S), 0..NS_PER_S)
        .prop_map(|(start, stages, begins_ns)| Profile::new(start, &stages, begins_ns))
        .prop_filter("some rate", |profile| profile.most() > 0.0)
}

/// Due times before `until_ns`, at most this many.
fn due_before(profile: &Profile, arrivals: &Arrivals, seed: u64, worker: u32, workers: u32, until_ns: u64) -> Vec<u64> {
    let schedule = Schedule::new(profile, arrivals, seed, worker, workers).unwrap();
    schedule.take_while(|due| *due < until_ns).take(20_000).collect()
}

proptest! {
    #[test]
    fn the_inverse_of_the_integral_is_exact_to_a_nanosecond(
        start in rates(), stages in stages(rates(), DAY_NS), begins in 0..DAY_NS, at in 0_u64..7 * DAY_NS,
    ) {
        let profile = Profile::new(start, &stages, begins);
        let back = profile.when(profile.area(at)).unwrap();
        prop_assert!(back.abs_diff(at) <= 1, "{at} {back}");
    }

    /// Nothing is summed on the way, so only the last digits of a float are lost.
    #[test]
    fn thirty_days_do_not_drift(start in rates(), to in rates(), at in 0_u64..60 * DAY_NS) {
        let profile = Profile::new(start, &[stage(to, 30 * DAY_NS)], NS_PER_S);
        let back = profile.when(profile.area(at)).unwrap();
        prop_assert!(back.abs_diff(at) <= 3, "{at} {back}");
    }

    #[test]
    fn the_integral_and_its_inverse_never_go_back(profile in profiles(), mut at in prop::collection::vec(0..20 * NS_PER_S, 2..50)) {
        at.sort_unstable();
        let areas: Vec<Area> = at.iter().map(|at| profile.area(*at)).collect();
        prop_assert!(areas.is_sorted());
        let back: Vec<u64> = areas.iter().map_while(|area| profile.when(*area)).collect();
        prop_assert!(back.windows(2).all(|pair| pair[0] <= pair[1] + 1));
    }

    /// The integral's slope is the value, and no value exceeds the highest.
    #[test]
    fn the_integral_grows_by_the_value(profile in profiles(), at in 0..20 * NS_PER_S) {
        const DT_NS: u64 = 1000;
        let (before, after) = (profile.value_at(at), profile.value_at(at + DT_NS));
        let grown = (profile.area(at + DT_NS).as_f64() - profile.area(at).as_f64()) * (NS_PER_S / DT_NS) as f64;
        let ends = [before, after, profile.value_at(at + DT_NS / 2)];
        // A step, or a stage shorter than this, may lie between.
        let steady = (before - after).abs() <= 1e-2 * profile.most();
        prop_assert!(!steady || (grown - f64::midpoint(before, after)).abs() <= 2e-2 * profile.most() + 1e-2, "{grown} {ends:?}");
        prop_assert!(ends.iter().all(|value| (0.0..=profile.most()).contains(value)));
    }

    #[test]
    fn as_many_are_due_as_the_integral_says(profile in profiles(), until in 0..20 * NS_PER_S) {
        let due = due_before(&profile, &Arrivals::Uniform, 0, 0, 1, until);
        prop_assert!(due.is_sorted());
        let area = profile.area(until).as_f64().min(20_000.0);
        prop_assert!((due.len() as f64 - area).abs() <= 1.0, "{} {area}", due.len());
    }

    #[test]
    fn nothing_is_due_where_the_rate_is_0(profile in profiles(), seed: u64) {
        for arrivals in [Arrivals::Uniform, Arrivals::Poisson] {
            for due in due_before(&profile, &arrivals, seed, 0, 1, 20 * NS_PER_S) {
                let around = [due.saturating_sub(2), due, due + 2].map(|at| profile.value_at(at));
                prop_assert!(around.iter().any(|rate| *rate > 0.0), "{due}");
            }
        }
    }

    #[test]
    fn shares_merge_to_the_complete_schedule(profile in profiles(), workers in 1_u32..9) {
        let until = profile.when(Area::of(2000)).map_or(20 * NS_PER_S, |at| at.min(20 * NS_PER_S));
        let whole = due_before(&profile, &Arrivals::Uniform, 0, 0, 1, until);
        let mut merged: Vec<u64> =
            (0..workers).flat_map(|w| due_before(&profile, &Arrivals::Uniform, 0, w, workers, until)).collect();
        merged.sort_unstable();
        prop_assert_eq!(merged, whole);
    }

    #[test]
    fn the_same_seed_gives_the_same_times_in_order(profile in profiles(), seed: u64) {
        let due = due_before(&profile, &Arrivals::Poisson, seed, 1, 3, 20 * NS_PER_S);
        prop_assert!(due.is_sorted());
        let mut schedule = Schedule::new(&profile, &Arrivals::Poisson, seed, 1, 3).unwrap();
        let skipped: Vec<u64> = schedule.by_ref().take(due.len() / 2).collect();
        let rest: Vec<u64> = schedule.clone().take(due.len() - skipped.len()).collect();
        prop_assert_eq!([skipped, rest].concat(), due);
    }

    /// The warm-up is that of the constant rate, and stages that change nothing change at most the rounding.
    #[test]
    fn level_stages_leave_the_schedule_as_it_was(rate in rates(), begins in 0..NS_PER_S, over in 0..NS_PER_S, seed: u64) {
        let (level, constant) = (Profile::new(rate, &[stage(rate, over)], begins), Profile::constant(rate));
        for arrivals in [Arrivals::Uniform, Arrivals::Poisson] {
            let exact = Schedule::new(&constant, &arrivals, seed, 1, 2).unwrap();
            let staged = Schedule::new(&level, &arrivals, seed, 1, 2).unwrap();
            for (expected, due) in exact.zip(staged).take(2000) {
                let allowed = u64::from(arrivals == Arrivals::Poisson || expected >= begins);
                prop_assert!(due.abs_diff(expected) <= allowed, "{due} {expected}");
            }
        }
    }

    #[test]
    fn what_is_replayed_is_due_from_the_measurement_on(
        mut offsets in prop::collection::vec(0_u64..DAY_NS, 0..200), begins in 0..DAY_NS, workers in 1_u32..9,
    ) {
        offsets.sort_unstable();
        let arrivals = Arrivals::Replayed(Arc::from(offsets.as_slice()));
        let profile = Profile::new(0.0, &[], begins);
        for worker in 0..workers {
            let schedule = Schedule::new(&profile, &arrivals, 0, worker, workers).unwrap();
            let expected: Vec<u64> =
                offsets.iter().skip(worker as usize).step_by(workers as usize).map(|due| due + begins).collect();
            prop_assert_eq!(schedule.collect::<Vec<_>>(), expected);
        }
    }
}

#[test]
fn windows_of_a_replay_follow_each_other_and_begin_again() {
    let times: Arc<[u64]> = Arc::from([0, 5, 5, 9, 10, 24, 29, 31]);
    let window =
        |turn, worker, workers| -> Vec<u64> { Schedule::window(&times, turn, 10, worker, workers).unwrap().collect() };
    // What lies after the last whole window, 31, is left out.
    let expected: [&[u64]; 4] = [&[0, 5, 5, 9], &[0], &[4, 9], &[0, 5, 5, 9]];
    for (turn, expected) in (0..).zip(expected) {
        assert_eq!(window(turn, 0, 1), expected, "window {turn}");
        let mut shares: Vec<u64> = (0..3).flat_map(|worker| window(turn, worker, 3)).collect();
        shares.sort_unstable();
        assert_eq!(shares, expected, "window {turn} of three workers");
    }
    // A recording that is shorter than a window is its only window.
    assert_eq!(Schedule::window(&times, 3, 100, 0, 1).unwrap().count(), times.len());
}

/// A triangle with a pause: up, down to 0, nothing, a step, and nothing for ever.
fn hills() -> Profile {
    let s = NS_PER_S;
    let stages =
        [stage(4000.0, 10 * s), stage(0.0, 10 * s), stage(0.0, 5 * s), stage(3000.0, 0), stage(3000.0, 10 * s)];
    Profile::new(500.0, &[&stages[..], &[stage(0.0, 0)]].concat(), 2 * s)
}

#[test]
fn a_rescaled_poisson_process_has_exponential_gaps_and_poisson_counts() {
    const WINDOWS: usize = 200;
    let profile = hills();
    for (seed, workers) in [(1, 1), (2, 1), (3, 4), (4, 7)] {
        let mut due: Vec<u64> =
            (0..workers).flat_map(|w| Schedule::new(&profile, &Arrivals::Poisson, seed, w, workers).unwrap()).collect();
        due.sort_unstable();
        let whole = profile.area(profile.ends_ns()).as_f64();
        assert!((due.len() as f64 - whole).abs() < 4.0 * whole.sqrt(), "{} {whole}", due.len());

        let areas: Vec<f64> = due.iter().map(|due| profile.area(*due).as_f64()).collect();
        let gaps: Vec<f64> = areas.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(kolmogorov_smirnov(gaps, exponential(1.0)) < critical_distance(due.len()));
        let placed = kolmogorov_smirnov(areas, |area| area / whole);
        assert!(placed < critical_distance(due.len()), "{placed}");

        let mut counts = vec![0; WINDOWS];
        let window = profile.ends_ns() / WINDOWS as u64 + 1;
        for due in &due {
            counts[(due / window) as usize] += 1;
        }
        let at = |i: usize| profile.area(i as u64 * window).as_f64();
        let expected: Vec<f64> = (0..WINDOWS).map(|i| at(i + 1) - at(i)).collect();
        let (counts, expected): (Vec<u64>, Vec<f64>) =
            counts.into_iter().zip(expected).filter(|(_, mean)| *mean > 0.0).unzip();
        let excess = chi_square_excess(&counts, &expected);
        assert!(excess.abs() < 3.5, "{excess}");
    }
}

#[test]
fn a_schedule_ends_where_the_rate_is_0_for_ever() {
    let second = Profile::new(1000.0, &[stage(0.0, 0)], NS_PER_S);
    let due: Vec<u64> = Schedule::new(&second, &Arrivals::Uniform, 0, 0, 1).unwrap().collect();
    assert_eq!(due, (0..1000).map(|i| i * 1_000_000).collect::<Vec<_>>());
    // 500 · 2 + 4500 / 2 · 10 + 4000 / 2 · 10 + 3000 · 10
    let mut schedule = Schedule::new(&hills(), &Arrivals::Uniform, 0, 0, 1).unwrap();
    assert_eq!(schedule.by_ref().count(), 73_500);
    assert_eq!(schedule.next(), None);
}

#[test]
fn a_rate_that_rises_from_0_follows_the_square_root() {
    let profile = Profile::new(0.0, &[stage(2000.0, NS_PER_S)], NS_PER_S);
    for (i, due) in Schedule::new(&profile, &Arrivals::Uniform, 0, 0, 1).unwrap().take(1001).enumerate() {
        let expected = NS_PER_S as f64 * (1.0 + (i as f64 / 1000.0).sqrt());
        assert!((due as f64 - expected).abs() <= 1.0, "{i}: {due} {expected}");
    }
    assert_eq!(profile.value_at(NS_PER_S * 3 / 2).to_bits(), 1000.0_f64.to_bits());
}

#[test]
fn at_a_step_the_new_value_holds() {
    let profile = Profile::new(1.0, &[stage(5.0, 0), stage(5.0, 10), stage(2.0, 0)], 10);
    assert_eq!([9, 10, 19, 20, 21].map(|at| profile.value_at(at) as u32), [1, 5, 5, 2, 2]);
    assert_eq!((profile.most() as u32, profile.ends_ns()), (5, 20));
}

#[test]
fn what_cannot_be_is_refused() {
    let stages_to = |to: f64| Schedule::new(&Profile::new(0.0, &[stage(to, 1)], 0), &Arrivals::Poisson, 0, 0, 1);
    for rate in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e8, 1e-9] {
        let refused = stages_to(rate).unwrap_err();
        assert!(matches!(refused, Impossible::Rate(_)), "{refused}");
    }
    assert!(stages_to(1.0).is_ok());
    let back = Arrivals::Replayed(Arc::from([0, 5, 5, 4]));
    let refused = Schedule::new(&Profile::constant(0.0), &back, 0, 0, 1).unwrap_err();
    assert_eq!(refused, Impossible::Backwards(3));
}

/// Golden: these times are part of the contract, on every machine and for ever.
#[test]
fn the_times_of_a_seed_are_pinned() {
    let profile = Profile::new(1000.0, &[stage(3000.0, 2_000_000)], 1_500_000);
    let times = |arrivals| Schedule::new(&profile, &arrivals, 42, 0, 1).unwrap().take(5).collect::<Vec<_>>();
    assert_eq!(times(Arrivals::Uniform), [0, 1_000_000, 1_914_213, 2_500_000, 2_949_489]);
    assert_eq!(times(Arrivals::Poisson), [1_669_316, 1_961_219, 3_732_051, 4_134_639, 4_660_465]);
}
