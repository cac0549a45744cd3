//! An authority, certificates from it, and a TLS server with blocking sockets, based on rustls.

use std::io::{self, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{HandshakeKind, RootCertStore, ServerConfig, ServerConnection, StreamOwned, SupportedProtocolVersion};

/// The certificate of an authority, and a server's from it.
pub struct Certificates {
    pub ca_pem: String,
    pub pem: String,
    pub key_pem: String,
    der: CertificateDer<'static>,
    key_der: Vec<u8>,
}

/// Make an authority, and a certificate for this name or address.
pub fn certificates(name: &str) -> Certificates {
    let mut ca = CertificateParams::new(Vec::new()).unwrap();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = CertifiedIssuer::self_signed(ca, KeyPair::generate().unwrap()).unwrap();
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

/// Make a self-signed certificate for this name or address, which expired long ago.
pub fn own_expired_certificate(name: &str) -> Certificates {
    let mut own = CertificateParams::new(vec![name.to_owned()]).unwrap();
    (own.not_before, own.not_after) = (date_time_ymd(2001, 1, 1), date_time_ymd(2002, 1, 1));
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

impl Certificates {
    /// The configuration of a server that requires a client certificate from the same authority.
    pub fn demanding_config(&self, version: &'static SupportedProtocolVersion) -> ServerConfig {
        let provider = Arc::new(ring::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.ca_pem.as_bytes()).unwrap()).unwrap();
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).build();
        ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[version])
            .unwrap()
            .with_client_cert_verifier(verifier.unwrap())
            .with_single_cert(vec![self.der.clone()], PrivatePkcs8KeyDer::from(self.key_der.clone()).into())
            .unwrap()
    }

    /// The configuration of a server with these certificates.
    pub fn config(&self, versions: &[&'static SupportedProtocolVersion], alpn: &[&str]) -> ServerConfig {
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.key_der.clone()));
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(versions)
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![self.der.clone()], key)
            .unwrap();
        // So that TLS 1.2 sessions are resumed by tickets too.
        config.ticketer = ring::Ticketer::new().unwrap();
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        config
    }
}

/// The server's end of a TLS connection.
pub struct Secure(BufReader<StreamOwned<ServerConnection, TcpStream>>);

impl Secure {
    /// Read a whole request. `None` when the client has closed.
    pub fn request(&mut self) -> io::Result<Option<crate::support::server::Request>> {
        crate::support::server::read_request(&mut self.0)
    }

    /// Read a byte of a request, and leave the rest.
    pub fn first_byte(&mut self) -> io::Result<()> {
        self.0.get_mut().read_exact(&mut [0])
    }

    /// The stream, of which nothing was read.
    pub fn into_stream(self) -> StreamOwned<ServerConnection, TcpStream> {
        self.0.into_inner()
    }

    pub fn say(&mut self, text: &str) -> io::Result<()> {
        self.0.get_mut().write_all(text.as_bytes())?;
        self.0.get_mut().flush()
    }

    /// Send `close_notify`, and end the connection.
    pub fn close(mut self) -> io::Result<()> {
        let stream = self.0.get_mut();
        stream.conn.send_close_notify();
        while stream.conn.wants_write() {
            stream.conn.write_tls(&mut stream.sock)?;
        }
        stream.sock.shutdown(Shutdown::Write)?;
        stream.sock.set_read_timeout(Some(Duration::from_secs(10)))?;
        let _ = io::copy(&mut stream.sock, &mut io::sink());
        Ok(())
    }
}

/// A TLS server; it ends with the test.
pub struct TlsServer {
    pub port: u16,
    /// Successful handshakes, and those of them that resumed a session.
    pub shaken: Arc<AtomicUsize>,
    pub resumed: Arc<AtomicUsize>,
    /// The server name that the last client sent.
    pub named: Arc<std::sync::Mutex<Option<String>>>,
}

impl TlsServer {
    pub fn start(
        config: ServerConfig,
        serve: impl Fn(Secure, usize) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = Self { port, shaken: Arc::default(), resumed: Arc::default(), named: Arc::default() };
        let (shaken, resumed, named) = (server.shaken.clone(), server.resumed.clone(), server.named.clone());
        let (config, serve) = (Arc::new(config), Arc::new(serve));
        thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                let Ok(mut stream) = stream else { continue };
                let mut tls = ServerConnection::new(Arc::clone(&config)).unwrap();
                let serve = Arc::clone(&serve);
                let (shaken, resumed, named) = (shaken.clone(), resumed.clone(), named.clone());
                thread::spawn(move || -> io::Result<()> {
                    stream.set_nodelay(true)?;
                    while tls.is_handshaking() {
                        tls.complete_io(&mut stream)?;
                    }
                    *named.lock().unwrap() = tls.server_name().map(str::to_owned);
                    shaken.fetch_add(1, SeqCst);
                    resumed.fetch_add(usize::from(tls.handshake_kind() == Some(HandshakeKind::Resumed)), SeqCst);
                    serve(Secure(BufReader::new(StreamOwned::new(tls, stream))), number)
                });
            }
        });
        server
    }

    /// Answer every request on every connection with these bytes.
    pub fn answering(config: ServerConfig, answer: &'static str) -> Self {
        Self::start(config, move |mut peer, _| {
            while peer.request()?.is_some() {
                peer.say(answer)?;
            }
            Ok(())
        })
    }
}
