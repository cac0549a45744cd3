//! More connections than one process may hold: this process, the coordinator, starts as many of itself as it takes, starts
//! their schedules at one instant, and tells what they tell as one engine would. It opens no connection itself.
//!
//! - [`split`]: how the job is dealt.
//! - [`limits`]: what stands in the way, on the [`facts`] of this machine.
//! - [`processes`]: the processes. [`child`]: their side of what is said between them and the coordinator.
//! - [`fan_in`]: merging what they tell.

pub mod child;
mod facts;
mod fan_in;
mod limits;
mod processes;
mod split;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use redline_traffic::{
    Connected, ENGINE_FORMAT, Ended, Engine, EngineError, ErrorKind, Event, Interval, OwnedEvent, Phase, Started,
    Summary,
};

use self::facts::Facts;
use self::fan_in::FanIn;
use self::limits::Need;
use self::processes::{ShardMessage, Shards};
pub use self::split::Plan;
use self::split::{JobSplit, Room};
use crate::job::Job;
use crate::measure_start::IntervalGrid;
use crate::output::tell;
use crate::sources::Sources;
use crate::stop::{CUT_BY_DEADLINE, INTERRUPTED, Stop};
use crate::sys::time::{now_ns, process_cpu_ns, unix_ns};

/// How far ahead the epoch is set, so that every process has heard of it when it comes.
const NOTICE_NS: u64 = 100_000_000;

/// Descriptors of a process that are neither connections nor a worker's: the standard three, the waker, and some that
/// libraries may open for a moment.
const OTHER_DESCRIPTORS: u64 = 12;
/// Descriptors of a worker besides its connections: what it waits with, and what wakes it.
const WORKER_DESCRIPTORS: u64 = 3;

/// What is asked of the machine.
pub struct Asked<'a> {
    /// The most connections of the job.
    pub connections: u32,
    pub workers: u32,
    pub target: SocketAddr,
    pub sources: &'a [IpAddr],
    /// How many descriptors one process may hold.
    pub descriptors: u64,
    /// Memory of the engine for each connection, in bytes.
    pub engine_bytes: u64,
    /// Whether the backend watches each connection by epoll.
    pub watched: bool,
}

/// How many processes do the job: one, as long as its connections fit.
///
/// # Errors
/// A `limit` when the machine does not allow so many connections.
pub fn plan(asked: &Asked<'_>) -> Result<Plan, EngineError> {
    let Asked { connections, workers, target, sources, descriptors, engine_bytes, watched } = *asked;
    let room = Room { descriptors, others: OTHER_DESCRIPTORS, per_worker: WORKER_DESCRIPTORS };
    let plan = Plan::new(connections, workers, room);
    let sources = Sources::new(target, sources, connections).count();
    let need = Need { connections, target, sources, engine_bytes, watched, room, plan };
    limits::check(&need, &Facts::read(target.ip()))?;
    plan.ok_or_else(|| internal("there is no plan for a job that nothing stands in the way of"))
}

/// What the coordinator needs to know of a job; the rest it passes on.
pub struct Order<'a> {
    /// The job as it was read: it was found right.
    pub text: &'a str,
    pub job: &'a Job,
    pub target: SocketAddr,
    pub plan: Plan,
    /// When all must have ended, in nanoseconds of the monotonic clock.
    pub deadline_at_ns: u64,
}

/// Do a job in several processes and tell its events; how it ended, or `None` when it was stopped before there was anything
/// to tell. To be called by a thread that lives as long as the process.
///
/// # Errors
/// When it could not be done.
pub fn direct(order: &Order<'_>, stop: &Arc<Stop>) -> Result<Option<Ended>, EngineError> {
    let begun_ns = now_ns();
    let Order { plan, target, .. } = *order;
    let left_ns = order.deadline_at_ns.saturating_sub(begun_ns).max(1);
    let deal = JobSplit::new(order.text, plan, target, left_ns).map_err(|error| internal(&error.to_string()))?;
    let mut crew = Shards::start(deal, plan.processes, stop).map_err(|error| {
        internal(&format!("so many connections take {} processes, and one cannot be started: {error}", plan.processes))
    })?;
    let Some(connected) = wait_for_connections(&mut crew, order, stop)? else {
        return Ok(None);
    };
    let epoch_ns = now_ns() + NOTICE_NS;
    tell(&Event::Started(started(order, connected, epoch_ns, begun_ns)));
    crew.start_schedules(epoch_ns);
    if order.job.commands {
        let latest_ns = epoch_ns + order.job.warmup_ns;
        let grid = IntervalGrid { epoch_ns, interval_ns: order.job.interval_ns, latest_ns };
        crew.pass_on_commands(grid).map_err(|error| internal(&error.to_string()))?;
    }
    conduct(&mut crew, order, stop).map(Some)
}

fn started(order: &Order<'_>, connected: Connected, epoch_ns: u64, begun_ns: u64) -> Started {
    Started {
        format: ENGINE_FORMAT.to_owned(),
        engine: Engine {
            name: "redline-engine".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            backend: connected.backend,
            workers: order.plan.workers,
            cpus: order.job.cpus.clone(),
            processes: order.plan.processes,
        },
        connections: connected.connections,
        connect_ns: epoch_ns - NOTICE_NS - begun_ns,
        epoch_unix_ns: unix_ns() + epoch_ns - now_ns(),
        tls: connected.tls,
    }
}

/// Wait until every shard has tried; what they have together, or `None` when they were stopped.
fn wait_for_connections(crew: &mut Shards, order: &Order<'_>, stop: &Stop) -> Result<Option<Connected>, EngineError> {
    let mut all: Option<Connected> = None;
    for _ in 0..order.plan.processes {
        let heard = crew.inbox.recv();
        if stop.code().is_some() {
            return Ok(None);
        }
        match heard.map_err(|_| silent())? {
            ShardMessage { told: Some(OwnedEvent::Connected(one)), .. } => {
                all = Some(all.map_or(one.clone(), |all| together(all, one)));
            }
            ShardMessage { shard, told } => return Err(failed(crew, shard, told)),
        }
    }
    match all.ok_or_else(silent)? {
        Connected { connections: 0, trouble: Some(trouble), .. } => Err(trouble),
        all => Ok(Some(all)),
    }
}

fn together(all: Connected, one: Connected) -> Connected {
    Connected {
        connections: all.connections + one.connections,
        connect_ns: all.connect_ns.max(one.connect_ns),
        backend: all.backend,
        tls: all.tls.or(one.tls),
        trouble: all.trouble.or(one.trouble),
    }
}

/// Tell intervals as they end, and then the result. This does not give way to the load as a director does: what the shards'
/// directors tell when there is time to spare must not wait for that once more, or a result could miss the deadline.
fn conduct(crew: &mut Shards, order: &Order<'_>, stop: &Stop) -> Result<Ended, EngineError> {
    let mut fan_in = FanIn::new(order.plan.processes as usize, order.job.interval_ns);
    let mut finished = vec![false; order.plan.processes as usize];
    let mut cpu_ns = process_cpu_ns();
    let ending = loop {
        let ShardMessage { shard, told } = crew.inbox.recv().map_err(|_| silent())?;
        match told {
            Some(OwnedEvent::Interval(interval)) => {
                if let Some(spare) = fan_in.add(shard, interval) {
                    crew.give_back(shard, spare);
                }
            }
            Some(OwnedEvent::Result(result)) => {
                finished[shard] = true;
                fan_in.finish(shard, &result);
                stop_with(result.ended, stop);
            }
            Some(OwnedEvent::Started(_)) => {}
            None if finished[shard] => {}
            other => return Err(failed(crew, shard, other)),
        }
        tell_intervals(&mut fan_in, crew, &mut cpu_ns);
        if let Some(ending) = fan_in.ending() {
            break ending;
        }
    };
    tell(&Event::Result(Summary {
        ended: ending.ended,
        measure_start_ns: ending.measure_start_ns,
        measure_end_ns: ending.measure_end_ns,
        slice: fan_in.total(),
    }));
    Ok(ending.ended)
}

/// A shard that was cut by itself, by a signal that it alone was sent, ends the measurement of all.
fn stop_with(ended: Ended, stop: &Stop) {
    if ended != Ended::Complete && stop.code().is_none() {
        stop.ask(if ended == Ended::Deadline { CUT_BY_DEADLINE } else { INTERRUPTED });
    }
}

/// Tell every interval that all shards have told. The coordinator's own CPU time belongs to the interval that it tells.
fn tell_intervals(fan_in: &mut FanIn, crew: &Shards, cpu_ns: &mut u64) {
    while let Some(mut merged) = fan_in.next() {
        let before_ns = std::mem::replace(cpu_ns, process_cpu_ns());
        let own_ns = *cpu_ns - before_ns;
        let piece = &mut merged.piece;
        piece.slice.engine_cpu_ns += own_ns;
        if piece.phase == Phase::Measure {
            fan_in.total().engine_cpu_ns += own_ns;
        }
        tell(&Event::Interval(Interval {
            phase: piece.phase,
            index: merged.index,
            start_ns: piece.start_ns,
            end_ns: piece.end_ns,
            slice: &piece.slice,
        }));
        crew.give_back(merged.lender, merged.piece.slice);
    }
}

/// Why the work cannot go on: a shard said so, or ended, or said what it should not.
fn failed(crew: &mut Shards, shard: usize, told: Option<OwnedEvent>) -> EngineError {
    match told {
        Some(OwnedEvent::Error(trouble)) => {
            EngineError { message: format!("shard {shard}: {}", trouble.message), ..trouble }
        }
        Some(_) => internal(&format!("shard {shard} spoke out of turn")),
        None => {
            internal(&format!("shard {shard} of the engine is gone before its work was done: {}", crew.end_of(shard)))
        }
    }
}

fn silent() -> EngineError {
    internal("no shard of the engine says anything any more")
}

fn internal(message: &str) -> EngineError {
    EngineError {
        kind: ErrorKind::Internal,
        message: message.to_owned(),
        hint: "look at the lines before this one, at the limits of processes and memory, and in the kernel's log for one that \
               was killed for want of memory"
            .to_owned(),
    }
}
