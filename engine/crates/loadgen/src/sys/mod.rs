//! The few system calls that the standard library does not offer. The engine's `unsafe` stands here, in `io`, and in `pool` where it hands bytes to `io`.

pub mod process;
pub mod socket;
pub mod time;
pub mod timer;
pub mod waker;

use std::io;

/// The result of a system call that returns −1 and sets `errno`.
pub fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
