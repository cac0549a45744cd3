//! How fast connections are opened again when a server refuses or drops them: ever more slowly, so that a dead server, or a proxy
//! without its server, does not make a storm.

use super::opening::OPENING_AT_ONCE;

const SHORTEST_DELAY_NS: u64 = 1_000_000;
const LONGEST_DELAY_NS: u64 = 100_000_000;
/// A connection that ends without an answer in less than this was not wanted; later, the peer had another reason.
const AT_ONCE_NS: u64 = 1_000_000_000;

/// Why opening is slowed down, and what ends that.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Cause {
    #[default]
    None,
    /// A connection could not be opened; the next that is opened ends it.
    Refused,
    /// A connection ended without an answer and at once; the first answer on a new one ends it.
    Dropped,
}

#[derive(Default)]
pub struct ConnectBackoff {
    cause: Cause,
    delay_ns: u64,
    open_after_ns: u64,
}

impl ConnectBackoff {
    /// How many connections may be being opened at once.
    pub fn at_once(&self) -> usize {
        if self.cause == Cause::None { OPENING_AT_ONCE } else { 1 }
    }

    /// From when on the next may be opened.
    pub fn until_ns(&self) -> u64 {
        self.open_after_ns
    }

    /// One is being opened. That it opens says nothing yet: in trouble, the next has to wait all the same.
    pub fn tried(&mut self, now_ns: u64) {
        if self.cause != Cause::None {
            self.open_after_ns = now_ns.saturating_add(self.delay_ns);
        }
    }

    pub fn opened(&mut self) {
        if self.cause == Cause::Refused {
            *self = Self::default();
        }
    }

    /// The first answer came on a connection.
    pub fn answered(&mut self) {
        if self.cause != Cause::None {
            *self = Self::default();
        }
    }

    pub fn refused(&mut self, now_ns: u64) {
        self.slow_down(Cause::Refused, now_ns);
    }

    /// A connection that was opened then has ended without an answer.
    pub fn dropped(&mut self, opened_ns: u64, now_ns: u64) {
        if now_ns < opened_ns.saturating_add(AT_ONCE_NS) {
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
    use super::{ConnectBackoff, LONGEST_DELAY_NS, OPENING_AT_ONCE, SHORTEST_DELAY_NS};

    #[test]
    fn connections_that_end_unanswered_and_at_once_are_opened_ever_more_slowly() {
        let mut patience = ConnectBackoff::default();
        let (mut now_ns, mut delay_ns) = (0, SHORTEST_DELAY_NS);
        for _ in 0..12 {
            patience.dropped(now_ns, now_ns);
            assert_eq!((patience.until_ns(), patience.at_once()), (now_ns + delay_ns, 1));
            now_ns += delay_ns;
            patience.tried(now_ns);
            patience.opened();
            // That it is open is not enough: another one would have to wait as long again.
            assert_eq!(patience.until_ns(), now_ns + delay_ns);
            delay_ns = (2 * delay_ns).min(LONGEST_DELAY_NS);
        }
        assert_eq!(delay_ns, LONGEST_DELAY_NS);
        patience.answered();
        assert_eq!((patience.until_ns(), patience.at_once()), (0, OPENING_AT_ONCE));
    }

    #[test]
    fn one_that_opens_ends_refusals_and_one_that_ends_late_is_nobodys_fault() {
        let mut patience = ConnectBackoff::default();
        patience.refused(0);
        assert_eq!(patience.until_ns(), SHORTEST_DELAY_NS);
        patience.opened();
        assert_eq!(patience.until_ns(), 0);
        patience.dropped(0, 2_000_000_000);
        assert_eq!(patience.until_ns(), 0);
    }
}
