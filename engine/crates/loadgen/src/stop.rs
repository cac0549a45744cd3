//! Ending early: by a signal, or by the job's deadline, whatever the other threads do.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::thread;

use redline_traffic::Ended;

use crate::sys::poll::{wake, waker};
use crate::sys::process::{Signals, end_now, restore_priority, this_thread};
use crate::sys::time::now_ns;

/// Exit code after SIGINT or SIGTERM.
pub const INTERRUPTED: u8 = 130;
/// Exit code when the deadline cut the work.
pub const CUT_BY_DEADLINE: u8 = 124;

/// How far ahead the common end of all workers is set, so that all learn of it in time.
const NOTICE_NS: u64 = 20_000_000;
/// How long the engine may take to write its result after a signal.
const SHUTDOWN_NS: u64 = 5_000_000_000;
/// The most time before the deadline at which the work ends; otherwise a fifth of the time to the deadline. A machine with busy
/// cores needs a second and more to merge the results of several processes.
const MARGIN_NS: u64 = 2_000_000_000;

const RUNNING: u8 = 0;

/// Whether, why and when to stop. It is set once; workers look only when its waker wakes them.
pub struct Stop {
    waker: File,
    cause: AtomicU8,
    at_ns: AtomicU64,
}

impl Stop {
    pub fn new() -> io::Result<Self> {
        Ok(Self { waker: waker()?, cause: AtomicU8::new(RUNNING), at_ns: AtomicU64::new(u64::MAX) })
    }

    /// Request all workers to stop at the same time, soon.
    pub fn request(&self, code: u8) {
        self.at_ns.store(now_ns().saturating_add(NOTICE_NS), Ordering::Relaxed);
        self.cause.store(code, Ordering::Release);
        wake(&self.waker);
    }

    /// The exit code for the reason of the stop; `None` while there is none.
    pub fn code(&self) -> Option<u8> {
        Some(self.cause.load(Ordering::Acquire)).filter(|code| *code != RUNNING)
    }

    /// When to stop, in nanoseconds of the monotonic clock; `u64::MAX` while no stop was requested.
    pub fn at_ns(&self) -> u64 {
        self.code().map_or(u64::MAX, |_| self.at_ns.load(Ordering::Relaxed))
    }

    /// How a cut measurement has ended.
    pub fn ended(&self) -> Ended {
        match self.code() {
            None => Ended::Complete,
            Some(CUT_BY_DEADLINE) => Ended::Deadline,
            Some(_) => Ended::Interrupted,
        }
    }

    pub fn waker(&self) -> BorrowedFd<'_> {
        self.waker.as_fd()
    }
}

/// Start the thread that stops the work on a signal or shortly before the deadline, and ends the process when the work does not
/// stop. The calling thread must be the thread that writes the result.
pub fn watch(stop: Arc<Stop>, signals: Signals, deadline_at_ns: u64) -> io::Result<()> {
    let to_deadline = deadline_at_ns.saturating_sub(now_ns());
    let soft_ns = to_deadline - MARGIN_NS.min(to_deadline / 5);
    let main = this_thread();
    thread::Builder::new().name("stop".to_owned()).spawn(move || {
        let (code, limit_ns) = if signals.wait(soft_ns) {
            (INTERRUPTED, deadline_at_ns.min(now_ns().saturating_add(SHUTDOWN_NS)))
        } else {
            (CUT_BY_DEADLINE, deadline_at_ns)
        };
        stop.request(code);
        restore_priority(main);
        signals.wait(limit_ns.saturating_sub(now_ns()));
        end_now(i32::from(code));
    })?;
    Ok(())
}
