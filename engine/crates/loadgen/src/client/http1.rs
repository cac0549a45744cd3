//! HTTP/1.1: what received bytes mean for the requests of a connection, which are answered in order.

use redline_traffic::Outcome;
use redline_wire::{Answer, Heads};

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
    Malformed,
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
            Ok(None) => {
                connection.glimpse(bytes);
                break ReadEnd::AllRead;
            }
            Ok(Some(complete)) if complete.used < bytes.len() && connection.in_flight() == 1 => {
                let at = connection.glimpsed() + complete.used as u64;
                let reason = "bytes follow the answer that nobody asked for".to_owned();
                activity.failures.note(Outcome::Malformed, now_ns, || connection.cause(reason, Some(at), bytes));
                break ReadEnd::Surplus;
            }
            Ok(Some(complete)) => {
                let (last, rest) = bytes.split_at(complete.used);
                bytes = rest;
                any = true;
                take(flight, &complete.answer, last, connection, exchanges, now_ns, activity);
                if !complete.answer.keep_alive {
                    break ReadEnd::LastAnswer;
                }
            }
            Err(why) => {
                let cause = || connection.cause(why.to_string(), None, bytes);
                activity.failures.note(Outcome::Malformed, now_ns, cause);
                break ReadEnd::Malformed;
            }
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
    take(flight, &last, &[], connection, exchanges, now_ns, activity);
    AnswersRead { any: true, end: ReadEnd::LastAnswer }
}

/// An answer is complete. `piece` is what came of it last.
#[inline]
fn take(
    flight: FlightId,
    answer: &Answer,
    piece: &[u8],
    connection: &mut Connection,
    exchanges: &mut Exchanges,
    now_ns: u64,
    activity: &mut Activity,
) {
    let flight = exchanges.remove(flight, connection);
    exchanges.judge(
        &flight,
        answer,
        connection.body(),
        |reason| connection.cause(reason, None, piece),
        now_ns,
        activity,
    );
    if let Some(record) = connection.take_record() {
        activity.recorded = Some((*answer, record));
    }
    connection.forget_body();
    connection.forget_glimpse();
    if !answer.keep_alive {
        // The server announced that it processes nothing behind this answer (RFC 9112, section 9.6): that is written again on
        // another connection.
        while let Some(flight) = connection.first_flight() {
            exchanges.resend(flight, connection, activity);
        }
    }
}
