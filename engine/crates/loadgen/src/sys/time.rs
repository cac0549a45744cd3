//! Clocks and a timer, in nanoseconds.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;

use super::checked;

/// Nanoseconds of the monotonic clock.
#[inline]
pub fn now_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Nanoseconds since 1970 by the wall clock.
pub fn unix_ns() -> u64 {
    read(libc::CLOCK_REALTIME)
}

/// How long this machine has been suspended since it was started.
pub fn suspended_ns() -> u64 {
    read(libc::CLOCK_BOOTTIME).saturating_sub(read(libc::CLOCK_MONOTONIC))
}

/// CPU time of the calling thread, user and system.
pub fn thread_cpu_ns() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// CPU time of the whole process, user and system.
pub fn process_cpu_ns() -> u64 {
    read(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// CPU time of another process, user and system, of all its threads; `None` when there is no such process.
pub fn process_cpu_of(pid: u32) -> Option<u64> {
    // The clock's id as `clock_getcpuclockid` composes it: the negated pid, and CPUCLOCK_SCHED.
    let clock = (!pid.cast_signed() << 3) | 2;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writes.
    let read = unsafe { libc::clock_gettime(clock, &raw mut time) };
    (read == 0).then(|| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// The CPU time that the hypervisor took from all cores.
pub struct Steal {
    file: Option<File>,
    tick_ns: u64,
}

impl Steal {
    pub fn open() -> Self {
        // SAFETY: no memory is passed.
        let ticks_per_s = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
        Self { file: File::open("/proc/stat").ok(), tick_ns: 1_000_000_000 / ticks_per_s.max(1) as u64 }
    }

    /// The total until now; `None` if it is not known.
    pub fn ns(&self) -> Option<u64> {
        let mut text = [0; 256];
        let length = self.file.as_ref()?.read_at(&mut text, 0).ok()?;
        let line = text[..length].split(|byte| *byte == b'\n').next()?;
        // cpu user nice system idle iowait irq softirq steal …
        let steal = std::str::from_utf8(line).ok()?.split_ascii_whitespace().nth(8)?;
        Some(steal.parse::<u64>().ok()? * self.tick_ns)
    }
}

#[inline]
fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writes; the clocks named above exist on every Linux, so the call cannot fail.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// A duration in the kernel's layout.
pub fn timespec(ns: u64) -> libc::timespec {
    libc::timespec { tv_sec: (ns / 1_000_000_000) as libc::time_t, tv_nsec: (ns % 1_000_000_000) as libc::c_long }
}

/// A timer of the monotonic clock: a `timerfd`.
pub struct Timer(OwnedFd);

impl Timer {
    pub fn new() -> io::Result<Self> {
        let flags = libc::TFD_CLOEXEC | libc::TFD_NONBLOCK;
        // SAFETY: no memory is passed; the returned descriptor has no other owner.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(checked(libc::timerfd_create(libc::CLOCK_MONOTONIC, flags))?) }))
    }

    /// Fire once at this time, and at no time set earlier.
    pub fn set(&self, at_ns: u64) -> io::Result<()> {
        let once = libc::itimerspec { it_interval: timespec(0), it_value: timespec(at_ns.max(1)) };
        // SAFETY: `once` outlives the call, and the previous setting is not returned.
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
