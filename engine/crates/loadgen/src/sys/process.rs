//! The process: its limits, cores, signals, parent and end.

use std::io;
use std::mem::{size_of, zeroed};

use super::checked;
use super::time::{now_ns, timespec};

/// Raise the limit of open descriptors to its hard limit, and return it.
pub fn raise_open_files() -> io::Result<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is valid for writes, then for reads.
    unsafe {
        checked(libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit))?;
        let before = limit.rlim_cur;
        limit.rlim_cur = limit.rlim_max;
        let raised = libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) == 0;
        Ok(if raised { limit.rlim_cur } else { before })
    }
}

/// The cores that this process may run on.
pub fn allowed_cpus() -> io::Result<Vec<u32>> {
    // SAFETY: a `cpu_set_t` is an array of integers, so all zeros is a value of it; its size is given.
    let set = unsafe {
        let mut set: libc::cpu_set_t = zeroed();
        checked(libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set))?;
        set
    };
    // SAFETY: the indices are within the set.
    Ok((0..libc::CPU_SETSIZE as usize)
        .filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) })
        .map(|cpu| cpu as u32)
        .collect())
}

/// Restrict the calling thread, and threads that it starts later, to these cores.
pub fn pin(cpus: &[u32]) -> io::Result<()> {
    // SAFETY: as in `allowed_cpus`; the indices are within the set.
    unsafe {
        let mut set: libc::cpu_set_t = zeroed();
        for cpu in cpus.iter().filter(|cpu| **cpu < libc::CPU_SETSIZE as u32) {
            libc::CPU_SET(*cpu as usize, &mut set);
        }
        checked(libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set)).map(drop)
    }
}

/// Let the calling thread's timers fire when they are due: the kernel's default adds up to 50 µs.
pub fn precise_timers() {
    // SAFETY: no memory is passed. Failing only means less precise timers, which the lateness
    // shows.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_u64) };
}

/// Request the shortest time slices, so that the calling thread preempts its core immediately when a request is due, instead of
/// waiting for the end of another thread's slice (EEVDF, since Linux 6.12; elsewhere nothing changes). Its share of the core
/// stays the same. A thread with another scheduling policy is left as it is.
pub fn shortest_slices() {
    const SHORTEST_NS: u64 = 100_000;
    /// `struct sched_attr` of `sched_setattr(2)`, which libc does not wrap.
    #[repr(C)]
    struct Attributes {
        size: u32,
        policy: u32,
        flags: u64,
        nice: i32,
        priority: u32,
        runtime_ns: u64,
        deadline_ns: u64,
        period_ns: u64,
    }
    // SAFETY: no memory is passed but `attributes`, which outlives the call and has its size. Failing only means the kernel's
    // default slices, which the lateness shows.
    unsafe {
        if libc::sched_getscheduler(0) != libc::SCHED_OTHER {
            return;
        }
        let attributes = Attributes {
            size: size_of::<Attributes>() as u32,
            policy: libc::SCHED_OTHER as u32,
            flags: 0,
            nice: libc::getpriority(libc::PRIO_PROCESS, 0),
            priority: 0,
            runtime_ns: SHORTEST_NS,
            deadline_ns: 0,
            period_ns: 0,
        };
        libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0);
    }
}

/// Let the calling thread run only when its core has nothing else to do. The main thread uses it: if it shares a worker's core,
/// reporting must not make the load late.
pub fn lower_priority() {
    // SAFETY: all zeros is a value of `parameters`, which outlives the call. Failing only means a later load, which the
    // lateness shows.
    unsafe {
        let parameters: libc::sched_param = zeroed();
        libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters);
    }
}

/// The calling thread, for [`restore_priority`].
pub fn this_thread() -> libc::pid_t {
    // SAFETY: no memory is passed. Older C libraries have no function for it.
    let id = unsafe { libc::syscall(libc::SYS_gettid) };
    id as libc::pid_t
}

/// Restore the normal priority of a thread, as far as this user may: its result is waited for.
pub fn restore_priority(thread: libc::pid_t) {
    // SAFETY: all zeros is a value of `parameters`, which outlives the call. Failing only means that the result takes longer
    // on a busy machine.
    unsafe {
        let parameters: libc::sched_param = zeroed();
        libc::sched_setscheduler(thread, libc::SCHED_OTHER, &raw const parameters);
    }
}

/// Be killed when the parent ends. Returns false when it has ended already.
pub fn die_with_parent(parent: u32) -> bool {
    // SAFETY: no memory is passed.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong);
        u32::try_from(libc::getppid()) == Ok(parent)
    }
}

/// SIGINT and SIGTERM, blocked in this thread and in threads that it starts later, so that they can be waited for.
pub struct Signals(libc::sigset_t);

impl Signals {
    pub fn block() -> Self {
        // SAFETY: `set` is initialized by `sigemptyset`; the signal numbers are valid, so no call can fail.
        unsafe {
            let mut set: libc::sigset_t = zeroed();
            libc::sigemptyset(&raw mut set);
            libc::sigaddset(&raw mut set, libc::SIGINT);
            libc::sigaddset(&raw mut set, libc::SIGTERM);
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
            Self(set)
        }
    }

    /// Wait for either signal, at most this long. Returns whether it came. Other interruptions (a stop and a continuation, a
    /// debugger, a freezer) do not end the wait.
    pub fn wait(&self, timeout_ns: u64) -> bool {
        let end_ns = now_ns().saturating_add(timeout_ns);
        loop {
            let timeout = timespec(end_ns.saturating_sub(now_ns()));
            // SAFETY: both references outlive the call, and no information about the signal is requested.
            let came = unsafe { libc::sigtimedwait(&raw const self.0, std::ptr::null_mut(), &raw const timeout) };
            match checked(came) {
                Ok(_) => return true,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
    }
}

/// Send SIGINT to a child that has not been waited for; one that has ended takes no notice.
pub fn interrupt(child: libc::pid_t) {
    // SAFETY: no memory is passed.
    unsafe { libc::kill(child, libc::SIGINT) };
}

/// End the process immediately, whatever its other threads do and whatever is buffered.
pub fn end_now(code: i32) -> ! {
    // SAFETY: the call does not return.
    unsafe { libc::_exit(code) }
}
