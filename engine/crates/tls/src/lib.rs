//! The client's side of a TLS 1.2 or 1.3 connection, without sockets: bytes of the peer in, plain bytes and bytes for
//! the peer out (RFC 5246, RFC 8446; the protocol itself is rustls').
//!
//! A [`Client`] is what the connections to one target share: trust, versions, ALPN, the tickets of earlier sessions.
//! [`Client::connect`] makes a [`Session`], whose owner moves the bytes:
//!
//! 1. after each call of [`Client::connect`] and [`Session::feed`], also of one that failed, write what
//!    [`Session::output`] gives;
//! 2. give [`Session::feed`] what the peer sent, in pieces of any size;
//! 3. once the handshake is done, [`Session::seal`] what is to be sent, and write that.
//!
//! The wall clock is read by rustls, to check that certificates are valid today. Disk is read once, by [`Client::new`],
//! for the certificates of the system.

mod alerts;
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

// The server in memory of the tests is one file for those inside and outside of the crate.
#[cfg(test)]
extern crate self as redline_tls;
#[cfg(test)]
#[path = "../tests/support/mod.rs"]
mod support;
