//! A connection during its handshake, which rustls performs.

use rustls::client::UnbufferedClientConnection;
use rustls::unbuffered::{ConnectionState, EncodeError, EncodeTlsData, UnbufferedStatus};
use rustls::{HandshakeKind, ProtocolVersion};

use crate::session::{Agreed, Error};
use crate::traffic::Traffic;

/// The most bytes of a peer that wait for more: a message (64 KiB) and a record.
const MOST_WAITING_BYTES: usize = 96 * 1024;

pub(crate) struct Handshake {
    tls: UnbufferedClientConnection,
    waiting: Vec<u8>,
    closed: bool,
}

impl Handshake {
    pub(crate) fn new(tls: UnbufferedClientConnection) -> Self {
        Self { tls, waiting: Vec::new(), closed: false }
    }

    pub(crate) fn is_done(&self) -> bool {
        !self.tls.is_handshaking()
    }

    /// Whether the server has chosen from the offer.
    pub(crate) fn has_chosen(&self) -> bool {
        self.tls.protocol_version().is_some()
    }

    /// Whether the peer has sent `close_notify`.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Processes the peer's bytes as far as possible. Messages to the peer are appended to `out`, also after an error.
    pub(crate) fn feed(&mut self, bytes: &[u8], plain: &mut Vec<u8>, out: &mut Vec<u8>) -> Result<(), Error> {
        self.waiting.extend_from_slice(bytes);
        if let Err(e) = self.advance(plain, out) {
            self.append_alert(out);
            return Err(e);
        }
        if self.waiting.len() > MOST_WAITING_BYTES { Err(Error::TooMuch) } else { Ok(()) }
    }

    /// Appends the alert that rustls has made for an error. Call it only once: a second call would read the same bytes again.
    fn append_alert(&mut self, out: &mut Vec<u8>) {
        let status = self.tls.process_tls_records(&mut self.waiting);
        if let Ok(ConnectionState::EncodeTlsData(alert)) = status.state {
            append(alert, out);
        }
    }

    fn advance(&mut self, plain: &mut Vec<u8>, out: &mut Vec<u8>) -> Result<(), Error> {
        let mut taken = 0;
        let ended = loop {
            // Bytes after the handshake are not passed to rustls, which could keep a part of a message.
            let end = if self.is_done() { taken } else { self.waiting.len() };
            let UnbufferedStatus { discard, state, .. } = self.tls.process_tls_records(&mut self.waiting[taken..end]);
            taken += discard;
            match state {
                Ok(ConnectionState::EncodeTlsData(data)) => append(data, out),
                Ok(ConnectionState::TransmitTlsData(data)) => data.done(),
                // In TLS 1.2 the server sends the last message, and data may follow in the same bytes.
                Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                    while let Some(Ok(record)) = traffic.next_record() {
                        plain.extend_from_slice(record.payload);
                        taken += record.discard;
                    }
                }
                Ok(ConnectionState::PeerClosed) => self.closed = true,
                Ok(_) => break Ok(()),
                Err(e) => break Err(Error::Tls(e)),
            }
        };
        self.waiting.drain(..taken);
        ended
    }

    /// The negotiated parameters, the connection with its keys, and the bytes after the handshake.
    pub(crate) fn finish(self, tickets: bool) -> Result<(Agreed, Traffic, Vec<u8>), Error> {
        let agreed = Agreed {
            alpn: self.tls.alpn_protocol().map(Box::from),
            version: match self.tls.protocol_version() {
                Some(ProtocolVersion::TLSv1_2) => "1.2",
                _ => "1.3",
            },
            suite: self.tls.negotiated_cipher_suite().map(|suite| suite.suite()),
            resumed: self.tls.handshake_kind() == Some(HandshakeKind::Resumed),
        };
        let (secrets, later) = self.tls.dangerous_into_kernel_connection()?;
        Ok((agreed, Traffic::new(secrets, later, tickets, self.closed)?, self.waiting))
    }
}

/// Appends encoded data. Encoding into an empty buffer returns the size that is needed.
fn append(mut data: EncodeTlsData<'_, rustls::client::ClientConnectionData>, out: &mut Vec<u8>) {
    if let Err(EncodeError::InsufficientSize(needed)) = data.encode(&mut []) {
        let start = out.len();
        out.resize(start + needed.required_size, 0);
        // The buffer has the needed size.
        let _ = data.encode(&mut out[start..]);
    }
}
