//! What a visitor of a site remembers: its cookies (RFC 6265), and values that it takes from answers.
//!
//! Nothing here reads a clock or a socket. A visitor knows a single host: cookies of other hosts are dropped.

mod date;
mod jar;
mod site;
mod take;

pub use jar::Jar;
pub use site::{Dropped, Site, Unsent};
pub use take::{Take, WrongTake};
