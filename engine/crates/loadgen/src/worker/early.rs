//! Waking before a request is due, and polling until it is.
//!
//! A core that sleeps takes tens of microseconds to wake, most of all in a virtual machine, and a request that waits for it is
//! sent late. So a worker of an open load wakes before the next request is due, by about as long as waking takes here, and polls
//! its sockets until then. It may do so for a small share of the time. Time in which something else has its core while it polls
//! counts as polled, so where the core is not free, it polls less.

use crate::request::NEVER;

/// All workers of a load poll for one part in so many of the time of one core.
const PARTS: u64 = 10;
/// The most polling that a worker saves up.
const MOST_SAVED_NS: i64 = 2_000_000;
/// Before it has slept, a worker takes waking to last so long.
const FIRST_WAKING_NS: u64 = 50_000;
/// The longest lead: what takes longer to wake has other work.
const LONGEST_WAKING_NS: u64 = 250_000;
/// Before two requests were due, they are taken to be so far apart.
const FIRST_DISTANCE_NS: u64 = 1_000_000;
/// Waking in time should be so many times as frequent as waking late.
const ODDS: u64 = 15;

/// When a worker wakes for what is due. Times are nanoseconds of the monotonic clock.
pub struct EarlyWaking {
    /// How many workers share the time to poll.
    workers: u64,
    /// How long waking takes, nearly always.
    waking_ns: u64,
    /// When the next request is due, and how far requests are apart.
    due_ns: u64,
    distance_ns: u64,
    /// For how long it may poll; less than 0 if it has polled for longer.
    saved_ns: i64,
    asked_ns: u64,
    turn: Turn,
}

/// What the worker does since it last asked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// It sleeps until a lead before a request is due.
    SleepsEarly {
        until_ns: u64,
    },
    Polls,
    /// It sleeps until a request is due, or for something else.
    Sleeps,
}

impl EarlyWaking {
    /// The waking of a worker among so many of a load.
    pub fn new(workers: u32, now_ns: u64) -> Self {
        let workers = u64::from(workers.max(1));
        Self {
            workers,
            waking_ns: FIRST_WAKING_NS,
            due_ns: now_ns,
            distance_ns: FIRST_DISTANCE_NS,
            saved_ns: 0,
            asked_ns: now_ns,
            turn: Turn::Sleeps,
        }
    }

    /// How long before a request is due the worker wakes: no longer than it may poll for each request. It polls for about half
    /// of it.
    fn lead_ns(&self) -> u64 {
        self.waking_ns.min(self.distance_ns / (PARTS / 2 * self.workers))
    }

    /// Until when to sleep, if a request is due at `due_ns`, and at `other_ns` there is something else to do; 0 to poll. Both
    /// times are to come.
    pub fn sleeps_until(&mut self, due_ns: u64, other_ns: u64, now_ns: u64) -> u64 {
        self.reckon(now_ns);
        if due_ns != self.due_ns && due_ns != NEVER {
            let distance_ns = due_ns.saturating_sub(self.due_ns);
            self.distance_ns = self.distance_ns - self.distance_ns / 16 + distance_ns / 16;
            self.due_ns = due_ns;
        }
        let lead_ns = self.lead_ns();
        let early_ns = due_ns.saturating_sub(lead_ns);
        let may_poll = self.saved_ns >= lead_ns.min(due_ns - now_ns) as i64;
        let (turn, until_ns) = if !may_poll || other_ns < early_ns {
            (Turn::Sleeps, due_ns.min(other_ns))
        } else if now_ns < early_ns {
            (Turn::SleepsEarly { until_ns: early_ns }, early_ns)
        } else {
            (Turn::Polls, 0)
        };
        self.turn = turn;
        until_ns
    }

    /// The worker woke at this time, and nothing but its timer can be why.
    pub fn woke_by_timer(&mut self, now_ns: u64) {
        if let Turn::SleepsEarly { until_ns } = self.turn
            && let Some(late_ns) = now_ns.checked_sub(until_ns)
        {
            self.learn(late_ns);
        }
    }

    /// Count the time that has passed: a part of it may be polled, and perhaps it was.
    fn reckon(&mut self, now_ns: u64) {
        let passed_ns = now_ns.saturating_sub(self.asked_ns);
        self.asked_ns = now_ns;
        let earned_ns = passed_ns / (PARTS * self.workers);
        let polled_ns = if self.turn == Turn::Polls { passed_ns } else { 0 };
        self.saved_ns = (self.saved_ns + earned_ns as i64 - polled_ns as i64).min(MOST_SAVED_NS);
    }

    /// Waking took so long. What it nearly always takes is a quantile: it grows by many steps where it was too short, and
    /// shrinks by one where it was long enough.
    fn learn(&mut self, late_ns: u64) {
        let step_ns = self.waking_ns / 128 + 1;
        self.waking_ns = if late_ns > self.waking_ns {
            (self.waking_ns + ODDS * step_ns).min(LONGEST_WAKING_NS)
        } else {
            self.waking_ns.saturating_sub(step_ns)
        };
    }
}

#[cfg(test)]
mod tests {
    use redline_pacing::random_bits;

    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;
    /// How long a turn of the loop takes.
    const TURN_NS: u64 = 1_000;

    /// How a simulated load was sent.
    struct Sent {
        late_ns: Vec<u64>,
        /// The share of the time for which it polled.
        polled: f64,
        seconds: f64,
    }

    impl Sent {
        fn late_at(&self, quantile: f64) -> u64 {
            let mut sorted = self.late_ns.clone();
            sorted.sort_unstable();
            sorted[(sorted.len() as f64 * quantile) as usize]
        }
    }

    /// Send requests at even distances where waking takes so long, and where something takes the core for so long whenever it
    /// polls.
    fn send(rate_per_s: u64, workers: u32, waking_ns: impl Fn(u64) -> u64, taken_ns: u64) -> Sent {
        let (mut now_ns, mut polled_ns, mut late_ns) = (0, 0, Vec::new());
        let mut early = EarlyWaking::new(workers, now_ns);
        for number in 1..=20_000 {
            let due_ns = number * SECOND_NS / rate_per_s;
            while now_ns < due_ns {
                let until_ns = early.sleeps_until(due_ns, NEVER, now_ns);
                if until_ns == 0 {
                    now_ns += TURN_NS + taken_ns;
                    polled_ns += TURN_NS + taken_ns;
                } else {
                    now_ns = until_ns + waking_ns(number);
                    early.woke_by_timer(now_ns);
                }
            }
            if number > 2_000 {
                late_ns.push(now_ns - due_ns);
            }
            now_ns += TURN_NS;
        }
        let polled = polled_ns as f64 / now_ns as f64;
        Sent { late_ns, polled, seconds: now_ns as f64 / SECOND_NS as f64 }
    }

    /// 20 to 60 µs, and now and then a millisecond.
    fn of_a_virtual_machine(number: u64) -> u64 {
        let drawn = random_bits(7, number, 0);
        if drawn.is_multiple_of(100) { 1_000_000 } else { 20_000 + drawn % 40_000 }
    }

    #[test]
    fn at_low_rates_requests_are_sent_in_time() {
        for rate_per_s in [100, 500, 1_000, 2_000] {
            let sent = send(rate_per_s, 1, of_a_virtual_machine, 0);
            assert!(sent.late_at(0.9) <= TURN_NS, "{rate_per_s}/s: {}", sent.late_at(0.9));
        }
    }

    #[test]
    fn at_high_rates_half_of_the_requests_are() {
        for rate_per_s in [5_000, 10_000, 20_000] {
            let sent = send(rate_per_s, 1, |number| 3_000 + random_bits(7, number, 0) % 4_000, 0);
            assert!(sent.late_at(0.5) <= TURN_NS, "{rate_per_s}/s: {}", sent.late_at(0.5));
        }
    }

    #[test]
    fn polling_stays_within_a_tenth_of_a_core() {
        for rate_per_s in [10, 1_000, 2_000, 5_000, 20_000, 100_000] {
            for workers in [1, 4] {
                for taken_ns in [0, 500_000] {
                    let sent = send(rate_per_s, workers, of_a_virtual_machine, taken_ns);
                    let most = 0.1 / f64::from(workers) + (taken_ns + LONGEST_WAKING_NS) as f64 / 1e9 / sent.seconds;
                    assert!(sent.polled <= most, "{rate_per_s}/s: {}", sent.polled);
                }
            }
        }
    }

    #[test]
    fn a_core_that_wakes_at_once_is_not_polled_for_long() {
        let sent = send(2_000, 1, |_| 500, 0);
        assert!(sent.polled < 0.01 && sent.late_at(0.9) <= TURN_NS, "{}", sent.polled);
    }

    #[test]
    fn where_others_take_the_core_requests_are_seldom_waited_for_by_polling() {
        let sent = send(1_000, 1, of_a_virtual_machine, 3_000_000);
        let delayed = sent.late_ns.iter().filter(|late_ns| **late_ns > 1_500_000).count();
        assert!(delayed * 10 < sent.late_ns.len(), "{delayed} of {}", sent.late_ns.len());
    }

    #[test]
    fn what_is_to_do_before_comes_first() {
        let mut early = EarlyWaking::new(1, 0);
        assert_eq!(early.sleeps_until(SECOND_NS, SECOND_NS, 1_000), SECOND_NS, "nothing is saved yet");
        let now_ns = SECOND_NS / 2;
        assert_eq!(early.sleeps_until(SECOND_NS, now_ns + 5, now_ns), now_ns + 5);
        assert_eq!(early.sleeps_until(NEVER, SECOND_NS, now_ns), SECOND_NS);
        assert_eq!(early.sleeps_until(SECOND_NS, SECOND_NS, now_ns), SECOND_NS - FIRST_WAKING_NS);
        assert_eq!(early.sleeps_until(SECOND_NS, SECOND_NS, SECOND_NS - FIRST_WAKING_NS), 0);
    }
}
