//! What the shards tell, put together: a shard is to the coordinator what a worker is to the director.

use redline_traffic::{Ended, Interval, Phase, Slice, Summary};

use crate::merge::{Merged, Merger};
use crate::tally::WorkerInterval;

/// The intervals of one shard, numbered as the tally of a worker numbers its pieces: by where in their phase they end. A
/// shard that let intervals run together passes over numbers, as a worker does.
struct Numbering {
    phase: Phase,
    /// Where the phase began.
    begun_ns: u64,
    /// The number that no interval of the phase has had yet.
    next: u64,
}

impl Numbering {
    fn new() -> Self {
        Self { phase: Phase::Warmup, begun_ns: 0, next: 0 }
    }

    fn number<S>(&mut self, interval: &Interval<S>, interval_ns: u64) -> u64 {
        if interval.phase != self.phase {
            *self = Self { phase: interval.phase, begun_ns: interval.start_ns, next: 0 };
        }
        let through_ns = interval.end_ns.saturating_sub(self.begun_ns);
        let number = through_ns.div_ceil(interval_ns).saturating_sub(1).max(self.next);
        self.next = number + 1;
        number
    }
}

/// How a measurement ended, for all shards together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending {
    pub ended: Ended,
    pub measure_start_ns: u64,
    pub measure_end_ns: u64,
}

pub struct FanIn {
    interval_ns: u64,
    merger: Merger,
    numberings: Vec<Numbering>,
    ending: Option<Ending>,
}

impl FanIn {
    pub fn new(shards: usize, interval_ns: u64) -> Self {
        let numberings = (0..shards).map(|_| Numbering::new()).collect();
        Self { interval_ns, merger: Merger::new(shards), numberings, ending: None }
    }

    /// Add a shard's next interval; its memory comes back when it is not needed.
    pub fn add(&mut self, shard: usize, interval: Interval<Box<Slice>>) -> Option<Box<Slice>> {
        let number = self.numberings[shard].number(&interval, self.interval_ns);
        let Interval { phase, start_ns, end_ns, slice, .. } = interval;
        self.merger.add(shard, WorkerInterval { phase, number, start_ns, end_ns, slice })
    }

    /// A shard has told its result, and has nothing more to tell. The sums are those of its intervals, which are here already.
    pub fn finish<S>(&mut self, shard: usize, result: &Summary<S>) {
        self.merger.finish(shard);
        let Summary { ended, measure_start_ns, measure_end_ns, .. } = *result;
        let own = Ending { ended, measure_start_ns, measure_end_ns };
        self.ending = Some(self.ending.map_or(own, |known| known.and(own)));
    }

    /// How it ended, once every shard has told its result.
    pub fn ending(&self) -> Option<Ending> {
        self.ending.filter(|_| self.merger.all_finished())
    }

    /// The next interval that every shard has told or passed.
    pub fn next(&mut self) -> Option<Merged> {
        self.merger.next()
    }

    /// The sums that the result tells.
    pub fn total(&mut self) -> &mut Slice {
        &mut self.merger.total
    }
}

impl Ending {
    /// The measurement of two ended when that of the last did; what cut one has cut the whole.
    fn and(self, other: Self) -> Self {
        let ended = match (self.ended, other.ended) {
            (Ended::Interrupted, _) | (_, Ended::Interrupted) => Ended::Interrupted,
            (Ended::Deadline, _) | (_, Ended::Deadline) => Ended::Deadline,
            (Ended::Complete, Ended::Complete) => Ended::Complete,
        };
        Self {
            ended,
            measure_start_ns: self.measure_start_ns.max(other.measure_start_ns),
            measure_end_ns: self.measure_end_ns.max(other.measure_end_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use redline_traffic::Outcome;

    use super::*;

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
        Interval { phase, index: 0, start_ns, end_ns, slice }
    }

    fn result(ended: Ended, measure_start_ns: u64, measure_end_ns: u64) -> Summary<()> {
        Summary { ended, measure_start_ns, measure_end_ns, slice: () }
    }

    fn told(fan_in: &mut FanIn) -> Vec<(Phase, u64, u64, u64)> {
        std::iter::from_fn(|| fan_in.next())
            .map(|merged| merged.piece)
            .map(|piece| (piece.phase, piece.start_ns, piece.end_ns, piece.slice.counts.due))
            .collect()
    }

    #[test]
    fn intervals_of_one_time_are_one() {
        let mut fan_in = FanIn::new(2, INTERVAL_NS);
        for (shard, drain_end_ns) in [(0, 510), (1, 560)] {
            assert_eq!(told(&mut fan_in), []);
            fan_in.add(shard, interval(Phase::Warmup, 0, 100, 1));
            fan_in.add(shard, interval(Phase::Warmup, 100, 150, 2));
            for start_ns in [150, 250, 350] {
                fan_in.add(shard, interval(Phase::Measure, start_ns, start_ns + 100, 3));
            }
            fan_in.add(shard, interval(Phase::Measure, 450, 500, 4));
            fan_in.add(shard, interval(Phase::Drain, 500, drain_end_ns, 5));
            fan_in.finish(shard, &result(Ended::Complete, 150, 500));
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
        assert_eq!(told(&mut fan_in), expected);
        let complete = Ending { ended: Ended::Complete, measure_start_ns: 150, measure_end_ns: 500 };
        assert_eq!(fan_in.ending(), Some(complete));
        assert_eq!((fan_in.total().counts.due, fan_in.total().counts.completed), (36, 26));
        assert_eq!((fan_in.total().response.count(), fan_in.total().engine_cpu_ns), (36, 26));
    }

    /// A shard whose output was not taken for a while tells three intervals in one: its parts belong to the last of them.
    #[test]
    fn intervals_that_ran_together_are_told_where_they_end() {
        let mut fan_in = FanIn::new(2, INTERVAL_NS);
        for end_ns in [100, 200, 300, 400] {
            fan_in.add(0, interval(Phase::Measure, end_ns - 100, end_ns, 1));
        }
        fan_in.add(1, interval(Phase::Measure, 0, 300, 10));
        let expected = [(Phase::Measure, 0, 100, 1), (Phase::Measure, 100, 200, 1), (Phase::Measure, 200, 300, 11)];
        assert_eq!(told(&mut fan_in), expected);
        fan_in.add(1, interval(Phase::Measure, 300, 400, 10));
        assert_eq!(told(&mut fan_in), [(Phase::Measure, 300, 400, 11)]);
    }

    #[test]
    fn what_cut_one_has_cut_the_whole() {
        let mut fan_in = FanIn::new(3, INTERVAL_NS);
        for (shard, ended, end_ns) in
            [(0, Ended::Deadline, 170), (1, Ended::Interrupted, 180), (2, Ended::Complete, 175)]
        {
            assert_eq!(fan_in.ending(), None);
            fan_in.add(shard, interval(Phase::Measure, 0, 100, 1));
            fan_in.add(shard, interval(Phase::Measure, 100, end_ns, 1));
            fan_in.add(shard, interval(Phase::Drain, end_ns, end_ns + 1, 1));
            fan_in.finish(shard, &result(ended, 0, end_ns));
        }
        let interrupted = Ending { ended: Ended::Interrupted, measure_start_ns: 0, measure_end_ns: 180 };
        assert_eq!(fan_in.ending(), Some(interrupted));
        let expected = [(Phase::Measure, 0, 100, 3), (Phase::Measure, 100, 180, 3), (Phase::Drain, 180, 181, 3)];
        assert_eq!(told(&mut fan_in), expected);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// However each shard's intervals run together and in whatever order they come: they are told without gaps, phases
        /// stay apart and in order, and nothing is lost.
        #[test]
        fn nothing_is_lost_and_time_has_no_gaps(
            kept in prop::collection::vec(prop::collection::vec(any::<bool>(), 9), 1..5),
            turns in prop::collection::vec(any::<prop::sample::Index>(), 60),
        ) {
            let mut fan_in = FanIn::new(kept.len(), INTERVAL_NS);
            let mut queues: Vec<_> = kept.iter().map(|kept| shard_of(kept)).collect();
            let all: u64 = queues.iter().flatten().map(|interval| interval.slice.counts.due).sum();
            let mut seen = Vec::new();
            let mut turns = turns.iter().cycle();
            while queues.iter().any(|queue| !queue.is_empty()) {
                let shard = turns.next().unwrap().index(queues.len());
                let shard = if queues[shard].is_empty() { queues.iter().position(|queue| !queue.is_empty()).unwrap() } else { shard };
                fan_in.add(shard, queues[shard].remove(0));
                if queues[shard].is_empty() {
                    fan_in.finish(shard, &result(Ended::Complete, 250, 650));
                }
                seen.extend(told(&mut fan_in));
            }
            prop_assert_eq!(seen.iter().map(|interval| interval.3).sum::<u64>(), all);
            prop_assert!(seen.windows(2).all(|pair| pair[0].2 == pair[1].1 && pair[0].0 <= pair[1].0));
            prop_assert!(seen.iter().all(|interval| interval.1 < interval.2));
            let ends = |phase| seen.iter().rfind(|interval| interval.0 == phase).map(|interval| interval.2);
            prop_assert_eq!((ends(Phase::Warmup), ends(Phase::Measure)), (Some(250), Some(650)));
            prop_assert!(fan_in.ending().is_some());
        }
    }

    /// A shard with a warm-up to 250, a window to 650 and a drain, of which only the intervals that are kept are told by
    /// themselves: the others run together with the next of their phase.
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
