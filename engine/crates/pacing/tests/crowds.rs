//! The laws of crowds: who is present is the profile rounded, evenly on slopes, and the same for any number of workers.

use proptest::prelude::*;
use redline_pacing::{Change, Crowd, Move, NS_PER_S, Pace, Profile, Stage};

fn profiles() -> impl Strategy<Value = Profile> {
    let users = || prop_oneof![1 => Just(0_u32), 5 => 0_u32..300];
    let over = prop_oneof![1 => Just(0), 4 => 1..5 * NS_PER_S];
    let stages = prop::collection::vec((users(), over), 0..6);
    (users(), stages, 0..NS_PER_S).prop_map(|(start, stages, begins_ns)| {
        let stages: Vec<Stage> = stages.into_iter().map(|(to, over_ns)| Stage { to: to.into(), over_ns }).collect();
        Profile::new(start.into(), &stages, begins_ns)
    })
}

fn changes(profile: &Profile, workers: u32) -> Vec<Change> {
    let mut all: Vec<Change> = (0..workers).flat_map(|w| Crowd::new(profile, w, workers)).collect();
    all.sort_by_key(|change| change.at_ns);
    all
}

/// How many users are present after all changes up to `at_ns`.
fn present(changes: &[Change], at_ns: u64) -> i64 {
    let until = changes.iter().take_while(|change| change.at_ns <= at_ns);
    until.map(|change| if matches!(change.change, Move::Join(_)) { 1 } else { -1 }).sum()
}

proptest! {
    #[test]
    fn those_who_are_there_are_the_rounded_profile(profile in profiles(), workers in 1_u32..9, at in 0..30 * NS_PER_S) {
        let expected = profile.value_at(at);
        let count = present(&changes(&profile, workers), at);
        prop_assert!((count as f64 - expected).abs() <= 0.5 + 1e-4, "{count} {expected}");
        let end = present(&changes(&profile, workers), u64::MAX);
        prop_assert_eq!(end, profile.value_at(u64::MAX) as i64);
    }

    #[test]
    fn each_worker_has_its_own_users_in_order_of_time(profile in profiles(), workers in 1_u32..9) {
        for worker in 0..workers {
            let (mut last_ns, mut there, mut most) = (0, std::collections::BTreeSet::new(), 0);
            for Change { at_ns, change, rank, of } in Crowd::new(&profile, worker, workers) {
                prop_assert!(at_ns >= last_ns && rank < of);
                last_ns = at_ns;
                match change {
                    Move::Join(user) => prop_assert!(user % workers == worker && there.insert(user)),
                    Move::Leave(user) => prop_assert!(there.remove(&user)),
                }
                most = most.max(there.len() as u32);
            }
            prop_assert_eq!(most, Crowd::most(&profile, worker, workers));
        }
    }

    /// The split moves nobody: a user joins and leaves at the same times for any number of workers.
    #[test]
    fn shares_merge_to_all_changes(profile in profiles(), workers in 1_u32..9) {
        let sorted = |workers| {
            let mut all = changes(&profile, workers);
            all.sort_by_key(|change| (change.at_ns, matches!(change.change, Move::Join(_)), change.rank, change.of));
            all
        };
        let (whole, merged) = (sorted(1), sorted(workers));
        prop_assert_eq!(whole.len(), merged.len());
        for change in &merged {
            prop_assert!(whole.contains(change));
        }
    }

    #[test]
    fn users_who_start_at_once_have_each_rank_once(start in 0_u32..500, workers in 1_u32..9) {
        let all = changes(&Profile::constant(start.into()), workers);
        let mut ranks: Vec<u32> = all.iter().map(|change| change.rank).collect();
        ranks.sort_unstable();
        prop_assert_eq!(ranks, (0..start).collect::<Vec<_>>());
        prop_assert!(all.iter().all(|change| change.at_ns == 0 && change.of == start));
    }
}

#[test]
fn a_slope_of_250_000_users_is_even_and_complete() {
    const USERS: u32 = 250_000;
    let (begins, over) = (NS_PER_S, 30 * NS_PER_S);
    let profile = Profile::new(0.0, &[Stage { to: USERS.into(), over_ns: over }], begins);
    let all = changes(&profile, 16);
    assert_eq!(all.len(), USERS as usize);
    let distance = over / u64::from(USERS);
    for (i, change) in all.iter().enumerate() {
        let expected = begins + i as u64 * distance + distance / 2;
        assert_eq!(change.change, Move::Join(i as u32));
        assert!(change.at_ns.abs_diff(expected) <= 1, "{change:?} {expected}");
    }
    assert_eq!(Crowd::most(&profile, 15, 16), USERS / 16);
}

#[test]
fn users_who_ramp_up_are_complete_when_the_stages_begin() {
    let profile = Profile::rising(4.0, &[Stage { to: 5.0, over_ns: 100 }], 1000);
    let at: Vec<u64> = changes(&profile, 2).iter().map(|change| change.at_ns).collect();
    assert_eq!(at, [125, 375, 625, 875, 1050]);
    let at_once = changes(&Profile::rising(4.0, &[], 0), 2);
    assert!(at_once.iter().all(|change| change.at_ns == 0 && change.of == 4));
    assert_eq!((at_once.len(), Crowd::most(&profile, 0, 1)), (4, 5));
}

#[test]
fn a_step_happens_at_once_and_its_users_share_a_period() {
    let profile = Profile::new(4.0, &[Stage { to: 12.0, over_ns: 0 }, Stage { to: 10.0, over_ns: 0 }], 7);
    let step: Vec<Change> = Crowd::new(&profile, 1, 2).skip(2).collect();
    let expected = [(Move::Join(5), 1, 8), (Move::Join(7), 3, 8), (Move::Join(9), 5, 8), (Move::Join(11), 7, 8)];
    for (change, (expected, rank, of)) in step.iter().zip(expected) {
        assert_eq!(*change, Change { at_ns: 7, change: expected, rank, of });
        assert_eq!(Pace::new(1.0).unwrap().start_of(7, rank, of), 7 + u64::from(rank) * NS_PER_S / 8);
    }
    assert_eq!(step[4..], [Change { at_ns: 7, change: Move::Leave(11), rank: 0, of: 2 }]);
}

#[test]
fn nonsense_makes_no_crowd() {
    for value in [f64::NAN, -3.0, 0.0] {
        let profile = Profile::new(value, &[Stage { to: value, over_ns: 5 }], 5);
        assert_eq!((Crowd::new(&profile, 0, 1).count(), Crowd::most(&profile, 0, 1)), (0, 0));
    }
}
