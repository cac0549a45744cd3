//! The CPU time of the server's processes and the stolen time at both ends of the measurement.
//!
//! A thread of its own reads them: the main thread yields to the load, and would read late.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use redline_traffic::{Clocks, Ended};

use crate::job::Job;
use crate::measure_start::MeasureStart;
use crate::merge::Measured;
use crate::processes::{Used, between};
use crate::server_clocks::ServerClocks;
use crate::sys::process::precise_timers;
use crate::sys::time::now_ns;

/// How long the result waits for the second reading.
const PATIENCE: Duration = Duration::from_millis(500);
/// A reading that takes longer was interrupted, and is repeated. A reading of another host takes a round trip.
const LONGEST_READING_NS: u64 = 500_000;
const TRIES: usize = 3;

/// The thread that reads the clocks.
pub struct WindowClocks {
    clocks: Receiver<Clocks>,
}

struct TimedReading {
    at_ns: u64,
    cpu: Option<Used>,
    steal_ns: Option<u64>,
}

impl WindowClocks {
    /// Start the thread, for a load that starts at this time.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(job: &Job, epoch_ns: u64, measure_start: Arc<MeasureStart>) -> io::Result<Self> {
        let (sender, clocks) = channel();
        let (latest_ns, measure_ns) = (epoch_ns + job.warmup_ns, job.measure_ns);
        let clocks_of_host = ServerClocks::open(job, std::slice::from_ref(&job.pids), 1)?;
        thread::Builder::new().name("clocks".to_owned()).spawn(move || {
            precise_timers();
            let start_ns = measure_start.wait_until(latest_ns);
            let before = read(start_ns, &clocks_of_host);
            let after = read(start_ns + measure_ns, &clocks_of_host);
            let stolen = before.steal_ns.zip(after.steal_ns).map(|(before, after)| after.saturating_sub(before));
            let _ = sender.send(Clocks {
                start_ns: before.at_ns - epoch_ns,
                end_ns: after.at_ns - epoch_ns,
                server_cpu_ns: between(before.cpu, after.cpu),
                steal_ns: stolen,
            });
        })?;
        Ok(Self { clocks })
    }

    /// The clocks; `None` when the measurement ended early, so that they were not read at its end.
    pub fn of(self, measured: &Measured, job: &Job) -> Option<Clocks> {
        let whole = measured.ended == Ended::Complete && measured.end_ns - measured.start_ns == job.measure_ns;
        if whole { self.clocks.recv_timeout(PATIENCE).ok() } else { None }
    }
}

/// Wait until this time, and read.
fn read(at_ns: u64, clocks: &ServerClocks) -> TimedReading {
    thread::sleep(Duration::from_nanos(at_ns.saturating_sub(now_ns())));
    let mut tries = 0;
    loop {
        tries += 1;
        let (before_ns, read, after_ns) = (now_ns(), clocks.read(), now_ns());
        if after_ns - before_ns <= LONGEST_READING_NS || tries == TRIES {
            let cpu = read.cpu.first().copied().flatten();
            return TimedReading { at_ns: before_ns.midpoint(after_ns), cpu, steal_ns: read.steal_ns };
        }
    }
}
