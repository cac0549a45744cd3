use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use redline_pacing::{Arrivals, Crowd, Profile, Schedule, Think};
use redline_traffic::{JourneyEnd, Outcome};

use super::{AfterStep, Demand, DueEvent, Users, WalkRules, Walks};
use crate::job::{Journey, Step};
use crate::request::{DueRequest, EndedRequest, NEVER, StepKind};

/// A journey of so many steps without conditions, which think for this long before each but the first.
fn journey(once: u16, steps: u16, think_ns: u64) -> Journey {
    let step = |number| {
        let is_first = number == 0 || number == once;
        let think = if is_first { Think::None } else { Think::Fixed(think_ns) };
        Step { request: u32::from(number), host: None, think, when: None, takes: Vec::new(), needs: Vec::new() }
    };
    Journey {
        steps: (0..once + steps).map(step).collect(),
        once,
        again_at: if once > 0 { vec![401] } else { Vec::new() },
        rows: None,
        cookies: false,
        keeps_cookies: false,
        names: Vec::new(),
        users: 3,
        has_conditions: false,
    }
}

fn rules(journey: Journey, is_open: bool) -> WalkRules {
    WalkRules { journey: Arc::new(journey), seed: 1, worker: 0, workers: 1, is_open, skips_think: false }
}

fn demand(journey: Journey, is_open: bool, end_ns: u64) -> Demand {
    let walks = Some(Walks::new(rules(journey, is_open)));
    if is_open {
        let schedule = Schedule::new(&Profile::constant(1e7), &Arrivals::Uniform, 0, 0, 1).unwrap();
        return Demand::open(schedule, walks, 0, end_ns);
    }
    let crowd = Crowd::new(&Profile::constant(3.0), 0, 1);
    let users = Users { crowd, think: Think::None, pace: None, depth: 1, seed: 1, worker: 0, workers: 1 };
    Demand::closed(users, walks, 0, end_ns)
}

fn ended(due: DueRequest, status: u16) -> EndedRequest {
    let outcome = if matches!(status, 200 | 401) { Outcome::Ok } else { Outcome::UnexpectedStatus };
    EndedRequest { status: Some(status), ..EndedRequest::unanswered(due, 0, Some(due.due_ns), outcome) }
}

proptest! {
    /// Whatever is answered and when: every journey that begins takes its steps in order and ends once, steps fall due at the
    /// previous answer plus the think time, and every user has one request at most.
    #[test]
    fn journeys_are_taken_in_order_and_end_once(
        is_open: bool,
        once in 0_u16..3,
        steps in 1_u16..4,
        moves in prop::collection::vec((any::<bool>(), prop::sample::select(vec![200_u16, 200, 200, 401, 500]), 0_u64..60), 1..300),
    ) {
        let mut demand = demand(journey(once, steps, 40), is_open, NEVER);
        let mut now_ns = 0;
        let mut flight: Vec<DueRequest> = Vec::new();
        // By user: the step that is expected next, when, and whether `once` is taken again for which step.
        let mut expected: BTreeMap<u32, (u16, u64, Option<u16>)> = BTreeMap::new();
        let (mut begun, mut ended_count, mut due_begins) = (0_u64, 0_u64, 0_u64);
        for (takes, status, later_ns) in moves {
            now_ns += later_ns;
            while demand.next_due_ns() <= now_ns {
                match demand.pop_due() {
                    DueEvent::Due(_) => {
                        due_begins += 1;
                        demand.walks_mut().unwrap().begin();
                    }
                    DueEvent::Step(due_ns) => prop_assert!(due_ns <= now_ns),
                    DueEvent::Joined => {}
                    other => prop_assert!(false, "{other:?}"),
                }
            }
            if takes {
                let waiting = demand.waiting();
                let taken = demand.take();
                prop_assert_eq!(taken.is_some(), waiting > 0);
                let Some(due) = taken else { continue };
                if due.kind == StepKind::First {
                    begun += 1;
                    prop_assert!(expected.insert(due.user, (once, due.due_ns, None)).is_none());
                }
                let (step, due_ns, _) = expected[&due.user];
                prop_assert_eq!((due.step, due.due_ns), (step, due_ns));
                prop_assert!(flight.iter().all(|other| other.user != due.user));
                flight.push(due);
            } else if !flight.is_empty() {
                let due = flight.remove(0);
                let Some(after) = demand.step_ended(&ended(due, status), now_ns) else { unreachable!() };
                let (step, _, again) = expected[&due.user];
                let asks = status == 401 && step >= once && once > 0 && due.kind != StepKind::Repeated;
                let next = if status == 500 {
                    None
                } else if asks {
                    Some((0, now_ns, Some(step)))
                } else if step + 1 == once {
                    Some((again.unwrap(), now_ns, None))
                } else if step + 1 == once + steps {
                    None
                } else {
                    Some((step + 1, now_ns + 40, again))
                };
                if let Some(next) = next {
                    let is_now = next.1 == now_ns;
                    prop_assert_eq!(after, if is_now { AfterStep::Due(now_ns) } else { AfterStep::Later });
                    expected.insert(due.user, next);
                    continue;
                }
                let is_abandoned = matches!(after, AfterStep::Over(JourneyEnd::Abandoned(at)) if at == step);
                let is_completed = matches!(after, AfterStep::Over(JourneyEnd::Completed(_)));
                prop_assert_eq!((is_abandoned, is_completed), (status == 500, status != 500));
                expected.remove(&due.user);
                ended_count += 1;
                if demand.ended(due, now_ns).is_some() {
                    due_begins += 1;
                    demand.walks_mut().unwrap().begin();
                }
            }
        }
        prop_assert_eq!(begun - ended_count, expected.len() as u64);
        prop_assert!(begun <= due_begins);
        prop_assert_eq!(demand.walks().unwrap().users_under_way().count(), expected.len());
    }
}

#[test]
fn a_step_that_is_due_after_the_end_goes_on_in_the_next_load() {
    let mut first = demand(journey(0, 2, 40), false, 100);
    assert_eq!((0..6).map(|_| first.next_due_ns()).max(), Some(0));
    let begins: Vec<_> = std::iter::from_fn(|| (first.next_due_ns() < NEVER).then(|| first.pop_due())).collect();
    assert_eq!(begins, [DueEvent::Due(0); 3]);
    for _ in 0..3 {
        first.walks_mut().unwrap().begin();
    }
    let due = first.take().unwrap();
    assert_eq!(first.step_ended(&ended(due, 200), 80).unwrap(), AfterStep::Later);
    assert_eq!(first.next_due_ns(), NEVER);
    // The others are lost with the load, as they are when it is cut.
    for _ in 0..2 {
        let due = first.take().unwrap();
        let lost = EndedRequest::unanswered(due, 0, None, Outcome::Unsent);
        assert_eq!(first.step_ended(&lost, 100).unwrap(), AfterStep::Over(JourneyEnd::Unfinished));
    }
    let mut walks = first.into_walks().unwrap();
    walks.resume(1000);
    let crowd = Crowd::new(&Profile::constant(3.0), 0, 1);
    let users = Users { crowd, think: Think::None, pace: None, depth: 1, seed: 1, worker: 0, workers: 1 };
    let mut second = Demand::closed(users, Some(walks), 1000, 1100);
    let begins: Vec<_> = std::iter::from_fn(|| (second.next_due_ns() < NEVER).then(|| second.pop_due())).collect();
    assert_eq!(begins.iter().filter(|event| **event == DueEvent::Due(1000)).count(), 2);
    assert_eq!(begins.iter().filter(|event| **event == DueEvent::Step(1000)).count(), 1);
}

#[test]
fn when_begins_are_over_the_journeys_under_way_end() {
    let mut demand = demand(journey(0, 2, 40), false, NEVER);
    for _ in 0..3 {
        assert_eq!(demand.pop_due(), DueEvent::Due(0));
        demand.walks_mut().unwrap().begin();
    }
    demand.walks_mut().unwrap().end_begins();
    for at_ns in [10, 20, 30] {
        let due = demand.take().unwrap();
        assert_eq!(demand.step_ended(&ended(due, 200), at_ns).unwrap(), AfterStep::Later);
    }
    for at_ns in [50, 60, 70] {
        assert!(!demand.walks().unwrap().is_done());
        assert_eq!((demand.next_due_ns(), demand.pop_due()), (at_ns, DueEvent::Step(at_ns)));
        let due = demand.take().unwrap();
        assert!(matches!(demand.step_ended(&ended(due, 200), at_ns + 5).unwrap(), AfterStep::Over(_)));
        assert_eq!(demand.ended(due, at_ns + 5), None);
    }
    assert!(demand.walks().unwrap().is_done());
}

#[test]
fn users_who_have_left_take_no_further_step() {
    let mut walks = Walks::new(rules(journey(1, 2, 0), false));
    for user in 0..3 {
        walks.begin();
        walks.set_off(DueRequest::new(0, user));
    }
    let mut after = |user, step, status| {
        let due = DueRequest { step, ..DueRequest::new(0, user) };
        (walks.ended(&ended(due, status), 10, NEVER, false), walks.takes_again())
    };
    assert_eq!(after(0, 1, 200), (AfterStep::Over(JourneyEnd::Unfinished), false));
    assert_eq!(after(1, 2, 401), (AfterStep::Over(JourneyEnd::Unfinished), false));
    // The last step was under way when the user left.
    assert_eq!(after(2, 2, 200), (AfterStep::Over(JourneyEnd::Completed(10)), false));
}
