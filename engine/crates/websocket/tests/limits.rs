//! Peers that break the rules of lengths and masks, and those that never end.

mod support;

use proptest::prelude::*;
use redline_websocket::{Event, Kind, MOST_FRAMES, MOST_MESSAGE_BYTES, Role, Rule, Session};
use support::{BINARY, PING, Seen, TEXT, close, last, masked, part, read, text};

#[test]
fn masks_are_those_of_clients_alone() {
    let hello = last(TEXT, b"Hello");
    assert_eq!(read(Role::Client, &masked(&hello, [1, 2, 3, 4]), &[99]), [Seen::Broken(Rule::MaskedByServer)]);
    assert_eq!(read(Role::Server, &hello, &[99]), [Seen::Broken(Rule::NotMaskedByClient)]);
    assert_eq!(read(Role::Client, &[0x81, 0x80], &[99]), [Seen::Broken(Rule::MaskedByServer)]);
}

#[test]
fn lengths_have_as_many_bytes_as_they_need() {
    for bytes in [&[0x82, 126, 0, 125][..], &[0x82, 127, 0, 0, 0, 0, 0, 0, 255, 255]] {
        assert_eq!(read(Role::Client, bytes, &[1]), [Seen::Broken(Rule::LengthNotShortest)]);
    }
    let huge = [0x82, 127, 0x80, 0, 0, 0, 0, 0, 0, 1];
    assert_eq!(read(Role::Client, &huge, &[99]), [Seen::Broken(Rule::LengthTooLarge)]);
    let long = [0x82, 127, 0x7f, 255, 255, 255, 255, 255, 255, 255];
    assert_eq!(read(Role::Client, &long, &[99]), [Seen::Broken(Rule::MessageTooLong)]);
}

/// A frame that announces the longest message takes memory as its bytes arrive, not before.
#[test]
fn the_longest_message_is_read_and_a_longer_one_is_not() {
    let longest = vec![7; MOST_MESSAGE_BYTES];
    assert_eq!(read(Role::Client, &last(BINARY, &longest), &[65_536]), [Seen::Binary(longest.clone())]);
    let in_parts = [part(BINARY, &longest[1..]), part(0, b"1"), last(0, b"2")].concat();
    assert_eq!(read(Role::Client, &in_parts, &[65_536]), [Seen::Broken(Rule::MessageTooLong)]);
}

#[test]
fn fragments_without_end_end() {
    let mut session = Session::new(Role::Client, 1);
    let begin = part(TEXT, b"");
    assert_eq!(session.next(&mut &begin[..]), Ok(None));
    for _ in 1..MOST_FRAMES {
        assert_eq!(session.next(&mut &[0_u8, 0][..]), Ok(None));
    }
    assert_eq!(session.next(&mut &[0_u8, 0][..]), Err(Rule::TooManyFrames));
}

/// The count is of a message: many short messages are none too many.
#[test]
fn messages_have_frames_of_their_own() {
    let mut session = Session::new(Role::Client, 1);
    let message = [part(TEXT, b"a"), last(0, b"b"), last(TEXT, b"")].concat();
    for _ in 0..MOST_FRAMES / 2 {
        let mut rest = &message[..];
        assert_eq!(session.next(&mut rest), Ok(Some(Event::Message(Kind::Text, b"ab"))));
        assert_eq!(session.next(&mut rest), Ok(Some(Event::Message(Kind::Text, b""))));
    }
}

/// Pings that are not answered do not pile up: the last is answered.
#[test]
fn only_the_last_ping_is_answered() {
    let mut session = Session::new(Role::Server, 1);
    let pings = masked(&[last(PING, b"one"), last(PING, b"two")].concat(), [9, 8, 7, 6]);
    let mut rest = &pings[..];
    while let Ok(Some(event)) = session.next(&mut rest) {
        assert_eq!(event, Event::Ping);
    }
    let mut out = Vec::new();
    assert!(session.owes_pong() && session.write_pong(&mut out) && !session.write_pong(&mut out));
    assert_eq!(out, last(support::PONG, b"two"));
}

/// A frame, or what might be one.
fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    let payload = || prop_oneof![4 => prop::collection::vec(any::<u8>(), 0..12), 2 => Just("κόσμε".as_bytes().to_vec()), 1 => Just(vec![b'a'; 300])];
    prop_oneof![
        4 => payload().prop_map(|bytes| last(BINARY, &bytes)),
        4 => payload().prop_map(|bytes| last(TEXT, &bytes)),
        3 => payload().prop_map(|bytes| part(TEXT, &bytes)),
        3 => payload().prop_map(|bytes| part(0, &bytes)),
        4 => payload().prop_map(|bytes| last(0, &bytes)),
        2 => prop::collection::vec(any::<u8>(), 0..9).prop_map(|bytes| last(PING, &bytes)),
        1 => any::<u16>().prop_map(|code| close(code, b"x")),
        1 => prop::collection::vec(any::<u8>(), 1..20),
    ]
}

proptest! {
    /// However the bytes are cut, the same is reported, up to the same rule that is broken.
    #[test]
    fn the_cuts_change_nothing(
        frames in prop::collection::vec(any_frame(), 1..8),
        pieces in prop::collection::vec(1_usize..20, 1..6),
        is_client: bool,
    ) {
        let bytes = frames.concat();
        let role = if is_client { Role::Client } else { Role::Server };
        prop_assert_eq!(read(role, &bytes, &pieces), read(role, &bytes, &[usize::MAX]));
    }

    /// What a session of one side writes, one of the other side reads.
    #[test]
    fn what_one_side_writes_the_other_reads(
        messages in prop::collection::vec(prop_oneof![
            any::<String>().prop_map(Seen::Text),
            prop::collection::vec(any::<u8>(), 0..300).prop_map(Seen::Binary),
            (0_usize..3).prop_map(|more| Seen::Binary(vec![7; 65_535 + more])),
        ], 0..5),
        code in prop_oneof![Just(1000_u16), 3000_u16..5000],
        seed: u64,
        piece in 1_usize..5000,
        is_client: bool,
    ) {
        let (writer, reader) = if is_client { (Role::Client, Role::Server) } else { (Role::Server, Role::Client) };
        let (mut session, mut out) = (Session::new(writer, seed), Vec::new());
        for message in &messages {
            match message {
                Seen::Text(text) => session.write(Kind::Text, text.as_bytes(), &mut out),
                Seen::Binary(bytes) => session.write(Kind::Binary, bytes, &mut out),
                _ => unreachable!("only messages are written"),
            }
        }
        session.write_close(Some(code), &mut out);
        let expected = [messages, vec![Seen::Close(Some(code), String::new())]].concat();
        prop_assert_eq!(read(reader, &out, &[piece]), expected);
    }
}

#[test]
fn two_messages_in_a_row_have_masks_of_their_own() {
    let (mut session, mut out) = (Session::new(Role::Client, 7), Vec::new());
    session.write(Kind::Text, b"same", &mut out);
    session.write(Kind::Text, b"same", &mut out);
    assert_ne!(out[..10], out[10..]);
    assert_eq!(read(Role::Server, &out, &[99]), [text("same"), text("same")]);
}
