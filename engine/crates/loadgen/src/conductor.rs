//! The main thread: starts the workers together, puts together what they tell, and tells it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use redline_traffic::{
    Connected, ENGINE_FORMAT, Ended, Engine, EngineError, ErrorKind, Event, Interval, Phase, Started, Summary, TlsInfo,
};

use crate::commands;
use crate::job::{Job, Shape};
use crate::measure_start::{IntervalGrid, MeasureStart};
use crate::merge::Merger;
use crate::output::tell;
use crate::pool::Failure;
use crate::shards::child::{Orders, is_shard};
use crate::stop::Stop;
use crate::sys::process::give_way;
use crate::sys::time::{now_ns, thread_cpu_ns, unix_ns};
use crate::worker_thread::{Message, WorkerHandle, spawn_worker};

/// How far ahead the epoch is set, so that every worker is there when it comes.
const NOTICE_NS: u64 = 1_000_000;

/// Do a job and tell its events; how it ended, or `None` when it was stopped before there was anything to tell.
///
/// # Errors
/// When it could not be done.
pub fn direct(
    job: &Arc<Job>,
    target: SocketAddr,
    stop: &Arc<Stop>,
    orders: Option<&Orders>,
) -> Result<Option<Ended>, EngineError> {
    let begun_ns = now_ns();
    let (messages, inbox) = channel();
    let beginning = orders.map_or_else(Arc::default, |orders| Arc::clone(&orders.beginning));
    let hired = (0..job.workers)
        .map(|number| spawn_worker(number, job, stop, target, &messages, &beginning))
        .collect::<io::Result<Vec<_>>>()
        .map_err(|error| internal(&error))?;
    drop(messages);
    let connections = wait_for_connections(&hired, &inbox)?;
    if stop.code().is_some() {
        return Ok(None);
    }
    let trouble = not_connected(job, target, &connections);
    let connect_ns = now_ns() - begun_ns;
    let epoch_ns = match (orders, trouble) {
        (Some(orders), trouble) => {
            tell(&connected(connections, connect_ns, trouble));
            match orders.epoch_ns(stop) {
                Some(epoch_ns) => epoch_ns,
                None => return Ok(None),
            }
        }
        (None, Some(trouble)) => return Err(trouble),
        (None, None) => {
            let epoch_ns = now_ns() + NOTICE_NS;
            tell(&started(job, connections, connect_ns, epoch_ns));
            epoch_ns
        }
    };
    begin(&hired, epoch_ns);
    if job.commands && orders.is_none() {
        heed_commands(job, epoch_ns, &beginning).map_err(|error| internal(&error))?;
    }
    let begins_ns = || beginning.at_ns().map_or(job.warmup_ns, |at_ns| at_ns - epoch_ns);
    conduct(job, stop, &hired, &inbox, epoch_ns, begins_ns).map(Some)
}

/// Listen for the command to measure. What was said before the schedule started waits to be read, and counts.
fn heed_commands(job: &Job, epoch_ns: u64, beginning: &Arc<MeasureStart>) -> io::Result<()> {
    let grid = IntervalGrid { epoch_ns, interval_ns: job.interval_ns, latest_ns: epoch_ns + job.warmup_ns };
    let beginning = Arc::clone(beginning);
    commands::listen(move || beginning.ask(grid))
}

/// What a shard tells: the coordinator knows whether the others have connections, and when all start.
fn connected(connections: Connections, connect_ns: u64, trouble: Option<EngineError>) -> Event<'static> {
    let Connections { open, backend, tls, .. } = connections;
    Event::Connected(Connected { connections: open, connect_ns, backend: backend.to_owned(), tls, trouble })
}

fn started(job: &Job, connections: Connections, connect_ns: u64, epoch_ns: u64) -> Event<'static> {
    Event::Started(Started {
        format: ENGINE_FORMAT.to_owned(),
        engine: Engine {
            name: "redline-engine".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            backend: connections.backend.to_owned(),
            workers: job.workers,
            cpus: job.cpus.clone(),
            processes: 1,
        },
        connections: connections.open,
        connect_ns,
        epoch_unix_ns: unix_ns() + epoch_ns - now_ns(),
        tls: connections.tls,
    })
}

/// Tell all workers when the schedule starts.
fn begin(hired: &[WorkerHandle], epoch_ns: u64) {
    for worker in hired {
        // A worker that is gone has said why.
        let _ = worker.epoch.send(epoch_ns);
    }
}

/// What the workers' connecting came to.
struct Connections {
    open: u64,
    backend: &'static str,
    tls: Option<TlsInfo>,
    why: Option<Failure>,
}

/// Wait until every worker has tried.
fn wait_for_connections(hired: &[WorkerHandle], inbox: &Receiver<Message>) -> Result<Connections, EngineError> {
    let mut all = Connections { open: 0, backend: "", tls: None, why: None };
    for _ in hired {
        match inbox.recv() {
            Ok(Message::Connected(opened, backend)) => {
                all.open += opened.open as u64;
                all.why = opened.why.or(all.why);
                all.tls = all.tls.or(opened.tls);
                all.backend = backend;
            }
            Ok(Message::Failed(error)) => return Err(internal(&error)),
            Ok(_) => {}
            Err(error) => return Err(internal(&io::Error::other(error))),
        }
    }
    Ok(all)
}

/// That not one connection could be opened, when some were wanted.
fn not_connected(job: &Job, target: SocketAddr, connections: &Connections) -> Option<EngineError> {
    let wants_some = match &job.load.shape {
        Shape::Closed { users, .. } => users.start() >= 1.0,
        Shape::Open { .. } => true,
    };
    if connections.open > 0 || !wants_some {
        return None;
    }
    let why = connections.why.as_ref().map_or_else(|| "no answer in time".to_owned(), ToString::to_string);
    let hint = match connections.why {
        Some(Failure::Tls(_)) => {
            "check that the port speaks TLS, and the certificate: trust who signed it (`ca`, `--cacert`), or any (`--insecure`)"
        }
        _ => "check that the server is running and listens on that address and port",
    };
    Some(EngineError {
        kind: ErrorKind::Connect,
        message: format!("not one connection to {target} could be opened: {why}"),
        hint: hint.to_owned(),
    })
}

/// Tell intervals as they end, and then the result. `begins_ns` is when the measurement begins, after the epoch: it is known
/// once a worker has measured.
fn conduct(
    job: &Job,
    stop: &Stop,
    hired: &[WorkerHandle],
    inbox: &Receiver<Message>,
    epoch_ns: u64,
    begins_ns: impl Fn() -> u64,
) -> Result<Ended, EngineError> {
    // The coordinator waits for all shards: where they share few cores, one that gives way would hold up the result of all.
    if !is_shard() {
        give_way();
    }
    let mut merger = Merger::new(hired.len());
    let planned_end_ns = || begins_ns() + job.measure_ns;
    // The window is the longest of the workers': one may have been cut, or have had all its requests, before the others.
    let (mut end_ns, mut was_cut) = (0, false);
    let mut cpu_ns = thread_cpu_ns();
    while !merger.all_finished() {
        match inbox.recv() {
            Ok(Message::WorkerInterval(worker, piece)) => {
                if let Some(spare) = merger.add(worker, piece) {
                    let _ = hired[worker].returns.send(spare);
                }
            }
            Ok(Message::Finished { worker, cut_ns }) => {
                was_cut |= cut_ns.is_some();
                end_ns = end_ns.max(cut_ns.map_or_else(planned_end_ns, |cut_ns| cut_ns.saturating_sub(epoch_ns)));
                merger.finish(worker);
            }
            Ok(Message::Connected(..)) => {}
            Ok(Message::Failed(error)) => return Err(internal(&error)),
            Err(error) => return Err(internal(&io::Error::other(error))),
        }
        tell_intervals(&mut merger, hired, &mut cpu_ns);
    }
    let ended = if was_cut { stop.ended() } else { Ended::Complete };
    let measure_end_ns = end_ns.min(planned_end_ns());
    tell(&Event::Result(Summary {
        ended,
        measure_start_ns: begins_ns().min(measure_end_ns),
        measure_end_ns,
        slice: &merger.total,
    }));
    Ok(ended)
}

/// Tell every interval that all workers have told. The main thread's own CPU time belongs to the interval that it tells.
fn tell_intervals(merger: &mut Merger, hired: &[WorkerHandle], cpu_ns: &mut u64) {
    while let Some(mut merged) = merger.next() {
        let before_ns = std::mem::replace(cpu_ns, thread_cpu_ns());
        let own_ns = *cpu_ns - before_ns;
        let piece = &mut merged.piece;
        piece.slice.engine_cpu_ns += own_ns;
        if piece.phase == Phase::Measure {
            merger.total.engine_cpu_ns += own_ns;
        }
        tell(&Event::Interval(Interval {
            phase: piece.phase,
            index: merged.index,
            start_ns: piece.start_ns,
            end_ns: piece.end_ns,
            slice: &piece.slice,
        }));
        piece.slice.clear();
        let _ = hired[merged.lender].returns.send(merged.piece.slice);
    }
}

fn internal(error: &io::Error) -> EngineError {
    EngineError {
        kind: ErrorKind::Internal,
        message: format!("the system refused what it never should: {error}"),
        hint:
            "look at the limits of this process (descriptors, threads, memory) and report it if they are not the cause"
                .to_owned(),
    }
}
