//! Right answers in finer steps than intervals: a server that stands still for a tenth of a second is seen.

/// The length of a tick, in nanoseconds.
pub const TICK_NS: u64 = 50_000_000;

/// The ticks of the present interval of a worker. The last tick of an interval may be shorter.
pub struct Ticks {
    /// Right answers by tick, of those that have ended.
    ended: Vec<u32>,
    /// When the interval starts, and when the present tick ends; never while nothing is counted.
    start_ns: u64,
    end_ns: u64,
    /// The interval's right answers before the present tick.
    before: u64,
}

impl Ticks {
    /// No ticks, until the first call of [`Self::start`].
    pub fn off() -> Self {
        Self { ended: Vec::new(), start_ns: u64::MAX, end_ns: u64::MAX, before: 0 }
    }

    /// Count the ticks of an interval that starts at this time, or none.
    pub fn start(&mut self, start_ns: Option<u64>) {
        self.ended.clear();
        self.start_ns = start_ns.unwrap_or(u64::MAX);
        self.end_ns = self.start_ns.saturating_add(TICK_NS);
        self.before = 0;
    }

    /// An answer comes now, after so many right answers in this interval.
    #[inline]
    pub fn pass(&mut self, now_ns: u64, completed: u64) {
        if now_ns >= self.end_ns {
            self.pass_ends(now_ns, completed);
        }
    }

    #[cold]
    fn pass_ends(&mut self, now_ns: u64, completed: u64) {
        while now_ns >= self.end_ns {
            self.ended.push(u32::try_from(completed - self.before).unwrap_or(u32::MAX));
            self.before = completed;
            self.end_ns += TICK_NS;
        }
    }

    /// The right answers by tick of the interval that ends at this time, after so many right answers; empty if none were
    /// counted. Those that a worker read late, after a pause, are in the last.
    pub fn take(&mut self, end_ns: u64, completed: u64) -> Vec<u32> {
        if self.end_ns == u64::MAX {
            return Vec::new();
        }
        self.pass_ends(end_ns, completed);
        let ticks = usize::try_from((end_ns - self.start_ns).div_ceil(TICK_NS)).unwrap_or(usize::MAX);
        self.ended.push(u32::try_from(completed - self.before).unwrap_or(u32::MAX));
        let late = self.ended.split_off(ticks.min(self.ended.len()));
        if let Some(last) = self.ended.last_mut() {
            *last = late.iter().fold(*last, |sum, count| sum.saturating_add(*count));
        }
        std::mem::take(&mut self.ended)
    }
}

/// Add the ticks of another worker. They are not known where the workers' intervals are not equally long.
pub fn add(sums: &mut Vec<u32>, other: &[u32]) {
    if sums.len() == other.len() {
        sums.iter_mut().zip(other).for_each(|(sum, count)| *sum = sum.saturating_add(*count));
    } else {
        sums.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::{TICK_NS, Ticks, add};

    /// The ticks of an interval of this length that starts at 7, with answers at these times after its start.
    fn ticks_of(length_ns: u64, answers: &[u64]) -> Vec<u32> {
        let mut ticks = Ticks::off();
        ticks.start(Some(7));
        for (completed, after_ns) in (0..).zip(answers) {
            ticks.pass(7 + after_ns, completed);
        }
        ticks.take(7 + length_ns, answers.len() as u64)
    }

    #[test]
    fn answers_count_in_the_tick_in_which_they_come() {
        let answers = [0, TICK_NS - 1, TICK_NS, 4 * TICK_NS, 4 * TICK_NS + 1];
        assert_eq!(ticks_of(5 * TICK_NS, &answers), [2, 1, 0, 0, 2]);
    }

    #[test]
    fn every_tick_of_an_interval_is_there_without_an_answer_too() {
        assert_eq!(ticks_of(3 * TICK_NS, &[]), [0, 0, 0]);
    }

    #[test]
    fn the_last_tick_may_be_shorter() {
        assert_eq!(ticks_of(2 * TICK_NS + 1, &[2 * TICK_NS]), [0, 0, 1]);
    }

    #[test]
    fn answers_that_are_read_late_are_in_the_last_tick() {
        assert_eq!(ticks_of(2 * TICK_NS, &[0, 5 * TICK_NS, 5 * TICK_NS + 1]), [1, 2]);
        assert_eq!(ticks_of(TICK_NS, &[7 * TICK_NS]), [1]);
    }

    #[test]
    fn nothing_is_counted_before_the_start_and_after_no_start() {
        let mut ticks = Ticks::off();
        ticks.pass(10 * TICK_NS, 1);
        assert!(ticks.take(20 * TICK_NS, 1).is_empty());
        ticks.start(Some(0));
        ticks.start(None);
        assert!(ticks.take(20 * TICK_NS, 1).is_empty());
    }

    #[test]
    fn ticks_of_workers_add_up_if_their_intervals_are_equally_long() {
        let mut sums = vec![1, 2];
        add(&mut sums, &[10, u32::MAX]);
        assert_eq!(sums, [11, u32::MAX]);
        add(&mut sums, &[1]);
        assert!(sums.is_empty());
        add(&mut sums, &[1, 2]);
        assert!(sums.is_empty());
    }
}
