//! The intervals of all members (workers, or shards), merged by adding their counts.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use redline_traffic::{Ended, Phase, Slice};

use crate::tally::MemberInterval;
use crate::ticks;

/// An interval of all members.
pub struct Merged {
    pub index: u64,
    pub interval: MemberInterval,
    /// The member that the slice belongs to.
    pub owner: usize,
}

/// How a measurement ended, and when it started and ended in nanoseconds since the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    pub ended: Ended,
    pub start_ns: u64,
    pub end_ns: u64,
}

impl Measured {
    /// The measurement of two members. It ended with the later; a signal or a deadline cut both.
    fn and(self, other: Self) -> Self {
        let ended = match (self.ended, other.ended) {
            (Ended::Interrupted, _) | (_, Ended::Interrupted) => Ended::Interrupted,
            (Ended::Deadline, _) | (_, Ended::Deadline) => Ended::Deadline,
            (Ended::Complete, Ended::Complete) => Ended::Complete,
        };
        Self { ended, start_ns: self.start_ns.max(other.start_ns), end_ns: self.end_ns.max(other.end_ns) }
    }
}

/// The position of an interval: its phase, and its number in the phase.
type Position = (Phase, u64);

/// The sums of an interval that not all members have reported.
struct Pending {
    interval: MemberInterval,
    /// The member that the slice belongs to.
    owner: usize,
    /// How many members have reported it from its start to its end. One that extended an interval, or was cut at another
    /// time, has not.
    alike: usize,
    /// Right answers by worker of each member that has reported it.
    workers: Vec<(usize, Vec<u64>)>,
}

/// The sums, and the intervals that not all members have reported.
pub struct Merger {
    progress: Vec<MemberProgress>,
    pending: BTreeMap<Position, Pending>,
    emitted: u64,
    /// When the last emitted interval ended.
    end_ns: u64,
    measured: Option<Measured>,
    /// The sums for the result.
    pub total: Slice,
}

/// How far a member has reported.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum MemberProgress {
    Nothing,
    UpTo(Position),
    Finished,
}

impl Merger {
    pub fn new(members: usize) -> Self {
        Self {
            progress: vec![MemberProgress::Nothing; members],
            pending: BTreeMap::new(),
            emitted: 0,
            end_ns: 0,
            measured: None,
            total: Slice::default(),
        }
    }

    /// Add a member's next interval. Returns its slice when it is not needed.
    pub fn add(&mut self, member: usize, mut interval: MemberInterval) -> Option<Box<Slice>> {
        match interval.phase {
            Phase::Warmup => {}
            Phase::Measure => self.total.add(&interval.slice),
            Phase::Drain => self.total.add_drained(&interval.slice),
        }
        let position = (interval.phase, interval.number);
        self.progress[member] = MemberProgress::UpTo(position);
        let mut own = std::mem::take(&mut interval.workers);
        if own.is_empty() {
            own.push(interval.slice.counts.outcomes.ok);
        }
        match self.pending.entry(position) {
            Entry::Vacant(entry) => {
                entry.insert(Pending { interval, owner: member, alike: 1, workers: vec![(member, own)] });
                None
            }
            Entry::Occupied(mut entry) => {
                let Pending { interval: known, alike, workers, .. } = entry.get_mut();
                workers.push((member, own));
                known.slice.add(&interval.slice);
                ticks::add(&mut known.ticks, &interval.ticks);
                *alike += usize::from((interval.start_ns, interval.end_ns) == (known.start_ns, known.end_ns));
                known.end_ns = known.end_ns.max(interval.end_ns);
                let mut spare = interval.slice;
                spare.clear();
                Some(spare)
            }
        }
    }

    /// A member has reported its last interval.
    pub fn finish(&mut self, member: usize, measured: Measured) {
        self.progress[member] = MemberProgress::Finished;
        self.measured = Some(self.measured.map_or(measured, |known| known.and(measured)));
    }

    /// The measurement of all members, once all have finished.
    pub fn measured(&self) -> Option<Measured> {
        let all_finished = self.progress.iter().all(|progress| *progress == MemberProgress::Finished);
        self.measured.filter(|_| all_finished)
    }

    /// The next interval that every member has reported or passed. It starts where the previous interval ended: intervals of
    /// members that were cut at another time, or that extended an interval, start elsewhere. Its ticks are known if no member's
    /// does, because those of members are steps of the same times only then.
    pub fn next(&mut self) -> Option<Merged> {
        let entry = self.pending.first_entry()?;
        if self.progress.iter().any(|progress| *progress < MemberProgress::UpTo(*entry.key())) {
            return None;
        }
        let Pending { mut interval, owner, alike, mut workers } = entry.remove();
        if alike == self.progress.len() && interval.phase == Phase::Measure {
            workers.sort_by_key(|(member, _)| *member);
            interval.workers = workers.into_iter().flat_map(|(_, own)| own).collect();
        }
        if interval.workers.len() < 2 {
            interval.workers.clear();
        }
        if alike < self.progress.len() || interval.start_ns != self.end_ns {
            interval.ticks.clear();
        }
        interval.start_ns = self.end_ns;
        interval.end_ns = interval.end_ns.max(self.end_ns + 1);
        self.end_ns = interval.end_ns;
        let index = self.emitted;
        self.emitted += 1;
        Some(Merged { index, interval, owner })
    }
}

#[cfg(test)]
mod tests {
    use redline_traffic::{Ended, Outcome, Phase, Slice};

    use super::{Measured, Merger};
    use crate::tally::MemberInterval;

    const MEASURED: Measured = Measured { ended: Ended::Complete, start_ns: 0, end_ns: 100 };

    fn interval(phase: Phase, number: u64, start_ns: u64, end_ns: u64, requests: u64) -> MemberInterval {
        let mut slice = Box::<Slice>::default();
        for i in 0..requests {
            slice.counts.due += 1;
            slice.counts.completed += 1;
            slice.counts.outcomes.count(Outcome::Ok);
            slice.response.record(1000 + i);
        }
        MemberInterval { phase, number, start_ns, end_ns, slice, ticks: vec![1; 2], workers: Vec::new() }
    }

    #[test]
    fn right_answers_are_told_by_worker_in_the_order_of_the_members() {
        let mut merger = Merger::new(2);
        let shard = MemberInterval { workers: vec![3, 1], ..interval(Phase::Measure, 0, 0, 100, 4) };
        merger.add(1, shard);
        merger.add(0, interval(Phase::Measure, 0, 0, 100, 5));
        assert_eq!(merger.next().unwrap().interval.workers, [5, 3, 1]);
        merger.add(0, interval(Phase::Measure, 1, 100, 200, 5));
        merger.add(1, interval(Phase::Measure, 1, 100, 210, 4));
        assert!(merger.next().unwrap().interval.workers.is_empty(), "one ended later");
        let mut alone = Merger::new(1);
        alone.add(0, interval(Phase::Measure, 0, 0, 100, 5));
        assert!(alone.next().unwrap().interval.workers.is_empty(), "all are its own");
    }

    #[test]
    fn an_interval_is_merged_when_all_members_have_reported_it() {
        let mut merger = Merger::new(2);
        assert!(merger.add(0, interval(Phase::Measure, 0, 0, 100, 3)).is_none());
        assert!(merger.add(0, interval(Phase::Drain, 0, 100, 150, 1)).is_none());
        assert!(merger.next().is_none());
        let spare = merger.add(1, interval(Phase::Measure, 0, 0, 100, 4)).unwrap();
        assert_eq!(*spare, Slice::default());
        let first = merger.next().unwrap();
        assert_eq!((first.index, first.interval.slice.counts.due, first.owner), (0, 7, 0));
        assert_eq!(first.interval.ticks, [2, 2]);
        assert!(merger.next().is_none());
        merger.add(1, interval(Phase::Drain, 0, 100, 180, 2));
        let second = merger.next().unwrap();
        assert_eq!((second.index, second.interval.end_ns, second.interval.slice.response.count()), (1, 180, 3));
    }

    #[test]
    fn members_may_drain_for_different_times() {
        let mut merger = Merger::new(2);
        merger.add(0, interval(Phase::Drain, 0, 0, 10, 1));
        merger.finish(0, MEASURED);
        merger.add(1, interval(Phase::Drain, 0, 0, 100, 1));
        merger.add(1, interval(Phase::Drain, 1, 100, 110, 1));
        assert_eq!(merger.next().unwrap().interval.end_ns, 100);
        assert_eq!(merger.next().unwrap().interval.start_ns, 100);
        assert!(merger.next().is_none());
        merger.finish(1, MEASURED);
        assert_eq!(merger.measured(), Some(MEASURED));
    }

    #[test]
    fn the_total_has_the_requests_of_the_drain_and_the_rates_of_the_window() {
        let mut merger = Merger::new(1);
        merger.add(0, interval(Phase::Warmup, 0, 0, 10, 5));
        merger.add(0, interval(Phase::Measure, 0, 10, 20, 3));
        merger.add(0, interval(Phase::Drain, 0, 20, 30, 2));
        assert_eq!(merger.total.counts.due, 5);
        assert_eq!(merger.total.counts.outcomes.total(), 5);
        assert_eq!(merger.total.response.count(), 5);
        assert_eq!(merger.total.counts.completed, 3);
    }

    /// One member learned of the end immediately, the other an interval later.
    #[test]
    fn a_measured_interval_is_never_merged_into_a_drained_one() {
        let mut merger = Merger::new(2);
        merger.add(0, interval(Phase::Measure, 0, 0, 70, 3));
        merger.add(0, interval(Phase::Drain, 0, 70, 71, 1));
        merger.finish(0, MEASURED);
        merger.add(1, interval(Phase::Measure, 0, 0, 100, 4));
        merger.add(1, interval(Phase::Measure, 1, 100, 120, 5));
        merger.add(1, interval(Phase::Drain, 0, 120, 121, 2));
        merger.finish(1, MEASURED);
        let intervals: Vec<_> = std::iter::from_fn(|| merger.next())
            .map(|merged| merged.interval)
            .map(|interval| (interval.phase, interval.start_ns, interval.end_ns, interval.slice.counts.due))
            .collect();
        let expected = [(Phase::Measure, 0, 100, 7), (Phase::Measure, 100, 120, 5), (Phase::Drain, 120, 121, 3)];
        assert_eq!(intervals, expected);
        assert_eq!((merger.total.counts.due, merger.total.counts.completed), (15, 12));
    }

    /// One member extended an interval.
    #[test]
    fn an_interval_that_one_member_has_passed_is_merged() {
        let mut merger = Merger::new(2);
        merger.add(0, interval(Phase::Measure, 0, 0, 100, 1));
        merger.add(0, interval(Phase::Measure, 1, 100, 200, 1));
        assert!(merger.next().is_none());
        merger.add(1, interval(Phase::Measure, 1, 0, 200, 10));
        assert_eq!(
            merger.next().map(|merged| (merged.interval.end_ns, merged.interval.slice.counts.due)),
            Some((100, 1))
        );
        let second = merger.next().unwrap();
        assert_eq!(
            (second.interval.start_ns, second.interval.end_ns, second.interval.slice.counts.due),
            (100, 200, 11)
        );
    }

    /// The ticks of all intervals of these members, in order.
    fn ticks_of(members: Vec<Vec<MemberInterval>>) -> Vec<Vec<u32>> {
        let mut merger = Merger::new(members.len());
        for (member, intervals) in members.into_iter().enumerate() {
            for interval in intervals {
                merger.add(member, interval);
            }
            merger.finish(member, MEASURED);
        }
        std::iter::from_fn(|| merger.next()).map(|merged| merged.interval.ticks).collect()
    }

    #[test]
    fn ticks_are_of_all_members_or_not_known() {
        let measured = |number, start_ns, end_ns| interval(Phase::Measure, number, start_ns, end_ns, 1);
        let even = || vec![measured(0, 0, 100), measured(1, 100, 200), measured(2, 200, 300)];
        assert_eq!(ticks_of(vec![even()]), [[1, 1], [1, 1], [1, 1]]);
        assert_eq!(ticks_of(vec![even(), even()]), [[2, 2], [2, 2], [2, 2]]);
        // One member extended an interval.
        let extended = vec![measured(1, 0, 200), measured(2, 200, 300)];
        assert_eq!(ticks_of(vec![even(), extended]), [vec![], vec![], vec![2, 2]]);
        // Both did, at different times.
        let (first, second) =
            (vec![measured(1, 0, 200), measured(2, 200, 300)], vec![measured(0, 0, 100), measured(2, 100, 300)]);
        assert_eq!(ticks_of(vec![first, second]), [vec![0; 0], vec![], vec![]]);
        // One member was cut earlier.
        let cut = vec![measured(0, 0, 100), measured(1, 100, 150)];
        assert_eq!(ticks_of(vec![even(), cut]), [vec![2, 2], vec![], vec![]]);
    }
}
