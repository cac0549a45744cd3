//! The server's side of a WebSocket: an answer 101, and then the echo of each message.

use redline_websocket::{Deflate, Event, Kind, Role, Session, accept_value};

/// The code of a close frame without one (RFC 6455, section 7.4.1).
const NO_STATUS: u16 = 1005;

/// What is to be done for a frame of the client.
#[derive(Debug, PartialEq, Eq)]
pub enum Received {
    /// A message of this many bytes, whose echo was added.
    Message(usize),
    /// What needs no time: a pong was added, or nothing.
    Control,
    /// The client closes the connection with this code, or breaks a rule. A close frame was added.
    Closed(Option<u16>),
}

/// A WebSocket, open on the server's side.
#[derive(Debug)]
pub struct WebSocket {
    session: Session,
    /// Memory for a message, until its echo is written.
    message: Vec<u8>,
    /// It gets messages that answer none, and its own are not echoed.
    pub is_pushing: bool,
}

impl WebSocket {
    pub fn new(deflate: Option<Deflate>) -> Self {
        Self { session: Session::new(Role::Server, 0).compressing(deflate), message: Vec::new(), is_pushing: false }
    }

    /// Reads a frame from the start of `bytes`, which are shortened by it, and adds what answers it; `None` when more are needed.
    pub fn receive(&mut self, bytes: &mut &[u8], answers: &mut Vec<u8>) -> Option<Received> {
        self.message.clear();
        let kind = match self.session.next(bytes) {
            Ok(None) => return None,
            Ok(Some(Event::Message(kind, payload))) => {
                self.message.extend_from_slice(payload);
                kind
            }
            Ok(Some(Event::Ping)) => {
                self.session.write_pong(answers);
                return Some(Received::Control);
            }
            Ok(Some(Event::Pong)) => return Some(Received::Control),
            Ok(Some(Event::Close(close))) => {
                let code = close.code;
                self.session.write_close(code, answers);
                return Some(Received::Closed(Some(code.unwrap_or(NO_STATUS))));
            }
            Err(rule) => {
                self.session.write_close(Some(rule.close_code()), answers);
                return Some(Received::Closed(None));
            }
        };
        self.session.write(kind, &self.message, answers);
        Some(Received::Message(self.message.len()))
    }

    /// Adds a text that answers nothing.
    pub fn push(&mut self, text: &str, answers: &mut Vec<u8>) {
        self.session.write(Kind::Text, text.as_bytes(), answers);
    }

    /// Adds a close frame: the server goes away.
    pub fn go_away(&mut self, answers: &mut Vec<u8>) {
        const GOING_AWAY: u16 = 1001;
        self.session.write_close(Some(GOING_AWAY), answers);
    }
}

/// The subprotocol that is chosen of those that are offered; empty for none.
pub fn first_of(subprotocols: &[u8]) -> &[u8] {
    subprotocols.split(|&byte| byte == b',').next().unwrap_or_default().trim_ascii()
}

/// Adds the answer that opens a WebSocket, to a request with this key and these subprotocols, of which the first is chosen.
pub fn open(key: &[u8], subprotocols: &[u8], deflate: Option<Deflate>, answers: &mut Vec<u8>) {
    answers.extend_from_slice(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n");
    let first = first_of(subprotocols);
    if !first.is_empty() {
        answers.extend_from_slice(b"Sec-WebSocket-Protocol: ");
        answers.extend_from_slice(first);
        answers.extend_from_slice(b"\r\n");
    }
    if let Some(deflate) = deflate {
        answers.extend_from_slice(format!("Sec-WebSocket-Extensions: {deflate}\r\n").as_bytes());
    }
    answers.extend_from_slice(b"Sec-WebSocket-Accept: ");
    answers.extend_from_slice(accept_value(key).as_bytes());
    answers.extend_from_slice(b"\r\n\r\n");
}
