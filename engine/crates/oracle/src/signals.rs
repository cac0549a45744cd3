//! Signals and processes: the system calls that the standard library lacks.

use std::io;
use std::mem::zeroed;
use std::ptr::null_mut;

use crate::sys::monotonic_ns;

/// A blocked signal that was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// SIGTERM or SIGINT.
    End,
    /// A child has ended, was stopped or continues.
    Child,
}

/// SIGTERM, SIGINT and SIGCHLD, blocked in this thread and in threads that it starts later.
pub struct Signals(libc::sigset_t);

impl Signals {
    /// Blocks the signals; call it before any thread is started.
    pub fn hold() -> Self {
        // SAFETY: a sigset_t is plain data, initialised by sigemptyset; all pointers live through their calls.
        unsafe {
            let mut signals: libc::sigset_t = zeroed();
            libc::sigemptyset(&raw mut signals);
            for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGCHLD] {
                libc::sigaddset(&raw mut signals, signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const signals, null_mut());
            Self(signals)
        }
    }

    /// Waits for SIGTERM or SIGINT.
    pub fn wait_for_end(&self) {
        while self.wait_until(None) != Some(Signal::End) {}
    }

    /// Waits for a signal, until an instant of the monotonic clock if there is one.
    pub fn wait_until(&self, monotonic: Option<u64>) -> Option<Signal> {
        loop {
            let signal = match monotonic {
                // SAFETY: the set lives through the call, and no details are returned.
                None => unsafe { libc::sigwaitinfo(&raw const self.0, null_mut()) },
                Some(at_ns) => {
                    let left_ns = at_ns.saturating_sub(monotonic_ns());
                    if left_ns == 0 {
                        return None;
                    }
                    let left = libc::timespec {
                        tv_sec: (left_ns / 1_000_000_000) as libc::time_t,
                        tv_nsec: (left_ns % 1_000_000_000) as libc::c_long,
                    };
                    // SAFETY: the set and the time live through the call, and no details are returned.
                    unsafe { libc::sigtimedwait(&raw const self.0, null_mut(), &raw const left) }
                }
            };
            match signal {
                libc::SIGTERM | libc::SIGINT => return Some(Signal::End),
                libc::SIGCHLD => return Some(Signal::Child),
                // The time has come, or another signal interrupted.
                _ => {}
            }
        }
    }
}

/// Lets this thread's timers fire to the clock's resolution rather than within the default slack of 50 us.
pub fn be_punctual() {
    // SAFETY: no pointers.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_usize) };
}

/// Arranges that this process is killed when the thread that forked it ends; immediately if it has ended already.
pub fn die_with(parent: u32) {
    // SAFETY: no pointers.
    let gone = unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as usize);
        libc::getppid() as u32 != parent
    };
    if gone {
        std::process::exit(1);
    }
}

/// Sends a signal to a child that was not reaped.
pub fn send(id: libc::pid_t, signal: libc::c_int) {
    // SAFETY: no pointers; the id is that of a child, and is not reused before the child is reaped.
    unsafe { libc::kill(id, signal) };
}

/// Whether a child has ended, and if so whether cleanly; it is then reaped.
pub fn ended(id: libc::pid_t) -> Option<bool> {
    let mut status = 0;
    // SAFETY: `status` lives through the call.
    let reaped = unsafe { libc::waitpid(id, &raw mut status, libc::WNOHANG) };
    (reaped == id).then_some(status == 0)
}

/// Waits for the end of a child.
pub fn reap(id: libc::pid_t) {
    let mut status = 0;
    // SAFETY: `status` lives through the call.
    while unsafe { libc::waitpid(id, &raw mut status, 0) } < 0
        && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
    {}
}
