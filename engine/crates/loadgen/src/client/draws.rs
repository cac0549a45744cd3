//! The values of placeholders.

use redline_pacing::uniform_between;
use redline_wire::Values;

use crate::ids::GlobalWorkerId;
use crate::job::Job;

/// Separates the draws for placeholders from other draws with the same seed.
const SALT: u64 = 0x7069_636b_0000_0000;

/// The values of placeholders, which depend only on the seed and the number of a request.
pub struct Draws {
    pub seed: u64,
    /// The numbers of the present request and the next, among all requests of the job.
    pub seq: u64,
    next: u64,
    step: u64,
    /// How many values were drawn for the present request.
    drawn: u64,
    /// Whether all values are the lowest, as in a check.
    lowest: bool,
}

impl Draws {
    pub fn new(job: &Job, worker: GlobalWorkerId) -> Self {
        let first = u64::from(worker.0);
        Self {
            seed: job.seed,
            seq: first,
            next: first,
            step: u64::from(job.shard.all_workers),
            drawn: 0,
            lowest: job.records.is_some(),
        }
    }

    /// The number of the next request.
    #[inline]
    pub fn number(&mut self) -> u64 {
        let number = self.next;
        self.next += self.step;
        number
    }

    #[inline]
    pub fn begin(&mut self, seq: u64) {
        self.seq = seq;
        self.drawn = 0;
    }
}

impl Values for Draws {
    fn seq(&mut self) -> u64 {
        self.seq
    }

    fn between(&mut self, a: i64, b: i64) -> i64 {
        if self.lowest {
            return a;
        }
        self.drawn += 1;
        uniform_between(self.seed, self.seq, SALT + self.drawn, a, b)
    }

    fn pick(&mut self, n: usize) -> usize {
        self.between(0, n as i64 - 1) as usize
    }
}
