//! The few system calls that the standard library does not offer. All `unsafe` of the engine stands here.

pub mod epoll;
pub mod process;
pub mod socket;
pub mod time;

use std::io;

/// The result of a system call that returns −1 and sets `errno`.
fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
