//! Parses requests: as much of HTTP/1.1 (RFC 9112) as a server with known answers needs.

use crate::body::Framing;

/// The longest request head that is read, in bytes.
pub const HEAD_LIMIT: usize = 16 * 1024;

/// The state of the bytes received so far.
#[derive(Debug, PartialEq, Eq)]
pub enum Head<'a> {
    /// Not yet a complete head.
    Partial,
    /// A complete head.
    Complete(Request<'a>),
    /// Not a request that can be answered; the status is the reason, and the connection ends with it.
    Refused(u16),
}

/// A request head.
#[derive(Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// The target without its leading slash.
    pub name: &'a [u8],
    /// Whether the answer contains the length of the body.
    pub post: bool,
    /// The body that follows the head.
    pub body: Framing,
    /// Whether the connection ends with the answer.
    pub close: bool,
    /// The value of `Cookie`; empty without it.
    pub cookie: &'a [u8],
    /// The value of `X-Token`; empty without it.
    pub token: &'a [u8],
    /// The value of `Sec-WebSocket-Key` of a request that asks for a WebSocket; empty without it.
    pub websocket_key: &'a [u8],
    /// The value of `Sec-WebSocket-Protocol`; empty without it.
    pub subprotocols: &'a [u8],
    /// The extensions of a WebSocket that it offers.
    pub extensions: &'a [u8],
    /// Bytes of the head, with the empty line that ends it.
    pub head_length: usize,
}

/// Reads a request head from the start of `bytes`.
#[inline]
pub fn read_head(bytes: &[u8]) -> Head<'_> {
    let mut lines = Lines { bytes, at: 0 };
    let line = loop {
        match lines.next() {
            // RFC 9112, 2.2: an empty line before the request line is ignored.
            Some([]) => {}
            Some(line) => break line,
            None => return unfinished(bytes),
        }
    };
    let mut request = match request_line(line) {
        Ok(request) => request,
        Err(status) => return Head::Refused(status),
    };
    loop {
        match lines.next() {
            None => return unfinished(bytes),
            Some([]) => break,
            Some(line) => {
                if let Err(status) = field_line(line, &mut request) {
                    return Head::Refused(status);
                }
            }
        }
    }
    request.head_length = lines.at;
    Head::Complete(request)
}

fn unfinished(bytes: &[u8]) -> Head<'_> {
    if bytes.len() > HEAD_LIMIT { Head::Refused(431) } else { Head::Partial }
}

#[inline]
fn request_line(line: &[u8]) -> Result<Request<'_>, u16> {
    let mut parts = line.splitn(3, |&byte| byte == b' ');
    let (Some(method), Some(target), Some(version)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(400);
    };
    let name = target.strip_prefix(b"/").ok_or(400_u16)?;
    let close = match version {
        b"HTTP/1.1" => false,
        b"HTTP/1.0" => true,
        _ => return Err(505),
    };
    let post = match method {
        b"GET" => false,
        b"POST" => true,
        _ => return Err(405),
    };
    Ok(Request {
        name,
        post,
        body: Framing::None,
        close,
        cookie: b"",
        token: b"",
        websocket_key: b"",
        subprotocols: b"",
        extensions: b"",
        head_length: 0,
    })
}

#[inline]
fn field_line<'a>(line: &'a [u8], request: &mut Request<'a>) -> Result<(), u16> {
    let colon = memchr::memchr(b':', line).ok_or(400_u16)?;
    let (name, value) = (&line[..colon], &line[colon + 1..]);
    if name.eq_ignore_ascii_case(b"content-length") {
        let text = std::str::from_utf8(value).map_err(|_| 400_u16)?;
        let length = text.trim().parse().map_err(|_| 400_u16)?;
        frame(request, Framing::Length(length))?;
    } else if name.eq_ignore_ascii_case(b"connection") {
        request.close |= value.trim_ascii().eq_ignore_ascii_case(b"close");
    } else if name.eq_ignore_ascii_case(b"cookie") {
        request.cookie = value.trim_ascii();
    } else if name.eq_ignore_ascii_case(b"x-token") {
        request.token = value.trim_ascii();
    } else if name.eq_ignore_ascii_case(b"sec-websocket-key") {
        request.websocket_key = value.trim_ascii();
    } else if name.eq_ignore_ascii_case(b"sec-websocket-protocol") {
        request.subprotocols = value.trim_ascii();
    } else if name.eq_ignore_ascii_case(b"sec-websocket-extensions") {
        request.extensions = value.trim_ascii();
    } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
        if !value.trim_ascii().eq_ignore_ascii_case(b"chunked") {
            return Err(501);
        }
        frame(request, Framing::Chunked)?;
    }
    Ok(())
}

/// A field says how the body ends. Two that do might say it differently.
fn frame(request: &mut Request<'_>, framing: Framing) -> Result<(), u16> {
    if request.body != Framing::None {
        return Err(400);
    }
    request.body = framing;
    Ok(())
}

/// Lines without their ends; `at` is where the next line starts.
struct Lines<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Iterator for Lines<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = &self.bytes[self.at..];
        let end = memchr::memchr(b'\n', rest)?;
        self.at += end + 1;
        let line = &rest[..end];
        Some(line.strip_suffix(b"\r").unwrap_or(line))
    }
}

#[cfg(test)]
mod tests {
    use super::{Framing, HEAD_LIMIT, Head, Request, read_head};
    use proptest::prelude::*;

    const POST: &[u8] = b"POST /bytes0 HTTP/1.1\r\nHost: a\r\ncontent-LENGTH:  256 \r\n\
        Cookie: a=b; sid=s1\r\nx-token: t\r\nConnection: close\r\n\r\n";

    #[test]
    fn reads_what_matters() {
        let none = Request {
            name: b"a?b=c",
            post: false,
            body: Framing::None,
            close: true,
            cookie: b"",
            token: b"",
            websocket_key: b"",
            subprotocols: b"",
            extensions: b"",
            head_length: 25,
        };
        assert_eq!(read_head(b"\r\nGET /a?b=c HTTP/1.0\r\n\r\nGET"), Head::Complete(none));
        let whole = Request {
            name: b"bytes0",
            post: true,
            body: Framing::Length(256),
            close: true,
            cookie: b"a=b; sid=s1",
            token: b"t",
            websocket_key: b"",
            subprotocols: b"",
            extensions: b"",
            head_length: POST.len(),
        };
        assert_eq!(read_head(POST), Head::Complete(whole));
    }

    #[test]
    fn refuses_what_it_cannot_answer() {
        assert_eq!(read_head(b"PUT /a HTTP/1.1\r\n"), Head::Refused(405));
        assert_eq!(read_head(b"GET /a HTTP/2.0\r\n"), Head::Refused(505));
        assert_eq!(read_head(b"GET a HTTP/1.1\r\n"), Head::Refused(400));
        assert_eq!(read_head(b"hello\r\n"), Head::Refused(400));
        assert_eq!(read_head(b"POST /a HTTP/1.1\r\nContent-Length: -1\r\n"), Head::Refused(400));
        assert_eq!(read_head(b"POST /a HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n"), Head::Refused(501));
        let twice = b"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n";
        assert_eq!(read_head(twice), Head::Refused(400));
        assert_eq!(read_head(&vec![b'a'; HEAD_LIMIT + 1]), Head::Refused(431));
    }

    proptest! {
        #[test]
        fn a_head_is_partial_until_its_last_byte(cut in 0..POST.len()) {
            prop_assert_eq!(read_head(&POST[..cut]), Head::Partial);
        }

        #[test]
        fn arbitrary_bytes_are_never_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            if let Head::Complete(request) = read_head(&bytes) {
                prop_assert!(request.head_length <= bytes.len());
            }
        }
    }
}
