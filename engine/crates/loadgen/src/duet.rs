//! A duet: several targets, loaded in short slices in turn, so that what disturbs the machine disturbs all of them alike.
//!
//! All targets are connected before the first slice and stay connected. A block holds two slices of each target, in a random
//! order and then in the opposite one, so that a steady drift cancels. The order is never that of another duet, which may
//! run beside it with the same seed: their slices would meet in every block, server by server. A slice is a small load of its own: after a guard that
//! is not measured it is measured until the worker notices its end, and then waits for the answers that are missing. The CPU
//! time of the targets' processes is read before it, and when all is answered: while a process runs, its clock lags by up to
//! a tick of the kernel.
//!
//! Where the last target is the same server as target 0, the two share its slices: what a server has served by then may be part
//! of its speed, so that all have served for as long.
//!
//! A parallel duet loads all targets at the same time, each by workers of its own: its slices have one start. They are as many
//! as otherwise, so that a block is judged alike.

mod turns;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use redline_pacing::random_bits;
use redline_traffic::{
    Connected, DuetBlock, DuetResult, DuetSlice, DuetTotal, Ended, EngineError, Event, JourneyTally, Phase,
    RequestTally,
};

use self::turns::{Turn, TurnResult, Turns, WorkerReport};
use crate::client::ConnectResult;
use crate::conductor::started;
use crate::job::{Duet, Job};
use crate::peers::Peers;
use crate::processes::between;
use crate::protocol::{Commands, emit};
use crate::server_clocks::ServerClocks;
use crate::stop::Stop;
use crate::sys::time::now_ns;
use crate::workers::{internal, not_connected};

/// How far ahead a slice is set, so that every worker is ready when it starts.
const NOTICE_NS: u64 = 300_000;
/// How long a server has, after its last answer, to stop running, before its clock is read.
const SETTLE: Duration = Duration::from_micros(200);

/// A slice lasts as long as this many requests on a connection, or its ends would weigh too much.
const EXCHANGES: u64 = 5;

/// The random order of blocks, among other draws of the same seed.
const ORDER: u64 = 0x6475_6574;

/// A job for one target, and where its connections go.
pub type DuetTarget = (Arc<Job>, Peers);

/// Run a duet and emit its events. Returns how it ended; `None` when it was stopped before it started.
///
/// # Errors
/// When it could not be done.
pub fn run(targets: &[DuetTarget], duet: &Duet, stop: &Arc<Stop>) -> Result<Option<Ended>, EngineError> {
    let begun_ns = now_ns();
    let job = &targets[0].0;
    let groups = targets.chunks(if duet.parallel { 1 } else { targets.len() }).enumerate();
    let groups = groups.map(|(number, targets)| TargetWorkers::start(number, targets, duet, stop));
    let groups = groups.collect::<Result<Vec<_>, _>>().map_err(|error| internal(&error))?;
    let clocks = ServerClocks::open(job, &duet.pids, duet.targets).map_err(|error| internal(&error))?;
    let mut run = DuetRun { job, duet, stop, groups, clocks, epoch_ns: 0, warm: Arc::default(), is_overdue: false };
    let connected = run.connect(targets)?;
    if stop.code().is_some() {
        return Ok(None);
    }
    run.epoch_ns = now_ns();
    let connected = Connected { connect_ns: run.epoch_ns - begun_ns, ..connected };
    let workers = run.groups.iter().map(|group| group.workers.len() as u32).sum();
    emit(&Event::Started(started(workers, 1, job, connected, run.epoch_ns)));
    if job.commands {
        let warm = Arc::clone(&run.warm);
        let commands = Commands::listen().map_err(|error| internal(&error))?;
        commands.on_measure(Box::new(move |_| warm.store(true, Ordering::Relaxed)));
    }
    run.blocks().map(Some)
}

/// The workers that load one target, or all of them in turn.
struct TargetWorkers {
    workers: Vec<Sender<Turn>>,
    inbox: Receiver<WorkerReport>,
}

impl TargetWorkers {
    /// Start the workers. Group 0 has the first cores of the job, group 1 the next ones.
    fn start(number: usize, targets: &[DuetTarget], duet: &Duet, stop: &Arc<Stop>) -> std::io::Result<Self> {
        let (reports, inbox) = channel();
        let job = &targets[0].0;
        let worker = |worker| {
            let place = number * job.workers as usize + worker as usize;
            let cpu = (!job.cpus.is_empty()).then(|| job.cpus[place % job.cpus.len()]);
            Turns::start(worker, cpu, targets, duet, stop, &reports)
        };
        let workers = (0..job.workers).map(worker).collect::<Result<_, _>>()?;
        Ok(Self { workers, inbox })
    }
}

/// A duet that is being run.
struct DuetRun<'a> {
    job: &'a Job,
    duet: &'a Duet,
    stop: &'a Stop,
    groups: Vec<TargetWorkers>,
    clocks: ServerClocks,
    epoch_ns: u64,
    /// Set by the command `measure`.
    warm: Arc<AtomicBool>,
    /// Requests of a slice had no answer when its drain was over: the next slice would begin under their load.
    is_overdue: bool,
}

impl DuetRun<'_> {
    /// Wait until every worker has tried to connect to every target; `connect_ns` is left at 0.
    ///
    /// # Errors
    /// When a worker failed, or a target could not be reached.
    fn connect(&self, targets: &[DuetTarget]) -> Result<Connected, EngineError> {
        let mut all: Vec<ConnectResult> = Vec::new();
        let mut name = "";
        for group in &self.groups {
            let first = all.len();
            for _ in &group.workers {
                let WorkerReport::Connected(results, backend) = receive(group)? else {
                    continue;
                };
                name = backend;
                if all.len() == first {
                    all.extend(results);
                    continue;
                }
                for (sum, result) in all[first..].iter_mut().zip(results) {
                    sum.add(result);
                }
            }
        }
        let mut sum = ConnectResult::default();
        for (result, (job, peers)) in all.into_iter().zip(targets) {
            if result.open == 0 && self.stop.code().is_none() {
                return Err(not_connected(job, peers, result.error.as_ref())
                    .unwrap_or_else(|| internal(&std::io::Error::other("a load without users has no duet"))));
            }
            sum.add(result);
        }
        let connections = sum.open as u64;
        Ok(Connected {
            connections,
            connect_ns: 0,
            backend: name.to_owned(),
            tls: sum.tls,
            addresses: Vec::new(),
            error: None,
        })
    }

    /// Run blocks until the measurement is over, and emit them and the result.
    fn blocks(&mut self) -> Result<Ended, EngineError> {
        let mut measure_ns = self.epoch_ns + self.job.warmup_ns;
        // Those of the warm-up are short; how fast the targets answer at its end says how long the others are.
        let (mut slice_ns, mut needed_ns) = (self.duet.slice_ns, self.duet.longest_slice_ns);
        let mut paused_blocks = 0;
        let (mut block_ns, mut measured) = (0, 0);
        let planned_ns = measure_ns + self.job.measure_ns;
        let own_seed = own_seed(self.job.seed, self.epoch_ns, std::process::id());
        for index in 0.. {
            let now_ns = now_ns();
            if self.warm.load(Ordering::Relaxed) {
                measure_ns = measure_ns.min(now_ns);
            }
            if measured == 0 && now_ns + self.duet.fewest_blocks * block_ns > planned_ns {
                measure_ns = measure_ns.min(now_ns);
            }
            let is_enough =
                measured >= self.duet.fewest_blocks || now_ns + block_ns > self.epoch_ns + self.duet.longest_ns;
            if now_ns >= measure_ns + self.job.measure_ns && is_enough || self.is_cut() {
                break;
            }
            let phase = if now_ns < measure_ns { Phase::Warmup } else { Phase::Measure };
            if phase == Phase::Measure {
                slice_ns = needed_ns;
            }
            let order = order(own_seed, index, self.duet);
            let mut slices = Vec::with_capacity(order.len());
            let mut paused = false;
            for at_once in order.chunks(self.groups.len()) {
                // The two slices of a server have different arrivals; the servers have the same.
                let arrivals = 2 * index + u64::from(slices.len() >= order.len() / 2);
                let (more, paused_ns) = self.slices(at_once, arrivals, slice_ns, phase == Phase::Measure)?;
                paused |= paused_ns > 0;
                if self.is_cut() {
                    break;
                }
                slices.extend(more);
            }
            // A block that was cut, or during which a worker stood still, is of no use: its slices do not balance.
            paused_blocks += u64::from(paused && phase == Phase::Measure);
            if slices.len() == order.len() && !paused {
                if phase == Phase::Warmup {
                    needed_ns = self.needed_ns(&slices);
                }
                measured += u64::from(phase == Phase::Measure);
                emit(&Event::Block(DuetBlock { index, phase, slices }));
            }
            block_ns = self::now_ns() - now_ns;
        }
        let ended = match self.stop.ended() {
            Ended::Complete if self.is_overdue => Ended::Deadline,
            ended => ended,
        };
        emit(&Event::Duet(DuetResult { ended, paused_blocks, targets: &self.totals()? }));
        Ok(ended)
    }

    /// End the workers; what all of them measured of each target.
    fn totals(&mut self) -> Result<Vec<DuetTotal>, EngineError> {
        let mut totals: Vec<_> = (0..self.duet.targets).map(|_| DuetTotal::default()).collect();
        for (number, mut group) in std::mem::take(&mut self.groups).into_iter().enumerate() {
            let workers = std::mem::take(&mut group.workers).len();
            for _ in 0..workers {
                if let WorkerReport::Totals(of_worker) = receive(&group)? {
                    for (total, of_target) in totals[number..].iter_mut().zip(of_worker) {
                        total.slice.add(&of_target.slice);
                        total.failures.merge(of_target.failures.since(self.epoch_ns));
                        RequestTally::add_all(&mut total.requests, &of_target.requests);
                        JourneyTally::add_to(&mut total.journeys, of_target.journeys.as_ref());
                        total.reach = total.reach.and(of_target.reach);
                        total.kept.add(of_target.keeper.kept(self.epoch_ns), self.job.most_sampled);
                    }
                }
            }
        }
        for total in &mut totals {
            total.requests = std::mem::take(&mut total.requests).into_iter().map(RequestTally::complete).collect();
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

    /// Run one slice of each of these targets, all at the same time: of one where they are loaded in turn. Also for how long
    /// their workers stood still.
    fn slices(
        &mut self,
        targets: &[usize],
        arrivals: u64,
        slice_ns: u64,
        counts: bool,
    ) -> Result<(Vec<DuetSlice>, u64), EngineError> {
        let before = self.clocks.read();
        let epoch_ns = now_ns() + NOTICE_NS;
        for &number in targets {
            let (group, target) = self.workers_of(number);
            for worker in &group.workers {
                // A worker that has ended has reported why.
                let _ = worker.send(Turn { target, epoch_ns, slice_ns, counts, arrivals });
            }
        }
        let mut results = Vec::with_capacity(targets.len());
        for &number in targets {
            let group = self.workers_of(number).0;
            let mut of_workers = Vec::with_capacity(group.workers.len());
            while of_workers.len() < group.workers.len() {
                if let WorkerReport::Ended(result) = receive(group)? {
                    of_workers.push(result);
                }
            }
            results.push(of_workers);
        }
        thread::sleep(SETTLE);
        let after = self.clocks.read();
        let cpu_ns: Vec<_> =
            before.cpu.iter().zip(&after.cpu).map(|(before, after)| between(*before, *after)).collect();
        let slice = |(&target, results): (&usize, Vec<TurnResult>)| {
            let sum = |of: fn(&TurnResult) -> u64| results.iter().map(of).sum::<u64>();
            let mut cpu_ns = cpu_ns.clone();
            // What another target used while it was loaded itself is in its own slice.
            cpu_ns
                .iter_mut()
                .enumerate()
                .filter(|(at, _)| *at != target && targets.contains(at))
                .for_each(|(_, used)| *used = None);
            DuetSlice {
                target: target as u32,
                start_ns: epoch_ns - self.epoch_ns,
                end_ns: results.iter().map(|result| result.drained_ns).max().unwrap_or(epoch_ns) - self.epoch_ns,
                measured_ns: sum(|result| result.measured_ns) / results.len() as u64,
                measured: sum(|result| result.measured),
                completed: sum(|result| result.completed),
                failed: sum(|result| result.failed),
                bytes_received: sum(|result| result.bytes_received),
                cpu_ns,
                engine_cpu_ns: sum(|result| result.cpu_ns),
                steal_ns: before.steal_ns.zip(after.steal_ns).map(|(before, after)| after.saturating_sub(before)),
            }
        };
        let paused_ns = results.iter().flatten().map(|result| result.paused_ns).sum();
        self.is_overdue |= results.iter().flatten().any(|result| result.unanswered > 0);
        Ok((targets.iter().zip(results).map(slice).collect(), paused_ns))
    }

    /// Whether it ends before its time.
    fn is_cut(&self) -> bool {
        self.is_overdue || self.stop.code().is_some()
    }

    /// Who loads a target, and its number among those that they load.
    fn workers_of(&self, target: usize) -> (&TargetWorkers, usize) {
        if self.duet.parallel { (&self.groups[target], 0) } else { (&self.groups[0], target) }
    }
}

/// The next report of the workers of a target.
fn receive(group: &TargetWorkers) -> Result<WorkerReport, EngineError> {
    match group.inbox.recv() {
        Ok(WorkerReport::Failed(error)) => Err(error),
        Ok(report) => Ok(report),
        Err(error) => Err(internal(&std::io::Error::other(error))),
    }
}

/// A seed of this duet alone: others have begun at another time, or in another process.
fn own_seed(seed: u64, began_ns: u64, process: u32) -> u64 {
    random_bits(seed, began_ns, process.into())
}

/// The targets of one block: in a random order, and then in the opposite one. Of two that are one server, one is in each half.
fn order(seed: u64, block: u64, duet: &Duet) -> Vec<usize> {
    let random = |at: usize| random_bits(seed, block, ORDER + at as u64);
    let servers = duet.targets - usize::from(duet.last_is_first);
    let mut order: Vec<usize> = (0..servers).collect();
    order.sort_by_key(|target| random(*target));
    let opposite: Vec<usize> = order.iter().rev().copied().collect();
    let mut order = [order, opposite].concat();
    if duet.last_is_first {
        let from = if random(servers) % 2 == 0 { 0 } else { servers };
        order[from..from + servers].iter_mut().filter(|target| **target == 0).for_each(|target| *target = servers);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::{order, own_seed};
    use crate::job::Duet;

    fn duet(targets: usize, last_is_first: bool) -> Duet {
        let (slice_ns, longest_slice_ns, guard_ns, pids) = (2_000_000, 2_000_000, 0, Vec::new());
        let (fewest_blocks, longest_ns, parallel) = (0, 0, false);
        Duet { targets, slice_ns, longest_slice_ns, guard_ns, fewest_blocks, longest_ns, pids, parallel, last_is_first }
    }

    #[test]
    fn a_block_is_balanced_and_its_order_random() {
        let blocks: Vec<_> = (0..200).map(|block| order(7, block, &duet(3, false))).collect();
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
        assert_eq!(order(7, 3, &duet(3, false)), blocks[3]);
    }

    #[test]
    fn a_server_that_is_two_targets_has_as_many_slices_as_any_other() {
        for targets in 3..=5 {
            let blocks: Vec<_> = (0..200).map(|block| order(7, block, &duet(targets, true))).collect();
            let last = targets - 1;
            for block in &blocks {
                let servers: Vec<_> = block.iter().map(|target| target % last).collect();
                assert!(servers.iter().eq(servers.iter().rev()), "{block:?}");
                for server in 0..last {
                    assert_eq!(servers.iter().filter(|of| **of == server).count(), 2, "{block:?}");
                }
                assert_eq!(block.iter().filter(|target| **target == last).count(), 1, "{block:?}");
            }
            let early = blocks.iter().filter(|block| block[..last].contains(&last)).count();
            assert!((80..=120).contains(&early), "the last is in the first half of {early} of 200");
        }
    }

    #[test]
    fn duets_of_a_seed_have_orders_of_their_own() {
        let blocks = |began_ns, process| {
            (0..600).map(move |block| order(own_seed(7, began_ns, process), block, &duet(3, false)))
        };
        for (began_ns, process) in [(1_001, 50), (1_000, 51)] {
            let alike =
                blocks(1_000, 50).zip(blocks(began_ns, process)).filter(|(ours, theirs)| ours == theirs).count();
            assert!((60..=140).contains(&alike), "{alike} of 600: by chance it is one in six");
        }
    }
}
