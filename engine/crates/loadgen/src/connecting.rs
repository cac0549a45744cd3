//! The worker's side of opening connections, during the load.

use std::io::ErrorKind;

use redline_traffic::Outcome;

use crate::failure_log::Kind;
use crate::io::{Event, Io};
use crate::pool::{Failure, Opening};
use crate::worker::Worker;

impl<I: Io> Worker<I> {
    /// Open connections that are down, as fast as the target lets us.
    pub fn open_down(&mut self) {
        while self.pool.may_open(self.now_ns) && self.now_ns < self.drain_end_ns {
            if let Err((connection, error)) = self.pool.begin_next(self.now_ns) {
                self.opening_failed(connection, &Failure::Connect(error));
            }
        }
    }

    /// Something happened to a connection that is being opened.
    pub fn advance(&mut self, connection: u32, event: Event) {
        self.tick();
        match self.pool.advance(event, self.now_ns) {
            Opening::Going => {}
            Opening::Done => {
                if self.pool.opened(connection, self.now_ns) {
                    self.tally.reconnected();
                }
                self.count_handshakes();
                self.take_up();
            }
            Opening::Failed(why) => {
                self.opening_failed(connection, &why);
                self.take_up();
            }
        }
    }

    pub fn count_handshakes(&mut self) {
        for shaken in self.pool.shaken.drain(..) {
            self.tally.handshake(shaken.ns, shaken.resumed);
        }
        let (sent, received) = std::mem::take(&mut self.pool.opening_bytes);
        self.tally.bytes_sent(sent);
        self.tally.bytes_received(received);
    }

    pub fn opening_timed_out(&mut self, connection: u32) {
        let shakes = self.pool.connections[connection as usize].layers.is_some();
        let why = if shakes {
            Failure::Tls("it took too long".to_owned())
        } else {
            Failure::Connect(ErrorKind::TimedOut.into())
        };
        self.opening_failed(connection, &why);
    }

    fn opening_failed(&mut self, connection: u32, why: &Failure) {
        let kind = match why {
            Failure::Connect(error) => Kind::of_connecting(error),
            Failure::Tls(_) => Kind::Tls,
        };
        self.reasons.tell(kind, why);
        self.pool.refused(connection, self.now_ns);
        self.fail_waiting(kind);
    }

    /// A connection could not be opened: so ends the request that waits first in line, and when no connection is open, all
    /// that wait, for they cannot be sent.
    fn fail_waiting(&mut self, kind: Kind) {
        let waiting = self.demand.waiting();
        let failed = if self.pool.open() == 0 { waiting } else { waiting.min(1) };
        for _ in 0..failed {
            if kind == Kind::Exhausted {
                self.tally.exhausted(self.demand.oldest_due_ns());
            }
            self.end_oldest_waiting(if kind == Kind::Tls { Outcome::Tls } else { Outcome::Connect });
        }
    }
}
