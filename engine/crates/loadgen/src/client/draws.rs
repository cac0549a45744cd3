//! The values of placeholders.

use redline_pacing::{random_bits, uniform_between};
use redline_wire::{TraceContext, Values};

use crate::ids::GlobalWorkerId;
use crate::job::Job;

/// Separates the draws for placeholders from other draws with the same seed.
const SALT: u64 = 0x7069_636b_0000_0000;
/// Separates the draws for trace contexts from them.
const TRACE_SALT: u64 = 0x7472_6163_0000_0000;

/// The values of placeholders, which depend only on the seed and the number of a request.
pub struct Draws {
    pub seed: u64,
    traces: TraceIds,
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
            traces: TraceIds::new(job),
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

    fn trace_context(&mut self) -> TraceContext {
        self.traces.of(self.seq)
    }
}

/// The trace contexts of a load, which depend only on its seeds and the numbers of its requests.
#[derive(Clone, Copy, Debug)]
pub struct TraceIds {
    /// Of whether a request is sampled: in a load that is repeated, the same are.
    seed: u64,
    /// Of ids, so that no two loads have the same.
    ids: u64,
}

impl TraceIds {
    pub fn new(job: &Job) -> Self {
        Self { seed: job.seed, ids: job.trace_seed }
    }

    /// The context of the request with this number.
    pub fn of(self, seq: u64) -> TraceContext {
        let id = |salt| random_bits(self.ids, seq, TRACE_SALT + salt);
        let trace = u128::from(id(0)) << 64 | u128::from(id(1));
        TraceContext::new(trace, id(2), random_bits(self.seed, seq, TRACE_SALT))
    }
}
