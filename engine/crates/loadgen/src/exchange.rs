//! The worker's side of an exchange: send, receive, judge.

use std::fmt::Display;
use std::io::{self, ErrorKind};

use redline_traffic::Outcome;
use redline_wire::{Answer, Verdict};

use crate::connection::Connection;
use crate::demand::Task;
use crate::failure_log::Kind;
use crate::flights::Flight;
use crate::io::Io;
use crate::scenario::Judged;
use crate::states::State;
use crate::sys::time::unix_ns;
use crate::tally::Ending;
use crate::worker::Worker;

/// How often a request is written in vain before it has failed; what the server has announced does not count.
const MOST_TRIES: u8 = 2;

impl<I: Io> Worker<I> {
    /// Put a request on a connection, to be flushed.
    #[inline]
    pub fn put(&mut self, connection: u32, mut task: Task) {
        let number = connection;
        let request = self.scenario.draw(&mut task);
        let connection = &mut self.pool.connections[number as usize];
        connection.carried += 1;
        let flight = self.flights.take_off(task, self.now_ns, request as u32, number, &mut connection.line);
        if let Err(why) = self.scenario.write(request, flight, connection) {
            // Nothing of it left this process: the connection is of no use any more.
            connection.closing = true;
            let Flight { task, .. } = self.land(flight);
            self.end_unwritten(task, Outcome::Closed);
            self.reasons.tell(Kind::Malformed, &why);
        } else if task.written_ns.is_none() {
            self.tally.sent(task.due_ns);
        }
    }

    /// Write what is to be written.
    #[inline]
    pub fn flush(&mut self, connection: u32) {
        match self.pool.flush(connection) {
            Ok(bytes) => self.tally.bytes_sent(bytes),
            Err(why) => self.unwritable(connection, &why),
        }
    }

    /// The kernel took what it had in hand of a connection.
    pub fn taken(&mut self, connection: u32, bytes: usize) {
        match self.pool.taken(connection, bytes) {
            Ok(bytes) => self.tally.bytes_sent(bytes),
            Err(why) => return self.unwritable(connection, &why),
        }
        // Its answer may have come before it was written, and a stream be free only when its end was written.
        if self.pool.roster.state(connection) == State::Full {
            self.pool.settle(connection);
        }
    }

    /// The peer takes no more. It may have answered before it closed: what it said is read, and counts, before the end of the
    /// connection is.
    pub fn unwritable(&mut self, connection: u32, why: &io::Error) {
        if matches!(why.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) {
            let writer = &mut self.pool.connections[connection as usize];
            writer.closing = true;
            writer.full = true;
            self.pool.settle(connection);
        } else {
            self.broken(connection, why);
        }
    }

    /// Bytes came on a connection that is open.
    pub fn received(&mut self, connection: u32, bytes: &[u8], more: bool) {
        self.tally.bytes_received(bytes.len());
        let Some(layers) = self.pool.connections[connection as usize].layers.as_deref_mut() else {
            return self.take_answers(connection, bytes, more);
        };
        let Some(tls) = &mut layers.tls else {
            return self.take_frames(connection, bytes);
        };
        let mut plain = std::mem::take(&mut self.plain);
        plain.clear();
        match tls.feed(bytes, &mut plain) {
            Ok(fed) => {
                if layers.http2.is_some() {
                    self.take_frames(connection, &plain);
                } else if !plain.is_empty() {
                    self.take_answers(connection, &plain, more || fed.closed);
                }
                if fed.closed && self.pool.is_open(connection) {
                    self.end_of_stream(connection);
                }
            }
            Err(why) => self.malformed(connection, &why),
        }
        self.plain = plain;
    }

    /// Take the HTTP/1.1 answers that came on a connection.
    fn take_answers(&mut self, connection: u32, mut bytes: &[u8], more: bool) {
        while !bytes.is_empty() {
            let reader = &mut self.pool.connections[connection as usize];
            let Some(index) = reader.line.first() else {
                // Nobody asked for this.
                return self.lose(connection, true);
            };
            let request = self.flights.get(index).request as usize;
            match reader.parser.feed(bytes, self.scenario.asked(request), &mut self.heads) {
                Ok(None) => break,
                Ok(Some(whole)) if whole.used < bytes.len() && reader.line.length == 1 => {
                    // What follows the answer was not asked for, so where the answer ends is not sure either.
                    return self.malformed(connection, &"bytes follow the answer that nobody asked for");
                }
                Ok(Some(whole)) => {
                    bytes = &bytes[whole.used..];
                    if !self.answered(connection, index, &whole.answer, more) {
                        return;
                    }
                }
                Err(why) => return self.malformed(connection, &why),
            }
        }
        if self.pool.is_open(connection) {
            self.pool.settle(connection);
        }
    }

    fn malformed(&mut self, connection: u32, why: &dyn Display) {
        self.reasons.tell(Kind::Malformed, why);
        self.fail(connection, Outcome::Malformed);
    }

    /// An HTTP/1.1 answer is whole; whether the connection can go on.
    #[inline]
    fn answered(&mut self, connection: u32, index: u32, answer: &Answer, more: bool) -> bool {
        self.pool.answered(connection);
        let carrier = &mut self.pool.connections[connection as usize];
        let flight = self.flights.land(index, &mut carrier.line);
        let judged = self.scenario.judge(flight.request as usize, answer, carrier.parser.body());
        carrier.parser.forget_body();
        self.judged(&flight, judged, answer.status);
        if !answer.keep_alive {
            self.resend_all(connection);
            // The answer is whole and read, so a reset cuts nothing off. It leaves no TIME_WAIT here, which would hold a port for
            // a minute; where the peer has ended first, the TIME_WAIT is the peer's anyhow.
            self.lose(connection, !more);
        }
        answer.keep_alive
    }

    /// A request has its answer.
    #[inline]
    pub fn judged(&mut self, flight: &Flight, judged: Judged, status: u16) {
        let Flight { task, written_ns, .. } = *flight;
        if let Some(clock_ns) = judged.clock_ns {
            let (ours_ns, theirs_ns) = (i128::from(unix_ns()), i128::from(clock_ns));
            let since_written_ns = i128::from(self.now_ns.saturating_sub(written_ns));
            self.tally.one_way(task.due_ns, theirs_ns - (ours_ns - since_written_ns), ours_ns - theirs_ns);
        }
        let outcome = outcome(judged.verdict);
        let ending = Ending { due_ns: task.due_ns, written_ns: Some(written_ns), outcome, status: Some(status) };
        self.end(task, ending);
    }

    /// The server has closed a connection with its answer, and so announced that it processes nothing behind it (RFC 9112,
    /// section 9.6): that is written again on another one.
    fn resend_all(&mut self, connection: u32) {
        while let Some(index) = self.pool.connections[connection as usize].line.first() {
            self.resend(index);
        }
    }

    /// A request is to be written again, because its server announced that it would not process it. That is no failure,
    /// however often it happens: such a connection has an answer for another request.
    pub fn resend(&mut self, index: u32) {
        let flight = self.land(index);
        self.tally.resent(flight.task.due_ns);
        self.demand.give_back(Task { written_ns: Some(flight.written_ns), ..flight.task });
    }

    /// A request is to be written again; it has failed so when it was written in vain too often.
    pub fn retry(&mut self, index: u32, outcome: Outcome) {
        if self.flights.get(index).task.tries >= MOST_TRIES {
            return self.land_unanswered(index, outcome);
        }
        let flight = self.land(index);
        self.tally.retried(flight.task.due_ns);
        let tries = flight.task.tries + 1;
        self.demand.give_back(Task { tries, written_ns: Some(flight.written_ns), ..flight.task });
    }

    pub fn land(&mut self, index: u32) -> Flight {
        let connection = self.flights.get(index).connection;
        self.flights.land(index, &mut self.pool.connections[connection as usize].line)
    }

    /// A request has failed.
    pub fn land_unanswered(&mut self, index: u32, outcome: Outcome) {
        let Flight { task, written_ns, .. } = self.land(index);
        self.end(task, Ending { due_ns: task.due_ns, written_ns: Some(written_ns), outcome, status: None });
    }

    /// The socket has ended. Over TLS that alone ends no answer: the peer has to say that it is the end (RFC 9112, section 9.8).
    pub fn ended(&mut self, connection: u32) {
        self.tick();
        let carrier = &self.pool.connections[connection as usize];
        let is_cut = carrier.layers.as_deref().is_some_and(|layers| layers.tls.is_some());
        if is_cut && carrier.line.length > 0 {
            return self.fail(connection, Outcome::Closed);
        }
        self.end_of_stream(connection);
    }

    fn end_of_stream(&mut self, connection: u32) {
        let reader = &mut self.pool.connections[connection as usize];
        let Some(index) = reader.line.first() else {
            return self.lose(connection, false);
        };
        let asked = self.scenario.asked(self.flights.get(index).request as usize);
        let answer = if reader.is_http1() { reader.parser.end(asked) } else { None };
        match answer {
            Some(answer) => {
                self.answered(connection, index, &Answer { keep_alive: false, ..answer }, true);
            }
            None => self.fail(connection, Outcome::Closed),
        }
    }

    /// A connection broke.
    pub fn broken(&mut self, connection: u32, why: &io::Error) {
        if !self.pool.is_open(connection) {
            return;
        }
        self.tick();
        if self.pool.connections[connection as usize].line.length > 0 {
            self.reasons.tell(Kind::Reset, why);
        }
        self.fail(connection, Outcome::Reset);
    }

    /// The oldest request of all was not answered in time. In HTTP/2 it is given up alone; in HTTP/1.1 what was written behind it
    /// on its connection cannot be answered before it, and ends with it.
    pub fn time_out(&mut self) {
        let Some(index) = self.flights.oldest_index() else {
            return;
        };
        let connection = self.flights.get(index).connection;
        if self.cancel_stream(connection, index) {
            return;
        }
        while let Some(index) = self.pool.connections[connection as usize].line.first() {
            self.land_unanswered(index, Outcome::Timeout);
        }
        // It was we who did not wait any longer: the peer may be slow, but it is there.
        self.pool.drop_socket(connection, true);
    }

    /// The connection is of no more use; the requests that it carries end with this outcome.
    pub fn fail(&mut self, connection: u32, outcome: Outcome) {
        while let Some(index) = self.pool.connections[connection as usize].line.first() {
            self.land_unanswered(index, outcome);
        }
        self.lose(connection, true);
    }

    pub fn lose(&mut self, connection: u32, reset: bool) {
        self.pool.lost(connection, reset, self.now_ns);
    }
}

fn outcome(verdict: Verdict) -> Outcome {
    match verdict {
        Verdict::Right => Outcome::Ok,
        Verdict::WrongStatus => Outcome::UnexpectedStatus,
        Verdict::WrongBody => Outcome::UnexpectedBody,
    }
}

impl Connection {
    fn is_http1(&self) -> bool {
        self.layers.as_deref().is_none_or(|layers| layers.http2.is_none())
    }
}
