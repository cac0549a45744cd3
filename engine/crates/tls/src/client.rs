//! What the connections to a target share.

use std::sync::Arc;

use rustls::client::danger::ServerCertVerifier;
use rustls::client::{Resumption, UnbufferedClientConnection, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{CipherSuite, ClientConfig, RootCertStore, SupportedProtocolVersion, version};

use crate::ciphers::permitted;
use crate::client_certificate::ClientCertificate;
use crate::insecure::AnyCertificate;
use crate::own::CaOrOwn;
use crate::session::{Error, Session};
use crate::settings::{Settings, Unusable, Version};
use crate::tickets::Tickets;

/// The shared state of the connections to a target: trust, versions, ALPN, tickets. Cloning is cheap, and clones resume each
/// other's sessions.
#[derive(Clone, Debug)]
pub struct Client {
    config: Arc<ClientConfig>,
    resumption: bool,
    name: ServerName<'static>,
    certificate: Arc<ClientCertificate>,
}

impl Client {
    /// Creates a client from settings. Reads the certificates of the system if no others are given.
    ///
    /// # Errors
    /// The field with which no connection could be made.
    pub fn new(settings: &Settings) -> Result<Self, Unusable> {
        let name = ServerName::try_from(settings.server_name.clone()).map_err(|_| {
            Unusable::new(
                "server_name",
                format!("{:?} is neither a DNS name nor an address", settings.server_name),
                "give the name that the certificate is for, without scheme, port or path",
            )
        })?;
        let mut provider = provider();
        provider.cipher_suites = permitted(provider.cipher_suites, &settings.ciphers, &settings.versions)?;
        let provider = Arc::new(provider);
        let verifier = verifier(settings, &provider)?;
        let (certificate, key) = (settings.certificate_pem.as_deref(), settings.key_pem.as_deref());
        let certificate = Arc::new(ClientCertificate::read(certificate, key, &provider)?);
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&versions(&settings.versions)?)
            .map_err(|e| Unusable::new("versions", e.to_string(), "allow TLS 1.2 or 1.3"))?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_client_cert_resolver(Arc::clone(&certificate) as _);
        // After the handshake, this crate seals and opens records, not rustls.
        config.enable_secret_extraction = true;
        config.alpn_protocols = alpn(&settings.alpn)?;
        config.resumption =
            if settings.resumption { Resumption::store(Arc::new(Tickets::default())) } else { Resumption::disabled() };
        Ok(Self { config: Arc::new(config), resumption: settings.resumption, name, certificate })
    }

    /// Begins a connection; its first bytes are waiting in [`Session::output`].
    ///
    /// # Errors
    /// When the machine provides no random numbers.
    pub fn connect(&self) -> Result<Session, Error> {
        let tls = UnbufferedClientConnection::new(Arc::clone(&self.config), self.name.clone())?;
        Session::begin(tls, self.resumption, Arc::clone(&self.certificate))
    }
}

/// AES with 128 bits is offered first, as by browsers: it is the cheapest for both ends.
fn provider() -> CryptoProvider {
    let mut provider = ring::default_provider();
    let is_cheapest = |suite: CipherSuite| suite.as_str().is_some_and(|name| name.contains("AES_128"));
    provider.cipher_suites.sort_by_key(|suite| !is_cheapest(suite.suite()));
    provider
}

fn verifier(settings: &Settings, provider: &Arc<CryptoProvider>) -> Result<Arc<dyn ServerCertVerifier>, Unusable> {
    if settings.insecure {
        return Ok(Arc::new(AnyCertificate::new(provider.signature_verification_algorithms)));
    }
    let (roots, given) = match &settings.ca_pem {
        Some(pem) => roots_of(pem)?,
        None => (roots_of_the_system()?, Vec::new()),
    };
    let built = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider)).build();
    let webpki = built.map_err(|e| Unusable::new("ca_pem", e.to_string(), "give a file with the CA's certificate"))?;
    Ok(Arc::new(CaOrOwn::new(webpki, given)))
}

/// The certificates of a PEM file, as roots and as they are.
fn roots_of(pem: &str) -> Result<(RootCertStore, Vec<CertificateDer<'static>>), Unusable> {
    const HINT: &str = "give the CA's certificate, which begins with -----BEGIN CERTIFICATE-----";
    let (mut roots, mut given) = (RootCertStore::empty(), Vec::new());
    for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
        let certificate = certificate.map_err(|e| Unusable::new("ca_pem", format!("it is not PEM: {e}"), HINT))?;
        let added = roots.add(certificate.clone());
        added.map_err(|e| Unusable::new("ca_pem", format!("a certificate in it cannot be read: {e}"), HINT))?;
        given.push(certificate);
    }
    if given.is_empty() {
        Err(Unusable::new("ca_pem", "there is no certificate in it", HINT))
    } else {
        Ok((roots, given))
    }
}

/// The system's own store instead of a compiled-in list: it has the CAs of a company, and `SSL_CERT_FILE` and `SSL_CERT_DIR`
/// replace it as they do for other tools.
fn roots_of_the_system() -> Result<RootCertStore, Unusable> {
    let loaded = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    // Stores contain old certificates that cannot be read. They are skipped, as other programs do.
    roots.add_parsable_certificates(loaded.certs);
    if !roots.is_empty() {
        return Ok(roots);
    }
    let why = loaded.errors.first().map(|e| format!(" ({e})")).unwrap_or_default();
    Err(Unusable::new(
        "ca_pem",
        format!("absent, and the system has no trusted certificates{why}"),
        "give the CA's certificate, install ca-certificates, or set SSL_CERT_FILE",
    ))
}

fn versions(wanted: &[Version]) -> Result<Vec<&'static SupportedProtocolVersion>, Unusable> {
    let mut versions = Vec::new();
    for (version, supported) in [(Version::V1_3, &version::TLS13), (Version::V1_2, &version::TLS12)] {
        if wanted.contains(&version) {
            versions.push(supported);
        }
    }
    if versions.is_empty() {
        Err(Unusable::new("versions", "there are none", "allow TLS 1.2 or 1.3"))
    } else {
        Ok(versions)
    }
}

fn alpn(protocols: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, Unusable> {
    if protocols.iter().all(|name| (1..=255).contains(&name.len())) {
        Ok(protocols.to_vec())
    } else {
        Err(Unusable::new("alpn", "a name has no bytes or more than 255", "such as h2 or http/1.1"))
    }
}
