//! Settings of TLS to a target, and what may be wrong with them.

use std::fmt;

/// How to speak TLS to a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The text of a PEM file whose certificates are trusted; those of the system when absent.
    pub ca_pem: Option<String>,
    /// Trust any certificate, and any signature by it.
    pub insecure: bool,
    /// The name for SNI, which the certificate must be for. An address is not sent, and must be in the certificate.
    pub server_name: String,
    /// The protocols offered by ALPN, best first, such as `h2`; none for no ALPN.
    pub alpn: Vec<Vec<u8>>,
    /// The versions that may be negotiated.
    pub versions: Vec<Version>,
    /// Whether a connection may resume the session of an earlier one.
    pub resumption: bool,
}

/// A version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// TLS 1.2, RFC 5246.
    V1_2,
    /// TLS 1.3, RFC 8446.
    V1_3,
}

/// Settings that no connection can be made with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unusable {
    /// The field of [`Settings`] that is at fault.
    pub field: &'static str,
    /// What is wrong with it.
    pub problem: String,
    /// What to do about it.
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
