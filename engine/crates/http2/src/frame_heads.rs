//! Judges the heads of frames where nghttp2 does not, or where its verdict depends on how bytes are cut.
//!
//! nghttp2 forgets closed streams and ignores frames on them, but a peer that continues a stream after `END_STREAM` breaks the
//! rules (RFC 9113, section 5.1). It also counts a `CONTINUATION` more than once if its head arrives in pieces.

use libnghttp2_sys as ng;

/// The length of a frame's head (RFC 9113, section 4.1).
const HEAD_BYTES: usize = 9;
/// How many of the most recently opened streams are watched, in words of 64.
const WORDS: usize = 16;

/// The most `CONTINUATION` frames in a row: enough for the longest list of fields in small frames, but no flood.
const MOST_CONTINUATIONS: u32 = 64;

/// Reads the heads of the peer's frames.
#[derive(Debug, Default)]
pub struct FrameHeads {
    /// The head of a frame that has arrived in part.
    head: [u8; HEAD_BYTES],
    head_length: usize,
    /// Bytes of the present frame's payload that have not arrived.
    payload_left: usize,
    /// `CONTINUATION` frames in a row.
    continuations: u32,
    /// A bit for every stream that the peer has ended, at half its number.
    bits: [u64; WORDS],
    /// Half the number of the newest stream.
    newest: usize,
}

/// A frame that breaks the rules of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Bytes of the present piece before the frame; 0 if its head began in an earlier piece.
    pub at: usize,
    /// The error code (RFC 9113, section 7).
    pub code: u32,
}

impl FrameHeads {
    /// Note that the next stream was opened.
    pub fn open(&mut self, stream: i32) {
        self.newest = stream as usize / 2;
        if self.newest.is_multiple_of(64) {
            self.bits[self.newest / 64 % WORDS] = 0;
        }
    }

    /// Read the heads of the frames in a piece, up to the first that breaks a rule.
    pub fn read(&mut self, piece: &[u8]) -> Option<Violation> {
        let mut at = 0;
        loop {
            let skipped = self.payload_left.min(piece.len() - at);
            at += skipped;
            self.payload_left -= skipped;
            let rest = &piece[at..];
            let (head, begin) = match rest.first_chunk() {
                Some(head) if self.head_length == 0 => {
                    at += HEAD_BYTES;
                    (*head, at - HEAD_BYTES)
                }
                _ => {
                    let begin = if self.head_length == 0 { at } else { 0 };
                    let taken = rest.len().min(HEAD_BYTES - self.head_length);
                    self.head[self.head_length..][..taken].copy_from_slice(&rest[..taken]);
                    self.head_length += taken;
                    if self.head_length < HEAD_BYTES {
                        return None;
                    }
                    at += taken;
                    self.head_length = 0;
                    (self.head, begin)
                }
            };
            if head.starts_with(b"HTTP/1.") {
                // Read as a frame, the first bytes of an HTTP/1.1 answer are a frame of 4 MB and of an unknown type.
                return Some(Violation { at: begin, code: ng::NGHTTP2_HTTP_1_1_REQUIRED });
            }
            self.payload_left = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
            let stream = i32::from_be_bytes([head[5] & 0x7f, head[6], head[7], head[8]]);
            if let Some(code) = self.judge(head[3].into(), head[4].into(), stream) {
                return Some(Violation { at: begin, code });
            }
        }
    }

    /// The error code if a frame breaks a rule. Notes whether it ends its stream.
    fn judge(&mut self, kind: u32, flags: u32, stream: i32) -> Option<u32> {
        if kind == ng::NGHTTP2_CONTINUATION {
            self.continuations += 1;
            return (self.continuations > MOST_CONTINUATIONS).then_some(ng::NGHTTP2_ENHANCE_YOUR_CALM);
        }
        self.continuations = 0;
        let carries = matches!(kind, ng::NGHTTP2_HEADERS | ng::NGHTTP2_DATA);
        let index = stream as usize / 2;
        // Older streams are no longer watched; nghttp2 judges frames on streams that were not opened.
        let is_watched = index <= self.newest && self.newest - index < (WORDS - 1) * 64;
        if !is_watched || !(carries || kind == ng::NGHTTP2_RST_STREAM) {
            return None;
        }
        let (word, bit) = (&mut self.bits[index / 64 % WORDS], 1 << (index % 64));
        if carries && *word & bit != 0 {
            return Some(ng::NGHTTP2_STREAM_CLOSED);
        }
        if !carries || flags & ng::NGHTTP2_FLAG_END_STREAM != 0 {
            *word |= bit;
        }
        None
    }
}
