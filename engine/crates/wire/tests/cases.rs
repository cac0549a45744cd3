//! The cases that RFC 9112 speaks of, the limits, and how a request is written.

use redline_wire::{Answer, Asked, MOST_HEAD_BYTES, MOST_HEADERS, Malformed, Parser, Request, Unsendable};

fn feed(text: &str) -> Result<Option<Answer>, Malformed> {
    Ok(Parser::new(Asked::default()).feed(text.as_bytes())?.map(|whole| whole.answer))
}

fn answer(text: &str) -> Answer {
    feed(text).expect("well-formed").expect("whole")
}

fn malformed(text: &str) -> Malformed {
    feed(text).expect_err("malformed")
}

#[test]
fn answers_without_a_body_end_with_their_head() {
    for status in ["204 No Content", "304 Not Modified"] {
        let answer = answer(&format!("HTTP/1.1 {status}\r\nContent-Length: 100\r\n\r\n"));
        assert_eq!((answer.body_length, answer.keep_alive), (0, true));
    }
    let mut parser = Parser::new(Asked { head: true, hash: false });
    let whole = parser.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n").unwrap().unwrap();
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
    for length in ["", "-1", "+5", "5, 6", "0x5", "18446744073709551616", "5 5"] {
        let text = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\nhello");
        assert_eq!(malformed(&text), Malformed::ContentLength, "{length}");
    }
    let twice = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello";
    assert_eq!(malformed(twice), Malformed::ContentLength);
    assert_eq!(answer("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello").body_length, 5);
}

#[test]
fn what_follows_an_answer_is_not_used() {
    let mut parser = Parser::new(Asked::default());
    let whole = parser.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhello").unwrap().unwrap();
    assert_eq!((whole.used, whole.answer.body_length), (40, 2));
    assert_eq!(parser.feed(b"llo").unwrap_err(), Malformed::Head);
}

#[test]
fn a_length_that_promises_too_much_is_never_whole() {
    let mut parser = Parser::new(Asked::default());
    assert_eq!(parser.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\nhello"), Ok(None));
    assert_eq!(parser.end(), None);
}

#[test]
fn two_framings_are_refused() {
    let both = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(malformed(both), Malformed::Framing);
    assert_eq!(malformed("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), Malformed::Framing);
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
    assert_eq!(malformed(both), Malformed::Framing);
}

#[test]
fn a_status_outside_the_five_classes_is_refused() {
    for status in ["000", "099", "600", "999"] {
        assert_eq!(malformed(&format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n")), Malformed::Status);
    }
    assert_eq!(answer("HTTP/1.1 599 X\r\nContent-Length: 0\r\n\r\n").status, 599);
}

#[test]
fn broken_chunks_are_refused() {
    for body in [
        "g\r\n",
        "\r\n",
        "5\nhello",
        "5\r\nhellox",
        "5\r\nhello\n",
        "fffffffffffffffff\r\n",
        "-1\r\n",
        "0\r\n\n",
        "5 5\n",
    ] {
        let text = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{body}");
        assert_eq!(malformed(&text), Malformed::Chunk, "{body:?}");
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
    for text in [&endless_head, &endless_value, &endless_extension, &endless_trailers] {
        for piece in [1, 100, 4096, 60_000, text.len()] {
            let mut parser = Parser::new(Asked::default());
            let error = text.as_bytes().chunks(piece).find_map(|piece| parser.feed(piece).err());
            assert_eq!(error, Some(Malformed::TooLong), "{} in pieces of {piece}", &text[..40]);
        }
    }
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "A: b\r\n".repeat(MOST_HEADERS + 1));
    assert_eq!(malformed(&many), Malformed::TooManyHeaders);
}

#[test]
fn a_parser_forgets_when_it_is_told_to() {
    let mut parser = Parser::new(Asked { head: false, hash: true });
    assert_eq!(parser.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhel"), Ok(None));
    parser.reset();
    let whole = parser.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap().unwrap();
    let empty = [
        0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9, 0x24, 0x27, 0xae,
        0x41, 0xe4, 0x64, 0x9b, 0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55,
    ];
    assert_eq!(whole.answer.body_sha256, Some(empty));
}

const GET: Request<'_> =
    Request { method: "GET", path: "/a?b=c", host: "example.org", port: 80, headers: &[], body: b"" };

fn headers(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn text(request: &Request<'_>) -> String {
    String::from_utf8(request.encode().unwrap()).unwrap()
}

#[test]
fn a_request_names_its_host_and_its_length() {
    assert_eq!(text(&GET), "GET /a?b=c HTTP/1.1\r\nHost: example.org:80\r\n\r\n");
    assert!(text(&Request { host: "::1", ..GET }).contains("\r\nHost: [::1]:80\r\n"));
    assert!(text(&Request { method: "POST", ..GET }).contains("\r\nContent-Length: 0\r\n"));
    let with_body = Request { method: "DELETE", body: b"abc", ..GET };
    assert!(text(&with_body).ends_with("\r\nContent-Length: 3\r\n\r\nabc"));
    let own = headers(&[("host", "other"), ("Accept", "*/*")]);
    assert_eq!(text(&Request { headers: &own, ..GET }), "GET /a?b=c HTTP/1.1\r\nhost: other\r\nAccept: */*\r\n\r\n");
}

#[test]
fn a_request_that_would_break_apart_is_refused() {
    assert_eq!(Request { method: "GE T", ..GET }.encode(), Err(Unsendable::Method));
    assert_eq!(Request { method: "", ..GET }.encode(), Err(Unsendable::Method));
    for path in ["", "a", "/a b", "/\r\n", "/ä"] {
        assert_eq!(Request { path, ..GET }.encode(), Err(Unsendable::Path), "{path:?}");
    }
    let cases = [
        ("", "v", Unsendable::HeaderName(0)),
        ("a b", "v", Unsendable::HeaderName(0)),
        ("a", "v\r\nX: y", Unsendable::HeaderValue(0)),
        ("a", " v", Unsendable::HeaderValue(0)),
        ("Content-Length", "5", Unsendable::HeaderFraming(0)),
        ("transfer-encoding", "chunked", Unsendable::HeaderFraming(0)),
    ];
    for (name, value, why) in cases {
        assert_eq!(Request { headers: &headers(&[(name, value)]), ..GET }.encode(), Err(why), "{name:?}: {value:?}");
    }
}
