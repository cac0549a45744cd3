//! The single requests that a worker keeps: the slowest, and some whose traces are sampled.

use std::collections::BinaryHeap;

use redline_traffic::{KeptRequest, KeptRequests, MOST_SLOWEST};
use redline_wire::{TraceContext, TraceShare};

use crate::client::TraceIds;
use crate::job::Job;
use crate::request::EndedRequest;

/// A request that ended at this time of the monotonic clock.
#[derive(Clone, Copy)]
struct Ended {
    request: EndedRequest,
    end_ns: u64,
}

impl Ended {
    fn response_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.request.due.due_ns)
    }
}

/// A request whose trace is sampled, in the order of trace ids.
#[derive(Clone)]
struct Sampled(TraceContext, Ended);

impl PartialEq for Sampled {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Sampled {}

impl PartialOrd for Sampled {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Sampled {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.cmp(&other.0)
    }
}

/// The requests of a worker that are kept. It allocates nothing while a load runs.
#[derive(Clone)]
pub struct Keeper {
    /// A request has to take at least as long to be among the slowest.
    least_ns: u64,
    slowest: Vec<Ended>,
    ids: TraceIds,
    /// By request of the job; `None` where it has no trace context.
    shares: Vec<Option<TraceShare>>,
    most_sampled: usize,
    sampled: BinaryHeap<Sampled>,
}

impl Keeper {
    pub fn new(job: &Job) -> Self {
        let share = |request: &crate::job::Request| match &request.websocket {
            Some(websocket) => websocket.message.trace_share().or(request.template.trace_share()),
            None => request.template.trace_share(),
        };
        Self {
            least_ns: 0,
            slowest: Vec::with_capacity(MOST_SLOWEST),
            ids: TraceIds::new(job),
            shares: job.requests.iter().map(share).collect(),
            most_sampled: job.most_sampled,
            sampled: BinaryHeap::with_capacity(job.most_sampled + 1),
        }
    }

    /// Whether requests are kept whose traces are sampled.
    pub fn samples(&self) -> bool {
        self.most_sampled > 0 && self.shares.iter().any(Option::is_some)
    }

    /// A request has ended.
    #[inline]
    pub fn time(&mut self, ended: &EndedRequest, response_ns: u64, now_ns: u64) {
        if response_ns >= self.least_ns {
            self.keep(ended, now_ns);
        }
    }

    #[cold]
    fn keep(&mut self, ended: &EndedRequest, end_ns: u64) {
        if self.slowest.len() == MOST_SLOWEST {
            let least = self.slowest.iter().enumerate().min_by_key(|(_, kept)| kept.response_ns());
            let least = least.map_or(0, |(at, _)| at);
            self.slowest.swap_remove(least);
        }
        self.slowest.push(Ended { request: *ended, end_ns });
        if self.slowest.len() == MOST_SLOWEST {
            self.least_ns = self.slowest.iter().map(Ended::response_ns).min().unwrap_or(0).saturating_add(1);
        }
    }

    /// Keep a request that has ended if its trace is sampled, and there is room.
    pub fn sample(&mut self, ended: &EndedRequest, end_ns: u64) {
        let Some((context, share)) = self.context(ended) else {
            return;
        };
        if self.most_sampled > 0 && context.is_sampled(share) {
            self.sampled.push(Sampled(context, Ended { request: *ended, end_ns }));
            if self.sampled.len() > self.most_sampled {
                self.sampled.pop();
            }
        }
    }

    /// Those that are kept, with times since the epoch.
    pub fn kept(&self, epoch_ns: u64) -> KeptRequests {
        let slowest = self.slowest.iter().map(|kept| self.shown(kept, epoch_ns)).collect();
        let sampled = self.sampled.iter().map(|Sampled(_, kept)| self.shown(kept, epoch_ns)).collect();
        let mut sorted = KeptRequests::default();
        sorted.add(KeptRequests { slowest, sampled }, self.most_sampled);
        sorted
    }

    /// The trace context that was sent with a request.
    fn context(&self, ended: &EndedRequest) -> Option<(TraceContext, TraceShare)> {
        ended.written_ns?;
        Some((self.ids.of(ended.due.seq), self.shares[ended.request as usize]?))
    }

    fn shown(&self, kept: &Ended, epoch_ns: u64) -> KeptRequest {
        let Ended { request: ended, end_ns } = kept;
        let since = |at_ns: u64| at_ns.saturating_sub(epoch_ns);
        let traceparent = self.context(ended).map(|(context, share)| {
            let mut text = Vec::with_capacity(TraceContext::BYTES);
            context.append(share, &mut text);
            String::from_utf8_lossy(&text).into_owned()
        });
        KeptRequest {
            request: (self.shares.len() > 1).then_some(ended.request),
            due_ns: since(ended.due.due_ns),
            written_ns: ended.written_ns.map(since),
            first_ns: ended.first_ns.map(since),
            end_ns: since(*end_ns),
            outcome: ended.outcome,
            status: ended.status,
            traceparent,
        }
    }
}
