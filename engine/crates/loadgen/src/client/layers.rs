//! The layers between the requests of a connection and its socket: tunnel, TLS, HTTP/2, WebSocket.

use redline_wire::Record;

use super::outbox::{Outbox, Tape};
use super::tunnel::Tunnel;

/// Bytes that are encrypted or framed at a time.
const SEALED_AT_ONCE: usize = 64 * 1024;

/// The layers between the requests and the socket.
#[derive(Default)]
pub struct Layers {
    /// The tunnel through a proxy, until it is open; the other layers begin then.
    pub tunnel: Option<Tunnel>,
    pub tls: Option<redline_tls::Session>,
    pub http2: Option<redline_http2::Session>,
    /// The handshake of a WebSocket, until the server has answered it and greeted.
    pub handshake: Option<redline_websocket::Handshake>,
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
        self.tls.is_none() && (self.websocket.is_some() || self.handshake.is_some())
    }

    /// Frame and encrypt more bytes for the socket.
    pub fn fill(&mut self, requests: &mut Outbox, tapes: &[Tape], plain: &mut Vec<u8>) -> Result<(), String> {
        let Self { tls, http2, sealed, .. } = self;
        sealed.stage(|out| {
            let Some(tls) = tls else {
                if let Some(http2) = http2 {
                    http2.output(out, SEALED_AT_ONCE);
                }
                return Ok(());
            };
            tls.output(out);
            if tls.is_handshaking() {
                return Ok(());
            }
            let sealed = if let Some(http2) = http2 {
                plain.clear();
                http2.output(plain, SEALED_AT_ONCE);
                if plain.is_empty() { Ok(()) } else { tls.seal(plain, out) }
            } else {
                seal_requests(tls, requests, tapes, out)
            };
            sealed.map_err(|error| error.to_string())
        })
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
