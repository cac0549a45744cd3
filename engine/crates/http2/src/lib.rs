//! The client side of one HTTP/2 connection, without sockets: requests become bytes, bytes become events (RFC 9113).
//!
//! [`Session`] is framed by nghttp2. It reads no clock of its own, looks at bodies only to count them (and to hash or keep
//! them when requested), honours the peer's windows and replenishes its own, and bounds everything that a peer can make it keep.

mod event;
mod ffi;
mod frame_heads;
mod message;
mod rule;
mod session;
mod slot;
mod streams;

pub use event::{BodyOptions, Error, Event};
pub use rule::{Rule, code_name};
pub use session::Session;

/// The longest list of fields that is taken or sent, names and values and 32 bytes for each (RFC 9113, section 6.5.2): 64 KiB.
pub const MOST_HEAD_BYTES: usize = 64 * 1024;
/// The most fields in a list, pseudo-fields not counted.
pub const MOST_FIELDS: usize = 128;
/// The longest body that is kept: 1 MiB. A longer one, where it should be kept, is malformed.
pub const MOST_KEPT_BYTES: usize = 1024 * 1024;
