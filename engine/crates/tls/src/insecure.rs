//! Trust in any certificate, for targets with self-made certificates.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, Error, SignatureScheme};

/// Schemes that cannot be checked here, and need not be: keys on the curve P-521, and signatures of old servers.
const UNCHECKED: [SignatureScheme; 3] =
    [SignatureScheme::ECDSA_NISTP521_SHA512, SignatureScheme::RSA_PKCS1_SHA1, SignatureScheme::ECDSA_SHA1_Legacy];

/// Trusts any certificate and any signature: RSA with 1024 bits, P-521, or a wrong signature. Signatures are checked all the
/// same, so that a handshake costs as much as with trust, except for the chain.
/// same, so that a handshake costs what it costs with trust, but for the chain.
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
        Ok(either_way(verify_tls12_signature(message, certificate, signature, &self.algorithms)))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(either_way(verify_tls13_signature(message, certificate, signature, &self.algorithms)))
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        [self.algorithms.supported_schemes(), UNCHECKED.to_vec()].concat()
    }
}

/// Ignores the result of a check: without trust in the certificate, a signature proves nothing.
fn either_way(checked: Result<HandshakeSignatureValid, Error>) -> HandshakeSignatureValid {
    checked.unwrap_or_else(|_| HandshakeSignatureValid::assertion())
}
