//! The pieces of all workers, put together interval by interval.

use std::collections::VecDeque;

use redline_traffic::{Phase, Slice};

use crate::tally::Piece;

/// An interval that some workers have told, or all.
pub struct Merged {
    pub index: u64,
    pub piece: Piece,
    /// Who gave the memory that holds it.
    pub lender: usize,
}

/// What was seen in all, and the intervals that are not yet told by all.
pub struct Merger {
    /// How many intervals each worker has told; none are to come once it has finished.
    told: Vec<Told>,
    pending: VecDeque<(Piece, usize)>,
    emitted: u64,
    /// The sums that the result tells.
    pub total: Slice,
}

#[derive(Clone, Copy)]
struct Told {
    intervals: u64,
    finished: bool,
}

impl Merger {
    pub fn new(workers: usize) -> Self {
        Self {
            told: vec![Told { intervals: 0, finished: false }; workers],
            pending: VecDeque::new(),
            emitted: 0,
            total: Slice::default(),
        }
    }

    /// Add a worker's next interval; its memory comes back when it is not needed.
    pub fn add(&mut self, worker: usize, piece: Piece) -> Option<Box<Slice>> {
        match piece.phase {
            Phase::Warmup => {}
            Phase::Measure => self.total.add(&piece.slice),
            Phase::Drain => self.total.add_drained(&piece.slice),
        }
        let place = (self.told[worker].intervals - self.emitted) as usize;
        self.told[worker].intervals += 1;
        let Some((known, _)) = self.pending.get_mut(place) else {
            self.pending.push_back((piece, worker));
            return None;
        };
        known.slice.add(&piece.slice);
        known.end_ns = known.end_ns.max(piece.end_ns);
        let mut spare = piece.slice;
        spare.clear();
        Some(spare)
    }

    /// A worker has nothing more to tell.
    pub fn finish(&mut self, worker: usize) {
        self.told[worker].finished = true;
    }

    pub fn all_finished(&self) -> bool {
        self.told.iter().all(|told| told.finished)
    }

    /// The next interval that every worker has told.
    pub fn next(&mut self) -> Option<Merged> {
        let index = self.emitted;
        if !self.told.iter().all(|told| told.finished || told.intervals > index) {
            return None;
        }
        let (piece, lender) = self.pending.pop_front()?;
        self.emitted += 1;
        Some(Merged { index, piece, lender })
    }
}

#[cfg(test)]
mod tests {
    use super::Merger;
    use crate::tally::Piece;
    use redline_traffic::{Outcome, Phase, Slice};

    fn piece(phase: Phase, start_ns: u64, end_ns: u64, requests: u64) -> Piece {
        let mut slice = Box::<Slice>::default();
        for i in 0..requests {
            slice.counts.due += 1;
            slice.counts.completed += 1;
            slice.counts.outcomes.count(Outcome::Ok);
            slice.response.record(1000 + i);
        }
        Piece { phase, start_ns, end_ns, slice }
    }

    #[test]
    fn an_interval_is_told_when_all_workers_have_told_it() {
        let mut merger = Merger::new(2);
        assert!(merger.add(0, piece(Phase::Measure, 0, 100, 3)).is_none());
        assert!(merger.add(0, piece(Phase::Drain, 100, 150, 1)).is_none());
        assert!(merger.next().is_none());
        let spare = merger.add(1, piece(Phase::Measure, 0, 100, 4)).unwrap();
        assert_eq!(*spare, Slice::default());
        let first = merger.next().unwrap();
        assert_eq!((first.index, first.piece.slice.counts.due, first.lender), (0, 7, 0));
        assert!(merger.next().is_none());
        merger.add(1, piece(Phase::Drain, 100, 180, 2));
        let second = merger.next().unwrap();
        assert_eq!((second.index, second.piece.end_ns, second.piece.slice.response.count()), (1, 180, 3));
    }

    #[test]
    fn workers_may_drain_for_different_times() {
        let mut merger = Merger::new(2);
        merger.add(0, piece(Phase::Drain, 0, 10, 1));
        merger.finish(0);
        merger.add(1, piece(Phase::Drain, 0, 100, 1));
        merger.add(1, piece(Phase::Drain, 100, 110, 1));
        assert_eq!(merger.next().unwrap().piece.end_ns, 100);
        assert_eq!(merger.next().unwrap().piece.start_ns, 100);
        assert!(merger.next().is_none());
        merger.finish(1);
        assert!(merger.all_finished());
    }

    #[test]
    fn the_total_has_the_requests_of_the_drain_and_the_rates_of_the_window() {
        let mut merger = Merger::new(1);
        merger.add(0, piece(Phase::Warmup, 0, 10, 5));
        merger.add(0, piece(Phase::Measure, 10, 20, 3));
        merger.add(0, piece(Phase::Drain, 20, 30, 2));
        assert_eq!(merger.total.counts.due, 5);
        assert_eq!(merger.total.counts.outcomes.total(), 5);
        assert_eq!(merger.total.response.count(), 5);
        assert_eq!(merger.total.counts.completed, 3);
    }
}
