//! Compressed messages: the examples of RFC 7692, what both sides agree on (after Autobahn's cases 12 and 13), and hostile peers.

use proptest::prelude::*;
use redline_websocket::{Deflate, Event, Kind, MOST_MESSAGE_BYTES, Role, Rule, Session, Volume};

const PACKED: u8 = 0x40;
const FINAL: u8 = 0x80;
const PLAIN: &str = "permessage-deflate";

fn agreed(parameters: &str) -> Deflate {
    Deflate::agreed(parameters).unwrap()
}

fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first, u8::try_from(payload.len()).unwrap()];
    frame.extend_from_slice(payload);
    frame
}

/// The messages that a session reads, or the rule that is broken.
fn messages(session: &mut Session, mut bytes: &[u8]) -> Result<Vec<(Kind, Vec<u8>)>, Rule> {
    let mut seen = Vec::new();
    while let Some(event) = session.next(&mut bytes)? {
        match event {
            Event::Message(kind, payload) => seen.push((kind, payload.to_vec())),
            other => panic!("{other:?}"),
        }
    }
    Ok(seen)
}

fn client(parameters: &str) -> Session {
    Session::new(Role::Client, 1).compressing(Some(agreed(parameters)))
}

fn texts(parameters: &str, bytes: &[u8]) -> Result<Vec<String>, Rule> {
    let seen = messages(&mut client(parameters), bytes)?;
    Ok(seen.into_iter().map(|(_, payload)| String::from_utf8(payload).unwrap()).collect())
}

/// RFC 7692, 7.2.3.
#[test]
fn the_examples_of_the_rfc_are_read() {
    let text = FINAL | PACKED | 1;
    let whole = frame(text, &[0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00]);
    let fragments = [frame(PACKED | 1, &[0xf2, 0x48, 0xcd]), frame(FINAL, &[0xc9, 0xc9, 0x07, 0x00])].concat();
    let shared = [whole.clone(), frame(text, &[0xf2, 0x00, 0x11, 0x00, 0x00])].concat();
    let stored = frame(text, &[0x00, 0x05, 0x00, 0xfa, 0xff, 0x48, 0x65, 0x6c, 0x6c, 0x6f, 0x00]);
    let last_block = frame(text, &[0xf3, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00, 0x00]);
    let two_blocks = frame(text, &[0xf2, 0x48, 0x05, 0x00, 0x00, 0x00, 0xff, 0xff, 0xca, 0xc9, 0xc9, 0x07, 0x00]);
    for (bytes, times) in [(&whole, 1), (&fragments, 1), (&shared, 2), (&stored, 1), (&last_block, 1), (&two_blocks, 1)]
    {
        assert_eq!(texts(PLAIN, bytes), Ok(vec!["Hello".to_owned(); times]), "{bytes:x?}");
    }
    // What follows a last block is read too, and so is a message that is not compressed.
    let after = [last_block, whole, frame(FINAL | 1, b"Hello"), frame(text, &[0])].concat();
    assert_eq!(texts(PLAIN, &after).unwrap(), ["Hello", "Hello", "Hello", ""]);
}

#[test]
fn only_the_first_frame_of_a_message_says_that_it_is_compressed() {
    let piece = [0xf2, 0x48, 0xcd];
    for (bytes, rule) in [
        ([frame(PACKED | 1, &piece), frame(FINAL | PACKED, &[0])].concat(), Rule::PackedFragment),
        (frame(FINAL | PACKED | 9, b"ping"), Rule::PackedFragment),
        (frame(FINAL | PACKED | 8, b""), Rule::PackedFragment),
        (frame(FINAL | 0x20 | 1, b"x"), Rule::ReservedBit),
        (frame(FINAL | PACKED | 0x10 | 1, b"x"), Rule::ReservedBit),
        (frame(FINAL | PACKED | 1, &[0xff, 0xff, 0xff]), Rule::NotDeflate),
        // The byte ff, which no text has.
        (frame(FINAL | PACKED | 1, &[0x00, 0x01, 0x00, 0xfe, 0xff, 0xff, 0x00]), Rule::NotUtf8),
    ] {
        assert_eq!(texts(PLAIN, &bytes), Err(rule), "{bytes:x?}");
    }
    let mut plain = Session::new(Role::Client, 1);
    assert_eq!(messages(&mut plain, &frame(FINAL | PACKED | 1, &piece)), Err(Rule::ReservedBit));
}

#[test]
fn a_bomb_is_ended_at_the_longest_message() {
    const ALONE: &str = "permessage-deflate; server_no_context_takeover";
    let mut server = Session::new(Role::Server, 1).compressing(Some(agreed(ALONE)));
    let mut bytes = Vec::new();
    server.write(Kind::Binary, &vec![0; MOST_MESSAGE_BYTES], &mut bytes);
    assert!(bytes.len() < 200_000);
    assert_eq!(messages(&mut client(PLAIN), &bytes).unwrap()[0].1.len(), MOST_MESSAGE_BYTES);
    bytes.clear();
    server.write(Kind::Binary, &vec![0; MOST_MESSAGE_BYTES + 1], &mut bytes);
    assert_eq!(messages(&mut client(PLAIN), &bytes), Err(Rule::UnpackedTooLong));
    assert_eq!(Rule::UnpackedTooLong.close_code(), 1009);
}

#[test]
fn an_answer_says_how_messages_are_compressed() {
    let all = "permessage-deflate; server_no_context_takeover; client_no_context_takeover; server_max_window_bits=10; \
               client_max_window_bits=9";
    assert_eq!((agreed(all).to_string(), agreed(PLAIN).to_string()), (all.to_owned(), PLAIN.to_owned()));
    let quoted = agreed("permessage-deflate;client_max_window_bits = \"12\"");
    assert_eq!((quoted.client_max_window_bits, quoted.server_max_window_bits), (12, 15));
    assert_eq!(agreed("permessage-deflate; server_max_window_bits=8").server_max_window_bits, 8);
    for (wrong, why) in [
        ("x-webkit-deflate-frame", "not offered"),
        ("permessage-deflate; server_max_window_bits=16", "not 8 to 15"),
        ("permessage-deflate; server_max_window_bits=010", "not 8 to 15"),
        ("permessage-deflate; client_max_window_bits", "not 8 to 15"),
        ("permessage-deflate; client_max_window_bits=8", "the least window of this client is 9"),
        ("permessage-deflate; server_no_context_takeover=1", "no parameter"),
        ("permessage-deflate; fast", "no parameter"),
        ("permessage-deflate; server_max_window_bits=10; server_max_window_bits=10", "twice"),
    ] {
        let said = Deflate::agreed(wrong).unwrap_err();
        assert!(said.contains(why), "{wrong}: {said}");
    }
}

#[test]
fn what_messages_have_before_and_after_is_counted_on_both_sides() {
    let (mut here, mut there) = (client(PLAIN), Session::new(Role::Server, 1).compressing(Some(agreed(PLAIN))));
    let mut bytes = Vec::new();
    here.write(Kind::Text, &[b'x'; 1000], &mut bytes);
    here.write(Kind::Text, &[b'x'; 1000], &mut bytes);
    messages(&mut there, &bytes).unwrap();
    let volume = here.take_volume();
    assert_eq!(volume, there.take_volume());
    // Without heads of frames and masks.
    assert_eq!((volume.plain, volume.packed), (2000, bytes.len() as u64 - 2 * 6));
    assert_eq!(here.take_volume(), Volume::default());
}

proptest! {
    /// Whatever both sides agree on, and however it is cut, what is written is read.
    #[test]
    fn messages_read_back_as_they_were_written(
        payloads in prop::collection::vec((any::<bool>(), "[a-d]{0,40}", 0..300_usize), 1..6),
        alone: [bool; 2],
        bits in (9..=15_u8, 9..=15_u8),
        from_client: bool,
        length in 1..300_usize,
    ) {
        let agreed = Deflate {
            server_no_context_takeover: alone[0],
            client_no_context_takeover: alone[1],
            server_max_window_bits: bits.0,
            client_max_window_bits: bits.1,
        };
        let (from, to) = if from_client { (Role::Client, Role::Server) } else { (Role::Server, Role::Client) };
        let mut writer = Session::new(from, 5).compressing(Some(agreed));
        let mut reader = Session::new(to, 6).compressing(Some(agreed));
        let mut bytes = Vec::new();
        let mut expected = Vec::new();
        for (is_text, text, times) in &payloads {
            let kind = if *is_text { Kind::Text } else { Kind::Binary };
            let payload = text.repeat(*times).into_bytes();
            writer.write(kind, &payload, &mut bytes);
            expected.push((kind, payload));
        }
        let mut seen = Vec::new();
        for piece in bytes.chunks(length) {
            seen.extend(messages(&mut reader, piece).unwrap());
        }
        prop_assert_eq!(seen, expected);
    }
}
