//! What becomes of the single requests of a mix.

use redline_traffic::{Outcome, RequestTally, StreamNews};

use crate::client::StreamProgress;
use crate::job::Job;
use crate::request::EndedRequest;

/// The measurements of a worker by request, for a job of several requests.
pub enum ByRequest {
    /// Of a load: the sums.
    Sums(Vec<RequestTally>),
    /// Of a slice of a duet, which counts only if no worker stood still: what happened, in order.
    Journal(Vec<Entry>, Vec<StreamEntry>),
}

/// Something new in a stream of events.
pub struct StreamEntry {
    request: u32,
    /// Its request was due in the window.
    of_window: bool,
    /// It came within the window.
    in_window: bool,
    news: StreamNews,
}

impl StreamEntry {
    pub fn of(progress: &StreamProgress, of_window: bool, in_window: bool) -> Self {
        Self { request: progress.request, of_window, in_window, news: progress.news }
    }

    fn count(&self, tallies: &mut [RequestTally]) {
        let tally = tallies[self.request as usize].streams.get_or_insert_default();
        tally.count(self.news, self.of_window, self.in_window);
    }
}

/// The end of a request that was due in the window, or that was answered right in it.
pub struct Entry {
    request: u32,
    status: Option<u16>,
    outcome: Outcome,
    /// It was due in the window.
    of_window: bool,
    /// It was answered right within the window.
    completed: bool,
    response_ns: u64,
    /// From due to the first byte of a complete answer.
    first_ns: Option<u64>,
    body_bytes: u64,
}

impl Entry {
    /// `None` when it belongs to no request of the window.
    #[inline]
    pub fn of(ended: &EndedRequest, of_window: bool, in_window: bool, response_ns: u64) -> Option<Self> {
        let completed = in_window && ended.outcome == Outcome::Ok;
        (of_window || completed).then_some(Self {
            request: ended.request,
            status: ended.status,
            outcome: ended.outcome,
            of_window,
            completed,
            response_ns,
            first_ns: ended.first_ns.map(|first_ns| first_ns.saturating_sub(ended.due.due_ns)),
            body_bytes: ended.body_bytes,
        })
    }

    /// Count it in the tallies of all requests.
    #[inline]
    fn count(&self, tallies: &mut [RequestTally]) {
        let tally = &mut tallies[self.request as usize];
        tally.completed += u64::from(self.completed);
        if self.of_window {
            tally.outcomes.count(self.outcome);
            tally.record(self.first_ns, self.response_ns);
            tally.body_bytes += self.body_bytes;
            if let Some(status) = self.status {
                tally.status.count(status);
            }
        }
    }
}

impl ByRequest {
    /// The sums of a load; `None` for a job of a single request, whose measurements are those of the load.
    pub fn sums(job: &Job) -> Option<Box<Self>> {
        let tallies = empty(job);
        (!tallies.is_empty()).then(|| Box::new(Self::Sums(tallies)))
    }

    /// The journal of slices; `None` for a job of a single request.
    pub fn journal(job: &Job) -> Option<Box<Self>> {
        (job.requests.len() > 1).then(|| Box::new(Self::Journal(Vec::new(), Vec::new())))
    }

    /// Count the end of a request.
    #[inline]
    pub fn add(&mut self, entry: Entry) {
        match self {
            Self::Sums(tallies) => entry.count(tallies),
            Self::Journal(entries, _) => entries.push(entry),
        }
    }

    /// Count what is new in a stream.
    pub fn add_stream(&mut self, entry: StreamEntry) {
        match self {
            Self::Sums(tallies) => entry.count(tallies),
            Self::Journal(_, entries) => entries.push(entry),
        }
    }

    /// The sums; none of a journal.
    pub fn into_sums(self) -> Vec<RequestTally> {
        match self {
            Self::Sums(tallies) => tallies,
            Self::Journal(..) => Vec::new(),
        }
    }

    /// Empty a journal, adding it to these sums if it counts.
    pub fn settle(&mut self, sums: &mut [RequestTally], counts: bool) {
        if let Self::Journal(entries, streams) = self {
            entries.iter().filter(|_| counts).for_each(|entry| entry.count(sums));
            streams.iter().filter(|_| counts).for_each(|entry| entry.count(sums));
            entries.clear();
            streams.clear();
        }
    }
}

/// A tally for each request of a job of several; none for a single request.
pub fn empty(job: &Job) -> Vec<RequestTally> {
    vec![RequestTally::default(); if job.requests.len() > 1 { job.requests.len() } else { 0 }]
}
