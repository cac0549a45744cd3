//! Where the phases of a load lie.

use redline_traffic::Phase;

/// Where warm-up, measurement and drain lie, in nanoseconds of the monotonic clock.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_field_names, reason = "units stand in names")]
pub struct Window {
    pub epoch_ns: u64,
    pub measure_ns: u64,
    pub end_ns: u64,
}

impl Window {
    pub(super) fn phase(&self, now_ns: u64) -> Phase {
        if now_ns >= self.end_ns {
            Phase::Drain
        } else if now_ns >= self.measure_ns {
            Phase::Measure
        } else {
            Phase::Warmup
        }
    }

    /// The measurement begins then, and takes no longer for it.
    pub(super) fn begin(&mut self, at_ns: u64, measure_ns: u64) {
        self.measure_ns = at_ns;
        self.end_ns = self.end_ns.min(at_ns.saturating_add(measure_ns));
    }

    pub(super) fn end_of(&self, phase: Phase) -> u64 {
        match phase {
            Phase::Warmup => self.measure_ns.min(self.end_ns),
            Phase::Measure => self.end_ns,
            Phase::Drain => u64::MAX,
        }
    }
}
