//! A timer that sockets are waited for with.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::checked;
use super::time::timespec;

/// A timer of the monotonic clock, exact to the nanosecond as far as the machine is: a `timerfd`.
pub struct Timer(OwnedFd);

impl Timer {
    pub fn new() -> io::Result<Self> {
        let flags = libc::TFD_CLOEXEC | libc::TFD_NONBLOCK;
        // SAFETY: no memory is passed; the descriptor returned is ours alone.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(checked(libc::timerfd_create(libc::CLOCK_MONOTONIC, flags))?) }))
    }

    /// Let it fire once, then, and not when it was set for before.
    pub fn set(&self, at_ns: u64) -> io::Result<()> {
        let once = libc::itimerspec { it_interval: timespec(0), it_value: timespec(at_ns.max(1)) };
        // SAFETY: `once` outlives the call, and what was set before is not asked for.
        let set = unsafe {
            libc::timerfd_settime(self.0.as_raw_fd(), libc::TFD_TIMER_ABSTIME, &raw const once, std::ptr::null_mut())
        };
        checked(set).map(drop)
    }
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
