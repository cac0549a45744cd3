//! Numbers the intervals of a shard as the tally of a worker does, so that they can be merged.

use redline_traffic::{Interval, Phase, Slice};

use crate::tally::MemberInterval;

/// Numbers the intervals of a shard by where in their phase they end. A shard that extended an interval skips numbers, as a
/// worker does.
pub struct Numbering {
    interval_ns: u64,
    phase: Phase,
    /// When the phase started.
    start_ns: u64,
    /// The lowest number that no interval of the phase has.
    next: u64,
}

impl Numbering {
    pub fn new(interval_ns: u64) -> Self {
        Self { interval_ns, phase: Phase::Warmup, start_ns: 0, next: 0 }
    }

    /// Number the shard's next interval.
    pub fn number(&mut self, interval: Interval<Box<Slice>>) -> MemberInterval {
        let Interval { phase, start_ns, end_ns, slice, ticks, workers, .. } = interval;
        if phase != self.phase {
            *self = Self { phase, start_ns, next: 0, ..*self };
        }
        let through_ns = end_ns.saturating_sub(self.start_ns);
        let number = through_ns.div_ceil(self.interval_ns).saturating_sub(1).max(self.next);
        self.next = number + 1;
        MemberInterval { phase, number, start_ns, end_ns, slice, ticks, workers }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use redline_traffic::{Ended, Outcome};

    use super::*;
    use crate::merge::{Measured, Merger};

    const INTERVAL_NS: u64 = 100;

    fn interval(phase: Phase, start_ns: u64, end_ns: u64, requests: u64) -> Interval<Box<Slice>> {
        let mut slice = Box::<Slice>::default();
        for i in 0..requests {
            slice.counts.due += 1;
            slice.counts.completed += 1;
            slice.counts.outcomes.count(Outcome::Ok);
            slice.response.record(1000 + i);
        }
        slice.engine_cpu_ns = requests;
        Interval { phase, index: 0, start_ns, end_ns, ticks: Vec::new(), workers: Vec::new(), slice }
    }

    fn result(ended: Ended, start_ns: u64, end_ns: u64) -> Measured {
        Measured { ended, start_ns, end_ns }
    }

    /// Shards whose intervals are numbered and merged.
    struct Merging {
        merger: Merger,
        numberings: Vec<Numbering>,
    }

    impl Merging {
        fn new(shards: usize) -> Self {
            let numberings = (0..shards).map(|_| Numbering::new(INTERVAL_NS)).collect();
            Self { merger: Merger::new(shards), numberings }
        }

        fn add(&mut self, shard: usize, interval: Interval<Box<Slice>>) {
            let interval = self.numberings[shard].number(interval);
            self.merger.add(shard, interval);
        }

        fn merged(&mut self) -> Vec<(Phase, u64, u64, u64)> {
            std::iter::from_fn(|| self.merger.next())
                .map(|merged| merged.interval)
                .map(|interval| (interval.phase, interval.start_ns, interval.end_ns, interval.slice.counts.due))
                .collect()
        }
    }

    #[test]
    fn intervals_of_one_time_are_one() {
        let mut merging = Merging::new(2);
        for (shard, drain_end_ns) in [(0, 510), (1, 560)] {
            assert_eq!(merging.merged(), []);
            merging.add(shard, interval(Phase::Warmup, 0, 100, 1));
            merging.add(shard, interval(Phase::Warmup, 100, 150, 2));
            for start_ns in [150, 250, 350] {
                merging.add(shard, interval(Phase::Measure, start_ns, start_ns + 100, 3));
            }
            merging.add(shard, interval(Phase::Measure, 450, 500, 4));
            merging.add(shard, interval(Phase::Drain, 500, drain_end_ns, 5));
            merging.merger.finish(shard, result(Ended::Complete, 150, 500));
        }
        let expected = [
            (Phase::Warmup, 0, 100, 2),
            (Phase::Warmup, 100, 150, 4),
            (Phase::Measure, 150, 250, 6),
            (Phase::Measure, 250, 350, 6),
            (Phase::Measure, 350, 450, 6),
            (Phase::Measure, 450, 500, 8),
            (Phase::Drain, 500, 560, 10),
        ];
        assert_eq!(merging.merged(), expected);
        let complete = result(Ended::Complete, 150, 500);
        assert_eq!(merging.merger.measured(), Some(complete));
        assert_eq!((merging.merger.total.counts.due, merging.merger.total.counts.completed), (36, 26));
        assert_eq!((merging.merger.total.response.count(), merging.merger.total.engine_cpu_ns), (36, 26));
    }

    /// A shard whose output was not read for a while extends an interval to three, which is merged into the last of them.
    #[test]
    fn extended_intervals_are_merged_where_they_end() {
        let mut merging = Merging::new(2);
        for end_ns in [100, 200, 300, 400] {
            merging.add(0, interval(Phase::Measure, end_ns - 100, end_ns, 1));
        }
        merging.add(1, interval(Phase::Measure, 0, 300, 10));
        let expected = [(Phase::Measure, 0, 100, 1), (Phase::Measure, 100, 200, 1), (Phase::Measure, 200, 300, 11)];
        assert_eq!(merging.merged(), expected);
        merging.add(1, interval(Phase::Measure, 300, 400, 10));
        assert_eq!(merging.merged(), [(Phase::Measure, 300, 400, 11)]);
    }

    #[test]
    fn what_cut_one_has_cut_all() {
        let mut merging = Merging::new(3);
        for (shard, ended, end_ns) in
            [(0, Ended::Deadline, 170), (1, Ended::Interrupted, 180), (2, Ended::Complete, 175)]
        {
            assert_eq!(merging.merger.measured(), None);
            merging.add(shard, interval(Phase::Measure, 0, 100, 1));
            merging.add(shard, interval(Phase::Measure, 100, end_ns, 1));
            merging.add(shard, interval(Phase::Drain, end_ns, end_ns + 1, 1));
            merging.merger.finish(shard, result(ended, 0, end_ns));
        }
        let interrupted = result(Ended::Interrupted, 0, 180);
        assert_eq!(merging.merger.measured(), Some(interrupted));
        let expected = [(Phase::Measure, 0, 100, 3), (Phase::Measure, 100, 180, 3), (Phase::Drain, 180, 181, 3)];
        assert_eq!(merging.merged(), expected);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// However the shards extend intervals, and in whatever order they arrive, merged intervals have no gaps, phases stay
        /// separate and in order, and nothing is lost.
        #[test]
        fn nothing_is_lost_and_time_has_no_gaps(
            kept in prop::collection::vec(prop::collection::vec(any::<bool>(), 9), 1..5),
            turns in prop::collection::vec(any::<prop::sample::Index>(), 60),
        ) {
            let mut merging = Merging::new(kept.len());
            let mut queues: Vec<_> = kept.iter().map(|kept| shard_of(kept)).collect();
            let all: u64 = queues.iter().flatten().map(|interval| interval.slice.counts.due).sum();
            let mut seen = Vec::new();
            let mut turns = turns.iter().cycle();
            while queues.iter().any(|queue| !queue.is_empty()) {
                let shard = turns.next().unwrap().index(queues.len());
                let shard = if queues[shard].is_empty() { queues.iter().position(|queue| !queue.is_empty()).unwrap() } else { shard };
                merging.add(shard, queues[shard].remove(0));
                if queues[shard].is_empty() {
                    merging.merger.finish(shard, result(Ended::Complete, 250, 650));
                }
                seen.extend(merging.merged());
            }
            prop_assert_eq!(seen.iter().map(|interval| interval.3).sum::<u64>(), all);
            prop_assert!(seen.windows(2).all(|pair| pair[0].2 == pair[1].1 && pair[0].0 <= pair[1].0));
            prop_assert!(seen.iter().all(|interval| interval.1 < interval.2));
            let ends = |phase| seen.iter().rfind(|interval| interval.0 == phase).map(|interval| interval.2);
            prop_assert_eq!((ends(Phase::Warmup), ends(Phase::Measure)), (Some(250), Some(650)));
            prop_assert!(merging.merger.measured().is_some());
        }
    }

    /// A shard with a warm-up to 250, a window to 650 and a drain. An interval that is not kept is extended to the next in its
    /// phase.
    fn shard_of(kept: &[bool]) -> Vec<Interval<Box<Slice>>> {
        let ends = [100, 200, 250, 350, 450, 550, 650, 750, 760];
        let phase = |end_ns| match end_ns {
            ..=250 => Phase::Warmup,
            251..=650 => Phase::Measure,
            _ => Phase::Drain,
        };
        let (mut start_ns, mut requests) = (0, 0);
        let mut intervals = Vec::new();
        for (end_ns, kept) in ends.into_iter().zip(kept) {
            requests += 1;
            if *kept || matches!(end_ns, 250 | 650 | 760) {
                intervals.push(interval(phase(end_ns), start_ns, end_ns, requests));
                (start_ns, requests) = (end_ns, 0);
            }
        }
        intervals
    }
}
