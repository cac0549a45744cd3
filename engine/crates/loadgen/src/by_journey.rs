//! What becomes of the journeys of a worker.

use redline_traffic::{JourneyEnd, JourneyTally};

use crate::job::Job;

/// Which journeys count: those with a mark other than 0 fell due where it was measured. In a duet it tells the slice.
pub type Mark = u32;

/// The measurements of a worker by journey.
pub enum ByJourney {
    /// Of a load: the sums.
    Sums(JourneyTally),
    /// Of the slices of a duet, which count only if no worker stood still.
    Journal(Journal),
}

/// What happened in the present slice, and which of the slices before it count.
#[derive(Default)]
pub struct Journal {
    due: u64,
    entries: Vec<(Mark, Entry)>,
    counted: Vec<bool>,
}

/// What happened to a journey.
#[derive(Clone, Copy)]
pub enum Entry {
    Ended(JourneyEnd),
    Skipped(u16),
    Again,
}

impl Entry {
    fn count(self, tally: &mut JourneyTally) {
        match self {
            Self::Ended(end) => tally.end(end),
            Self::Skipped(step) => tally.skipped[step as usize] += 1,
            Self::Again => tally.again += 1,
        }
    }
}

impl ByJourney {
    /// The sums of a load; `None` without a journey.
    pub fn sums(job: &Job) -> Option<Box<Self>> {
        Some(Box::new(Self::Sums(empty(job)?)))
    }

    /// The journal of slices; `None` without a journey.
    pub fn journal(job: &Job) -> Option<Box<Self>> {
        job.journey.as_ref().map(|_| Box::new(Self::Journal(Journal::default())))
    }

    /// Whether a journey counts that was due at this time. In a duet, the guard of a slice is no exception: users whose
    /// journeys go on in it begin their next in it.
    #[inline]
    pub fn counts(&self, due_ns: u64, measure_ns: u64) -> bool {
        match self {
            Self::Sums(_) => due_ns >= measure_ns,
            Self::Journal(_) => true,
        }
    }

    /// The mark of a journey that fell due where it is measured.
    pub fn mark(&self) -> Mark {
        match self {
            Self::Sums(_) => 1,
            Self::Journal(journal) => journal.counted.len() as Mark + 1,
        }
    }

    /// A journey fell due where it is measured.
    pub fn due(&mut self) {
        match self {
            Self::Sums(tally) => tally.due += 1,
            Self::Journal(journal) => journal.due += 1,
        }
    }

    /// Something happened to a journey with this mark.
    pub fn add(&mut self, mark: Mark, entry: Entry) {
        match self {
            _ if mark == 0 => {}
            Self::Sums(tally) => entry.count(tally),
            Self::Journal(journal) => journal.entries.push((mark, entry)),
        }
    }

    /// Every row was used.
    pub fn rows_used_up(&mut self) {
        if let Self::Sums(tally) = self {
            tally.rows_used_up = true;
        }
    }

    /// The sums; none of a journal.
    pub fn into_sums(self) -> Option<JourneyTally> {
        match self {
            Self::Sums(tally) => Some(tally),
            Self::Journal(_) => None,
        }
    }

    /// A slice is over: empty the journal, adding to the sums what belongs to slices that count.
    pub fn settle(&mut self, sums: &mut JourneyTally, counts: bool) {
        if let Self::Journal(journal) = self {
            journal.counted.push(counts);
            sums.due += if counts { journal.due } else { 0 };
            journal.due = 0;
            for (mark, entry) in journal.entries.drain(..) {
                if journal.counted[mark as usize - 1] {
                    entry.count(sums);
                }
            }
        }
    }

    /// A journey with this mark is under way at the end of the duet.
    pub fn leave_unfinished(&self, mark: Mark, sums: &mut JourneyTally) {
        if let Self::Journal(journal) = self
            && mark > 0
            && journal.counted.get(mark as usize - 1) == Some(&true)
        {
            sums.end(JourneyEnd::Unfinished);
        }
    }
}

/// A tally for the job's journey; none without a journey.
pub fn empty(job: &Job) -> Option<JourneyTally> {
    job.journey.as_ref().map(|journey| JourneyTally::new(journey.steps.len()))
}

#[cfg(test)]
mod tests {
    use redline_traffic::{JourneyEnd, JourneyTally};

    use super::{ByJourney, Entry, Journal};

    #[test]
    fn a_journey_counts_as_the_slice_in_which_it_fell_due() {
        let mut counts = ByJourney::Journal(Journal::default());
        let mut sums = JourneyTally::new(2);
        let mut marks = Vec::new();
        for is_counted in [true, false, true] {
            marks.push(counts.mark());
            counts.due();
            counts.settle(&mut sums, is_counted);
        }
        // All end in a later slice, which does not count itself.
        counts.add(marks[0], Entry::Ended(JourneyEnd::Completed(5)));
        counts.add(marks[1], Entry::Ended(JourneyEnd::Abandoned(1)));
        counts.add(0, Entry::Ended(JourneyEnd::Abandoned(0)));
        counts.settle(&mut sums, false);
        counts.leave_unfinished(marks[2], &mut sums);
        counts.leave_unfinished(marks[1], &mut sums);
        assert_eq!((sums.due, sums.completed, sums.unfinished), (2, 1, 1));
        assert_eq!(sums.abandoned, [0, 0]);
    }
}
