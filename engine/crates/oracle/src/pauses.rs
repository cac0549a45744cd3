//! When the server is stopped: a schedule, without a clock.

/// Pauses of equal length at equal distances.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pauses {
    next_ns: u64,
    every_ns: u64,
    for_ns: u64,
    paused: bool,
}

/// A change of the server's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Stop the server.
    Stop,
    /// Continue it.
    Continue,
}

impl Pauses {
    /// From `after_ns + k * every_ns` for `for_ns`, which is less, k = 0, 1, ...
    pub const fn new(after_ns: u64, every_ns: u64, for_ns: u64) -> Self {
        Self { next_ns: after_ns, every_ns, for_ns, paused: false }
    }

    /// When the next change is due, from the start of the server.
    pub const fn next_ns(&self) -> u64 {
        self.next_ns
    }

    /// The next change. Afterwards, the change after it is the next.
    pub const fn take(&mut self) -> Change {
        self.paused = !self.paused;
        if self.paused {
            self.next_ns += self.for_ns;
            return Change::Stop;
        }
        self.next_ns += self.every_ns - self.for_ns;
        Change::Continue
    }
}

#[cfg(test)]
mod tests {
    use super::{Change, Pauses};

    #[test]
    fn pauses_come_at_even_times() {
        let mut pauses = Pauses::new(5, 100, 30);
        let mut next = || (pauses.next_ns(), pauses.take());
        assert_eq!([next(), next()], [(5, Change::Stop), (35, Change::Continue)]);
        assert_eq!([next(), next()], [(105, Change::Stop), (135, Change::Continue)]);
    }
}
