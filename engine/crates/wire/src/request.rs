//! A request, checked and made into bytes once.

use std::fmt;

/// A request as it will be sent. Borrowed, because it lives only until it is encoded.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The method, a token (RFC 9110, section 5.6.2).
    pub method: &'a str,
    /// The request target in origin form: `/…`, visible ASCII.
    pub path: &'a str,
    /// The host that is named unless a header names it.
    pub host: &'a str,
    /// The port that is named with it.
    pub port: u16,
    /// Headers in order.
    pub headers: &'a [(String, String)],
    /// The body; its length is sent when there is one, or when the method means one.
    pub body: &'a [u8],
}

/// What of a request cannot be sent, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsendable {
    /// The method is not a token.
    Method,
    /// The path does not begin with `/`, or has a space, a control or a character past ASCII.
    Path,
    /// The name of the header at this index is not a token.
    HeaderName(usize),
    /// The value of the header at this index has a line break, a control, or spaces around it.
    HeaderValue(usize),
    /// The header at this index frames the message, and that is for the encoder to say.
    HeaderFraming(usize),
}

impl fmt::Display for Unsendable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Method => "is not an HTTP method",
            Self::Path => "must begin with `/` and hold visible ASCII only",
            Self::HeaderName(_) => "is not a header name",
            Self::HeaderValue(_) => "is not a header value: no line breaks, no controls, no spaces around it",
            Self::HeaderFraming(_) => "is set from the body: leave it out",
        })
    }
}

impl std::error::Error for Unsendable {}

impl Request<'_> {
    /// The bytes of the request.
    ///
    /// # Errors
    /// [`Unsendable`] names the part that would break the message apart.
    pub fn encode(&self) -> Result<Vec<u8>, Unsendable> {
        self.check()?;
        let mut lines = vec![format!("{} {} HTTP/1.1", self.method, self.path)];
        if !self.names("host") {
            let (open, close) = if self.host.contains(':') { ("[", "]") } else { ("", "") };
            lines.push(format!("Host: {open}{}{close}:{}", self.host, self.port));
        }
        lines.extend(self.headers.iter().map(|(name, value)| format!("{name}: {value}")));
        if !self.body.is_empty() || matches!(self.method, "POST" | "PUT" | "PATCH") {
            lines.push(format!("Content-Length: {}", self.body.len()));
        }
        let mut bytes = (lines.join("\r\n") + "\r\n\r\n").into_bytes();
        bytes.extend_from_slice(self.body);
        Ok(bytes)
    }

    fn names(&self, wanted: &str) -> bool {
        self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(wanted))
    }

    fn check(&self) -> Result<(), Unsendable> {
        if !is_token(self.method) {
            return Err(Unsendable::Method);
        }
        if !self.path.starts_with('/') || !self.path.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Unsendable::Path);
        }
        for (i, (name, value)) in self.headers.iter().enumerate() {
            if !is_token(name) {
                return Err(Unsendable::HeaderName(i));
            }
            if value.trim() != value || value.bytes().any(|byte| byte != b'\t' && byte.is_ascii_control()) {
                return Err(Unsendable::HeaderValue(i));
            }
            if name.eq_ignore_ascii_case("content-length") || name.eq_ignore_ascii_case("transfer-encoding") {
                return Err(Unsendable::HeaderFraming(i));
            }
        }
        Ok(())
    }
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}
