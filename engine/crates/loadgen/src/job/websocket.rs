//! Messages on a WebSocket.

use std::sync::Arc;

use redline_traffic::EngineError;
use redline_websocket::{DEFLATE_OFFER, Kind, MOST_MESSAGE_BYTES};
use redline_wire::{Body, Names, Payload, Template};
use serde::Deserialize;

use super::{Http, bad};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawWebSocket {
    #[serde(default)]
    subprotocols: Vec<String>,
    #[serde(default)]
    message: Option<RawKind>,
    answer: RawAnswer,
    #[serde(default)]
    greeting: u32,
    #[serde(default)]
    compression: bool,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RawKind {
    Text,
    Binary,
}

/// What answers a message: its echo, whatever message is next, or the messages of a user who only listens.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RawAnswer {
    Echo,
    Next,
    Listen,
}

/// How each connection becomes a WebSocket, and the message that is sent on it.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "they are independent, and all combinations occur")]
pub struct WebSocket {
    /// `None` where it varies, as it may in HTTP/1.1 for users who listen.
    pub opening: Option<Opening>,
    /// The subprotocols that are offered.
    pub subprotocols: Vec<String>,
    /// The user only listens: each request opens a connection of its own, whose messages are a stream.
    pub listens: bool,
    /// A message is sent.
    pub sends: bool,
    pub kind: Kind,
    pub message: Payload,
    /// The answer is right if it is the same message.
    pub is_echoed: bool,
    /// How many messages the server sends before the first that it is sent.
    pub greeting: u32,
    /// Compression is offered, and the server has to agree.
    pub compression: bool,
}

/// A name and a value.
type Field = (Box<[u8]>, Box<[u8]>);

/// The request that opens a WebSocket.
#[derive(Clone, Debug)]
pub enum Opening {
    /// In HTTP/1.1: an upgrade, without its key.
    Upgrade(Arc<[u8]>),
    /// In HTTP/2: the fields of an extended CONNECT.
    Connect(Arc<[Field]>),
}

impl Opening {
    /// The request that this template of a GET is made into; `None` if it varies.
    fn of(template: &Template) -> Option<Self> {
        if let Some(bytes) = template.fixed() {
            return Some(Self::Upgrade(Arc::clone(bytes)));
        }
        let fields = template.fixed_fields()?.iter().flat_map(|(name, value)| match name {
            b":method" => [Some((name, &b"CONNECT"[..])), Some((b":protocol", b"websocket"))],
            _ => [Some((name, value)), None],
        });
        Some(Self::Connect(fields.flatten().map(|(name, value)| (name.into(), value.into())).collect()))
    }
}

impl RawWebSocket {
    /// Whether a user only listens.
    pub fn listens(&self) -> bool {
        matches!(self.answer, RawAnswer::Listen)
    }

    /// Add the headers of the handshake (RFC 6455, 4.1), or of that over HTTP/2 (RFC 8441, 5).
    pub fn add_headers(&self, field: &str, http: Http, headers: &mut Vec<(String, String)>) -> Result<(), EngineError> {
        let is_own = |name: &str| ["connection", "upgrade"].contains(&name) || name.starts_with("sec-websocket-");
        if let Some((name, _)) = headers.iter().find(|(name, _)| is_own(&name.to_ascii_lowercase())) {
            let message = format!("the handshake sets the header {name}");
            return Err(bad(field, &message, "leave out that header; subprotocols have a key of their own"));
        }
        let is_token =
            |name: &String| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b',');
        if let Some(wrong) = self.subprotocols.iter().find(|name| !is_token(name)) {
            let message = format!("{wrong:?} is not the name of a subprotocol");
            return Err(bad(&format!("{field}.subprotocols"), &message, "names have visible ASCII without commas"));
        }
        let mut add = |name: &str, value: &str| headers.push((name.to_owned(), value.to_owned()));
        if http == Http::V1 {
            add("Connection", "Upgrade");
            add("Upgrade", "websocket");
        }
        add("Sec-WebSocket-Version", "13");
        if !self.subprotocols.is_empty() {
            add("Sec-WebSocket-Protocol", &self.subprotocols.join(", "));
        }
        if self.compression {
            add("Sec-WebSocket-Extensions", DEFLATE_OFFER);
        }
        Ok(())
    }

    /// Validate it. `template` is the request of the handshake, `message` what is sent.
    pub fn check(
        self,
        field: &str,
        http: Http,
        template: &Template,
        message: Body,
        names: &Names<'_>,
    ) -> Result<WebSocket, EngineError> {
        let opening = Opening::of(template);
        let listens = self.listens();
        if opening.is_none() && !listens {
            let message = "a connection is opened once for many messages, so its path and headers have no placeholders";
            return Err(bad(field, message, "write values in their place"));
        }
        if opening.is_none() && http == Http::V2 {
            let message = "the path and headers of a WebSocket over HTTP/2 have no placeholders";
            return Err(bad(field, message, "write values in their place, or load it over HTTP/1.1"));
        }
        let message = Payload::compile(message, names)
            .map_err(|why| bad(field, &why.to_string(), "see docs/reference/engine-protocol.md for placeholders"))?;
        if self.message.is_none() && !listens {
            return Err(bad(&format!("{field}.message"), "there is none", "say whether it is text or binary"));
        }
        let kind = match self.message {
            Some(RawKind::Text) => Kind::Text,
            Some(RawKind::Binary) | None => Kind::Binary,
        };
        if let Some(fixed) = message.fixed() {
            if fixed.len() > MOST_MESSAGE_BYTES {
                return Err(bad(field, "the message is longer than 16 MiB", "send a shorter message"));
            }
            if kind == Kind::Text && std::str::from_utf8(fixed).is_err() {
                return Err(bad(field, "the message is not UTF-8", "send it as a binary message"));
            }
        }
        Ok(WebSocket {
            opening,
            subprotocols: self.subprotocols,
            listens,
            sends: self.message.is_some(),
            kind,
            message,
            is_echoed: matches!(self.answer, RawAnswer::Echo),
            greeting: self.greeting,
            compression: self.compression,
        })
    }
}
