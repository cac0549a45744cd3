//! What a client does with the bytes that arrive on its connections, and with their end.

use std::io;

use redline_http2::End;
use redline_traffic::Outcome;

use super::activity::{Activity, ClientEvent};
use super::connection::Connection;
use super::glimpse::ended_early;
use super::http1::{self, AnswersRead, ReadEnd};
use super::http2;
use super::layers::outcome_of;
use super::listening::Rest;
use super::pool::{NORMAL_CLOSURE, no_websocket};
use super::sending::Client;
use super::websocket::{self, MessagesRead};
use crate::ids::ConnectionId;
use crate::io::Io;

impl<I: Io> Client<I> {
    /// Bytes arrived on an open connection.
    #[inline]
    pub(super) fn received(
        &mut self,
        connection: ConnectionId,
        bytes: &[u8],
        more: bool,
        now_ns: u64,
        activity: &mut Activity,
    ) {
        activity.bytes_received += bytes.len();
        let reader = self.pool.connection_mut(connection);
        if !reader.has_layers() {
            return self.take_answers(connection, bytes, more, now_ns, activity);
        }
        let Some(tls) = reader.tls_mut() else {
            if reader.speaks_websocket() {
                return self.take_websocket(connection, bytes, now_ns, activity);
            }
            return self.take_frames(connection, bytes, now_ns, activity);
        };
        let mut plain = std::mem::take(&mut self.plain);
        plain.clear();
        match tls.feed(bytes, &mut plain) {
            Ok(fed) => {
                if reader.http2().is_some() {
                    self.take_frames(connection, &plain, now_ns, activity);
                } else if reader.speaks_websocket() {
                    self.take_websocket(connection, &plain, now_ns, activity);
                } else if !plain.is_empty() {
                    self.take_answers(connection, &plain, more || fed.closed, now_ns, activity);
                }
                if fed.closed && self.pool.is_open(connection) {
                    self.end_of_stream(connection, now_ns, activity);
                }
            }
            Err(why) => {
                // The handshake had seemed complete, but the server wants a certificate of the client.
                let is_refusal = matches!(why, redline_tls::Error::Refused { .. });
                let outcome = if is_refusal { Outcome::Tls } else { Outcome::Malformed };
                self.fail(connection, outcome, |_| why.to_string(), now_ns, activity);
            }
        }
        self.plain = plain;
    }

    /// Read the answers on a connection. `more`: more bytes, or the end of the stream, follow immediately.
    #[inline]
    fn take_answers(
        &mut self,
        connection: ConnectionId,
        bytes: &[u8],
        more: bool,
        now_ns: u64,
        activity: &mut Activity,
    ) {
        let reader = self.pool.connection_mut(connection);
        let read = http1::read(bytes, reader, &mut self.requests, &mut self.heads, now_ns, activity);
        // The last answer is complete and read, so a reset cuts nothing off. It leaves no TIME_WAIT here, which would hold a
        // port for a minute. If the peer ended the connection first, the TIME_WAIT is the peer's.
        self.act_on(connection, &read, !more, now_ns, activity);
    }

    /// The peer sends no more.
    fn end_of_stream(&mut self, connection: ConnectionId, now_ns: u64, activity: &mut Activity) {
        let reader = self.pool.connection_mut(connection);
        if let Some(handshake) = reader.handshake() {
            if handshake.is_unanswered() && reader.may_have_crossed() {
                let reason = |_: &Connection| "the server closed the connection".to_owned();
                return self.cut_off(connection, Outcome::Closed, reason, now_ns, activity);
            }
            let why = no_websocket(handshake, Outcome::Closed, "the server closed the connection");
            return self.fail(connection, why.outcome(), |_| why.to_string(), now_ns, activity);
        }
        if reader.is_websocket() {
            if reader.is_empty() {
                return self.pool.ended_idle(connection, false, now_ns);
            }
            return self.cut_off(connection, Outcome::Closed, Connection::end_of_websocket, now_ns, activity);
        }
        let read = http1::read_end(reader, &mut self.requests, now_ns, activity);
        self.act_on(connection, &read, false, now_ns, activity);
    }

    /// Act on the result of reading answers. `reset`: how to close the connection after its last answer.
    #[inline]
    fn act_on(
        &mut self,
        connection: ConnectionId,
        read: &AnswersRead,
        reset: bool,
        now_ns: u64,
        activity: &mut Activity,
    ) {
        if read.any {
            self.pool.answered(connection, now_ns);
        }
        match &read.end {
            ReadEnd::AllRead => {
                if self.pool.is_open(connection) {
                    self.pool.settle(connection);
                }
            }
            ReadEnd::Continue => {
                self.write(connection, now_ns, activity);
                if self.pool.is_open(connection) {
                    self.pool.settle(connection);
                }
            }
            ReadEnd::LastAnswer => self.pool.lost(connection, reset, now_ns),
            ReadEnd::StreamDone => self.pool.drop_socket(connection, true),
            ReadEnd::Idle => self.pool.ended_idle(connection, reset, now_ns),
            ReadEnd::WaitedTooLong | ReadEnd::CutOff => {
                self.cut_off(connection, Outcome::Closed, |carrier| ended_early(carrier.glimpsed()), now_ns, activity);
            }
            ReadEnd::Surplus => self.surplus(connection, now_ns, activity),
            ReadEnd::Wrong(why) => {
                self.fail(connection, Outcome::UnexpectedBody, |_| why.clone(), now_ns, activity);
            }
            // The reason was recorded where the bytes are.
            ReadEnd::Malformed => self.fail(connection, Outcome::Malformed, |_| String::new(), now_ns, activity),
        }
    }

    /// Read what arrived on a connection that is a WebSocket, or becomes one. Requests of HTTP pay nothing for it.
    #[inline(never)]
    fn take_websocket(&mut self, connection: ConnectionId, bytes: &[u8], now_ns: u64, activity: &mut Activity) {
        let reader = self.pool.connection_mut(connection);
        if reader.handshake().is_some() {
            match self.listen(connection, bytes, now_ns, activity) {
                Ok(Some(Rest { bytes, end })) => {
                    self.take_messages(connection, &bytes, now_ns, activity);
                    if let Some(end) = end
                        && self.pool.is_open(connection)
                    {
                        return self.stopped(connection, &end, now_ns, activity);
                    }
                }
                Ok(None) => {}
                Err(why) => return self.fail(connection, why.outcome(), |_| why.to_string(), now_ns, activity),
            }
        } else if let Some(stream) = reader.stream_mut() {
            let mut carried = std::mem::take(&mut self.carried);
            carried.clear();
            let end = stream.feed(bytes, &mut carried);
            self.take_messages(connection, &carried, now_ns, activity);
            self.carried = carried;
            if let Err(end) = end
                && self.pool.is_open(connection)
            {
                return self.stopped(connection, &end, now_ns, activity);
            }
            // A peer that goes away accepts no further stream on the connection, and keeps that which there is.
            if self.pool.is_open(connection)
                && self.pool.connection(connection).is_empty()
                && !self.pool.connection(connection).is_websocket()
                && self.pool.connection_mut(connection).stream_mut().is_some_and(|stream| stream.gone().is_some())
            {
                return self.pool.ended_idle(connection, true, now_ns);
            }
        } else {
            return self.take_messages(connection, bytes, now_ns, activity);
        }
        // HTTP/2 answers frames, and opens its windows again.
        if self.pool.is_open(connection) && self.pool.connection_mut(connection).stream_mut().is_some() {
            self.write(connection, now_ns, activity);
            if self.pool.is_open(connection) {
                self.pool.settle(connection);
            }
        }
    }

    /// The stream of an open WebSocket has ended without a close frame.
    fn stopped(&mut self, connection: ConnectionId, end: &End, now_ns: u64, activity: &mut Activity) {
        let reader = self.pool.connection(connection);
        if reader.is_empty() {
            return self.pool.ended_idle(connection, true, now_ns);
        }
        let why = |_: &Connection| match end {
            End::Ended => "the stream ended without a close frame, before the answer".to_owned(),
            _ => end.to_string(),
        };
        self.fail(connection, outcome_of(end), why, now_ns, activity);
    }

    /// Read the messages on a WebSocket, and write the frames that they require in return.
    fn take_messages(&mut self, connection: ConnectionId, bytes: &[u8], now_ns: u64, activity: &mut Activity) {
        let reader = self.pool.connection_mut(connection);
        let Some(mut layers) = reader.take_layers() else {
            return;
        };
        let MessagesRead { any, end } =
            websocket::read(bytes, &mut layers, reader, &mut self.requests, now_ns, activity);
        let session = layers.websocket.as_mut();
        let (owes_pong, volume) = session.map_or_else(Default::default, |it| (it.owes_pong(), it.take_volume()));
        if volume.packed > 0 {
            activity.events.push(ClientEvent::Volume(volume));
        }
        reader.set_layers(layers);
        if any {
            self.pool.answered(connection, now_ns);
        }
        match end {
            websocket::ReadEnd::AllRead => {
                let writer = self.pool.connection_mut(connection);
                // The pongs to a peer that does not read do not pile up.
                if owes_pong && !writer.is_blocked() {
                    writer.stage_frames(|session, out| {
                        session.write_pong(out);
                    });
                    self.write(connection, now_ns, activity);
                }
                if self.pool.is_open(connection) {
                    self.pool.settle(connection);
                }
            }
            websocket::ReadEnd::Enough => self.pool.drop_socket(connection, true),
            websocket::ReadEnd::Wrong(why) => {
                self.say_close(connection, Some(NORMAL_CLOSURE), activity);
                self.fail(connection, Outcome::UnexpectedBody, |_| why, now_ns, activity);
            }
            websocket::ReadEnd::Closed { why, code } => {
                self.say_close(connection, code, activity);
                let Some(pending) = self.pool.connection(connection).first_pending() else {
                    return self.pool.ended_idle(connection, false, now_ns);
                };
                let why = [why, self.requests.came(pending)].join("; ");
                self.fail(connection, Outcome::Closed, |_| why.trim_end_matches("; ").to_owned(), now_ns, activity);
            }
            websocket::ReadEnd::Broken(rule) => {
                self.say_close(connection, Some(rule.close_code()), activity);
                // The reason was recorded where the bytes are.
                self.fail(connection, Outcome::Malformed, |_| String::new(), now_ns, activity);
            }
        }
    }

    /// Send the peer a close frame, unless the kernel is still writing other bytes.
    fn say_close(&mut self, connection: ConnectionId, code: Option<u16>, activity: &mut Activity) {
        let writer = self.pool.connection_mut(connection);
        writer.stage_frames(|session, out| session.write_close(code, out));
        activity.bytes_sent += self.pool.flush(connection).unwrap_or(0);
    }

    /// Read the frames on a connection, and write the frames that they require in return.
    fn take_frames(&mut self, connection: ConnectionId, bytes: &[u8], now_ns: u64, activity: &mut Activity) {
        let reader = self.pool.connection_mut(connection);
        let events = &mut self.http2_events;
        let fed = reader.http2_mut().map(|session| session.feed(bytes, events));
        if http2::handle(events, reader, &mut self.requests, now_ns, activity) {
            self.pool.answered(connection, now_ns);
        }
        if let Some(Err(why)) = fed {
            // Sends the peer a GOAWAY (RFC 9113, section 5.4.1), unless the kernel is still writing other bytes.
            activity.bytes_sent += self.pool.flush(connection).unwrap_or(0);
            if why.is_surplus() {
                return self.surplus(connection, now_ns, activity);
            }
            return self.fail(connection, Outcome::Malformed, |_| why.to_string(), now_ns, activity);
        }
        if self.pool.is_open(connection) {
            self.write(connection, now_ns, activity);
        }
        if self.pool.is_open(connection) {
            self.settle_streams(connection, now_ns);
        }
    }

    /// A peer that accepts no more requests on a connection without streams has ended it. If it answered none on it, the next
    /// connections are opened more slowly.
    fn settle_streams(&mut self, connection: ConnectionId, now_ns: u64) {
        if self.pool.connection(connection).is_empty() && self.pool.has_served(connection) {
            return self.pool.ended_idle(connection, true, now_ns);
        }
        self.pool.settle(connection);
    }

    /// The socket has ended. Over TLS this completes no answer: only the peer's `close_notify` does (RFC 9112, section 9.8).
    pub(super) fn ended(&mut self, connection: ConnectionId, now_ns: u64, activity: &mut Activity) {
        let carrier = self.pool.connection(connection);
        if carrier.is_tls() && !carrier.is_empty() {
            let reason = |carrier: &Connection| format!("{}, without close_notify", ended_early(carrier.glimpsed()));
            return self.cut_off(connection, Outcome::Closed, reason, now_ns, activity);
        }
        self.end_of_stream(connection, now_ns, activity);
    }

    /// The connection failed.
    pub(super) fn broken(&mut self, connection: ConnectionId, why: &io::Error, now_ns: u64, activity: &mut Activity) {
        if !self.pool.is_open(connection) {
            return;
        }
        if self.pool.connection(connection).is_empty() {
            return self.pool.ended_idle(connection, true, now_ns);
        }
        let reason = |carrier: &Connection| match carrier.glimpsed() {
            0 => why.to_string(),
            bytes => format!("{why}, after {bytes} bytes of the answer"),
        };
        self.cut_off(connection, Outcome::Reset, reason, now_ns, activity);
    }

    /// The peer ended a connection with requests in flight. Requests that it may not have seen are written again on another
    /// connection.
    fn cut_off(
        &mut self,
        connection: ConnectionId,
        outcome: Outcome,
        reason: impl Fn(&Connection) -> String,
        now_ns: u64,
        activity: &mut Activity,
    ) {
        let carrier = self.pool.connection_mut(connection);
        if carrier.may_have_crossed() {
            let cause = |carrier: &Connection| carrier.cause(reason(carrier), None, &[]);
            self.requests.retry_all(carrier, outcome, cause, now_ns, activity);
            self.pool.lost(connection, true, now_ns);
        } else if carrier.refuses_writes() || carrier.is_blocked() {
            // The kernel reports a reset once, perhaps to a write in progress; then only the end is left to read.
            let reason = |_: &Connection| "the connection ended while the request was written".to_owned();
            self.fail(connection, Outcome::Reset, reason, now_ns, activity);
        } else {
            self.fail(connection, outcome, reason, now_ns, activity);
        }
    }

    /// Bytes arrived that nobody requested. The answers before them are right. What follows is unknown, so the requests in
    /// flight are written again on another connection. This repeats only as often as answers precede the bytes.
    fn surplus(&mut self, connection: ConnectionId, now_ns: u64, activity: &mut Activity) {
        activity.events.push(ClientEvent::Surplus);
        self.requests.resend_all(self.pool.connection_mut(connection), now_ns, activity);
        self.pool.lost(connection, true, now_ns);
    }

    /// The connection cannot be used any more. Its requests end with this outcome.
    fn fail(
        &mut self,
        connection: ConnectionId,
        outcome: Outcome,
        reason: impl FnOnce(&Connection) -> String,
        now_ns: u64,
        activity: &mut Activity,
    ) {
        let carrier = self.pool.connection_mut(connection);
        if let Some(first) = carrier.first_pending() {
            let request = self.requests.name_of(first);
            activity.failures.note(outcome, now_ns, || carrier.cause(reason(carrier), None, &[]).of(request));
            self.requests.fail_all(carrier, outcome, now_ns, activity);
        }
        self.pool.lost(connection, true, now_ns);
    }
}
