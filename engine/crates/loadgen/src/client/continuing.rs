//! Requests that ask by `Expect: 100-continue` whether to send their body (RFC 9110, section 10.1.1). HTTP/1.1 only.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::ids::{PendingId, TapeId};
use crate::request::NEVER;

/// The longest that is kept of answers before the body is sent; of longer ones the body waits for its time.
const MOST_SEEN: usize = 64 * 1024;

/// The body of a request that waits for an answer 100, or for its time.
pub struct HeldBody {
    /// Distinguishes it from all other held bodies of this worker.
    pub number: u64,
    /// Bytes that were rendered for this request.
    pub own: Vec<u8>,
    /// A tape that follows them, and its length.
    pub tape: Option<(TapeId, usize)>,
    /// The interim answers that have arrived, the last of them perhaps incomplete.
    seen: Vec<u8>,
    /// The final answer has begun: the body is not sent.
    refused: bool,
}

impl HeldBody {
    pub fn new(number: u64, own: Vec<u8>, tape: Option<(TapeId, usize)>) -> Self {
        Self { number, own, tape, seen: Vec::new(), refused: false }
    }

    /// Whether the final answer has not begun, so that the body is sent when its time has come.
    pub fn waits(&self) -> bool {
        !self.refused
    }

    /// Bytes arrived that complete no final answer. Returns whether an answer 100 is among them.
    pub fn hear(&mut self, bytes: &[u8]) -> bool {
        let room = MOST_SEEN - self.seen.len();
        self.seen.extend_from_slice(&bytes[..bytes.len().min(room)]);
        let mut at = 0;
        let mut continues = false;
        while let Some(class) = self.seen.get(at + "HTTP/1.1 ".len()) {
            if *class != b'1' {
                self.refused = true;
                break;
            }
            let Some(length) = head_length(&self.seen[at..]) else {
                break;
            };
            continues |= self.seen[at..].get(9..12) == Some(b"100");
            at += length;
        }
        self.seen.drain(..at);
        continues
    }
}

/// The length of the head that these bytes begin with, if it is complete. Lines end with a line feed (RFC 9112, section 2.2).
fn head_length(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let line = bytes[at..].iter().position(|byte| *byte == b'\n')?;
        let is_blank = matches!(&bytes[at..at + line], b"" | b"\r");
        at += line + 1;
        if is_blank {
            return Some(at);
        }
    }
}

/// When bodies are sent without an answer 100.
#[derive(Default)]
pub struct Waits {
    begun: u64,
    timers: BinaryHeap<Reverse<(u64, u64, u32)>>,
}

impl Waits {
    /// A body waits until this time. Returns its number.
    pub fn begin(&mut self, pending: PendingId, until_ns: u64) -> u64 {
        self.begun += 1;
        self.timers.push(Reverse((until_ns, self.begun, pending.0)));
        self.begun
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.timers.is_empty()
    }

    /// When the next body is to be sent.
    #[inline]
    pub fn next_ns(&self) -> u64 {
        self.timers.peek().map_or(NEVER, |Reverse((until_ns, ..))| *until_ns)
    }

    /// The wait that ends first: its body's number, its request, and when it ends.
    pub fn first(&self) -> Option<(u64, PendingId, u64)> {
        self.timers.peek().map(|Reverse((until_ns, number, pending))| (*number, PendingId(*pending), *until_ns))
    }

    /// The first wait is over.
    pub fn remove_first(&mut self) {
        self.timers.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::HeldBody;

    fn hears(pieces: &[&str]) -> (Vec<bool>, bool) {
        let mut held = HeldBody::new(1, Vec::new(), None);
        let heard = pieces.iter().map(|piece| held.hear(piece.as_bytes())).collect();
        (heard, held.waits())
    }

    #[test]
    fn an_answer_100_is_heard_whole_among_other_interim_answers() {
        assert_eq!(hears(&["HTTP/1.1 100 Continue\r\n\r\n"]), (vec![true], true));
        assert_eq!(hears(&["HTTP/1.1 100\nA: b\n\n"]), (vec![true], true));
        assert_eq!(hears(&["HTTP/1.1 1", "00 Continue\r\n\r", "\n"]), (vec![false, false, true], true));
        let hints = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
        assert_eq!(hears(&[hints, "HTTP/1.1 100 Continue\r\n\r\n"]), (vec![false, true], true));
        assert_eq!(hears(&[&format!("HTTP/1.1 100 Continue\r\n\r\n{hints}")]), (vec![true], true));
    }

    #[test]
    fn a_final_answer_that_has_begun_keeps_the_body_back() {
        assert_eq!(hears(&["HTTP/1.1 4", "17 Expectation Failed\r\n"]), (vec![false, false], false));
        assert_eq!(hears(&["HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\n"]), (vec![false], false));
    }

    #[test]
    fn what_never_ends_is_not_kept_for_ever() {
        let mut held = HeldBody::new(1, Vec::new(), None);
        assert!(!held.hear(b"HTTP/1.1 100 Continue\r\n"));
        for _ in 0..100 {
            assert!(!held.hear(&[b'a'; 4096]));
        }
        assert!(held.seen.len() <= super::MOST_SEEN && held.waits());
    }
}
