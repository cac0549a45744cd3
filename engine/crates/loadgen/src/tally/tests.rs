use std::sync::Arc;
use std::sync::mpsc::channel;

use redline_traffic::Phase;

use super::{IntervalSender, MOST_LENT, Tally, Window};
use crate::measure_start::MeasureStart;

/// What a tally of 10 ns intervals tells when it is asked so late, and each nanosecond has a request.
fn told(
    window: Window,
    beginning: &Arc<MeasureStart>,
    steps: impl Iterator<Item = u64>,
) -> Vec<(Phase, u64, u64, u64)> {
    let (sender, pieces) = channel();
    let (_returns, spare) = channel();
    let mut tally =
        Tally::new(window, 10, IntervalSender { pieces: Box::new(move |piece| sender.send(piece).unwrap()), spare });
    tally.ask(Arc::clone(beginning));
    for now_ns in steps {
        tally.advance(now_ns);
        tally.due(now_ns, now_ns);
    }
    let end_ns = tally.window().end_ns;
    tally.finish(end_ns);
    pieces.try_iter().map(|piece| (piece.phase, piece.number, piece.end_ns, piece.slice.counts.due)).collect()
}

#[test]
fn the_measurement_begins_when_it_is_told_and_is_as_long_as_planned() {
    let window = Window { epoch_ns: 1000, measure_ns: 1100, end_ns: 1120 };
    let beginning = Arc::default();
    let until_100 = told(window, &beginning, 1000..1120);
    assert_eq!(until_100.iter().filter(|piece| piece.0 == Phase::Warmup).count(), 10);
    let beginning = Arc::new(MeasureStart::default());
    assert!(beginning.set(1020));
    let expected = [
        (Phase::Warmup, 0, 10, 10),
        (Phase::Warmup, 1, 20, 10),
        (Phase::Measure, 0, 30, 10),
        (Phase::Measure, 1, 40, 10),
        (Phase::Drain, 0, 41, 0),
    ];
    assert_eq!(told(window, &beginning, 1000..1040), expected);
}

/// A worker that had no core for a while begins at the same instant as the others.
#[test]
fn who_is_late_begins_no_later() {
    let window = Window { epoch_ns: 1000, measure_ns: 1100, end_ns: 1150 };
    let beginning = Arc::new(MeasureStart::default());
    assert!(beginning.set(1020));
    let late = told(window, &beginning, (1000..1005).chain(1043..1060));
    let ends: Vec<_> = late.iter().map(|(phase, number, end_ns, _)| (*phase, *number, *end_ns)).take(4).collect();
    let expected = [(Phase::Warmup, 0, 10), (Phase::Warmup, 1, 20), (Phase::Measure, 0, 30), (Phase::Measure, 1, 40)];
    assert_eq!(ends, expected);
    assert_eq!(late.iter().map(|piece| piece.3).sum::<u64>(), 5 + 17);
}

/// Nobody takes the pieces, for a thousand intervals: memory is bounded, all is counted, and phases stay apart.
#[test]
fn intervals_run_together_while_too_many_wait() {
    let (sender, pieces) = channel();
    let (returns, spare) = channel();
    let outlet = IntervalSender { pieces: Box::new(move |piece| sender.send(piece).unwrap()), spare };
    let window = Window { epoch_ns: 1000, measure_ns: 2000, end_ns: 12_000 };
    let mut tally = Tally::new(window, 10, outlet);
    for now_ns in 1000..12_000 {
        tally.advance(now_ns);
        tally.due(now_ns, now_ns);
    }
    // What waits is read, and the next are as long as they should be.
    let mut read: Vec<_> = pieces.try_iter().collect();
    assert_eq!(read.len(), MOST_LENT + 1);
    for _ in 0..read.len() {
        returns.send(Box::default()).unwrap();
    }
    tally.advance(12_000);
    tally.advance(12_030);
    tally.finish(12_035);
    read.extend(pieces.try_iter());
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
    assert_eq!(read.iter().map(|piece| piece.slice.counts.due).sum::<u64>(), 11_000);
}
