//! The cases of RFC 9112, and the limits.

use redline_wire::{
    Answer, Heads, KeptBody, KeptFields, MOST_HEAD_BYTES, MOST_HEADERS, MOST_KEPT_BODY, Malformed, ParsedAnswer,
    Parser, ReadOptions, Rule,
};

const GET: ReadOptions = ReadOptions {
    head: false,
    hash: false,
    keep: KeptBody::None,
    fields: KeptFields::None,
    events: None,
    messages: None,
};

fn give(parser: &mut Parser, text: &str) -> Result<Option<ParsedAnswer>, Malformed> {
    parser.feed(text.as_bytes(), GET, &mut Heads::new())
}

fn feed(text: &str) -> Result<Option<Answer>, Malformed> {
    Ok(give(&mut Parser::new(), text)?.map(|whole| whole.answer))
}

fn answer(text: &str) -> Answer {
    feed(text).expect("well-formed").expect("whole")
}

fn broken_rule(text: &str) -> Rule {
    feed(text).expect_err("malformed").rule
}

#[test]
fn answers_without_a_body_end_with_their_head() {
    for status in ["204 No Content", "304 Not Modified"] {
        let answer = answer(&format!("HTTP/1.1 {status}\r\nContent-Length: 100\r\n\r\n"));
        assert_eq!((answer.body_length, answer.keep_alive), (0, true));
    }
    let head = ReadOptions { head: true, ..GET };
    let text = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n";
    let whole = Parser::new().feed(text, head, &mut Heads::new()).unwrap().unwrap();
    assert_eq!((whole.answer.body_length, whole.answer.keep_alive), (0, true));
}

#[test]
fn interim_answers_are_passed_over_but_a_switch_of_protocols_is_final() {
    assert_eq!(answer("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n").status, 201);
    let switched = answer("HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n");
    assert_eq!((switched.status, switched.keep_alive), (101, false));
}

#[test]
fn a_connection_lives_on_as_its_version_and_its_headers_say() {
    let cases = [
        ("HTTP/1.1", "", true),
        ("HTTP/1.1", "Connection: close\r\n", false),
        ("HTTP/1.1", "Connection: upgrade, CLOSE\r\n", false),
        ("HTTP/1.1", "Connection: keep-alive\r\nConnection: close\r\n", false),
        ("HTTP/1.1", "Connection: closed\r\n", true),
        ("HTTP/1.0", "", false),
        ("HTTP/1.0", "Connection: Keep-Alive\r\n", true),
    ];
    for (version, header, keep_alive) in cases {
        let answer = answer(&format!("{version} 200 OK\r\n{header}Content-Length: 0\r\n\r\n"));
        assert_eq!(answer.keep_alive, keep_alive, "{version} {header}");
    }
}

#[test]
fn a_length_must_be_one_number() {
    let cases = [
        ("", Rule::LengthEmpty),
        ("5,", Rule::LengthEmpty),
        ("-1", Rule::LengthNumber),
        ("+5", Rule::LengthNumber),
        ("0x5", Rule::LengthNumber),
        ("5 5", Rule::LengthNumber),
        ("5, 6", Rule::LengthsDiffer),
        ("18446744073709551616", Rule::LengthTooBig),
    ];
    for (length, rule) in cases {
        let text = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\nhello");
        assert_eq!(broken_rule(&text), rule, "{length}");
    }
    let twice = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello";
    assert_eq!(feed(twice), Err(Malformed { rule: Rule::LengthsDiffer, at: 52 }));
    for same in ["5\r\nContent-Length: 5", "5, 5"] {
        assert_eq!(answer(&format!("HTTP/1.1 200 OK\r\nContent-Length: {same}\r\n\r\nhello")).body_length, 5);
    }
}

#[test]
fn what_follows_an_answer_is_not_used() {
    let mut parser = Parser::new();
    let whole = give(&mut parser, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhello").unwrap().unwrap();
    assert_eq!((whole.used, whole.answer.body_length), (40, 2));
    assert_eq!(give(&mut parser, "llo").unwrap_err(), Malformed { rule: Rule::NotHttp, at: 0 });
}

#[test]
fn a_length_that_promises_too_much_is_never_whole() {
    let mut parser = Parser::new();
    assert_eq!(give(&mut parser, "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\nhello"), Ok(None));
    assert_eq!(parser.end(GET), None);
}

#[test]
fn two_framings_are_refused() {
    let both = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(broken_rule(both), Rule::LengthAndCoding);
    assert_eq!(broken_rule("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), Rule::CodingInHttp10);
}

#[test]
fn transfer_codings_in_many_lines_are_one_list() {
    let body = "2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n";
    for second in ["", " ", ","] {
        let text =
            format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: {second}\r\n\r\n{body}");
        assert_eq!((answer(&text).body_length, answer(&text).keep_alive), (5, true), "{second:?}");
    }
    let both = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\nTransfer-Encoding:\r\n\r\nhello";
    assert_eq!(broken_rule(both), Rule::LengthAndCoding);
}

/// RFC 9110, section 15: a client treats 600 to 999 as a server error.
#[test]
fn a_status_has_three_digits_and_is_100_at_least() {
    for status in ["000", "099"] {
        let text = format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n");
        assert_eq!(feed(&text), Err(Malformed { rule: Rule::StatusLow, at: 9 }));
    }
    for status in [599, 600, 999] {
        assert_eq!(answer(&format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n")).status, status);
    }
}

#[test]
fn broken_chunks_are_refused() {
    let cases = [
        ("g\r\n", Rule::ChunkSize, 0),
        ("\r\n", Rule::ChunkSize, 0),
        ("-1\r\n", Rule::ChunkSize, 0),
        ("0x5\r\n", Rule::ChunkSize, 1),
        ("5 \r\nhello", Rule::ChunkSizeSpace, 2),
        ("5 5\n", Rule::ChunkSizeSpace, 2),
        ("5\nhello", Rule::ChunkLine, 1),
        ("5\rhello", Rule::ChunkLine, 2),
        ("5;\r\nhello", Rule::ChunkExtension, 2),
        ("5;a=b c\r\nhello", Rule::ChunkExtension, 6),
        ("fffffffffffffffff\r\n", Rule::ChunkSizeTooBig, 16),
        ("5\r\nhellox", Rule::ChunkEnd, 8),
        ("5\r\nhello\n", Rule::ChunkEnd, 8),
        ("0\r\n\n", Rule::LastLine, 3),
        ("0\r\n\rX", Rule::LastLine, 4),
        ("0\r\na b: c\r\n", Rule::NameSpace, 4),
        ("0\r\na: \x00\r\n", Rule::ValueNul, 6),
        ("0\r\na: b\rc\r\n", Rule::BareCr, 8),
    ];
    let head = "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (body, rule, at) in cases {
        let text = format!("{head}{body}");
        assert_eq!(feed(&text), Err(Malformed { rule, at: head.len() + at }), "{body:?}");
        let (mut parser, mut heads) = (Parser::new(), Heads::new());
        let in_bytes = text.as_bytes().chunks(1).find_map(|byte| parser.feed(byte, GET, &mut heads).err());
        assert_eq!(in_bytes, Some(Malformed { rule, at: head.len() + at }), "{body:?} byte by byte");
    }
}

#[test]
fn a_broken_head_says_where_and_by_which_rule() {
    let cases = [
        ("SSH-2.0-x\r\n", Rule::NotHttp, 0),
        ("HTTP/2.0 200 OK\r\n", Rule::NotHttp, 5),
        ("HTTP/1.x 200 OK\r\n", Rule::Version, 7),
        ("HTTP/1.12 200 OK\r\n", Rule::Version, 8),
        ("HTTP/1.1\t200 OK\r\n", Rule::VersionEnd, 8),
        ("HTTP/1.1 +20 OK\r\n", Rule::StatusDigits, 9),
        ("HTTP/1.1 2000 OK\r\n", Rule::StatusDigits, 12),
        ("HTTP/1.1 200 O\0K\r\n", Rule::Reason, 14),
        ("HTTP/1.1 200 OK\rX: y\r\n", Rule::BareCr, 15),
        ("HTTP/1.1 200 OK\r\n X: y\r\n", Rule::SpaceBeforeFields, 17),
        ("HTTP/1.1 200 OK\r\nX : y\r\n", Rule::NameSpace, 18),
        ("HTTP/1.1 200 OK\r\n: y\r\n", Rule::NameEmpty, 17),
        ("HTTP/1.1 200 OK\r\ngarbage\r\n", Rule::NoColon, 24),
        ("HTTP/1.1 200 OK\r\nX(y): z\r\n", Rule::NameCharacter, 18),
        ("HTTP/1.1 200 OK\r\nX: a\0\r\n", Rule::ValueNul, 21),
        ("HTTP/1.1 200 OK\r\nX: a\r\n b\x01\r\n", Rule::ValueControl, 25),
        ("HTTP/1.1 200 OK\r\nX: a\rb\r\n", Rule::BareCr, 21),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n", Rule::ChunkedTwice, 36),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked;a=b\r\n\r\n", Rule::ChunkedParameters, 36),
    ];
    for (head, rule, at) in cases {
        assert_eq!(feed(&format!("{head}\r\n")), Err(Malformed { rule, at }), "{head:?}");
        assert!(rule.words().is_ascii() && !rule.words().ends_with('.'));
    }
}

#[test]
fn nothing_is_kept_without_bound() {
    let line = format!("X: {}\r\n", "a".repeat(1000));
    let endless_head = format!("HTTP/1.1 200 OK\r\n{}", line.repeat(100));
    let endless_value = format!("HTTP/1.1 200 OK\r\nX: {}", "a".repeat(3 * MOST_HEAD_BYTES));
    let endless_extension =
        format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;{}", "a".repeat(2 * MOST_HEAD_BYTES));
    let endless_trailers = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n{}", line.repeat(100));
    let endless_zeros =
        format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{}", "0".repeat(2 * MOST_HEAD_BYTES));
    let endless_interim = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n".repeat(2000);
    let endless = [
        (endless_head, Rule::HeadTooLong),
        (endless_value, Rule::HeadTooLong),
        (endless_extension, Rule::ChunkLineTooLong),
        (endless_trailers, Rule::TrailersTooLong),
        (endless_zeros, Rule::ChunkLineTooLong),
        (endless_interim, Rule::InterimTooLong),
    ];
    for (text, rule) in &endless {
        for piece in [1, 100, 4096, 60_000, text.len()] {
            let (mut parser, mut heads) = (Parser::new(), Heads::new());
            let error = text.as_bytes().chunks(piece).find_map(|piece| parser.feed(piece, GET, &mut heads).err());
            assert_eq!(error.map(|why| why.rule), Some(*rule), "{} in pieces of {piece}", &text[..40]);
        }
    }
    let with = |headers| format!("HTTP/1.1 200 OK\r\n{}Content-Length: 0\r\n\r\n", "A: b\r\n".repeat(headers - 1));
    assert_eq!(answer(&with(MOST_HEADERS)).status, 200);
    assert_eq!(feed(&with(MOST_HEADERS + 1)), Err(Malformed { rule: Rule::TooManyFields, at: 17 + 6 * MOST_HEADERS }));
    assert!(Rule::TooManyFields.words().contains(&MOST_HEADERS.to_string()));
}

#[test]
fn a_head_past_the_limit_has_one_verdict_however_it_is_cut() {
    // Pieces of 4 bytes end at the limit, so that nothing new is read when it is exceeded.
    let bad = format!("HTTP/1.1 200 All right\u{3}{}", "a".repeat(MOST_HEAD_BYTES));
    for piece in [1, 4, 7, 4096, bad.len()] {
        let (mut parser, mut heads) = (Parser::new(), Heads::new());
        let error = bad.as_bytes().chunks(piece).find_map(|piece| parser.feed(piece, GET, &mut heads).err());
        assert_eq!(error, Some(Malformed { rule: Rule::Reason, at: 22 }), "in pieces of {piece}");
    }
}

#[test]
fn a_parser_forgets_when_it_is_told_to() {
    let (mut parser, mut heads) = (Parser::new(), Heads::new());
    let options = ReadOptions { hash: true, ..GET };
    assert_eq!(parser.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhel", options, &mut heads), Ok(None));
    parser.reset();
    let whole = parser.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", options, &mut heads).unwrap().unwrap();
    let empty = [
        0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9, 0x24, 0x27, 0xae,
        0x41, 0xe4, 0x64, 0x9b, 0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55,
    ];
    assert_eq!(whole.answer.body_sha256, Some(empty));
}

#[test]
fn a_body_is_kept_on_request() {
    let (mut parser, mut heads) = (Parser::new(), Heads::new());
    let keep = ReadOptions { keep: KeptBody::Whole, ..GET };
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n";
    for options in [keep, GET, keep] {
        assert!(parser.feed(chunked, options, &mut heads).unwrap().is_some());
        assert_eq!(parser.body(), if options.keep.any() { b"hello".as_slice() } else { b"" });
    }
    for (length, error) in [(MOST_KEPT_BODY, None), (MOST_KEPT_BODY + 1, Some(Rule::BodyTooLong))] {
        let text = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{}", "a".repeat(length));
        for piece in [1000, text.len()] {
            let mut parser = Parser::new();
            let malformed = text.as_bytes().chunks(piece).find_map(|piece| parser.feed(piece, keep, &mut heads).err());
            assert_eq!(malformed.map(|why| why.rule), error);
            let (mut parser, cut) = (Parser::new(), ReadOptions { keep: KeptBody::Beginning, ..keep });
            let mut fed = text.as_bytes().chunks(piece).map(|piece| parser.feed(piece, cut, &mut heads).unwrap());
            assert_eq!(fed.find_map(|parsed| parsed).unwrap().answer.body_length, length as u64);
            assert_eq!(parser.body().len(), MOST_KEPT_BODY);
        }
    }
}

#[test]
fn a_parser_knows_when_it_is_between_answers() {
    let mut parser = Parser::new();
    let pieces = ["", "HTTP/1.1 100 C\r\n\r\n", "HTT", "P/1.1 200 OK\r\nContent-Length: 1\r\n\r\n", "a"];
    for (piece, is_between) in pieces.into_iter().zip([true, false, false, false, true]) {
        give(&mut parser, piece).unwrap();
        assert_eq!(parser.is_between(), is_between, "{piece:?}");
    }
}

#[test]
fn a_blank_line_before_an_answer_belongs_to_none() {
    for text in ["\r\nHTTP/1.1 200 OK\r\n\r\n", "\nHTTP/1.1 200 OK\r\n\r\n", "\r"] {
        assert_eq!(feed(text), Err(Malformed { rule: Rule::BlankLine, at: 0 }));
    }
}

/// A quarter of a million connections have a parser each.
#[test]
fn a_parser_is_small() {
    assert!(size_of::<Parser>() <= 56, "{}", size_of::<Parser>());
}

#[test]
fn fields_are_kept_when_they_are_wanted() {
    let text = b"HTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 200 a:b\r\nSet-Cookie: a=b:c\r\nX:\r\nset-cookie:  d=e \r\nContent-Length: 0\r\n\r\n";
    let options = ReadOptions { fields: KeptFields::All, ..GET };
    for cut in 0..text.len() {
        let (mut parser, mut heads) = (Parser::new(), Heads::new());
        assert_eq!(parser.feed(&text[..cut], options, &mut heads), Ok(None));
        assert!(parser.feed(&text[cut..], options, &mut heads).unwrap().is_some());
        let values = |name: &'static [u8]| redline_wire::values_in(parser.kept_head(), name).collect::<Vec<_>>();
        assert_eq!(values(b"set-cookie"), [&b"a=b:c"[..], b"d=e"], "cut at {cut}");
        assert_eq!((values(b"x"), values(b"content-length")), (vec![&b""[..]], vec![&b"0"[..]]));
        assert!(values(b"link").is_empty() && values(b"set").is_empty());
    }
}

#[test]
fn a_head_is_kept_for_its_cookies_only_if_it_sets_any() {
    let answers = [
        "HTTP/1.1 103 Early\r\nSet-Cookie: a=b\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nset-cookie: c=d\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n",
    ];
    let text = answers.concat().into_bytes();
    let options = ReadOptions { fields: KeptFields::SetCookie, ..GET };
    let mut heads = Heads::new();
    for cut in 0..=text.len() {
        let (mut parser, mut cookies) = (Parser::new(), Vec::new());
        for mut piece in [&text[..cut], &text[cut..]] {
            while let Some(whole) = parser.feed(piece, options, &mut heads).unwrap() {
                let values = redline_wire::values_in(parser.kept_head(), b"set-cookie").map(<[u8]>::to_vec);
                cookies.push(values.collect::<Vec<_>>());
                piece = &piece[whole.used..];
            }
        }
        assert_eq!(cookies, [vec![], vec![b"c=d".to_vec()], vec![]], "cut at {cut}");
    }
}
