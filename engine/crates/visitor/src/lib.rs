//! What a visitor of a site remembers: its cookies (RFC 6265), and values that it takes from answers.
//!
//! Nothing here reads a clock or a socket. The visitor knows a single host, so cookies have no domain.

mod date;
mod jar;
mod take;

pub use jar::Jar;
pub use take::{Take, WrongTake};
