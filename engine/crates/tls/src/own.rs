//! Trust in a server whose own certificate was given, as well as in those that its CA signed.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{DigitallySignedStruct, Error, SignatureScheme};

/// Checks as webpki does, and beside that takes a certificate that is one of those given, byte by byte. `openssl req -x509` says of
/// what it makes that it is a CA, and webpki takes no CA for a server; but who gives such a certificate to be trusted means it.
/// Its name is checked; its dates are not.
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
                return Err(why);
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
