//! HTTP/2: assigns received frames to the requests of a connection, each of which is a stream.

use redline_http2::{Event, code_name};
use redline_traffic::Outcome;
use redline_wire::Answer;

use super::activity::Activity;
use super::connection::Connection;
use super::requests::Requests;
use super::streams::Fate;
use crate::first_failures::Cause;
use crate::ids::PendingId;

/// Handle the events of a connection's session. Returns whether an answer is among them.
pub fn handle(
    events: &mut Vec<Event>,
    connection: &mut Connection,
    requests: &mut Requests,
    now_ns: u64,
    activity: &mut Activity,
) -> bool {
    let mut any_answer = false;
    // The outcome of a stream that has ended already.
    let mut ended = None;
    let mut events = events.drain(..).peekable();
    while let Some(event) = events.next() {
        if let Some(done) = ended.take()
            && event.token() == Some(done)
        {
            continue;
        }
        match event {
            Event::Begun { token } => requests.begin(PendingId(token), now_ns),
            Event::Stream { token, so_far, values, is_last } => {
                any_answer = true;
                let is_complete = requests.follow(PendingId(token), so_far, now_ns, activity);
                if let Err(why) = requests.read(PendingId(token), values, now_ns, activity) {
                    let request = requests.name_of(PendingId(token));
                    let cause = || Cause::words(why).of(request);
                    activity.failures.note(Outcome::UnexpectedBody, now_ns, cause);
                    if is_last {
                        ended = Some(token);
                    } else {
                        connection.cancel_stream(PendingId(token));
                    }
                    requests.fail(PendingId(token), connection, Outcome::UnexpectedBody, now_ns, activity);
                    continue;
                }
                if is_complete {
                    // Its fields are with its outcome, if that has come too.
                    let head = match events.peek() {
                        Some(Event::Answer { fields: Some(fields), .. }) if is_last => fields.to_vec(),
                        _ => connection.fields_of(PendingId(token)).to_vec(),
                    };
                    if is_last {
                        ended = Some(token);
                    } else {
                        connection.cancel_stream(PendingId(token));
                    }
                    requests.end_stream(PendingId(token), connection, &head, now_ns, activity);
                }
            }
            Event::Answer { token, status, grpc_status, body_length, body_sha256, events, body, fields } => {
                any_answer = true;
                let pending = requests.remove(PendingId(token), Fate::Complete, connection, now_ns, activity);
                let answer = Answer { status, grpc_status, body_length, body_sha256, events, keep_alive: true };
                let body = body.as_deref().unwrap_or_default();
                let head = fields.as_deref().unwrap_or_default();
                requests.judge(&pending, &answer, head, body, Cause::words, now_ns, activity);
                if let Some(record) = connection.http2_mut().and_then(redline_http2::Session::take_record) {
                    activity.recorded = Some((answer, record));
                }
            }
            Event::Refused { token, code } => {
                let request = requests.name_of(PendingId(token));
                let reason = || format!("the server reset the stream with {}", code_name(code));
                let cause = || Cause::words(reason()).of(request);
                activity.failures.note(Outcome::Refused, now_ns, cause);
                requests.fail(PendingId(token), connection, Outcome::Refused, now_ns, activity);
            }
            Event::Unprocessed { token } if connection.is_leaving() => {
                requests.resend(PendingId(token), connection, now_ns, activity);
            }
            Event::Unprocessed { token } => {
                let cause = |_: &Connection| Cause::words("the server refused to process it as often as it was sent");
                requests.retry(PendingId(token), connection, Outcome::Refused, cause, now_ns, activity);
            }
            Event::Malformed { token, rule, field } => {
                let reason = || match field {
                    Some(field) => format!("the field {field}: {rule}"),
                    None => rule.to_string(),
                };
                let request = requests.name_of(PendingId(token));
                activity.failures.note(Outcome::Malformed, now_ns, || Cause::words(reason()).of(request));
                requests.fail(PendingId(token), connection, Outcome::Malformed, now_ns, activity);
            }
            Event::GoAway { last, .. } => connection.go_away(last),
        }
    }
    any_answer
}
