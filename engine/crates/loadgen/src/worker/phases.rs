//! When warm-up, measurement and drain end, in time or before it.

use super::Worker;
use crate::io::Io;
use crate::tally::Window;

impl<I: Io> Worker<I> {
    /// Time has passed the end of an interval, which may have been the last of the warm-up.
    #[cold]
    pub(super) fn end_intervals(&mut self) {
        self.tally.advance(self.now_ns);
        let Window { measure_ns, end_ns, .. } = self.tally.window();
        if measure_ns < self.measure_ns {
            self.measure_ns = measure_ns;
            self.end_ns = self.end_ns.min(end_ns);
            self.drain_end_ns = self.drain_end_ns.min(self.end_ns.saturating_add(self.job.drain_ns));
            self.demand.cut(self.end_ns);
            if self.count == Some(0) {
                self.end_at(measure_ns);
            }
        }
    }

    /// Somebody asked to stop: the window and the drain end at the time that all workers were given. Who hears of it later has
    /// measured until now, and its window ends now: the rates that it tells are over the time that it took.
    pub(super) fn heed_stop(&mut self) {
        let asked_ns = self.stop.at_ns();
        if asked_ns < self.drain_end_ns {
            self.tick();
            let at_ns = asked_ns.max(self.now_ns);
            self.end_at(at_ns);
            self.drain_end_ns = self.drain_end_ns.min(at_ns);
        }
    }

    /// The window ends then, before its time.
    pub(super) fn end_at(&mut self, at_ns: u64) {
        self.was_cut = true;
        self.end_ns = self.end_ns.min(at_ns);
        self.drain_end_ns = self.drain_end_ns.min(self.end_ns.saturating_add(self.job.drain_ns));
        self.demand.cut(at_ns);
        self.tally.cut(at_ns);
    }

    pub(super) fn is_over(&self) -> bool {
        let all_answered = self.demand.waiting() == 0 && self.flights.length() == 0;
        self.now_ns >= self.drain_end_ns || self.now_ns >= self.end_ns && all_answered
    }
}
