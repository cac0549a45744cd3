//! The worker's side of an exchange: connect, send, receive, judge.

use std::fmt::Display;
use std::io::{self, ErrorKind, Read};

use redline_traffic::Outcome;
use redline_wire::Answer;

use crate::connection::Wrote;
use crate::job::Expect;
use crate::reasons::Kind;
use crate::roster::State;
use crate::sys::epoll::Ready;
use crate::tally::Ending;
use crate::worker::Worker;

/// How often one connection is read before the others have their turn.
const READS_AT_ONCE: usize = 16;

impl Worker {
    /// Open connections that are down, as fast as the target lets us.
    pub fn open_down(&mut self) {
        while self.pool.may_open(self.now_ns) && self.now_ns < self.drain_end_ns {
            if let Err((connection, why)) = self.pool.begin_next(self.now_ns) {
                self.opening_failed(connection, &why);
            }
        }
    }

    pub fn settle_opening(&mut self, connection: u32, event: Ready) {
        self.tick();
        if let Some(why) = self.pool.connections[connection as usize].open_error() {
            return self.opening_failed(connection, &why);
        }
        if self.pool.opened(connection) {
            self.tally.reconnected();
        }
        // It speaks before it was asked, or has ended already: of no use.
        if event.readable() {
            self.pool.lost(connection, true, self.now_ns);
            self.reasons.tell(Kind::Connect, &"it was taken, and ended or spoken on before a request came");
            self.fail_waiting(Kind::Connect);
        }
    }

    pub fn opening_failed(&mut self, connection: u32, why: &io::Error) {
        let kind = Kind::of_connecting(why);
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
            self.end_oldest_waiting(Outcome::Connect);
        }
    }

    /// Write a request on an idle connection.
    #[inline]
    pub fn send(&mut self, connection: u32, due_ns: u64) {
        self.pool.connections[connection as usize].carry(due_ns, self.now_ns);
        self.pool.roster.change(connection, State::Busy);
        self.tally.sent(due_ns);
        self.send_rest(connection);
    }

    #[inline]
    pub fn send_rest(&mut self, connection: u32) {
        let carrier = &mut self.pool.connections[connection as usize];
        if self.pool.roster.state(connection) != State::Busy || carrier.is_whole_written(&self.job.request) {
            return;
        }
        match carrier.write(&self.job.request) {
            Wrote::Bytes(bytes) => self.tally.bytes_sent(bytes),
            Wrote::Broken(why) => {
                // The peer may have answered before it closed; what it said counts.
                self.receive(connection, true);
                if self.pool.roster.state(connection) == State::Busy {
                    self.reasons.tell(Kind::Reset, &why);
                    self.fail(connection, Outcome::Reset);
                }
            }
        }
    }

    /// Read what there is, or so much of it that the other connections have their turn. A read shorter than the buffer was
    /// all, unless the connection is ending.
    pub fn receive(&mut self, connection: u32, ending: bool) {
        for _ in 0..READS_AT_ONCE {
            let Some(stream) = &mut self.pool.connections[connection as usize].stream else {
                return;
            };
            match stream.read(&mut self.buffer) {
                Ok(0) => return self.end_of_stream(connection),
                Ok(bytes) => {
                    self.tick();
                    self.tally.bytes_received(bytes);
                    self.take(connection, bytes, ending);
                    if bytes < self.buffer.len() && !ending {
                        return;
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(why) => {
                    self.tick();
                    self.reasons.tell(Kind::Reset, &why);
                    return self.fail(connection, Outcome::Reset);
                }
            }
        }
        let token = self.pool.token(connection);
        match self.unread.iter_mut().find(|(known, _)| *known == token) {
            Some((_, known_ending)) => *known_ending |= ending,
            None => self.unread.push((token, ending)),
        }
    }

    /// Take bytes that came on a connection.
    fn take(&mut self, connection: u32, bytes: usize, ending: bool) {
        if self.pool.roster.state(connection) == State::Idle {
            // Nobody asked for this.
            return self.pool.lost(connection, true, self.now_ns);
        }
        match self.pool.connections[connection as usize].parser.feed(&self.buffer[..bytes]) {
            Ok(None) => {}
            Ok(Some(whole)) if whole.used == bytes => self.answered(connection, whole.answer, ending),
            // What follows the answer was not asked for, so where the answer ends is not sure either.
            Ok(Some(_)) => self.malformed(connection, &"bytes follow the answer that nobody asked for"),
            Err(why) => self.malformed(connection, &why),
        }
    }

    fn malformed(&mut self, connection: u32, why: &dyn Display) {
        self.reasons.tell(Kind::Malformed, why);
        self.fail(connection, Outcome::Malformed);
    }

    fn answered(&mut self, connection: u32, answer: Answer, ending: bool) {
        self.pool.answered(connection);
        let carrier = &self.pool.connections[connection as usize];
        let reusable = answer.keep_alive && !ending && carrier.is_whole_written(&self.job.request);
        let (due_ns, written_ns) = (carrier.due_ns, Some(carrier.since_ns));
        let outcome = judge(&self.job.expect, &answer);
        if reusable {
            self.pool.roster.change(connection, State::Idle);
        } else {
            // The answer is whole and read, so a reset cuts nothing off. It leaves no TIME_WAIT here, which would hold a port for
            // a minute; where the peer has ended first, the TIME_WAIT is the peer's anyhow.
            self.pool.lost(connection, !ending, self.now_ns);
        }
        self.end(Ending { due_ns, written_ns, outcome, status: Some(answer.status) });
    }

    fn end_of_stream(&mut self, connection: u32) {
        self.tick();
        if self.pool.roster.state(connection) != State::Busy {
            return self.pool.lost(connection, false, self.now_ns);
        }
        match self.pool.connections[connection as usize].end_of_stream() {
            Some(answer) => self.answered(connection, answer, true),
            None => self.fail(connection, Outcome::Closed),
        }
    }

    /// The connection is of no more use; its request, if it carries one, ends with this outcome.
    pub fn fail(&mut self, connection: u32, outcome: Outcome) {
        let carrier = &self.pool.connections[connection as usize];
        let (due_ns, written_ns) = (carrier.due_ns, Some(carrier.since_ns));
        let was_busy = self.pool.roster.state(connection) == State::Busy;
        if outcome == Outcome::Timeout {
            // It was we who did not wait any longer: the peer may be slow, but it is there.
            self.pool.drop_socket(connection, true);
        } else {
            self.pool.lost(connection, true, self.now_ns);
        }
        if was_busy {
            self.end(Ending { due_ns, written_ns, outcome, status: None });
        }
    }
}

/// Compare an answer with what is right.
#[inline]
fn judge(expect: &Expect, answer: &Answer) -> Outcome {
    let length_is_right = expect.body_length.is_none_or(|length| length == answer.body_length);
    let hash_is_right = expect.body_sha256.is_none() || expect.body_sha256 == answer.body_sha256;
    if answer.status != expect.status {
        Outcome::UnexpectedStatus
    } else if length_is_right && hash_is_right {
        Outcome::Ok
    } else {
        Outcome::UnexpectedBody
    }
}
