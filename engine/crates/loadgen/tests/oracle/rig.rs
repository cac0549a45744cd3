//! A running oracle, and its answers.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

/// The oracle's binary.
pub const BINARY: &str = env!("CARGO_BIN_EXE_redline-oracle");

/// A running oracle; killed when it is dropped.
pub struct Oracle {
    pub child: Child,
    stdout: BufReader<ChildStdout>,
    pub address: String,
}

impl Oracle {
    pub fn start(arguments: &[&str]) -> Self {
        Self::run(Command::new(BINARY).args(arguments))
    }

    /// The same, from a command that becomes the oracle.
    pub fn run(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
        let mut stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
        let mut line = String::new();
        stdout.read_line(&mut line).expect("it says where it listens");
        let address = line.trim().strip_prefix("listening on ").expect("the promised line").to_owned();
        Self { child, stdout, address }
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).expect("it accepts");
        stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a timeout can be set");
        stream
    }

    /// SIGTERM, then the exit code and the rest of its output.
    pub fn terminate(mut self) -> (Option<i32>, String) {
        let killed = Command::new("kill").arg(self.child.id().to_string()).status().expect("kill runs");
        assert!(killed.success());
        let code = self.child.wait().expect("it ends").code();
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).expect("its output is text");
        (code, rest)
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The bodies of the next `count` answers, after checking their statuses.
pub fn bodies(stream: TcpStream, count: usize) -> Vec<String> {
    let mut reader = BufReader::new(stream);
    let mut body = || {
        let (mut line, mut length) = (String::new(), 0);
        reader.read_line(&mut line).expect("a status line");
        assert_eq!(line, "HTTP/1.1 200 OK\r\n");
        loop {
            line.clear();
            reader.read_line(&mut line).expect("a header line");
            if line == "\r\n" {
                break;
            }
            if let Some(value) = line.strip_prefix("Content-Length: ") {
                length = value.trim().parse().expect("a number");
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).expect("the whole body");
        String::from_utf8(body).expect("text")
    };
    (0..count).map(|_| body()).collect()
}
