//! One connection.

use std::fmt;

use rustls::client::UnbufferedClientConnection;
use rustls::unbuffered::{ConnectionState, EncodeError, UnbufferedStatus, WriteTraffic};
use rustls::{HandshakeKind, ProtocolVersion};

/// The most of a peer's bytes that wait for more: one handshake message (64 KiB) and a record.
const MOST_WAITING_BYTES: usize = 96 * 1024;
/// The most that a record holds, and more than it adds: header, nonce or content type, tag.
const RECORD_BYTES: usize = 16 * 1024;
const RECORD_OVERHEAD_BYTES: usize = 32;
/// A buffer with more room than this is given back once it is empty.
const ROOM_KEPT_BYTES: usize = 1024;

/// Why a connection is over.
#[derive(Clone, Debug, PartialEq)]
pub enum Error {
    /// The handshake failed, or the peer's bytes are not what TLS allows.
    Tls(rustls::Error),
    /// The peer sent more than fits, without anything that is whole.
    TooMuch,
    /// Asked to seal before the handshake was done, or after the connection was closed.
    NotOpen,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tls(e) => e.fmt(f),
            Self::TooMuch => f.write_str("the peer sent too much without completing a message"),
            Self::NotOpen => f.write_str("the connection is not open for data"),
        }
    }
}

impl std::error::Error for Error {}

impl From<rustls::Error> for Error {
    fn from(e: rustls::Error) -> Self {
        Self::Tls(e)
    }
}

/// What came of the peer's bytes, besides plain ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fed {
    /// The handshake ended with these bytes: from now on data can be sealed.
    pub handshake_done_now: bool,
    /// The peer has said that it sends no more (`close_notify`). Without it, an end of the connection is a truncation.
    pub closed: bool,
}

/// One connection, from the client's side.
pub struct Session {
    tls: UnbufferedClientConnection,
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
    handshaken: bool,
    closed: bool,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("handshaken", &self.handshaken)
            .field("closed", &self.closed)
            .finish_non_exhaustive()
    }
}

impl Session {
    pub(crate) fn begin(tls: UnbufferedClientConnection) -> Result<Self, Error> {
        let mut session = Self { tls, incoming: Vec::new(), outgoing: Vec::new(), handshaken: false, closed: false };
        session.process(&mut Vec::new())?;
        Ok(session)
    }

    /// Takes all of `bytes`, in pieces of any size, and appends what they hold in plain to `plain`.
    ///
    /// # Errors
    /// When the handshake failed or the bytes are not what TLS allows. The connection is over then; what
    /// [`Session::output`] gives tells the peer why.
    pub fn feed(&mut self, bytes: &[u8], plain: &mut Vec<u8>) -> Result<Fed, Error> {
        self.incoming.extend_from_slice(bytes);
        if let Err(e) = self.process(plain) {
            // The alert that tells the peer is taken out; a second error would say nothing new.
            let _ = self.process(&mut Vec::new());
            return Err(e);
        }
        if self.incoming.len() > MOST_WAITING_BYTES {
            return Err(Error::TooMuch);
        }
        if self.incoming.is_empty() && self.incoming.capacity() > ROOM_KEPT_BYTES {
            self.incoming = Vec::new();
        }
        let handshake_done_now = !self.handshaken && !self.tls.is_handshaking();
        self.handshaken |= handshake_done_now;
        Ok(Fed { handshake_done_now, closed: self.closed })
    }

    /// Lets rustls go on until it needs more bytes.
    fn process(&mut self, plain: &mut Vec<u8>) -> Result<(), Error> {
        let mut taken = 0;
        let ended = loop {
            let UnbufferedStatus { discard, state, .. } = self.tls.process_tls_records(&mut self.incoming[taken..]);
            taken += discard;
            match state {
                Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                    while let Some(record) = traffic.next_record() {
                        let Ok(record) = record else { break };
                        taken += record.discard;
                        plain.extend_from_slice(record.payload);
                    }
                }
                Ok(ConnectionState::EncodeTlsData(mut data)) => {
                    append(&mut self.outgoing, |room| data.encode(room));
                }
                Ok(ConnectionState::TransmitTlsData(data)) => data.done(),
                Ok(ConnectionState::PeerClosed) => self.closed = true,
                Ok(_) => break Ok(()),
                Err(e) => break Err(Error::Tls(e)),
            }
        };
        self.incoming.drain(..taken);
        ended
    }

    /// Appends the records of `plain`, at most 64 KiB, to `out`.
    ///
    /// # Errors
    /// Before the handshake is done, after [`Session::close`], or when the keys are worn out.
    pub fn seal(&mut self, plain: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        let most = plain.len() + (plain.len() / RECORD_BYTES + 1) * RECORD_OVERHEAD_BYTES;
        let start = out.len();
        self.output(out);
        let start_of_data = out.len();
        out.resize(start_of_data + most, 0);
        let written = self.writing(|mut traffic| traffic.encrypt(plain, &mut out[start_of_data..]).ok()).flatten();
        out.truncate(written.map_or(start, |written| start_of_data + written));
        written.map(|_| ()).ok_or(Error::NotOpen)
    }

    /// Calls `write` where data may be written.
    fn writing<T>(
        &mut self,
        write: impl FnOnce(WriteTraffic<'_, rustls::client::ClientConnectionData>) -> T,
    ) -> Option<T> {
        match self.tls.process_tls_records(&mut self.incoming).state {
            Ok(ConnectionState::WriteTraffic(traffic)) => Some(write(traffic)),
            _ => None,
        }
    }

    /// Appends what waits to be written besides data: the handshake, key updates, alerts.
    pub fn output(&mut self, out: &mut Vec<u8>) {
        if !self.outgoing.is_empty() {
            out.append(&mut self.outgoing);
            self.outgoing = Vec::new();
        }
    }

    /// Appends what tells the peer that no more will come (`close_notify`); nothing before the handshake is done.
    pub fn close(&mut self, out: &mut Vec<u8>) {
        self.output(out);
        let start = out.len();
        out.resize(start + 2 * RECORD_OVERHEAD_BYTES, 0);
        let written = self.writing(|mut traffic| traffic.queue_close_notify(&mut out[start..]).ok()).flatten();
        out.truncate(start + written.unwrap_or(0));
    }

    /// Whether the handshake still goes on.
    #[must_use]
    pub fn is_handshaking(&self) -> bool {
        self.tls.is_handshaking()
    }

    /// The protocol that the server chose by ALPN.
    #[must_use]
    pub fn alpn(&self) -> Option<&[u8]> {
        self.tls.alpn_protocol()
    }

    /// The version that was agreed on, `1.2` or `1.3`.
    #[must_use]
    pub fn version(&self) -> &'static str {
        match self.tls.protocol_version() {
            Some(ProtocolVersion::TLSv1_2) => "1.2",
            Some(ProtocolVersion::TLSv1_3) => "1.3",
            _ => "",
        }
    }

    /// The cipher suite that was agreed on, as rustls names it: `TLS13_AES_128_GCM_SHA256`; empty before.
    #[must_use]
    pub fn cipher(&self) -> String {
        self.tls.negotiated_cipher_suite().map(|suite| format!("{:?}", suite.suite())).unwrap_or_default()
    }

    /// Whether the session of an earlier connection was resumed.
    #[must_use]
    pub fn resumed(&self) -> bool {
        self.tls.handshake_kind() == Some(HandshakeKind::Resumed)
    }
}

/// Appends what `encode` writes, which says how much room it needs when it has too little.
fn append(out: &mut Vec<u8>, mut encode: impl FnMut(&mut [u8]) -> Result<usize, EncodeError>) {
    if let Err(EncodeError::InsufficientSize(needed)) = encode(&mut []) {
        let start = out.len();
        out.resize(start + needed.required_size, 0);
        let _ = encode(&mut out[start..]);
    }
}
