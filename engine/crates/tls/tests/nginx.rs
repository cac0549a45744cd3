//! Tests against nginx, which uses OpenSSL, if it is installed.

mod support;

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use redline_tls::{Client, Session, Settings, Version};
use support::{Certificates, certificates, settings};

const PATIENCE: Duration = Duration::from_secs(10);
const BIG_BYTES: usize = 300_000;

/// A running nginx, which is ended, and whose files are removed, when this is dropped.
struct Nginx {
    process: Child,
    directory: PathBuf,
    port: u16,
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn configuration(port: u16) -> String {
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|what| format!("  {what}_temp_path {what};\n"))
        .concat();
    format!(
        "daemon off; master_process off; pid nginx.pid; error_log stderr;\nevents {{ }}\nhttp {{\n{temporary}  access_log off;
  server {{
    listen 127.0.0.1:{port} ssl; ssl_certificate cert.pem; ssl_certificate_key key.pem;
    ssl_protocols TLSv1.2 TLSv1.3; keepalive_requests 50; root files;
    location = /hello {{ return 200 hello; }}
  }}\n}}\n"
    )
}

/// Starts nginx; `None`, with a message, if it is not installed.
fn start(name: &str, certificates: &Certificates) -> Option<Nginx> {
    let program = ["nginx", "/usr/sbin/nginx"].into_iter().find(|nginx| {
        Command::new(nginx).arg("-v").stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    });
    let Some(nginx) = program else {
        eprintln!("SKIPPED: nginx is not installed");
        return None;
    };
    let directory = std::env::temp_dir().join(format!("redline-tls-{}-{name}", std::process::id()));
    fs::create_dir_all(directory.join("files")).unwrap();
    // Free now; nginx reports if it is taken in between.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    fs::write(directory.join("nginx.conf"), configuration(port)).unwrap();
    fs::write(directory.join("cert.pem"), &certificates.pem).unwrap();
    fs::write(directory.join("key.pem"), &certificates.key_pem).unwrap();
    fs::write(directory.join("files/big"), vec![b'b'; BIG_BYTES]).unwrap();
    let process = Command::new(nginx).arg("-p").arg(&directory).args(["-c", "nginx.conf"]).spawn().unwrap();
    let nginx = Nginx { process, directory, port };
    let start = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(start.elapsed() < PATIENCE, "nginx does not listen");
        sleep(Duration::from_millis(10));
    }
    Some(nginx)
}

/// A session and its socket.
struct Connection {
    socket: TcpStream,
    session: Session,
    plain: Vec<u8>,
    closed: bool,
}

impl Connection {
    fn open(client: &Client, port: u16) -> Self {
        let socket = TcpStream::connect(("127.0.0.1", port)).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut connection = Self { socket, session: client.connect().unwrap(), plain: Vec::new(), closed: false };
        connection.write();
        while connection.session.is_handshaking() {
            assert!(connection.read() > 0, "nginx ended the handshake");
        }
        connection
    }

    fn write(&mut self) {
        let mut out = Vec::new();
        self.session.output(&mut out);
        self.socket.write_all(&out).unwrap();
    }

    /// Reads once. Returns how many bytes arrived; 0 is the end.
    fn read(&mut self) -> usize {
        let mut bytes = [0; 3000];
        let length = self.socket.read(&mut bytes).unwrap();
        self.closed |= self.session.feed(&bytes[..length], &mut self.plain).unwrap().closed;
        self.write();
        length
    }

    fn ask(&mut self, path: &str, more: &str) {
        let mut out = Vec::new();
        let request = format!("GET {path} HTTP/1.1\r\nHost: server.test\r\n{more}\r\n");
        self.session.seal(request.as_bytes(), &mut out).unwrap();
        self.socket.write_all(&out).unwrap();
    }

    /// Reads until the answer's body, of known length, is complete.
    fn answer(&mut self, length: usize) -> Vec<u8> {
        loop {
            let head = self.plain.windows(4).position(|end| end == b"\r\n\r\n").map(|at| at + 4);
            if let Some(head) = head.filter(|head| self.plain.len() >= head + length) {
                assert!(self.plain.starts_with(b"HTTP/1.1 200"));
                return std::mem::take(&mut self.plain).split_off(head);
            }
            assert!(self.read() > 0, "nginx ended the connection");
        }
    }
}

fn serves(version: Version, name: &str) {
    let certificates = certificates("server.test");
    let Some(nginx) = start(name, &certificates) else { return };
    let alpn = vec![b"http/1.1".to_vec()];
    let client = Client::new(&Settings { alpn, ..settings(&certificates, &[version]) }).unwrap();
    for round in 0..3 {
        let mut connection = Connection::open(&client, nginx.port);
        assert_eq!(connection.session.version(), name);
        assert_eq!(connection.session.alpn(), Some(&b"http/1.1"[..]));
        assert!(connection.session.cipher().contains("AES_128_GCM"));
        assert_eq!(connection.session.resumed(), round > 0);
        for _ in 0..20 {
            connection.ask("/hello", "");
            assert_eq!(connection.answer(5), b"hello");
        }
        connection.ask("/big", "");
        assert_eq!(connection.answer(BIG_BYTES), vec![b'b'; BIG_BYTES]);
        connection.ask("/hello", "Connection: close\r\n");
        assert_eq!(connection.answer(5), b"hello");
        while connection.read() > 0 {}
        assert!(connection.closed, "nginx says that it closes");
    }
}

#[test]
fn nginx_over_tls_1_2() {
    serves(Version::V1_2, "1.2");
}

#[test]
fn nginx_over_tls_1_3() {
    serves(Version::V1_3, "1.3");
}
