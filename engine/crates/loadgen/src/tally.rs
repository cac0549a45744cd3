//! What one worker saw, interval by interval.
//!
//! A request is counted in the phase in which it was due, and in the interval in which something became known of it.
//! When an interval ends its slice goes to the director as it is, and an empty one takes its place: nothing is shared.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

use redline_traffic::{Outcome, Phase, Slice};

use crate::beginning::Beginning;
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

    /// The measurement begins then, and takes no longer for it.
    fn begin(&mut self, at_ns: u64, measure_ns: u64) {
        self.measure_ns = at_ns;
        self.end_ns = self.end_ns.min(at_ns.saturating_add(measure_ns));
    }

    fn end_of(&self, phase: Phase) -> u64 {
        match phase {
            Phase::Warmup => self.measure_ns.min(self.end_ns),
            Phase::Measure => self.end_ns,
            Phase::Drain => u64::MAX,
        }
    }
}

/// How many intervals may be on their way or waiting to be read; while there are more, the current one goes on. It bounds
/// the memory that a reader who is slow, or gone without a word, can cost.
const MOST_LENT: usize = 64;

/// One interval of one worker, on its way to the director. Times are nanoseconds since the epoch.
pub struct Piece {
    pub phase: Phase,
    /// Which interval of its phase ends with it: the same for all workers, and growing.
    pub number: u64,
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
    /// Who knows when the measurement begins, where that is not known before, and how long it is.
    beginning: Option<(Arc<Beginning>, u64)>,
    interval_ns: u64,
    phase: Phase,
    number: u64,
    start_ns: u64,
    end_ns: u64,
    slice: Box<Slice>,
    /// Slices that were sent and have not come back.
    lent: usize,
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
    pub fn ask(&mut self, beginning: Arc<Beginning>) {
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

    /// All is told: send the last interval. It is one of the drain, however short.
    pub fn finish(&mut self, now_ns: u64) {
        self.advance(now_ns.max(self.window.end_ns));
        self.send(now_ns.max(self.start_ns + 1), None);
    }

    /// Whether a request that was due then is counted now: in the warm-up those of the warm-up, later the measured ones.
    #[inline]
    fn is_of_phase(&self, due_ns: u64) -> bool {
        (due_ns < self.window.measure_ns) == (self.phase == Phase::Warmup)
    }

    fn send(&mut self, end_ns: u64, spare: Option<Box<Slice>>) {
        let cpu_ns = thread_cpu_ns();
        self.slice.engine_cpu_ns = cpu_ns - self.cpu_ns;
        self.cpu_ns = cpu_ns;
        self.lent += 1;
        (self.outlet.pieces)(Piece {
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
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::channel;

    use redline_traffic::Phase;

    use super::{MOST_LENT, Outlet, Tally, Window};
    use crate::beginning::Beginning;

    /// What a tally of 10 ns intervals tells when it is asked so late, and each nanosecond has a request.
    fn told(
        window: Window,
        beginning: &Arc<Beginning>,
        steps: impl Iterator<Item = u64>,
    ) -> Vec<(Phase, u64, u64, u64)> {
        let (sender, pieces) = channel();
        let (_returns, spare) = channel();
        let mut tally =
            Tally::new(window, 10, Outlet { pieces: Box::new(move |piece| sender.send(piece).unwrap()), spare });
        tally.ask(Arc::clone(beginning));
        for now_ns in steps {
            tally.advance(now_ns);
            tally.due(now_ns, now_ns);
        }
        let end_ns = tally.window().end_ns;
        tally.finish(end_ns);
        pieces.try_iter().map(|piece| (piece.phase, piece.number, piece.end_ns, piece.slice.counts.due)).collect()
    }

    #[test]
    fn the_measurement_begins_when_it_is_told_and_is_as_long_as_planned() {
        let window = Window { epoch_ns: 1000, measure_ns: 1100, end_ns: 1120 };
        let beginning = Arc::default();
        let until_100 = told(window, &beginning, 1000..1120);
        assert_eq!(until_100.iter().filter(|piece| piece.0 == Phase::Warmup).count(), 10);
        let beginning = Arc::new(Beginning::default());
        assert!(beginning.set(1020));
        let expected = [
            (Phase::Warmup, 0, 10, 10),
            (Phase::Warmup, 1, 20, 10),
            (Phase::Measure, 0, 30, 10),
            (Phase::Measure, 1, 40, 10),
            (Phase::Drain, 0, 41, 0),
        ];
        assert_eq!(told(window, &beginning, 1000..1040), expected);
    }

    /// A worker that had no core for a while begins at the same instant as the others.
    #[test]
    fn who_is_late_begins_no_later() {
        let window = Window { epoch_ns: 1000, measure_ns: 1100, end_ns: 1150 };
        let beginning = Arc::new(Beginning::default());
        assert!(beginning.set(1020));
        let late = told(window, &beginning, (1000..1005).chain(1043..1060));
        let ends: Vec<_> = late.iter().map(|(phase, number, end_ns, _)| (*phase, *number, *end_ns)).take(4).collect();
        let expected =
            [(Phase::Warmup, 0, 10), (Phase::Warmup, 1, 20), (Phase::Measure, 0, 30), (Phase::Measure, 1, 40)];
        assert_eq!(ends, expected);
        assert_eq!(late.iter().map(|piece| piece.3).sum::<u64>(), 5 + 17);
    }

    /// Nobody takes the pieces, for a thousand intervals: memory is bounded, all is counted, and phases stay apart.
    #[test]
    fn intervals_run_together_while_too_many_wait() {
        let (sender, pieces) = channel();
        let (returns, spare) = channel();
        let outlet = Outlet { pieces: Box::new(move |piece| sender.send(piece).unwrap()), spare };
        let window = Window { epoch_ns: 1000, measure_ns: 2000, end_ns: 12_000 };
        let mut tally = Tally::new(window, 10, outlet);
        for now_ns in 1000..12_000 {
            tally.advance(now_ns);
            tally.due(now_ns, now_ns);
        }
        // What waits is read, and the next are as long as they should be.
        let mut read: Vec<_> = pieces.try_iter().collect();
        assert_eq!(read.len(), MOST_LENT + 1);
        for _ in 0..read.len() {
            returns.send(Box::default()).unwrap();
        }
        tally.advance(12_000);
        tally.advance(12_030);
        tally.finish(12_035);
        read.extend(pieces.try_iter());
        let last: Vec<_> = read[MOST_LENT..].iter().map(|p| (p.phase, p.number, p.start_ns, p.end_ns)).collect();
        assert_eq!(
            last,
            [
                (Phase::Warmup, 99, 640, 1000),
                (Phase::Measure, 999, 1000, 11_000),
                (Phase::Drain, 0, 11_000, 11_010),
                (Phase::Drain, 1, 11_010, 11_020),
                (Phase::Drain, 2, 11_020, 11_030),
                (Phase::Drain, 3, 11_030, 11_035),
            ]
        );
        assert_eq!(read.iter().map(|piece| piece.slice.counts.due).sum::<u64>(), 11_000);
    }
}
