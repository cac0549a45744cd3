//! HTTP/1.1: assigns received bytes to the requests of a connection, which are answered in order.

use redline_traffic::Outcome;
use redline_wire::{Answer, Heads, MessageRules, ParsedAnswer, StreamSoFar};

use super::activity::Activity;
use super::connection::Connection;
use super::requests::Requests;
use super::streams::Fate;
use crate::ids::PendingId;

/// The result of reading the answers on a connection.
pub struct AnswersRead {
    /// Whether at least one answer is complete.
    pub any: bool,
    pub end: ReadEnd,
}

/// Why reading ended.
pub enum ReadEnd {
    /// All bytes were read, and more may arrive.
    AllRead,
    /// As `AllRead`, and the peer wants the body that was kept back.
    Continue,
    /// No more answers arrive on the connection, and none is missing.
    LastAnswer,
    /// All events of a stream that count have arrived, and its end has not.
    StreamDone,
    /// The peer ended the connection while no request was in flight.
    Idle,
    /// The peer waited too long for a request, and did not see that a request was in flight.
    WaitedTooLong,
    /// Bytes arrived that nobody requested: without a request in flight, or after an answer but not the beginning of the next.
    Surplus,
    /// The peer sends no more, but the answer is not complete.
    CutOff,
    /// A message makes the answer wrong, for this reason.
    Wrong(String),
    Malformed,
}

/// Read the answers on a connection.
#[inline]
pub fn read(
    mut bytes: &[u8],
    connection: &mut Connection,
    requests: &mut Requests,
    heads: &mut Heads,
    now_ns: u64,
    activity: &mut Activity,
) -> AnswersRead {
    let mut any = false;
    let end = loop {
        if bytes.is_empty() {
            break ReadEnd::AllRead;
        }
        let Some(pending) = connection.first_pending() else {
            break if is_request_timeout(bytes) { ReadEnd::Idle } else { ReadEnd::Surplus };
        };
        let crossed = connection.may_have_crossed();
        let options = requests.read_options(pending);
        let parsed = connection.parse(bytes, options, heads);
        if options.events.is_some() {
            let so_far = match &parsed {
                Ok(Some(ParsedAnswer { answer, .. })) => StreamSoFar::of(answer),
                Ok(None) | Err(_) => connection.stream(),
            };
            let is_done = so_far.is_some_and(|so_far| requests.follow(pending, so_far, now_ns, activity));
            if options.messages.is_some_and(MessageRules::read_values)
                && let Err(why) = requests.read(pending, connection.take_values(), now_ns, activity)
            {
                break ReadEnd::Wrong(why);
            }
            if is_done && !matches!(parsed, Ok(Some(_))) {
                // The rest of the answer does not count.
                let head = connection.head().to_vec();
                requests.end_stream(pending, connection, &head, now_ns, activity);
                any = true;
                break ReadEnd::StreamDone;
            }
        }
        match parsed {
            Ok(None) => {
                connection.glimpse(bytes);
                if connection.has_begun() {
                    requests.begin(pending, now_ns);
                }
                break if connection.hear(bytes) { ReadEnd::Continue } else { ReadEnd::AllRead };
            }
            Ok(Some(complete)) if complete.answer.status == 408 && crossed && requests.may_retry(pending) => {
                break ReadEnd::WaitedTooLong;
            }
            Ok(Some(complete)) => {
                let (last, rest) = bytes.split_at(complete.used);
                bytes = rest;
                any = true;
                take(pending, &complete.answer, last, connection, requests, now_ns, activity);
                if !complete.answer.keep_alive || is_early_error(&complete.answer, connection) {
                    break ReadEnd::LastAnswer;
                }
            }
            Err(why) if why.rule.is_no_beginning() && (any || connection.has_answered()) => break ReadEnd::Surplus,
            Err(why) => {
                let cause =
                    || connection.cause(why.to_string(), Some(why.at as u64), bytes).of(requests.name_of(pending));
                activity.failures.note(Outcome::Malformed, now_ns, cause);
                break ReadEnd::Malformed;
            }
        }
    };
    AnswersRead { any, end }
}

/// Whether an answer says that its server does not want the rest of its request, which is not yet written. The client then
/// writes no more and closes the connection (RFC 9112, section 9.5).
#[inline]
fn is_early_error(answer: &Answer, connection: &Connection) -> bool {
    answer.status >= 400 && connection.is_empty() && connection.is_blocked()
}

/// Whether these bytes, for which no request is in flight, are an answer 408: the peer waited too long for a request (RFC 9110,
/// section 15.5.9). Servers send it in one piece.
fn is_request_timeout(bytes: &[u8]) -> bool {
    bytes.starts_with(b"HTTP/1.1 408") || bytes.starts_with(b"HTTP/1.0 408")
}

/// The peer sends no more. That completes an answer without a declared length.
pub fn read_end(
    connection: &mut Connection,
    requests: &mut Requests,
    now_ns: u64,
    activity: &mut Activity,
) -> AnswersRead {
    let Some(pending) = connection.first_pending() else {
        return AnswersRead { any: false, end: ReadEnd::Idle };
    };
    let Some(answer) = connection.parse_end(requests.read_options(pending)) else {
        return AnswersRead { any: false, end: ReadEnd::CutOff };
    };
    if let Some(so_far) = StreamSoFar::of(&answer) {
        requests.follow(pending, so_far, now_ns, activity);
        if let Err(why) = requests.read(pending, connection.take_values(), now_ns, activity) {
            return AnswersRead { any: false, end: ReadEnd::Wrong(why) };
        }
    }
    let last = Answer { keep_alive: false, ..answer };
    take(pending, &last, &[], connection, requests, now_ns, activity);
    AnswersRead { any: true, end: ReadEnd::LastAnswer }
}

/// An answer is complete. `piece` is the last piece of it.
#[inline]
fn take(
    pending: PendingId,
    answer: &Answer,
    piece: &[u8],
    connection: &mut Connection,
    requests: &mut Requests,
    now_ns: u64,
    activity: &mut Activity,
) {
    let pending = requests.remove(pending, Fate::Complete, connection, now_ns, activity);
    requests.judge(
        &pending,
        answer,
        connection.head(),
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
        // The server announced that it processes no request after this answer (RFC 9112, section 9.6): they are written again
        // on another connection.
        requests.resend_all(connection, now_ns, activity);
    }
}
