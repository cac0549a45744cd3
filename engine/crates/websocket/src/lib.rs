//! One WebSocket connection, without sockets: received bytes become messages, and messages become bytes (RFC 6455).
//!
//! [`Handshake`] opens a connection on the client's side, and [`accept_value`] answers it on the server's. [`Session`] is either
//! side of an open connection. Nothing here reads a clock, and all that a peer can make a session keep is bounded.

mod handshake;
mod mask;
mod rule;
mod session;

pub use handshake::{Handshake, Opened, Refusal, accept_value};
pub use rule::{Rule, close_code_name};
pub use session::{Close, Event, Kind, Role, Session};

/// The longest message that is accepted, 16 MiB, in however many frames.
pub const MOST_MESSAGE_BYTES: usize = 16 * 1024 * 1024;
/// The most frames of a message.
pub const MOST_FRAMES: u32 = 1024 * 1024;
/// The longest payload of a control frame (RFC 6455, 5.5).
pub const MOST_CONTROL_BYTES: usize = 125;
