//! HTTP/1.1 on the wire, without sockets: a request becomes bytes once, bytes become answers as they come (RFC 9112).
//!
//! [`Parser`] takes the bytes of one connection in pieces of any size. It allocates nothing while heads arrive whole,
//! looks at bodies only to count them (and to hash them when asked), and bounds everything that a peer can make it keep.

mod chunked;
mod head;
mod parser;
mod request;

pub use parser::{Answer, Asked, Malformed, Parser, Whole};
pub use request::{Request, Unsendable};

/// The longest status line and headers, and the longest trailers, that are taken: 64 KiB.
pub const MOST_HEAD_BYTES: usize = 64 * 1024;
/// The most headers that are taken.
pub const MOST_HEADERS: usize = 128;
