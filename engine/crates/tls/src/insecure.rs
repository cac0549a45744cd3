//! Trust in any certificate, for targets with certificates of their own making.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};

/// Trusts any certificate; that the peer holds the key of the one it showed is still checked, so that a handshake
/// costs what it costs with trust, but for the chain. Where the certificate cannot be read (those of X.509 version 1, for
/// one) there is no key to check with, and it is trusted all the same.
#[derive(Debug)]
pub(crate) struct AnyCertificate {
    algorithms: WebPkiSupportedAlgorithms,
}

impl AnyCertificate {
    pub(crate) fn new(algorithms: WebPkiSupportedAlgorithms) -> Self {
        Self { algorithms }
    }
}

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        unless_unreadable(verify_tls12_signature(message, certificate, signature, &self.algorithms))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        unless_unreadable(verify_tls13_signature(message, certificate, signature, &self.algorithms))
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

fn unless_unreadable(checked: Result<HandshakeSignatureValid, Error>) -> Result<HandshakeSignatureValid, Error> {
    match checked {
        Err(Error::InvalidCertificate(why)) if why != CertificateError::BadSignature => {
            Ok(HandshakeSignatureValid::assertion())
        }
        checked => checked,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_signature_is_an_error() {
        let wrong = Err(Error::InvalidCertificate(CertificateError::BadSignature));
        assert!(unless_unreadable(wrong).is_err());
        let unreadable = Err(Error::InvalidCertificate(CertificateError::BadEncoding));
        assert!(unless_unreadable(unreadable).is_ok());
    }
}
