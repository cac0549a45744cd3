//! HTTP/1.1: what received bytes mean for the requests of a connection, which are answered in order.

use redline_traffic::Outcome;
use redline_wire::Answer;

use super::{Activity, Client};
use crate::ids::{ConnectionId, FlightId};
use crate::io::Io;

impl<I: Io> Client<I> {
    /// Read the answers on a connection. `more`: more bytes, or the end of the stream, follow at once.
    #[inline]
    pub(super) fn take_answers(
        &mut self,
        connection: ConnectionId,
        mut bytes: &[u8],
        more: bool,
        now_ns: u64,
        activity: &mut Activity,
    ) {
        while !bytes.is_empty() {
            let reader = self.pool.connection_mut(connection);
            let Some(flight) = reader.first_flight() else {
                // An answer without a request.
                return self.pool.lost(connection, true, now_ns);
            };
            let request = self.flights.get(flight).request as usize;
            match reader.parse(bytes, self.scenario.read_options(request), &mut self.heads) {
                Ok(None) => break,
                Ok(Some(complete)) if complete.used < bytes.len() && reader.in_flight() == 1 => {
                    // There is no request for what follows the answer, so where the answer ends is not certain either.
                    let why = &"bytes follow the answer that nobody asked for";
                    return self.malformed(connection, why, now_ns, activity);
                }
                Ok(Some(complete)) => {
                    bytes = &bytes[complete.used..];
                    if !self.answered(connection, flight, &complete.answer, more, now_ns, activity) {
                        return;
                    }
                }
                Err(why) => return self.malformed(connection, &why, now_ns, activity),
            }
        }
        if self.pool.is_open(connection) {
            self.pool.settle(connection);
        }
    }

    /// An answer is complete; whether the connection stays open.
    #[inline]
    fn answered(
        &mut self,
        connection: ConnectionId,
        flight: FlightId,
        answer: &Answer,
        more: bool,
        now_ns: u64,
        activity: &mut Activity,
    ) -> bool {
        self.pool.answered(connection);
        let carrier = self.pool.connection_mut(connection);
        let flight = self.flights.remove(flight, carrier.queue_mut());
        let judged = self.scenario.judge(flight.request as usize, answer, carrier.body());
        carrier.forget_body();
        Self::judged(&flight, judged, answer.status, now_ns, activity);
        if !answer.keep_alive {
            // The server announced that it processes nothing behind this answer (RFC 9112, section 9.6): that is written again on
            // another connection.
            while let Some(flight) = self.pool.connection(connection).first_flight() {
                self.resend(flight, activity);
            }
            // The answer is complete and read, so a reset cuts nothing off. It leaves no TIME_WAIT here, which would hold a port
            // for a minute. Where the peer has ended first, the TIME_WAIT is the peer's.
            self.pool.lost(connection, !more, now_ns);
        }
        answer.keep_alive
    }

    /// The peer sends no more. That completes an answer whose length was not given.
    pub(super) fn end_of_stream(&mut self, connection: ConnectionId, now_ns: u64, activity: &mut Activity) {
        let reader = self.pool.connection_mut(connection);
        let Some(flight) = reader.first_flight() else {
            return self.pool.lost(connection, false, now_ns);
        };
        let options = self.scenario.read_options(self.flights.get(flight).request as usize);
        match reader.parse_end(options) {
            Some(answer) => {
                let last = Answer { keep_alive: false, ..answer };
                self.answered(connection, flight, &last, true, now_ns, activity);
            }
            None => self.fail(connection, Outcome::Closed, now_ns, activity),
        }
    }
}
