//! The worker's side of HTTP/2: what frames mean for the requests of a connection.

use redline_http2::Event;
use redline_traffic::Outcome;
use redline_wire::Answer;

use crate::failure_log::Kind;
use crate::io::Io;
use crate::worker::Worker;

impl<I: Io> Worker<I> {
    /// Take the HTTP/2 frames that came on a connection, and answer them as far as they ask for it.
    pub fn take_frames(&mut self, connection: u32, bytes: &[u8]) {
        let mut events = std::mem::take(&mut self.answers);
        let layers = self.pool.connections[connection as usize].layers.as_deref_mut();
        let fed = layers.and_then(|layers| layers.http2.as_mut()).map(|http2| http2.feed(bytes, &mut events));
        for event in events.drain(..) {
            self.take_event(connection, event);
        }
        self.answers = events;
        if let Some(Err(why)) = fed {
            self.reasons.tell(Kind::Malformed, &why);
            // The peer is sent a GOAWAY (RFC 9113, section 5.4.1), if the socket takes it now.
            if let Ok(bytes) = self.pool.flush(connection) {
                self.tally.bytes_sent(bytes);
            }
            return self.fail(connection, Outcome::Malformed);
        }
        if self.pool.is_open(connection) {
            self.flush(connection);
        }
        if self.pool.is_open(connection) {
            self.settle_streams(connection);
        }
    }

    /// A peer that wants no more requests on a connection that carries none has ended it, and if it answered none on it, others
    /// are opened the more slowly.
    fn settle_streams(&mut self, connection: u32) {
        if self.pool.connections[connection as usize].line.length == 0 && self.pool.room(connection) == 0 {
            return self.lose(connection, true);
        }
        self.pool.settle(connection);
    }

    fn take_event(&mut self, connection: u32, event: Event) {
        match event {
            Event::Answer { token, status, body_length, body_sha256, body } => {
                self.pool.answered(connection);
                let flight = self.land(token);
                let answer = Answer { status, body_length, body_sha256, keep_alive: true };
                let judged = self.scenario.judge(flight.request as usize, &answer, body.as_deref().unwrap_or_default());
                self.judged(&flight, judged, status);
            }
            Event::Refused { token, code } => {
                self.reasons.tell(Kind::Refused, &format_args!("RST_STREAM with code {code}"));
                self.land_unanswered(token, Outcome::Refused);
            }
            Event::Unprocessed { token } if self.pool.connections[connection as usize].is_leaving => self.resend(token),
            Event::Unprocessed { token } => self.retry(token, Outcome::Refused),
            Event::Malformed { token } => {
                self.reasons.tell(Kind::Malformed, &"an answer that breaks the rules of its stream");
                self.land_unanswered(token, Outcome::Malformed);
            }
            Event::GoAway { last, .. } => {
                let carrier = &mut self.pool.connections[connection as usize];
                carrier.closing = true;
                // A server that has processed nothing at all may do so for ever: that counts against the requests.
                carrier.is_leaving = last > 0;
            }
        }
    }

    /// Give up one stream, where there are streams; whether there are.
    pub fn cancel_stream(&mut self, connection: u32, flight: u32) -> bool {
        let layers = self.pool.connections[connection as usize].layers.as_deref_mut();
        let Some(http2) = layers.and_then(|layers| layers.http2.as_mut()) else {
            return false;
        };
        http2.cancel(flight);
        self.land_unanswered(flight, Outcome::Timeout);
        self.flush(connection);
        if self.pool.is_open(connection) {
            self.pool.settle(connection);
        }
        true
    }
}
