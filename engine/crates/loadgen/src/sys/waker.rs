//! Waking threads that wait for sockets.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::FromRawFd;

use super::checked;

/// An event descriptor: written once, it wakes every thread that waits for it.
pub fn waker() -> io::Result<File> {
    // SAFETY: no memory is passed; the descriptor returned is ours alone.
    Ok(unsafe { File::from_raw_fd(checked(libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK))?) })
}

/// Wake all that wait for this waker.
pub fn wake(mut waker: &File) {
    // It can only fail when it has been woken 2⁶⁴ − 2 times, and then it is awake.
    let _ = waker.write(&1_u64.to_ne_bytes());
}
