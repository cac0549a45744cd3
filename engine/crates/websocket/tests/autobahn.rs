//! The public cases of the Autobahn test suite, by their numbers: what a peer sends, and what a client makes of it.
//!
//! Each case is read at once, byte by byte and in pieces of three bytes; and by a server, if its frames are masked. Case 9 is in
//! `limits.rs`; cases 12 and 13 are about compression.

mod support;

use redline_websocket::{Role, Rule};
use support::{BINARY, CLOSE, PING, PONG, Seen, TEXT, close, frame, last, masked, part, read, text};

/// Number, bytes, and what is reported.
type Case = (&'static str, Vec<u8>, Vec<Seen>);

fn broken(rule: Rule) -> Vec<Seen> {
    vec![Seen::Broken(rule)]
}

fn seen(before: &[Seen], rule: Rule) -> Vec<Seen> {
    [before, &broken(rule)].concat()
}

/// 1: frames of all lengths.
fn framing() -> Vec<Case> {
    let lengths = [0, 125, 126, 127, 128, 65_535, 65_536];
    let texts = ["1.1.1", "1.1.2", "1.1.3", "1.1.4", "1.1.5", "1.1.6", "1.1.7"].into_iter().zip(lengths);
    let texts =
        texts.map(|(case, length)| (case, last(TEXT, "*".repeat(length).as_bytes()), vec![text(&"*".repeat(length))]));
    let binaries = ["1.2.1", "1.2.2", "1.2.3", "1.2.4", "1.2.5", "1.2.6", "1.2.7"].into_iter().zip(lengths);
    let binaries = binaries
        .map(|(case, length)| (case, last(BINARY, &vec![0xfe; length]), vec![Seen::Binary(vec![0xfe; length])]));
    texts.chain(binaries).collect()
}

/// 2: pings and pongs.
fn pings() -> Vec<Case> {
    let ten: Vec<u8> = (0..10).flat_map(|nth: u8| last(PING, &[b'p', nth])).collect();
    let pings = || (0..10).map(|nth: u8| Seen::Ping(vec![b'p', nth])).collect::<Vec<_>>();
    vec![
        ("2.1", last(PING, b""), vec![Seen::Ping(vec![])]),
        ("2.2", last(PING, b"Hello, world!"), vec![Seen::Ping(b"Hello, world!".to_vec())]),
        (
            "2.3",
            last(PING, &[0, 255, 254, 253, 252, 251, 0, 255]),
            vec![Seen::Ping(vec![0, 255, 254, 253, 252, 251, 0, 255])],
        ),
        ("2.4", last(PING, &[0xfe; 125]), vec![Seen::Ping(vec![0xfe; 125])]),
        ("2.5", last(PING, &[0xfe; 126]), broken(Rule::ControlTooLong)),
        ("2.7", last(PONG, b""), vec![Seen::Pong]),
        ("2.8", last(PONG, b"unsolicited pong payload"), vec![Seen::Pong]),
        (
            "2.9",
            [last(PONG, b"unsolicited"), last(PING, b"ping")].concat(),
            vec![Seen::Pong, Seen::Ping(b"ping".to_vec())],
        ),
        ("2.10", ten.clone(), pings()),
        ("2.11", ten, pings()),
    ]
}

/// 3: reserved bits; 4: reserved opcodes.
fn reserved() -> Vec<Case> {
    let hello = || last(TEXT, b"Hello");
    let mut cases = vec![
        ("3.1", frame(0x80 | 0x10 | TEXT, b"Hello"), broken(Rule::ReservedBit)),
        (
            "3.2",
            [hello(), frame(0x80 | 0x20 | TEXT, b"Hello"), last(PING, b"")].concat(),
            seen(&[text("Hello")], Rule::ReservedBit),
        ),
        ("3.3", [hello(), frame(0x80 | 0x30 | TEXT, b"Hello")].concat(), seen(&[text("Hello")], Rule::ReservedBit)),
        ("3.4", [hello(), frame(0x80 | 0x40 | TEXT, b"Hello")].concat(), seen(&[text("Hello")], Rule::ReservedBit)),
        ("3.5", frame(0x80 | 0x50 | BINARY, &[0, 255]), broken(Rule::ReservedBit)),
        ("3.6", frame(0x80 | 0x60 | PING, b"Hello"), broken(Rule::ReservedBit)),
        ("3.7", frame(0x80 | 0x70 | CLOSE, b""), broken(Rule::ReservedBit)),
    ];
    let data = [("4.1.1", 3), ("4.1.2", 4), ("4.1.3", 5), ("4.1.4", 6), ("4.1.5", 7)];
    let control = [("4.2.1", 11), ("4.2.2", 12), ("4.2.3", 13), ("4.2.4", 14), ("4.2.5", 15)];
    for (case, opcode) in data.into_iter().chain(control) {
        cases.push((
            case,
            [hello(), last(opcode, b"x"), last(PING, b"")].concat(),
            seen(&[text("Hello")], Rule::ReservedOpcode),
        ));
    }
    cases
}

/// 5: fragments.
fn fragments() -> Vec<Case> {
    let ping = || Seen::Ping(b"ping".to_vec());
    let whole = || text("fragment1fragment2");
    let (first, second) = (|| part(TEXT, b"fragment1"), || last(0, b"fragment2"));
    vec![
        ("5.1", [part(PING, b"a"), last(0, b"b")].concat(), broken(Rule::ControlFragment)),
        ("5.2", [part(PONG, b"a"), last(0, b"b")].concat(), broken(Rule::ControlFragment)),
        ("5.3", [first(), second()].concat(), vec![whole()]),
        ("5.6", [first(), last(PING, b"ping"), second()].concat(), vec![ping(), whole()]),
        ("5.9", [last(0, b"x"), last(TEXT, b"Hello")].concat(), broken(Rule::NothingToContinue)),
        ("5.12", [part(0, b"x"), last(TEXT, b"Hello")].concat(), broken(Rule::NothingToContinue)),
        (
            "5.15",
            [first(), second(), part(0, b"x"), last(TEXT, b"y")].concat(),
            seen(&[whole()], Rule::NothingToContinue),
        ),
        ("5.16", [part(0, b"a"), first(), second()].concat(), broken(Rule::NothingToContinue)),
        ("5.17", [last(0, b"a"), first(), second()].concat(), broken(Rule::NothingToContinue)),
        ("5.18", [first(), last(TEXT, b"fragment2")].concat(), broken(Rule::MessageWithinMessage)),
        (
            "5.19",
            [first(), part(0, b"2"), last(PING, b"ping"), part(0, b"3"), last(PING, b"ping"), last(0, b"5")].concat(),
            vec![ping(), ping(), text("fragment1235")],
        ),
        ("6.1.1", last(TEXT, b""), vec![text("")]),
        ("6.1.2", [part(TEXT, b""), part(0, b""), last(0, b"")].concat(), vec![text("")]),
        ("6.1.3", [part(TEXT, b""), part(0, b"middle"), last(0, b"")].concat(), vec![text("middle")]),
    ]
}

/// 6: UTF-8, in one frame, in frames of one byte, and in two frames at each place.
fn utf8() -> Vec<Case> {
    let greek = "Hello-µ@ßöäüàá-UTF-8!!κόσμε";
    let bytes = greek.as_bytes();
    let bytewise = |bytes: &[u8]| {
        let (end, before) = bytes.split_last().expect("bytes");
        let (begin, middle) = before.split_first().expect("two bytes");
        [part(TEXT, &[*begin]), middle.iter().flat_map(|byte| part(0, &[*byte])).collect(), last(0, &[*end])].concat()
    };
    let mut cases = vec![
        ("6.2.1", last(TEXT, bytes), vec![text(greek)]),
        ("6.2.2", [part(TEXT, &bytes[..12]), last(0, &bytes[12..])].concat(), vec![text(greek)]),
        ("6.2.3", bytewise(bytes), vec![text(greek)]),
        ("6.2.4", bytewise("κόσμε".as_bytes()), vec![text("κόσμε")]),
        (
            "6.4.1",
            [part(TEXT, "κόσμε".as_bytes()), part(0, b"\xf4\x90\x80\x80"), last(0, b"edited")].concat(),
            broken(Rule::NotUtf8),
        ),
        (
            "6.4.2",
            [part(TEXT, "κόσμε\u{f4}".as_bytes()), part(0, b"\xf4\x90"), last(0, b"")].concat(),
            broken(Rule::NotUtf8),
        ),
    ];
    let valid: [(&str, &str); 16] = [
        ("6.5.1", "κόσμε"),
        ("6.6.2", "κ"),
        ("6.6.11", "κόσμε"),
        ("6.7.1", "\0"),
        ("6.7.2", "\u{80}"),
        ("6.7.3", "\u{800}"),
        ("6.7.4", "\u{10000}"),
        ("6.9.1", "\u{7f}"),
        ("6.9.2", "\u{7ff}"),
        ("6.9.3", "\u{ffff}"),
        ("6.9.4", "\u{10ffff}"),
        ("6.11.1", "\u{d7ff}"),
        ("6.11.2", "\u{e000}"),
        ("6.11.3", "\u{fffd}"),
        ("6.11.4", "\u{10ffff}"),
        ("6.22.1", "\u{fffe}"),
    ];
    let invalid: [(&str, &[u8]); 24] = [
        ("6.3.1", b"\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5\xed\xa0\x80edited"),
        ("6.6.1", b"\xce"),
        ("6.6.3", b"\xce\xba\xe1"),
        ("6.6.4", b"\xce\xba\xe1\xbd"),
        ("6.6.10", b"\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce"),
        ("6.8.1", b"\xf8\x88\x80\x80\x80"),
        ("6.8.2", b"\xfc\x84\x80\x80\x80\x80"),
        ("6.10.1", b"\xf7\xbf\xbf\xbf"),
        ("6.10.2", b"\xfb\xbf\xbf\xbf\xbf"),
        ("6.10.3", b"\xfd\xbf\xbf\xbf\xbf\xbf"),
        ("6.11.5", b"\xf4\x90\x80\x80"),
        ("6.12.1", b"\x80"),
        ("6.12.2", b"\xbf"),
        ("6.12.8", b"\x80\xbf\x80\xbf\x80\xbf\xbe"),
        ("6.13.1", b"\xc0 \xc1 \xc2 "),
        ("6.14.1", b"\xc0"),
        ("6.14.6", b"\xdf"),
        ("6.15.1", b"\xc0\xe0\x80\xf0\x80\x80"),
        ("6.16.1", b"\xfe"),
        ("6.16.2", b"\xff"),
        ("6.17.1", b"\xc0\xaf"),
        ("6.18.1", b"\xc1\xbf"),
        ("6.20.1", b"\xed\xa0\x80"),
        ("6.21.8", b"\xed\xaf\xbf\xed\xbf\xbf"),
    ];
    cases.extend(valid.map(|(case, valid)| (case, last(TEXT, valid.as_bytes()), vec![text(valid)])));
    cases.extend(invalid.map(|(case, invalid)| (case, last(TEXT, invalid), broken(Rule::NotUtf8))));
    cases.extend(
        invalid.map(|(case, invalid)| (case, [part(TEXT, invalid), last(0, b"")].concat(), broken(Rule::NotUtf8))),
    );
    cases
}

/// 7: the closing handshake. What follows a close frame is ignored.
fn closing() -> Vec<Case> {
    let closed = |code: u16, reason: &str| vec![Seen::Close(Some(code), reason.to_owned())];
    let long = "*".repeat(123);
    let mut cases = vec![
        ("7.1.1", [last(TEXT, b"Hello"), close(1000, b"")].concat(), [vec![text("Hello")], closed(1000, "")].concat()),
        ("7.1.2", [close(1000, b""), close(1000, b"")].concat(), closed(1000, "")),
        ("7.1.3", [close(1000, b""), last(PING, b"")].concat(), closed(1000, "")),
        ("7.1.4", [close(1000, b""), last(TEXT, b"Hello")].concat(), closed(1000, "")),
        ("7.1.5", [part(TEXT, b"f1"), close(1000, b""), last(0, b"f2")].concat(), closed(1000, "")),
        ("7.3.1", last(CLOSE, b""), vec![Seen::Close(None, String::new())]),
        ("7.3.2", last(CLOSE, b"a"), broken(Rule::CloseOfOneByte)),
        ("7.3.3", close(1000, b""), closed(1000, "")),
        ("7.3.4", close(1000, b"Hello World!"), closed(1000, "Hello World!")),
        ("7.3.5", close(1000, long.as_bytes()), closed(1000, &long)),
        ("7.3.6", close(1000, "*".repeat(124).as_bytes()), broken(Rule::ControlTooLong)),
        ("7.5.1", close(1000, b"\xce\xba\xed\xa0\x80"), broken(Rule::CloseNotUtf8)),
    ];
    for code in [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 3999, 4000, 4999] {
        cases.push(("7.7", close(code, b""), closed(code, "")));
    }
    for code in [0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535] {
        cases.push(("7.9, 7.13", close(code, b""), broken(Rule::CloseCode)));
    }
    cases
}

#[test]
fn the_cases_are_read_as_they_should_however_they_are_cut() {
    let all = [framing(), pings(), reserved(), fragments(), utf8(), closing()].concat();
    for (case, bytes, expected) in &all {
        for pieces in [usize::MAX, 1, 3] {
            assert_eq!(&read(Role::Client, bytes, &[pieces]), expected, "case {case} in pieces of {pieces}");
            let from_client = masked(bytes, [0x37, 0xfa, 0x21, 0x3d]);
            assert_eq!(&read(Role::Server, &from_client, &[pieces]), expected, "case {case} of a client");
        }
    }
    assert_eq!(all.len(), 14 + 10 + 17 + 14 + 70 + 40);
}
