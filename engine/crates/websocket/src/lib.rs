//! One WebSocket connection, without sockets: received bytes become messages, and messages become bytes (RFC 6455).
//!
//! [`Handshake`] opens a connection on the client's side, and [`accept_value`] answers it on the server's. [`Session`] is either
//! side of an open connection. Nothing here reads a clock, and all that a peer can make a session keep is bounded.

mod deflate;
mod handshake;
mod mask;
mod rule;
mod session;

pub use deflate::{DEFLATE_OFFER, Deflate};
pub use handshake::{Handshake, Opened, Refusal, accept_value};
pub use rule::{Rule, close_code_name};
pub use session::{Close, Event, Kind, Role, Session};

/// How many bytes the messages of a session have that compresses them: as they are, and as they are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Volume {
    /// Bytes of their payloads.
    pub plain: u64,
    /// Bytes of their compressed payloads.
    pub packed: u64,
}

impl Volume {
    fn add(&mut self, plain: usize, packed: usize) {
        self.plain += plain as u64;
        self.packed += packed as u64;
    }
}

/// The longest message that is accepted, 16 MiB, in however many frames.
pub const MOST_MESSAGE_BYTES: usize = 16 * 1024 * 1024;
/// The most frames of a message.
pub const MOST_FRAMES: u32 = 1024 * 1024;
/// The longest payload of a control frame (RFC 6455, 5.5).
pub const MOST_CONTROL_BYTES: usize = 125;
