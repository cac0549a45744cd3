use std::collections::VecDeque;
use std::sync::Arc;

use proptest::prelude::*;
use redline_pacing::{Arrivals, Crowd, Pace, Profile, Schedule, Stage, Think};

use super::{Demand, DueEvent, Users};
use crate::request::{DueRequest, NEVER};

fn schedule(rate_per_s: f64, arrivals: &Arrivals, seed: u64) -> Schedule {
    Schedule::new(&Profile::constant(rate_per_s), arrivals, seed, 0, 1).unwrap()
}

fn users(profile: &Profile) -> Users {
    let crowd = Crowd::new(profile, 0, 1);
    Users { crowd, think: Think::None, pace: None, depth: 1, seed: 1, worker: 0, workers: 1 }
}

fn due(due_ns: u64, user: u32) -> DueRequest {
    DueRequest::new(due_ns, user)
}

proptest! {
    /// In whatever order requests fall due and are taken, the queue is first in, first out, and loses nothing.
    #[test]
    fn an_open_queue_is_a_part_of_the_schedule(seed: u64, takes in prop::collection::vec(any::<bool>(), 0..300)) {
        let mut demand = Demand::open(schedule(1e6, &Arrivals::Poisson, seed), None, 1000, NEVER);
        let mut due = schedule(1e6, &Arrivals::Poisson, seed).map(|due| due + 1000);
        let mut queue = VecDeque::new();
        for take in takes {
            if take {
                prop_assert_eq!(demand.take().map(|due| due.due_ns), queue.pop_front());
            } else {
                let expected = due.next().unwrap();
                prop_assert_eq!(demand.next_due_ns(), expected);
                prop_assert_eq!(demand.pop_due(), DueEvent::Due(expected));
                queue.push_back(expected);
            }
            prop_assert_eq!(demand.waiting(), queue.len() as u64);
            prop_assert_eq!(demand.oldest_due_ns(), queue.front().copied().unwrap_or(NEVER));
        }
    }
}

#[test]
fn requests_of_a_replay_keep_their_numbers() {
    let times: Arc<[u64]> = (0..10).map(|i| i * 10).collect();
    let mut demand = Demand::open(Schedule::window(&times, 1, 40, 1, 2).unwrap(), None, 1000, NEVER);
    // Of the second window, 40 to 79, the second of two workers has the odd requests.
    assert_eq!([demand.pop_due(), demand.pop_due()], [1010, 1030].map(DueEvent::Due));
    assert_eq!(demand.next_due_ns(), NEVER);
    let taken = [demand.take().unwrap(), demand.take().unwrap()];
    assert_eq!(taken.map(|due| (due.due_ns, due.user)), [(1010, 5), (1030, 7)]);
}

#[test]
fn an_open_load_ends_before_its_end() {
    let mut demand = Demand::open(schedule(1e7, &Arrivals::Uniform, 0), None, 50, 251);
    assert_eq!([demand.pop_due(), demand.pop_due(), demand.pop_due()], [50, 150, 250].map(DueEvent::Due));
    assert_eq!(demand.next_due_ns(), NEVER);
    assert_eq!(demand.ended(due(50, 0), 51), None);
}

#[test]
fn users_start_at_once_and_send_again_until_the_end() {
    let mut demand = Demand::closed(users(&Profile::constant(2.0)), None, 100, 1000);
    assert_eq!(demand.next_due_ns(), 100);
    assert_eq!([demand.pop_due(), demand.pop_due()], [DueEvent::Due(100), DueEvent::Due(100)]);
    assert_eq!(demand.next_due_ns(), NEVER);
    let first = demand.take().unwrap();
    assert_eq!(demand.ended(first, 500), Some(500));
    assert_eq!(demand.take().map(|due| due.due_ns), Some(100));
    assert_eq!(demand.take(), Some(DueRequest { due_ns: 500, ..first }));
    assert_eq!(demand.take(), None);
    demand.cut(600);
    assert_eq!(demand.ended(first, 600), None);
}

#[test]
fn a_request_to_be_written_again_is_first_and_keeps_its_due_time() {
    let mut demand = Demand::closed(users(&Profile::constant(2.0)), None, 100, 1000);
    demand.pop_due();
    demand.pop_due();
    let first = demand.take().unwrap();
    let again = DueRequest { tries: 1, ..first };
    demand.give_back(again);
    assert_eq!((demand.waiting(), demand.oldest_due_ns()), (2, 100));
    assert_eq!(demand.take(), Some(again));
}

#[test]
fn users_think_before_the_next_request() {
    let thinking = Users { think: Think::Fixed(50), ..users(&Profile::constant(1.0)) };
    let mut demand = Demand::closed(thinking, None, 100, 1000);
    demand.pop_due();
    let first = demand.take().unwrap();
    assert_eq!(demand.ended(first, 300), None);
    assert_eq!((demand.next_due_ns(), demand.waiting()), (350, 0));
    assert_eq!(demand.pop_due(), DueEvent::Due(350));
    assert_eq!(demand.ended(first, 980), None);
    assert_eq!(demand.next_due_ns(), NEVER);
}

/// A user at 10 requests a second is answered after 250 ms: two more requests were due meanwhile, at their times.
#[test]
fn a_pace_does_not_move_because_an_answer_was_late() {
    let paced = Users { pace: Some(Pace::new(10.0).unwrap()), ..users(&Profile::constant(1.0)) };
    let mut demand = Demand::closed(paced, None, 0, 350_000_000);
    assert_eq!(demand.pop_due(), DueEvent::Due(0));
    let first = demand.take().unwrap();
    assert_eq!(demand.ended(first, 250_000_000), Some(100_000_000));
    let second = demand.take().unwrap();
    assert_eq!(demand.ended(second, 260_000_000), Some(200_000_000));
    let third = demand.take().unwrap();
    assert_eq!(demand.ended(third, 270_000_000), None);
    assert_eq!(demand.pop_due(), DueEvent::Due(300_000_000));
    // A request that would be due after the end is dropped.
    let fourth = demand.take().unwrap();
    assert_eq!(demand.ended(fourth, 400_000_000), None);
    assert_eq!((demand.waiting(), demand.next_due_ns()), (0, NEVER));
}

#[test]
fn users_join_and_leave() {
    let up_and_down = [Stage { to: 3.0, over_ns: 0 }, Stage { to: 3.0, over_ns: 1000 }, Stage { to: 1.0, over_ns: 0 }];
    let profile = Profile::new(1.0, &up_and_down, 500);
    assert_eq!(users(&profile).at_start(), 1);
    let mut demand = Demand::closed(users(&profile), None, 0, 10_000);
    let mut happened = Vec::new();
    while demand.next_due_ns() != NEVER {
        happened.push((demand.next_due_ns(), demand.pop_due()));
    }
    let (joined, left) = (DueEvent::Joined, DueEvent::Left);
    let due = |at| (at, DueEvent::Due(at));
    assert_eq!(happened, [due(0), (500, joined), (500, joined), due(500), due(500), (1500, left), (1500, left)]);
    // The two users who left send no more requests once they are answered.
    let taken: Vec<_> = std::iter::from_fn(|| demand.take()).collect();
    assert_eq!(taken.iter().filter(|due| demand.ended(**due, 2000).is_some()).count(), 1);
}

#[test]
fn a_user_keeps_its_depth() {
    let deep = Users { depth: 4, ..users(&Profile::constant(1.0)) };
    let mut demand = Demand::closed(deep, None, 0, 100);
    while demand.next_due_ns() != NEVER {
        demand.pop_due();
    }
    assert_eq!(demand.waiting(), 4);
}

#[test]
fn a_user_who_left_while_thinking_sends_no_more() {
    let profile = Profile::new(2.0, &[Stage { to: 1.0, over_ns: 0 }], 500);
    let thinking = Users { think: Think::Fixed(1000), ..users(&profile) };
    let mut demand = Demand::closed(thinking, None, 0, 10_000);
    demand.pop_due();
    demand.pop_due();
    while let Some(due) = demand.take() {
        assert_eq!(demand.ended(due, 100), None);
    }
    let happened: Vec<_> = (0..3).map(|_| demand.pop_due()).collect();
    assert_eq!(happened.iter().filter(|what| **what == DueEvent::Due(1100)).count(), 1, "{happened:?}");
    assert!(happened.contains(&DueEvent::Left) && happened.contains(&DueEvent::Nothing), "{happened:?}");
    assert_eq!((demand.waiting(), demand.next_due_ns()), (1, NEVER));
}

/// A user joins again while its earlier request is unanswered: the first of its new pace is due all the same.
#[test]
fn a_user_who_joins_again_starts_a_new_pace() {
    let away = [Stage { to: 0.0, over_ns: 0 }, Stage { to: 0.0, over_ns: 500 }, Stage { to: 1.0, over_ns: 0 }];
    let profile = Profile::new(1.0, &away, 500);
    let paced = Users { pace: Some(Pace::new(1e6).unwrap()), ..users(&profile) };
    let mut demand = Demand::closed(paced, None, 0, 100_000);
    assert_eq!(demand.pop_due(), DueEvent::Due(0));
    let first = demand.take().unwrap();
    assert_eq!([demand.pop_due(), demand.pop_due()], [DueEvent::Left, DueEvent::Joined]);
    assert_eq!(demand.ended(first, 2000), Some(1000));
}
