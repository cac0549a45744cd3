//! Detects that a worker stood still, by comparing its heartbeats with the clock.
//!
//! A worker wakes at least every 20 ms, whatever it waits for. If it wakes much later, something stopped it: a signal, a frozen
//! cgroup, a paused or suspended machine. Time in which it only waited for a core is not counted: that is normal on a busy
//! machine, and is measured elsewhere (the run delay).

use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::sys::time::suspended_ns;

/// The interval between heartbeats.
const BEAT_NS: u64 = 20_000_000;
/// The lateness that counts as standing still. Schedulers and timers are late by less.
const LATE_NS: u64 = 30_000_000;

/// How long a worker stood still, up to now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pause {
    /// By the monotonic clock, which went on.
    pub stopped_ns: u64,
    /// While the machine was suspended, when the monotonic clock stood still too.
    pub suspended_ns: u64,
}

/// The heartbeats of one worker.
pub struct Heartbeat {
    due_ns: u64,
    waiting: RunDelay,
    waited_ns: u64,
    suspended_ns: u64,
}

impl Heartbeat {
    /// The heartbeats of the calling thread, from this time on.
    pub fn new(from_ns: u64) -> Self {
        let waiting = RunDelay::open();
        let waited_ns = waiting.ns();
        Self { due_ns: from_ns.saturating_add(BEAT_NS), waiting, waited_ns, suspended_ns: suspended_ns() }
    }

    /// Begin again at this time.
    pub fn restart(&mut self, from_ns: u64) {
        self.due_ns = from_ns.saturating_add(BEAT_NS);
        self.waited_ns = self.waiting.ns();
        self.suspended_ns = suspended_ns();
    }

    /// When the next heartbeat is due.
    #[inline]
    pub fn due_ns(&self) -> u64 {
        self.due_ns
    }

    /// Beat, if a heartbeat is due. Returns how long the worker stood still before, if it did.
    pub fn beat(&mut self, now_ns: u64) -> Option<Pause> {
        let late_ns = now_ns.checked_sub(self.due_ns)?;
        let (waited_ns, suspended_ns) = (self.waiting.ns(), suspended_ns());
        let stopped_ns = stopped_ns(late_ns, waited_ns.saturating_sub(self.waited_ns));
        let suspended = suspended_ns.saturating_sub(self.suspended_ns);
        self.due_ns = now_ns.saturating_add(BEAT_NS);
        (self.waited_ns, self.suspended_ns) = (waited_ns, suspended_ns);
        let pause = Pause { stopped_ns, suspended_ns: if suspended > LATE_NS { suspended } else { 0 } };
        (pause != Pause::default()).then_some(pause)
    }
}

/// The part of a lateness that was not waiting for a core.
fn stopped_ns(late_ns: u64, waited_ns: u64) -> u64 {
    let stopped_ns = late_ns.saturating_sub(waited_ns);
    if stopped_ns > LATE_NS { stopped_ns } else { 0 }
}

/// How long the calling thread has waited for a core.
struct RunDelay(Option<File>);

impl RunDelay {
    fn open() -> Self {
        Self(File::open("/proc/thread-self/schedstat").ok())
    }

    /// The total until now; 0 if the kernel does not report it.
    fn ns(&self) -> u64 {
        let read = || {
            let mut text = [0; 64];
            let length = self.0.as_ref()?.read_at(&mut text, 0).ok()?;
            // Fields: time on a core, time of waiting for a core, number of slices.
            std::str::from_utf8(&text[..length]).ok()?.split_ascii_whitespace().nth(1)?.parse().ok()
        };
        read().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::time::now_ns;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_late_beat_is_a_pause_and_the_next_is_due_after_it() {
        let begun_ns = now_ns();
        let mut heart = Heartbeat::new(begun_ns);
        assert_eq!((heart.due_ns(), heart.beat(begun_ns)), (begun_ns + BEAT_NS, None));
        assert_eq!(heart.beat(begun_ns + BEAT_NS + LATE_NS), None);
        let next_ns = heart.due_ns();
        assert_eq!(next_ns, begun_ns + BEAT_NS + LATE_NS + BEAT_NS);
        // Far later than what this test itself may have waited for a core.
        let late_ns = 3_600_000 * MS;
        let pause = heart.beat(next_ns + late_ns).unwrap();
        assert!(pause.stopped_ns > late_ns / 2 && pause.stopped_ns <= late_ns, "{pause:?}");
        assert_eq!(heart.due_ns(), next_ns + late_ns + BEAT_NS);
    }

    #[test]
    fn who_waits_for_a_core_does_not_stand_still() {
        let cases = [(LATE_NS, 0, 0), (LATE_NS + 1, 0, LATE_NS + 1), (500 * MS, 490 * MS, 0), (500 * MS, 900 * MS, 0)];
        for (late_ns, waited_ns, expected) in cases {
            assert_eq!(stopped_ns(late_ns, waited_ns), expected, "{late_ns} {waited_ns}");
        }
        assert_eq!(stopped_ns(500 * MS, 100 * MS), 400 * MS);
    }
}
