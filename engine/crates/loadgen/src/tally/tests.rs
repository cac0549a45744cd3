use std::sync::Arc;
use std::sync::mpsc::channel;

use redline_traffic::Phase;

use super::{IntervalSender, MOST_LENT, Tally, Window};
use crate::measure_start::MeasureStart;

/// The intervals of a tally with intervals of 10 ns that is advanced at these times, with a request due at each of them.
fn intervals_of(
    window: Window,
    start: &Arc<MeasureStart>,
    steps: impl Iterator<Item = u64>,
) -> Vec<(Phase, u64, u64, u64)> {
    let (sender, intervals) = channel();
    let (_returns, spare) = channel();
    let mut tally = Tally::new(
        window,
        10,
        IntervalSender { send: Box::new(move |interval| sender.send(interval).unwrap()), spare },
    );
    tally.follow(Arc::clone(start));
    for now_ns in steps {
        tally.advance(now_ns);
        tally.due(now_ns, now_ns);
    }
    let end_ns = tally.window().end_ns;
    tally.finish(end_ns);
    intervals
        .try_iter()
        .map(|interval| (interval.phase, interval.number, interval.end_ns, interval.slice.counts.due))
        .collect()
}

#[test]
fn the_measurement_starts_when_set_and_is_as_long_as_planned() {
    let window = Window { epoch_ns: 1000, measure_ns: 1100, end_ns: 1120 };
    let start = Arc::default();
    let until_100 = intervals_of(window, &start, 1000..1120);
    assert_eq!(until_100.iter().filter(|interval| interval.0 == Phase::Warmup).count(), 10);
    let start = Arc::new(MeasureStart::default());
    assert!(start.set(1020));
    let expected = [
        (Phase::Warmup, 0, 10, 10),
        (Phase::Warmup, 1, 20, 10),
        (Phase::Measure, 0, 30, 10),
        (Phase::Measure, 1, 40, 10),
        (Phase::Drain, 0, 41, 0),
    ];
    assert_eq!(intervals_of(window, &start, 1000..1040), expected);
}

/// A worker that had no core for a while starts at the same instant as the others.
#[test]
fn a_late_worker_starts_at_the_same_instant() {
    let window = Window { epoch_ns: 1000, measure_ns: 1100, end_ns: 1150 };
    let start = Arc::new(MeasureStart::default());
    assert!(start.set(1020));
    let late = intervals_of(window, &start, (1000..1005).chain(1043..1060));
    let ends: Vec<_> = late.iter().map(|(phase, number, end_ns, _)| (*phase, *number, *end_ns)).take(4).collect();
    let expected = [(Phase::Warmup, 0, 10), (Phase::Warmup, 1, 20), (Phase::Measure, 0, 30), (Phase::Measure, 1, 40)];
    assert_eq!(ends, expected);
    assert_eq!(late.iter().map(|interval| interval.3).sum::<u64>(), 5 + 17);
}

/// Nobody reads a thousand intervals: memory is bounded, everything is counted, and phases stay separate.
#[test]
fn intervals_are_extended_while_too_many_wait() {
    let (sender, intervals) = channel();
    let (returns, spare) = channel();
    let sender_of = IntervalSender { send: Box::new(move |interval| sender.send(interval).unwrap()), spare };
    let window = Window { epoch_ns: 1000, measure_ns: 2000, end_ns: 12_000 };
    let mut tally = Tally::new(window, 10, sender_of);
    for now_ns in 1000..12_000 {
        tally.advance(now_ns);
        tally.due(now_ns, now_ns);
    }
    // Once the waiting intervals are read, later intervals have their normal length.
    let mut read: Vec<_> = intervals.try_iter().collect();
    assert_eq!(read.len(), MOST_LENT + 1);
    for _ in 0..read.len() {
        returns.send(Box::default()).unwrap();
    }
    tally.advance(12_000);
    tally.advance(12_030);
    tally.finish(12_035);
    read.extend(intervals.try_iter());
    let last: Vec<_> = read[MOST_LENT..].iter().map(|p| (p.phase, p.number, p.start_ns, p.end_ns)).collect();
    assert_eq!(
        last,
        [
            (Phase::Warmup, 99, 640, 1000),
            (Phase::Measure, 999, 1000, 11_000),
            (Phase::Drain, 0, 11_000, 11_010),
            (Phase::Drain, 1, 11_010, 11_020),
            (Phase::Drain, 2, 11_020, 11_030),
            (Phase::Drain, 3, 11_030, 11_035),
        ]
    );
    assert_eq!(read.iter().map(|interval| interval.slice.counts.due).sum::<u64>(), 11_000);
}
