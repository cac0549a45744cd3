//! What one worker saw, interval by interval.
//!
//! A request is counted in the phase in which it was due, and in the interval in which something became known of it.
//! When an interval ends its slice goes to the director as it is, and an empty one takes its place: nothing is shared.
//!
//! Here intervals begin and end. `window` has the phases that they lie in, `counting` what is counted in them, and `outlet`
//! how they leave.

mod counting;
mod outlet;
mod window;

use std::sync::Arc;

use redline_traffic::{Phase, Slice};

use crate::measure_start::MeasureStart;
use crate::sys::time::thread_cpu_ns;

pub use counting::Ending;
pub use outlet::{IntervalSender, Returns, WorkerInterval};
pub use window::Window;

/// How many intervals may be on their way or waiting to be read; while there are more, the current one goes on. It bounds
/// the memory that a reader who is slow, or gone without a word, can cost.
const MOST_LENT: usize = 64;

pub struct Tally {
    window: Window,
    /// Who knows when the measurement begins, where that is not known before, and how long it is.
    beginning: Option<(Arc<MeasureStart>, u64)>,
    interval_ns: u64,
    phase: Phase,
    number: u64,
    start_ns: u64,
    end_ns: u64,
    slice: Box<Slice>,
    /// Slices that were sent and have not come back.
    lent: usize,
    cpu_ns: u64,
    outlet: IntervalSender,
}

impl Tally {
    /// A tally that begins at the window's epoch.
    pub fn new(window: Window, interval_ns: u64, outlet: IntervalSender) -> Self {
        let phase = window.phase(window.epoch_ns);
        let end_ns = window.end_of(phase).min(window.epoch_ns.saturating_add(interval_ns));
        let start_ns = window.epoch_ns;
        Self {
            window,
            beginning: None,
            interval_ns,
            phase,
            number: 0,
            start_ns,
            end_ns,
            slice: Box::default(),
            lent: 0,
            cpu_ns: thread_cpu_ns(),
            outlet,
        }
    }

    /// The warm-up may end sooner than the window says: ask this whenever an interval of it ends.
    pub fn ask(&mut self, beginning: Arc<MeasureStart>) {
        self.beginning = Some((beginning, self.window.end_ns - self.window.measure_ns));
    }

    /// Where the phases lie, as far as it is known.
    pub fn window(&self) -> Window {
        self.window
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
            self.end_interval();
        }
    }

    /// The current interval has ended: it is sent, unless too many wait and its phase goes on.
    fn end_interval(&mut self) {
        let spare = self.take_back();
        let end_ns = self.end_ns;
        if self.phase == Phase::Warmup
            && let Some((beginning, measure_ns)) = &self.beginning
            && beginning.has_come(end_ns)
        {
            self.window.begin(end_ns, *measure_ns);
        }
        if self.lent >= MOST_LENT && self.window.phase(end_ns) == self.phase {
            self.number += 1;
            self.end_ns = self.next_end_ns(end_ns);
        } else {
            self.send(end_ns, spare);
        }
    }

    /// Count the slices that came back; one of them.
    fn take_back(&mut self) -> Option<Box<Slice>> {
        let mut spare = None;
        while let Ok(slice) = self.outlet.spare.try_recv() {
            self.lent -= 1;
            spare = Some(slice);
        }
        spare
    }

    fn next_end_ns(&self, start_ns: u64) -> u64 {
        self.window.end_of(self.phase).min(start_ns.saturating_add(self.interval_ns))
    }

    /// The load ends here, earlier than planned, for the intervals that are still to come.
    pub fn cut(&mut self, end_ns: u64) {
        self.window.end_ns = self.window.end_ns.min(end_ns).max(self.start_ns);
        self.end_ns = self.end_ns.min(self.window.end_of(self.phase)).max(self.start_ns + 1);
    }

    /// All is told: send the last interval. It is one of the drain, however short.
    pub fn finish(&mut self, now_ns: u64) {
        self.advance(now_ns.max(self.window.end_ns));
        self.send(now_ns.max(self.start_ns + 1), None);
    }

    fn send(&mut self, end_ns: u64, spare: Option<Box<Slice>>) {
        let cpu_ns = thread_cpu_ns();
        self.slice.engine_cpu_ns = cpu_ns - self.cpu_ns;
        self.cpu_ns = cpu_ns;
        self.lent += 1;
        (self.outlet.pieces)(WorkerInterval {
            phase: self.phase,
            number: self.number,
            start_ns: self.start_ns - self.window.epoch_ns,
            end_ns: end_ns - self.window.epoch_ns,
            slice: std::mem::replace(&mut self.slice, spare.unwrap_or_default()),
        });
        let phase = self.window.phase(end_ns);
        self.number = if phase == self.phase { self.number + 1 } else { 0 };
        self.phase = phase;
        self.start_ns = end_ns;
        self.end_ns = self.next_end_ns(end_ns);
    }
}

#[cfg(test)]
mod tests;
