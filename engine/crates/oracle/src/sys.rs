//! The few system calls that the standard library lacks.

use std::io;
use std::mem::zeroed;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::null_mut;

use socket2::{Domain, Socket, Type};

/// An event: the token of its descriptor, and what happened.
pub type Event = libc::epoll_event;

/// Readable, the peer's end of writing, and errors.
pub const INPUT: u32 = (libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR) as u32;
/// The peer sends no more.
pub const HANGUP: u32 = (libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR) as u32;

fn checked(result: i32) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// An edge-triggered epoll instance.
pub struct Epoll(OwnedFd);

impl Epoll {
    /// A new instance.
    pub fn new() -> io::Result<Self> {
        // SAFETY: no pointers; the returned descriptor has no other owner.
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

    /// Waits until something has happened. Returns how many of `events` were filled.
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
    clock_ns(libc::CLOCK_MONOTONIC)
}

/// Nanoseconds since 1970.
pub fn realtime_ns() -> u64 {
    clock_ns(libc::CLOCK_REALTIME)
}

fn clock_ns(clock: libc::clockid_t) -> u64 {
    // SAFETY: a timespec is plain data, and the kernel fills it.
    let mut now: libc::timespec = unsafe { zeroed() };
    // SAFETY: `now` lives through the call.
    unsafe { libc::clock_gettime(clock, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// A timer that becomes readable at an instant of the monotonic clock.
pub struct Timer(OwnedFd);

impl Timer {
    /// A timer that is not set.
    pub fn new() -> io::Result<Self> {
        let flags = libc::TFD_CLOEXEC | libc::TFD_NONBLOCK;
        // SAFETY: no pointers; the returned descriptor has no other owner.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(checked(libc::timerfd_create(libc::CLOCK_MONOTONIC, flags))?) }))
    }

    /// Sets the timer; an instant that has passed fires immediately. A timerfd has no slack: it fires to the clock's
    /// resolution.
    pub fn set(&self, monotonic_ns: u64) -> io::Result<()> {
        let it_value = libc::timespec {
            tv_sec: (monotonic_ns / 1_000_000_000) as libc::time_t,
            tv_nsec: (monotonic_ns % 1_000_000_000) as libc::c_long,
        };
        let once = libc::itimerspec { it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 }, it_value };
        // SAFETY: `once` lives through the call, and the old value is not returned.
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

/// This many listeners on the same port.
///
/// Listeners that share a port share it with every process of this user, so the port is first taken alone: a port that is in
/// use is then an error, as it is for a single listener.
pub fn listeners(address: SocketAddr, count: usize) -> io::Result<Vec<TcpListener>> {
    let alone = listen(address, false)?;
    if count == 1 {
        return Ok(vec![alone]);
    }
    let address = alone.local_addr()?;
    drop(alone);
    (0..count).map(|_| listen(address, true)).collect()
}

fn listen(address: SocketAddr, shared: bool) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(shared)?;
    socket.bind(&address.into())?;
    // Accepted connections inherit it.
    socket.set_tcp_nodelay(true)?;
    // The kernel cuts this to net.core.somaxconn.
    socket.listen(65_535)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// Accepts a connection and makes it non-blocking, with a single system call.
pub fn accept(listener: &TcpListener) -> io::Result<TcpStream> {
    let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: the peer's address is not returned; the returned descriptor has no other owner.
    Ok(unsafe { TcpStream::from_raw_fd(checked(libc::accept4(listener.as_raw_fd(), null_mut(), null_mut(), flags))?) })
}

/// Receives up to `length` bytes and discards them without a copy (tcp(7), `MSG_TRUNC`). Returns how many.
pub fn pass_over(socket: &TcpStream, length: usize) -> io::Result<usize> {
    // SAFETY: with MSG_TRUNC the kernel writes nothing to the buffer of a TCP socket.
    let passed = unsafe { libc::recv(socket.as_raw_fd(), null_mut(), length, libc::MSG_TRUNC) };
    if passed < 0 { Err(io::Error::last_os_error()) } else { Ok(passed as usize) }
}

/// Raises the limit of descriptors to the highest allowed; if that fails, the limit stays.
pub fn raise_descriptor_limit() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` lives through both calls.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
        }
    }
}
