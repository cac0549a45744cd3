//! HTTP/2: what received frames mean for the requests of a connection, each of which is a stream.

use redline_http2::Event;
use redline_traffic::Outcome;
use redline_wire::Answer;

use super::activity::Activity;
use super::connection::Connection;
use super::exchanges::Exchanges;
use crate::first_failures::Cause;
use crate::ids::FlightId;

/// Handle what the session of a connection reported; whether an answer is among it.
pub fn handle(
    events: &mut Vec<Event>,
    connection: &mut Connection,
    exchanges: &mut Exchanges,
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
                let body = body.as_deref().unwrap_or_default();
                exchanges.judge(&flight, &answer, body, Cause::words, now_ns, activity);
                if let Some(record) = connection.http2_mut().and_then(redline_http2::Session::take_record) {
                    activity.recorded = Some((answer, record));
                }
            }
            Event::Refused { token, code } => {
                let cause = || Cause::words(format!("the server reset the stream with code {code} (RST_STREAM)"));
                activity.failures.note(Outcome::Refused, now_ns, cause);
                exchanges.fail(FlightId(token), connection, Outcome::Refused, activity);
            }
            Event::Unprocessed { token } if connection.is_leaving() => {
                exchanges.resend(FlightId(token), connection, activity);
            }
            Event::Unprocessed { token } => {
                let refused = (Outcome::Refused, "the server refused to process it as often as it was sent");
                exchanges.retry(FlightId(token), connection, refused, now_ns, activity);
            }
            Event::Malformed { token } => {
                let cause = || Cause::words("the answer breaks the rules of its stream (RFC 9113, 8.1.1)");
                activity.failures.note(Outcome::Malformed, now_ns, cause);
                exchanges.fail(FlightId(token), connection, Outcome::Malformed, activity);
            }
            Event::GoAway { last, .. } => connection.go_away(last),
        }
    }
    any_answer
}
