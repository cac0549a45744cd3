//! The client side of a TLS 1.2 or 1.3 connection, without sockets: bytes from the peer in, plain bytes and bytes for the peer
//! out (RFC 5246, RFC 8446). rustls implements the protocol.
//!
//! A [`Client`] is the shared state of the connections to a target: trust, versions, ALPN, the tickets of earlier sessions.
//! [`Client::connect`] makes a [`Session`], whose owner moves the bytes:
//!
//! 1. after each call of [`Client::connect`] and [`Session::feed`], even if it failed, write what [`Session::output`] appends;
//! 2. pass to [`Session::feed`] what the peer sent, in pieces of any size;
//! 3. once the handshake is done, [`Session::seal`] the data to be sent, and write that.
//!
//! rustls reads the wall clock, to check that certificates are valid today. [`Client::new`] reads the certificates of the
//! system from disk once.

mod alerts;
mod ciphers;
mod client;
mod client_certificate;
mod handshake;
mod insecure;
mod own;
mod records;
mod session;
mod settings;
mod tickets;
mod traffic;

pub use alerts::Progress;
pub use client::Client;
pub use session::{Error, Fed, Session};
pub use settings::{Settings, Unusable, Version};

// The in-memory server of the tests is a file that is used inside and outside of the crate.
#[cfg(test)]
extern crate self as redline_tls;
#[cfg(test)]
#[path = "../tests/support/mod.rs"]
mod support;
