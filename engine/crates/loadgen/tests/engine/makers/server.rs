//! Starts and ends the servers of others.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::support::tls::{Certificates, certificates};

/// A JVM that compiles its program first takes a while on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server that is ended, and whose files are removed, when this is dropped.
pub struct Maker {
    pub ports: Vec<u16>,
    pub certificates: Certificates,
    process: Child,
    directory: PathBuf,
}

impl Drop for Maker {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// The first of these programs that runs with this argument; `None`, with a message, if there is none.
fn working_program(programs: &[&'static str], argument: &str) -> Option<&'static str> {
    let program = programs.iter().copied().find(|program| {
        let mut command = Command::new(program);
        command.arg(argument).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    });
    if program.is_none() {
        eprintln!("SKIPPED: {} is not installed", programs[0]);
    }
    program
}

/// A directory with certificates.
fn workplace() -> (PathBuf, Certificates) {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, SeqCst);
    let directory = std::env::temp_dir().join(format!("redline-makers-{}-{number}", std::process::id()));
    fs::create_dir_all(directory.join("files")).unwrap();
    let certificates = certificates("127.0.0.1");
    fs::write(directory.join("cert.pem"), &certificates.pem).unwrap();
    fs::write(directory.join("key.pem"), &certificates.key_pem).unwrap();
    fs::write(directory.join("files/hello"), "hello").unwrap();
    (directory, certificates)
}

/// Ports that are free and stay free: below the kernel's ephemeral range, from which other tests take ports all the time. No
/// port is returned twice.
fn free_ports(count: usize) -> Vec<u16> {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let first = std::process::id() as usize;
    let candidates = std::iter::repeat_with(|| 12_000 + (first * 16 + NEXT.fetch_add(1, SeqCst)) % 20_000);
    let ports = candidates.take(20_000).map(|port| u16::try_from(port).unwrap());
    ports.filter(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).take(count).collect()
}

/// Start a server that listens on these ports when it is ready.
fn start(command: &mut Command, directory: PathBuf, certificates: Certificates, ports: Vec<u16>) -> Maker {
    let process = command.current_dir(&directory).stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    let mut maker = Maker { ports, certificates, process, directory };
    let begun = Instant::now();
    for port in &maker.ports {
        while TcpStream::connect(("127.0.0.1", *port)).is_err() {
            assert!(begun.elapsed() < PATIENCE, "nobody listens on {port}");
            sleep(Duration::from_millis(10));
        }
    }
    assert!(maker.process.try_wait().unwrap().is_none(), "it ended before it was ready");
    maker
}

/// Start a server that prints its ports, one per line, when it is ready.
fn start_telling(command: &mut Command, directory: PathBuf, certificates: Certificates, ports: usize) -> Maker {
    let mut process = command.current_dir(&directory).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let output = BufReader::new(process.stdout.take().unwrap());
    let mut maker = Maker { ports: Vec::new(), certificates, process, directory };
    maker.ports = output.lines().take(ports).map(|line| line.unwrap().trim().parse().unwrap()).collect();
    assert_eq!(maker.ports.len(), ports, "it ended before it was ready");
    maker
}

/// HTTP/1.1 on the first port; on the second, over TLS, also HTTP/2. On the third, every HTTP/1.1 answer closes its connection;
/// on the fourth, over TLS, every 20th HTTP/2 answer does.
pub fn nginx() -> Option<Maker> {
    let nginx = working_program(&["nginx", "/usr/sbin/nginx"], "-v")?;
    let (directory, certificates) = workplace();
    let ports = free_ports(4);
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|what| format!("  {what}_temp_path {what};\n"))
        .concat();
    let configuration = format!(
        "daemon off; master_process off; pid nginx.pid; error_log stderr;\nevents {{ }}\nhttp {{\n{temporary}  access_log off;
  keepalive_requests 100000000; root files; ssl_certificate cert.pem; ssl_certificate_key key.pem;
  server {{ listen 127.0.0.1:{}; listen 127.0.0.1:{} ssl http2; }}
  server {{ listen 127.0.0.1:{}; keepalive_timeout 0; }}
  server {{ listen 127.0.0.1:{} ssl http2; keepalive_requests 20; }}\n}}\n",
        ports[0], ports[1], ports[2], ports[3]
    );
    fs::write(directory.join("nginx.conf"), configuration).unwrap();
    let mut command = Command::new(nginx);
    command.arg("-p").arg(&directory).args(["-c", "nginx.conf"]).stderr(Stdio::null());
    Some(start(&mut command, directory, certificates, ports))
}

/// HTTP/2 on a single port.
pub fn nghttpd(tls: bool) -> Option<Maker> {
    let nghttpd = working_program(&["nghttpd"], "--version")?;
    let (directory, certificates) = workplace();
    let ports = free_ports(1);
    let mut command = Command::new(nghttpd);
    command.args(["--address=127.0.0.1", "--htdocs=files", "--echo-upload"]).arg(ports[0].to_string());
    if tls {
        command.args(["key.pem", "cert.pem"]);
    } else {
        command.arg("--no-tls");
    }
    Some(start(command.stderr(Stdio::null()), directory, certificates, ports))
}

fn program(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/engine/makers").join(name)
}

/// HTTP/1.1, the same over TLS, HTTP/2, the same over TLS.
pub fn node() -> Option<Maker> {
    let node = working_program(&["node"], "--version")?;
    let (directory, certificates) = workplace();
    Some(start_telling(Command::new(node).arg(program("server.mjs")), directory, certificates, 4))
}

/// HTTP/1.1.
pub fn java() -> Option<Maker> {
    let java = working_program(&["java"], "-version")?;
    let (directory, certificates) = workplace();
    let mut command = Command::new(java);
    command.args(["-XX:TieredStopAtLevel=1", "-Xmx256m"]).arg(program("Server.java"));
    Some(start_telling(&mut command, directory, certificates, 1))
}

/// HTTP/1.0 over TLS with a key of this kind, and with these options.
pub fn openssl(key: &[&str], options: &[&str]) -> Option<Maker> {
    let openssl = working_program(&["openssl"], "version")?;
    let (directory, certificates) = workplace();
    let ports = free_ports(1);
    let request = ["req", "-x509", "-nodes", "-keyout", "key.pem", "-out", "cert.pem", "-subj", "/CN=any", "-newkey"];
    let mut made = Command::new(openssl);
    made.args(request).args(key).current_dir(&directory).stderr(Stdio::null());
    assert!(made.status().unwrap().success());
    let mut command = Command::new(openssl);
    command.args(["s_server", "-cert", "cert.pem", "-key", "key.pem", "-www", "-quiet", "-accept"]);
    command.arg(format!("127.0.0.1:{}", ports[0])).args(options).stderr(Stdio::null());
    Some(start(&mut command, directory, certificates, ports))
}
