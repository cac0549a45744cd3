//! Trust in a server whose own certificate was given, and in servers whose certificates a given CA signed.

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, SignatureScheme};
use webpki::EndEntityCert;

/// The server's certificate is self-signed, and was not given as trusted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SelfSigned;

impl fmt::Display for SelfSigned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the server's certificate is self-signed and not trusted")
    }
}

impl std::error::Error for SelfSigned {}

/// Checks as webpki does, and accepts also a certificate that equals one of the given certificates byte by byte. `openssl req
/// -x509` marks its certificates as CAs, and webpki accepts no CA as a server; but a user who gives such a certificate as
/// trusted means it. Its name is checked; its dates are not.
#[derive(Debug)]
pub(crate) struct CaOrOwn {
    webpki: Arc<WebPkiServerVerifier>,
    given: Vec<CertificateDer<'static>>,
}

impl CaOrOwn {
    pub(crate) fn new(webpki: Arc<WebPkiServerVerifier>, given: Vec<CertificateDer<'static>>) -> Self {
        Self { webpki, given }
    }
}

impl ServerCertVerifier for CaOrOwn {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.webpki.verify_server_cert(certificate, intermediates, name, ocsp, now).or_else(|why| {
            if !self.given.iter().any(|given| given == certificate) {
                return Err(if is_untrusted(&why) && is_self_signed(certificate) {
                    CertificateError::Other(OtherError(Arc::new(SelfSigned))).into()
                } else {
                    why
                });
            }
            verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
            Ok(ServerCertVerified::assertion())
        })
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.webpki.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.webpki.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.webpki.supported_verify_schemes()
    }
}

/// Whether no trusted authority has signed the certificate. If the certificate claims to be a CA's, as those of `openssl req
/// -x509` do, webpki reports only that.
fn is_untrusted(why: &Error) -> bool {
    match why {
        // The signature is wrong if a trusted authority has the issuer's name, but another key.
        Error::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature) => true,
        Error::InvalidCertificate(CertificateError::Other(other)) => is_ca_as_server(other),
        _ => false,
    }
}

/// Whether a certificate is refused as a server's because it claims to be a CA's.
pub(crate) fn is_ca_as_server(error: &OtherError) -> bool {
    matches!(error.0.downcast_ref(), Some(webpki::Error::CaUsedAsEndEntity))
}

fn is_self_signed(certificate: &CertificateDer<'_>) -> bool {
    EndEntityCert::try_from(certificate).is_ok_and(|certificate| certificate.issuer() == certificate.subject())
}
