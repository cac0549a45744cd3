//! Whatever a peer of a WebSocket sends, however it is cut: nothing breaks, the same is read, and it reads back as it was written.
#![no_main]

use libfuzzer_sys::fuzz_target;
use redline_websocket::{Deflate, Event, Handshake, Kind, MOST_MESSAGE_BYTES, Role, Rule, Session};

/// What a session reported: messages and closes as they are, pings by the length of their answer.
type Seen = Vec<(u8, Vec<u8>)>;

fn read(role: Role, deflate: Option<Deflate>, mut bytes: &[u8], length: usize) -> (Seen, Option<Rule>) {
    let (mut session, mut seen) = (Session::new(role, 1).compressing(deflate), Seen::new());
    while !bytes.is_empty() {
        let (mut piece, rest) = bytes.split_at(bytes.len().min(length));
        bytes = rest;
        loop {
            let is_ping = match session.next(&mut piece) {
                Ok(None) => break,
                Err(rule) => return (seen, Some(rule)),
                Ok(Some(Event::Message(Kind::Text, text))) => {
                    assert!(std::str::from_utf8(text).is_ok());
                    seen.push((1, text.to_vec()));
                    false
                }
                Ok(Some(Event::Message(Kind::Binary, bytes))) => {
                    assert!(bytes.len() <= MOST_MESSAGE_BYTES);
                    seen.push((2, bytes.to_vec()));
                    false
                }
                Ok(Some(Event::Close(close))) => {
                    seen.push((8, [&close.code.unwrap_or(0).to_be_bytes(), close.reason.as_bytes()].concat()));
                    false
                }
                Ok(Some(Event::Pong)) => false,
                Ok(Some(Event::Ping)) => true,
            };
            if is_ping {
                let mut pong = Vec::new();
                assert!(session.write_pong(&mut pong) && !session.owes_pong());
                seen.push((9, vec![pong.len() as u8]));
            }
        }
    }
    (seen, None)
}

// The input: a byte for the side, a byte for the length of pieces, and then what the peer sends.
fuzz_target!(|data: &[u8]| {
    let Some((&[habits, length], bytes)) = data.split_first_chunk() else { return };
    let length = 1 + usize::from(length);
    // With compression, each message by itself or not.
    let deflate = (habits & 4 != 0).then_some(Deflate {
        server_no_context_takeover: habits & 8 != 0,
        client_no_context_takeover: habits & 16 != 0,
        server_max_window_bits: 9 + (habits >> 5) % 7,
        client_max_window_bits: 15,
    });
    if habits & 2 != 0 {
        let open = |length: usize| {
            let mut handshake = Handshake::new(*b"the sample nonce");
            let pieces = bytes.chunks(length);
            pieces.into_iter().find_map(|piece| match handshake.feed(piece, &["chat".to_owned()], deflate.is_some()) {
                Ok(None) => None,
                Ok(Some(opened)) => Some((opened.subprotocol, opened.deflate)),
                Err(refusal) => {
                    assert!(!refusal.reason().is_empty());
                    Some((None, None))
                }
            })
        };
        // The body of a refusal may come later, so only what is opened has to be the same.
        assert_eq!(open(length).unwrap_or_default(), open(usize::MAX).unwrap_or_default());
        return;
    }
    let role = if habits & 1 == 0 { Role::Client } else { Role::Server };
    let (seen, broken) = read(role, deflate, bytes, length);
    assert_eq!((&seen, broken), (&read(role, deflate, bytes, usize::MAX).0, broken));
    let other = if role == Role::Client { Role::Server } else { Role::Client };
    let (mut writer, mut out) = (Session::new(role, 7).compressing(deflate), Vec::new());
    let messages: Seen = seen.into_iter().filter(|(kind, _)| *kind < 8).collect();
    for (kind, bytes) in &messages {
        writer.write(if *kind == 1 { Kind::Text } else { Kind::Binary }, bytes, &mut out);
    }
    assert_eq!(read(other, deflate, &out, length), (messages, None));
});
