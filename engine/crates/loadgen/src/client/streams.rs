//! The streams of events that have begun: what arrived of them, and when they are to end.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use redline_traffic::{StreamEnded, StreamNews};
use redline_wire::{EventKind, MessageCounts, MessageRules, StreamSoFar};

use crate::ids::PendingId;
use crate::job::Stream;
use crate::request::NEVER;

/// A stream that has begun.
#[derive(Clone, Copy)]
pub struct Progress {
    /// Distinguishes it from other streams of the same [`PendingId`].
    number: u64,
    stream: Stream,
    due_ns: u64,
    begun_ns: u64,
    /// When the first event came, if any has, and when the last, or else the head.
    first_ns: u64,
    last_ns: u64,
    /// The longest time between two events.
    slowest_ns: Option<u64>,
    last_read: LastRead,
    /// What has arrived of it; events past the last that counts are left out.
    pub so_far: StreamSoFar,
}

/// The events that were read together last.
#[derive(Clone, Copy, Default)]
struct LastRead {
    count: u64,
    /// Since the event before them.
    since_ns: u64,
    /// How many of them are known to be blurred.
    blurred: u64,
}

impl LastRead {
    /// So many more of its events were read this late. Returns how many are blurred that were not known to be: they may have come
    /// one by one. Of such events the last would be as old as their distance at most, and younger than a twentieth of it once in
    /// twenty times.
    fn blurs(&mut self, count: u64, late_ns: u64) -> u64 {
        const SOON_NS: u64 = 100_000;
        self.count += count;
        if self.count == 1 || late_ns <= SOON_NS.max(self.since_ns / self.count / 20) {
            return 0;
        }
        self.count - std::mem::replace(&mut self.blurred, self.count)
    }
}

/// What became of the request of a stream that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Its answer is complete.
    Complete,
    /// As much of it came as should.
    Enough,
    /// Its server ended it.
    Broken,
    /// We ended it.
    GivenUp,
}

/// A stream that has ended.
#[derive(Debug, PartialEq, Eq)]
pub struct EndedStream {
    /// There was no message for too long before its end.
    pub is_stalled: bool,
    /// Its messages were pushed to a user who only listened.
    pub is_push: bool,
    /// Since the last message, if another one could have come and no time between two messages was longer.
    pub open_gap_ns: Option<u64>,
    pub ended: StreamEnded,
}

/// Why a stream is to be ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEnd {
    /// It has lasted as long as it should.
    Lasted,
    /// No event came for this long.
    Stalled(u64),
}

impl Progress {
    /// Which of its messages count.
    pub fn rules(&self) -> Option<&'static MessageRules> {
        self.stream.messages
    }

    /// How many events came, and what the others lacked if none counted, in words.
    pub fn came(&self) -> String {
        let MessageCounts { counted, aside, .. } = self.so_far.messages;
        match self.rules().filter(|_| counted == 0 && aside > 0) {
            Some(rules) => format!("after 0 events; {}", rules.none_of(aside)),
            None => format!("after {counted} events"),
        }
    }

    /// Whether all events that count have arrived.
    fn is_complete(&self) -> bool {
        self.stream.until.is_some_and(|until| self.so_far.messages.counted >= until)
    }

    /// How it has ended.
    fn ended(&self, fate: Fate, now_ns: u64) -> EndedStream {
        let MessageCounts { counted, is_finished, .. } = self.so_far.messages;
        let Stream { least, has_last, good, .. } = self.stream;
        let is_whole = match fate {
            // Whether the end of the answer was read with the last message that is waited for is chance.
            Fate::Complete => counted >= least && (is_finished || !has_last || self.is_complete()),
            Fate::Enough => true,
            Fate::Broken | Fate::GivenUp => false,
        };
        let open_ns = now_ns.saturating_sub(self.last_ns);
        // Its time was over, whether or not another message would have come.
        let is_over = fate == Fate::Enough && !self.is_complete();
        let is_longest = self.slowest_ns.is_none_or(|slowest_ns| open_ns > slowest_ns);
        let is_open = (!is_whole || is_over) && counted > 0 && is_longest;
        let slowest_ns = if is_open { Some(open_ns) } else { self.slowest_ns };
        let first_ns = (counted > 0).then(|| self.first_ns.saturating_sub(self.due_ns));
        let per_message_ns = (counted > 1).then(|| self.last_ns.saturating_sub(self.first_ns) / (counted - 1));
        let within = |most: Option<u64>, ns: Option<u64>| most.is_none_or(|most| ns.is_none_or(|ns| ns < most));
        let ended = StreamEnded {
            silent_ns: first_ns.is_none().then(|| now_ns.saturating_sub(self.due_ns)),
            slowest_ns,
            per_message_ns,
            is_early: !is_whole && fate != Fate::GivenUp,
            is_good: good.is_some_and(|good| {
                is_whole
                    && counted > 0
                    && within(good.first_message_ns, first_ns)
                    && within(good.gap_ns, slowest_ns)
                    && within(good.per_message_ns, per_message_ns)
                    && within(good.response_ns, Some(now_ns.saturating_sub(self.due_ns)))
            }),
        };
        EndedStream {
            is_stalled: self.is_stalled(now_ns),
            is_push: self.is_push(),
            open_gap_ns: is_open.then_some(open_ns),
            ended,
        }
    }

    /// Whether its messages are pushed to a user who only listens.
    fn is_push(&self) -> bool {
        self.stream.kind == EventKind::Messages
    }

    /// Whether the time since the last event is too long.
    fn is_stalled(&self, now_ns: u64) -> bool {
        self.stream.stall_ns.is_some_and(|stall_ns| now_ns.saturating_sub(self.last_ns) > stall_ns)
    }

    /// When the stream is to be ended, and why. Nothing stalls before `expires_from_ns`.
    fn end(&self, expires_from_ns: u64) -> Option<(u64, StreamEnd)> {
        let lasted = self.stream.for_ns.map(|for_ns| (self.begun_ns.saturating_add(for_ns), StreamEnd::Lasted));
        let stalled = self.stream.stall_ns.filter(|_| self.stream.stall_fails).map(|stall_ns| {
            let at_ns = self.last_ns.saturating_add(stall_ns).saturating_add(1).max(expires_from_ns);
            (at_ns, StreamEnd::Stalled(stall_ns))
        });
        lasted.into_iter().chain(stalled).min_by_key(|(at_ns, _)| *at_ns)
    }
}

/// The streams of a worker that have begun and not ended.
#[derive(Default)]
pub struct Streams {
    open: Vec<Option<Progress>>,
    length: usize,
    begun: u64,
    /// When streams may have to be ended: never later than they have to.
    timers: BinaryHeap<Reverse<(u64, u64, u32)>>,
}

impl Streams {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    pub fn get(&self, pending: PendingId) -> Option<&Progress> {
        self.open.get(pending.index())?.as_ref()
    }

    /// A stream that has begun.
    pub fn any(&self) -> Option<PendingId> {
        let place = self.open.iter().position(Option::is_some)?;
        Some(PendingId(place as u32))
    }

    /// The head of a stream has arrived.
    pub fn begin(&mut self, pending: PendingId, stream: Stream, due_ns: u64, status: u16, now_ns: u64) {
        self.begun += 1;
        self.length += 1;
        let so_far = StreamSoFar { status, body_length: 0, messages: MessageCounts::default() };
        let progress = Progress {
            number: self.begun,
            stream,
            due_ns,
            begun_ns: now_ns,
            first_ns: now_ns,
            last_ns: now_ns,
            slowest_ns: None,
            last_read: LastRead::default(),
            so_far,
        };
        if pending.index() >= self.open.len() {
            self.open.resize(pending.index() + 1, None);
        }
        self.open[pending.index()] = Some(progress);
        self.set_timer(pending, &progress, 0);
    }

    fn set_timer(&mut self, pending: PendingId, progress: &Progress, expires_from_ns: u64) {
        if let Some((at_ns, _)) = progress.end(expires_from_ns) {
            self.timers.push(Reverse((at_ns, progress.number, pending.0)));
        }
    }

    /// More of a stream has arrived, `late_ns` before it is read now, if that is known. Returns whether all events that count
    /// have, and passes what is new.
    pub fn follow(
        &mut self,
        pending: PendingId,
        so_far: StreamSoFar,
        now_ns: u64,
        late_ns: Option<u64>,
        mut news: impl FnMut(StreamNews),
    ) -> bool {
        let Some(progress) = self.open.get_mut(pending.index()).and_then(Option::as_mut) else {
            return false;
        };
        let known = progress.so_far.messages;
        let events = so_far.messages.counted.min(progress.stream.until.unwrap_or(u64::MAX));
        progress.so_far = StreamSoFar { messages: MessageCounts { counted: events, ..so_far.messages }, ..so_far };
        if so_far.messages.aside > known.aside {
            news(StreamNews::Aside(so_far.messages.aside - known.aside));
        }
        if so_far.messages.amount > known.amount {
            news(StreamNews::Amount(so_far.messages.amount - known.amount));
        }
        let known = known.counted;
        if events > known {
            let arrived_ns = now_ns.saturating_sub(late_ns.unwrap_or(0)).max(progress.last_ns);
            if progress.is_stalled(arrived_ns) {
                news(StreamNews::Stall { is_push: progress.is_push() });
            }
            let (is_first, count) = (known == 0, events - known);
            let since_ns = arrived_ns.saturating_sub(if is_first { progress.due_ns } else { progress.last_ns });
            let is_push = progress.is_push();
            let is_new_read = is_first || arrived_ns > progress.last_ns;
            if is_new_read {
                progress.last_read = LastRead { since_ns, ..LastRead::default() };
            }
            let blurred = late_ns.map_or(0, |late_ns| progress.last_read.blurs(count, late_ns));
            let late_ns = late_ns.filter(|_| is_new_read);
            news(StreamNews::Events { count, since_ns, is_first, is_push, blurred, late_ns });
            if is_first {
                progress.first_ns = arrived_ns;
            }
            // Those that came together have no time between them.
            let gap_ns = if is_first { (events > 1).then_some(0) } else { Some(since_ns) };
            progress.slowest_ns = progress.slowest_ns.max(gap_ns);
            progress.last_ns = arrived_ns;
            if let Some(every_ns) = progress.stream.every_ns {
                for nth in known.max(1)..events {
                    let due_ns = progress.first_ns.saturating_add(nth.saturating_mul(every_ns));
                    news(StreamNews::OffSchedule(arrived_ns.abs_diff(due_ns)));
                }
            }
        }
        progress.is_complete()
    }

    /// A stream has ended. Returns how; `None` if it is not known.
    #[inline]
    pub fn remove(&mut self, pending: PendingId, fate: Fate, now_ns: u64) -> Option<EndedStream> {
        if self.is_empty() {
            return None;
        }
        let progress = self.open.get_mut(pending.index())?.take()?;
        self.length -= 1;
        if self.is_empty() {
            self.timers.clear();
        }
        Some(progress.ended(fate, now_ns))
    }

    /// When a stream may have to be ended.
    #[inline]
    pub fn next_ns(&self) -> u64 {
        self.timers.peek().map_or(NEVER, |Reverse((at_ns, ..))| *at_ns)
    }

    /// The next stream that has to be ended by now. It stays open until the caller removes it.
    pub fn expired(&mut self, now_ns: u64, expires_from_ns: u64) -> Option<(PendingId, StreamEnd)> {
        while let Some(Reverse((at_ns, number, pending))) = self.timers.peek().copied()
            && at_ns <= now_ns
        {
            self.timers.pop();
            let pending = PendingId(pending);
            let Some(progress) = self.get(pending).filter(|progress| progress.number == number).copied() else {
                continue; // It has ended.
            };
            match progress.end(expires_from_ns) {
                Some((at_ns, end)) if at_ns <= now_ns => return Some((pending, end)),
                // An event came since this time was set.
                _ => self.set_timer(pending, &progress, expires_from_ns),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use redline_traffic::{StreamEnded, StreamNews};
    use redline_wire::{EventKind, MessageCounts, StreamSoFar};

    use super::{EndedStream, Fate, StreamEnd, Streams};
    use crate::ids::PendingId;
    use crate::job::{Good, Stream};

    const STREAM: Stream = Stream {
        kind: EventKind::Sse,
        messages: None,
        least: 5,
        has_last: false,
        good: Some(Good { first_message_ns: Some(51), gap_ns: Some(111), per_message_ns: None, response_ns: None }),
        until: Some(5),
        for_ns: Some(1000),
        stall_ns: Some(100),
        stall_fails: true,
        every_ns: None,
    };
    const ONE: PendingId = PendingId(3);

    fn arrived(events: u64) -> StreamSoFar {
        let messages = MessageCounts { counted: events, ..MessageCounts::default() };
        StreamSoFar { status: 200, body_length: events * 10, messages }
    }

    fn whole(ended: StreamEnded) -> EndedStream {
        EndedStream { is_stalled: false, is_push: false, open_gap_ns: None, ended }
    }

    fn events(count: u64, since_ns: u64, is_first: bool) -> StreamNews {
        StreamNews::Events { count, since_ns, is_first, is_push: false, blurred: 0, late_ns: None }
    }

    fn news(streams: &mut Streams, events: u64, now_ns: u64) -> (bool, Vec<StreamNews>) {
        let mut all = Vec::new();
        let complete = streams.follow(ONE, arrived(events), now_ns, None, |news| all.push(news));
        (complete, all)
    }

    #[test]
    fn gaps_run_from_event_to_event_and_the_first_from_due() {
        let mut streams = Streams::default();
        streams.begin(ONE, STREAM, 10, 200, 50);
        let first = events(2, 50, true);
        assert_eq!(news(&mut streams, 2, 60), (false, vec![first]));
        assert_eq!(news(&mut streams, 2, 70), (false, vec![]));
        let later = events(1, 110, false);
        assert_eq!(news(&mut streams, 3, 170), (false, vec![StreamNews::Stall { is_push: false }, later]));
        let last = events(2, 30, false);
        assert_eq!(news(&mut streams, 9, 200), (true, vec![last]));
        let ended = StreamEnded {
            slowest_ns: Some(110),
            per_message_ns: Some((200 - 60) / 4),
            is_good: true,
            ..StreamEnded::default()
        };
        assert_eq!(streams.remove(ONE, Fate::Enough, 250), Some(whole(ended)));
        assert_eq!(streams.remove(ONE, Fate::Enough, 250), None);
    }

    #[test]
    fn events_come_when_they_arrive_and_those_read_together_late_are_blurred() {
        const MS: u64 = 1_000_000;
        let mut streams = Streams::default();
        streams.begin(ONE, Stream { stall_ns: None, until: None, ..STREAM }, 0, 200, 0);
        let mut follow = |events, now_ms, late_ns| {
            let mut said = (0, 0, 0, None);
            streams.follow(ONE, arrived(events), now_ms * MS, Some(late_ns), |news| {
                if let StreamNews::Events { count, since_ns, blurred, late_ns, .. } = news {
                    said = (count, since_ns, blurred, late_ns);
                }
            });
            said
        };
        assert_eq!(follow(1, 30, 20 * MS), (1, 10 * MS, 0, Some(20 * MS)));
        // Alone, it came when the kernel says.
        assert_eq!(follow(2, 80, 10 * MS), (1, 60 * MS, 0, Some(10 * MS)));
        // One by one from the same read, as those of a WebSocket.
        assert_eq!(follow(3, 140, 10 * MS), (1, 60 * MS, 0, Some(10 * MS)));
        assert_eq!(follow(4, 140, 10 * MS), (1, 0, 2, None));
        assert_eq!(follow(5, 140, 10 * MS), (1, 0, 1, None));
        assert_eq!(follow(8, 190, MS), (3, 59 * MS, 3, Some(MS)));
        // So soon after the last that they came together.
        assert_eq!(follow(11, 249, MS / 2), (3, 59 * MS + MS / 2, 0, Some(MS / 2)));
        assert_eq!(follow(14, 250, 90_000), (3, MS + MS / 2 - 90_000, 0, Some(90_000)));
    }

    #[test]
    fn messages_are_off_the_schedule_that_the_first_began() {
        let mut streams = Streams::default();
        streams.begin(ONE, Stream { until: None, every_ns: Some(100), ..STREAM }, 0, 200, 5);
        let mut off = |events, now_ns| {
            let (_, all) = news(&mut streams, events, now_ns);
            all.iter()
                .filter_map(|it| if let StreamNews::OffSchedule(ns) = it { Some(*ns) } else { None })
                .collect::<Vec<_>>()
        };
        assert!(off(1, 30).is_empty());
        assert_eq!(off(2, 137), [7]);
        // Early, and two that came at once.
        assert_eq!(off(3, 225), [5]);
        assert_eq!(off(5, 430), [100, 0]);
        streams.begin(ONE, Stream { until: None, every_ns: Some(100), ..STREAM }, 0, 200, 5);
        let (_, all) = news(&mut streams, 2, 30);
        assert_eq!(all.last(), Some(&StreamNews::OffSchedule(100)));
    }

    #[test]
    fn streams_end_after_their_time_or_when_they_stall() {
        let mut streams = Streams::default();
        streams.begin(ONE, STREAM, 0, 200, 0);
        assert_eq!(streams.next_ns(), 101);
        news(&mut streams, 1, 90);
        assert_eq!(streams.expired(101, 0), None);
        assert_eq!(streams.next_ns(), 191);
        assert_eq!(streams.expired(191, 500), None);
        assert_eq!(streams.expired(500, 500), Some((ONE, StreamEnd::Stalled(100))));
        // What did not come is as old as it is: one message came, and no second.
        let ended = StreamEnded { slowest_ns: Some(410), ..StreamEnded::default() };
        let given_up = EndedStream { is_stalled: true, open_gap_ns: Some(410), ..whole(ended) };
        assert_eq!(streams.remove(ONE, Fate::GivenUp, 500), Some(given_up));
        assert_eq!(streams.next_ns(), u64::MAX);
        streams.begin(ONE, Stream { stall_fails: false, ..STREAM }, 0, 200, 1000);
        assert_eq!(streams.expired(2000, 0), Some((ONE, StreamEnd::Lasted)));
        let ended = StreamEnded { silent_ns: Some(2000), is_early: true, ..StreamEnded::default() };
        assert_eq!(streams.remove(ONE, Fate::Broken, 2000), Some(EndedStream { is_stalled: true, ..whole(ended) }));
    }

    #[test]
    fn a_server_that_falls_silent_before_the_time_is_over_has_a_gap_until_then() {
        let mut streams = Streams::default();
        let stream = Stream { kind: EventKind::Messages, until: None, stall_ns: None, ..STREAM };
        streams.begin(ONE, stream, 0, 101, 0);
        news(&mut streams, 1, 50);
        news(&mut streams, 2, 100);
        let ended = StreamEnded { slowest_ns: Some(900), per_message_ns: Some(50), ..StreamEnded::default() };
        let silent = EndedStream { is_push: true, open_gap_ns: Some(900), ..whole(ended) };
        assert_eq!(streams.remove(ONE, Fate::Enough, 1000), Some(silent));
    }

    #[test]
    fn the_end_of_an_answer_that_is_read_with_its_last_event_changes_nothing() {
        let mut streams = Streams::default();
        for fate in [Fate::Enough, Fate::Complete] {
            streams.begin(ONE, Stream { has_last: true, for_ns: None, ..STREAM }, 0, 200, 0);
            news(&mut streams, 5, 10);
            let ended = streams.remove(ONE, fate, 20).map(|stream| stream.ended);
            assert!(ended.is_some_and(|ended| ended.is_good && !ended.is_early), "{fate:?}");
        }
    }

    #[test]
    fn without_limits_no_stream_is_good() {
        let mut streams = Streams::default();
        streams.begin(ONE, Stream { good: None, ..STREAM }, 0, 200, 0);
        news(&mut streams, 5, 10);
        assert!(streams.remove(ONE, Fate::Enough, 20).is_some_and(|stream| !stream.ended.is_good));
    }
}
