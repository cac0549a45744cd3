//! The opening handshake (RFC 6455, 4).

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha1::{Digest as _, Sha1};

use crate::deflate::Deflate;

/// The text that a server adds to the key (RFC 6455, 1.3).
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// The longest head of an answer that is read, and the most fields in it.
const LONGEST_HEAD: usize = 64 * 1024;
const MOST_FIELDS: usize = 128;
/// How much of the body of a refusal is shown.
const SHOWN: usize = 120;

/// The value of `Sec-WebSocket-Accept` for this value of `Sec-WebSocket-Key`.
#[must_use]
pub fn accept_value(key: &[u8]) -> String {
    STANDARD.encode(Sha1::new().chain_update(key).chain_update(GUID).finalize())
}

/// The client's side of a handshake, until the server has answered.
#[derive(Debug)]
pub struct Handshake {
    key: String,
    /// What the server has answered so far.
    answer: Vec<u8>,
    /// How it refuses over HTTP/2, while more of that may come.
    refusal: Option<String>,
}

/// The server has opened the connection.
#[derive(Debug, PartialEq, Eq)]
pub struct Opened {
    /// The head of its answer.
    pub head: Vec<u8>,
    /// The subprotocol that it chose.
    pub subprotocol: Option<String>,
    /// How messages are compressed, if that was offered.
    pub deflate: Option<Deflate>,
    /// What came after its answer.
    pub rest: Vec<u8>,
}

/// Why there is no WebSocket.
#[derive(Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The server answered with another status than 101, or than 200 to 299 over HTTP/2. The text says which, where it redirects to, and how its body begins.
    Status(String),
    /// The server's answer is no valid answer.
    Invalid(String),
    /// The server chose none of the subprotocols, or one that was not offered.
    Subprotocol(String),
    /// The server did not agree on compression.
    Compression(String),
}

impl Refusal {
    /// What is wrong.
    #[must_use]
    pub fn reason(&self) -> &str {
        match self {
            Self::Status(reason) | Self::Invalid(reason) | Self::Subprotocol(reason) | Self::Compression(reason) => {
                reason
            }
        }
    }
}

impl Handshake {
    /// A handshake whose key is made of these random bytes.
    #[must_use]
    pub fn new(random: [u8; 16]) -> Self {
        Self { key: STANDARD.encode(random), ..Self::over_http2() }
    }

    /// A handshake over HTTP/2, which has no key: the answer is for [`Handshake::answered`].
    #[must_use]
    pub fn over_http2() -> Self {
        Self { key: String::new(), answer: Vec::new(), refusal: None }
    }

    /// The server answered the extended CONNECT with this status, these fields, a line each, and a body that begins like this
    /// (RFC 8441, 5).
    ///
    /// # Errors
    /// Why there is no WebSocket.
    pub fn answered(
        &mut self,
        status: u16,
        fields: &[u8],
        body: &[u8],
        offered: &[String],
        deflates: bool,
    ) -> Result<Opened, Refusal> {
        let head = [format!("HTTP/2 {status}\n").as_bytes(), fields, b"\n"].concat();
        let begin = head.len() - fields.len() - 1;
        let mut parsed = [httparse::EMPTY_HEADER; MOST_FIELDS];
        let Ok(httparse::Status::Complete((_, fields))) = httparse::parse_headers(&head[begin..], &mut parsed) else {
            return Err(invalid("the server's answer has a field that is none"));
        };
        if !(200..300).contains(&status) {
            let text = refused(status, None, fields, body, 200);
            self.refusal = Some(text.clone());
            return Err(Refusal::Status(text));
        }
        let deflate = compression(fields, deflates)?;
        let subprotocol = chosen(fields, offered)?;
        Ok(Opened { head, subprotocol, deflate, rest: Vec::new() })
    }

    /// Whether nothing of the server's answer has arrived; never over HTTP/2, where that is not seen here.
    #[must_use]
    pub fn is_unanswered(&self) -> bool {
        self.answer.is_empty() && !self.key.is_empty()
    }

    /// Appends the request. `request` is all of it but the key, with the blank line that ends it.
    pub fn write(&self, request: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(request.strip_suffix(b"\r\n").unwrap_or(request));
        out.extend_from_slice(b"Sec-WebSocket-Key: ");
        out.extend_from_slice(self.key.as_bytes());
        out.extend_from_slice(b"\r\n\r\n");
    }

    /// The server sent these bytes; `None` while its answer is not complete. Of a refusal's body it waits for the beginning.
    /// `offered` are subprotocols, and `deflates`: compression was offered.
    ///
    /// # Errors
    /// Why there is no WebSocket.
    pub fn feed(&mut self, bytes: &[u8], offered: &[String], deflates: bool) -> Result<Option<Opened>, Refusal> {
        self.answer.extend_from_slice(bytes);
        loop {
            let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
            let mut answer = httparse::Response::new(&mut fields);
            let length = match answer.parse(&self.answer[..self.answer.len().min(LONGEST_HEAD)]) {
                Ok(httparse::Status::Complete(length)) => length,
                Ok(httparse::Status::Partial) if self.answer.len() < LONGEST_HEAD => return Ok(None),
                Ok(httparse::Status::Partial) => {
                    return Err(invalid("the head of the server's answer is longer than 64 KiB"));
                }
                Err(why) => return Err(Refusal::Invalid(format!("the server does not answer in HTTP: {why}"))),
            };
            let status = answer.code.unwrap_or_default();
            if (100..200).contains(&status) && status != 101 {
                self.answer.drain(..length);
                continue;
            }
            if status != 101 {
                let body = &self.answer[length..];
                if body.is_empty() && has_body(status, answer.headers) {
                    return Ok(None);
                }
                return Err(Refusal::Status(refused(status, answer.reason, answer.headers, body, 101)));
            }
            check(answer.headers, &self.key)?;
            let deflate = compression(answer.headers, deflates)?;
            let subprotocol = chosen(answer.headers, offered)?;
            let rest = self.answer.split_off(length);
            return Ok(Some(Opened { head: std::mem::take(&mut self.answer), subprotocol, deflate, rest }));
        }
    }

    /// Why there is no WebSocket, where the server sends no more: its refusal, if its head has arrived.
    #[must_use]
    pub fn refusal(&self) -> Option<Refusal> {
        if let Some(text) = &self.refusal {
            return Some(Refusal::Status(text.clone()));
        }
        let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
        let mut answer = httparse::Response::new(&mut fields);
        let httparse::Status::Complete(length) = answer.parse(&self.answer).ok()? else {
            return None;
        };
        let status = answer.code.unwrap_or_default();
        Some(Refusal::Status(refused(status, answer.reason, answer.headers, &self.answer[length..], 101)))
    }
}

fn invalid(reason: &str) -> Refusal {
    Refusal::Invalid(reason.to_owned())
}

fn values<'a>(fields: &'a [httparse::Header<'a>], name: &str) -> impl Iterator<Item = &'a [u8]> {
    fields.iter().filter(move |field| field.name.eq_ignore_ascii_case(name)).map(|field| field.value.trim_ascii())
}

/// The tokens of a list that a field is.
fn tokens<'a>(fields: &'a [httparse::Header<'a>], name: &str) -> impl Iterator<Item = &'a [u8]> {
    values(fields, name).flat_map(|value| value.split(|byte| *byte == b',')).map(<[u8]>::trim_ascii)
}

/// Whether the answer to the handshake is right (RFC 6455, 4.1).
fn check(fields: &[httparse::Header<'_>], key: &str) -> Result<(), Refusal> {
    if !tokens(fields, "upgrade").any(|token| token.eq_ignore_ascii_case(b"websocket")) {
        return Err(invalid("the server's answer 101 does not upgrade to websocket"));
    }
    if !tokens(fields, "connection").any(|token| token.eq_ignore_ascii_case(b"upgrade")) {
        return Err(invalid("the server's answer 101 has no `Connection: Upgrade`"));
    }
    let accept = accept_value(key.as_bytes());
    match values(fields, "sec-websocket-accept").next() {
        None => Err(invalid("the server's answer 101 has no Sec-WebSocket-Accept")),
        Some(value) if value != accept.as_bytes() => {
            Err(invalid("the server's Sec-WebSocket-Accept is not that of the key"))
        }
        Some(_) => Ok(()),
    }
}

/// How messages are compressed, where compression was offered, and nothing else.
fn compression(fields: &[httparse::Header<'_>], deflates: bool) -> Result<Option<Deflate>, Refusal> {
    let named = tokens(fields, "sec-websocket-extensions").filter(|token| !token.is_empty());
    let extensions: Vec<String> = named.map(|token| String::from_utf8_lossy(token).into_owned()).collect();
    match &extensions[..] {
        [] if !deflates => Ok(None),
        [] => Err(Refusal::Compression(
            "the server agreed on no compression: its answer has no Sec-WebSocket-Extensions".to_owned(),
        )),
        [one] if deflates => Deflate::agreed(one).map(Some).map_err(|why| {
            Refusal::Compression(format!("the server answers the offer of compression with `{one}`: {why}"))
        }),
        [.., last] => Err(Refusal::Invalid(format!("the server uses the extension {last}, which was not offered"))),
    }
}

/// The subprotocol that the server chose.
fn chosen(fields: &[httparse::Header<'_>], offered: &[String]) -> Result<Option<String>, Refusal> {
    let chosen: Vec<String> =
        values(fields, "sec-websocket-protocol").map(|value| String::from_utf8_lossy(value).into_owned()).collect();
    match &chosen[..] {
        [] if offered.is_empty() => Ok(None),
        [] => Err(Refusal::Subprotocol(format!("the server chose no subprotocol of {}", offered.join(", ")))),
        [one] if offered.contains(one) => Ok(Some(one.clone())),
        [one, ..] => {
            let offer =
                if offered.is_empty() { "none was offered".into() } else { offered.join(", ") + " was offered" };
            Err(Refusal::Subprotocol(format!("the server chose the subprotocol {one}, and {offer}")))
        }
    }
}

/// Whether a body follows, of which nothing may have arrived yet.
fn has_body(status: u16, fields: &[httparse::Header<'_>]) -> bool {
    let is_empty = values(fields, "content-length").next() == Some(b"0") || matches!(status, 204 | 304);
    let is_framed = values(fields, "content-length").chain(values(fields, "transfer-encoding")).next().is_some();
    !is_empty && is_framed
}

/// A refusal in words. `right` is the status that opens a WebSocket.
fn refused(status: u16, reason: Option<&str>, fields: &[httparse::Header<'_>], body: &[u8], right: u16) -> String {
    let mut text = format!("status {status}");
    if let Some(reason) = reason.filter(|reason| !reason.is_empty()) {
        let _ = write!(text, " {reason}");
    }
    let _ = write!(text, " in place of {right}");
    if let Some(location) = values(fields, "location").next() {
        let _ = write!(text, ", to {}", String::from_utf8_lossy(location));
    }
    let chunked = tokens(fields, "transfer-encoding").any(|token| token.eq_ignore_ascii_case(b"chunked"));
    let content = if chunked { first_chunk(body) } else { body };
    let shown: String = String::from_utf8_lossy(&content[..content.len().min(SHOWN)])
        .chars()
        .map(|char| if char.is_control() { ' ' } else { char })
        .collect();
    if !shown.trim().is_empty() {
        let _ = write!(text, ": {}", shown.trim());
    }
    text
}

/// The bytes of the first chunk, as far as they have arrived.
fn first_chunk(body: &[u8]) -> &[u8] {
    let Some(line) = body.windows(2).position(|pair| pair == b"\r\n") else {
        return &[];
    };
    let size = std::str::from_utf8(&body[..line]).ok().and_then(|text| usize::from_str_radix(text.trim(), 16).ok());
    let data = &body[line + 2..];
    &data[..data.len().min(size.unwrap_or(data.len()))]
}
