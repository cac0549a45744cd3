//! HTTP/2: what received frames mean for the requests of a connection, each of which is a stream.

use redline_http2::{Event, code_name};
use redline_traffic::Outcome;
use redline_wire::Answer;

use super::activity::Activity;
use super::connection::Connection;
use super::exchanges::Exchanges;
use crate::failure_log::{FailureKind, FailureLog};
use crate::ids::FlightId;

/// Handle what the session of a connection reported; whether an answer is among it.
pub fn handle(
    events: &mut Vec<Event>,
    connection: &mut Connection,
    exchanges: &mut Exchanges,
    failures: &mut FailureLog,
    now_ns: u64,
    activity: &mut Activity,
) -> bool {
    let mut any_answer = false;
    for event in events.drain(..) {
        match event {
            Event::Answer { token, status, grpc_status, body_length, body_sha256, body } => {
                any_answer = true;
                let flight = exchanges.remove(FlightId(token), connection);
                let answer = Answer { status, grpc_status, body_length, body_sha256, keep_alive: true };
                exchanges.judge(&flight, &answer, body.as_deref().unwrap_or_default(), now_ns, activity);
            }
            Event::Refused { token, code } => {
                failures.report(
                    FailureKind::Refused,
                    &format_args!("the server reset the stream with {}", code_name(code)),
                );
                exchanges.fail(FlightId(token), connection, Outcome::Refused, activity);
            }
            Event::Unprocessed { token } if connection.is_leaving() => {
                exchanges.resend(FlightId(token), connection, activity);
            }
            Event::Unprocessed { token } => exchanges.retry(FlightId(token), connection, Outcome::Refused, activity),
            Event::Malformed { token, rule, field } => {
                match field {
                    Some(field) => failures.report(FailureKind::Malformed, &format_args!("the field {field}: {rule}")),
                    None => failures.report(FailureKind::Malformed, &rule),
                }
                exchanges.fail(FlightId(token), connection, Outcome::Malformed, activity);
            }
            Event::GoAway { last, .. } => connection.go_away(last),
        }
    }
    any_answer
}
