//! Client certificates, of which there are none.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use rustls::SignatureScheme;
use rustls::client::ResolvesClientCert;
use rustls::sign::CertifiedKey;

/// Whether a server has requested a client certificate. An alert after the request then says why the connection failed.
#[derive(Debug, Default)]
pub(crate) struct CertificateRequests(AtomicBool);

impl CertificateRequests {
    pub(crate) fn were_seen(&self) -> bool {
        self.0.load(Relaxed)
    }
}

impl ResolvesClientCert for CertificateRequests {
    fn resolve(&self, _issuers: &[&[u8]], _schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.0.store(true, Relaxed);
        None
    }

    fn has_certs(&self) -> bool {
        false
    }
}
