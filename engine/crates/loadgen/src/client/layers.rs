//! The layers between the requests of a connection and its socket: tunnel, TLS, HTTP/2, WebSocket.

use redline_http2::{End, Tunnel as Stream};
use redline_traffic::Outcome;
use redline_websocket::{Handshake, Opened};
use redline_wire::Record;

use super::activity::OpenError;
use super::outbox::{Outbox, Tape};
use super::pool::refused;
use super::tunnel::Tunnel;
use crate::job::{Opening, WebSocket};
use crate::sys::random::random_bytes;

/// Bytes that are encrypted or framed at a time.
const SEALED_AT_ONCE: usize = 64 * 1024;

/// The layers between the requests and the socket.
#[derive(Default)]
pub struct Layers {
    /// The tunnel through a proxy, until it is open; the other layers begin then.
    pub tunnel: Option<Tunnel>,
    pub tls: Option<redline_tls::Session>,
    pub http2: Option<redline_http2::Session>,
    /// The stream of HTTP/2 that carries a WebSocket.
    pub stream: Option<Box<Stream>>,
    /// The handshake of a WebSocket, until the server has answered it and greeted.
    pub handshake: Option<Handshake>,
    pub websocket: Option<redline_websocket::Session>,
    /// The head of the answer that opened the WebSocket, if a step of a journey keeps any of it.
    pub head: Vec<u8>,
    /// How many messages of a WebSocket's greeting have not arrived.
    pub greeting_left: u32,
    /// The record of the next message, in a check.
    pub record: Option<Box<Record>>,
    /// When the handshake of TLS, or of a WebSocket, began.
    pub handshake_since_ns: u64,
    /// The bytes for the socket.
    pub sealed: Outbox,
}

impl Layers {
    /// The layers of a connection to a proxy, which is asked for a tunnel by these bytes.
    pub fn tunnel(connect: &[u8]) -> Self {
        let mut layers = Self { tunnel: Some(Tunnel::new()), ..Self::default() };
        layers.sealed.stage(|out| out.extend_from_slice(connect));
        layers
    }

    /// Whether bytes reach the socket as they are: a WebSocket without TLS.
    #[inline]
    pub fn passes_bytes(&self) -> bool {
        self.tls.is_none() && self.stream.is_none() && (self.websocket.is_some() || self.handshake.is_some())
    }

    /// Ask for a WebSocket. Bytes that are no frames of HTTP/2 go to `requests`.
    ///
    /// # Errors
    /// When the stream cannot be opened.
    #[cold]
    pub fn ask_websocket(&mut self, opening: &Opening, requests: &mut Outbox) -> Result<(), OpenError> {
        match (opening, &mut self.stream) {
            (Opening::Connect(fields), Some(stream)) => {
                self.handshake = Some(Handshake::over_http2());
                let fields: Vec<(&[u8], &[u8])> = fields.iter().map(|(name, value)| (&**name, &**value)).collect();
                Ok(stream.connect(&fields)?)
            }
            (Opening::Upgrade(request), None) => {
                let handshake = self.handshake.insert(Handshake::new(random_bytes()));
                requests.stage(|out| handshake.write(request, out));
                Ok(())
            }
            _ => unreachable!("a job has one version of HTTP"),
        }
    }

    /// The server sent these bytes in the handshake of a WebSocket; `None` while its answer is not complete. With it comes why the
    /// stream that carries the WebSocket has ended, if it has.
    ///
    /// # Errors
    /// Why there is no WebSocket.
    #[cold]
    pub fn feed_handshake(
        &mut self,
        bytes: &[u8],
        websocket: &WebSocket,
    ) -> Result<Option<(Opened, Option<End>)>, OpenError> {
        let Self { handshake: Some(handshake), stream, .. } = self else {
            return Ok(None);
        };
        let WebSocket { subprotocols, compression, .. } = websocket;
        let Some(stream) = stream else {
            let opened = handshake.feed(bytes, subprotocols, *compression).map_err(refused)?;
            return Ok(opened.map(|opened| (opened, None)));
        };
        let mut rest = Vec::new();
        let end = stream.feed(bytes, &mut rest).err();
        let Some(answer) = stream.answer() else {
            return end.map_or(Ok(None), |end| Err(end.into()));
        };
        match handshake.answered(answer.status, &answer.fields, &answer.body, subprotocols, *compression) {
            Ok(opened) => Ok(Some((Opened { rest, ..opened }, end))),
            // Its body may follow.
            Err(_) if !answer.connects() && !answer.is_complete && answer.body.is_empty() && end.is_none() => Ok(None),
            Err(why) => Err(refused(why)),
        }
    }

    /// Whether bytes of requests wait for the socket, or for the window of a stream.
    pub fn is_blocked(&self) -> bool {
        !self.sealed.is_empty() || self.stream.as_ref().is_some_and(|stream| stream.unsent() > 0)
    }

    /// Give the stream of a WebSocket more bytes, and its end after a close frame.
    fn carry(&mut self, requests: &mut Outbox, tapes: &[Tape]) {
        let Some(stream) = &mut self.stream else {
            return;
        };
        while stream.unsent() < SEALED_AT_ONCE
            && let Some(next) = requests.next(tapes)
        {
            let length = next.bytes.len();
            stream.send(next.bytes, false);
            requests.consume(length);
        }
        if requests.is_empty() && self.websocket.as_ref().is_some_and(redline_websocket::Session::is_closing) {
            stream.send(&[], true);
        }
    }

    /// Frame and encrypt more bytes for the socket.
    pub fn fill(&mut self, requests: &mut Outbox, tapes: &[Tape], plain: &mut Vec<u8>) -> Result<(), String> {
        self.carry(requests, tapes);
        let Self { tls, http2, stream, sealed, .. } = self;
        let has_frames = http2.is_some() || stream.is_some();
        let frames = |out: &mut Vec<u8>| match (http2, stream) {
            (Some(http2), _) => http2.output(out, SEALED_AT_ONCE),
            (None, Some(stream)) => stream.output(out, SEALED_AT_ONCE),
            (None, None) => {}
        };
        sealed.stage(|out| {
            let Some(tls) = tls else {
                frames(out);
                return Ok(());
            };
            tls.output(out);
            if tls.is_handshaking() {
                return Ok(());
            }
            let sealed = if has_frames {
                plain.clear();
                frames(plain);
                if plain.is_empty() { Ok(()) } else { tls.seal(plain, out) }
            } else {
                seal_requests(tls, requests, tapes, out)
            };
            sealed.map_err(|error| error.to_string())
        })
    }
}

/// A stream ended before its WebSocket was open.
impl From<End> for OpenError {
    fn from(end: End) -> Self {
        Self::WebSocket(outcome_of(&end), end.to_string())
    }
}

/// How messages end whose stream has ended.
pub fn outcome_of(end: &End) -> Outcome {
    match end {
        End::Ended => Outcome::Closed,
        End::Reset(_) | End::GoneAway(_) => Outcome::Refused,
        End::NotAllowed | End::Malformed(_) | End::Broken(_) => Outcome::Malformed,
    }
}

fn seal_requests(
    tls: &mut redline_tls::Session,
    requests: &mut Outbox,
    tapes: &[Tape],
    out: &mut Vec<u8>,
) -> Result<(), redline_tls::Error> {
    let mut sealed = 0;
    while sealed < SEALED_AT_ONCE {
        let Some(next) = requests.next(tapes) else {
            break;
        };
        let length = next.bytes.len().min(SEALED_AT_ONCE);
        tls.seal(&next.bytes[..length], out)?;
        requests.consume(length);
        sealed += length;
    }
    Ok(())
}
