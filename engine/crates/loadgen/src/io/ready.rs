//! Waiting for sockets: edge-triggered epoll with timeouts in nanoseconds.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::sys::checked;
use crate::sys::time::timespec;

/// What happened to a socket.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Ready(libc::epoll_event);

impl Ready {
    pub const NOTHING: Self = Self(libc::epoll_event { events: 0, u64: 0 });

    /// What the socket was registered as.
    pub fn token(self) -> u64 {
        self.0.u64
    }

    pub fn writable(self) -> bool {
        self.has(libc::EPOLLOUT)
    }

    pub fn readable(self) -> bool {
        self.has(libc::EPOLLIN) || self.ending()
    }

    /// The peer sends no more, or the connection is broken.
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
    /// The kernel is older than 5.11, or a sandbox takes it for such: timeouts are rounded up to milliseconds.
    coarse: bool,
}

impl Poll {
    pub fn new() -> io::Result<Self> {
        // SAFETY: no memory is passed; the descriptor returned is ours alone.
        let fd = unsafe { OwnedFd::from_raw_fd(checked(libc::epoll_create1(libc::EPOLL_CLOEXEC))?) };
        Ok(Self { fd, coarse: false })
    }

    /// Register a socket once for all that may happen to it. Closing it takes it out.
    pub fn add_socket(&self, socket: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        self.add(socket, libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLET, token)
    }

    /// Register a waker: each time that it is woken is told once.
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

    /// Wait at most `timeout_ns`; how many of `ready` were filled.
    pub fn wait(&mut self, ready: &mut [Ready], timeout_ns: u64) -> io::Result<usize> {
        let waited = if self.coarse { self.wait_coarse(ready, timeout_ns) } else { self.wait_exact(ready, timeout_ns) };
        match waited {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
            Err(error) if is_unknown(&error) && !self.coarse => {
                self.coarse = true;
                self.wait_coarse(ready, timeout_ns)
            }
            other => other,
        }
    }

    fn wait_exact(&self, ready: &mut [Ready], timeout_ns: u64) -> io::Result<usize> {
        let timeout = timespec(timeout_ns);
        // SAFETY: `Ready` has the layout of `epoll_event`, the kernel fills at most `ready.len()` of them, and `timeout`
        // outlives the call. The last two arguments say that no signal mask is given.
        let filled = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.fd.as_raw_fd(),
                ready.as_mut_ptr(),
                ready.len() as libc::c_int,
                &raw const timeout,
                std::ptr::null::<libc::sigset_t>(),
                0_usize,
            )
        };
        checked(filled as libc::c_int).map(|filled| filled as usize)
    }

    fn wait_coarse(&self, ready: &mut [Ready], timeout_ns: u64) -> io::Result<usize> {
        let milliseconds = libc::c_int::try_from(timeout_ns.div_ceil(1_000_000)).unwrap_or(libc::c_int::MAX);
        // SAFETY: as in `wait_exact`.
        let filled = unsafe {
            libc::epoll_wait(self.fd.as_raw_fd(), ready.as_mut_ptr().cast(), ready.len() as libc::c_int, milliseconds)
        };
        checked(filled).map(|filled| filled as usize)
    }
}

/// Whether a system call is not there: the kernel is older, or a sandbox refuses what was not known when it was made.
fn is_unknown(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM))
}
