//! What one worker saw, interval by interval.
//!
//! A request is counted in the phase in which it was due, and in the interval in which something became known of it.
//! When an interval ends its slice goes to the director as it is, and an empty one takes its place: nothing is shared.

use std::sync::mpsc::{Receiver, Sender};

use redline_traffic::{Outcome, Phase, Slice};

use crate::sys::time::thread_cpu_ns;

/// Where warm-up, measurement and drain lie, in nanoseconds of the monotonic clock.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_field_names, reason = "units stand in names")]
pub struct Window {
    pub epoch_ns: u64,
    pub measure_ns: u64,
    pub end_ns: u64,
}

impl Window {
    fn phase(&self, now_ns: u64) -> Phase {
        if now_ns >= self.end_ns {
            Phase::Drain
        } else if now_ns >= self.measure_ns {
            Phase::Measure
        } else {
            Phase::Warmup
        }
    }

    fn end_of(&self, phase: Phase) -> u64 {
        match phase {
            Phase::Warmup => self.measure_ns.min(self.end_ns),
            Phase::Measure => self.end_ns,
            Phase::Drain => u64::MAX,
        }
    }
}

/// One interval of one worker, on its way to the director. Times are nanoseconds since the epoch.
pub struct Piece {
    pub phase: Phase,
    pub start_ns: u64,
    pub end_ns: u64,
    pub slice: Box<Slice>,
}

/// How pieces leave, and how their memory comes back.
pub struct Outlet {
    pub pieces: Box<dyn Fn(Piece) + Send>,
    pub spare: Receiver<Box<Slice>>,
}

/// The other end of [`Outlet::spare`].
pub type Returns = Sender<Box<Slice>>;

pub struct Tally {
    window: Window,
    interval_ns: u64,
    phase: Phase,
    start_ns: u64,
    end_ns: u64,
    slice: Box<Slice>,
    cpu_ns: u64,
    outlet: Outlet,
}

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
    /// A tally that begins at the window's epoch.
    pub fn new(window: Window, interval_ns: u64, outlet: Outlet) -> Self {
        let phase = window.phase(window.epoch_ns);
        let end_ns = window.end_of(phase).min(window.epoch_ns.saturating_add(interval_ns));
        let start_ns = window.epoch_ns;
        Self { window, interval_ns, phase, start_ns, end_ns, slice: Box::default(), cpu_ns: thread_cpu_ns(), outlet }
    }

    /// When the current interval ends.
    #[inline]
    pub fn interval_end_ns(&self) -> u64 {
        self.end_ns
    }

    /// Time has come so far: send what has ended.
    #[inline]
    pub fn advance(&mut self, now_ns: u64) {
        while now_ns >= self.end_ns {
            self.send(self.end_ns);
        }
    }

    /// The load ends here, earlier than planned, for the intervals that are still to come.
    pub fn cut(&mut self, end_ns: u64) {
        self.window.end_ns = self.window.end_ns.min(end_ns).max(self.start_ns);
        self.end_ns = self.end_ns.min(self.window.end_of(self.phase)).max(self.start_ns + 1);
    }

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

    /// All is told: send the last interval. It is one of the drain, however short.
    pub fn finish(&mut self, now_ns: u64) {
        self.advance(now_ns.max(self.window.end_ns));
        self.send(now_ns.max(self.start_ns + 1));
    }

    /// Whether a request that was due then is counted now: in the warm-up those of the warm-up, later the measured ones.
    #[inline]
    fn is_of_phase(&self, due_ns: u64) -> bool {
        (due_ns < self.window.measure_ns) == (self.phase == Phase::Warmup)
    }

    fn send(&mut self, end_ns: u64) {
        let cpu_ns = thread_cpu_ns();
        self.slice.engine_cpu_ns = cpu_ns - self.cpu_ns;
        self.cpu_ns = cpu_ns;
        let empty = self.outlet.spare.try_recv().unwrap_or_default();
        (self.outlet.pieces)(Piece {
            phase: self.phase,
            start_ns: self.start_ns - self.window.epoch_ns,
            end_ns: end_ns - self.window.epoch_ns,
            slice: std::mem::replace(&mut self.slice, empty),
        });
        self.phase = self.window.phase(end_ns);
        self.start_ns = end_ns;
        self.end_ns = self.window.end_of(self.phase).min(end_ns.saturating_add(self.interval_ns));
    }
}
