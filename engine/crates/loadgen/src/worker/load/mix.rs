//! Which request of the job a request is that is not on a connection.

use std::sync::Arc;

use redline_pacing::{Weights, random_bits};

use crate::job::{Job, Journey};
use crate::request::DueRequest;

/// Separates the draws of requests that were never written from other draws with the same seed.
const UNWRITTEN: u64 = 0x756e_7772_6974_7465;

/// The requests of a job, as a worker counts those that were never written.
pub struct Mix {
    weights: Weights,
    /// The requests of a replay, by the number of what is due.
    replayed: Option<Arc<[u32]>>,
    journey: Option<Arc<Journey>>,
    /// Which requests have streams for answers; empty if none has.
    streams: Box<[bool]>,
    seed: u64,
    /// How many requests ended without having been written.
    unwritten: u64,
}

impl Mix {
    pub fn new(job: &Job) -> Self {
        let streams = job.requests.iter().map(|request| request.stream.is_some());
        Self {
            streams: if streams.clone().any(|is_stream| is_stream) { streams.collect() } else { Box::default() },
            weights: job.weights.clone(),
            replayed: job.load.replayed.clone(),
            journey: job.journey.clone(),
            seed: job.seed,
            unwritten: 0,
        }
    }

    /// Whether the answer to a request is to be a stream.
    #[inline]
    pub fn has_stream(&self, request: u32) -> bool {
        !self.streams.is_empty() && self.streams[request as usize]
    }

    /// The index of a request, where that does not depend on a draw; none in a job of a single request.
    pub fn name_of(&self, due: &DueRequest) -> Option<u32> {
        match (&self.replayed, &self.journey) {
            (Some(requests), _) => Some(requests[due.user as usize]),
            (None, Some(journey)) if journey.steps.len() > 1 => Some(journey.steps[due.step as usize].request),
            _ => None,
        }
    }

    /// A request that was written stays what it is. One that never was has not been drawn yet; it counts as one that is drawn
    /// now, because otherwise the response times of no request would tell that it waited.
    pub fn index_of(&mut self, due: &DueRequest) -> u32 {
        if let Some(requests) = &self.replayed {
            return requests[due.user as usize];
        }
        if let Some(journey) = &self.journey {
            return journey.steps[due.step as usize].request;
        }
        if due.written_ns.is_some() {
            return self.weights.pick(self.seed, due.seq) as u32;
        }
        self.unwritten += 1;
        // Every worker and every slice counts from 1. The due time keeps their draws apart.
        self.weights.choose(random_bits(self.seed ^ due.due_ns, self.unwritten, UNWRITTEN)) as u32
    }
}
