//! What was measured of answers that are streams of events.

use serde::{Deserialize, Serialize};

use crate::SparseHistogram;

/// The measurements of streams of events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamTally {
    /// Streams that began, of the requests that were due in the phase.
    pub begun: u64,
    /// Events that arrived, whenever their requests were due.
    pub events: u64,
    /// Times without an event that were too long, in streams of requests that were due in the phase.
    pub stalls: u64,
    /// From due to the first event, or to the end of a request without one.
    pub first_event: SparseHistogram,
    /// From each event to the next of its stream.
    pub gaps: SparseHistogram,
    /// Messages that count, of the streams that began.
    pub counted: u64,
    /// Messages that arrived and do not count, whenever their requests were due.
    pub aside: u64,
    /// How much the messages hold that arrived, whenever their requests were due.
    pub amount: u64,
    /// Streams that their server ended before their end.
    pub early: u64,
    /// Streams that met all that makes one good.
    pub good: u64,
    /// The longest time between two messages of each stream.
    pub slowest_gap: SparseHistogram,
    /// The time for each message after the first, of each stream.
    pub per_message: SparseHistogram,
    /// The difference of our clock and the server's in each message that states it, without its sign.
    pub push: SparseHistogram,
    /// How far each message after the first is from its time on the schedule that the first began, without a sign.
    pub jitter: SparseHistogram,
    /// From the arrival of messages to the read that found them, for each read whose bytes the kernel stamped.
    pub read_lateness: SparseHistogram,
    /// Messages that were read together and may have come one by one, as they were read late.
    pub blurred: u64,
}

/// What is new in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamNews {
    /// Its head has arrived.
    Begun,
    /// Events have arrived together.
    Events {
        /// How many; at least 1.
        count: u64,
        /// Nanoseconds since the event before them, or from due if they are the first.
        since_ns: u64,
        /// They are the first.
        is_first: bool,
        /// They were pushed to a user who only listens.
        is_push: bool,
        /// How many, of these and of others that were read with them, are blurred and were not known to be.
        blurred: u64,
        /// Nanoseconds until they were read, if the kernel said when they came, and none was read with them before.
        late_ns: Option<u64>,
    },
    /// A message has arrived that states the server's clock: ours minus it, in nanoseconds.
    Stated(i128),
    /// A message has arrived so many nanoseconds before or after its time on the schedule that the first began.
    OffSchedule(u64),
    /// There was no event for too long.
    Stall {
        /// They are pushed to a user who only listens.
        is_push: bool,
    },
    /// It has ended so many nanoseconds after its last message; none of its times between two messages was longer.
    OpenGap {
        /// Nanoseconds.
        ns: u64,
        /// Its messages were pushed to a user who only listened.
        is_push: bool,
    },
    /// Messages that do not count have arrived.
    Aside(u64),
    /// Messages have arrived that hold so much more.
    Amount(u64),
    /// It has ended.
    Ended(StreamEnded),
    /// It never began; its request ended so many nanoseconds after it was due.
    Silent(u64),
}

/// How a stream has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamEnded {
    /// Since due, if no message counted.
    pub silent_ns: Option<u64>,
    /// The longest time between two messages, or from the last of them on.
    pub slowest_ns: Option<u64>,
    /// The time for each message after the first.
    pub per_message_ns: Option<u64>,
    /// Its server ended it before its end.
    pub is_early: bool,
    /// It met all that makes one good.
    pub is_good: bool,
}

impl StreamNews {
    /// Whether it belongs to the time in which it arrived, whenever its request was due: users may listen for longer than a phase.
    #[must_use]
    pub fn is_of_its_arrival(self) -> bool {
        match self {
            Self::Events { is_push, .. } | Self::Stall { is_push } | Self::OpenGap { is_push, .. } => is_push,
            Self::Stated(_) | Self::OffSchedule(_) => true,
            Self::Begun | Self::Aside(_) | Self::Amount(_) | Self::Ended(_) | Self::Silent(_) => false,
        }
    }
}

impl StreamTally {
    /// Count what is new. `of_phase`: the request was due in the phase; `in_window`: now is a time whose events count.
    pub fn count(&mut self, news: StreamNews, of_phase: bool, in_window: bool) {
        match news {
            StreamNews::Events { count, .. } if in_window => self.events += count,
            StreamNews::Aside(count) if in_window => self.aside += count,
            StreamNews::Amount(amount) if in_window => self.amount += amount,
            _ => {}
        }
        if !of_phase {
            return;
        }
        match news {
            StreamNews::Begun => self.begun += 1,
            StreamNews::Stall { .. } => self.stalls += 1,
            // What did not come is recorded at its age, as a timeout is.
            StreamNews::OpenGap { ns, .. } => self.gaps.record(ns),
            StreamNews::Aside(_) | StreamNews::Amount(_) => {}
            StreamNews::Ended(ended) => self.count_end(ended),
            StreamNews::Silent(ns) => self.first_event.record(ns),
            StreamNews::Stated(ns) => self.push.record(u64::try_from(ns.unsigned_abs()).unwrap_or(u64::MAX)),
            StreamNews::OffSchedule(ns) => self.jitter.record(ns),
            StreamNews::Events { count, since_ns, is_first, blurred, late_ns, .. } => {
                self.counted += count;
                self.blurred += blurred;
                if let Some(late_ns) = late_ns {
                    self.read_lateness.record(late_ns);
                }
                if is_first {
                    self.first_event.record(since_ns);
                } else {
                    self.gaps.record(since_ns);
                }
                // The others came with the first of them.
                self.gaps.record_n(0, count - 1);
            }
        }
    }

    /// What did not come is recorded at its age, as a timeout is.
    fn count_end(&mut self, ended: StreamEnded) {
        self.early += u64::from(ended.is_early);
        self.good += u64::from(ended.is_good);
        for (ns, times) in [
            (ended.silent_ns, &mut self.first_event),
            (ended.slowest_ns, &mut self.slowest_gap),
            (ended.per_message_ns, &mut self.per_message),
        ] {
            if let Some(ns) = ns {
                times.record(ns);
            }
        }
    }

    /// Add all counts of another tally.
    pub fn add(&mut self, other: &Self) {
        self.events += other.events;
        self.aside += other.aside;
        self.amount += other.amount;
        self.add_drained(other);
    }

    /// Add the counts of a drain: all but those of messages, which came after the window.
    pub fn add_drained(&mut self, other: &Self) {
        self.begun += other.begun;
        self.stalls += other.stalls;
        self.first_event.add(&other.first_event);
        self.gaps.add(&other.gaps);
        self.counted += other.counted;
        self.early += other.early;
        self.good += other.good;
        self.slowest_gap.add(&other.slowest_gap);
        self.per_message.add(&other.per_message);
        self.push.add(&other.push);
        self.jitter.add(&other.jitter);
        self.read_lateness.add(&other.read_lateness);
        self.blurred += other.blurred;
    }

    /// Clear everything.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::{StreamEnded, StreamNews, StreamTally};

    #[test]
    fn what_a_user_waits_for_who_listens_belongs_to_the_time_in_which_it_does_not_come() {
        for is_push in [false, true] {
            assert_eq!(StreamNews::Stall { is_push }.is_of_its_arrival(), is_push);
            assert_eq!(StreamNews::OpenGap { ns: 7, is_push }.is_of_its_arrival(), is_push);
        }
        assert!(!StreamNews::Ended(StreamEnded::default()).is_of_its_arrival());
    }

    #[test]
    fn a_first_message_that_never_came_is_as_old_as_its_request() {
        let mut tally = StreamTally::default();
        tally.count(StreamNews::Silent(5000), true, true);
        tally.count(StreamNews::Silent(7000), false, true);
        assert_eq!((tally.first_event.count(), tally.begun), (1, 0));
    }

    #[test]
    fn a_gap_that_nothing_ended_is_one() {
        let mut tally = StreamTally::default();
        tally.count(StreamNews::OpenGap { ns: 5000, is_push: true }, true, true);
        tally.count(StreamNews::OpenGap { ns: 7000, is_push: true }, false, true);
        assert_eq!(tally.gaps.count(), 1);
    }
}
