//! The client side of an HTTP/2 connection, without sockets: requests become bytes, bytes become events (RFC 9113).
//!
//! [`Session`] leaves framing to nghttp2. It reads no clock, inspects bodies only to count them (and to hash or keep them on
//! request), honours the peer's windows and replenishes its own, and bounds everything that a peer can make it keep.

mod event;
mod ffi;
mod frame_heads;
mod message;
mod pipe;
mod rule;
mod session;
mod slot;
mod streams;
mod tunnel;
mod watch;

pub use event::{BodyOptions, Error, Event};
pub use redline_wire::KeptBody;
pub use rule::{Rule, code_name};
pub use session::Session;
pub use tunnel::{Answer, End, Tunnel};

/// The longest list of fields that is accepted or sent: names, values and 32 bytes per field (RFC 9113, section 6.5.2), 64 KiB.
pub const MOST_HEAD_BYTES: usize = 64 * 1024;
/// The most fields in a list, not counting pseudo-fields.
pub const MOST_FIELDS: usize = 128;
/// The longest body that is kept, 1 MiB. A longer body that is to be kept is malformed.
pub const MOST_KEPT_BYTES: usize = 1024 * 1024;
