//! A tunnel through an HTTP proxy: the CONNECT request, and the proxy's answer (RFC 9110, section 9.3.6).

use std::mem;

/// The most bytes of a proxy's answer.
const LONGEST_HEAD: usize = 64 * 1024;

/// A tunnel that is not yet open.
pub struct Tunnel {
    /// What the proxy has answered so far, without interim answers.
    answer: Vec<u8>,
}

/// What a proxy said.
#[derive(Debug, PartialEq, Eq)]
pub enum Reply {
    Incomplete,
    /// The tunnel is open. These bytes came through it already.
    Open(Vec<u8>),
    /// Why there is no tunnel.
    Refused(String),
}

impl Tunnel {
    pub fn new() -> Self {
        Self { answer: Vec::new() }
    }

    /// The proxy sent these bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.answer.extend_from_slice(bytes);
    }

    /// What the proxy has said so far. The bytes behind the answer are given out once.
    pub fn reply(&mut self) -> Reply {
        loop {
            let Some(length) = head_length(&self.answer) else {
                return match self.answer.len() {
                    0 => Reply::Incomplete,
                    _ if !may_be_http(&self.answer) => Reply::Refused(NOT_HTTP.to_owned()),
                    1..LONGEST_HEAD => Reply::Incomplete,
                    _ => Reply::Refused("the proxy's answer to CONNECT has no end".to_owned()),
                };
            };
            let rest = self.answer.split_off(length);
            let head = mem::replace(&mut self.answer, rest);
            match status(&head) {
                None => return Reply::Refused(NOT_HTTP.to_owned()),
                Some((100..=199, _)) => {}
                // Any 2xx opens it; a length of a body has no meaning then.
                Some((200..=299, _)) => return Reply::Open(mem::take(&mut self.answer)),
                Some((_, line)) => return Reply::Refused(format!("the proxy answered {line}")),
            }
        }
    }
}

const NOT_HTTP: &str = "the proxy does not answer in HTTP";
const BEGINNING: &[u8] = b"HTTP/1.";

/// The length of the head of an answer, with the empty line at its end; `None` as long as that is missing.
fn head_length(bytes: &[u8]) -> Option<usize> {
    let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    ends.map(|(at, _)| at + 1)
        .find(|end| bytes[*end..].starts_with(b"\n") || bytes[*end..].starts_with(b"\r\n"))
        .map(|end| end + if bytes[end] == b'\n' { 1 } else { 2 })
}

/// Whether an answer of HTTP/1 may begin like this.
fn may_be_http(bytes: &[u8]) -> bool {
    let compared = bytes.len().min(BEGINNING.len());
    bytes[..compared] == BEGINNING[..compared]
}

/// The status of an answer, and its status line without the version: `407 Proxy Authentication Required`.
fn status(head: &[u8]) -> Option<(u16, String)> {
    let line = head.split(|byte| matches!(byte, b'\r' | b'\n')).next()?;
    let rest = line.strip_prefix(BEGINNING)?.get(1..)?.strip_prefix(b" ")?;
    let code: u16 = std::str::from_utf8(rest.get(..3)?).ok()?.parse().ok()?;
    let text: String = String::from_utf8_lossy(rest).chars().filter(|char| !char.is_control()).take(80).collect();
    (code >= 100).then(|| (code, text.trim_end().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::{LONGEST_HEAD, Reply, Tunnel};

    fn replies(answer: &[u8], piece: usize) -> Reply {
        let mut tunnel = Tunnel::new();
        let mut last = Reply::Incomplete;
        for bytes in answer.chunks(piece) {
            assert_eq!(last, Reply::Incomplete, "the answer is complete before its end");
            tunnel.feed(bytes);
            last = tunnel.reply();
        }
        last
    }

    #[test]
    fn an_answer_may_come_in_pieces_and_after_interim_answers() {
        let answer =
            b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 Connection established\r\nVia: x\r\n\r\n";
        for piece in 1..=answer.len() {
            assert_eq!(replies(answer, piece), Reply::Open(Vec::new()));
        }
        assert_eq!(replies(b"HTTP/1.0 200 OK\n\n", 1), Reply::Open(Vec::new()));
    }

    #[test]
    fn what_comes_behind_the_answer_came_through_the_tunnel() {
        assert_eq!(replies(b"HTTP/1.1 200 OK\r\n\r\nSSH-2.0", 99), Reply::Open(b"SSH-2.0".to_vec()));
    }

    #[test]
    fn a_refusal_is_told_by_its_status() {
        let refused = |answer: &[u8]| match replies(answer, answer.len()) {
            Reply::Refused(why) => why,
            other => panic!("{other:?}"),
        };
        let head = b"HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\n\r\n<html>";
        assert_eq!(refused(head), "the proxy answered 407 Proxy Authentication Required");
        assert_eq!(refused(b"HTTP/1.1 502\r\n\r\n"), "the proxy answered 502");
        assert_eq!(refused(b"HTTP/1.1 403 \x1b[31mNo\r\n\r\n"), "the proxy answered 403 [31mNo");
        for other in [&b"SSH-2.0-OpenSSH"[..], b"\x15\x03\x01", b"HTTP/1.1 OK\r\n\r\n", b"HTTP/1.1 099 No\r\n\r\n"] {
            assert_eq!(refused(other), "the proxy does not answer in HTTP");
        }
        let endless = [&b"HTTP/1.1 200 OK\r\nX: "[..], &vec![b'x'; LONGEST_HEAD]].concat();
        assert_eq!(refused(&endless), "the proxy's answer to CONNECT has no end");
    }
}
