//! A TLS connection.

use std::fmt;
use std::sync::Arc;

use rustls::client::UnbufferedClientConnection;
use rustls::{AlertDescription, CertificateError, CipherSuite, Error as TlsError, InvalidMessage};

use crate::alerts::{Progress, alert_words};
use crate::client_certificate::ClientCertificate;
use crate::handshake::Handshake;
use crate::own::is_ca_as_server;
use crate::traffic::Traffic;

/// Why a connection is over.
#[derive(Clone, Debug, PartialEq)]
pub enum Error {
    /// The handshake failed, or the peer's bytes violate TLS.
    Tls(rustls::Error),
    /// The peer refused the connection by an alert. In TLS 1.3 it may do so only after the handshake seemed complete to this side.
    Refused {
        /// The alert.
        alert: AlertDescription,
        /// How far the connection had got.
        progress: Progress,
    },
    /// The peer sent too many bytes without a complete message.
    TooMuch,
    /// The handshake is not complete, or the connection is closed.
    NotOpen,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tls(TlsError::InvalidCertificate(why)) => f.write_str(&certificate_words(why)),
            Self::Tls(TlsError::InvalidMessage(InvalidMessage::InvalidContentType)) => {
                f.write_str("the peer does not speak TLS")
            }
            Self::Refused { alert, progress } => alert_words(*alert, *progress).fmt(f),
            Self::Tls(e) => e.fmt(f),
            Self::TooMuch => f.write_str("the peer sent too much without completing a message"),
            Self::NotOpen => f.write_str("the connection is not open for data"),
        }
    }
}

impl std::error::Error for Error {}

/// What is wrong with the server's certificate.
fn certificate_words(why: &CertificateError) -> String {
    match why {
        CertificateError::UnknownIssuer => {
            "the server's certificate is signed by an authority that is not trusted".to_owned()
        }
        // Authorities are looked up by name; the key of this authority cannot have made the signature.
        CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            "the server's certificate is signed by an authority that is not trusted, though one of its name is"
                .to_owned()
        }
        CertificateError::UnsupportedSignatureAlgorithmContext { .. } => {
            "the server's certificate is signed by an algorithm that the engine does not support".to_owned()
        }
        CertificateError::BadEncoding => "the server's certificate cannot be read".to_owned(),
        CertificateError::UnhandledCriticalExtension => {
            "the server's certificate has a critical extension that the engine does not know".to_owned()
        }
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "the server's certificate may not be used for servers".to_owned()
        }
        CertificateError::NotValidForNameContext { expected, presented } => {
            let name = expected.to_str();
            // As rustls writes them: DnsName("localhost"), IpAddress(127.0.0.1).
            let names = presented.iter().map(|name| {
                let inner = name.split_once('(').and_then(|(_, inner)| inner.strip_suffix(')'));
                inner.unwrap_or(name).trim_matches('"')
            });
            match names.collect::<Vec<_>>().join(", ") {
                names if names.is_empty() => {
                    format!("the server's certificate is not for {name}, and for no other name")
                }
                names => format!("the server's certificate is not for {name}, but for {names}"),
            }
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "the server's certificate has expired".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "the server's certificate is not valid yet".to_owned()
        }
        CertificateError::BadSignature => "the signature of the server's certificate is wrong".to_owned(),
        CertificateError::Other(other) if is_ca_as_server(other) => {
            "the server's certificate is that of an authority, not of a server".to_owned()
        }
        CertificateError::Other(other) => other.to_string(),
        other => format!("the server's certificate is wrong: {other}"),
    }
}

impl From<rustls::Error> for Error {
    fn from(e: rustls::Error) -> Self {
        Self::Tls(e)
    }
}

/// The events in the peer's bytes, besides data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fed {
    /// These bytes completed the handshake: data can be sealed from now on.
    pub handshake_done_now: bool,
    /// The peer has sent `close_notify`. Without it, an end of the connection is a truncation.
    pub closed: bool,
}

/// What a handshake negotiated.
#[derive(Debug, Default)]
pub(crate) struct Agreed {
    pub(crate) alpn: Option<Box<[u8]>>,
    pub(crate) version: &'static str,
    pub(crate) suite: Option<CipherSuite>,
    pub(crate) resumed: bool,
}

#[expect(
    clippy::large_enum_variant,
    reason = "a session is open for nearly all of its life, so that a box would cost more than it saves"
)]
enum Stage {
    Handshake(Box<Handshake>),
    Open(Traffic),
    /// Failed, or closed before it was open.
    Over,
}

/// A connection, from the client's side.
pub struct Session {
    stage: Stage,
    outgoing: Vec<u8>,
    agreed: Agreed,
    tickets: bool,
    certificate: Arc<ClientCertificate>,
    /// This side has sent `close_notify`.
    close_sent: bool,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("agreed", &self.agreed).finish_non_exhaustive()
    }
}

impl Session {
    pub(crate) fn begin(
        tls: UnbufferedClientConnection,
        tickets: bool,
        certificate: Arc<ClientCertificate>,
    ) -> Result<Self, Error> {
        let mut handshake = Handshake::new(tls);
        let mut outgoing = Vec::new();
        handshake.feed(&[], &mut Vec::new(), &mut outgoing)?;
        Ok(Self {
            stage: Stage::Handshake(Box::new(handshake)),
            outgoing,
            agreed: Agreed::default(),
            tickets,
            certificate,
            close_sent: false,
        })
    }

    /// Takes all of `bytes`, in pieces of any size, and appends the decrypted data to `plain`. Bytes after the peer's
    /// `close_notify` are ignored.
    ///
    /// # Errors
    /// When the handshake failed or the bytes violate TLS. The connection is then over; [`Session::output`] tells the peer why.
    pub fn feed(&mut self, bytes: &[u8], plain: &mut Vec<u8>) -> Result<Fed, Error> {
        let fed = match &mut self.stage {
            Stage::Open(traffic) => match traffic.feed(bytes, plain, &mut self.outgoing) {
                Ok(()) => return Ok(Fed { handshake_done_now: false, closed: traffic.is_closed() }),
                Err(e) => {
                    self.send_alert(&e);
                    Err(e)
                }
            },
            Stage::Handshake(_) => self.feed_handshake(bytes, plain),
            Stage::Over => Err(Error::NotOpen),
        };
        fed.map_err(|why| {
            let refused = self.refused(why);
            self.stage = Stage::Over;
            refused
        })
    }

    /// Adds to an error how far the connection had got, if it is an alert of the peer.
    fn refused(&self, error: Error) -> Error {
        let Error::Tls(TlsError::AlertReceived(alert)) = error else { return error };
        let progress = match &self.stage {
            Stage::Handshake(handshake) if !handshake.has_chosen() => Progress::Offered,
            _ if self.certificate.was_requested() && self.certificate.is_given() => Progress::CertificateShown,
            _ if self.certificate.was_requested() => Progress::CertificateRequested,
            _ => Progress::Chosen,
        };
        Error::Refused { alert, progress }
    }

    fn feed_handshake(&mut self, bytes: &[u8], plain: &mut Vec<u8>) -> Result<Fed, Error> {
        let Stage::Handshake(handshake) = &mut self.stage else { return Err(Error::NotOpen) };
        handshake.feed(bytes, plain, &mut self.outgoing)?;
        if !handshake.is_done() {
            return Ok(Fed { handshake_done_now: false, closed: handshake.is_closed() });
        }
        let Stage::Handshake(handshake) = std::mem::replace(&mut self.stage, Stage::Over) else {
            return Err(Error::NotOpen);
        };
        let (agreed, traffic, rest) = handshake.finish(self.tickets)?;
        self.agreed = agreed;
        self.stage = Stage::Open(traffic);
        let fed = self.feed(&rest, plain)?;
        Ok(Fed { handshake_done_now: true, ..fed })
    }

    /// Sends the peer an alert for the error.
    fn send_alert(&mut self, error: &Error) {
        let alert = match error {
            Error::Tls(rustls::Error::AlertReceived(_)) => return,
            Error::Tls(rustls::Error::DecryptError) => AlertDescription::BadRecordMac,
            Error::Tls(rustls::Error::PeerSentOversizedRecord) => AlertDescription::RecordOverflow,
            _ => AlertDescription::UnexpectedMessage,
        };
        if let Stage::Open(traffic) = &mut self.stage {
            traffic.alert_peer(alert, &mut self.outgoing);
        }
    }

    /// Appends the records of `plain`, of any length, to `out`, after what [`Session::output`] would append.
    ///
    /// # Errors
    /// [`Error::NotOpen`] before the handshake is done and after [`Session::close`] or a failure; `out` is then unchanged.
    pub fn seal(&mut self, plain: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        let Stage::Open(traffic) = &mut self.stage else { return Err(Error::NotOpen) };
        if self.close_sent {
            return Err(Error::NotOpen);
        }
        if !self.outgoing.is_empty() {
            out.append(&mut self.outgoing);
        }
        traffic.seal(plain, out)
    }

    /// Appends the waiting bytes other than data: the handshake, key updates, alerts.
    pub fn output(&mut self, out: &mut Vec<u8>) {
        if !self.outgoing.is_empty() {
            out.append(&mut self.outgoing);
            self.outgoing = Vec::new();
        }
    }

    /// Appends a `close_notify`, after what [`Session::output`] would append. Nothing can be sealed afterwards, but the peer's
    /// later bytes can be fed.
    pub fn close(&mut self, out: &mut Vec<u8>) {
        self.output(out);
        match &mut self.stage {
            Stage::Open(traffic) if !self.close_sent => traffic.alert_peer(AlertDescription::CloseNotify, out),
            Stage::Handshake(_) => self.stage = Stage::Over,
            Stage::Open(_) | Stage::Over => {}
        }
        self.close_sent = true;
    }

    /// Whether the handshake is incomplete.
    #[must_use]
    pub fn is_handshaking(&self) -> bool {
        matches!(self.stage, Stage::Handshake(_))
    }

    /// The protocol that the server chose by ALPN.
    #[must_use]
    pub fn alpn(&self) -> Option<&[u8]> {
        self.agreed.alpn.as_deref()
    }

    /// The negotiated version, `1.2` or `1.3`; empty during the handshake.
    #[must_use]
    pub fn version(&self) -> &'static str {
        self.agreed.version
    }

    /// The negotiated cipher suite, as rustls names it: `TLS13_AES_128_GCM_SHA256`; empty during the handshake.
    #[must_use]
    pub fn cipher(&self) -> String {
        self.agreed.suite.map(|suite| format!("{suite:?}")).unwrap_or_default()
    }

    /// Whether the session of an earlier connection was resumed.
    #[must_use]
    pub fn resumed(&self) -> bool {
        self.agreed.resumed
    }
}
