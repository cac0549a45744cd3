//! HTTP/1.1: what received bytes mean for the requests of a connection, which are answered in order.

use redline_wire::{Answer, Heads, Malformed};

use super::activity::Activity;
use super::connection::Connection;
use super::exchanges::Exchanges;
use crate::ids::FlightId;

/// What reading the answers on a connection has shown.
pub struct AnswersRead {
    /// At least one answer is complete.
    pub any: bool,
    pub end: ReadEnd,
}

/// Why reading has ended.
pub enum ReadEnd {
    /// All bytes are read, and more may come.
    AllRead,
    /// No more answers come on the connection, and none is missing.
    LastAnswer,
    /// An answer came without a request.
    Unrequested,
    /// There is no request for what follows an answer, so where the answer ends is not certain either.
    Surplus,
    /// The peer sends no more, and the answer is not complete.
    CutOff,
    Malformed(Malformed),
}

/// Read the answers on a connection.
#[inline]
pub fn read(
    mut bytes: &[u8],
    connection: &mut Connection,
    exchanges: &mut Exchanges,
    heads: &mut Heads,
    now_ns: u64,
    activity: &mut Activity,
) -> AnswersRead {
    let mut any = false;
    let end = loop {
        if bytes.is_empty() {
            break ReadEnd::AllRead;
        }
        let Some(flight) = connection.first_flight() else {
            break ReadEnd::Unrequested;
        };
        match connection.parse(bytes, exchanges.read_options(flight), heads) {
            Ok(None) => break ReadEnd::AllRead,
            Ok(Some(complete)) if complete.used < bytes.len() && connection.in_flight() == 1 => break ReadEnd::Surplus,
            Ok(Some(complete)) => {
                bytes = &bytes[complete.used..];
                any = true;
                take(flight, &complete.answer, connection, exchanges, now_ns, activity);
                if !complete.answer.keep_alive {
                    break ReadEnd::LastAnswer;
                }
            }
            Err(why) => break ReadEnd::Malformed(why),
        }
    };
    AnswersRead { any, end }
}

/// The peer sends no more. That completes an answer whose length was not given.
pub fn read_end(
    connection: &mut Connection,
    exchanges: &mut Exchanges,
    now_ns: u64,
    activity: &mut Activity,
) -> AnswersRead {
    let Some(flight) = connection.first_flight() else {
        return AnswersRead { any: false, end: ReadEnd::LastAnswer };
    };
    let Some(answer) = connection.parse_end(exchanges.read_options(flight)) else {
        return AnswersRead { any: false, end: ReadEnd::CutOff };
    };
    let last = Answer { keep_alive: false, ..answer };
    take(flight, &last, connection, exchanges, now_ns, activity);
    AnswersRead { any: true, end: ReadEnd::LastAnswer }
}

/// An answer is complete.
#[inline]
fn take(
    flight: FlightId,
    answer: &Answer,
    connection: &mut Connection,
    exchanges: &mut Exchanges,
    now_ns: u64,
    activity: &mut Activity,
) {
    let flight = exchanges.remove(flight, connection);
    exchanges.judge(&flight, answer, connection.body(), now_ns, activity);
    connection.forget_body();
    if !answer.keep_alive {
        // The server announced that it processes nothing behind this answer (RFC 9112, section 9.6): that is written again on
        // another connection.
        while let Some(flight) = connection.first_flight() {
            exchanges.resend(flight, connection, activity);
        }
    }
}
