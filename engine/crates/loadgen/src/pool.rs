//! The connections of one worker: opening them, and opening them again.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use redline_wire::Asked;

use crate::connection::Connection;
use crate::demand::NEVER;
use crate::roster::{Roster, State};
use crate::stop::Stop;
use crate::sys::epoll::{Poll, Ready};
use crate::sys::socket::{begin_connect, reset_on_close};
use crate::sys::time::now_ns;

/// The token of the waker, which no connection has.
pub const WAKER: u64 = u64::MAX;
/// How many connections are being opened at once, so that a server's backlog does not overflow.
const OPENING_AT_ONCE: usize = 128;
const SHORTEST_DELAY_NS: u64 = 1_000_000;
const LONGEST_DELAY_NS: u64 = 100_000_000;
/// A connection that ends without an answer in less than this was not wanted; later, the peer had another reason.
const AT_ONCE_NS: u64 = 1_000_000_000;
/// How many events one wait takes.
pub const EVENTS: usize = 256;

/// Why opening is slowed down, and what ends that.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trouble {
    None,
    /// A connection could not be opened; the next that is opened ends it.
    Refused,
    /// A connection ended without an answer and at once; the first answer on a new one ends it.
    Dropped,
}

/// How the first connecting went.
pub struct Opened {
    pub open: usize,
    /// The last reason why one could not be opened.
    pub error: Option<io::Error>,
}

pub struct Pool {
    pub poll: Poll,
    pub connections: Vec<Connection>,
    pub roster: Roster,
    target: SocketAddr,
    trouble: Trouble,
    delay_ns: u64,
    open_after_ns: u64,
}

impl Pool {
    pub fn new(target: SocketAddr, connections: usize, asked: Asked, stop: &Stop) -> io::Result<Self> {
        let poll = Poll::new()?;
        poll.add_waker(stop.waker(), WAKER)?;
        Ok(Self {
            poll,
            connections: (0..connections).map(|_| Connection::new(asked)).collect(),
            roster: Roster::new(connections),
            target,
            trouble: Trouble::None,
            delay_ns: 0,
            open_after_ns: 0,
        })
    }

    /// Try each connection once, for at most `limit_ns`. Those still being opened then go on.
    pub fn open_all(&mut self, limit_ns: u64, stop: &Stop) -> io::Result<Opened> {
        let end_ns = now_ns().saturating_add(limit_ns);
        let mut untried = self.connections.len();
        let mut error = None;
        let mut ready = [Ready::NOTHING; EVENTS];
        while stop.code().is_none() {
            while untried > 0 && self.roster.length(State::Opening) < OPENING_AT_ONCE {
                untried -= 1;
                error = self.begin_next(now_ns()).err().map(|(_, error)| error).or(error);
            }
            let left_ns = end_ns.saturating_sub(now_ns());
            if self.roster.length(State::Opening) == 0 && untried == 0 || left_ns == 0 {
                break;
            }
            let filled = self.poll.wait(&mut ready, left_ns)?;
            for event in &ready[..filled] {
                error = self.settle_opening(*event).or(error);
            }
        }
        Ok(Opened { open: self.open(), error })
    }

    /// During the first connecting: a socket is open, or was lost.
    fn settle_opening(&mut self, event: Ready) -> Option<io::Error> {
        let connection = self.of(event)?;
        let error = self.connections[connection as usize].open_error();
        if error.is_some() || event.readable() {
            self.drop_socket(connection, false);
        } else if self.roster.state(connection) == State::Opening {
            self.opened(connection);
        }
        error
    }

    /// Which connection an event belongs to; `None` for the waker, and for sockets that are gone.
    pub fn of(&self, event: Ready) -> Option<u32> {
        self.by_token(event.token())
    }

    /// Which connection has the socket that was registered so.
    pub fn by_token(&self, token: u64) -> Option<u32> {
        let connection = token as u32;
        let generation = (token >> 32) as u32;
        let known = self.connections.get(connection as usize).is_some_and(|known| known.generation == generation);
        known.then_some(connection)
    }

    /// What the present socket of a connection is registered as.
    pub fn token(&self, connection: u32) -> u64 {
        u64::from(self.connections[connection as usize].generation) << 32 | u64::from(connection)
    }

    /// Connections that are open.
    pub fn open(&self) -> usize {
        self.roster.length(State::Idle) + self.roster.length(State::Busy)
    }

    /// Whether a connection that is down may be opened now.
    pub fn may_open(&self, now_ns: u64) -> bool {
        self.next_opening_ns() <= now_ns
    }

    /// From when on a connection that is down may be opened; never, when an event has to come first.
    pub fn next_opening_ns(&self) -> u64 {
        let at_once = if self.trouble == Trouble::None { OPENING_AT_ONCE } else { 1 };
        if self.roster.length(State::Down) == 0 || self.roster.length(State::Opening) >= at_once {
            return NEVER;
        }
        self.open_after_ns
    }

    /// Begin to open the connection that has been down for the longest time; which one could not be, and why.
    pub fn begin_next(&mut self, now_ns: u64) -> Result<(), (u32, io::Error)> {
        let Some(connection) = self.roster.front(State::Down) else {
            return Ok(());
        };
        // Whatever comes of it, it goes to the back of a queue: the others have their turn first.
        self.roster.change(connection, State::Down);
        if self.trouble != Trouble::None {
            // That it opens says nothing yet: the next has to wait all the same.
            self.open_after_ns = now_ns.saturating_add(self.delay_ns);
        }
        let token = self.token(connection);
        let begun = begin_connect(self.target).and_then(|stream| {
            self.poll.add_socket(stream.as_fd(), token)?;
            Ok(stream)
        });
        let stream = begun.map_err(|error| (connection, error))?;
        self.connections[connection as usize].begin(stream, now_ns);
        self.roster.change(connection, State::Opening);
        Ok(())
    }

    /// A connection is open; whether it replaces an earlier one.
    pub fn opened(&mut self, connection: u32) -> bool {
        self.roster.change(connection, State::Idle);
        if self.trouble == Trouble::Refused {
            self.untroubled();
        }
        std::mem::replace(&mut self.connections[connection as usize].was_open, true)
    }

    /// An answer came.
    #[inline]
    pub fn answered(&mut self, connection: u32) {
        let first = !std::mem::replace(&mut self.connections[connection as usize].answered, true);
        if first && self.trouble != Trouble::None {
            self.untroubled();
        }
    }

    fn untroubled(&mut self) {
        self.trouble = Trouble::None;
        self.delay_ns = 0;
        self.open_after_ns = 0;
    }

    /// A connection could not be opened.
    pub fn refused(&mut self, connection: u32, now_ns: u64) {
        self.drop_socket(connection, true);
        self.slow_down(Trouble::Refused, now_ns);
    }

    /// An open connection has ended, or is to be ended because of what came on it; `reset` when something on it is unanswered.
    pub fn lost(&mut self, connection: u32, reset: bool, now_ns: u64) {
        let ended = &self.connections[connection as usize];
        if !ended.answered && now_ns < ended.opened_ns.saturating_add(AT_ONCE_NS) {
            self.slow_down(Trouble::Dropped, now_ns);
        }
        self.drop_socket(connection, reset);
    }

    fn slow_down(&mut self, trouble: Trouble, now_ns: u64) {
        if self.trouble != Trouble::Dropped {
            self.trouble = trouble;
        }
        self.delay_ns = (self.delay_ns * 2).clamp(SHORTEST_DELAY_NS, LONGEST_DELAY_NS);
        self.open_after_ns = now_ns.saturating_add(self.delay_ns);
    }

    /// Close a connection, without blame for its peer.
    pub fn drop_socket(&mut self, connection: u32, reset: bool) {
        if let Some(stream) = self.connections[connection as usize].end()
            && reset
        {
            reset_on_close(&stream);
        }
        self.roster.change(connection, State::Down);
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use redline_wire::Asked;

    use super::{LONGEST_DELAY_NS, Pool, SHORTEST_DELAY_NS};
    use crate::stop::Stop;

    /// A pool of one connection, which is open since 0, and the listener that it is open to.
    fn pool() -> (Pool, TcpListener) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut pool = Pool::new(listener.local_addr().unwrap(), 1, Asked::default(), &Stop::new().unwrap()).unwrap();
        open(&mut pool, 0);
        (pool, listener)
    }

    fn open(pool: &mut Pool, now_ns: u64) {
        pool.begin_next(now_ns).unwrap();
        pool.opened(0);
    }

    #[test]
    fn connections_that_end_unanswered_and_at_once_are_opened_ever_more_slowly() {
        let (mut pool, _listener) = pool();
        let (mut now_ns, mut delay_ns) = (0, SHORTEST_DELAY_NS);
        for _ in 0..12 {
            // It carried a request, as every connection of a closed load does at once.
            pool.connections[0].carry(now_ns, now_ns);
            pool.lost(0, false, now_ns);
            assert_eq!(pool.next_opening_ns(), now_ns + delay_ns);
            now_ns += delay_ns;
            open(&mut pool, now_ns);
            // That it is open is not enough: another one would have to wait as long again.
            assert_eq!(pool.open_after_ns, now_ns + delay_ns);
            delay_ns = (2 * delay_ns).min(LONGEST_DELAY_NS);
        }
        assert_eq!(delay_ns, LONGEST_DELAY_NS);
        pool.answered(0);
        pool.lost(0, false, now_ns);
        assert!(pool.may_open(now_ns));
    }

    #[test]
    fn connections_that_end_after_an_answer_or_late_or_by_us_are_opened_again_at_once() {
        let (mut pool, _listener) = pool();
        for now_ns in 0..5 {
            pool.connections[0].carry(now_ns, now_ns);
            pool.answered(0);
            pool.lost(0, false, now_ns);
            assert!(pool.may_open(now_ns));
            open(&mut pool, now_ns);
        }
        pool.connections[0].carry(2_000_000_000, 2_000_000_000);
        pool.lost(0, false, 2_000_000_000);
        assert!(pool.may_open(2_000_000_000));
        open(&mut pool, 2_000_000_000);
        pool.drop_socket(0, true);
        assert!(pool.may_open(2_000_000_000));
    }
}
