//! TLS settings for a target, and errors in them.

use std::fmt;

/// How to connect to a target by TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The text of a PEM file with the trusted certificates; if absent, those of the system are trusted.
    pub ca_pem: Option<String>,
    /// Trust any certificate, and any signature by it.
    pub insecure: bool,
    /// The name for SNI, for which the certificate must be valid. An address is not sent, but must be in the certificate.
    pub server_name: String,
    /// The protocols offered by ALPN, best first, such as `h2`; empty for no ALPN.
    pub alpn: Vec<Vec<u8>>,
    /// The versions that may be negotiated.
    pub versions: Vec<Version>,
    /// Whether a connection may resume the session of an earlier connection.
    pub resumption: bool,
    /// The text of a PEM file with the certificate of the client, its own first; `None` for a client without.
    pub certificate_pem: Option<String>,
    /// The text of a PEM file with the key of that certificate.
    pub key_pem: Option<String>,
    /// The names of the cipher suites that may be negotiated, as IANA or OpenSSL names them; empty for all.
    pub ciphers: Vec<String>,
}

/// A version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// TLS 1.2, RFC 5246.
    V1_2,
    /// TLS 1.3, RFC 8446.
    V1_3,
}

/// Settings with which no connection can be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unusable {
    /// The wrong field of [`Settings`].
    pub field: &'static str,
    /// What is wrong with it.
    pub problem: String,
    /// How to correct it.
    pub hint: &'static str,
}

impl Unusable {
    pub(crate) fn new(field: &'static str, problem: impl Into<String>, hint: &'static str) -> Self {
        Self { field, problem: problem.into(), hint }
    }
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}\n  hint: {}", self.field, self.problem, self.hint)
    }
}

impl std::error::Error for Unusable {}
