//! What is counted, and recorded in histograms, in the interval that goes on.

use redline_traffic::{Outcome, Phase};

use super::Tally;

/// What is known of a request when it has ended.
#[derive(Clone, Copy)]
pub struct Ending {
    pub due_ns: u64,
    pub written_ns: Option<u64>,
    pub outcome: Outcome,
    /// The status of its answer, when there was a whole one.
    pub status: Option<u16>,
}

impl Tally {
    /// A request fell due and was taken up.
    #[inline]
    pub fn due(&mut self, due_ns: u64, now_ns: u64) {
        if self.is_of_phase(due_ns) {
            self.slice.counts.due += 1;
            let saturated = self.slice.lateness.record(now_ns.saturating_sub(due_ns));
            self.slice.counts.saturated += u64::from(saturated);
        }
    }

    /// An open load's request found no idle connection.
    pub fn waited(&mut self, due_ns: u64) {
        self.slice.counts.waited += u64::from(self.is_of_phase(due_ns));
    }

    /// A request ends in `connect` because this side had no port, descriptor or memory for its connection.
    pub fn exhausted(&mut self, due_ns: u64) {
        self.slice.counts.exhausted += u64::from(self.is_of_phase(due_ns));
    }

    /// A request's first byte is about to be handed to the kernel.
    #[inline]
    pub fn sent(&mut self, due_ns: u64) {
        self.slice.counts.sent += u64::from(self.is_of_phase(due_ns));
    }

    #[inline]
    pub fn bytes_sent(&mut self, bytes: usize) {
        self.slice.counts.bytes_sent += bytes as u64;
    }

    #[inline]
    pub fn bytes_received(&mut self, bytes: usize) {
        self.slice.counts.bytes_received += bytes as u64;
    }

    /// A request that was written in vain is to be written again.
    pub fn retried(&mut self, due_ns: u64) {
        self.slice.counts.retried += u64::from(self.is_of_phase(due_ns));
    }

    /// A request is to be written again because its server announced that it would not process it.
    pub fn resent(&mut self, due_ns: u64) {
        self.slice.counts.resent += u64::from(self.is_of_phase(due_ns));
    }

    /// A TLS handshake has ended well.
    pub fn handshake(&mut self, ns: u64, resumed: bool) {
        self.slice.record_handshake(ns);
        self.slice.counts.handshakes += 1;
        self.slice.counts.resumed += u64::from(resumed);
    }

    /// An answer told the server's clock: how far it was ahead of ours when the request was written, and ours ahead of it when
    /// the answer was whole.
    pub fn one_way(&mut self, due_ns: u64, to_server_ns: i128, from_server_ns: i128) {
        if self.is_of_phase(due_ns) {
            let one_way = self.slice.one_way_mut();
            let saturated = [one_way.to_server.record(to_server_ns), one_way.from_server.record(from_server_ns)];
            self.slice.counts.saturated += saturated.iter().filter(|saturated| **saturated).count() as u64;
        }
    }

    pub fn reconnected(&mut self) {
        self.slice.counts.reconnects += 1;
    }

    /// A request has ended, in its one outcome.
    #[inline]
    pub fn ended(&mut self, ending: Ending, now_ns: u64) {
        let of_phase = self.is_of_phase(ending.due_ns);
        let counts = &mut self.slice.counts;
        counts.completed += u64::from(ending.outcome == Outcome::Ok);
        if !of_phase {
            return;
        }
        counts.outcomes.count(ending.outcome);
        counts.saturated += u64::from(self.slice.response.record(now_ns.saturating_sub(ending.due_ns)));
        if let Some(written_ns) = ending.written_ns {
            counts.saturated += u64::from(self.slice.service.record(now_ns.saturating_sub(written_ns)));
        }
        if let Some(status) = ending.status {
            counts.status.count(status);
            counts.late += u64::from(self.phase == Phase::Drain);
        }
    }

    /// Whether a request that was due then is counted now: in the warm-up those of the warm-up, later the measured ones.
    #[inline]
    fn is_of_phase(&self, due_ns: u64) -> bool {
        (due_ns < self.window.measure_ns) == (self.phase == Phase::Warmup)
    }
}
