//! The opening handshake: what is accepted, and what is refused with which words.

use redline_websocket::{Handshake, Opened, Refusal, accept_value};

const REQUEST: &[u8] = b"GET /chat HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n\r\n";

/// The random bytes whose key is that of RFC 6455, 1.3.
const NONCE: &[u8; 16] = b"the sample nonce";
const HEAD: &str = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\nConnection: keep-alive, upgrade\r\n\
    Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n";

fn read(answer: &str, piece: usize, offered: &[&str]) -> Result<Option<Opened>, Refusal> {
    let offered: Vec<String> = offered.iter().map(|name| (*name).to_owned()).collect();
    let mut handshake = Handshake::new(*NONCE);
    let mut last = Ok(None);
    for bytes in answer.as_bytes().chunks(piece) {
        last = handshake.feed(bytes, &offered, false);
        if !matches!(last, Ok(None)) {
            break;
        }
    }
    last
}

fn refused(answer: &str) -> String {
    match read(answer, answer.len(), &[]) {
        Err(Refusal::Status(reason) | Refusal::Invalid(reason)) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_key_is_that_of_the_rfc() {
    assert_eq!(accept_value(b"dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    let mut out = Vec::new();
    Handshake::new(*NONCE).write(REQUEST, &mut out);
    let expected = "GET /chat HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n\
        Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    assert_eq!(String::from_utf8(out).expect("ASCII"), expected);
}

#[test]
fn a_right_answer_opens_however_it_is_cut() {
    let answer = format!("HTTP/1.1 103 Early Hints\r\n\r\n{HEAD}Sec-WebSocket-Protocol: chat\r\n\r\n");
    for piece in 1..=answer.len() {
        let opened = read(&answer, piece, &["mqtt", "chat"]).expect("it is right").expect("it is complete");
        assert_eq!((opened.subprotocol.as_deref(), &opened.rest[..]), (Some("chat"), &b""[..]));
        assert!(opened.head.starts_with(b"HTTP/1.1 101"));
    }
    let with_frame = format!("{HEAD}\r\n\u{1}\u{2}");
    assert_eq!(read(&with_frame, 999, &[]).map(|opened| opened.map(|opened| opened.rest)), Ok(Some(vec![1, 2])));
}

#[test]
fn subprotocols_are_agreed_on() {
    let chosen = format!("{HEAD}Sec-WebSocket-Protocol: v2\r\n\r\n");
    let reason = |answer: &str, offered: &[&str]| match read(answer, 999, offered) {
        Err(Refusal::Subprotocol(reason)) => reason,
        other => panic!("{other:?}"),
    };
    assert_eq!(reason(&chosen, &["v1", "v3"]), "the server chose the subprotocol v2, and v1, v3 was offered");
    assert_eq!(reason(&chosen, &[]), "the server chose the subprotocol v2, and none was offered");
    assert_eq!(reason(&format!("{HEAD}\r\n"), &["v1"]), "the server chose no subprotocol of v1");
}

#[test]
fn refusals_say_what_the_server_said() {
    let forbidden = "HTTP/1.1 403 Forbidden\r\nContent-Length: 9\r\n\r\nno origin";
    for piece in [1, 20, 999] {
        let reason = read(forbidden, piece, &[]).expect_err("it is refused");
        let begins = reason.reason().starts_with("status 403 Forbidden in place of 101: n");
        assert!(begins, "{reason:?}");
    }
    assert_eq!(refused(forbidden), "status 403 Forbidden in place of 101: no origin");
    let chunked = "HTTP/1.1 400 Bad Request\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nwrong\r\n0\r\n\r\n";
    assert_eq!(refused(chunked), "status 400 Bad Request in place of 101: wrong");
    let moved = "HTTP/1.1 301 Moved Permanently\r\nLocation: /ws/\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(refused(moved), "status 301 Moved Permanently in place of 101, to /ws/");
    assert_eq!(refused("HTTP/1.1 200\r\n\r\n"), "status 200 in place of 101");
}

/// The body of a refusal is waited for, and if it never comes the refusal is known all the same.
#[test]
fn a_refusal_without_its_body_is_one() {
    let mut handshake = Handshake::new(*NONCE);
    assert_eq!(handshake.refusal(), None);
    assert_eq!(handshake.feed(b"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\n", &[], false), Ok(None));
    assert_eq!(handshake.refusal(), Some(Refusal::Status("status 503 Busy in place of 101".to_owned())));
}

#[test]
fn what_is_no_right_answer_is_refused() {
    let without = |line: &str| refused(&format!("{}\r\n", HEAD.replace(line, "")));
    assert_eq!(without("Upgrade: WebSocket\r\n"), "the server's answer 101 does not upgrade to websocket");
    assert_eq!(without("Connection: keep-alive, upgrade\r\n"), "the server's answer 101 has no `Connection: Upgrade`");
    let accept = "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n";
    assert_eq!(without(accept), "the server's answer 101 has no Sec-WebSocket-Accept");
    let other = format!("{}\r\n", HEAD.replace("s3pP", "S3pP"));
    assert_eq!(refused(&other), "the server's Sec-WebSocket-Accept is not that of the key");
    let compressed = format!("{HEAD}Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n");
    assert_eq!(refused(&compressed), "the server uses the extension permessage-deflate, which was not offered");
    assert!(refused("SSH-2.0-OpenSSH\r\n\r\n").starts_with("the server does not answer in HTTP: "));
    let endless = format!("HTTP/1.1 101 x\r\n{}", "a: b\r\n".repeat(20_000));
    assert!(read(&endless, 999, &[]).is_err());
}

/// The answer to an extended CONNECT (RFC 8441, 5).
#[test]
fn over_http2_a_status_of_success_opens() {
    let answered = |status, fields: &str, offered: &[&str], deflates| {
        let offered: Vec<String> = offered.iter().map(|name| (*name).to_owned()).collect();
        Handshake::over_http2().answered(status, fields.as_bytes(), b"not here", &offered, deflates)
    };
    let opened = answered(200, "sec-websocket-protocol: chat\nx: y\n", &["chat"], false).expect("it is right");
    assert_eq!((opened.subprotocol.as_deref(), opened.deflate), (Some("chat"), None));
    let opened = answered(204, "sec-websocket-extensions: permessage-deflate\n", &[], true).expect("it is right");
    assert!(opened.deflate.is_some() && opened.rest.is_empty());
    let refused = |status, fields: &str| answered(status, fields, &[], false).expect_err("it is refused");
    assert_eq!(refused(404, "").reason(), "status 404 in place of 200: not here");
    assert_eq!(refused(301, "location: /ws/\n").reason(), "status 301 in place of 200, to /ws/: not here");
    let compressed = refused(200, "sec-websocket-extensions: permessage-deflate\n");
    assert_eq!(compressed.reason(), "the server uses the extension permessage-deflate, which was not offered");
    assert!(matches!(answered(200, "", &["v1"], false), Err(Refusal::Subprotocol(_))));
    assert!(matches!(answered(200, "", &[], true), Err(Refusal::Compression(_))));
    // The body of a refusal may never come.
    let mut handshake = Handshake::over_http2();
    assert!(handshake.answered(503, b"", b"", &[], false).is_err());
    assert_eq!(handshake.refusal(), Some(Refusal::Status("status 503 in place of 200".to_owned())));
}
