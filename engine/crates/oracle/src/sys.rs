//! The few system calls that the standard library lacks.

use std::io;
use std::mem::zeroed;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::null_mut;

use socket2::{Domain, Socket, Type};

/// An event: the token that its descriptor was added with, and what happened.
pub type Event = libc::epoll_event;

/// Readable, the peer's end of writing, and errors.
pub const INPUT: u32 = (libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR) as u32;
/// The peer will write no more.
pub const HANGUP: u32 = (libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR) as u32;

fn checked(result: i32) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// An edge-triggered epoll instance.
pub struct Epoll(OwnedFd);

impl Epoll {
    /// A new instance.
    pub fn new() -> io::Result<Self> {
        // SAFETY: no pointers; the descriptor returned is owned by nobody else.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(checked(libc::epoll_create1(libc::EPOLL_CLOEXEC))?) }))
    }

    /// Watches a descriptor for input and output until it is closed.
    pub fn add(&self, descriptor: &impl AsRawFd, token: u64) -> io::Result<()> {
        let events = (libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLET) as u32;
        let mut event = Event { events, u64: token };
        // SAFETY: `event` lives through the call.
        checked(unsafe {
            libc::epoll_ctl(self.0.as_raw_fd(), libc::EPOLL_CTL_ADD, descriptor.as_raw_fd(), &raw mut event)
        })?;
        Ok(())
    }

    /// Waits until something happened; how many of `events` were filled.
    pub fn wait(&self, events: &mut [Event]) -> io::Result<usize> {
        // SAFETY: the kernel writes at most `events.len()` events.
        let count = unsafe { libc::epoll_wait(self.0.as_raw_fd(), events.as_mut_ptr(), events.len() as i32, -1) };
        match checked(count) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
            count => Ok(count? as usize),
        }
    }
}

/// Nanoseconds of the monotonic clock.
pub fn monotonic_ns() -> u64 {
    // SAFETY: a timespec is plain data, and the kernel fills it.
    let mut now: libc::timespec = unsafe { zeroed() };
    // SAFETY: `now` lives through the call.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// A timer that becomes readable at an instant of the monotonic clock.
pub struct Timer(OwnedFd);

impl Timer {
    /// A timer that is not set.
    pub fn new() -> io::Result<Self> {
        let flags = libc::TFD_CLOEXEC | libc::TFD_NONBLOCK;
        // SAFETY: no pointers; the descriptor returned is owned by nobody else.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(checked(libc::timerfd_create(libc::CLOCK_MONOTONIC, flags))?) }))
    }

    /// Sets it; an instant that has passed fires at once. A timerfd has no slack: it fires to the clock's resolution.
    pub fn set(&self, monotonic_ns: u64) -> io::Result<()> {
        let it_value = libc::timespec {
            tv_sec: (monotonic_ns / 1_000_000_000) as libc::time_t,
            tv_nsec: (monotonic_ns % 1_000_000_000) as libc::c_long,
        };
        let once = libc::itimerspec { it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 }, it_value };
        // SAFETY: `once` lives through the call, and the old value is not asked for.
        checked(unsafe {
            libc::timerfd_settime(self.0.as_raw_fd(), libc::TFD_TIMER_ABSTIME, &raw const once, null_mut())
        })?;
        Ok(())
    }
}

impl AsRawFd for Timer {
    fn as_raw_fd(&self) -> i32 {
        self.0.as_raw_fd()
    }
}

/// One listener for each of `threads`, all on one port.
///
/// Listeners that share a port share it with every process of this user, so the port is first taken alone: then one that is in use is
/// an error, as it is for a single listener.
pub fn listeners(address: SocketAddr, threads: usize) -> io::Result<Vec<TcpListener>> {
    let alone = listen(address, false)?;
    if threads == 1 {
        return Ok(vec![alone]);
    }
    let address = alone.local_addr()?;
    drop(alone);
    (0..threads).map(|_| listen(address, true)).collect()
}

fn listen(address: SocketAddr, shared: bool) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(shared)?;
    socket.bind(&address.into())?;
    socket.listen(4096)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// SIGTERM and SIGINT, held back from every thread that is started later.
pub struct Termination(libc::sigset_t);

impl Termination {
    /// Holds the signals back; call it before any thread is started.
    pub fn hold() -> Self {
        // SAFETY: a sigset_t is plain data, initialised by sigemptyset; all pointers live through their calls.
        unsafe {
            let mut signals: libc::sigset_t = zeroed();
            libc::sigemptyset(&raw mut signals);
            libc::sigaddset(&raw mut signals, libc::SIGTERM);
            libc::sigaddset(&raw mut signals, libc::SIGINT);
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const signals, null_mut());
            Self(signals)
        }
    }

    /// Waits for one of them.
    pub fn wait(&self) {
        // SAFETY: the set lives through the call, and no details are asked for.
        while unsafe { libc::sigwaitinfo(&raw const self.0, null_mut()) } < 0 {}
    }
}
