//! Waiting for descriptors with edge-triggered epoll, and waking a thread that waits.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::checked;

/// What happened to a socket.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Ready(libc::epoll_event);

impl Ready {
    pub const NOTHING: Self = Self(libc::epoll_event { events: 0, u64: 0 });

    /// The token that the descriptor was registered with.
    pub fn token(self) -> u64 {
        self.0.u64
    }

    pub fn writable(self) -> bool {
        self.has(libc::EPOLLOUT)
    }

    pub fn readable(self) -> bool {
        self.has(libc::EPOLLIN) || self.ending()
    }

    /// The peer closed its side, or the connection failed.
    pub fn ending(self) -> bool {
        self.has(libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR)
    }

    fn has(self, bits: libc::c_int) -> bool {
        self.0.events & bits as u32 != 0
    }
}

/// An epoll instance.
pub struct Poll {
    fd: OwnedFd,
}

impl Poll {
    pub fn new() -> io::Result<Self> {
        // SAFETY: no memory is passed; the returned descriptor has no other owner.
        let fd = unsafe { OwnedFd::from_raw_fd(checked(libc::epoll_create1(libc::EPOLL_CLOEXEC))?) };
        Ok(Self { fd })
    }

    /// Register a socket for all events. Closing it unregisters it.
    pub fn add_socket(&self, socket: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        self.add(socket, libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLET, token)
    }

    /// Register a waker or a timer: every wake-up is reported once.
    pub fn add_waker(&self, waker: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        self.add(waker, libc::EPOLLIN | libc::EPOLLET, token)
    }

    fn add(&self, fd: BorrowedFd<'_>, events: libc::c_int, token: u64) -> io::Result<()> {
        let mut event = libc::epoll_event { events: events as u32, u64: token };
        // SAFETY: both descriptors are open for the call, and `event` is valid for reads.
        let added =
            unsafe { libc::epoll_ctl(self.fd.as_raw_fd(), libc::EPOLL_CTL_ADD, fd.as_raw_fd(), &raw mut event) };
        checked(added).map(drop)
    }

    /// Fill `ready`, waiting for an event if `sleeps`. Returns how many were filled.
    pub fn wait(&self, ready: &mut [Ready], sleeps: bool) -> io::Result<usize> {
        let forever_or_not = if sleeps { -1 } else { 0 };
        // SAFETY: `Ready` has the layout of `epoll_event`, and the kernel fills at most `ready.len()` of them.
        let filled = unsafe {
            let (events, length) = (ready.as_mut_ptr().cast(), ready.len() as libc::c_int);
            libc::epoll_wait(self.fd.as_raw_fd(), events, length, forever_or_not)
        };
        match checked(filled) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
            other => other.map(|filled| filled as usize),
        }
    }
}

/// An event descriptor: a single write wakes every thread that waits for it.
pub fn waker() -> io::Result<File> {
    // SAFETY: no memory is passed; the returned descriptor has no other owner.
    Ok(unsafe { File::from_raw_fd(checked(libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK))?) })
}

/// Wake every thread that waits for this waker.
pub fn wake(mut waker: &File) {
    // It fails only after 2⁶⁴ − 2 calls, and then the waker is awake.
    let _ = waker.write(&1_u64.to_ne_bytes());
}
