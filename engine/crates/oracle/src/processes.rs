//! The serving processes, and the process that supervises them: it stops them for a pause, and receives the signal to end.
//!
//! A stopped process cannot continue by itself, so the server is a child. Children are killed with their parent, stopped or not
//! (`PR_SET_PDEATHSIG`), so that no process stays behind however the parent ends.

use std::io::{self, PipeReader, Read as _, Write as _};
use std::process::exit;

use crate::lateness::Lateness;
use crate::pauses::{Change, Pauses};
use crate::signals::{self, Signal, Signals};
use crate::sys::{monotonic_ns, realtime_ns};

/// The first message of a child.
const READY: &[u8] = b"!";

/// Serving processes.
pub struct Children(Vec<Child>);

struct Child {
    id: libc::pid_t,
    /// The child's lateness, once it ends.
    reports: PipeReader,
    ended: bool,
}

impl Children {
    /// Starts `count` children; `serve` gets the child's index, and its result is sent to the parent. The process must have a
    /// single thread.
    pub fn start(count: usize, mut serve: impl FnMut(usize) -> io::Result<Lateness>) -> io::Result<Self> {
        let parent = std::process::id();
        let mut children = Self(Vec::new());
        for index in 0..count {
            let (mut reports, mut writer) = io::pipe()?;
            // SAFETY: there is one thread, so the child may do whatever the parent may.
            let id = unsafe { libc::fork() };
            if id == 0 {
                drop(reports);
                signals::die_with(parent);
                let ended =
                    writer.write_all(READY).and_then(|()| serve(index)).and_then(|lateness| lateness.write(writer));
                if let Err(error) = &ended {
                    eprintln!("cannot serve any more: {error}");
                }
                exit(i32::from(ended.is_err()));
            }
            if id < 0 {
                return Err(io::Error::last_os_error());
            }
            drop(writer);
            // A child that was stopped before it is tied to its parent would be left behind.
            reports.read_exact(&mut [0; READY.len()])?;
            children.0.push(Child { id, reports, ended: false });
        }
        Ok(children)
    }

    /// Supervises until a signal to end, or a child has ended, and then ends all children. Times of `pauses` count from
    /// `origin_ns`.
    pub fn watch(mut self, signals: &Signals, origin_ns: u64, pauses: Option<Pauses>) -> io::Result<Lateness> {
        let watched = self.until_signalled(signals, origin_ns, pauses);
        self.signal(libc::SIGTERM);
        self.signal(libc::SIGCONT);
        let mut total = Lateness::new();
        for child in &mut self.0 {
            let mut bytes = Vec::new();
            child.reports.read_to_end(&mut bytes)?;
            total.add(&Lateness::read(&bytes));
            if !child.ended {
                signals::reap(child.id);
            }
        }
        watched.map(|()| total)
    }

    fn until_signalled(&mut self, signals: &Signals, origin_ns: u64, mut pauses: Option<Pauses>) -> io::Result<()> {
        let mut stopped = (0, 0);
        let mut count = 0;
        loop {
            let next_ns = pauses.as_ref().map(|pauses| origin_ns + pauses.next_ns());
            match signals.wait_until(next_ns) {
                Some(Signal::End) => return Ok(()),
                Some(Signal::Child) => {
                    if let Some(ended) = self.reap() {
                        return ended;
                    }
                }
                None => match pauses.as_mut().map(Pauses::take) {
                    Some(Change::Stop) => {
                        stopped = (realtime_ns(), monotonic_ns());
                        self.signal(libc::SIGSTOP);
                    }
                    Some(Change::Continue) => {
                        self.signal(libc::SIGCONT);
                        count += 1;
                        let for_ns = monotonic_ns() - stopped.1;
                        eprintln!("pause {count}: from {} for {for_ns} ns", stopped.0);
                    }
                    None => {}
                },
            }
        }
    }

    /// Handles children that have ended. If a child got a signal to end, all got it.
    fn reap(&mut self) -> Option<io::Result<()>> {
        let mut outcome = None;
        for child in self.0.iter_mut().filter(|child| !child.ended) {
            if let Some(clean) = signals::ended(child.id) {
                child.ended = true;
                let wrong = || Err(io::Error::other("a process of the server has ended"));
                outcome = Some(if clean { Ok(()) } else { wrong() });
            }
        }
        outcome
    }

    fn signal(&self, signal: libc::c_int) {
        for child in self.0.iter().filter(|child| !child.ended) {
            signals::send(child.id, signal);
        }
    }
}
