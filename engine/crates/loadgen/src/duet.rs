//! A duet: several targets, loaded in short slices in turn, so that what disturbs the machine disturbs all of them alike.
//!
//! All targets are connected before the first slice and stay connected. A block holds two slices of each target, in a random
//! order and then in the opposite one, so that a steady drift cancels. A slice is a small load of its own: after a guard that
//! is not measured it is measured until the worker notices its end, and then waits for the answers that are missing. The CPU
//! time of the targets' processes is read before it, and when all is answered: while a process runs, its clock lags by up to
//! a tick of the kernel.

mod turns;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use redline_pacing::random_bits;
use redline_traffic::{
    DuetBlock, DuetResult, DuetSlice, ENGINE_FORMAT, Ended, Engine, EngineError, ErrorKind, Event, Phase, Slice,
    Started,
};

use self::turns::{Report, Turn, TurnResult, Turns};
use crate::client::ConnectResult;
use crate::job::{Duet, Job};
use crate::protocol::{emit, listen_for_commands};
use crate::stop::Stop;
use crate::sys::time::{Steal, now_ns, processes_cpu_of, unix_ns};
use crate::workers::{internal, not_connected};

/// How far ahead a slice is set, so that every worker is ready when it starts.
const NOTICE_NS: u64 = 300_000;
/// How long a server has, after its last answer, to stop running, before its clock is read.
const SETTLE: Duration = Duration::from_micros(200);

/// A slice lasts as long as this many exchanges on a connection, or its ends would weigh too much.
const EXCHANGES: u64 = 5;

/// The random order of blocks, among other draws of the same seed.
const ORDER: u64 = 0x6475_6574;

/// One job for each target, and its address.
pub type Targets = Vec<(Arc<Job>, SocketAddr)>;

/// Run a duet and emit its events. Returns how it ended; `None` when it was stopped before it started.
///
/// # Errors
/// When it could not be done.
pub fn run(targets: &Targets, duet: &Duet, stop: &Arc<Stop>) -> Result<Option<Ended>, EngineError> {
    let begun_ns = now_ns();
    let job = &targets[0].0;
    let (reports, inbox) = channel();
    let workers = (0..job.workers).map(|number| Turns::start(number, targets, duet, stop, &reports));
    let workers = workers.collect::<Result<Vec<_>, _>>().map_err(|error| internal(&error))?;
    drop(reports);
    let mut conductor =
        Conductor { job, duet, stop, workers, inbox, steal: Steal::open(), epoch_ns: 0, warm: Arc::default() };
    let (connected, backend) = conductor.connect(targets)?;
    if stop.code().is_some() {
        return Ok(None);
    }
    conductor.epoch_ns = now_ns();
    emit(&Event::Started(Started {
        format: ENGINE_FORMAT.to_owned(),
        engine: Engine {
            name: "redline-engine".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            backend: backend.to_owned(),
            workers: job.workers,
            cpus: job.cpus.clone(),
            processes: 1,
        },
        connections: connected.iter().map(|result| result.open as u64).sum(),
        connect_ns: conductor.epoch_ns - begun_ns,
        epoch_unix_ns: unix_ns() + conductor.epoch_ns - now_ns(),
        tls: connected.iter().find_map(|result| result.tls.clone()),
    }));
    if job.commands {
        let warm = Arc::clone(&conductor.warm);
        listen_for_commands(move || warm.store(true, Ordering::Relaxed)).map_err(|error| internal(&error))?;
    }
    conductor.conduct().map(Some)
}

struct Conductor<'a> {
    job: &'a Job,
    duet: &'a Duet,
    stop: &'a Stop,
    workers: Vec<Sender<Turn>>,
    inbox: Receiver<Report>,
    steal: Steal,
    epoch_ns: u64,
    /// Set by the command `measure`.
    warm: Arc<AtomicBool>,
}

impl Conductor<'_> {
    /// Wait until every worker has tried to connect to every target; what was reached, by target, and the backend's name.
    fn connect(&self, targets: &Targets) -> Result<(Vec<ConnectResult>, &'static str), EngineError> {
        let mut all: Vec<ConnectResult> = Vec::new();
        let mut name = "";
        for _ in &self.workers {
            let Report::Connected(results, backend) = self.receive()? else {
                continue;
            };
            name = backend;
            if all.is_empty() {
                all = results;
                continue;
            }
            for (sum, result) in all.iter_mut().zip(results) {
                sum.open += result.open;
                sum.error = result.error.or(sum.error.take());
                sum.tls = sum.tls.take().or(result.tls);
            }
        }
        for (result, (job, address)) in all.iter().zip(targets) {
            if result.open == 0 && self.stop.code().is_none() {
                return Err(not_connected(job, *address, result.error.as_ref())
                    .unwrap_or_else(|| internal(&std::io::Error::other("a load without users has no duet"))));
            }
        }
        Ok((all, name))
    }

    /// Run blocks until the measurement is over, and emit them and the result.
    fn conduct(&mut self) -> Result<Ended, EngineError> {
        let mut measure_ns = self.epoch_ns + self.job.warmup_ns;
        // Those of the warm-up are short; how fast the targets answer at its end says how long the others are.
        let (mut slice_ns, mut needed_ns) = (self.duet.slice_ns, self.duet.longest_slice_ns);
        for index in 0.. {
            let now_ns = now_ns();
            if self.warm.load(Ordering::Relaxed) {
                measure_ns = measure_ns.min(now_ns);
            }
            if now_ns >= measure_ns + self.job.measure_ns || self.stop.code().is_some() {
                break;
            }
            let phase = if now_ns < measure_ns { Phase::Warmup } else { Phase::Measure };
            if phase == Phase::Measure {
                slice_ns = needed_ns;
            }
            let mut slices = Vec::with_capacity(2 * self.duet.targets);
            for (turn, target) in order(self.job.seed, index, self.duet.targets).into_iter().enumerate() {
                // The two slices of a target have different arrivals; the targets have the same.
                let arrivals = 2 * index + (turn / self.duet.targets) as u64;
                let slice = self.slice(target, arrivals, slice_ns, phase == Phase::Measure)?;
                if self.stop.code().is_some() {
                    break;
                }
                slices.push(slice);
            }
            // A block that was cut is of no use: its slices do not balance.
            if slices.len() == 2 * self.duet.targets {
                if phase == Phase::Warmup {
                    needed_ns = self.needed_ns(&slices);
                }
                emit(&Event::Block(DuetBlock { index, phase, slices }));
            }
        }
        let ended = self.stop.ended();
        emit(&Event::Duet(DuetResult { ended, targets: &self.totals()? }));
        Ok(ended)
    }

    /// End the workers; what all of them measured of each target.
    fn totals(&mut self) -> Result<Vec<Slice>, EngineError> {
        let mut totals: Vec<Slice> = (0..self.duet.targets).map(|_| Slice::default()).collect();
        let workers = std::mem::take(&mut self.workers).len();
        for _ in 0..workers {
            if let Report::Totals(of_worker) = self.receive()? {
                totals.iter_mut().zip(of_worker).for_each(|(total, slice)| total.add(&slice));
            }
        }
        Ok(totals)
    }

    /// How long slices have to be, after these.
    fn needed_ns(&self, slices: &[DuetSlice]) -> u64 {
        let in_flight = u64::from(self.job.load.connections()) * u64::from(self.job.load.depth);
        let exchange_ns = |slice: &DuetSlice| {
            let answered = slice.completed + slice.failed;
            (slice.end_ns - slice.start_ns).saturating_mul(in_flight) / answered.max(1)
        };
        let slowest_ns = slices.iter().map(exchange_ns).max().unwrap_or(u64::MAX);
        slowest_ns.saturating_mul(EXCHANGES).clamp(self.duet.slice_ns, self.duet.longest_slice_ns)
    }

    /// Run one slice of one target on all workers.
    fn slice(&mut self, target: usize, arrivals: u64, slice_ns: u64, counts: bool) -> Result<DuetSlice, EngineError> {
        let (cpu_before, steal_before) = (self.cpu_ns(), self.steal.ns());
        let epoch_ns = now_ns() + NOTICE_NS;
        for worker in &self.workers {
            // A worker that has ended has reported why.
            let _ = worker.send(Turn { target, epoch_ns, slice_ns, counts, arrivals });
        }
        let mut results = Vec::with_capacity(self.workers.len());
        while results.len() < self.workers.len() {
            if let Report::Ended(result) = self.receive()? {
                results.push(result);
            }
        }
        thread::sleep(SETTLE);
        let (cpu_after, steal_after) = (self.cpu_ns(), self.steal.ns());
        let sum = |of: fn(&TurnResult) -> u64| results.iter().map(of).sum::<u64>();
        Ok(DuetSlice {
            target: target as u32,
            start_ns: epoch_ns - self.epoch_ns,
            end_ns: results.iter().map(|result| result.drained_ns).max().unwrap_or(epoch_ns) - self.epoch_ns,
            measured_ns: sum(|result| result.measured_ns) / results.len() as u64,
            measured: sum(|result| result.measured),
            completed: sum(|result| result.completed),
            failed: sum(|result| result.failed),
            cpu_ns: cpu_before
                .iter()
                .zip(cpu_after)
                .map(|(before, after)| Some(after?.saturating_sub((*before)?)))
                .collect(),
            engine_cpu_ns: sum(|result| result.cpu_ns),
            steal_ns: steal_before.zip(steal_after).map(|(before, after)| after.saturating_sub(before)),
        })
    }

    /// The CPU time of each target's processes until now; `None` when it has none that can be read.
    fn cpu_ns(&self) -> Vec<Option<u64>> {
        self.duet.pids.iter().map(|pids| processes_cpu_of(pids)).collect()
    }

    fn receive(&self) -> Result<Report, EngineError> {
        match self.inbox.recv() {
            Ok(Report::Failed(error)) => Err(internal(&error)),
            Ok(Report::Ended(result)) if result.unanswered > 0 && self.stop.code().is_none() => Err(EngineError {
                kind: ErrorKind::Connect,
                message: format!(
                    "{} requests of a slice were not answered within {} ms after its end, so the next would begin under their load",
                    result.unanswered,
                    self.job.drain_ns / 1_000_000
                ),
                hint: "give the drain more time, or fewer users".to_owned(),
            }),
            Ok(report) => Ok(report),
            Err(error) => Err(internal(&std::io::Error::other(error))),
        }
    }
}

/// The targets of one block: in a random order, and then in the opposite one.
fn order(seed: u64, block: u64, targets: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..targets).collect();
    order.sort_by_key(|target| random_bits(seed, block, ORDER + *target as u64));
    let opposite: Vec<usize> = order.iter().rev().copied().collect();
    [order, opposite].concat()
}

#[cfg(test)]
mod tests {
    use super::order;

    #[test]
    fn a_block_is_balanced_and_its_order_random() {
        let blocks: Vec<_> = (0..200).map(|block| order(7, block, 3)).collect();
        for block in &blocks {
            let positions = |target| block.iter().enumerate().filter(move |(_, of)| **of == target).map(|(at, _)| at);
            for target in 0..3 {
                assert_eq!(positions(target).sum::<usize>(), 5, "{block:?}");
            }
        }
        for first in 0..3 {
            let share = blocks.iter().filter(|block| block[0] == first).count();
            assert!((40..=95).contains(&share), "{first} begins {share} of 200");
        }
        assert_eq!(order(7, 3, 3), blocks[3]);
    }
}
