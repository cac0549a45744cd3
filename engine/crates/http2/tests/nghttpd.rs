//! Runs a session against nghttpd, where it is installed.

mod peer;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use peer::request;
use redline_http2::{BodyOptions, Event, Session};
use redline_wire::{KeptBody, KeptFields};

const REQUESTS: u32 = 1000;
const STREAMS: u32 = 16;

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server; `None` when nghttpd is not installed.
fn server() -> Option<(Server, TcpStream)> {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut command = Command::new("nghttpd");
    command.args(["--no-tls", "--address=127.0.0.1", &format!("--htdocs={}/src", env!("CARGO_MANIFEST_DIR"))]);
    let child = command.arg(port.to_string()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()?;
    let server = Server(child);
    let began = Instant::now();
    loop {
        match TcpStream::connect(("127.0.0.1", port)) {
            Ok(stream) => return Some((server, stream)),
            Err(error) if began.elapsed() > Duration::from_secs(20) => panic!("nghttpd does not listen: {error}"),
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}

#[test]
fn a_thousand_requests_on_sixteen_streams() {
    let Some((_server, mut stream)) = server() else {
        eprintln!("SKIPPED: nghttpd is not installed");
        return;
    };
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let expected = include_bytes!("../src/lib.rs");
    let mut fields = request("GET");
    fields[3].1 = b"/lib.rs";
    let mut session = Session::new().unwrap();
    let (mut opened, mut answered) = (0, 0);
    let (mut out, mut events, mut read) = (Vec::new(), Vec::new(), [0; 16_384]);
    while answered < REQUESTS {
        while opened < REQUESTS && opened - answered < STREAMS && session.room() > 0 {
            session
                .open(
                    &fields,
                    None,
                    BodyOptions {
                        hash: true,
                        keep: KeptBody::Whole,
                        fields: KeptFields::None,
                        events: None,
                        messages: None,
                    },
                    opened,
                )
                .unwrap();
            opened += 1;
        }
        while session.wants_write() {
            session.output(&mut out, 16_384);
            stream.write_all(&out).unwrap();
            out.clear();
        }
        let length = stream.read(&mut read).expect("nghttpd answers in time");
        assert!(length > 0, "nghttpd closed the connection");
        session.feed(&read[..length], &mut events).unwrap();
        for event in events.drain(..) {
            match event {
                Event::Begun { .. } => {}
                Event::Answer { status: 200, body: Some(body), .. } => {
                    assert!(*body == *expected);
                    answered += 1;
                }
                other => panic!("{other:?}"),
            }
        }
    }
}
