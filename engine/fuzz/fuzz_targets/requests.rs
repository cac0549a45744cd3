//! A described request is either refused, or written as a single well-formed request.
#![no_main]

use std::collections::BTreeMap;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use redline_wire::{Body, Fields, Spec, Template, Values};

#[derive(Arbitrary, Debug)]
struct Input {
    method: Method,
    path: String,
    host: Option<String>,
    headers: Vec<(String, String)>,
    text: bool,
    body: String,
    picks: Vec<String>,
    draws: Vec<u8>,
    tls: bool,
}

#[derive(Arbitrary, Debug)]
enum Method {
    Get,
    Post,
    Other(String),
}

/// Draws from the input, within the requested range.
struct Draws<'a> {
    bytes: std::iter::Cycle<std::slice::Iter<'a, u8>>,
    seqs: u32,
}

impl Draws<'_> {
    fn next(&mut self) -> u8 {
        self.bytes.next().copied().unwrap_or(0)
    }
}

impl Values for Draws<'_> {
    fn seq(&mut self) -> u64 {
        self.seqs += 1;
        u64::MAX >> (self.next() % 64)
    }
    fn between(&mut self, a: i64, b: i64) -> i64 {
        assert!(a <= b);
        a.saturating_add(i64::from(self.next())).min(b)
    }
    fn pick(&mut self, n: usize) -> usize {
        assert!(n > 0);
        usize::from(self.next()) % n
    }
}

impl Input {
    fn spec(&self, http2: bool) -> Spec<'_> {
        let method = match &self.method {
            Method::Get => "GET",
            Method::Post => "POST",
            Method::Other(text) => text,
        };
        let body = if self.text { Body::Text(self.body.clone()) } else { Body::Bytes(self.body.clone().into_bytes()) };
        let host = self.host.as_deref().unwrap_or("localhost");
        Spec { method, path: &self.path, host, port: 80, headers: &self.headers, body, tls: self.tls, http2 }
    }

    fn draws(&self) -> Draws<'_> {
        Draws { bytes: self.draws.iter().cycle(), seqs: 0 }
    }
}

/// The head and the body of the single request in these bytes.
fn read_back(bytes: &[u8], spec: &Spec<'_>) -> Vec<u8> {
    let mut headers = vec![httparse::EMPTY_HEADER; spec.headers.len() + 2];
    let mut request = httparse::Request::new(&mut headers);
    let httparse::Status::Complete(end) = request.parse(bytes).expect("well-formed") else {
        panic!("the head is not whole");
    };
    assert_eq!((request.method, request.version), (Some(spec.method), Some(1)));
    assert!(request.path.is_some_and(|path| path.starts_with('/')));
    let length = request.headers.iter().find(|header| header.name == "Content-Length");
    let length = length.map_or(0, |length| std::str::from_utf8(length.value).unwrap().parse().expect("a number"));
    let names = request.headers.iter().map(|header| header.name);
    let host = if spec.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) { None } else { Some("Host") };
    assert!(
        names
            .eq(host.into_iter().chain(spec.headers.iter().map(|(name, _)| name.as_str())).chain(
                request.headers.iter().filter(|header| header.name == "Content-Length").map(|header| header.name)
            ))
    );
    assert_eq!(bytes.len() - end, length, "the length is not what comes");
    bytes[end..].to_vec()
}

/// HTTP/2 sends the same body, and only permitted fields.
fn check_fields(input: &Input, template: &Template) -> Vec<u8> {
    let mut fields = Fields::new();
    let mut draws = input.draws();
    template.render_fields(&mut fields, &mut draws);
    assert!(draws.seqs <= 1);
    if let Some(fixed) = template.fixed_fields() {
        assert_eq!(&fields, fixed);
    }
    let body = template.fixed_body().map_or(fields.body(), |body| body).to_vec();
    let pseudo: Vec<_> = fields.iter().take(4).map(|(name, _)| name.to_vec()).collect();
    assert_eq!(pseudo, [&b":method"[..], b":scheme", b":authority", b":path"]);
    for (i, (name, value)) in fields.iter().enumerate() {
        assert!(!name.is_empty() && !name.iter().any(u8::is_ascii_uppercase) && (i < 4 || !name.contains(&b':')));
        assert!(value.iter().all(|byte| *byte == b'\t' || !byte.is_ascii_control()));
        assert!(!matches!(value.first(), Some(b' ' | b'\t')) && !matches!(value.last(), Some(b' ' | b'\t')));
        assert!(name != b"content-length" || value == body.len().to_string().as_bytes());
    }
    body
}

fuzz_target!(|input: Input| {
    let picks = BTreeMap::from([("p".to_owned(), input.picks.clone())]);
    let plain = Template::compile(input.spec(false), &picks);
    let http2 = Template::compile(input.spec(true), &picks);
    let mut body = None;
    if let Ok(template) = &plain {
        let mut bytes = Vec::new();
        let mut draws = input.draws();
        template.render(&mut bytes, &mut draws);
        assert!(draws.seqs <= 1);
        if let Some(fixed) = template.fixed() {
            assert!(bytes == **fixed && template.fixed_body().is_none());
        }
        bytes.extend(template.fixed_body().iter().flat_map(|body| body.iter()));
        body = Some(read_back(&bytes, &input.spec(false)));
    }
    if let (Some(body), false) = (&body, input.text) {
        assert_eq!(body, input.body.as_bytes(), "bytes are sent as they are");
    }
    if let Ok(template) = &http2 {
        let same = check_fields(&input, template);
        // If `Host` is moved to the front, the draws are in another order.
        let moved = input.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host"));
        assert!(moved || body == Some(same), "HTTP/2 sends another body");
    }
    assert!(http2.is_err() || plain.is_ok(), "HTTP/2 takes what HTTP/1.1 does not");
});
