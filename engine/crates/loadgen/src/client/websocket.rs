//! WebSocket: assigns received messages to the messages of a connection, which are answered in order.

use redline_traffic::Outcome;
use redline_websocket::{Event, Kind, Rule, close_code_name};
use redline_wire::Answer;

use super::activity::{Activity, ClientEvent};
use super::connection::Connection;
use super::layers::Layers;
use super::requests::Requests;
use super::streams::Fate;

/// The status with which a WebSocket is opened, which a check shows.
pub const SWITCHING_PROTOCOLS: u16 = 101;
/// The same over HTTP/2.
const CONNECTED: u16 = 200;

/// The result of reading the messages on a connection.
pub struct MessagesRead {
    /// Whether a message was answered.
    pub any: bool,
    pub end: ReadEnd,
}

/// Why reading ended.
pub enum ReadEnd {
    /// All bytes were read, and more may arrive.
    AllRead,
    /// All messages have come that a user listens to.
    Enough,
    /// A message to a user who listens is wrong.
    Wrong(String),
    /// The server closes the connection, for this reason and with this code.
    Closed { why: String, code: Option<u16> },
    /// The server breaks a rule.
    Broken(Rule),
}

/// Read the messages on a connection, whose layers were taken from it.
pub fn read(
    mut bytes: &[u8],
    layers: &mut Layers,
    connection: &mut Connection,
    requests: &mut Requests,
    now_ns: u64,
    activity: &mut Activity,
) -> MessagesRead {
    let Layers { websocket: Some(session), record, head, greeting_left, stream, .. } = layers else {
        return MessagesRead { any: false, end: ReadEnd::AllRead };
    };
    let status = if stream.is_some() { CONNECTED } else { SWITCHING_PROTOCOLS };
    let mut any = false;
    let is_closing = session.is_closing();
    let end = loop {
        match session.next(&mut bytes) {
            Ok(None) => break ReadEnd::AllRead,
            Ok(Some(Event::Ping | Event::Pong)) => {}
            Ok(Some(Event::Message(..))) if is_closing => {}
            Ok(Some(Event::Message(..))) if *greeting_left > 0 => *greeting_left -= 1,
            Ok(Some(Event::Message(kind, payload))) => {
                let Some(pending) = connection.first_pending() else {
                    activity.events.push(ClientEvent::Surplus);
                    continue;
                };
                any = true;
                if requests.listens_on(pending).is_some() {
                    match requests.pushed(pending, payload, now_ns, activity) {
                        Ok(false) => continue,
                        Ok(true) => {}
                        Err(why) => break ReadEnd::Wrong(why),
                    }
                    requests.end_stream(pending, connection, head, now_ns, activity);
                    if let Some(mut record) = record.take() {
                        record.data(payload);
                        activity.recorded = Some((recorded(status, payload), record));
                    }
                    break ReadEnd::Enough;
                }
                let pending = requests.remove(pending, Fate::Complete, connection, now_ns, activity);
                if let Some(mut record) = record.take() {
                    record.data(payload);
                    activity.recorded = Some((recorded(status, payload), record));
                }
                requests.judge_message(&pending, kind, payload, now_ns, activity);
            }
            Ok(Some(Event::Close(close))) => {
                let mut why = match close.code {
                    Some(code) => format!("the server closed the WebSocket with {code} ({})", close_code_name(code)),
                    None => "the server closed the WebSocket without a code".to_owned(),
                };
                if !close.reason.is_empty() {
                    why.push_str(": ");
                    why.extend(close.reason.chars().map(|char| if char.is_control() { ' ' } else { char }));
                }
                break ReadEnd::Closed { why, code: close.code };
            }
            Err(rule) => {
                if let Some(pending) = connection.first_pending() {
                    let cause = || connection.cause(rule.to_string(), None, bytes).of(requests.name_of(pending));
                    activity.failures.note(Outcome::Malformed, now_ns, cause);
                }
                break ReadEnd::Broken(rule);
            }
        }
    };
    if !matches!(end, ReadEnd::Enough)
        && !session.is_between()
        && let Some(pending) = connection.first_pending()
    {
        requests.begin(pending, now_ns);
    }
    MessagesRead { any, end }
}

/// The message that answers a check.
fn recorded(status: u16, payload: &[u8]) -> Answer {
    Answer {
        status,
        grpc_status: None,
        body_length: payload.len() as u64,
        body_sha256: None,
        events: None,
        keep_alive: true,
    }
}

/// How an echo differs from the message, in words; `None` if it does not.
pub fn difference(sent: (Kind, &[u8]), answer: (Kind, &[u8])) -> Option<String> {
    const SHOWN: usize = 48;
    let name = |kind| if kind == Kind::Text { "text" } else { "binary" };
    if sent == answer {
        return None;
    }
    if sent.1 == answer.1 {
        return Some(format!("a {} message in place of a {} message", name(answer.0), name(sent.0)));
    }
    let shown = |bytes: &[u8]| {
        let more = if bytes.len() > SHOWN { "…" } else { "" };
        format!("{:?}{more}", String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN)]))
    };
    let lengths = format!("{} bytes in place of {}", answer.1.len(), sent.1.len());
    Some(format!("the message {} ({lengths}) in place of the echo of {}", shown(answer.1), shown(sent.1)))
}
