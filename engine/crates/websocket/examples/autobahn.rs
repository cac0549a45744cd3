//! Echoes what the fuzzing server of the Autobahn test suite sends, in all of its cases: `wstest --mode fuzzingserver`, and then
//! `cargo run --release --package redline-websocket --example autobahn -- 127.0.0.1:9001`. The server writes the report.
//!
//! The oracle is held to the same cases by `wstest --mode fuzzingclient`.

use std::io::{Read, Write};
use std::net::TcpStream;

use redline_websocket::{DEFLATE_OFFER, Event, Handshake, Role, Session};

const AGENT: &str = "redline";

fn main() {
    let server = std::env::args().nth(1).expect("HOST:PORT of the fuzzing server");
    let cases: u32 = converse(&server, "/getCaseCount", false).parse().expect("a number of cases");
    for case in 1..=cases {
        let info = converse(&server, &format!("/getCaseInfo?case={case}"), false);
        println!("{case} of {cases}: {info}");
        // Cases 12 and 13 are about compression; in others the server does not agree on it.
        let deflates = ["\"12.", "\"13."].iter().any(|number| info.contains(number));
        converse(&server, &format!("/runCase?case={case}&agent={AGENT}"), deflates);
    }
    converse(&server, &format!("/updateReports?agent={AGENT}"), false);
}

/// Opens a WebSocket, echoes each message, and ends with the server, or with its first error. Returns its first message.
fn converse(server: &str, path: &str, deflates: bool) -> String {
    let mut stream = TcpStream::connect(server).expect("a fuzzing server listens");
    let mut handshake = Handshake::new([7; 16]);
    let offer = if deflates { format!("Sec-WebSocket-Extensions: {DEFLATE_OFFER}\r\n") } else { String::new() };
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {server}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: \
         13\r\n{offer}\r\n"
    );
    let (mut out, mut arrived) = (Vec::new(), vec![0; 1024 * 1024]);
    handshake.write(request.as_bytes(), &mut out);
    stream.write_all(&out).expect("the request is sent");
    let opened = loop {
        let length = stream.read(&mut arrived).expect("the handshake is answered");
        if let Some(opened) = handshake.feed(&arrived[..length], &[], deflates).expect("a WebSocket is opened") {
            break opened;
        }
    };
    let mut session = Session::new(Role::Client, 1).compressing(opened.deflate);
    let (mut pending, mut first) = (opened.rest, None);
    loop {
        echo(&mut session, &pending, &mut out, &mut first);
        // The server ends the connection, after the close frame that answers it.
        let length = stream.write_all(&out).and_then(|()| stream.read(&mut arrived)).unwrap_or(0);
        if length == 0 {
            return first.unwrap_or_default();
        }
        pending = arrived[..length].to_vec();
    }
}

/// Writes what answers these bytes.
fn echo(session: &mut Session, mut bytes: &[u8], out: &mut Vec<u8>, first: &mut Option<String>) {
    out.clear();
    while !session.is_closing() {
        let (kind, message) = match session.next(&mut bytes) {
            Ok(None) => return,
            Ok(Some(Event::Message(kind, payload))) => (kind, payload.to_vec()),
            Ok(Some(Event::Ping)) => {
                session.write_pong(out);
                continue;
            }
            Ok(Some(Event::Pong)) => continue,
            Ok(Some(Event::Close(close))) => {
                let code = close.code;
                return session.write_close(code, out);
            }
            Err(rule) => return session.write_close(Some(rule.close_code()), out),
        };
        first.get_or_insert_with(|| String::from_utf8_lossy(&message).into_owned());
        session.write(kind, &message, out);
    }
}
