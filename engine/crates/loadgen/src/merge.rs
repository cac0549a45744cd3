//! The pieces of all workers, put together interval by interval.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use redline_traffic::{Phase, Slice};

use crate::tally::WorkerInterval;

/// An interval that some workers have told, or all.
pub struct Merged {
    pub index: u64,
    pub piece: WorkerInterval,
    /// Who gave the memory that holds it.
    pub lender: usize,
}

/// Where an interval stands: its phase, and its number in it.
type Place = (Phase, u64);

/// What was seen in all, and the intervals that are not yet told by all.
pub struct Merger {
    told: Vec<Told>,
    /// With the worker who gave the memory.
    pending: BTreeMap<Place, (WorkerInterval, usize)>,
    emitted: u64,
    /// Where the last interval that was told ended.
    end_ns: u64,
    /// The sums that the result tells.
    pub total: Slice,
}

/// How far a worker has come.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Told {
    Nothing,
    UpTo(Place),
    Everything,
}

impl Merger {
    pub fn new(workers: usize) -> Self {
        Self {
            told: vec![Told::Nothing; workers],
            pending: BTreeMap::new(),
            emitted: 0,
            end_ns: 0,
            total: Slice::default(),
        }
    }

    /// Add a worker's next interval; its memory comes back when it is not needed.
    pub fn add(&mut self, worker: usize, piece: WorkerInterval) -> Option<Box<Slice>> {
        match piece.phase {
            Phase::Warmup => {}
            Phase::Measure => self.total.add(&piece.slice),
            Phase::Drain => self.total.add_drained(&piece.slice),
        }
        let place = (piece.phase, piece.number);
        self.told[worker] = Told::UpTo(place);
        match self.pending.entry(place) {
            Entry::Vacant(entry) => {
                entry.insert((piece, worker));
                None
            }
            Entry::Occupied(mut entry) => {
                let (known, _) = entry.get_mut();
                known.slice.add(&piece.slice);
                known.end_ns = known.end_ns.max(piece.end_ns);
                let mut spare = piece.slice;
                spare.clear();
                Some(spare)
            }
        }
    }

    /// A worker has nothing more to tell.
    pub fn finish(&mut self, worker: usize) {
        self.told[worker] = Told::Everything;
    }

    pub fn all_finished(&self) -> bool {
        self.told.iter().all(|told| *told == Told::Everything)
    }

    /// The next interval that every worker has told or passed. It begins where the one before it ended: those of workers who
    /// were cut at another time, or let intervals run together, begin elsewhere.
    pub fn next(&mut self) -> Option<Merged> {
        let entry = self.pending.first_entry()?;
        if self.told.iter().any(|told| *told < Told::UpTo(*entry.key())) {
            return None;
        }
        let (mut piece, lender) = entry.remove();
        piece.start_ns = self.end_ns;
        piece.end_ns = piece.end_ns.max(self.end_ns + 1);
        self.end_ns = piece.end_ns;
        let index = self.emitted;
        self.emitted += 1;
        Some(Merged { index, piece, lender })
    }
}

#[cfg(test)]
mod tests {
    use super::Merger;
    use crate::tally::WorkerInterval;
    use redline_traffic::{Outcome, Phase, Slice};

    fn piece(phase: Phase, number: u64, start_ns: u64, end_ns: u64, requests: u64) -> WorkerInterval {
        let mut slice = Box::<Slice>::default();
        for i in 0..requests {
            slice.counts.due += 1;
            slice.counts.completed += 1;
            slice.counts.outcomes.count(Outcome::Ok);
            slice.response.record(1000 + i);
        }
        WorkerInterval { phase, number, start_ns, end_ns, slice }
    }

    #[test]
    fn an_interval_is_told_when_all_workers_have_told_it() {
        let mut merger = Merger::new(2);
        assert!(merger.add(0, piece(Phase::Measure, 0, 0, 100, 3)).is_none());
        assert!(merger.add(0, piece(Phase::Drain, 0, 100, 150, 1)).is_none());
        assert!(merger.next().is_none());
        let spare = merger.add(1, piece(Phase::Measure, 0, 0, 100, 4)).unwrap();
        assert_eq!(*spare, Slice::default());
        let first = merger.next().unwrap();
        assert_eq!((first.index, first.piece.slice.counts.due, first.lender), (0, 7, 0));
        assert!(merger.next().is_none());
        merger.add(1, piece(Phase::Drain, 0, 100, 180, 2));
        let second = merger.next().unwrap();
        assert_eq!((second.index, second.piece.end_ns, second.piece.slice.response.count()), (1, 180, 3));
    }

    #[test]
    fn workers_may_drain_for_different_times() {
        let mut merger = Merger::new(2);
        merger.add(0, piece(Phase::Drain, 0, 0, 10, 1));
        merger.finish(0);
        merger.add(1, piece(Phase::Drain, 0, 0, 100, 1));
        merger.add(1, piece(Phase::Drain, 1, 100, 110, 1));
        assert_eq!(merger.next().unwrap().piece.end_ns, 100);
        assert_eq!(merger.next().unwrap().piece.start_ns, 100);
        assert!(merger.next().is_none());
        merger.finish(1);
        assert!(merger.all_finished());
    }

    #[test]
    fn the_total_has_the_requests_of_the_drain_and_the_rates_of_the_window() {
        let mut merger = Merger::new(1);
        merger.add(0, piece(Phase::Warmup, 0, 0, 10, 5));
        merger.add(0, piece(Phase::Measure, 0, 10, 20, 3));
        merger.add(0, piece(Phase::Drain, 0, 20, 30, 2));
        assert_eq!(merger.total.counts.due, 5);
        assert_eq!(merger.total.counts.outcomes.total(), 5);
        assert_eq!(merger.total.response.count(), 5);
        assert_eq!(merger.total.counts.completed, 3);
    }

    /// One worker heard of the end when it came, the other an interval later.
    #[test]
    fn a_measured_piece_is_never_merged_into_a_drained_one() {
        let mut merger = Merger::new(2);
        merger.add(0, piece(Phase::Measure, 0, 0, 70, 3));
        merger.add(0, piece(Phase::Drain, 0, 70, 71, 1));
        merger.finish(0);
        merger.add(1, piece(Phase::Measure, 0, 0, 100, 4));
        merger.add(1, piece(Phase::Measure, 1, 100, 120, 5));
        merger.add(1, piece(Phase::Drain, 0, 120, 121, 2));
        merger.finish(1);
        let told: Vec<_> = std::iter::from_fn(|| merger.next())
            .map(|merged| merged.piece)
            .map(|piece| (piece.phase, piece.start_ns, piece.end_ns, piece.slice.counts.due))
            .collect();
        let expected = [(Phase::Measure, 0, 100, 7), (Phase::Measure, 100, 120, 5), (Phase::Drain, 120, 121, 3)];
        assert_eq!(told, expected);
        assert_eq!((merger.total.counts.due, merger.total.counts.completed), (15, 12));
    }

    /// One worker let two intervals run together.
    #[test]
    fn an_interval_that_one_worker_has_passed_is_told() {
        let mut merger = Merger::new(2);
        merger.add(0, piece(Phase::Measure, 0, 0, 100, 1));
        merger.add(0, piece(Phase::Measure, 1, 100, 200, 1));
        assert!(merger.next().is_none());
        merger.add(1, piece(Phase::Measure, 1, 0, 200, 10));
        assert_eq!(merger.next().map(|merged| (merged.piece.end_ns, merged.piece.slice.counts.due)), Some((100, 1)));
        let second = merger.next().unwrap();
        assert_eq!((second.piece.start_ns, second.piece.end_ns, second.piece.slice.counts.due), (100, 200, 11));
    }
}
