//! The end of a request's body: by its length, or by the chunks that it comes in (RFC 9112, 7.1).
//!
//! Chunks are read more strictly than a server must, and by code that has nothing of the engine: what it accepts is right.

/// The longest line with the length of a chunk, and the longest trailers, in bytes.
const LINE_LIMIT: usize = 4096;

/// How a body ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Framing {
    /// There is none.
    #[default]
    None,
    /// After this many bytes.
    Length(u64),
    /// With the last of its chunks.
    Chunked,
}

/// What has not yet been read of a body.
#[derive(Debug)]
pub struct Rest {
    next: Next,
    /// Bytes of the trailers so far.
    trailers: usize,
}

#[derive(Debug, Clone, Copy)]
enum Next {
    /// This many bytes, and then nothing.
    Last(u64),
    /// The line with the length of a chunk.
    Size,
    /// This many bytes of a chunk.
    Chunk(u64),
    /// The end of the line after a chunk.
    ChunkEnd,
    /// A line of the trailers, of which the last is empty.
    Trailer,
}

/// What comes first in the bytes that were received.
#[derive(Debug, PartialEq, Eq)]
pub enum Part {
    /// This many bytes of the body.
    Data(usize),
    /// This many bytes that say how long the body is.
    Framing(usize),
    /// The body has ended with this many bytes, which are none of it.
    End(usize),
    /// More bytes are needed to tell.
    Partial,
    /// What is no body.
    Wrong,
}

impl Rest {
    /// All of a body.
    #[must_use]
    pub fn of(framing: Framing) -> Self {
        let next = match framing {
            Framing::None => Next::Last(0),
            Framing::Length(length) => Next::Last(length),
            Framing::Chunked => Next::Size,
        };
        Self { next, trailers: 0 }
    }

    /// Reads a part from the start of `bytes`, which follow what was read before.
    pub fn read(&mut self, bytes: &[u8]) -> Part {
        match &mut self.next {
            Next::Last(0) => Part::End(0),
            Next::Chunk(0) => {
                self.next = Next::ChunkEnd;
                Part::Framing(0)
            }
            Next::Last(left) | Next::Chunk(left) => data(left, bytes),
            Next::Size | Next::ChunkEnd | Next::Trailer => self.read_line(bytes),
        }
    }

    fn read_line(&mut self, bytes: &[u8]) -> Part {
        let Some(end) = memchr::memchr(b'\n', bytes) else {
            return if bytes.len() > LINE_LIMIT { Part::Wrong } else { Part::Partial };
        };
        let length = end + 1;
        let Some(line) = bytes[..end].strip_suffix(b"\r").filter(|line| line.len() <= LINE_LIMIT) else {
            return Part::Wrong;
        };
        match self.next {
            Next::ChunkEnd if line.is_empty() => self.next = Next::Size,
            Next::ChunkEnd => return Part::Wrong,
            Next::Trailer if line.is_empty() => return Part::End(length),
            Next::Trailer => {
                self.trailers += length;
                if self.trailers > LINE_LIMIT || !line.contains(&b':') {
                    return Part::Wrong;
                }
            }
            _ => match chunk_length(line) {
                Some(0) => self.next = Next::Trailer,
                Some(length) => self.next = Next::Chunk(length),
                None => return Part::Wrong,
            },
        }
        Part::Framing(length)
    }

    /// How many bytes of the body are certain to come next.
    #[must_use]
    pub fn certain(&self) -> u64 {
        match self.next {
            Next::Last(left) | Next::Chunk(left) => left,
            _ => 0,
        }
    }

    /// This many bytes of the body were received, at most [`certain`](Self::certain).
    pub fn skip(&mut self, length: u64) {
        if let Next::Last(left) | Next::Chunk(left) = &mut self.next {
            *left -= length;
        }
    }
}

fn data(left: &mut u64, bytes: &[u8]) -> Part {
    let here = (*left).min(bytes.len() as u64);
    *left -= here;
    if here == 0 { Part::Partial } else { Part::Data(here as usize) }
}

/// The length of a chunk: hexadecimal digits, perhaps with extensions after them.
fn chunk_length(line: &[u8]) -> Option<u64> {
    let digits = line.split(|&byte| byte == b';').next()?.trim_ascii_end();
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit);
    let text = std::str::from_utf8(digits).ok().filter(|_| is_number)?;
    u64::from_str_radix(text, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::{Framing, LINE_LIMIT, Part, Rest};
    use proptest::prelude::*;

    /// The body at the start of `bytes` and the length of all of it, or whether it is wrong, if pieces of this length arrive.
    fn read(bytes: &[u8], piece: usize) -> Result<(Vec<u8>, usize), bool> {
        let (mut rest, mut body, mut taken, mut received) = (Rest::of(Framing::Chunked), Vec::new(), 0, 0);
        loop {
            match rest.read(&bytes[taken..received]) {
                Part::Data(length) => {
                    body.extend_from_slice(&bytes[taken..taken + length]);
                    taken += length;
                }
                Part::Framing(length) => taken += length,
                Part::End(length) => return Ok((body, taken + length)),
                Part::Partial if received == bytes.len() => return Err(false),
                Part::Partial => received = (received + piece).min(bytes.len()),
                Part::Wrong => return Err(true),
            }
        }
    }

    #[test]
    fn a_body_ends_with_its_last_chunk() {
        let bytes = b"5;a=b\r\nhello\r\n00B \r\n\r\n\r\n world\r\r\n0\r\nA: b\r\n\r\nGET";
        for piece in [1, 2, 3, bytes.len()] {
            let (body, length) = read(bytes, piece).expect("a body");
            assert_eq!((body.as_slice(), &bytes[length..]), (&b"hello\r\n\r\n world\r"[..], &b"GET"[..]));
        }
    }

    #[test]
    fn what_is_no_chunk_is_wrong() {
        for bytes in
            ["\r\n", "g\r\n", "-1\r\n", "+1\r\n", " 1\r\na", "1\na", "2\r\nabc\r\n", "0\r\nno field\r\n", "0;\n"]
        {
            assert_eq!(read(bytes.as_bytes(), 1), Err(true), "{bytes:?}");
        }
        assert_eq!(read(b"10000000000000000\r\n", 1), Err(true));
        assert_eq!(read(&vec![b'0'; LINE_LIMIT + 1], 100), Err(true));
        assert_eq!(read(&[b"0\r\n".to_vec(), b"A: b\r\n".repeat(LINE_LIMIT)].concat(), 100), Err(true));
        assert_eq!(read(b"1\r\na\r\n0\r\n", 1), Err(false));
    }

    proptest! {
        #[test]
        fn chunks_are_read_as_they_were_written(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..6), piece in 1..30_usize, rest: u8,
        ) {
            let framed = |chunk: &Vec<u8>| [format!("{:x}\r\n", chunk.len()).as_bytes(), chunk, b"\r\n"].concat();
            let bytes = [chunks.iter().flat_map(framed).collect(), b"0\r\n\r\n".to_vec(), vec![rest]].concat();
            prop_assert_eq!(read(&bytes, piece), Ok((chunks.concat(), bytes.len() - 1)));
        }

        /// Nor does the way that they are cut change what is read.
        #[test]
        fn arbitrary_bytes_are_never_a_panic(bytes in "([0-9a-f;:\r\n]|\r\n){0,60}", piece in 1..9_usize) {
            prop_assert_eq!(read(bytes.as_bytes(), piece), read(bytes.as_bytes(), 60));
        }
    }
}
