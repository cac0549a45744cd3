//! What a peer's bytes may do: arrive in any pieces, be wrong, be too many.

mod support;

use std::io::Write;
use std::sync::Arc;

use proptest::prelude::*;
use redline_tls::{Client, Error, Version};
use rustls::{AlertDescription, Error as TlsError};
use support::{Pair, certificates, server_config, settings};

const BOTH: [Version; 2] = [Version::V1_2, Version::V1_3];

fn unshaken(version: Version) -> Pair {
    let certificates = certificates("server.test");
    let client = Client::new(&settings(&certificates, &[version])).unwrap();
    Pair::new(&client, &Arc::new(server_config(&certificates, &[])))
}

fn open(version: Version) -> Pair {
    let mut pair = unshaken(version);
    pair.shake().unwrap();
    pair
}

#[test]
fn an_answer_cut_anywhere_is_the_same() {
    for version in BOTH {
        let mut pair = open(version);
        let length = pair.sealed_answer(b"answer, and more").len();
        // The server has sealed it, so the client must read it.
        pair = open(version);
        for cut in 0..=length * 2 {
            let mut bytes = pair.sealed_answer(b"answer, and more");
            bytes.extend(pair.sealed_answer(b"and another one."));
            let (first, second) = bytes.split_at(cut);
            pair.session.feed(first, &mut pair.plain).unwrap();
            pair.session.feed(second, &mut pair.plain).unwrap();
            assert_eq!(std::mem::take(&mut pair.plain), b"answer, and moreand another one.", "cut at {cut}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn pieces_of_any_size_are_the_same(
        sizes in prop::collection::vec(1usize..600, 1..20),
        answers in prop::collection::vec(0usize..40_000, 1..4),
        is_1_3: bool,
    ) {
        let mut pair = unshaken(BOTH[usize::from(is_1_3)]);
        let mut sizes = sizes.into_iter().cycle();
        let (mut done, mut reported) = (0, false);
        for _ in 0..4 {
            pair.client_speaks().unwrap();
            // The server sends as soon as it may: in TLS 1.2 right after its handshake, in the same flight.
            if !pair.server.is_handshaking() && !reported {
                reported = true;
                pair.server.writer().write_all(b"settings").unwrap();
            }
            let bytes = pair.server_bytes();
            done += feed_in_pieces(&mut pair, &bytes, &mut sizes);
        }
        for length in &answers {
            let answer: Vec<u8> = (0..*length).map(|at| at as u8).collect();
            let bytes = pair.sealed_answer(&answer);
            let start = pair.plain.len();
            feed_in_pieces(&mut pair, &bytes, &mut sizes);
            prop_assert_eq!(&pair.plain[start..], &answer[..]);
        }
        prop_assert_eq!(done, 1);
        prop_assert!(pair.plain.starts_with(b"settings"));
    }

    #[test]
    fn garbage_in_the_handshake_is_an_error_or_waits(bytes in prop::collection::vec(any::<u8>(), 0..300), at in 0usize..1200) {
        for version in BOTH {
            let mut pair = unshaken(version);
            pair.client_speaks().unwrap();
            let mut flight = pair.server_bytes();
            let at = at % flight.len();
            flight.splice(at..at, bytes.iter().copied());
            let fed = pair.session.feed(&flight, &mut pair.plain);
            prop_assert!(bytes.is_empty() || fed.is_err() || pair.session.is_handshaking());
            if fed.is_err() {
                prop_assert_eq!(pair.session.feed(b"more", &mut pair.plain), Err(Error::NotOpen));
            }
        }
    }

    #[test]
    fn garbage_after_the_handshake_is_an_error_or_waits(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        for version in BOTH {
            let mut pair = open(version);
            let _ = pair.session.feed(&bytes, &mut pair.plain);
            prop_assert_eq!(&pair.plain, b"");
        }
    }
}

/// How often the end of the handshake was reported.
fn feed_in_pieces(pair: &mut Pair, mut bytes: &[u8], sizes: &mut impl Iterator<Item = usize>) -> usize {
    let mut done = 0;
    while !bytes.is_empty() {
        let (piece, rest) = bytes.split_at(sizes.next().unwrap().min(bytes.len()));
        done += usize::from(pair.session.feed(piece, &mut pair.plain).unwrap().handshake_done_now);
        bytes = rest;
    }
    done
}

#[test]
fn a_wrong_byte_is_an_error_and_the_server_gets_an_alert() {
    for version in BOTH {
        for at in 5..32 {
            let mut pair = open(version);
            let mut bytes = pair.sealed_answer(b"answer");
            let at = at.min(bytes.len() - 1);
            bytes[at] ^= 1;
            let failed = pair.session.feed(&bytes, &mut pair.plain);
            assert_eq!(failed, Err(Error::Tls(TlsError::DecryptError)));
            assert_eq!(pair.plain, b"");
            assert_eq!(pair.client_speaks(), Err(TlsError::AlertReceived(AlertDescription::BadRecordMac)));
            assert_eq!(pair.session.seal(b"question", &mut Vec::new()), Err(Error::NotOpen));
        }
    }
}

#[test]
fn a_repeated_record_is_an_error() {
    for version in BOTH {
        let mut pair = open(version);
        let bytes = pair.sealed_answer(b"answer");
        pair.session.feed(&bytes, &mut pair.plain).unwrap();
        assert!(pair.session.feed(&bytes, &mut pair.plain).is_err());
        assert_eq!(pair.plain, b"answer");
    }
}

#[test]
fn a_record_that_is_too_long_is_an_error_at_its_head() {
    for version in BOTH {
        let mut pair = open(version);
        let failed = pair.session.feed(&[23, 3, 3, 0xff, 0xff], &mut pair.plain);
        assert_eq!(failed, Err(Error::Tls(TlsError::PeerSentOversizedRecord)));
    }
}

#[test]
fn an_endless_handshake_is_an_error() {
    let mut pair = unshaken(Version::V1_2);
    // Pieces of a message with a declared length of 16 MiB, in records of 16 KiB.
    let mut record = vec![22, 3, 3, 0x40, 0];
    record.extend([2, 0xff, 0xff, 0xff]);
    record.resize(5 + 0x4000, 0);
    let failed = (0..64).find_map(|_| pair.session.feed(&record, &mut pair.plain).err());
    assert!(failed.is_some());
}

#[test]
fn both_sides_send_close_notify() {
    for version in BOTH {
        let mut pair = open(version);
        let mut bytes = pair.sealed_answer(b"last");
        pair.server.send_close_notify();
        bytes.extend(pair.server_bytes());
        bytes.extend(b"nothing");
        let fed = pair.session.feed(&bytes, &mut pair.plain).unwrap();
        assert!(fed.closed && !fed.handshake_done_now);
        assert_eq!(pair.plain, b"last");
        let mut out = Vec::new();
        pair.session.close(&mut out);
        let mut again = Vec::new();
        pair.session.close(&mut again);
        assert_eq!(again, b"");
        assert_eq!(pair.session.seal(b"question", &mut again), Err(Error::NotOpen));
        pair.server.read_tls(&mut &out[..]).unwrap();
        assert!(pair.server.process_new_packets().unwrap().peer_has_closed());
    }
}

#[test]
fn closing_before_the_handshake_is_done_ends_it() {
    let mut pair = unshaken(Version::V1_3);
    let mut out = Vec::new();
    assert_eq!(pair.session.seal(b"question", &mut out), Err(Error::NotOpen));
    pair.session.close(&mut out);
    assert_eq!(pair.session.feed(b"bytes", &mut Vec::new()), Err(Error::NotOpen));
}

#[test]
fn the_server_may_change_its_keys_and_ask_for_ours() {
    let mut pair = open(Version::V1_3);
    for _ in 0..100 {
        pair.server.refresh_traffic_keys().unwrap();
        let (asked, answered) = pair.exchange(b"question", b"answer");
        assert_eq!((asked, answered), (b"question".to_vec(), b"answer".to_vec()));
    }
}

#[test]
fn endless_changes_of_keys_are_an_error() {
    let mut pair = open(Version::V1_3);
    let failed = (0..100).find_map(|_| {
        pair.server.refresh_traffic_keys().unwrap();
        pair.server_speaks().err()
    });
    assert!(failed.is_some());
}

#[test]
fn many_tickets_are_taken() {
    let certificates = certificates("server.test");
    let mut server = server_config(&certificates, &[]);
    server.send_tls13_tickets = 1000;
    let client = Client::new(&settings(&certificates, &[Version::V1_3])).unwrap();
    let mut pair = Pair::new(&client, &Arc::new(server));
    pair.shake().unwrap();
    assert_eq!(pair.exchange(b"question", b"answer").1, b"answer");
}
