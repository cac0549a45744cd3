//! System calls that the standard library does not offer. All `unsafe` code of the engine is here, in `io`, and in the function
//! of `pool` that passes bytes to `io`.

pub mod poll;
pub mod process;
pub mod random;
pub mod socket;
pub mod time;

use std::io;

/// The result of a system call that returns −1 and sets `errno`.
pub fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
