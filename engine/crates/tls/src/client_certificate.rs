//! The certificate that this side shows to servers that ask for it, if it has any.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use rustls::client::ResolvesClientCert;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{InconsistentKeys, SignatureScheme};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;

use crate::settings::Unusable;

const PEM_HINT: &str = "give the client's certificate, which begins with -----BEGIN CERTIFICATE-----";
const KEY_HINT: &str = "give the certificate's key, which begins with -----BEGIN PRIVATE KEY-----";
const DECRYPT_HINT: &str = "write it without a password: openssl pkey -in KEY -out plain.pem";

/// The certificate of this side, and whether a server has requested it. An alert after the request then says why the connection
/// failed.
#[derive(Debug, Default)]
pub(crate) struct ClientCertificate {
    key: Option<Arc<CertifiedKey>>,
    requested: AtomicBool,
}

impl ClientCertificate {
    /// A certificate, those of its authorities, and its key, from the texts of PEM files.
    pub(crate) fn read(
        certificate_pem: Option<&str>,
        key_pem: Option<&str>,
        provider: &CryptoProvider,
    ) -> Result<Self, Unusable> {
        let (Some(certificate_pem), Some(key_pem)) = (certificate_pem, key_pem) else {
            return match (certificate_pem, key_pem) {
                (Some(_), None) => Err(Unusable::new("key_pem", "a certificate without its key", KEY_HINT)),
                (None, Some(_)) => Err(Unusable::new("cert_pem", "a key without its certificate", PEM_HINT)),
                _ => Ok(Self::default()),
            };
        };
        let chain = chain_of(certificate_pem)?;
        check_dates(&chain[0])?;
        let key = key_of(key_pem)?;
        let key = provider.key_provider.load_private_key(key).map_err(|_| {
            Unusable::new(
                "key_pem",
                "this key is of a kind that the engine does not support",
                "use RSA, ECDSA or Ed25519",
            )
        })?;
        let certified = CertifiedKey::new(chain, key);
        match certified.keys_match() {
            Ok(()) | Err(rustls::Error::InconsistentKeys(InconsistentKeys::Unknown)) => {}
            Err(rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch)) => {
                return Err(Unusable::new(
                    "key_pem",
                    "this is not the key of the certificate",
                    "give the pair of files that belong together",
                ));
            }
            Err(error) => {
                return Err(Unusable::new("cert_pem", format!("the certificate cannot be read: {error}"), PEM_HINT));
            }
        }
        Ok(Self { key: Some(Arc::new(certified)), requested: AtomicBool::new(false) })
    }

    /// Whether a server has requested a certificate.
    pub(crate) fn was_requested(&self) -> bool {
        self.requested.load(Relaxed)
    }

    /// Whether there is a certificate to show.
    pub(crate) fn is_given(&self) -> bool {
        self.key.is_some()
    }
}

fn chain_of(pem: &str) -> Result<Vec<CertificateDer<'static>>, Unusable> {
    let chain = CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<Vec<_>, _>>();
    let chain = chain.map_err(|error| Unusable::new("cert_pem", format!("it is not PEM: {error}"), PEM_HINT))?;
    if chain.is_empty() { Err(Unusable::new("cert_pem", "there is no certificate in it", PEM_HINT)) } else { Ok(chain) }
}

/// Servers say only that they do not accept a certificate, if they say anything. An expired one can be named before.
fn check_dates(certificate: &CertificateDer<'_>) -> Result<(), Unusable> {
    let (_, read) = X509Certificate::from_der(certificate)
        .map_err(|_| Unusable::new("cert_pem", "the first certificate in it cannot be read", PEM_HINT))?;
    let (validity, now) = (read.validity(), x509_parser::time::ASN1Time::now());
    if now > validity.not_after {
        let problem = format!("the certificate has expired: it was valid until {}", validity.not_after);
        return Err(Unusable::new("cert_pem", problem, "renew it"));
    }
    if now < validity.not_before {
        let problem = format!("the certificate is not valid yet: it begins {}", validity.not_before);
        return Err(Unusable::new("cert_pem", problem, "see whether the clock of this machine is right"));
    }
    Ok(())
}

fn key_of(pem: &str) -> Result<PrivateKeyDer<'static>, Unusable> {
    if pem.contains("-----BEGIN ENCRYPTED PRIVATE KEY-----") || pem.contains("Proc-Type: 4,ENCRYPTED") {
        return Err(Unusable::new("key_pem", "the key is encrypted with a password", DECRYPT_HINT));
    }
    PrivateKeyDer::from_pem_slice(pem.as_bytes())
        .map_err(|_| Unusable::new("key_pem", "there is no private key in it", KEY_HINT))
}

impl ResolvesClientCert for ClientCertificate {
    fn resolve(&self, _issuers: &[&[u8]], schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.requested.store(true, Relaxed);
        self.key.as_ref().filter(|certified| certified.key.choose_scheme(schemes).is_some()).cloned()
    }

    fn has_certs(&self) -> bool {
        self.key.is_some()
    }
}
