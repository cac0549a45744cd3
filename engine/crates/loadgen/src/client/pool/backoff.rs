//! Exponential backoff of opening connections when a server refuses or drops them, so that a dead server, or a proxy without
//! its server, does not cause a storm of connections.

use super::opening::MOST_OPENING;

const SHORTEST_DELAY_NS: u64 = 1_000_000;
const LONGEST_DELAY_NS: u64 = 100_000_000;
/// A connection that ends without an answer sooner than this counts against the server; later, the peer had another reason.
const SOON_NS: u64 = 1_000_000_000;

/// Why opening is slowed down.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Cause {
    #[default]
    None,
    /// A connection could not be opened. The next successful opening ends the backoff.
    Refused,
    /// A connection ended soon, without an answer. The first answer on a new connection ends the backoff.
    Dropped,
}

#[derive(Default)]
pub struct ConnectBackoff {
    cause: Cause,
    delay_ns: u64,
    open_after_ns: u64,
}

impl ConnectBackoff {
    /// How many connections may be opened concurrently.
    pub fn concurrent(&self) -> usize {
        if self.cause == Cause::None { MOST_OPENING } else { 1 }
    }

    /// When the next connection may be opened.
    pub fn until_ns(&self) -> u64 {
        self.open_after_ns
    }

    /// A connection is being opened. During a backoff, the next must wait all the same.
    pub fn started(&mut self, now_ns: u64) {
        if self.cause != Cause::None {
            self.open_after_ns = now_ns.saturating_add(self.delay_ns);
        }
    }

    pub fn opened(&mut self) {
        if self.cause == Cause::Refused {
            *self = Self::default();
        }
    }

    /// The first answer arrived on a connection.
    pub fn answered(&mut self) {
        if self.cause != Cause::None {
            *self = Self::default();
        }
    }

    pub fn refused(&mut self, now_ns: u64) {
        self.slow_down(Cause::Refused, now_ns);
    }

    /// A connection that was opened at `opened_ns` has ended without an answer.
    pub fn dropped(&mut self, opened_ns: u64, now_ns: u64) {
        if now_ns < opened_ns.saturating_add(SOON_NS) {
            self.slow_down(Cause::Dropped, now_ns);
        }
    }

    fn slow_down(&mut self, cause: Cause, now_ns: u64) {
        if self.cause != Cause::Dropped {
            self.cause = cause;
        }
        self.delay_ns = (self.delay_ns * 2).clamp(SHORTEST_DELAY_NS, LONGEST_DELAY_NS);
        self.open_after_ns = now_ns.saturating_add(self.delay_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::{ConnectBackoff, LONGEST_DELAY_NS, MOST_OPENING, SHORTEST_DELAY_NS};

    #[test]
    fn connections_that_end_soon_and_unanswered_slow_the_next_down() {
        let mut backoff = ConnectBackoff::default();
        let (mut now_ns, mut delay_ns) = (0, SHORTEST_DELAY_NS);
        for _ in 0..12 {
            backoff.dropped(now_ns, now_ns);
            assert_eq!((backoff.until_ns(), backoff.concurrent()), (now_ns + delay_ns, 1));
            now_ns += delay_ns;
            backoff.started(now_ns);
            backoff.opened();
            // Opening a connection is not enough: the next must wait as long again.
            assert_eq!(backoff.until_ns(), now_ns + delay_ns);
            delay_ns = (2 * delay_ns).min(LONGEST_DELAY_NS);
        }
        assert_eq!(delay_ns, LONGEST_DELAY_NS);
        backoff.answered();
        assert_eq!((backoff.until_ns(), backoff.concurrent()), (0, MOST_OPENING));
    }

    #[test]
    fn an_open_connection_ends_refusals_and_a_late_end_does_not_count() {
        let mut backoff = ConnectBackoff::default();
        backoff.refused(0);
        assert_eq!(backoff.until_ns(), SHORTEST_DELAY_NS);
        backoff.opened();
        assert_eq!(backoff.until_ns(), 0);
        backoff.dropped(0, 2_000_000_000);
        assert_eq!(backoff.until_ns(), 0);
    }
}
