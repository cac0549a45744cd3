//! Journeys whose steps are conversations, each on a WebSocket of its own, whose path, headers and message are filled in, and
//! what comes on it is carried on.

use std::io::{self, BufReader, Read, Write};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use redline_websocket::accept_value;
use rustls::version::TLS13;
use serde_json::{Value, json};
use tungstenite::protocol::Role;
use tungstenite::{Message, WebSocket};

use crate::checks::check_of;
use crate::journeys::walked;
use crate::support::server::{Server, read_request};
use crate::support::tls::{TlsServer, certificates};
use crate::support::{Outcome, complete, job, run, with};

/// What came to a server: of each WebSocket its path, cookies and first message, and how it was closed; of each request its body.
#[derive(Clone, Default)]
struct Heard {
    opened: Arc<Mutex<Vec<String>>>,
    closed: Arc<Mutex<Vec<u16>>>,
    again: Arc<Mutex<Vec<String>>>,
}

/// What it says on a WebSocket: these messages, after the number of the conversation.
const TOKENS: [&str; 3] = [r#"{"delta": {"text": "one "}}"#, r#"{"ping": 1}"#, r#"{"delta": {"text": "\"two\""}}"#];

/// Log in, talk, and say again what was said. Connections that are no WebSocket go on.
fn attend<S: Read + Write>(stream: S, heard: &Heard) -> io::Result<()> {
    let mut peer = BufReader::new(stream);
    while let Some(request) = read_request(&mut peer)? {
        if request.path == "/login" {
            let answer = "HTTP/1.1 200 OK\r\nSet-Cookie: sid=7\r\nContent-Length: 13\r\n\r\n{\"room\": \"a\"}";
            peer.get_mut().write_all(answer.as_bytes())?;
        } else if request.path == "/again" {
            let cookie = request.header("cookie").unwrap_or_default().to_owned();
            heard.again.lock().unwrap().push(format!("{cookie} {}", String::from_utf8_lossy(&request.body)));
            peer.get_mut().write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")?;
        } else {
            let accept = accept_value(request.header("sec-websocket-key").unwrap().as_bytes());
            write!(
                peer.get_mut(),
                "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX-Turn: 5\r\n\
                 Set-Cookie: talked=1; Path=/\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
            )?;
            let mut socket = WebSocket::from_raw_socket(peer.into_inner(), Role::Server, None);
            let said = socket.read().unwrap().to_string();
            let cookie = request.header("cookie").unwrap_or_default();
            heard.opened.lock().unwrap().push(format!("{} {cookie} {said}", request.path));
            for token in TOKENS {
                socket.send(Message::text(token)).unwrap();
            }
            while let Ok(message) = socket.read() {
                if let Message::Close(Some(close)) = message {
                    heard.closed.lock().unwrap().push(close.code.into());
                }
            }
            return Ok(());
        }
    }
    Ok(())
}

fn talking() -> (Server, Heard) {
    let heard = Heard::default();
    let known = heard.clone();
    (Server::start(move |peer, _| attend(peer.into_stream(), &known)), heard)
}

fn asking(stream: &Value) -> (Value, Value) {
    let requests = json!([
        {"method": "POST", "path": "/login", "expect": {"status": 200}},
        {"method": "GET", "path": "/talk/{take:room}", "expect": {"status": 200},
         "headers": [["X-Room", "{take:room}"]], "body_text": r#"{"in": "{take:room}"}"#, "body_escape": "json",
         "websocket": {"answer": "listen", "message": "text"}, "stream": stream},
        {"method": "POST", "path": "/again", "expect": {"status": 200}, "body_escape": "json",
         "headers": [["X-Turn", "{take:turn}"]], "body_text": r#"{"said": "{take:answer}", "turn": {take:turn}}"#},
    ]);
    let journey = json!({"cookies": true, "steps": [
        {"request": 0, "take": [{"name": "room", "from": {"json": "/room"}}]},
        {"request": 1, "take": [{"name": "answer", "from": {"text": "/delta/text"}},
                                {"name": "turn", "from": {"header": "X-Turn"}}]},
        {"request": 2},
    ]});
    (requests, journey)
}

/// So many journeys of a user.
fn walking(port: u16, journeys: u64, stream: &Value) -> Value {
    let (requests, journey) = asking(stream);
    let job = with(with(job(port), "/requests", requests), "/journey", journey);
    let job = with(with(job, "/load", json!({"closed": {"users": 1}})), "/warmup_ns", json!(0));
    with(with(job, "/measure_ns", json!(20_000_000_000_u64)), "/count", json!(journeys))
}

fn until(messages: u64) -> Value {
    json!({"events": "messages", "until": messages})
}

fn are_known(result: &Outcome, heard: &Heard, journeys: usize) {
    result.are_all("ok");
    assert_eq!(result.event["journeys"]["completed"], journeys, "{:#}", result.event["failures"]);
    assert_eq!(*heard.opened.lock().unwrap(), vec![r#"/talk/a sid=7 {"in": "a"}"#; journeys]);
    let again = r#"sid=7; talked=1 {"said": "one \"two\"", "turn": 5}"#;
    assert_eq!(*heard.again.lock().unwrap(), vec![again; journeys]);
}

#[test]
fn a_step_opens_a_websocket_as_its_user_and_the_next_sends_what_came_on_it() {
    for stream in [
        until(3),
        json!({"events": "messages", "message": {"json": ["/delta/text"]}, "until": 2}),
        json!({"events": "messages", "for_ns": 100_000_000}),
    ] {
        let (server, heard) = talking();
        let result = complete(&walking(server.port, 4, &stream));
        are_known(&result, &heard, 4);
        let counted = result.event["streams"]["counted"].as_u64().unwrap();
        assert_eq!((counted, result.event["streams"]["early"].as_u64()), (4 * stream_counts(&stream), Some(0)));
        drop(server);
        assert!(heard.closed.lock().unwrap().iter().all(|code| *code == 1000));
        assert!(heard.closed.lock().unwrap().len() >= 3, "each is closed after its step");
    }
}

fn stream_counts(stream: &Value) -> u64 {
    if stream["message"].is_null() { 3 } else { 2 }
}

#[test]
fn it_is_the_same_over_tls_and_in_an_open_load() {
    let heard = Heard::default();
    let (known, certificates) = (heard.clone(), certificates("127.0.0.1"));
    let secure =
        TlsServer::start(certificates.config(&[&TLS13], &[]), move |peer, _| attend(peer.into_stream(), &known));
    let job = with(walking(secure.port, 3, &until(3)), "/target/tls", json!({"ca_pem": certificates.ca_pem}));
    are_known(&complete(&job), &heard, 3);

    let (server, heard) = talking();
    let open = json!({"open": {"rate_per_s": 50, "arrivals": "uniform", "connections": 8}});
    let job = with(with(walking(server.port, 0, &until(3)), "/load", open), "/count", Value::Null);
    let result = complete(&with(job, "/measure_ns", json!(400_000_000)));
    let begun = heard.opened.lock().unwrap().len();
    assert_eq!(begun, 20);
    are_known(&result, &heard, begun);
}

#[test]
fn a_text_that_never_came_ends_the_journey() {
    let (server, heard) = talking();
    let mut job = walking(server.port, 2, &until(3));
    job["journey"]["steps"][1]["take"][0]["from"]["text"] = json!("/none");
    let result = complete(&job);
    let reason = result.reason("unexpected_body");
    assert!(reason.starts_with(r#"none of 3 messages had a text at "/none" for `answer`; the first was"#), "{reason}");
    assert!(heard.again.lock().unwrap().is_empty());
}

#[test]
fn a_check_carries_what_came_on_and_shows_it() {
    let (server, heard) = talking();
    let (requests, journey) = asking(&until(3));
    let mut check = with(with(check_of(server.port), "/requests", requests), "/journey", journey);
    check.as_object_mut().unwrap().remove("request");
    let seen = walked(&check);
    assert_eq!(seen.last().unwrap()["complete"], true, "{seen:#?}");
    let taken = json!({"answer": "one \"two\"", "turn": "5"});
    assert_eq!((&seen[1]["status"], &seen[1]["taken"]), (&json!(101), &taken), "{:#}", seen[1]);
    let last = STANDARD.encode(TOKENS[2]);
    assert_eq!((&seen[1]["body_base64"], &seen[1]["headers"][2]), (&json!(last), &json!(["x-turn", "5"])));
    assert_eq!(heard.again.lock().unwrap().len(), 1);
}

#[test]
fn a_server_that_opens_none_ends_the_journey_by_name() {
    let server = Server::start(|mut peer, _| {
        while let Some(request) = peer.whole_request()? {
            match request.path.as_str() {
                "/login" => peer.say("HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n{\"room\": \"a\"}")?,
                _ => peer.say("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno")?,
            }
        }
        Ok(())
    });
    let result = complete(&walking(server.port, 2, &until(3)));
    assert_eq!((result.outcome("ok"), result.outcome("unexpected_status")), (2, 2));
    let reason = result.reason("unexpected_status");
    assert_eq!(reason, "the WebSocket handshake failed: status 403 Forbidden in place of 101: no");
}

#[test]
fn a_step_that_does_not_listen_is_refused_by_name() {
    let mut job = walking(1, 1, &Value::Null);
    job["requests"][1]["websocket"]["answer"] = json!("next");
    let message = run(&job).error()["message"].as_str().unwrap().to_owned();
    assert!(message.contains("the steps of a journey, unless it listens"), "{message}");
}

#[test]
fn steps_and_paths_that_vary_are_refused_over_http2() {
    let steps = with(walking(1, 1, &until(1)), "/target/http", json!("2"));
    let message = run(&steps).error()["message"].as_str().unwrap().to_owned();
    assert!(message.contains("the steps of a journey over HTTP/2"), "{message}");
    let mut varying = steps;
    varying.as_object_mut().unwrap().remove("journey");
    let mut request = varying["requests"][1].clone();
    (request["path"], request["headers"], request["body_text"]) = (json!("/{seq}"), json!([]), json!("hello"));
    varying["requests"] = json!([request]);
    let message = run(&varying).error()["message"].as_str().unwrap().to_owned();
    assert!(message.contains("the path and headers of a WebSocket over HTTP/2 have no placeholders"), "{message}");
}

#[test]
fn a_user_who_listens_may_open_paths_that_vary() {
    let (server, heard) = talking();
    let mut job = walking(server.port, 3, &until(1));
    job.as_object_mut().unwrap().remove("journey");
    let mut request = job["requests"][1].clone();
    request["path"] = json!("/talk/{seq}");
    (request["headers"], request["body_text"]) = (json!([]), json!("hello"));
    job["requests"] = json!([request]);
    complete(&job).are_all("ok");
    assert_eq!(*heard.opened.lock().unwrap(), ["/talk/0  hello", "/talk/1  hello", "/talk/2  hello"]);
}
