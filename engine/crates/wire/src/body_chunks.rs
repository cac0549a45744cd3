//! Bodies of requests in the chunked transfer coding (RFC 9112, section 7.1).

use std::num::NonZeroUsize;

const LAST: &[u8] = b"0\r\n\r\n";

/// Append a body in chunks of so many bytes, the last of which may be shorter, and their end.
pub(crate) fn append_chunks(out: &mut Vec<u8>, body: &[u8], bytes: NonZeroUsize) {
    for chunk in body.chunks(bytes.get()) {
        append_hex(out, chunk.len());
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(chunk);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(LAST);
}

/// Frame the body that begins at `begin` in `out`, as [`append_chunks`] does. Allocates only what `out` lacks.
pub(crate) fn append_in_chunks(out: &mut Vec<u8>, begin: usize, bytes: NonZeroUsize) {
    let end = out.len();
    let mut at = begin;
    while at < end {
        let next = end.min(at.saturating_add(bytes.get()));
        append_hex(out, next - at);
        out.extend_from_slice(b"\r\n");
        out.extend_from_within(at..next);
        out.extend_from_slice(b"\r\n");
        at = next;
    }
    out.extend_from_slice(LAST);
    out.drain(begin..end);
}

fn append_hex(out: &mut Vec<u8>, number: usize) {
    let digits = (usize::BITS - number.leading_zeros()).div_ceil(4).max(1);
    for digit in (0..digits).rev() {
        out.push(b"0123456789abcdef"[(number >> (4 * digit)) & 15]);
    }
}
