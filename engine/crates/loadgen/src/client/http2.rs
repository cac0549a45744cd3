//! HTTP/2: what received frames mean for the requests of a connection, each of which is a stream.

use redline_http2::Event;
use redline_traffic::Outcome;
use redline_wire::Answer;

use super::{Activity, Client};
use crate::failure_log::FailureKind;
use crate::ids::{ConnectionId, FlightId};
use crate::io::Io;

impl<I: Io> Client<I> {
    /// Read the frames on a connection, and write what they require in return.
    pub(super) fn take_frames(&mut self, connection: ConnectionId, bytes: &[u8], now_ns: u64, activity: &mut Activity) {
        let mut events = std::mem::take(&mut self.http2_events);
        let fed = self.pool.connection_mut(connection).http2_mut().map(|http2| http2.feed(bytes, &mut events));
        for event in events.drain(..) {
            self.take_event(connection, event, now_ns, activity);
        }
        self.http2_events = events;
        if let Some(Err(why)) = fed {
            self.failures.report(FailureKind::Malformed, &why);
            // The peer is sent a GOAWAY (RFC 9113, section 5.4.1), unless the kernel still has other bytes in hand.
            activity.bytes_sent += self.pool.flush(connection).unwrap_or(0);
            return self.fail(connection, Outcome::Malformed, now_ns, activity);
        }
        if self.pool.is_open(connection) {
            self.write(connection, now_ns, activity);
        }
        if self.pool.is_open(connection) {
            self.settle_streams(connection, now_ns);
        }
    }

    /// A peer that takes no more requests on a connection without streams has ended it. If it answered none on it, the next
    /// connections are opened more slowly.
    fn settle_streams(&mut self, connection: ConnectionId, now_ns: u64) {
        if self.pool.connection(connection).is_empty() && self.pool.has_served(connection) {
            return self.pool.lost(connection, true, now_ns);
        }
        self.pool.settle(connection);
    }

    fn take_event(&mut self, connection: ConnectionId, event: Event, now_ns: u64, activity: &mut Activity) {
        match event {
            Event::Answer { token, status, body_length, body_sha256, body } => {
                self.pool.answered(connection);
                let flight = self.remove(FlightId(token));
                let answer = Answer { status, body_length, body_sha256, keep_alive: true };
                let body = body.as_deref().unwrap_or_default();
                let judged = self.scenario.judge(flight.request as usize, &answer, body);
                Self::judged(&flight, judged, status, now_ns, activity);
            }
            Event::Refused { token, code } => {
                self.failures.report(FailureKind::Refused, &format_args!("RST_STREAM with code {code}"));
                self.fail_flight(FlightId(token), Outcome::Refused, activity);
            }
            Event::Unprocessed { token } if self.pool.connection(connection).is_leaving() => {
                self.resend(FlightId(token), activity);
            }
            Event::Unprocessed { token } => self.retry(FlightId(token), Outcome::Refused, activity),
            Event::Malformed { token } => {
                self.failures.report(FailureKind::Malformed, &"an answer that breaks the rules of its stream");
                self.fail_flight(FlightId(token), Outcome::Malformed, activity);
            }
            Event::GoAway { last, .. } => self.pool.connection_mut(connection).go_away(last),
        }
    }

    /// Cancel the stream of a request that took too long; false when the connection has no streams.
    pub(super) fn cancel_stream(
        &mut self,
        connection: ConnectionId,
        flight: FlightId,
        now_ns: u64,
        activity: &mut Activity,
    ) -> bool {
        let Some(http2) = self.pool.connection_mut(connection).http2_mut() else {
            return false;
        };
        http2.cancel(flight.0);
        self.fail_flight(flight, Outcome::Timeout, activity);
        self.write(connection, now_ns, activity);
        if self.pool.is_open(connection) {
            self.pool.settle(connection);
        }
        true
    }
}
