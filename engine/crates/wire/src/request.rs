//! The description of a request, and the checks that keep its message intact.

use std::fmt;
use std::num::NonZeroUsize;

/// The body of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// Sent as it is; empty for none.
    Bytes(Vec<u8>),
    /// Text, with placeholders; empty for none.
    Text(String, BodyEscape),
}

/// How values of a visitor are written in the text of a body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BodyEscape {
    /// As they are.
    #[default]
    None,
    /// Within a JSON string.
    Json,
    /// A value of a form.
    Form,
}

/// The description of a request. Borrowed, because it lives only until it is compiled.
#[derive(Clone, Debug)]
pub struct Spec<'a> {
    /// The method, a token (RFC 9110, section 5.6.2), and not CONNECT.
    pub method: &'a str,
    /// The request target in origin form: `/…`, visible ASCII, with placeholders.
    pub path: &'a str,
    /// The host that is sent unless a header names it; for an IPv6 address with a zone, the address only.
    pub host: &'a str,
    /// The port that is sent with it, unless it is the default port of the scheme.
    pub port: u16,
    /// Headers in order, with placeholders in their values.
    pub headers: &'a [(String, String)],
    /// The body. Its length is sent when there is a body, or when the method implies a body.
    pub body: Body,
    /// The body is sent without its length: in HTTP/1.1 in chunks of so many bytes, the last of which may be shorter.
    pub chunks: Option<NonZeroUsize>,
    /// The request is sent over TLS: its scheme is https.
    pub tls: bool,
    /// The request is sent by HTTP/2.
    pub http2: bool,
    /// The visitor's cookies are sent too.
    pub cookies: bool,
}

/// A part of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The method.
    Method,
    /// The host.
    Host,
    /// The path.
    Path,
    /// The header at this index.
    Header(usize),
    /// The body.
    Body,
}

/// The part of a request that cannot be sent, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unsendable {
    /// The method is not a token, or is CONNECT.
    Method,
    /// The host is empty, or has a `/`, a space, a control or a character past ASCII.
    Host,
    /// The path does not begin with `/`, or has a space, a control or a character past ASCII.
    Path,
    /// The name of the header at this index is not a token.
    HeaderName(usize),
    /// The value of the header at this index has a line break, a control, or spaces around it.
    HeaderValue(usize),
    /// The header at this index frames the message, which is the encoder's task.
    HeaderFraming(usize),
    /// The header at this index concerns the connection, which HTTP/2 forbids (RFC 9113, section 8.2.2).
    HeaderConnection(usize),
    /// A `{rand:…}` without two 64-bit integers, the first not above the second.
    Rand(Part, String),
    /// A `{pick:…}` of a list that does not exist, or is empty.
    Pick(Part, String),
    /// A `{traceparent:…}` without a share in percent.
    Trace(Part, String),
    /// A `{take:…}` or `{row:…}` of a name that the visitor has not.
    Given(Part, String),
    /// The entry of the named list at this index may not occur where it is picked.
    Entry(Part, String, usize),
}

impl Unsendable {
    /// The part that the error concerns.
    #[must_use]
    pub fn part(&self) -> Part {
        match self {
            Self::Method => Part::Method,
            Self::Host => Part::Host,
            Self::Path => Part::Path,
            Self::HeaderName(i) | Self::HeaderValue(i) | Self::HeaderFraming(i) | Self::HeaderConnection(i) => {
                Part::Header(*i)
            }
            Self::Rand(part, _)
            | Self::Pick(part, _)
            | Self::Trace(part, _)
            | Self::Given(part, _)
            | Self::Entry(part, _, _) => *part,
        }
    }
}

impl fmt::Display for Unsendable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Method => f.write_str("is not an HTTP method, or is CONNECT"),
            Self::Host => f.write_str("is not a host"),
            Self::Path => f.write_str("must begin with `/` and hold visible ASCII only"),
            Self::HeaderName(_) => f.write_str("is not a header name"),
            Self::HeaderValue(_) => {
                f.write_str("is not a header value: no line breaks, no controls, no spaces around it")
            }
            Self::HeaderFraming(_) => f.write_str("is set from the body: leave it out"),
            Self::HeaderConnection(_) => f.write_str("is not for HTTP/2, which says it in frames: leave it out"),
            Self::Rand(_, text) => write!(f, "{{rand:{text}}} is not {{rand:a..b}} with whole numbers, a not above b"),
            Self::Pick(_, name) => write!(f, "{{pick:{name}}}: there are no picks of that name, or none in it"),
            Self::Trace(_, text) => write!(f, "{text} is not {{traceparent:1%}} with a share from 0% to 100%"),
            Self::Given(_, text) => write!(f, "{text}: no step takes a value of that name, or no column has it"),
            Self::Entry(_, name, i) => write!(f, "{{pick:{name}}}: entry {i} of these picks cannot stand here"),
        }
    }
}

impl std::error::Error for Unsendable {}

impl Spec<'_> {
    /// Whether a header has this name, ignoring case.
    pub(crate) fn names(&self, wanted: &str) -> bool {
        self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(wanted))
    }

    /// Whether a method without a body sends a length of 0.
    pub(crate) fn means_a_body(&self) -> bool {
        matches!(self.method, "POST" | "PUT" | "PATCH")
    }

    /// `host:port`, with an IPv6 address in brackets. The default port of the scheme is omitted (RFC 9110, section 4.2.3), and
    /// so is the zone of an address, which has no meaning to the peer (RFC 6874, section 4).
    pub(crate) fn authority(&self) -> String {
        let host = if self.host.contains(':') {
            format!("[{}]", self.host.split_once('%').map_or(self.host, |(address, _)| address))
        } else {
            self.host.to_owned()
        };
        let default = if self.tls { 443 } else { 80 };
        if self.port == default { host } else { format!("{host}:{}", self.port) }
    }

    /// Check the parts without placeholders.
    pub(crate) fn check(&self) -> Result<(), Unsendable> {
        if !is_token(self.method) || self.method == "CONNECT" {
            return Err(Unsendable::Method);
        }
        if self.host.is_empty() || !self.host.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/') {
            return Err(Unsendable::Host);
        }
        self.headers.iter().enumerate().try_for_each(|(i, (name, value))| self.check_header(i, name, value))
    }

    fn check_header(&self, i: usize, name: &str, value: &str) -> Result<(), Unsendable> {
        const OF_THE_CONNECTION: [&str; 4] = ["connection", "keep-alive", "proxy-connection", "upgrade"];
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        if !is_token(name) {
            return Err(Unsendable::HeaderName(i));
        }
        if is("content-length") || is("transfer-encoding") {
            return Err(Unsendable::HeaderFraming(i));
        }
        let of_the_connection = OF_THE_CONNECTION.into_iter().any(is) || (is("te") && value != "trailers");
        if self.http2 && of_the_connection {
            return Err(Unsendable::HeaderConnection(i));
        }
        Ok(())
    }
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}
