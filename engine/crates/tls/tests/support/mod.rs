//! An in-memory server, and the bytes between it and a client.
#![allow(dead_code, reason = "every test file uses a part of this")]

use std::io::{Read, Write};
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use redline_tls::{Client, Error, Fed, Session, Settings, Version};
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::version::{TLS12, TLS13};
use rustls::{ServerConfig, ServerConnection};

/// A certificate authority, and a server's certificate from it.
pub struct Certificates {
    pub ca_pem: String,
    pub pem: String,
    pub key_pem: String,
    der: CertificateDer<'static>,
    key_der: Vec<u8>,
}

/// Makes an authority and a certificate for `name`.
pub fn certificates(name: &str) -> Certificates {
    certificates_of(KeyPair::generate().unwrap(), name)
}

/// The same, with an authority that has this key.
pub fn certificates_of(authority: KeyPair, name: &str) -> Certificates {
    let mut ca = CertificateParams::new(Vec::new()).unwrap();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    ca.distinguished_name.push(DnType::CommonName, "an authority");
    let ca = CertifiedIssuer::self_signed(ca, authority).unwrap();
    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&key, &ca).unwrap();
    Certificates {
        ca_pem: ca.pem(),
        pem: leaf.pem(),
        key_pem: key.serialize_pem(),
        der: leaf.der().clone(),
        key_der: key.serialize_der(),
    }
}

/// A self-signed certificate for `name` that claims to be a CA's, as `openssl req -x509` makes it.
pub fn own_certificate(name: &str) -> Certificates {
    self_signed_as(name, IsCa::Ca(BasicConstraints::Unconstrained))
}

/// A self-signed certificate for `name` that does not claim to be a CA's.
pub fn self_signed(name: &str) -> Certificates {
    self_signed_as(name, IsCa::NoCa)
}

fn self_signed_as(name: &str, is_ca: IsCa) -> Certificates {
    let mut own = CertificateParams::new(vec![name.to_owned()]).unwrap();
    own.is_ca = is_ca;
    let key = KeyPair::generate().unwrap();
    let own = own.self_signed(&key).unwrap();
    Certificates {
        ca_pem: own.pem(),
        pem: own.pem(),
        key_pem: key.serialize_pem(),
        der: own.der().clone(),
        key_der: key.serialize_der(),
    }
}

/// The configuration of a server with these certificates.
pub fn server_config(certificates: &Certificates, alpn: &[&str]) -> ServerConfig {
    server_config_of(certificates, alpn, None)
}

/// The same with a single cipher suite.
pub fn server_config_of(
    certificates: &Certificates,
    alpn: &[&str],
    only: Option<rustls::SupportedCipherSuite>,
) -> ServerConfig {
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(certificates.key_der.clone()));
    let mut provider = ring::default_provider();
    provider.cipher_suites.retain(|suite| only.is_none_or(|only| only == *suite));
    let versions = match only {
        None => vec![&TLS12, &TLS13],
        Some(only) => vec![only.version()],
    };
    let mut config = ServerConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&versions)
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificates.der.clone()], key)
        .unwrap();
    // So that TLS 1.2 sessions are resumed by tickets too.
    config.ticketer = ring::Ticketer::new().unwrap();
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    config
}

/// Settings that trust these certificates.
pub fn settings(certificates: &Certificates, versions: &[Version]) -> Settings {
    Settings {
        ca_pem: Some(certificates.ca_pem.clone()),
        insecure: false,
        server_name: "server.test".to_owned(),
        alpn: Vec::new(),
        versions: versions.to_vec(),
        resumption: true,
        certificate_pem: None,
        key_pem: None,
        ciphers: Vec::new(),
    }
}

/// A client and a server, and what the client has read.
pub struct Pair {
    pub session: Session,
    pub server: ServerConnection,
    pub plain: Vec<u8>,
    /// What the server has read.
    pub asked: Vec<u8>,
    pub last: Fed,
}

impl Pair {
    pub fn new(client: &Client, server: &Arc<ServerConfig>) -> Self {
        Self {
            session: client.connect().unwrap(),
            server: ServerConnection::new(Arc::clone(server)).unwrap(),
            plain: Vec::new(),
            asked: Vec::new(),
            last: Fed::default(),
        }
    }

    /// Moves the client's waiting bytes to the server; an error is the server's.
    pub fn client_speaks(&mut self) -> Result<(), rustls::Error> {
        let mut bytes = Vec::new();
        self.session.output(&mut bytes);
        self.deliver(&bytes)
    }

    /// Passes bytes of the client to the server.
    pub fn deliver(&mut self, mut bytes: &[u8]) -> Result<(), rustls::Error> {
        while !bytes.is_empty() {
            self.server.read_tls(&mut bytes).unwrap();
            let length = self.server.process_new_packets()?.plaintext_bytes_to_read();
            let start = self.asked.len();
            self.asked.resize(start + length, 0);
            self.server.reader().read_exact(&mut self.asked[start..]).unwrap();
        }
        Ok(())
    }

    /// The server's waiting bytes.
    pub fn server_bytes(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        while self.server.wants_write() {
            self.server.write_tls(&mut bytes).unwrap();
        }
        bytes
    }

    /// Moves the server's waiting bytes to the client.
    pub fn server_speaks(&mut self) -> Result<(), Error> {
        let bytes = self.server_bytes();
        let fed = self.session.feed(&bytes, &mut self.plain)?;
        self.last.handshake_done_now |= fed.handshake_done_now;
        self.last.closed |= fed.closed;
        Ok(())
    }

    /// Moves bytes until neither side has any.
    pub fn shake(&mut self) -> Result<(), Error> {
        for _ in 0..4 {
            let of_server = self.client_speaks();
            self.server_speaks()?;
            of_server?;
        }
        Ok(())
    }

    /// Sends `request` to the server, which sends `answer`. Returns what either side has read.
    pub fn exchange(&mut self, request: &[u8], answer: &[u8]) -> (Vec<u8>, Vec<u8>) {
        self.ask(request);
        self.answer(answer);
        (std::mem::take(&mut self.asked), std::mem::take(&mut self.plain))
    }

    /// Sends `request` to the server.
    pub fn ask(&mut self, request: &[u8]) {
        let mut sealed = Vec::new();
        self.session.seal(request, &mut sealed).unwrap();
        self.deliver(&sealed).unwrap();
    }

    /// Lets the server send `answer`.
    pub fn answer(&mut self, answer: &[u8]) {
        let bytes = self.sealed_answer(answer);
        self.session.feed(&bytes, &mut self.plain).unwrap();
    }

    /// The bytes that the server would send with `answer`.
    pub fn sealed_answer(&mut self, answer: &[u8]) -> Vec<u8> {
        self.server.set_buffer_limit(None);
        self.server.writer().write_all(answer).unwrap();
        self.server_bytes()
    }
}
