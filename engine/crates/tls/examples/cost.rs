//! Measures what a TLS connection costs: `cargo run --release -p redline-tls --example cost [BYTES]`.
//!
//! Prints the thread's CPU time for sealing and opening small records (requests and answers of BYTES, by default 100), in turn
//! with a buffered connection of rustls, and the bytes on the heap that an idle session holds. Only the client is measured: the
//! bytes from the server are made beforehand.

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use redline_tls::{Client, Session, Settings, Version};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};

const RECORDS: usize = 2000;
const ROUNDS: usize = 40;

/// Counts the bytes on the heap.
struct Counting;
static HELD: AtomicUsize = AtomicUsize::new(0);

// SAFETY: it only counts what the system's allocator does.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(layout.size(), Relaxed);
        // SAFETY: the caller keeps the contract, which is the same.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the pointer came from the same allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

trait Side {
    fn seal(&mut self, plain: &[u8], out: &mut Vec<u8>);
    fn open(&mut self, bytes: &[u8], plain: &mut Vec<u8>);
}

impl Side for Session {
    fn seal(&mut self, plain: &[u8], out: &mut Vec<u8>) {
        Session::seal(self, plain, out).unwrap();
    }
    fn open(&mut self, bytes: &[u8], plain: &mut Vec<u8>) {
        self.feed(bytes, plain).unwrap();
    }
}

impl Side for ClientConnection {
    fn seal(&mut self, plain: &[u8], out: &mut Vec<u8>) {
        self.writer().write_all(plain).unwrap();
        while self.wants_write() {
            self.write_tls(out).unwrap();
        }
    }
    fn open(&mut self, mut bytes: &[u8], plain: &mut Vec<u8>) {
        while !bytes.is_empty() {
            self.read_tls(&mut bytes).unwrap();
            let (start, length) = (plain.len(), self.process_new_packets().unwrap().plaintext_bytes_to_read());
            plain.resize(start + length, 0);
            self.reader().read_exact(&mut plain[start..]).unwrap();
        }
    }
}

/// The server's part of the handshake: its answer to `bytes`.
fn served(server: &mut ServerConnection, mut bytes: &[u8]) -> Vec<u8> {
    while !bytes.is_empty() {
        server.read_tls(&mut bytes).unwrap();
        server.process_new_packets().unwrap();
    }
    let mut out = Vec::new();
    while server.wants_write() {
        server.write_tls(&mut out).unwrap();
    }
    out
}

fn ours(client: &Client, server: &Arc<ServerConfig>) -> (Box<Session>, ServerConnection) {
    let (mut session, mut server) =
        (Box::new(client.connect().unwrap()), ServerConnection::new(Arc::clone(server)).unwrap());
    for _ in 0..4 {
        let mut bytes = Vec::new();
        session.output(&mut bytes);
        session.feed(&served(&mut server, &bytes), &mut Vec::new()).unwrap();
    }
    (session, server)
}

fn theirs(config: &Arc<ClientConfig>, server: &Arc<ServerConfig>) -> (Box<ClientConnection>, ServerConnection) {
    let name = ServerName::try_from("server.test").unwrap();
    let (mut client, mut server) = (
        Box::new(ClientConnection::new(Arc::clone(config), name).unwrap()),
        ServerConnection::new(Arc::clone(server)).unwrap(),
    );
    for _ in 0..4 {
        let mut bytes = Vec::new();
        client.seal(&[], &mut bytes);
        client.open(&served(&mut server, &bytes), &mut Vec::new());
    }
    (client, server)
}

fn cpu_ns() -> i64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is writable.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut now) };
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

/// Nanoseconds for sealing and for opening a record.
fn round(side: &mut dyn Side, server: &mut ServerConnection, data: &[u8]) -> (i64, i64) {
    let answers: Vec<Vec<u8>> = (0..RECORDS)
        .map(|_| {
            server.writer().write_all(data).unwrap();
            served(server, &[])
        })
        .collect();
    let (mut out, mut plain) = (Vec::with_capacity(1 << 16), Vec::with_capacity(1 << 16));
    let start = cpu_ns();
    for _ in 0..RECORDS {
        out.clear();
        side.seal(black_box(data), &mut out);
    }
    let sealed = cpu_ns();
    for answer in &answers {
        plain.clear();
        side.open(black_box(answer), &mut plain);
    }
    ((sealed - start) / RECORDS as i64, (cpu_ns() - sealed) / RECORDS as i64)
}

fn main() {
    let length = std::env::args().nth(1).map_or(100, |text| text.parse().expect("a number of bytes"));
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = rcgen::CertificateParams::new(vec!["server.test".to_owned()]).unwrap().self_signed(&key).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certificate.der().clone()).unwrap();
    for (version, of_rustls) in [(Version::V1_3, &rustls::version::TLS13), (Version::V1_2, &rustls::version::TLS12)] {
        let mut provider = rustls::crypto::ring::default_provider();
        provider.cipher_suites.retain(|suite| format!("{suite:?}").contains("AES_128"));
        let provider = Arc::new(provider);
        let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[of_rustls])
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
            );
        let server = Arc::new(server.unwrap());
        let config = ClientConfig::builder_with_provider(provider).with_protocol_versions(&[of_rustls]).unwrap();
        let config = Arc::new(config.with_root_certificates(roots.clone()).with_no_client_auth());
        let client = Client::new(&Settings {
            ca_pem: Some(certificate.pem()),
            insecure: false,
            server_name: "server.test".to_owned(),
            alpn: Vec::new(),
            versions: vec![version],
            resumption: false,
            certificate_pem: None,
            key_pem: None,
            ciphers: Vec::new(),
        });
        let client = client.unwrap();
        cost(&format!("{version:?}"), &client, &config, &server, &vec![b'x'; length]);
    }
}

fn cost(name: &str, client: &Client, config: &Arc<ClientConfig>, server: &Arc<ServerConfig>, data: &[u8]) {
    let before = HELD.load(Relaxed);
    let (sessions, of_servers): (Vec<_>, Vec<_>) = (0..100).map(|_| ours(client, server)).unzip();
    let with_servers = HELD.load(Relaxed) - before;
    drop(of_servers);
    let held = HELD.load(Relaxed) - before;
    println!("{name}: an idle session holds {} bytes (a server's {})", held / 100, (with_servers - held) / 100);
    drop(sessions);
    let (mut session, mut server_of_session) = ours(client, server);
    let (mut peer, mut server_of_peer) = theirs(config, server);
    let mut rounds = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        rounds[0].push(round(&mut *session, &mut server_of_session, data));
        rounds[1].push(round(&mut *peer, &mut server_of_peer, data));
    }
    for (who, rounds) in ["redline-tls", "rustls buffered"].iter().zip(&mut rounds) {
        let median = |mut of: Vec<i64>| {
            of.sort_unstable();
            of[of.len() / 2]
        };
        let (seal, open) = (median(rounds.iter().map(|r| r.0).collect()), median(rounds.iter().map(|r| r.1).collect()));
        println!("{name}: {who}: seal {seal} ns, open {open} ns, exchange {} ns of CPU", seal + open);
    }
}
