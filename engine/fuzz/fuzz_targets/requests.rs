//! A described request is either refused, or written as a single well-formed request.
#![no_main]

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use redline_visitor::{Jar, Site};
use redline_wire::{Body, BodyEscape, Fields, GivenValue, Names, Spec, Template, TraceContext, Values};

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
    escape: u8,
    chunks: usize,
    cookies: bool,
    /// What the visitor took, and its cell.
    taken: Vec<u8>,
    cell: Vec<u8>,
    jar: Vec<Vec<u8>>,
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
    taken: GivenValue,
    cell: GivenValue,
    jar: Jar,
    site: Site,
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
    fn trace_context(&mut self) -> TraceContext {
        let bits = self.next();
        TraceContext::new(bits.into(), bits.into(), u64::from(bits) << 56)
    }
    fn taken(&self, _: usize) -> &GivenValue {
        &self.taken
    }
    fn cell(&self, _: usize) -> &GivenValue {
        &self.cell
    }
    fn cookies(&mut self, path: &[u8]) -> &[u8] {
        assert!(path.starts_with(b"/"));
        self.jar.header(path, &self.site, 0)
    }
}

impl Input {
    fn spec(&self, http2: bool) -> Spec<'_> {
        let method = match &self.method {
            Method::Get => "GET",
            Method::Post => "POST",
            Method::Other(text) => text,
        };
        let escape = [BodyEscape::None, BodyEscape::Json, BodyEscape::Form][usize::from(self.escape % 3)];
        let body = self.body.clone();
        let body = if self.text { Body::Text(body, escape) } else { Body::Bytes(body.into_bytes()) };
        let host = self.host.as_deref().unwrap_or("localhost");
        let Self { path, headers, tls, cookies, .. } = self;
        let chunks = NonZeroUsize::new(self.chunks);
        Spec { method, path, host, port: 80, headers, body, chunks, tls: *tls, http2, cookies: *cookies }
    }

    fn draws(&self) -> Draws<'_> {
        let (mut jar, site) = (Jar::new(), Site::new("localhost", self.tls));
        for text in &self.jar {
            jar.set(text, b"/a/b", &site, 0);
        }
        let (taken, cell) = (self.taken.clone().into(), self.cell.clone().into());
        Draws { bytes: self.draws.iter().cycle(), seqs: 0, taken, cell, jar, site }
    }
}

/// The head and the body of the single request in these bytes.
fn read_back(bytes: &[u8], spec: &Spec<'_>) -> Vec<u8> {
    let mut headers = vec![httparse::EMPTY_HEADER; spec.headers.len() + 3];
    let mut request = httparse::Request::new(&mut headers);
    let httparse::Status::Complete(end) = request.parse(bytes).expect("well-formed") else {
        panic!("the head is not whole");
    };
    assert_eq!((request.method, request.version), (Some(spec.method), Some(1)));
    assert!(request.path.is_some_and(|path| path.starts_with('/')));
    let length = request.headers.iter().find(|header| header.name == "Content-Length");
    let body = match (length, spec.chunks) {
        (Some(length), None) => {
            let length: usize = std::str::from_utf8(length.value).unwrap().parse().expect("a number");
            assert_eq!(bytes.len() - end, length, "the length is not what comes");
            bytes[end..].to_vec()
        }
        (None, Some(most)) => dechunked(&bytes[end..], most.get()),
        (None, None) => {
            assert_eq!(bytes.len(), end, "no length, and a body");
            Vec::new()
        }
        (Some(_), Some(_)) => panic!("a length and chunks"),
    };
    let own = spec.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("cookie"));
    let jar = spec.cookies && !own;
    let names = request.headers.iter().map(|header| header.name).filter(|name| !jar || *name != "Cookie");
    let host = if spec.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) { None } else { Some("Host") };
    assert!(
        names.eq(host
            .into_iter()
            .chain(spec.headers.iter().map(|(name, _)| name.as_str()))
            .chain(request.headers.iter().filter(|header| is_framing(header.name)).map(|header| header.name)))
    );
    body
}

fn is_framing(name: &str) -> bool {
    matches!(name, "Content-Length" | "Transfer-Encoding")
}

/// The body in these chunks of so many bytes.
fn dechunked(mut bytes: &[u8], most: usize) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let httparse::Status::Complete((at, length)) = httparse::parse_chunk_size(bytes).expect("a chunk") else {
            panic!("the chunk is not whole");
        };
        let (chunk, rest) = bytes[at..].split_at(usize::try_from(length).unwrap());
        bytes = rest.strip_prefix(b"\r\n").expect("the end of a chunk");
        if chunk.is_empty() {
            assert!(bytes.is_empty());
            return body;
        }
        assert!(chunk.len() == most || chunk.len() < most && bytes.starts_with(b"0\r\n"));
        body.extend_from_slice(chunk);
    }
}

/// HTTP/2 sends the same body, and only permitted fields.
fn check_fields(input: &Input, template: &Template) -> Option<Vec<u8>> {
    let mut fields = Fields::new();
    let mut draws = input.draws();
    template.render_fields(&mut fields, &mut draws).ok()?;
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
    Some(body)
}

fuzz_target!(|input: Input| {
    let picks = BTreeMap::from([("p".to_owned(), input.picks.clone())]);
    let (takes, columns) = (["t".to_owned()], ["c".to_owned()]);
    let names = Names { picks: &picks, takes: &takes, columns: &columns };
    let plain = Template::compile(input.spec(false), &names);
    let http2 = Template::compile(input.spec(true), &names);
    let mut body = None;
    if let Ok(template) = &plain {
        let mut bytes = Vec::new();
        let mut draws = input.draws();
        let sent = template.render(&mut bytes, &mut draws);
        assert!(draws.seqs <= 1);
        if let Some(fixed) = template.fixed() {
            assert!(bytes == **fixed && template.fixed_body().is_none());
        }
        bytes.extend(template.fixed_body().iter().flat_map(|body| body.iter()));
        body = sent.is_ok().then(|| read_back(&bytes, &input.spec(false)));
    }
    if let (Some(body), false) = (&body, input.text) {
        assert_eq!(body, input.body.as_bytes(), "bytes are sent as they are");
    }
    if let Ok(template) = &http2 {
        let same = check_fields(&input, template);
        // If `Host` is moved to the front, the draws are in another order.
        let moved = input.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host"));
        assert!(moved || body == same, "HTTP/2 sends another body");
    }
    assert!(http2.is_err() || plain.is_ok(), "HTTP/2 takes what HTTP/1.1 does not");
});
