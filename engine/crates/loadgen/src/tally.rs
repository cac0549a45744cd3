//! The measurements of a worker, interval by interval.
//!
//! A request is counted in the phase in which it was due, and in the interval in which it was sent or ended. When an interval
//! ends, its slice is sent to the conductor and an empty slice takes its place: nothing is shared.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

use redline_traffic::{Histogram, JourneyTally, KeptRequests, Outcome, Phase, RequestTally, Slice, StreamNews};

use redline_websocket::Volume;

use crate::by_journey::{self, ByJourney, Mark};
use crate::by_request::{ByRequest, Entry, StreamEntry};
use crate::client::StreamProgress;
use crate::heartbeat::{Heartbeat, Pause};
use crate::keeper::Keeper;
use crate::measure_start::MeasureStart;
use crate::request::EndedRequest;
use crate::request_log::RequestLog;
use crate::sys::time::thread_cpu_ns;
use crate::ticks::{TICK_NS, Ticks};

/// How many slices may be on their way or wait to be read. While there are more, the present interval is extended. This bounds
/// the memory that a slow or stopped reader costs.
const MOST_LENT: usize = 64;

/// The phases of a load, in nanoseconds of the monotonic clock: warm-up from `epoch_ns`, measurement from `measure_ns`, drain from
/// `end_ns`.
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

    /// Start the measurement at this time, with this length.
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

/// An interval of a member (a worker or a shard). Times are nanoseconds since the epoch.
pub struct MemberInterval {
    pub phase: Phase,
    /// The number of the interval in its phase, by its end. Numbers grow, and are the same for all members.
    pub number: u64,
    pub start_ns: u64,
    pub end_ns: u64,
    pub slice: Box<Slice>,
    /// Right answers by tick; empty if they were not counted.
    pub ticks: Vec<u32>,
    /// Right answers by worker, of a shard with several; those of a single worker are in its slice.
    pub workers: Vec<u64>,
}

/// Sends intervals, and receives their slices for reuse.
pub struct IntervalSender {
    pub send: Box<dyn Fn(MemberInterval) + Send>,
    pub spare: Receiver<Box<Slice>>,
}

/// The other end of [`IntervalSender::spare`].
pub type SliceReturn = Sender<Box<Slice>>;

/// Answers in pieces, and requests without an answer. Of all others the time to the first byte is the response time, which
/// is recorded already: a recording more for every request would cost some of the rate.
#[derive(Default)]
struct Apart {
    /// Their response times.
    responses: Histogram,
    /// The times to the first byte, of answers.
    first_bytes: Histogram,
}

pub struct Tally {
    window: Window,
    /// Where the start of the measurement may be set while the load runs, and the length of the measurement.
    measure_start: Option<(Arc<MeasureStart>, u64)>,
    interval_ns: u64,
    phase: Phase,
    number: u64,
    start_ns: u64,
    end_ns: u64,
    heart: Heartbeat,
    slice: Box<Slice>,
    /// Those of the present interval, if it belongs to a measurement whose intervals have several.
    ticks: Ticks,
    /// Requests of the present interval whose first byte did not come with the last.
    apart: Option<Box<Apart>>,
    /// Slices that were sent and not yet returned.
    lent: usize,
    cpu_ns: u64,
    sender: IntervalSender,
    /// The measurement ends when this worker notices that its end has passed, instead of at its planned end.
    ends_when_noticed: bool,
    /// The measurements by request, if there are several.
    by_request: Option<Box<ByRequest>>,
    /// The rows of single requests, if they are logged.
    log: Option<Box<RequestLog>>,
    /// Single requests, if they are kept.
    keeper: Option<Box<Keeper>>,
    /// Whether the end of a request is more than counted and timed: by request, in the log, or for its trace.
    observes: bool,
    /// The measurements by journey, if the job has one.
    by_journey: Option<Box<ByJourney>>,
    /// Requests that ended without a right answer, in whatever phase they were due.
    failed: u64,
}

impl Tally {
    /// A tally that starts at the window's epoch.
    pub fn new(window: Window, interval_ns: u64, sender: IntervalSender) -> Self {
        let phase = window.phase(window.epoch_ns);
        let end_ns = window.end_of(phase).min(window.epoch_ns.saturating_add(interval_ns));
        let start_ns = window.epoch_ns;
        let mut tally = Self {
            window,
            measure_start: None,
            interval_ns,
            phase,
            number: 0,
            start_ns,
            end_ns,
            heart: Heartbeat::new(start_ns),
            slice: Box::default(),
            ticks: Ticks::off(),
            apart: None,
            lent: 0,
            cpu_ns: thread_cpu_ns(),
            sender,
            ends_when_noticed: false,
            by_request: None,
            log: None,
            keeper: None,
            observes: false,
            by_journey: None,
            failed: 0,
        };
        tally.start_ticks();
        tally
    }

    /// Count by request, too.
    pub fn count_by_request(&mut self, by_request: Option<Box<ByRequest>>) {
        self.observes |= by_request.is_some();
        self.by_request = by_request;
    }

    /// Keep single requests.
    pub fn keep_requests(&mut self, keeper: Keeper) {
        self.observes |= keeper.samples();
        self.keeper = Some(Box::new(keeper));
    }

    /// Keep no more of them; those that were kept.
    pub fn take_keeper(&mut self) -> Option<Keeper> {
        self.keeper.take().map(|keeper| *keeper)
    }

    /// Those that were kept.
    pub fn kept(&self) -> KeptRequests {
        self.keeper.as_ref().map_or_else(KeptRequests::default, |keeper| keeper.kept(self.window.epoch_ns))
    }

    /// Log every request of the measurement.
    pub fn log_requests(&mut self, log: Option<Box<RequestLog>>) {
        self.observes |= log.is_some();
        self.log = log;
    }

    /// Take the log; none unless requests were logged.
    pub fn take_log(&mut self) -> Option<Box<RequestLog>> {
        self.log.take()
    }

    /// Count journeys, too.
    pub fn count_journeys(&mut self, by_journey: Option<Box<ByJourney>>) {
        self.by_journey = by_journey;
    }

    /// How many requests ended without a right answer since the last call, in whatever phase they were due.
    pub fn take_failed(&mut self) -> u64 {
        std::mem::take(&mut self.failed)
    }

    /// The sums by journey; none unless they were counted.
    pub fn take_journeys(&mut self) -> Option<JourneyTally> {
        self.by_journey.take().and_then(|by_journey| by_journey.into_sums())
    }

    /// Add what a slice counted by journey to these sums, if it counts.
    pub fn settle_journeys(&mut self, sums: Option<&mut JourneyTally>, counts: bool) {
        if let (Some(by_journey), Some(sums)) = (&mut self.by_journey, sums) {
            by_journey.settle(sums, counts);
        }
    }

    /// Add journeys with these marks, which are under way at the end of a duet, to its sums.
    pub fn leave_unfinished(&self, marks: impl Iterator<Item = Mark>, sums: Option<&mut JourneyTally>) {
        if let (Some(by_journey), Some(sums)) = (&self.by_journey, sums) {
            marks.for_each(|mark| by_journey.leave_unfinished(mark, sums));
        }
    }

    /// The sums by request; none unless they were counted.
    pub fn take_requests(&mut self) -> Vec<RequestTally> {
        self.by_request.take().map_or_else(Vec::new, |by_request| by_request.into_sums())
    }

    /// Add what a slice counted by request to these sums, if it counts.
    pub fn settle_requests(&mut self, sums: &mut [RequestTally], counts: bool) {
        if let Some(by_request) = &mut self.by_request {
            by_request.settle(sums, counts);
        }
    }

    /// Start again, after [`Self::finish`], with a window whose measurement ends when this worker notices that its end has
    /// passed: the time in which the worker could not run is part of the measurement, as the answers that it then reads are of
    /// its count.
    pub fn restart_noticing_end(&mut self, window: Window) {
        self.window = window;
        self.phase = window.phase(window.epoch_ns);
        self.number = 0;
        self.start_ns = window.epoch_ns;
        self.end_ns = self.next_end_ns(window.epoch_ns);
        self.heart.restart(window.epoch_ns);
        self.cpu_ns = thread_cpu_ns();
        self.ends_when_noticed = true;
        self.start_ticks();
    }

    /// Look at `measure_start` whenever an interval of the warm-up ends, because the warm-up may end earlier than the window
    /// says.
    pub fn follow(&mut self, measure_start: Arc<MeasureStart>) {
        self.measure_start = Some((measure_start, self.window.end_ns - self.window.measure_ns));
    }

    /// The phases, as far as they are known.
    pub fn window(&self) -> Window {
        self.window
    }

    /// When the present interval ends, or the worker must beat.
    #[inline]
    pub fn next_ns(&self) -> u64 {
        self.end_ns.min(self.heart.due_ns())
    }

    /// Advance to this time: send the intervals that have ended. Returns whether the worker stood still before.
    pub fn advance(&mut self, now_ns: u64) -> bool {
        let pause = self.heart.beat(now_ns);
        let Pause { stopped_ns, suspended_ns } = pause.unwrap_or_default();
        self.slice.paused_ns += suspended_ns;
        // Every interval gets its part of the pause that the monotonic clock shows.
        let mut paused_to_ns = now_ns - stopped_ns;
        while now_ns >= self.end_ns {
            if self.ends_when_noticed && self.phase == Phase::Measure && self.end_ns == self.window.end_ns {
                (self.window.end_ns, self.end_ns) = (now_ns, now_ns);
            }
            self.slice.paused_ns += self.end_ns.saturating_sub(paused_to_ns);
            paused_to_ns = paused_to_ns.max(self.end_ns);
            self.end_interval();
        }
        self.slice.paused_ns += now_ns - paused_to_ns;
        pause.is_some()
    }

    /// End the present interval. It is sent, unless too many slices are lent and its phase continues.
    fn end_interval(&mut self) {
        let spare = self.take_back();
        let end_ns = self.end_ns;
        if self.phase == Phase::Warmup
            && let Some((measure_start, measure_ns)) = &self.measure_start
            && measure_start.is_reached(end_ns)
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

    /// Count the returned slices, and reuse one of them.
    fn take_back(&mut self) -> Option<Box<Slice>> {
        let mut spare = None;
        while let Ok(slice) = self.sender.spare.try_recv() {
            self.lent -= 1;
            spare = Some(slice);
        }
        spare
    }

    fn next_end_ns(&self, start_ns: u64) -> u64 {
        self.window.end_of(self.phase).min(start_ns.saturating_add(self.interval_ns))
    }

    /// End the measurement at this time, before its planned end.
    pub fn cut(&mut self, end_ns: u64) {
        self.window.end_ns = self.window.end_ns.min(end_ns).max(self.start_ns);
        self.end_ns = self.end_ns.min(self.window.end_of(self.phase)).max(self.start_ns + 1);
    }

    /// Send the last interval, which belongs to the drain, however short it is.
    pub fn finish(&mut self, now_ns: u64) {
        self.advance(now_ns.max(self.window.end_ns));
        self.send(now_ns.max(self.start_ns + 1), None);
    }

    fn send(&mut self, end_ns: u64, spare: Option<Box<Slice>>) {
        self.slice.first_byte.add(&self.slice.response);
        if let Some(apart) = &mut self.apart {
            self.slice.first_byte.subtract(&apart.responses);
            self.slice.first_byte.add(&apart.first_bytes);
            apart.responses.clear();
            apart.first_bytes.clear();
        }
        let cpu_ns = thread_cpu_ns();
        self.slice.engine_cpu_ns = cpu_ns - self.cpu_ns;
        self.cpu_ns = cpu_ns;
        self.lent += 1;
        (self.sender.send)(MemberInterval {
            phase: self.phase,
            number: self.number,
            start_ns: self.start_ns - self.window.epoch_ns,
            end_ns: end_ns - self.window.epoch_ns,
            ticks: self.ticks.take(end_ns, self.slice.counts.completed),
            workers: Vec::new(),
            slice: std::mem::replace(&mut self.slice, spare.unwrap_or_default()),
        });
        let phase = self.window.phase(end_ns);
        self.number = if phase == self.phase { self.number + 1 } else { 0 };
        self.phase = phase;
        self.start_ns = end_ns;
        self.end_ns = self.next_end_ns(end_ns);
        self.start_ticks();
    }

    /// Start the ticks of an interval that starts, if they are counted: slices of duets are too short for them.
    fn start_ticks(&mut self) {
        let counted = self.phase == Phase::Measure && self.interval_ns >= 2 * TICK_NS && !self.ends_when_noticed;
        self.ticks.start(counted.then_some(self.start_ns));
    }

    /// A request fell due, which was noticed now.
    #[inline]
    pub fn due(&mut self, due_ns: u64, now_ns: u64) {
        if self.is_of_phase(due_ns) {
            self.slice.counts.due += 1;
            let saturated = self.slice.lateness.record(now_ns.saturating_sub(due_ns));
            self.slice.counts.saturated += u64::from(saturated);
        }
    }

    /// A request that was due could not be sent: no connection had room.
    pub fn waited(&mut self, due_ns: u64) {
        self.slice.counts.waited += u64::from(self.is_of_phase(due_ns));
    }

    /// A request ends as `connect` because this machine had no port, descriptor or memory for its connection.
    pub fn exhausted(&mut self, due_ns: u64) {
        self.slice.counts.exhausted += u64::from(self.is_of_phase(due_ns));
    }

    /// The first byte of a request is about to be passed to the kernel.
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

    /// A request that was not answered is to be written again.
    pub fn retried(&mut self, due_ns: u64) {
        self.slice.counts.retried += u64::from(self.is_of_phase(due_ns));
    }

    /// A request is to be written again because its server announced that it would not process it.
    pub fn resent(&mut self, due_ns: u64) {
        self.slice.counts.resent += u64::from(self.is_of_phase(due_ns));
    }

    /// Messages had so many bytes before and after their compression.
    pub fn volume(&mut self, volume: Volume) {
        self.slice.counts.plain_bytes += volume.plain;
        self.slice.counts.packed_bytes += volume.packed;
    }

    /// A server opened a WebSocket, so long after it was asked.
    pub fn upgraded(&mut self, ns: u64) {
        self.slice.record_upgrade(ns);
    }

    /// A TLS handshake succeeded.
    pub fn handshake(&mut self, ns: u64, resumed: bool) {
        self.slice.record_handshake(ns);
        self.slice.counts.handshakes += 1;
        self.slice.counts.resumed += u64::from(resumed);
    }

    /// An answer contained the server's clock. The differences are the server's clock minus ours when the request was written,
    /// and ours minus the server's when the answer was complete.
    pub fn one_way(&mut self, due_ns: u64, to_server_ns: i128, from_server_ns: i128) {
        if self.is_of_phase(due_ns) {
            let one_way = self.slice.one_way_mut();
            let saturated = [one_way.to_server.record(to_server_ns), one_way.from_server.record(from_server_ns)];
            self.slice.counts.saturated += saturated.iter().filter(|saturated| **saturated).count() as u64;
        }
    }

    /// A connection was opened in place of an earlier connection.
    pub fn reconnected(&mut self) {
        self.slice.counts.reconnects += 1;
    }

    /// A connection was closed because of bytes that nobody requested, or a message came that answers none.
    pub fn surplus(&mut self) {
        self.slice.counts.surplus += 1;
    }

    /// Something is new in a stream of events.
    pub fn stream(&mut self, progress: &StreamProgress) {
        let arrived = progress.news.is_of_its_arrival() && self.phase == Phase::Measure;
        let of_phase = arrived || self.is_of_phase(progress.due_ns);
        self.slice.streams_mut().count(progress.news, of_phase, true);
        if let StreamNews::Stated(ns) = progress.news
            && of_phase
        {
            let saturated = self.slice.one_way_mut().from_server.record(ns);
            self.slice.counts.saturated += u64::from(saturated);
        }
        if self.phase != Phase::Warmup
            && let Some(by_request) = &mut self.by_request
        {
            by_request.add_stream(StreamEntry::of(progress, of_phase, self.phase == Phase::Measure));
        }
    }

    /// A request has ended.
    #[inline]
    pub fn ended(&mut self, ended: &EndedRequest, now_ns: u64) {
        let due_ns = ended.due.due_ns;
        let of_phase = self.is_of_phase(due_ns);
        if self.observes && self.phase != Phase::Warmup {
            self.observe(ended, of_phase, now_ns);
        }
        let counts = &mut self.slice.counts;
        let ok = u64::from(ended.outcome == Outcome::Ok);
        self.ticks.pass(now_ns, counts.completed);
        counts.completed += ok;
        self.failed += 1 - ok;
        if !of_phase {
            return;
        }
        counts.outcomes.count(ended.outcome);
        counts.with_errors += u64::from(ended.has_errors);
        let response_ns = now_ns.saturating_sub(due_ns);
        counts.saturated += u64::from(self.slice.response.record(response_ns));
        if let Some(keeper) = &mut self.keeper
            && self.phase != Phase::Warmup
        {
            keeper.time(ended, response_ns, now_ns);
        }
        if let Some(written_ns) = ended.written_ns {
            counts.saturated += u64::from(self.slice.service.record(now_ns.saturating_sub(written_ns)));
        }
        if ended.first_ns != Some(now_ns) {
            let apart = self.apart.get_or_insert_default();
            apart.responses.record(response_ns);
            if let Some(first_ns) = ended.first_ns {
                apart.first_bytes.record(first_ns.saturating_sub(due_ns));
            }
        }
        if let Some(status) = ended.status {
            counts.status.count(status);
            counts.late += u64::from(self.phase == Phase::Drain);
            if let Some(status @ 1..) = ended.grpc_status {
                counts.grpc_status.count(status);
            }
        } else if ended.first_ns.is_some() {
            // A message has no status.
            counts.late += u64::from(self.phase == Phase::Drain);
        }
    }

    /// Whether this is a slice, and journeys go on in the next.
    pub fn has_later_slices(&self) -> bool {
        matches!(self.by_journey.as_deref(), Some(ByJourney::Journal(_)))
    }

    /// The mark of a journey that was due at this time.
    #[inline]
    pub fn mark_of_journey(&self, due_ns: u64) -> Mark {
        match &self.by_journey {
            Some(by_journey) if by_journey.counts(due_ns, self.window.measure_ns) => by_journey.mark(),
            _ => 0,
        }
    }

    /// A journey fell due.
    #[inline]
    pub fn journey_due(&mut self, due_ns: u64) {
        if let Some(by_journey) = &mut self.by_journey
            && by_journey.counts(due_ns, self.window.measure_ns)
        {
            by_journey.due();
        }
    }

    /// Something happened to a journey with this mark.
    #[inline]
    pub fn journey(&mut self, mark: Mark, entry: by_journey::Entry) {
        if let Some(by_journey) = &mut self.by_journey {
            by_journey.add(mark, entry);
        }
    }

    /// No journey can begin any more.
    pub fn rows_used_up(&mut self) {
        if let Some(by_journey) = &mut self.by_journey {
            by_journey.rows_used_up();
        }
    }

    fn observe(&mut self, ended: &EndedRequest, of_window: bool, now_ns: u64) {
        if let Some(log) = self.log.as_mut().filter(|_| of_window) {
            log.add(ended, now_ns);
        }
        if let Some(keeper) = self.keeper.as_mut().filter(|_| of_window) {
            keeper.sample(ended, now_ns);
        }
        let in_window = self.phase == Phase::Measure;
        let entry = Entry::of(ended, of_window, in_window, now_ns.saturating_sub(ended.due.due_ns));
        if let (Some(by_request), Some(entry)) = (&mut self.by_request, entry) {
            by_request.add(entry);
        }
    }

    /// Whether a request that was due at this time is counted now: during the warm-up, requests of the warm-up; later, measured
    /// requests.
    #[inline]
    fn is_of_phase(&self, due_ns: u64) -> bool {
        (due_ns < self.window.measure_ns) == (self.phase == Phase::Warmup)
    }
}

#[cfg(test)]
mod tests;
