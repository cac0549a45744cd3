//! How requests are checked and written.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use proptest::prelude::*;
use redline_wire::{
    Body, BodyEscape, Fields, GivenValue, Names, Part, Spec, Template, TraceContext, Unfit, Unsendable, Values,
};

/// Counts up, and takes numbers and picks from the ends of their ranges in turn.
#[derive(Default)]
struct Counted {
    seq: u64,
    draws: usize,
}

impl Values for Counted {
    fn seq(&mut self) -> u64 {
        self.seq += 1;
        self.seq - 1
    }
    fn between(&mut self, a: i64, b: i64) -> i64 {
        self.draws += 1;
        if self.draws % 2 == 1 { a } else { b }
    }
    fn pick(&mut self, n: usize) -> usize {
        self.draws += 1;
        self.draws % n
    }
    fn trace_context(&mut self) -> TraceContext {
        TraceContext::new(0xabc, 0xdef, 1 << 63)
    }
}

fn get(path: &str) -> Spec<'_> {
    Spec {
        method: "GET",
        path,
        host: "example.org",
        port: 8080,
        headers: &[],
        body: Body::Bytes(Vec::new()),
        chunks: None,
        tls: false,
        http2: false,
        cookies: false,
    }
}

fn headers(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn picks(lists: &[(&str, &[&str])]) -> BTreeMap<String, Vec<String>> {
    lists
        .iter()
        .map(|(name, list)| ((*name).to_owned(), list.iter().map(|entry| (*entry).to_owned()).collect()))
        .collect()
}

fn compile(spec: Spec<'_>) -> Result<Template, Unsendable> {
    let picks = picks(&[("ids", &["1", "22"]), ("none", &[]), ("odd", &["", "b c", "\n"])]);
    Template::compile(spec, &Names::picks(&picks))
}

/// The whole request with these values.
fn text(spec: Spec<'_>, values: &mut Counted) -> String {
    let template = compile(spec).unwrap();
    let mut out = Vec::new();
    template.render(&mut out, values).unwrap();
    out.extend(template.fixed_body().iter().flat_map(|body| body.iter()));
    if let Some(fixed) = template.fixed() {
        assert_eq!(out, **fixed);
    }
    String::from_utf8(out).unwrap()
}

fn fixed(spec: Spec<'_>) -> String {
    assert!(compile(spec.clone()).unwrap().fixed().is_some());
    text(spec, &mut Counted::default())
}

#[test]
fn a_request_names_its_host_and_its_length() {
    assert_eq!(fixed(get("/a?b=c")), "GET /a?b=c HTTP/1.1\r\nHost: example.org:8080\r\n\r\n");
    assert!(fixed(Spec { host: "::1", ..get("/") }).contains("\r\nHost: [::1]:8080\r\n"));
    assert!(fixed(Spec { method: "POST", ..get("/") }).contains("\r\nContent-Length: 0\r\n"));
    for body in [Body::Bytes(b"abc".to_vec()), Body::Text("abc".to_owned(), BodyEscape::None)] {
        let with_body = Spec { method: "DELETE", body, ..get("/") };
        assert!(fixed(with_body).ends_with("\r\nContent-Length: 3\r\n\r\nabc"));
    }
    let own = headers(&[("host", "other"), ("Accept", "*/*")]);
    assert_eq!(fixed(Spec { headers: &own, ..get("/") }), "GET / HTTP/1.1\r\nhost: other\r\nAccept: */*\r\n\r\n");
}

/// RFC 9110, section 4.2.3: the default port is omitted; and a zone has a meaning on this host only.
#[test]
fn a_host_is_named_without_what_says_nothing_to_the_peer() {
    let cases = [
        ("example.org", 80, false, "example.org"),
        ("example.org", 443, true, "example.org"),
        ("example.org", 443, false, "example.org:443"),
        ("example.org", 80, true, "example.org:80"),
        ("127.0.0.1", 80, false, "127.0.0.1"),
        ("::1", 80, false, "[::1]"),
        ("fe80::1%eth0", 8080, false, "[fe80::1]:8080"),
        ("fe80::1%eth0", 443, true, "[fe80::1]"),
    ];
    for (host, port, tls, named) in cases {
        let spec = Spec { host, port, tls, ..get("/") };
        assert_eq!(fixed(spec.clone()), format!("GET / HTTP/1.1\r\nHost: {named}\r\n\r\n"));
        let template = compile(Spec { http2: true, ..spec }).unwrap();
        let fields = template.fixed_fields().unwrap();
        assert!(fields.iter().any(|field| field == (b":authority", named.as_bytes())), "{named}");
    }
}

#[test]
fn placeholders_are_filled_in_wherever_they_stand() {
    let own = headers(&[("X-Id", "n{seq} {rand:-3..9}")]);
    let body = Body::Text("{pick:ids} {{seq}} {seq} }".to_owned(), BodyEscape::None);
    let spec = Spec { method: "PUT", headers: &own, body, ..get("/{a}/{seq}/{rand:5..5}/{pick:ids}}}") };
    let mut values = Counted { seq: 9, draws: 0 };
    let begin = "PUT /{a}/9/5/1} HTTP/1.1\r\nHost: example.org:8080\r\nX-Id: n9 -3\r\nContent-Length: 11\r\n\r\n";
    assert_eq!(text(spec.clone(), &mut values), format!("{begin}1 {{seq}} 9 }}"));
    assert_eq!(values.seq, 10);
    let body = "1 {seq} 10 }";
    let second = text(spec, &mut values);
    assert!(second.ends_with(&format!("\r\nContent-Length: {}\r\n\r\n{body}", body.len())), "{second}");
}

#[test]
fn a_trace_context_stands_wherever_a_placeholder_may() {
    let context = "00-00000000000000000000000000000abc-0000000000000def";
    let own = headers(&[("traceparent", "{traceparent}"), ("X-Half", "<{traceparent:50%}>")]);
    let body = Body::Text("{traceparent:50.1%}{traceparent}".to_owned(), BodyEscape::None);
    let spec = Spec { method: "PUT", headers: &own, body, ..get("/{traceparent:0%}?{traceparents}") };
    let template = compile(spec.clone()).unwrap();
    assert_eq!(
        text(spec, &mut Counted::default()),
        format!(
            "PUT /{context}-00?{{traceparents}} HTTP/1.1\r\nHost: example.org:8080\r\ntraceparent: {context}-01\r\n\
            X-Half: <{context}-00>\r\nContent-Length: 110\r\n\r\n{context}-01{context}-01"
        )
    );
    let sampled = |template: &Template| template.trace_share().map(|share| TraceContext::default().is_sampled(share));
    assert_eq!(sampled(&template), Some(true));
    assert_eq!(sampled(&compile(get("/{traceparent:0%}")).unwrap()), Some(false));
    assert_eq!(sampled(&compile(get("/{seq}")).unwrap()), None);
    let body = Body::Text("{traceparent}".to_owned(), BodyEscape::None);
    assert_eq!(sampled(&compile(Spec { http2: true, body, ..get("/") }).unwrap()), Some(true));
    for wrong in ["{traceparent:}", "{traceparent:1}", "{traceparent:101%}", "{traceparent:-1%}", "{traceparent:1%"] {
        let path = format!("/{wrong}");
        assert_eq!(compile(get(&path)).unwrap_err(), Unsendable::Trace(Part::Path, wrong.to_owned()));
    }
}

#[test]
fn a_body_that_does_not_vary_is_left_out_of_what_is_rendered() {
    let spec = Spec { body: Body::Bytes(b"abc{seq}".to_vec()), ..get("/{seq}") };
    let template = compile(spec).unwrap();
    let mut out = b"before".to_vec();
    template.render(&mut out, &mut Counted::default()).unwrap();
    assert_eq!(out, b"beforeGET /0 HTTP/1.1\r\nHost: example.org:8080\r\nContent-Length: 8\r\n\r\n");
    assert_eq!(template.fixed_body().unwrap()[..], *b"abc{seq}");
    assert!(template.fixed().is_none());
}

/// A spec whose body is sent in chunks of `bytes`.
fn in_chunks(bytes: usize, body: Body, path: &str) -> Spec<'_> {
    Spec { method: "POST", body, chunks: NonZeroUsize::new(bytes), ..get(path) }
}

#[test]
fn a_body_in_chunks_has_no_length() {
    let head = "POST / HTTP/1.1\r\nHost: example.org:8080\r\nTransfer-Encoding: chunked\r\n\r\n";
    let bytes = |text: &str| Body::Bytes(text.as_bytes().to_vec());
    let cases = [
        (4, "4\r\n0123\r\n4\r\n4567\r\n2\r\n89\r\n"),
        (5, "5\r\n01234\r\n5\r\n56789\r\n"),
        (10, "a\r\n0123456789\r\n"),
    ];
    for (size, chunks) in cases {
        assert_eq!(fixed(in_chunks(size, bytes("0123456789"), "/")), format!("{head}{chunks}0\r\n\r\n"));
    }
    let whole = fixed(in_chunks(usize::MAX, bytes(&"x".repeat(300)), "/"));
    assert!(whole.ends_with(&format!("\r\n\r\n12c\r\n{}\r\n0\r\n\r\n", "x".repeat(300))));
    assert_eq!(fixed(in_chunks(1, bytes(""), "/")), format!("{head}0\r\n\r\n"));
}

#[test]
fn a_body_that_does_not_vary_is_framed_once() {
    let spec = in_chunks(2, Body::Bytes(b"abc".to_vec()), "/{seq}");
    let template = compile(spec).unwrap();
    assert_eq!(template.fixed_body().unwrap()[..], *b"2\r\nab\r\n1\r\nc\r\n0\r\n\r\n");
    let mut out = Vec::new();
    template.render(&mut out, &mut Counted::default()).unwrap();
    assert!(out.ends_with(b"\r\nTransfer-Encoding: chunked\r\n\r\n"));
}

#[test]
fn http_2_sends_such_a_body_as_it_is() {
    for (text, body) in [("ab", &b"ab"[..]), ("<{seq}>", b"<0>")] {
        let body_of = Body::Text(text.to_owned(), BodyEscape::None);
        let template = compile(Spec { http2: true, ..in_chunks(1, body_of, "/") }).unwrap();
        let mut fields = Fields::new();
        template.render_fields(&mut fields, &mut Counted::default()).unwrap();
        assert_eq!(template.fixed_body().map_or(fields.body(), |body| body), body);
        assert_eq!(shown(&fields), [":method=POST", ":scheme=http", ":authority=example.org:8080", ":path=/"]);
    }
}

#[test]
fn a_request_that_would_break_apart_is_refused() {
    let why = |spec: Spec<'_>| compile(spec).unwrap_err();
    for method in ["GE T", "", "CONNECT"] {
        assert_eq!(why(Spec { method, ..get("/") }), Unsendable::Method);
    }
    for path in ["", "a", "/a b", "/\r\n", "/ä", "{seq}", "{traceparent}", "{pick:ids}"] {
        let is_right = matches!(why(get(path)), Unsendable::Path | Unsendable::Entry(Part::Path, ..));
        assert!(is_right, "{path:?}");
    }
    for host in ["", "a b", "http://a"] {
        assert_eq!(why(Spec { host, ..get("/") }), Unsendable::Host);
    }
    let cases = [
        ("", "v", Unsendable::HeaderName(0)),
        ("a b", "v", Unsendable::HeaderName(0)),
        ("a", "v\r\nX: y", Unsendable::HeaderValue(0)),
        ("a", " v", Unsendable::HeaderValue(0)),
        ("a", "v\t", Unsendable::HeaderValue(0)),
        ("a", "{pick:odd}", Unsendable::Entry(Part::Header(0), "odd".to_owned(), 2)),
        ("Content-Length", "5", Unsendable::HeaderFraming(0)),
        ("transfer-encoding", "chunked", Unsendable::HeaderFraming(0)),
    ];
    for (name, value, error) in cases {
        let refused = why(Spec { headers: &headers(&[(name, value)]), ..get("/") });
        assert_eq!((refused.part(), &refused), (Part::Header(0), &error), "{name:?}: {value:?}");
    }
}

#[test]
fn placeholders_that_cannot_be_filled_in_are_refused() {
    for range in ["2..1", "1", "a..b", "1..", "1..99999999999999999999", "1 .. 2", ""] {
        let path = format!("/{{rand:{range}}}");
        assert_eq!(compile(get(&path)).unwrap_err(), Unsendable::Rand(Part::Path, range.to_owned()));
    }
    for name in ["other", "none", ""] {
        let body = Body::Text(format!("{{pick:{name}}}"), BodyEscape::None);
        let error = compile(Spec { body, ..get("/") }).unwrap_err();
        assert_eq!(error, Unsendable::Pick(Part::Body, name.to_owned()));
    }
    for path in ["/{rand:1..2", "/{pick:ids"] {
        assert!(compile(get(path)).is_err(), "{path}");
    }
    assert!(compile(get("/{pick:odd}")).is_err());
    assert!(compile(Spec { body: Body::Text("{pick:odd}".to_owned(), BodyEscape::None), ..get("/") }).is_ok());
}

#[test]
fn picks_may_be_whole_paths_and_ends_of_header_values() {
    let lists = picks(&[("paths", &["/a", "/b"]), ("tails", &["", "x"]), ("spaced", &["a ", " b"])]);
    assert!(Template::compile(get("{pick:paths}"), &Names::picks(&lists)).is_ok());
    assert!(Template::compile(get("{pick:tails}/"), &Names::picks(&lists)).is_err());
    for (value, is_right) in
        [("a{pick:tails}", true), ("a {pick:tails}", false), ("{pick:spaced}", false), ("({pick:spaced})", true)]
    {
        let own = headers(&[("a", value)]);
        assert_eq!(
            Template::compile(Spec { headers: &own, ..get("/") }, &Names::picks(&lists)).is_ok(),
            is_right,
            "{value:?}"
        );
    }
}

fn shown(fields: &Fields) -> Vec<String> {
    let text = |bytes| std::str::from_utf8(bytes).unwrap();
    fields.iter().map(|(name, value)| format!("{}={}", text(name), text(value))).collect()
}

#[test]
fn http_2_has_fields() {
    let own = headers(&[("X-Id", "{seq}"), ("TE", "trailers"), ("HOST", "other:1")]);
    let base = Spec { http2: true, ..get("/") };
    let spec = Spec {
        method: "POST",
        headers: &own,
        body: Body::Text("<{seq}>".to_owned(), BodyEscape::None),
        tls: true,
        ..base.clone()
    };
    let template = compile(spec).unwrap();
    let (mut fields, mut values) = (Fields::new(), Counted { seq: 9, draws: 0 });
    for _ in 0..2 {
        template.render_fields(&mut fields, &mut values).unwrap();
    }
    let expected = [
        ":method=POST",
        ":scheme=https",
        ":authority=other:1",
        ":path=/",
        "x-id=10",
        "te=trailers",
        "content-length=4",
    ];
    assert_eq!(shown(&fields), expected);
    assert_eq!(fields.body(), b"<10>");
    assert!(template.fixed_fields().is_none() && template.fixed_body().is_none() && template.fixed().is_none());

    let template = compile(Spec { body: Body::Bytes(b"ab".to_vec()), ..base.clone() }).unwrap();
    let expected = [":method=GET", ":scheme=http", ":authority=example.org:8080", ":path=/", "content-length=2"];
    assert_eq!(shown(template.fixed_fields().unwrap()), expected);
    assert_eq!(template.fixed_body().unwrap()[..], *b"ab");

    for (name, value) in [("Connection", "close"), ("keep-alive", "1"), ("Upgrade", "h2c"), ("te", "gzip")] {
        let own = headers(&[(name, value)]);
        let error = compile(Spec { headers: &own, ..base.clone() }).unwrap_err();
        assert_eq!(error, Unsendable::HeaderConnection(0));
        assert!(compile(Spec { headers: &own, ..get("/") }).is_ok());
    }
}

proptest! {
    /// The chunks of a body that varies are the body, each but the last of the length that was asked for.
    #[test]
    fn the_chunks_of_a_varying_body_are_the_body(before in 0_usize..300, size in 1_usize..400, seq: u64) {
        let body = Body::Text(format!("{}{{seq}}", "a".repeat(before)), BodyEscape::None);
        let request = text(in_chunks(size, body, "/"), &mut Counted { seq: seq / 2, draws: 0 });
        let (head, mut rest) = request.split_once("\r\n\r\n").unwrap();
        prop_assert!(head.ends_with("\r\nTransfer-Encoding: chunked") && !head.contains("Content-Length"));
        let mut chunks = Vec::new();
        loop {
            let (length, after) = rest.split_once("\r\n").unwrap();
            let length = usize::from_str_radix(length, 16).unwrap();
            if length == 0 {
                prop_assert_eq!(after, "\r\n");
                break;
            }
            chunks.push(&after[..length]);
            rest = after[length..].strip_prefix("\r\n").unwrap();
        }
        prop_assert_eq!(chunks.concat(), format!("{}{}", "a".repeat(before), seq / 2));
        let (last, others) = chunks.split_last().unwrap();
        prop_assert!(others.iter().all(|chunk| chunk.len() == size) && last.len() <= size);
    }

    /// The declared length is the real length, however many digits it has.
    #[test]
    fn the_length_of_a_varying_body_is_right(before in 0_usize..1200, seq: u64) {
        let body = Body::Text(format!("{}{{seq}}", "a".repeat(before)), BodyEscape::None);
        let request = text(Spec { body, ..get("/") }, &mut Counted { seq: seq / 2, draws: 0 });
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        prop_assert_eq!(body, format!("{}{}", "a".repeat(before), seq / 2));
        let said = head.rsplit_once("Content-Length: ").map(|(_, said)| said.to_owned());
        prop_assert_eq!(said, Some(body.len().to_string()));
    }
}

/// A visitor with a token, a name and cookies.
struct Visitor {
    token: GivenValue,
    name: GivenValue,
    cookies: Vec<u8>,
    asked_for: Vec<u8>,
}

impl Values for Visitor {
    fn seq(&mut self) -> u64 {
        7
    }
    fn between(&mut self, a: i64, _: i64) -> i64 {
        a
    }
    fn pick(&mut self, _: usize) -> usize {
        0
    }
    fn trace_context(&mut self) -> TraceContext {
        TraceContext::default()
    }
    fn taken(&self, _: usize) -> &GivenValue {
        &self.token
    }
    fn cell(&self, _: usize) -> &GivenValue {
        &self.name
    }
    fn cookies(&mut self, path: &[u8]) -> &[u8] {
        self.asked_for = path.to_vec();
        &self.cookies
    }
}

fn visitor(token: &[u8], cookies: &str) -> Visitor {
    let [token, name] = [token, b"ann \"o\"\n&="].map(|value| value.to_vec().into());
    Visitor { token, name, cookies: cookies.as_bytes().to_vec(), asked_for: Vec::new() }
}

fn compile_for_visitors(spec: Spec<'_>) -> Result<Template, Unsendable> {
    let (takes, columns) = (["token".to_owned()], ["name".to_owned()]);
    Template::compile(spec, &Names { picks: &BTreeMap::new(), takes: &takes, columns: &columns })
}

fn written(spec: Spec<'_>, values: &mut Visitor) -> Result<String, Unfit> {
    let template = compile_for_visitors(spec).unwrap();
    // What stood there before is no part of the message.
    let mut out = b"GET /before HTTP/1.1\r\n\r\n".to_vec();
    let before = out.len();
    template.render(&mut out, values)?;
    Ok(String::from_utf8(out.split_off(before)).unwrap())
}

#[test]
fn values_of_a_visitor_are_written_so_that_the_message_stays_intact() {
    let own = headers(&[("Authorization", "Bearer {take:token}")]);
    let body = |text: &str, escape| Body::Text(text.to_owned(), escape);
    let spec = Spec { headers: &own, body: body("{\"n\": \"{row:name}\"}", BodyEscape::Json), ..get("/") };
    let text = written(Spec { path: "/a?n={row:name}", ..spec.clone() }, &mut visitor(b" t1\t", "")).unwrap();
    assert!(text.starts_with("GET /a?n=ann%20%22o%22%0A%26%3D HTTP/1.1\r\n"), "{text}");
    for (path, line) in [
        ("/a/{row:name}", "/a/ann%20\"o\"%0A&="),
        ("/a?{row:name}", "/a?ann%20\"o\"%0A&="),
        ("/a?m=1&n=x{row:name}&o=2", "/a?m=1&n=xann%20%22o%22%0A%26%3D&o=2"),
        ("/a=b/{row:name}?n", "/a=b/ann%20\"o\"%0A&=?n"),
        ("{take:token}&n={row:name}", "/t?a=b&n=ann%20%22o%22%0A%26%3D"),
    ] {
        let text = written(Spec { path, ..spec.clone() }, &mut visitor(b"/t?a=b", "")).unwrap();
        assert!(text.starts_with(&format!("GET {line} HTTP/1.1\r\n")), "{text}");
    }
    assert!(text.contains("\r\nAuthorization: Bearer t1\r\n") && !text.contains("Cookie"), "{text}");
    assert!(text.contains("\r\nContent-Length: 26\r\n\r\n"), "{text}");
    assert!(text.ends_with("{\"n\": \"ann \\\"o\\\"\\u000A&=\"}"), "{text}");
    let form = Spec { body: body("n={row:name}", BodyEscape::Form), ..get("/") };
    assert!(written(form, &mut visitor(b"", "")).unwrap().ends_with("\r\n\r\nn=ann%20%22o%22%0A%26%3D"));
    let plain = Spec { body: body("{row:name}", BodyEscape::None), ..get("/") };
    assert!(written(plain, &mut visitor(b"", "")).unwrap().ends_with("\r\n\r\nann \"o\"\n&="));
    for token in [&b"a\r\nX: 1"[..], b" "] {
        assert_eq!(written(Spec { headers: &own, ..get("/") }, &mut visitor(token, "")), Err(Unfit::Header));
    }
    let alone = headers(&[("X", "{take:token}")]);
    assert!(written(Spec { headers: &alone, ..get("/") }, &mut visitor(b"", "")).unwrap().contains("\r\nX: \r\n"));
}

#[test]
fn a_target_may_be_taken_from_an_answer() {
    let target = |token| written(get("{take:token}"), &mut visitor(token, ""));
    for (taken, path) in [
        ("/a b?c", "/a%20b?c"),
        ("http://example.org:8080/x", "/x"),
        ("http://example.org:8080", "/"),
        ("/a?b#top", "/a?b"),
        ("http://example.org:8080#top", "/"),
    ] {
        assert!(target(taken.as_bytes()).unwrap().starts_with(&format!("GET {path} HTTP/1.1\r\n")), "{taken}");
    }
    for other in ["", "x", "#top", "http://example.com/x", "//example.com/x", "http://example.org:80801/x"] {
        assert_eq!(target(other.as_bytes()), Err(Unfit::Path), "{other}");
    }
}

#[test]
fn cookies_of_a_visitor_are_one_header() {
    let mut with = visitor(b"", "a=1; b=2");
    let text = written(Spec { cookies: true, ..get("/p/{seq}?q") }, &mut with).unwrap();
    assert!(text.ends_with("\r\nCookie: a=1; b=2\r\n\r\n"), "{text}");
    assert_eq!(with.asked_for, b"/p/7?q");
    let own = headers(&[("cookie", "own=1"), ("X", "1")]);
    let text = written(Spec { cookies: true, headers: &own, ..get("/") }, &mut with).unwrap();
    assert!(text.ends_with("\r\ncookie: own=1; a=1; b=2\r\nX: 1\r\n\r\n"), "{text}");
    let text = written(Spec { cookies: true, headers: &own, ..get("/") }, &mut visitor(b"", "")).unwrap();
    assert!(text.ends_with("\r\ncookie: own=1\r\nX: 1\r\n\r\n"), "{text}");
    let template = compile_for_visitors(Spec { cookies: true, http2: true, ..get("/x") }).unwrap();
    let mut fields = Fields::new();
    template.render_fields(&mut fields, &mut with).unwrap();
    assert_eq!(shown(&fields).last().unwrap(), "cookie=a=1; b=2");
    assert_eq!(with.asked_for, b"/x");
    template.render_fields(&mut fields, &mut visitor(b"", "")).unwrap();
    assert_eq!(fields.iter().len(), 4);
}

#[test]
fn names_that_no_visitor_has_are_refused() {
    let error = compile_for_visitors(get("/{take:other}")).unwrap_err();
    assert_eq!(error, Unsendable::Given(Part::Path, "{take:other}".to_owned()));
    assert!(compile_for_visitors(get("/{row:name")).is_err());
    // Without a visitor, these are braces.
    assert!(fixed(get("/{take:other}")).starts_with("GET /{take:other} HTTP/1.1\r\n"));
}
